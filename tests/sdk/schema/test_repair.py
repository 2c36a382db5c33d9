"""A scripted repairer fixes single-fault calls from the message text alone (bar J5).

The repairer knows nothing of the schema or of this package: it reads lines such as
`/count: expected integer, got "many"` and the example, as a model would, and edits the arguments.
"""

import copy
import json
import random
import re
from typing import Any

from concertino.schema import Validator, compile_schema, explain

TOOLS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        {
            "type": "object",
            "properties": {
                "city": {"type": "string", "minLength": 2, "maxLength": 40},
                "days": {"type": "integer", "minimum": 1, "maximum": 14},
                "units": {"type": "string", "enum": ["celsius", "fahrenheit", "kelvin"]},
                "date": {"type": "string", "format": "date"},
            },
            "required": ["city", "days", "date"],
            "additionalProperties": False,
        },
        {"city": "Oslo", "days": 3, "units": "celsius", "date": "2024-05-06"},
    ),
    (
        {
            "type": "object",
            "properties": {
                "queries": {
                    "type": "array",
                    "items": {"type": "string", "minLength": 1},
                    "minItems": 1,
                    "maxItems": 4,
                    "uniqueItems": True,
                },
                "top_k": {"type": "integer", "exclusiveMinimum": 0, "maximum": 50},
                "rerank": {"type": "boolean"},
                "threshold": {"type": "number", "minimum": 0, "maximum": 1},
            },
            "required": ["queries", "top_k", "rerank", "threshold"],
            "additionalProperties": False,
        },
        {"queries": ["a", "b"], "top_k": 5, "rerank": True, "threshold": 0.5},
    ),
    (
        {
            "type": "object",
            "properties": {
                "order": {
                    "type": "object",
                    "properties": {
                        "sku": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"},
                        "count": {"type": "integer", "multipleOf": 6},
                        "note": {"anyOf": [{"type": "string", "maxLength": 20}, {"type": "null"}]},
                    },
                    "required": ["sku", "count", "note"],
                    "additionalProperties": False,
                },
                "email": {"type": "string", "format": "email"},
                "priority": {"const": "normal"},
            },
            "required": ["order", "email", "priority"],
            "additionalProperties": False,
        },
        {"order": {"sku": "AB-1234", "count": 12, "note": None}, "email": "a@b.de", "priority": "normal"},
    ),
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every member of a value."""
    members = value.items() if type(value) is dict else enumerate(value) if type(value) is list else ()
    found = [(*path, key) for key, _ in members]
    return found + [deeper for key, member in members for deeper in places(member, (*path, key))]


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def spoil(rng: random.Random, call: dict[str, Any]) -> dict[str, Any]:
    """One random fault, of the kinds that models make."""
    spoilt = copy.deepcopy(call)
    path = rng.choice(places(spoilt))
    parent, key = at(spoilt, path[:-1]), path[-1]
    kind = rng.randrange(6)
    if kind == 0 and type(key) is str:
        del parent[key]
    elif kind == 1 and type(key) is str:
        parent[key[:1] + key[2:] + "s"] = parent.pop(key)
    elif kind == 2 and type(parent) is dict:
        parent["reasoning"] = "because"
    elif kind == 3:
        parent[key] = rng.choice(["many", None, -7, 1000, 2.5, True, [], {}, "x" * 60, ""])
    elif kind == 4 and type(parent[key]) is str:
        parent[key] = parent[key].upper() + "!"
    else:
        parent[key] = [parent[key]] * 6
    return spoilt


def faulty_calls(count: int) -> list[tuple[Validator, dict[str, Any]]]:
    rng = random.Random(11)
    validators = [(compile_schema(schema), call) for schema, call in TOOLS]
    found: list[tuple[Validator, dict[str, Any]]] = []
    while len(found) < count:
        validator, call = rng.choice(validators)
        spoilt = spoil(rng, call)
        if not validator.is_valid(spoilt):
            found.append((validator, spoilt))
    return found


LINE = re.compile(r"(\(root\)|/\S*): expected (.*), got (.*)")


def repair(call: dict[str, Any], message: str) -> dict[str, Any]:
    """Edit a call as the message says."""
    fixed = copy.deepcopy(call)
    text, _, sample = message.partition("\nexample: ")
    example = json.loads(sample) if sample else {}
    for line in text.splitlines():
        found = LINE.fullmatch(line)
        if found:
            pointer = found[1] if found[1] != "(root)" else ""
            path = tuple(int(key) if key.isdigit() else key for key in pointer.split("/")[1:])
            edit(fixed, path, found[2], found[3], example)
    return fixed


def edit(call: dict[str, Any], path: tuple[Any, ...], expected: str, got: str, example: Any) -> None:
    try:
        shown = at(example, path)
    except (KeyError, IndexError, TypeError):
        shown = None
    try:
        here = at(call, path)
    except (KeyError, IndexError, TypeError):
        return
    name = got.strip("'") if got.startswith("'") else None
    if expected.startswith("only known properties") and name in here:
        here[re.search(r"did you mean '([^']*)'", expected)[1]] = here.pop(name)  # type: ignore[index]
    elif expected.startswith(("only the properties", "no further property")) and name in here:
        del here[name]
    elif missing := re.match(r"required property '([^']*)'(?: \((.*)\))?", expected):
        if missing[1] not in here:
            here[missing[1]] = shown[missing[1]] if shown and missing[1] in shown else value_for(missing[2] or "", None)
    elif path:
        at(call, path[:-1])[path[-1]] = value_for(expected, here) if value_for(expected, here) is not ... else shown


def value_for(expected: str, here: Any) -> Any:
    """A value that a phrase asks for; `...` where only the example can tell."""
    if number := re.fullmatch(r"a number (<=|>=|<|>) (\S+)", expected):
        return json.loads(number[2]) + {"<": -1, ">": 1}.get(number[1], 0)
    if number := re.fullmatch(r"a multiple of (\S+)", expected):
        return json.loads(number[1])
    if count := re.fullmatch(r"at (least|most) (\d+) (character|item)s?", expected):
        if count[1] == "most":
            return here[: int(count[2])]
        return here + "x" * (int(count[2]) - len(here)) if count[3] == "character" else ...
    if "such as " in expected:
        return expected.partition("such as ")[2]
    if expected == "items that are all different":
        return [item for index, item in enumerate(here) if item not in here[:index]]
    if choice := re.match(r'(?:one of )?("(?:[^"\\]|\\.)*")', expected):
        return json.loads(choice[1])
    simple = {"integer": 1, "number": 1, "boolean": True, "null": None}
    kind = expected.split(maxsplit=1)[0] if expected else ""
    return simple.get(kind, ...) if kind != "string" or "(" in expected else "text"


def test_a_scripted_repairer_fixes_nine_of_ten_calls_from_the_message_alone() -> None:
    calls = faulty_calls(200)
    fixed = 0
    for validator, call in calls:
        message = explain(validator.check(call), validator, limit=1024)
        assert len(message) <= 1024
        fixed += validator.is_valid(repair(call, message))
    assert fixed / len(calls) >= 0.9


def test_the_short_message_names_pointer_expected_and_got_in_each_of_the_calls() -> None:
    for validator, call in faulty_calls(200):
        message = explain(validator.check(call), validator)
        assert len(message) <= 200
        assert LINE.fullmatch(message.splitlines()[0])
