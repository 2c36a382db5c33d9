"""Maths with a tool: run scripts, then hand in an answer.

The invariants: the answer that is right is never seen, nor whether an answer was right: handing in twice does not pay.
Scripts run in a sandbox or not at all. The state is what was handed in last, and what was printed last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from concertino.strategies.role_workflow import Stepped

from . import rewards
from .acting import ActingEnvironment, Judged, Ran, Turn, UnreadableAction, refuse_snapshot
from .reading import read_number

# Characters of a script's output that are shown, and of a script that is run.
_SHOWN = 2_000
_MOST_CHARS = 100_000
_EXPECTED = 'expected an answer, {"answer": "..."}, or a script to run, {"code": "..."}'


class Maths(ActingEnvironment):
    """One problem.

    Args:
        answer: the right answer, a whole number, a decimal or a fraction.
        run: what runs scripts; without it, `step` takes answers only.
    """

    domain = "maths"
    tells_reward = False

    def __init__(self, answer: str, **runner: Any) -> None:
        super().__init__(**runner)
        number = read_number(answer)
        if number is None:
            raise ValueError(f"answer={answer!r}: expected a number, such as 7, 0.5 or 3/7")
        self._right = number
        self._begin()

    def _begin(self) -> None:
        self._answer: str | None = None
        self._printed: str | None = None
        self._runs = 0

    def snapshot(self) -> Any:
        """What was handed in, what the last script printed, and how many scripts were run."""
        return {"answer": self._answer, "printed": self._printed, "runs": self._runs}

    def restore(self, snapshot: Any) -> None:
        """Take up a state."""
        kinds: dict[str, Any] = {"answer": (str, type(None)), "printed": (str, type(None)), "runs": int}
        if not isinstance(snapshot, Mapping) or set(snapshot) != set(kinds):
            raise refuse_snapshot(snapshot, f"an object with {', '.join(kinds)}")
        if not all(isinstance(snapshot[key], kind) for key, kind in kinds.items()):
            raise refuse_snapshot(snapshot, "texts, and a whole number of runs")
        self._answer, self._printed, self._runs = snapshot["answer"], snapshot["printed"], snapshot["runs"]

    @property
    def reached(self) -> bool:
        """What was handed in last is right."""
        return self.is_right(self._answer)

    @property
    def done(self) -> bool:
        """Something was handed in. It may still be replaced."""
        return self._answer is not None

    @property
    def observation(self) -> str:
        """What was printed last, and what was handed in."""
        parts = []
        if self._printed is not None:
            parts.append(f"The last script printed:\n{self._printed.strip() or '(nothing)'}")
        handed = "No answer was handed in yet." if self._answer is None else f"Handed in: {self._answer}"
        return "\n".join([*parts, handed])

    def is_right(self, answer: Any) -> bool:
        """Whether an answer is the right number, within the tolerance of A.1.1."""
        number = read_number(answer)
        return number is not None and rewards.numbers_equal(number, self._right)

    def scripts(self, action: Any) -> tuple[str, ...]:
        """The script, if the action is one."""
        kind, text = _read(action)
        return (text,) if kind == "code" else ()

    def judge(self, action: Any, ran: Sequence[Ran] = ()) -> Stepped:
        """Take the answer, or the result of the script."""
        kind, text = _read(action)
        if kind == "answer":
            self._answer = text
            return self._stepped(Judged(1, 1), float(self.reached))
        (one,) = ran
        self._printed, self._runs = one.stdout[:_SHOWN], self._runs + 1
        return self._stepped(Judged(1, int(one.ok), "" if one.ok else one.cause), 0.0)

    def turn_reward(self, turn: Turn, ran: Sequence[Ran] = ()) -> rewards.TurnReward:
        """A.1.1: the reasoner by its answer, the programmer by what its script printed."""
        readable = isinstance(turn.action, (str, int, float)) and bool(str(turn.action).strip())
        right = readable and self.is_right(turn.action)
        scores = {"reasoner": {"format": float(readable), "runs": 0.0, "step": float(right)}}
        if turn.printed is not None:
            lines = turn.printed.strip().splitlines()
            # The last line: scripts print their working first.
            step = turn.ran and bool(lines) and self.is_right(lines[-1])
            scores["programmer"] = {"format": 1.0, "runs": float(turn.ran), "step": float(step)}
        return rewards.TurnReward(self.domain, float(right and turn.final), scores)


def oracle(instance: Mapping[str, Any]) -> dict[str, Any]:
    """The answer."""
    return {"answer": instance["answer"]}


def _read(action: Any) -> tuple[str, str]:
    """`answer` or `code`, and its text."""
    if isinstance(action, Mapping):
        if len(action) != 1 or next(iter(action)) not in ("answer", "code"):
            raise UnreadableAction(f"the action has the keys {sorted(map(str, action))[:5]}; {_EXPECTED}")
        kind, value = next(iter(action.items()))
    else:
        # What a strategy passes on is often the bare answer.
        kind, value = "answer", action
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise UnreadableAction(f"the {kind} is {str(value)[:60]!r}; {_EXPECTED}")
    text = str(value).strip() if kind == "answer" else str(value)
    if not text.strip() or len(text) > (_MOST_CHARS if kind == "code" else 1000):
        raise UnreadableAction(f"the {kind} has {len(text)} characters; {_EXPECTED}")
    return kind, text
