"""Choosing trajectories to learn from: right ones, those that recovered first, one per question, no tool over all.

After ParaManager: several trajectories of a question are sampled, those with a right answer are kept, one of them is
taken, and one that recovered from a failed call is preferred. The paper keeps any single tool from dominating by a
constraint whose number it does not give; here it is a share of all calls.

    wrong, without trace     out (wrong ones stay with `answers="any"`)
    of one question          recovered first, then what is called less so far, then chance
    over all questions       while a member has more than its share of all calls, what calls it most goes out

The invariants: one seed over the same files takes the same trajectories in the same order; and every trajectory that
is not taken is told with its reason.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from concertino import UsageError
from pydantic import Field

from concertino_train.settings import Count, Number, Section

from .trajectories import LeftOutTrajectory, Trajectory


class SelectionSettings(Section):
    """Which trajectories are taken.

    Attributes:
        per_question: trajectories of one question.
        recovery: `first` prefers those that recovered, `only` takes no others, `any` does not look at it.
        tool_share: the share of all calls that one member may have; None for no limit.
        least_calls: calls that a trajectory makes at least.
        answers: `right` takes right answers only; `any` takes wrong ones too, where only the form is to be taught.
        most: trajectories in all.
    """

    per_question: Count = 1
    recovery: Literal["first", "only", "any"] = "first"
    tool_share: Annotated[float, Field(gt=0, le=1)] | None = 0.5
    least_calls: Number = 0
    answers: Literal["right", "any"] = "right"
    most: Count | None = None


@dataclass(frozen=True)
class Selected:
    """What was taken.

    Attributes:
        trajectories: in the order of the set.
        left_out: all others, with why.
        notes: what a reader should know.
    """

    trajectories: tuple[Trajectory, ...]
    left_out: tuple[LeftOutTrajectory, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def reasons(self) -> dict[str, int]:
        """How many were left out for each reason."""
        return dict(Counter(each.reason for each in self.left_out))


def select(
    found: Iterable[Trajectory | LeftOutTrajectory],
    settings: SelectionSettings | None = None,
    *,
    exclude: Collection[str] = (),
    seed: int = 0,
) -> Selected:
    """Choose among trajectories, of one results file or of several.

    Args:
        found: trajectories.
        settings: which are taken.
        exclude: ids of tasks and questions that are kept for something else, such as the set for RL.
        seed: of chance.

    Raises:
        UsageError: nothing is left; says why, reason by reason.
    """
    chosen = settings or SelectionSettings()
    left: list[LeftOutTrajectory] = []
    questions: dict[str, list[Trajectory]] = {}
    excluded = {_same(text) for text in exclude}
    for each in found:
        if isinstance(each, LeftOutTrajectory):
            left.append(each)
        elif (reason := _unfit(each, chosen, excluded)) is not None:
            left.append(LeftOutTrajectory(each.key, each.source, reason))
        else:
            questions.setdefault(_same(each.question), []).append(each)
    taken = _one_each(questions, chosen, seed, left)
    if chosen.most is not None:
        left += [LeftOutTrajectory(each.key, each.source, "enough") for each in taken[chosen.most :]]
        taken = taken[: chosen.most]
    notes: list[str] = []
    if chosen.tool_share is not None:
        taken = _balanced(taken, chosen.tool_share, left, notes)
    if not taken:
        raise UsageError(_nothing(left))
    return Selected(tuple(taken), tuple(left), tuple(notes))


def _unfit(one: Trajectory, settings: SelectionSettings, excluded: Collection[str]) -> str | None:
    """Why a trajectory cannot be taken, whatever the others are."""
    if not one.right and settings.answers == "right":
        return one.verdict
    if _same(one.question) in excluded or _same(one.key.task) in excluded:
        return "excluded"
    if settings.recovery == "only" and not one.recovered:
        return "no recovery"
    if not one.taught:
        return "nothing to learn"
    return "few calls" if one.calls < settings.least_calls else None


def _one_each(
    questions: dict[str, list[Trajectory]], settings: SelectionSettings, seed: int, left: list[LeftOutTrajectory]
) -> list[Trajectory]:
    """The best of each question; questions come in the order of chance."""
    taken: list[Trajectory] = []
    calls: Counter[str] = Counter()
    # By a hash of the question, so the order of files decides nothing.
    for question in sorted(questions, key=lambda text: _chance(seed, text)):
        rest = questions[question]
        for _ in range(min(settings.per_question, len(rest))):
            best = min(rest, key=lambda one: _rank(one, calls, settings.recovery, seed))
            # By identity, as two samples of a question may be equal.
            rest = [one for one in rest if one is not best]
            taken.append(best)
            calls.update(best.tools)
        left += [LeftOutTrajectory(one.key, one.source, "beaten") for one in rest]
    return taken


def _rank(one: Trajectory, calls: Counter[str], recovery: str, seed: int) -> tuple[bool, float, str]:
    """Lower is better: recovered, then calling what was called less, then chance."""
    recovered = one.recovered and recovery == "first"
    total, own = calls.total(), sum(one.tools.values())
    weight = sum(count * calls[name] for name, count in one.tools.items()) / (total * own) if total and own else 0.0
    # Rounded, so that a hair's breadth of balance does not decide in the place of chance.
    return not recovered, round(weight, 3), _chance(seed, *map(str, one.key), one.source)


_WORD = re.compile(r"[^\W\d_]{2}")
_ROUNDING = 1e-9
"""An excess below this is rounding."""


def _balanced(
    taken: list[Trajectory], share: float, left: list[LeftOutTrajectory], notes: list[str]
) -> list[Trajectory]:
    """What is left when no member has more than its share, as far as leaving out can do that."""
    beyond: set[str] = set()
    while True:
        calls: Counter[str] = Counter()
        for one in taken:
            calls.update(one.tools)
        total = calls.total()
        over = [name for name in sorted(calls) if calls[name] > share * total + _ROUNDING and name not in beyond]
        if not over:
            return taken
        worst = max(over, key=lambda name: calls[name])
        gone = _leaving(taken, worst, share)
        if gone is None:
            # Noted once; it would be found again in every pass.
            beyond.add(worst)
            notes.append(
                f"{worst} has {calls[worst] / total:.0%} of all calls, more than tool_share={share:g}; leaving out "
                "trajectories cannot change that, for none calls it less"
            )
            continue
        left += [LeftOutTrajectory(taken[place].key, taken[place].source, "balance", worst) for place in sorted(gone)]
        taken = [one for place, one in enumerate(taken) if place not in gone]


def _leaving(taken: Sequence[Trajectory], name: str, share: float) -> set[int] | None:
    """The fewest trajectories without which a member has its share, those that recovered last.

    None if no trajectory calls it less than its share, so that nothing could make it up.
    """
    excess = [one.tools.get(name, 0) - share * sum(one.tools.values()) for one in taken]
    total = sum(excess)
    if not any(each < 0 for each in excess):
        return None
    gone: set[int] = set()
    for place in sorted(range(len(taken)), key=lambda at: (taken[at].recovered, -excess[at], at)):
        if total <= _ROUNDING:
            break
        if excess[place] > 0:
            gone.add(place)
            total -= excess[place]
    return gone


def _nothing(left: Sequence[LeftOutTrajectory]) -> str:
    counts = Counter(each.reason for each in left)
    if not counts:
        return "there are no trajectories to choose from; collect some with a teacher"
    told = ", ".join(f"{count} {reason}" for reason, count in counts.most_common())
    return (
        f"no trajectory is left of {counts.total()}: {told}; take a better teacher, more samples, easier tasks or "
        "wider settings"
    )


def _same(text: str) -> str:
    """Two texts are one question if they differ in white space alone, but for drawings, where a blank is a place."""
    lines = (" ".join(line.split()) if _WORD.search(line) else line for line in text.splitlines())
    return " ".join(line for line in lines if line.strip())


def _chance(seed: int, *parts: str) -> str:
    return hashlib.sha256("\0".join([str(seed), *parts]).encode()).hexdigest()
