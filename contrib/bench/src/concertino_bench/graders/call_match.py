"""Calls of functions against accepted calls, by the rules of the Berkeley Function-Calling Leaderboard.

Each accepted call gives, per argument, the values that will do; `""` among them says that it may be left out. The
calls have to match one to one, in any order, and in number. Values: texts are compared without blanks, case and the
marks `,./-_*^`; a whole number will do for a float, not the other way round; true is not a number; lists keep their
order; the names of an object have accepted values each. A function's dots may have become underscores.

The invariant: gold is never validated against its own schema, since some of it is invalid there; the schema only says
which numbers are floats.

A call counts as made if it was carried out: one that was not understood, failed or ran out of time is not part of the
answer, and a run that has no other is *unparsable*, since it may be the tool's fault. A run without any call is wrong.

A task's metadata: `ground_truth`, `functions`, `category`. Irrelevance is right with an answer and without any call,
relevance with at least one. Silence, and a run whose leader did not answer, are not a refusal; an error message that
was handed in as an answer is one, for nothing tells it from other texts. In multi-turn categories the calls of all
turns count together; what they did to a state is for `final-state`. `call-match-official` repeats the published
verdicts instead; this one is kinder to how calls are written, and stricter with what they say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from concertino import STOP_REASONS

from concertino_bench.tasks.grade import Grade, Grader, GraderServices, Submission, Verdict
from concertino_bench.tasks.task import Task

from .base import shown, written
from .call_reading import Decoded, MadeCall, read_calls, read_python_call
from .matching import match

_FLOATS = frozenset({"float", "double", "number", "decimal"})
_STRINGS = re.compile(r"[ \t\n,./\-_*^]")
# Stop reasons of runs that broke off: that nothing was called is then no decision.
_BROKEN = frozenset({"format", "model", "cancelled", "crashed", "unfinished"})
_JAVA_NUMBER = re.compile(r"-?\d{1,30}(?:\.\d{0,30})?[lLfFdD]?")


class CallMatch(Grader):
    """Right if the calls match the accepted ones, one to one."""

    name = "call-match"
    kinds = ("calls",)

    def check(self, task: Task) -> None:
        """Make sure that the task has gold, or a category without it, and functions that have names."""
        known = functions_of(task)
        # "irrelevance" holds "relevance": neither category has accepted calls.
        if "relevance" not in str(task.metadata.get("category") or ""):
            _gold(task, known)

    async def grade(self, task: Task, submission: Submission, services: GraderServices) -> Grade:
        """Grade the calls that were made; those written in the text if none was made."""
        known = functions_of(task)
        category = str(task.metadata.get("category") or "")
        seen = _made(submission, known) if submission.calls else read_calls(submission.text, known.parameters)
        # Asked first, since "relevance" is a part of "irrelevance".
        if "irrelevance" in category:
            return _no_call(seen, submission)
        if "relevance" in category:
            return _some_call(seen, submission)
        gold = _gold(task, known)
        expected = tuple(_written(name, accepted) for name, accepted in gold)
        found = tuple(_written(call.name, call.arguments) for call in seen.calls)
        fault = f"; {shown(seen.faults[0], 200)}" if seen.faults else ""
        if not seen.calls:
            if not gold:
                return Grade(Verdict.RIGHT, "nothing is called, and nothing is to be")
            silent = not submission.calls and not submission.text.strip()
            verdict = Verdict.UNPARSABLE if seen.faults or silent else Verdict.WRONG
            return Grade(verdict, f"there is no call, expected {len(gold)}{fault}", expected)
        if len(seen.calls) != len(gold):
            reason = f"{len(seen.calls)} calls, expected {len(gold)}{fault}"
            return Grade(Verdict.WRONG, reason, expected, found)
        troubles = [[trouble(call, name, accepted, known) for call in seen.calls] for name, accepted in gold]
        # Greedy pairing could spend a call that fits two accepted ones on the wrong one.
        pairs = match([[not why for why in row] for row in troubles])
        marks = tuple(pair is not None for pair in pairs)
        if all(marks):
            return Grade(Verdict.RIGHT, "every call is right", expected, found, marks)
        return Grade(Verdict.WRONG, _nearest(troubles, pairs, gold), expected, found, marks)


class Functions:
    """The functions of a task: which names mean them, and which of their parameters are floats.

    Args:
        functions: as BFCL writes them: `name`, `parameters` with `properties`.
        java: values may be source code of Java or JavaScript, such as `5L`.
    """

    def __init__(self, functions: Iterable[Mapping[str, Any]] = (), *, java: bool = False) -> None:
        self.java = java
        self.schemas: dict[str, Mapping[str, Any]] = {
            str(each["name"]): (each.get("parameters") or {}).get("properties") or {} for each in functions
        }
        self._alias: dict[str, str | None] = {}
        for name in self.schemas:
            # Model APIs allow no dots in a function's name, and tools no underscore at its beginning.
            short = _underscored(name)
            # Two functions that become one name: it means neither of them.
            self._alias[short] = None if short in self._alias else name

    @property
    def parameters(self) -> dict[str, list[str]]:
        """The parameters of every name that a function goes by, in order."""
        names = {short: name for short, name in self._alias.items() if name is not None}
        return {short: [*self.schemas[name]] for short, name in {**names, **{n: n for n in self.schemas}}.items()}

    def resolve(self, name: str) -> str | None:
        """The function that a name means: with its dots or with underscores, and with or without a provider before it.

        None for a name that means no function, or two.
        """
        # In a pool a member is called `provider/name`.
        for spelled in (name, name.rpartition("/")[2]):
            if spelled in self.schemas:
                return spelled
            if found := self._alias.get(_underscored(spelled)):
                return found
        return None


def trouble(call: MadeCall, name: str, accepted: Mapping[str, Any], known: Functions) -> str:
    """Why a call is not an accepted one; empty if it is."""
    if (known.resolve(call.name) or call.name) != name:
        return f"{call.name} is called, expected {name}"
    schema = known.schemas.get(name, {})
    for argument, values in accepted.items():
        if argument not in call.arguments and not _optional(_listed(values)):
            return f"{name}: {argument} is missing"
    for argument, value in call.arguments.items():
        if argument not in accepted:
            return f"{name}: {argument} is not expected"
        kind = schema.get(argument)
        values = _listed(accepted[argument])
        if not (any(_fits(value, one, kind, known.java) for one in values) or (not values and not value)):
            said = shown(written(accepted[argument], _json_text), 80)
            return f"{name}: {argument} is {shown(written(value), 80)}, expected one of {said}"
    return ""


def _fits(value: Any, gold: Any, schema: Any, java: bool) -> bool:
    """Whether a value is an accepted one."""
    schema = schema if isinstance(schema, Mapping) else {}
    kind = str(schema.get("type") or "").lower()
    # BFCL's Java and JavaScript tasks let a model write literals of that language.
    if java and isinstance(value, str) and not isinstance(gold, str):
        value = _from_source(value)
    if isinstance(gold, str):
        return isinstance(value, str) and _plain(value) == _plain(gold)
    # Before the numbers: true equals 1 in Python.
    if gold is None or isinstance(gold, bool):
        return value is gold
    if isinstance(gold, (int, float)):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        # JSON writes 5 for 5.0, so an int passes for a float; BFCL does not take the reverse. Where the schema says
        # integer and the gold is 0.85, the gold counts.
        whole = kind not in _FLOATS and isinstance(gold, int)
        return value == gold and not (whole and isinstance(value, float))
    if isinstance(gold, (list, tuple)):
        if not isinstance(value, (list, tuple)) or len(value) != len(gold):
            return False
        items = schema.get("items")
        return all(_fits(one, other, items, java) for one, other in zip(value, gold, strict=True))
    if isinstance(gold, Mapping):
        return isinstance(value, Mapping) and _fits_object(value, gold, schema, java)
    return False


def _fits_object(value: Mapping[str, Any], gold: Mapping[str, Any], schema: Mapping[str, Any], java: bool) -> bool:
    inner = schema.get("properties") if isinstance(schema.get("properties"), Mapping) else {}
    if any(name not in gold for name in value):
        return False
    for name, accepted in gold.items():
        values = _listed(accepted)
        if name not in value:
            if not _optional(values):
                return False
        elif not any(_fits(value[name], one, (inner or {}).get(name), java) for one in values):
            return False
    return True


def _listed(values: Any) -> Sequence[Any]:
    return values if isinstance(values, (list, tuple)) else (values,)


def _optional(values: Sequence[Any]) -> bool:
    """Whether an argument may be left out."""
    # Two published rows have no accepted value at all, which means the same as `""` among them.
    return "" in values or not values


def _plain(text: str) -> str:
    # The normalisation of BFCL's own checker, so that scores can be compared with published ones.
    return _STRINGS.sub("", text).lower().replace("'", '"')


def _from_source(value: str) -> Any:
    """A literal of Java or JavaScript as JSON data; anything else stays a text."""
    text = value.strip()
    if text in ("true", "false", "null"):
        return {"true": True, "false": False, "null": None}[text]
    if _JAVA_NUMBER.fullmatch(text):
        digits = text.rstrip("lLfFdD")
        return float(digits) if "." in digits or text[-1] in "fFdD" else int(digits)
    if text.startswith(("[", "{")) and len(text) < 10_000:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return value
    return value


def _underscored(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", name).lstrip("_") or name


# -- what was called ---------------------------------------------------------------------------------------------------


def _made(submission: Submission, known: Functions) -> Decoded:
    """The calls of a run: those of the task's functions that were carried out, and the others as faults.

    Other members of the pool are how a system works, and no part of its answer.
    """
    seen = Decoded()
    for call in submission.calls:
        name, arguments = str(call.get("name", "")), call.get("arguments")
        status = str(call.get("status", "OK"))
        if status == "PARSE_ERR":
            seen.faults.append(f"the call of {name} was not understood, and not run")
        # After PARSE_ERR: a call that was not understood may not even have a name.
        elif known.resolve(name) is None:
            continue
        elif status == "OK":
            seen.calls.append(MadeCall(name, arguments if isinstance(arguments, Mapping) else {}))
        else:
            seen.faults.append(f"the call of {name} was not carried out: {status}")
    return seen


def _no_call(seen: Decoded, submission: Submission) -> Grade:
    # A call that failed was still a decision to call; faults read from text may be no calls at all.
    if seen.calls or (submission.calls and seen.faults):
        found = tuple(_written(call.name, call.arguments) for call in seen.calls)
        return Grade(Verdict.WRONG, "something is called, and no function fits the question", (), found)
    if submission.stop in _BROKEN:
        return Grade(Verdict.UNPARSABLE, f"nothing is called, but the run broke off: {STOP_REASONS[submission.stop]}")
    if not submission.text.strip():
        return Grade(Verdict.UNPARSABLE, "nothing is called and nothing said: silence is not a refusal")
    return Grade(Verdict.RIGHT, "nothing is called, and no function fits the question")


def _some_call(seen: Decoded, submission: Submission) -> Grade:
    found = tuple(_written(call.name, call.arguments) for call in seen.calls)
    if found:
        return Grade(Verdict.RIGHT, "a function that fits the question is called", (), found)
    if submission.calls and seen.faults:
        return Grade(Verdict.UNPARSABLE, f"no call was carried out; {shown(seen.faults[0], 200)}")
    fault = f"; {shown(seen.faults[0], 200)}" if seen.faults else ""
    return Grade(Verdict.WRONG, f"nothing is called, and a function fits the question{fault}")


def functions_of(task: Task) -> Functions:
    """The functions of a task, from its metadata.

    Raises:
        ValueError: they are not objects with names.
    """
    functions = task.metadata.get("functions") or ()
    if not all(isinstance(each, Mapping) and "name" in each for each in functions):
        raise ValueError(f"{task.id}: metadata['functions'] is {shown(str(functions))}; expected objects with a name")
    category = str(task.metadata.get("category") or "")
    # "javascript" is meant as well.
    return Functions(functions, java="java" in category)


def _gold(task: Task, known: Functions) -> list[tuple[str, Mapping[str, Any]]]:
    """The accepted calls: name, and the accepted values of each argument."""
    gold = task.metadata.get("ground_truth")
    if not isinstance(gold, (list, tuple)):
        raise ValueError(
            f"{task.id}: metadata['ground_truth'] is {shown(repr(gold))}; expected a list of accepted calls, or a "
            "category with 'relevance' in its name"
        )
    calls: list[tuple[str, Mapping[str, Any]]] = []
    for item in gold:
        if isinstance(item, list):  # the calls of one turn, as Python text
            read = [read_python_call(str(text), known.parameters) for text in item]
            calls.extend((call.name, {name: [value] for name, value in call.arguments.items()}) for call in read)
        elif isinstance(item, Mapping) and len(item) == 1 and isinstance(next(iter(item.values())), Mapping):
            ((name, accepted),) = item.items()
            calls.append((known.resolve(name) or name, accepted))
        else:
            raise ValueError(f"{task.id}: {shown(repr(item))} in ground_truth; expected {{name: {{argument: values}}}}")
    return calls


def _nearest(troubles: list[list[str]], pairs: list[int | None], gold: list[tuple[str, Mapping[str, Any]]]) -> str:
    """The trouble of the first accepted call without a partner, with the free call that comes nearest."""
    row = pairs.index(None)
    free = [troubles[row][column] for column in range(len(troubles[row])) if column not in pairs]
    near = next((why for why in free if "is called, expected" not in why), free[0] if free else "")
    count = f"{sum(pair is not None for pair in pairs)} of {len(gold)} calls are right; " if len(gold) > 1 else ""
    return f"{count}{near or 'the call is made by another one already'}"


def _written(name: str, arguments: Mapping[str, Any]) -> str:
    return f"{name}({shown(written(dict(arguments), _json_text), 200)})"


def _json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
