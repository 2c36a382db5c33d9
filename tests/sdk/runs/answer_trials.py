"""Trials of typed answers: a model that errs in one of ten ways, and is then told what is wrong.

A trial is one run. Its first answer has one fault; `corrector.py` plays the model that corrects it. Schemas are those
of real tools, of real configuration files and of the official test suite, from the shared data. Used by the tests, and
by `benchmarks/answers.py` with every fault of every schema.

Invariant: the verdict is independent of the package under test. `jsonschema` says whether an output is valid; and it is
right only if it also keeps everything that the fault left whole.
"""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

import concertino as ct
import jsonschema
from concertino.schema import SchemaRefused, Validator, compile_schema
from concertino.strategies import Strategy
from concertino.strategies.agent_graph import AgentGraph
from concertino.strategies.dependency_plan import DependencyPlan
from concertino.strategies.role_workflow import Agree, Role, RoleWorkflow
from concertino.strategies.serial_calls import SerialCalls
from concertino.testing import ScriptedModel

from .corrector import corrected

SHARES = {"mcp": 60, "toucan": 90, "schemastore": 24, "acebench": 46, "bfcl": 40, "suite": 40}
"""How many schemas of each source: 300 in all."""
STRATEGIES: dict[str, Callable[[], Strategy]] = {
    "parallel-rounds": ct.ParallelRounds,
    "serial-calls": SerialCalls,
    "dependency-plan": DependencyPlan,
    "agent-graph": lambda: AgentGraph(dom="low"),
    "role-workflow": lambda: RoleWorkflow((Role("solver", "{question}"),), Agree("solver.value", "solver.value")),
}
Path = tuple[str | int, ...]


# -- schemas -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Subject:
    """A schema, and a value that satisfies it."""

    source: str
    schema: dict[str, Any]
    value: Any
    validator: Validator

    @property
    def held(self) -> bool:
        """Whether a server can hold the schema: its root is an object."""
        return self.schema.get("type") == "object"


def subjects(data: FilePath, seed: int = 16) -> list[Subject]:
    """Three hundred different schemas, drawn from several sources."""
    chance = random.Random(seed)
    found = []
    for source, share in SHARES.items():
        drawn = {json.dumps(schema, sort_keys=True): (schema, values) for schema, values in _of(source, data)}
        order = sorted(drawn)
        chance.shuffle(order)
        admitted = (made for text in order if (made := _subject(source, *drawn[text])) is not None)
        found += [subject for subject, _ in zip(admitted, range(share), strict=False)]
    return found


def _subject(source: str, schema: dict[str, Any], values: list[Any]) -> Subject | None:
    """The subject of a schema; None if it is refused, or takes whatever a fault makes of its values."""
    try:
        validator = compile_schema(schema)
    except SchemaRefused:
        return None
    judge = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)(schema)
    for value in [*sorted(values, key=lambda each: len(json.dumps(each))), _full(schema), validator.example()]:
        # Both agree on the value, so that the verdict of one is no surprise to the other.
        if validator.is_valid(value) and judge.is_valid(value) and isinstance(value, (dict, list, str, int, float)):
            subject = Subject(source, schema, value, validator)
            wrong = (FAULTS[kind](random.Random(0), subject) for kind in FAULTS if kind not in ("truncated", "prose"))
            return subject if any(fault is not None for fault in wrong) else None
    return None


def _full(schema: dict[str, Any]) -> Any:
    """A value with every property that the schema names, so that there is something to spoil."""
    root: dict[str, Any] = {word: schema[word] for word in ("$defs", "definitions", "$schema") if word in schema}
    made = {}
    for name, member in schema.get("properties", {}).items():
        if isinstance(member, dict):
            try:
                made[name] = compile_schema({**member, **root}).example()
            except SchemaRefused:
                continue
    return made


def _of(source: str, data: FilePath) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """The schemas of a source, each with values that are known to satisfy it."""
    found: Iterator[tuple[Any, list[Any]]]
    if source == "mcp":
        found = ((row["inputSchema"], []) for row in _rows(data, "mcp_tools/tools.jsonl"))
    elif source == "toucan":
        found = ((row.get("input_schema"), []) for row in _rows(data, "toucan_mcp_tools/tools.jsonl"))
    elif source == "schemastore":
        rows = _rows(data, "schemastore/*.jsonl")
        found = ((row["schema"], [each["data"] for each in row["instances"] if each["valid"]]) for row in rows)
    elif source == "acebench":
        tools = (tool for row in _rows(data, "acebench/*.jsonl") for tool in row["function"])
        found = ((tool.get("arguments") or tool.get("parameters"), []) for tool in tools)
    elif source == "bfcl":
        tools = (tool for row in _rows(data, "bfcl/*.jsonl") for tool in row.get("function", ()))
        found = ((_in_json(tool["parameters"]), []) for tool in tools)
    else:
        files = sorted((data / "json_schema_test_suite/tests/draft2020-12").glob("*.json"))
        groups = (group for file in files for group in json.loads(file.read_text()))
        found = ((group["schema"], [t["data"] for t in group["tests"] if t["valid"]]) for group in groups)
    return ((schema, values) for schema, values in found if isinstance(schema, dict))


def _rows(data: FilePath, pattern: str) -> Iterator[Any]:
    for file in sorted(data.glob(pattern)):
        for line in file.read_text().splitlines():
            yield json.loads(line)


_PYTHONS = {"dict": "object", "float": "number", "tuple": "array", "list": "array", "int": "integer", "str": "string"}


def _in_json(schema: Any) -> Any:
    """A schema with JSON's names of the types, where it has Python's."""
    if isinstance(schema, list):
        return [_in_json(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    mapped = {word: _in_json(value) for word, value in schema.items()}
    if mapped.get("type") == "any":
        del mapped["type"]
    elif isinstance(mapped.get("type"), str):
        mapped["type"] = _PYTHONS.get(mapped["type"], mapped["type"])
    return mapped


# -- faults ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """An answer that errs.

    Attributes:
        text: the answer.
        whole: places of the right value that the fault left whole; the corrected answer keeps them.
    """

    text: str
    whole: tuple[Path, ...]


def leaves(value: Any, path: Path = ()) -> Iterator[Path]:
    """The path of every value that holds no other."""
    if isinstance(value, (dict, list)) and value:
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(member, (*path, key))
    else:
        yield path


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """The path of every value."""
    yield path
    if isinstance(value, (dict, list)):
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(member, (*path, key))


def at(value: Any, path: Path) -> Any:
    """The value at a path."""
    for key in path:
        value = value[key]
    return value


Spoil = Callable[[random.Random, Any], list[Any]]


def _spoilt(chance: random.Random, subject: Subject, replacements: Spoil, words: set[str]) -> Fault | None:
    """The answer with one value replaced, so that it breaks one of these keywords at that place."""
    everywhere = list(places(subject.value))
    chance.shuffle(everywhere)
    for path in everywhere:
        options = replacements(chance, at(subject.value, path))
        chance.shuffle(options)
        for option in options:
            changed = [copy.deepcopy(subject.value)]
            at(changed, (0, *path[:-1]) if path else ())[path[-1] if path else 0] = option
            violations = subject.validator.check(changed[0])
            if any(each.keyword in words for each in violations):
                return Fault(_json(changed[0]), _others(subject.value, path))
    return None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _others(value: Any, path: Path) -> tuple[Path, ...]:
    return tuple(leaf for leaf in leaves(value) if leaf[: len(path)] != path)


def wrong_type(chance: random.Random, subject: Subject) -> Fault | None:
    """A value of another type."""

    def other(chance: random.Random, value: Any) -> list[Any]:
        return ["many", 7.25, True, [], {"value": "many"}]

    return _spoilt(chance, subject, other, {"type"})


def null(chance: random.Random, subject: Subject) -> Fault | None:
    """Null, where something is expected."""
    return _spoilt(chance, subject, lambda chance, value: [None], {"type", "enum", "const", "anyOf", "oneOf", "not"})


def bad_enum(chance: random.Random, subject: Subject) -> Fault | None:
    """A text or number that is none of those listed."""

    def near(chance: random.Random, value: Any) -> list[Any]:
        if isinstance(value, str):
            return [value.upper() + "!", "no such", value[:-1] + "q"]
        return [value + 1000] if isinstance(value, int) and not isinstance(value, bool) else []

    return _spoilt(chance, subject, near, {"enum", "const"})


def out_of_range(chance: random.Random, subject: Subject) -> Fault | None:
    """A number, a text or a list beyond its limits."""

    def beyond(chance: random.Random, value: Any) -> list[Any]:
        if isinstance(value, bool):
            return []
        if isinstance(value, (int, float)):
            return [-(10**9), 10**9, -0.5, 0]
        if isinstance(value, str):
            return ["", value * 400, value[:1]]
        return [[], [*value] * 40] if isinstance(value, list) else [{}]

    words = {f"{side}{what}" for side in ("min", "max") for what in ("imum", "Length", "Items", "Properties")}
    return _spoilt(chance, subject, beyond, words | {"exclusiveMinimum", "exclusiveMaximum", "multipleOf"})


def wrong_format(chance: random.Random, subject: Subject) -> Fault | None:
    """A text of another form."""
    return _spoilt(
        chance,
        subject,
        lambda chance, value: ["not so", "12/24/2026", "a b@c"] if isinstance(value, str) else [],
        {"format", "pattern"},
    )


def missing(chance: random.Random, subject: Subject) -> Fault | None:
    """An object without a property that it must have."""
    for path in _shuffled(chance, subject.value):
        if path and isinstance(path[-1], str):
            changed = copy.deepcopy(subject.value)
            del at(changed, path[:-1])[path[-1]]
            if any(v.keyword in ("required", "dependentRequired") for v in subject.validator.check(changed)):
                return Fault(_json(changed), _others(subject.value, path))
    return None


def extra(chance: random.Random, subject: Subject) -> Fault | None:
    """An object with a property that it may not have."""
    words = ("additionalProperties", "unevaluatedProperties", "propertyNames", "maxProperties")
    for path in _shuffled(chance, subject.value):
        if isinstance(at(subject.value, path), dict):
            changed = copy.deepcopy(subject.value)
            at(changed, path)[chance.choice(["reasoning", "confidence", "a note"])] = chance.choice(["high", 1, {}])
            if any(v.keyword in words for v in subject.validator.check(changed)):
                return Fault(_json(changed), tuple(leaf for leaf in leaves(subject.value) if leaf != path))
    return None


def nesting(chance: random.Random, subject: Subject) -> Fault | None:
    """The right content one level too deep: in an object, a list or a text."""
    for path in [(), *_shuffled(chance, subject.value)]:
        value = at(subject.value, path)
        options = [{"answer": value}, [value], {"result": value}, _json(value)]
        chance.shuffle(options)
        for option in options:
            changed = [copy.deepcopy(subject.value)]
            at(changed, (0, *path[:-1]) if path else ())[path[-1] if path else 0] = option
            if not subject.validator.is_valid(changed[0]):
                return Fault(_json(changed[0]), tuple(leaves(subject.value)))
    return None


def truncated(chance: random.Random, subject: Subject) -> Fault | None:
    """A text that breaks off inside an object or a list."""
    text = _json(subject.value)
    if not isinstance(subject.value, (dict, list)) or len(text) < 6:
        return None
    cut = chance.randrange(2, len(text))
    whole = []
    members = subject.value.items() if isinstance(subject.value, dict) else enumerate(subject.value)
    for number, (key, member) in enumerate(members, start=1):
        first = list(subject.value.items())[:number] if isinstance(subject.value, dict) else subject.value[:number]
        # Without the closing bracket; a number may go on, so the comma behind it counts too.
        if len(_json(dict(first) if isinstance(subject.value, dict) else first)) <= cut:
            whole += [(key, *leaf) for leaf in leaves(member)]
    return Fault(text[:cut], tuple(whole))


def prose(chance: random.Random, subject: Subject) -> Fault | None:
    """Sentences around the JSON, some with brackets of their own."""
    text = _json(subject.value)
    around = [
        ("Sure! Here is the answer you asked for:\n\n", "\n\nLet me know if I may help with anything else."),
        ("The result {as asked} is ", "."),
        ("I looked at [1] and at [2], therefore: ", " (see {2})"),
        ('First I thought {"draft": true}. But no:\n```json\n', "\n```\nThat is final."),
    ]
    before, after = chance.choice(around)
    return Fault(f"{before}{text}{after}", tuple(leaves(subject.value)))


def _shuffled(chance: random.Random, value: Any) -> list[Path]:
    found = list(places(value))
    chance.shuffle(found)
    return found


FAULTS: dict[str, Callable[[random.Random, Subject], Fault | None]] = {
    "wrong type": wrong_type,
    "missing property": missing,
    "extra property": extra,
    "bad enum": bad_enum,
    "out of range": out_of_range,
    "wrong format": wrong_format,
    "truncated": truncated,
    "prose": prose,
    "wrong nesting": nesting,
    "null": null,
}


# -- trials ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """One run: what erred, and what came of it.

    Attributes:
        tries: answers that the model wrote, 0 if none was right.
        held: how many of the requests for another answer carried the schema for the server.
        why: what is wrong with the outcome; empty if it is right.
        unvalidated: an output was given that breaks the schema.
        told: what the model was told after its first answer.
    """

    subject: Subject
    kind: str
    strategy: str
    fault: Fault
    tries: int
    held: int
    why: str
    unvalidated: bool
    told: str


def one_each(found: list[Subject], seed: int = 16) -> Iterator[tuple[Subject, str, Fault]]:
    """A fault for every subject, all ten kinds about equally often."""
    chance, used = random.Random(seed), Counter[str]()
    for subject in found:
        for kind in sorted(FAULTS, key=lambda name: (used[name], name)):
            if (fault := FAULTS[kind](chance, subject)) is not None:
                used[kind] += 1
                yield subject, kind, fault
                break


def every(found: list[Subject], seed: int = 16) -> Iterator[tuple[Subject, str, Fault]]:
    """Every fault that a subject can have."""
    chance = random.Random(seed)
    for subject in found:
        for kind, make in FAULTS.items():
            if (fault := make(chance, subject)) is not None:
                yield subject, kind, fault


@ct.tool
def look(what: str) -> str:
    """Look something up."""
    return what


POOL = ct.Pool.of(look)


async def trial(subject: Subject, kind: str, fault: Fault, strategy: str, *, deaf: bool = False) -> Trial:
    """One run with one fault; if `deaf`, of a model that does not read what is wrong."""
    chosen = STRATEGIES[strategy]()
    first = list(chosen.write_answer(fault.text))

    def says(request: ct.ChatRequest) -> str:
        return first.pop(0) if first else corrected(request, deaf=deaf)

    model = ScriptedModel(says, strict=False)
    run = await ct.Orchestrator(model, chosen, answer_type=subject.schema).run("What is it?", pool=POOL)
    again = [request for request in model.requests if "What is wrong with it" in request.messages[-1].text]
    why, unvalidated = _judged(subject, fault, run)
    told = again[0].messages[-1].text.partition("What is wrong with it:")[2] if again else ""
    held = sum(request.schema is not None for request in again)
    return Trial(subject, kind, strategy, fault, 0 if why else 1 + len(again), held, why, unvalidated, told)


async def stubborn(subject: Subject, strategy: str, seed: int) -> str:
    """What is wrong with the outcome of a run whose model errs again and again; empty for nothing."""
    chance = random.Random(seed)
    wrong = [fault.text for make in FAULTS.values() if (fault := make(chance, subject)) is not None]
    chosen = STRATEGIES[strategy]()
    first = list(chosen.write_answer(chance.choice(wrong)))
    model = ScriptedModel(lambda request: first.pop(0) if first else chance.choice(wrong), strict=False)
    run = await ct.Orchestrator(model, chosen, answer_type=subject.schema).run("What is it?", pool=POOL)
    if run.answer is None:
        return "" if (run.output, run.stop) == (None, "format") else f"no answer, but {run.output!r}, {run.stop}"
    return _invalid(subject, run.output)


def _invalid(subject: Subject, value: Any) -> str:
    cls = jsonschema.validators.validator_for(subject.schema, jsonschema.Draft202012Validator)
    wrong = jsonschema.exceptions.best_match(cls(subject.schema).iter_errors(value))
    return f"invalid: {wrong.message[:200]}" if wrong is not None else ""


def _judged(subject: Subject, fault: Fault, run: ct.Run) -> tuple[str, bool]:
    """What is wrong with the outcome, and whether a value was given out that breaks the schema."""
    if run.answer is None:
        return f"no answer: {run.detail}", run.output is not None
    if wrong := _invalid(subject, run.output):
        return wrong, True
    for path in fault.whole:
        try:
            if at(run.output, path) == at(subject.value, path):
                continue
        except (LookupError, TypeError):
            pass
        return f"lost {path}", False
    return "", False
