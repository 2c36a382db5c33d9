"""From a results file and its traces to another results file, with other grades and rewards.

    results + traces + tasks -> (run, read back) -> grade -> rewards of its group -> items of the new file

The invariants: nobody is asked, no model and no tool, so a grade that would need one is left out with its reason; an
item is written whole or not at all, and what is in the new file is not done again; a reward is given to all samples of
a task at once or to none of them.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from concertino import ChatRequest, ConcertinoError, Observation, Reply, Trace, UsageError
from concertino.core.logs import logger_of

from concertino_bench.reports.results import Results, read_results
from concertino_bench.runner.item_work import calls_of
from concertino_bench.runner.results_file import ResultsFile
from concertino_bench.runner.services import choose_graders
from concertino_bench.tasks.grade import Grade, Grader, Submission, TextGrader, Verdict
from concertino_bench.tasks.item import REWARD, Item, Key, shortened
from concertino_bench.tasks.task import Task, TaskSet

from .recorded_run import run_of
from .rewarding import GradedRun, RunReward, RunScore

logger = logger_of("bench")
OWN = "own"
"""In the place of a grader's name: each task is graded by its own one."""
REASONS: Mapping[str, str] = {
    "no trace": "its trace is missing",
    "unreadable trace": "its trace is damaged, has no end, or is of another run",
    "no task": "it is not in the task files",
    "asks": "its grader would ask a model or call a tool",
    "state": "its grader reads the state of a world, which a trace does not keep",
    "grader": "its grader cannot grade it",
    "group": "another sample of its task cannot be read, and a reward compares them",
}
"""Why an item is left out."""


@dataclass(frozen=True)
class LeftOutItem:
    """An item that is not rescored.

    Attributes:
        key: which one.
        reason: one of `REASONS`.
        detail: more about it.
    """

    key: Key
    reason: str
    detail: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {**self.key._asdict(), "reason": self.reason, "detail": self.detail}


@dataclass(frozen=True)
class Rescored:
    """What became of a results file.

    Attributes:
        path: the new results file.
        before: the results that were read.
        items: all that is in the new file, by key.
        left_out: what is not.
        lacking: by reward, how many items it could not score, and why the first one.
        fresh: items that this process did.
        seconds: of this process.
    """

    path: Path
    before: Results
    items: Mapping[Key, Item]
    left_out: Sequence[LeftOutItem] = ()
    lacking: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    fresh: int = 0
    seconds: float = 0.0

    def changed(self, system: str) -> int:
        """How many verdicts of a system are other ones now."""
        old = {item.key: item.verdict for item in self.before.items}
        return sum(item.verdict is not old[key] for key, item in self.items.items() if key.system == system)


@dataclass(frozen=True)
class Rescoring:
    """How items are rescored.

    Attributes:
        grader: a grader's name, `own` for each task's own one; empty to keep the grades.
        rewards: what is scored.
        graders: who may grade.
        tasks: by id, the tasks with their sets.
    """

    grader: str = ""
    rewards: Sequence[RunReward] = ()
    graders: Sequence[Grader] = ()
    tasks: Mapping[str, tuple[Task, TaskSet]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.grader and not self.rewards:
            raise UsageError("name what to grade with: a grader, a reward, or both")
        if self.grader not in ("", OWN) and self.grader not in {each.name for each in self.graders}:
            # As for a run: an unknown name is told with near ones.
            choose_graders(
                [next(iter(self.tasks.values()))[0]] if self.tasks else [_NOBODYS], self.graders, self.grader
            )

    def to_json(self) -> dict[str, Any]:
        """What decides the outcome, as the new file's header holds it."""
        return {"grader": self.grader, "rewards": [dict(each.to_json()) for each in self.rewards]}


async def rescore(
    results: str | Path,
    out: str | Path,
    how: Rescoring,
    *,
    on_progress: Callable[[int, int], None] | None = None,
) -> Rescored:
    """Rescore the items of a results file, or continue it.

    Args:
        results: the file; its traces are looked for where it says.
        out: the new file; if it is there, its items are kept and the missing ones are done.
        on_progress: is told how many items are done, of how many.

    Raises:
        UsageError: a file cannot be read, or the new file belongs to something else. Nothing is written.
    """
    began = time.monotonic()
    source, path = Path(results), Path(out)
    before = _before(source, path)
    work = _Work(how, source.parent, path.parent)
    with ResultsFile(path, _header(before, source, how)) as file:
        fresh = 0
        for group in _groups(before.items):
            if missing := {item.key for item in group} - file.items.keys():
                for item in await work.group(group):
                    if item.key in missing:
                        file.append(item)
                        fresh += 1
            if on_progress is not None:
                on_progress(len(file.items), len(before.items))
        items = dict(file.items)
    return Rescored(path, before, items, work.left_out, work.lacking, fresh, time.monotonic() - began)


def _before(source: Path, path: Path) -> Results:
    if path.exists() and path.samefile(source):
        raise UsageError(f"{path} is the file that is rescored; choose another file with --out")
    return read_results(source, lenient=True)


def _groups(items: Sequence[Item]) -> Iterator[list[Item]]:
    """All samples of one system and one task, in the order of the file."""
    found: dict[tuple[str, str], list[Item]] = {}
    for item in items:
        found.setdefault((item.key.system, item.key.task), []).append(item)
    for group in found.values():
        yield sorted(group, key=lambda item: item.key.sample)


def _header(before: Results, source: Path, how: Rescoring) -> dict[str, Any]:
    said = how.to_json()
    was = [before.header.get("fingerprint", ""), before.header.get("nonce", "")]
    text = json.dumps([*was, said], sort_keys=True, default=str)
    return {
        **{key: value for key, value in before.header.items() if key not in ("version", "nonce")},
        **({"grader": how.grader} if how.grader else {}),
        "rescored": {"file": source.name, **said},
        "fingerprint": hashlib.sha256(text.encode()).hexdigest()[:16],
    }


class _Left(Exception):
    """An item has to be left out."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail


class _Work:
    """Rescores groups of items, and counts what it could not do."""

    def __init__(self, how: Rescoring, home: Path, target: Path) -> None:
        self.how, self.home, self.target = how, home, target
        self.left_out: list[LeftOutItem] = []
        self.lacking: dict[str, tuple[int, str]] = {}

    async def group(self, items: Sequence[Item]) -> list[Item]:
        """The new items of a group, those that could be done."""
        done: list[tuple[Item, GradedRun | None]] = []
        left: list[LeftOutItem] = []
        for item in items:
            try:
                done.append(await self._item(item))
            except _Left as error:
                left.append(LeftOutItem(item.key, error.reason, error.detail))
        if left and self.how.rewards and done:
            why = f"sample {left[0].key.sample}: {left[0].detail}"
            left += [LeftOutItem(item.key, "group", why) for item, _ in done]
            done = []
        self.left_out += left
        values = self._rewarded([run for _, run in done if run is not None])
        return [self._written(item, values.get(item.key.sample, {}) if run else {}) for item, run in done]

    async def _item(self, item: Item) -> tuple[Item, GradedRun | None]:
        """An item with its new grade, and the run that rewards read."""
        if item.error:
            # There was no run, so no grader can say more and no reward is due.
            return item, None
        known = self.how.tasks.get(item.key.task)
        if self.how.tasks and known is None:
            raise _Left("no task", f"the tasks have no {item.key.task!r}")
        task, home = known or (None, None)
        grader = self._grader(task)
        graded = self._read(item) if self.how.rewards or item.trace else None
        if graded is None and grader is not None and not _is_enough(item, grader):
            raise _Left("no trace", "the results keep neither the calls nor the whole answer, and there is no trace")
        grade = _kept(item, task)
        if grader is not None and task is not None:
            grade = await _rescored(item, task, home, grader, graded)
            item = replace(
                item,
                verdict=grade.verdict,
                reason=grade.reason,
                share=grade.share,
                values=dict(grade.values),
                found=grade.found,
            )
        if graded is None:
            return item, None
        return item, replace(graded, grade=grade, task=task)

    def _grader(self, task: Task | None) -> Grader | None:
        """Who rescores a task; None where grades are kept."""
        if not self.how.grader:
            return None
        if task is None:
            raise _Left("no task", "the results do not say where the tasks are from; name them with --tasks")
        try:
            name = "" if self.how.grader == OWN else self.how.grader
            grader = choose_graders([task], self.how.graders, name)[task.id]
        except UsageError as error:
            raise _Left("grader", str(error)) from error
        if grader.needs:
            raise _Left("asks", f"the grader {grader.name} needs {', '.join(grader.needs)}")
        if grader.reads_state:
            raise _Left("state", f"the grader {grader.name} reads the final state; run the evaluation again")
        return grader

    def _read(self, item: Item) -> GradedRun:
        """The run of an item, from its trace."""
        if not item.trace:
            raise _Left("no trace", "the evaluation kept no traces (--no-traces)")
        file = self.home / item.trace
        if not file.is_file():
            raise _Left("no trace", f"{file} is not there")
        try:
            run = run_of(Trace.load(file))
        except (ConcertinoError, OSError, ValueError) as error:
            raise _Left("unreadable trace", str(error)) from error
        if _written_as(shortened(run.answer)) != _written_as(item.answer) or run.stop != item.stop:
            raise _Left("unreadable trace", f"{file} is of another run: its end is not that of the item")
        kinds = {name: use.kind for name, use in item.members.items()}
        group = f"{item.key.system}\n{item.key.task}"
        return GradedRun(run, _kept(item, None), group, item.key.sample, kinds)

    def _rewarded(self, runs: Sequence[GradedRun]) -> dict[int, dict[str, float]]:
        """By sample, what each reward gives."""
        found: dict[int, dict[str, float]] = {run.sample: {} for run in runs}
        for reward in self.how.rewards if runs else ():
            try:
                scores = reward.score_runs(runs)
            except Exception as error:
                # A reward is a plugin: one that breaks costs its own column alone.
                logger.debug("%s broke on %s", reward.name, runs[0].group, exc_info=True)
                count, why = self.lacking.get(reward.name, (0, ""))
                self.lacking[reward.name] = (count + len(runs), why or str(error) or type(error).__name__)
                continue
            for run, score in zip(runs, scores, strict=True):
                found[run.sample] |= _named(reward.name, score)
        return found

    def _written(self, item: Item, values: Mapping[str, float]) -> Item:
        """An item as the new file has it: with its rewards, and its trace named from there."""
        trace = os.path.relpath(self.home / item.trace, self.target) if item.trace else ""
        return replace(item, values={**item.values, **values}, trace=trace)


def _written_as(answer: str | None) -> str | None:
    # A results file cannot hold half a surrogate pair, and a trace may.
    return None if answer is None else answer.encode("utf-8", "replace").decode()


def _named(name: str, score: RunScore) -> dict[str, float]:
    parts = {f"{REWARD}{name}: {part}": value for part, value in score.components.items()}
    return {f"{REWARD}{name}": score.total, **(parts if len(parts) > 1 else {})}


def _kept(item: Item, task: Task | None) -> Grade:
    """The grade that an item holds; what was expected is the task's to say."""
    return Grade(
        item.verdict, item.reason or "graded before", task.answers if task else (), item.found, (), item.values
    )


def _is_enough(item: Item, grader: Grader) -> bool:
    """Whether an item alone holds all that a grader reads."""
    return isinstance(grader, TextGrader) and (item.answer is None or shortened(item.answer) == item.answer)


async def _rescored(item: Item, task: Task, home: TaskSet | None, grader: Grader, graded: GradedRun | None) -> Grade:
    run = graded.run if graded is not None else None
    answer = run.answer if run is not None else item.answer
    # As in a run: with a world, calls alone may be right.
    if answer is None and (home is None or home.world is None):
        detail = f" ({item.detail})" if item.detail else ""
        return Grade(Verdict.UNPARSABLE, f"no answer: {item.stop}{detail}", task.answers)
    submission = Submission(answer or "", calls_of(run) if run is not None else (), None, item.stop)
    try:
        return await grader.grade(task, submission, _Nobody())
    except _Asked as error:
        raise _Left("asks", f"the grader {grader.name} asked {error}") from error
    except Exception as error:
        raise _Left("grader", f"the grader {grader.name} failed: {type(error).__name__}: {error}") from error


class _Asked(Exception):
    """A grader asked somebody."""


class _Nobody:
    """The services of a grading that asks nobody."""

    async def ask(self, role: str, request: ChatRequest) -> Reply:
        """Refuse."""
        raise _Asked(f"the model {role}")

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Observation:
        """Refuse."""
        raise _Asked(f"the tool {name}")


_NOBODYS = Task("task", "?", (), "text")
