"""Examples: one small value made from a schema, to show a model what a right call looks like.

An example has the required properties only (or the first one, where none is required: an empty call teaches
nothing) and one item per array. Values the schema itself offers (`const`, `enum`, `examples`, `default`) are
preferred. A *merged* schema is a schema with its `$ref`, `allOf` and one chosen alternative folded in. Where
a choice leads nowhere the next one is tried, and the whole is checked against the schema: several *variants*
are made until one is valid. Everything is deterministic and bounded in work.
"""

from collections.abc import Iterator
from itertools import chain
from math import ceil, floor
from typing import Any, Protocol

from .document import Document
from .equality import identity
from .errors import InstanceRefused
from .formats import SAMPLES

_VARIANTS = 12
_MAX_DEPTH = 12
_MAX_WORK = 3000
_MAX_TEXT = 10_000
_ANY = "text"
_ORDER = ("string", "integer", "number", "boolean", "object", "array", "null")
_FOLDED = frozenset(("$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "if", "then", "else"))
_LOWER_WINS = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_UPPER_WINS = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains")


_TYPE_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"} | {
    type(None): "null"
}


class Judge(Protocol):
    """What a maker asks about values and texts: a back end."""

    def is_valid(self, instance: Any) -> bool:
        """The verdict of the whole schema."""

    def matches(self, pattern: str, text: str) -> bool:
        """Whether a text matches a pattern."""


class _Impossible(Exception):
    """No value was found along the choices made."""


def example_of(document: Document, judge: Judge) -> Any:
    """One minimal value, valid wherever one of the variants tried is; otherwise the first attempt, or {}."""
    attempts: list[Any] = []
    for variant in range(_VARIANTS):
        maker = _ExampleMaker(document, judge, variant)
        try:
            value = maker.make(document.root, 0)
            if judge.is_valid(value):
                return value
            attempts.append(value)
        # A tiny `multipleOf` overflows and deep references recurse too far; another variant may do neither.
        except (_Impossible, InstanceRefused, RecursionError, ArithmeticError):
            continue
    return attempts[0] if attempts else {}


class _ExampleMaker:
    __slots__ = ("document", "judge", "variant", "work")

    def __init__(self, document: Document, judge: Judge, variant: int) -> None:
        self.document = document
        self.judge = judge
        self.variant = variant
        self.work = 0

    def make(self, schema: Any, depth: int, index: int = 0) -> Any:
        """A value for a schema; `index` asks for different values where items must differ."""
        self.work += 1
        if schema is False or depth > _MAX_DEPTH or self.work > _MAX_WORK:
            raise _Impossible
        for merged in self.merged(schema):
            try:
                return self.value(merged, depth, index)
            except _Impossible:
                continue
        raise _Impossible

    def merged(self, schema: Any) -> Iterator[dict[str, Any]]:
        """The schema with references and conjunctions folded in, once per choice of alternatives."""
        self.work += 1
        if type(schema) is bool or self.work > _MAX_WORK:
            if schema is True:
                yield {}
            return
        targets = self.document.targets(schema)
        schema = self.document.view(schema)
        base = {word: value for word, value in schema.items() if word not in _FOLDED}
        parts: list[list[Any]] = [[member] for member in schema.get("allOf", ())]
        parts += [[target] for target in targets]
        parts += [self.rotated(schema[word]) for word in ("anyOf", "oneOf") if word in schema]
        # Variants take turns: the condition ignored, with its `then`, with its `else`.
        if "if" in schema and self.variant % 3:
            taken = [schema["if"], schema.get("then", True)] if self.variant % 3 == 1 else [schema.get("else", True)]
            parts += [[part] for part in taken]
        yield from self.folded(base, parts)

    def folded(self, base: dict[str, Any], parts: list[list[Any]]) -> Iterator[dict[str, Any]]:
        if not parts:
            yield base
            return
        for option in parts[0]:
            for merged in self.merged(option):
                yield from self.folded(_both(base, merged), parts[1:])

    def rotated(self, options: list[Any]) -> list[Any]:
        start = self.variant % len(options)
        return options[start:] + options[:start]

    def value(self, schema: dict[str, Any], depth: int, index: int) -> Any:
        names = _types_of(schema)
        if "const" in schema or "enum" in schema:
            offered = [value for value in schema.get("enum", [schema.get("const")]) if _is_of(value, names)]
            if not offered:
                raise _Impossible
            return offered[(index + self.variant) % len(offered)]
        offered = [*schema.get("examples", ()), *([schema["default"]] if "default" in schema else ())]
        offered = [value for value in offered[self.variant :] if _is_of(value, names)]
        if offered and not index:
            return offered[0]
        if not names:
            raise _Impossible
        ordered = sorted(names, key=_ORDER.index)
        return self.typed(_likely(schema, ordered, self.variant), schema, depth, index)

    def typed(self, name: str, schema: dict[str, Any], depth: int, index: int) -> Any:
        if name == "object":
            return self.object(schema, depth)
        if name == "array":
            return self.array(schema, depth)
        if name == "string":
            return self.text(schema, index)
        if name == "boolean":
            return index % 2 == 0
        return None if name == "null" else _number(schema, name == "integer", index)

    def text(self, schema: dict[str, Any], index: int) -> str:
        # JSON Schema allows 3.0 for an integer.
        low, high = int(schema.get("minLength", 0)), schema.get("maxLength", 10**6)
        if low > _MAX_TEXT:
            raise _Impossible
        if "pattern" in schema:
            return self.matching(schema["pattern"], low + index)
        if "format" in schema:
            return SAMPLES[schema["format"]]
        text = _ANY + (str(index) if index else "")
        return (text + "x" * (low - len(text)))[: int(high)]

    def matching(self, pattern: str, length: int) -> str:
        """A text of at least this length that matches a pattern."""
        sample = self.document.patterns[self.document.given(pattern)].sample
        if sample is not None:
            # A pattern may be anchored or end in a class, so the text is made long enough in several ways.
            for filler in (sample[-1:] or "a", " ", "a"):
                text = sample + filler * (length - len(sample))
                if self.judge.matches(pattern, text):
                    return text
        raise _Impossible

    def array(self, schema: dict[str, Any], depth: int) -> list[Any]:
        prefix, rest = schema.get("prefixItems", []), schema.get("items", True)
        contained = schema.get("contains")
        needed = int(schema.get("minContains", 1)) if contained is not None else 0
        # Every second variant leaves an optional array empty: its items may be what cannot be made.
        usual = len(prefix) or int(type(rest) is dict and self.variant % 2 == 0)
        count = max(int(schema.get("minItems", 0)), min(usual, int(schema.get("maxItems", usual))), needed)
        made: list[Any] = []
        # A `minItems` of a million is answered by a value that the verdict then rejects, not by a million items.
        for index in range(min(count, 200)):
            member = prefix[index] if index < len(prefix) else rest
            if index < needed:
                member = {"allOf": [member, contained]}
            made.append(self.make(member, depth + 1, index if schema.get("uniqueItems") else 0))
        return made

    def object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        names = dict.fromkeys(schema.get("required", ()))
        declared = [name for name, member in schema.get("properties", {}).items() if member is not False]
        wanted = max(int(schema.get("minProperties", 0)), 0 if self.variant % 2 else min(1, len(declared)))
        optional = chain(declared[self.variant :], declared[: self.variant], self.further(schema, depth))
        made: dict[str, Any] = {}
        for name in names:
            made[name] = self.make(self.member(schema, name), depth + 1)
        while len(made) < wanted:
            name = next(optional, None)
            if name is None:
                raise _Impossible
            try:
                if name not in made:
                    made[name] = self.make(self.member(schema, name), depth + 1)
            except _Impossible:
                wanted = max(len(names), int(schema.get("minProperties", 0)))
        return self.completed(schema, made, depth)

    def completed(self, schema: dict[str, Any], made: dict[str, Any], depth: int) -> dict[str, Any]:
        """Add what the properties made so far call for."""
        needs = schema.get("dependentRequired", {})
        for name in [needed for given in list(made) for needed in needs.get(given, ())]:
            if name not in made:
                made[name] = self.make(self.member(schema, name), depth + 1)
        called = [member for name, member in schema.get("dependentSchemas", {}).items() if name in made]
        if not called:
            return made
        rest = {word: value for word, value in schema.items() if word != "dependentSchemas"}
        extended: dict[str, Any] = self.make({"allOf": [rest, *called]}, depth + 1)
        return extended

    def member(self, schema: dict[str, Any], name: str) -> Any:
        parts = [schema["properties"][name]] if name in schema.get("properties", ()) else []
        parts += [
            member
            for pattern, member in schema.get("patternProperties", {}).items()
            if self.judge.matches(pattern, name)
        ]
        if not parts:
            return schema.get("additionalProperties", True)
        return parts[0] if len(parts) == 1 else {"allOf": parts}

    def further(self, schema: dict[str, Any], depth: int) -> Iterator[str]:
        """Names for properties that the schema allows without naming them."""
        names = {"type": "string", "allOf": [schema.get("propertyNames", True)]}
        for pattern in schema.get("patternProperties", ()):
            yield self.matching(pattern, 0)
        for index in range(1, 20):
            yield str(self.make(names, depth + 1, index))


def _is_of(value: Any, names: set[str]) -> bool:
    name = _TYPE_NAMES[type(value)]
    return (
        name in names
        or (name == "integer" and "number" in names)
        or (name == "number" and "integer" in names and value.is_integer())
    )


def _types_of(schema: dict[str, Any]) -> set[str]:
    names = schema.get("type", _ORDER)
    return {names} if type(names) is str else set(names)


def _likely(schema: dict[str, Any], names: list[str], variant: int) -> str:
    """The type that the other keywords of a schema speak of, if it is among the allowed ones."""
    hints = {
        "object": ("properties", "required", "minProperties", "patternProperties", "dependentRequired"),
        "array": ("items", "prefixItems", "minItems", "contains"),
        "string": ("pattern", "format", "minLength"),
        "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    }
    for name, words in hints.items():
        if name in names and any(word in schema for word in words):
            return name
    return names[variant % len(names)]


def _number(schema: dict[str, Any], whole: bool, index: int) -> Any:
    low = max(schema.get("minimum", float("-inf")), schema.get("exclusiveMinimum", float("-inf")))
    high = min(schema.get("maximum", float("inf")), schema.get("exclusiveMaximum", float("inf")))
    step = schema.get("multipleOf", 1)
    start = 1 if low < 1 <= high else low if low > float("-inf") else min(high, 1)
    for number in _candidates(start, step, index, whole, (low, high)):
        above = number >= low and number > schema.get("exclusiveMinimum", float("-inf"))
        below = number <= high and number < schema.get("exclusiveMaximum", float("inf"))
        if above and below:
            return number
    raise _Impossible


def _candidates(start: Any, step: Any, index: int, whole: bool, bounds: tuple[Any, Any]) -> Iterator[Any]:
    low, high = bounds
    first = ceil(start / step)
    for shift in range(4):
        yield (first + shift + index) * step
    for shift in range(4):
        yield (floor(start / step) - shift - index) * step
    if not whole and low > float("-inf") and high < float("inf"):
        yield from (low + (high - low) * part / 8 for part in range(9))


def _both(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Two schemas folded into one, as far as making a value needs it."""
    both = {**other, **one}
    for word in one.keys() & other.keys():
        mine, more = one[word], other[word]
        if word == "type":
            both[word] = _common_types(_types_of(one), _types_of(other))
        elif word == "enum":
            shared = set(map(identity, more))
            both[word] = [value for value in mine if identity(value) in shared]
        elif word in _LOWER_WINS:
            both[word] = min(mine, more)
        elif word in _UPPER_WINS:
            both[word] = max(mine, more)
        elif word in ("required", "examples"):
            both[word] = [*mine, *(item for item in more if item not in mine)]
        elif word in ("properties", "patternProperties", "dependentSchemas"):
            clash = {name: {"allOf": [mine[name], more[name]]} for name in mine.keys() & more.keys()}
            both[word] = {**more, **mine, **clash}
        elif word in ("items", "additionalProperties", "propertyNames", "contains") and mine != more:
            both[word] = {"allOf": [mine, more]}
    return both


def _common_types(mine: set[str], more: set[str]) -> list[str]:
    common = mine & more
    if "number" in mine | more and "integer" in mine | more:
        common.add("integer")
    return sorted(common)
