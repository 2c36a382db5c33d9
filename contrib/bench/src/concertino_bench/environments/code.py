"""Code with tests: hand in a program; the examples say what is wrong, hidden tests say whether it is right.

The invariants: what a caller sees follows from the examples alone, hidden tests are neither shown nor counted there;
programs run in a sandbox or not at all; and the state is the program that was handed in last, so a caller that
writes its own state gains nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from concertino.strategies.role_workflow import Stepped

from . import rewards
from .acting import ActingEnvironment, Judged, Ran, Turn, UnreadableAction, refuse_snapshot
from .harness import ProgramRun, digest_of, inputs_of, read_runs, write_script
from .mutants import mutants

# Characters of a program.
_MOST_CHARS = 50_000
# Bounds the work of one turn: each test of a tester is run on the reference and on ten mutants.
_MOST_TESTS = 8
_MOST_VERDICTS = 100
_EXPECTED = 'expected a whole Python program as a text, or {"code": "..."}'


class ProgramVerdict(NamedTuple):
    """The result of a program.

    Attributes:
        examples: each example's run.
        passed_examples: how many of them gave what is expected.
        passed: numbers of the hidden tests that it passes.
        builds: it has no fault of syntax, and what it imports is there.
        runs: it ends every example without an error.
    """

    examples: tuple[ProgramRun, ...]
    passed_examples: int
    passed: frozenset[int]
    builds: bool
    runs: bool


class Verdicts:
    """The results of programs, the last hundred: restoring a state does not run its program once more."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, ProgramVerdict] = OrderedDict()

    def get(self, program: str | None) -> ProgramVerdict | None:
        """The verdict on a program, if it is known."""
        return self._known.get(program) if program is not None else None

    def put(self, program: str, verdict: ProgramVerdict) -> None:
        """Keep a verdict, and forget the oldest if there are too many."""
        self._known[program] = verdict
        if len(self._known) > _MOST_VERDICTS:
            self._known.popitem(last=False)


class CodeTests(ActingEnvironment):
    """One programming task.

    Args:
        instance: with `style` ("program" or "function"), `entry_point`, `examples` and `tests`; for the tester's reward
            also `golden`. Tests are `{"input", "output"}`, of functions `{"args", "value"}`.
        verdicts: shared between objects of one task.
        run: what runs scripts; `step` needs it.
    """

    domain = "code"
    # The team reward counts hidden tests.
    tells_reward = False

    def __init__(self, instance: Mapping[str, Any], *, verdicts: Verdicts | None = None, **runner: Any) -> None:
        super().__init__(**runner)
        self.entry: str = instance.get("entry_point", "") if instance.get("style") == "function" else ""
        self.examples = list(instance.get("examples", ()))
        self.tests = list(instance["tests"])
        self.golden: str = instance.get("golden", "")
        if not self.tests:
            raise ValueError("tests=[]: expected at least one hidden test")
        self._verdicts = verdicts if verdicts is not None else Verdicts()
        self._begin()

    def _begin(self) -> None:
        self._program: str | None = None
        self._passed_examples = 0

    def snapshot(self) -> Any:
        """The program that was handed in last, and how many examples it passed."""
        return {"program": self._program, "examples": self._passed_examples}

    def restore(self, snapshot: Any) -> None:
        """Take up a state. Whether its program is right is known if this task has judged it before."""
        if not isinstance(snapshot, Mapping) or set(snapshot) != {"program", "examples"}:
            raise refuse_snapshot(snapshot, "an object with program and examples")
        program, examples = snapshot["program"], snapshot["examples"]
        if not isinstance(program, (str, type(None))) or type(examples) is not int:
            raise refuse_snapshot(snapshot, "a program as a text and a whole number")
        self._program, self._passed_examples = program, examples

    @property
    def verdict(self) -> ProgramVerdict | None:
        """On the program that was handed in last; None if it was never judged here."""
        return self._verdicts.get(self._program)

    @property
    def reached(self) -> bool:
        """The last program passes every hidden test and every example."""
        verdict = self.verdict
        if verdict is None:
            return False
        return len(verdict.passed) == len(self.tests) and verdict.passed_examples == len(self.examples)

    @property
    def done(self) -> bool:
        """The last program passes every example."""
        return self._program is not None and bool(self.examples) and self._passed_examples == len(self.examples)

    @property
    def observation(self) -> str:
        """How the examples went."""
        if self._program is None:
            return "No program was handed in yet."
        told = f"A program was handed in; it passes {self._passed_examples} of {len(self.examples)} examples."
        verdict = self.verdict
        if verdict is None:
            return told
        failed = [
            _mismatch(number, example, done)
            for number, (example, done) in enumerate(zip(self.examples, verdict.examples, strict=True), 1)
            if done.digest != digest_of(example)
        ]
        return "\n".join([told, *failed])

    def scripts(self, action: Any) -> tuple[str, ...]:
        """One script for the examples and the hidden tests."""
        return (self._script(_read_program(action)),)

    def _script(self, program: str) -> str:
        inputs = inputs_of([*self.examples, *self.tests])
        return write_script([program], inputs, shown=len(self.examples), entry=self.entry)

    def judge(self, action: Any, ran: Sequence[Ran] = ()) -> Stepped:
        """Take the program, and the result."""
        program = _read_program(action)
        (one,) = ran
        verdict = self._judged(one)
        self._verdicts.put(program, verdict)
        self._program, self._passed_examples = program, verdict.passed_examples
        why = "" if verdict.builds else "the program has a fault of syntax, or imports what is not there."
        reward = rewards.code_team(len(verdict.passed), len(self.tests))
        return self._stepped(Judged(1, int(verdict.builds), why), reward)

    def _judged(self, ran: Ran) -> ProgramVerdict:
        (runs,) = read_runs(ran.stdout, 1, len(self.examples) + len(self.tests))
        split = len(self.examples)
        # A task without examples is run on its hidden tests alone.
        smoke = runs[:split] or runs
        return ProgramVerdict(
            tuple(runs[:split]),
            sum(done.digest == digest_of(test) for done, test in zip(runs, self.examples, strict=False)),
            frozenset(
                number
                for number, (done, test) in enumerate(zip(runs[split:], self.tests, strict=True))
                if done.digest == digest_of(test)
            ),
            all(done.status not in ("syntax", "import") for done in runs),
            all(done.status == "ok" for done in smoke),
        )

    # -- rewards ---------------------------------------------------------------------------------------------------

    def reward_scripts(self, turn: Turn) -> tuple[str, ...]:
        """For the program, for the one before it, and for the tests of a tester: on the reference and its mutants."""
        found = [self._script(program) for program in self._to_run(turn)]
        if self._measurable(turn):
            inputs = inputs_of([*self.tests, *_own_tests(turn)])
            found.append(write_script([self.golden, *mutants(self.golden)], inputs, entry=self.entry))
        return tuple(found)

    def turn_reward(self, turn: Turn, ran: Sequence[Ran] = ()) -> rewards.TurnReward:
        """A.1.2: the coder by its program; the tester by its tests, those that the reference passes, on mutants."""
        left = list(ran)
        for program in self._to_run(turn):
            self._verdicts.put(program, self._judged(left.pop(0)))
        # A twin, so that rewards leave the state as it is; with the same verdicts, so that nothing is run twice.
        twin = CodeTests(self._instance(), verdicts=self._verdicts)
        twin.restore(turn.before)
        last = twin.verdict
        now = self._verdicts.get(_program_or_none(turn.action))
        scores: dict[str, dict[str, float]] = {"coder": {"builds": 0.0, "runs": 0.0, "keeps": 0.0}}
        if now is not None:
            kept = rewards.keeps_passing(last.passed if last else (), now.passed)
            scores["coder"] = {"builds": float(now.builds), "runs": float(now.runs), "keeps": kept}
        unverifiable = set()
        if turn.tests is not None:
            if self._measurable(turn):
                scores["tester"] = self._tester(turn, left.pop(0))
            else:
                scores["tester"] = {"valid": 0.0, "coverage": 0.0}
                unverifiable.add("tester")
        team = rewards.code_team(len(now.passed), len(self.tests)) if now is not None else 0.0
        return rewards.TurnReward(self.domain, team, scores, frozenset(unverifiable))

    def _instance(self) -> dict[str, Any]:
        style = "function" if self.entry else "program"
        parts = {"examples": self.examples, "tests": self.tests, "golden": self.golden}
        return {"style": style, "entry_point": self.entry, **parts}

    def _to_run(self, turn: Turn) -> list[str]:
        """Programs of a turn that were not judged yet, the one before it first."""
        before = turn.before.get("program") if isinstance(turn.before, Mapping) else None
        both = [program for program in (before, _program_or_none(turn.action)) if program is not None]
        # In order and once each: `turn_reward` takes the results one after another.
        return [program for program in dict.fromkeys(both) if self._verdicts.get(program) is None]

    def _measurable(self, turn: Turn) -> bool:
        """Whether there is a reference, and tests of a tester that can be run on it."""
        return bool(self.golden and not self.entry and _own_tests(turn))

    def _tester(self, turn: Turn, ran: Ran) -> dict[str, float]:
        own = _own_tests(turn)
        inputs = len(self.tests) + len(own)
        golden, *others = read_runs(ran.stdout, 1 + len(mutants(self.golden)), inputs)
        split = len(self.tests)
        # A test that the reference fails is wrong, and would count every mutant as found.
        usable = [i for i, test in enumerate(own) if golden[split + i].digest == digest_of(test)]
        # A mutant that gives what the reference gives on all inputs has no fault that a test could find.
        killable = [
            runs
            for runs in others
            if any(runs[i].digest != golden[i].digest for i in [*range(split), *(split + i for i in usable)])
        ]
        killed = [runs for runs in killable if any(runs[split + i].digest != golden[split + i].digest for i in usable)]
        score = len(killed) / len(killable) if killable else None
        valid = all(done.status == "ok" for done in golden[split:])
        return {"valid": float(valid), "coverage": rewards.coverage(score)}


def oracle(instance: Mapping[str, Any]) -> dict[str, Any]:
    """The reference program."""
    return {"program": instance["golden"]}


def _own_tests(turn: Turn) -> list[Mapping[str, str]]:
    """Tests of a tester, as far as they are texts."""
    return [
        test
        for test in (turn.tests or ())
        if isinstance(test.get("input"), str) and isinstance(test.get("output"), str)
    ][:_MOST_TESTS]


def _mismatch(number: int, example: Mapping[str, Any], done: ProgramRun) -> str:
    given = example.get("input", example.get("args"))
    expected = example.get("output", example.get("value"))
    got = done.text or {"cut": "the program was stopped", "ok": "(nothing)"}.get(done.status, done.status)
    return f"Example {number}, given:\n{given}\nexpected:\n{expected}\ngot:\n{got}"


def _program_or_none(action: Any) -> str | None:
    try:
        return _read_program(action)
    except UnreadableAction:
        return None


def _read_program(action: Any) -> str:
    """A program from an action: a text, maybe fenced as a whole, or an object with `code`."""
    if isinstance(action, Mapping) and set(action) == {"code"}:
        action = action["code"]
    if not isinstance(action, str):
        raise UnreadableAction(f"the action is {str(action)[:60]!r}; {_EXPECTED}")
    text = action.strip("\n")
    lines = text.strip().splitlines()
    if len(lines) >= 2 and lines[0].strip() in ("```", "```python", "```py") and lines[-1].strip() == "```":
        text = "\n".join(lines[1:-1])
    if not text.strip() or len(text) > _MOST_CHARS:
        raise UnreadableAction(f"the program has {len(text)} characters, at most {_MOST_CHARS} are taken; {_EXPECTED}")
    return text + "\n"
