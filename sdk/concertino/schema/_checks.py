"""One function per keyword: the rules of JSON Schema 2020-12, as far as the normal form uses them.

Each check gets the run, the schema that has the keyword, the prepared operand, the value, its path, and what
has been seen of the value (None unless the schema tracks it). It adds failures to the run and returns
nothing. Checks are only called for values of the types they concern, in the order of the `CHECKS` table:
assertions first, combinators next, `unevaluated*` last, because those depend on everything before them.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ._faults import Path

if TYPE_CHECKING:
    from ._evaluator import Failure, Run

DETAIL_STEPS = 50_000
TYPE_NAMES = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}

Seen = set[str | int]
Check = Callable[["Run", dict[str, Any], Any, Any, Path, Seen | None], None]


def identity(value: Any) -> Any:
    """A hashable key, equal exactly for values that are equal in JSON (1 and 1.0 are, 1 and true are not)."""
    kind = type(value)
    if kind is bool:
        return (bool, value)
    if kind is list:
        return (list, tuple(map(identity, value)))
    if kind is dict:
        return (dict, frozenset((key, identity(member)) for key, member in value.items()))
    return value


def _adopt(seen: Seen | None, more: Seen | None) -> None:
    if seen is not None and more:
        seen |= more


def _type(run: "Run", schema: dict[str, Any], names: Any, instance: Any, path: Path, seen: Seen | None) -> None:
    name = TYPE_NAMES.get(type(instance), "unknown")
    if name not in names and not (name == "number" and "integer" in names and instance.is_integer()):
        run.fail(path, "type", schema, instance)


def _enum(run: "Run", schema: dict[str, Any], values: Any, instance: Any, path: Path, seen: Seen | None) -> None:
    if identity(instance) not in values:
        run.fail(path, "enum", schema, instance)


def _const(run: "Run", schema: dict[str, Any], value: Any, instance: Any, path: Path, seen: Seen | None) -> None:
    if identity(instance) != value:
        run.fail(path, "const", schema, instance)


def _bound(word: str, holds: Callable[[Any, Any], bool]) -> Check:
    def check(run: "Run", schema: dict[str, Any], limit: Any, instance: Any, path: Path, seen: Seen | None) -> None:
        if not holds(instance, limit):
            run.fail(path, word, schema, instance)

    return check


def _is_multiple(instance: Any, factor: Any) -> bool:
    if type(instance) is int and type(factor) is int:
        return instance % factor == 0
    return (Fraction(str(instance)) / Fraction(str(factor))).denominator == 1


def _unique_items(
    run: "Run", schema: dict[str, Any], wanted: Any, instance: Any, path: Path, seen: Seen | None
) -> None:
    first: dict[Any, int] = {}
    for index, item in enumerate(instance if wanted else ()):
        earlier = first.setdefault(identity(item), index)
        if earlier != index:
            run.fail(path, "uniqueItems", schema, instance, (earlier, index))
            return


def _required(run: "Run", schema: dict[str, Any], names: Any, instance: Any, path: Path, seen: Seen | None) -> None:
    for name in names:
        if name not in instance:
            run.fail(path, "required", schema, instance, name)


def _dependent_required(
    run: "Run", schema: dict[str, Any], needs: Any, instance: Any, path: Path, seen: Seen | None
) -> None:
    for name, needed in needs.items():
        for missing in needed if name in instance else ():
            if missing not in instance:
                run.fail(path, "dependentRequired", schema, instance, (missing, name))


def _property_names(
    run: "Run", schema: dict[str, Any], names: Any, instance: Any, path: Path, seen: Seen | None
) -> None:
    for name in instance:
        failures, _ = run.tried(names, name, path)
        if failures:
            run.fail(path, "propertyNames", schema, instance, (name, failures[0]))


def _properties(run: "Run", schema: dict[str, Any], members: Any, instance: Any, path: Path, seen: Seen | None) -> None:
    for name, member in members.items():
        if name in instance:
            run.visit(member, instance[name], (*path, name))
            if len(run.failures) >= run.limit:
                return
            _adopt(seen, {name})


def _pattern_properties(
    run: "Run", schema: dict[str, Any], members: Any, instance: Any, path: Path, seen: Seen | None
) -> None:
    for matcher, member in members:
        for name in instance:
            if matcher.matches(name):
                run.visit(member, instance[name], (*path, name))
                _adopt(seen, {name})


def _additional_properties(
    run: "Run", schema: dict[str, Any], member: Any, instance: Any, path: Path, seen: Seen | None
) -> None:
    declared = schema.get("properties", ())
    for name in instance:
        if name not in declared and not run.evaluator.matched_by_pattern(schema, name):
            if member is False:
                run.fail(path, "additionalProperties", schema, instance, name)
            else:
                run.visit(member, instance[name], (*path, name))
            if len(run.failures) >= run.limit:
                return
            _adopt(seen, {name})


def _unevaluated_properties(
    run: "Run", schema: dict[str, Any], member: Any, instance: Any, path: Path, seen: Seen | None
) -> None:
    assert seen is not None
    for name in [name for name in instance if name not in seen]:
        if member is False:
            run.fail(path, "unevaluatedProperties", schema, instance, name)
        else:
            run.visit(member, instance[name], (*path, name))
        seen.add(name)


def _prefix_items(
    run: "Run", schema: dict[str, Any], members: Any, instance: Any, path: Path, seen: Seen | None
) -> None:
    for index, (member, item) in enumerate(zip(members, instance, strict=False)):
        run.visit(member, item, (*path, index))
        _adopt(seen, {index})


def _items(run: "Run", schema: dict[str, Any], member: Any, instance: Any, path: Path, seen: Seen | None) -> None:
    first = len(schema.get("prefixItems", ()))
    if member is False and len(instance) > first:
        run.fail(path, "items", schema, instance, first)
        return
    for index in range(first, len(instance)):
        run.visit(member, instance[index], (*path, index))
        if len(run.failures) >= run.limit:
            return
    _adopt(seen, set(range(first, len(instance))) if seen is not None else None)


def _contains(run: "Run", schema: dict[str, Any], member: Any, instance: Any, path: Path, seen: Seen | None) -> None:
    found = {index for index, item in enumerate(instance) if not run.tried(member, item, path)[0]}
    if len(found) < schema.get("minContains", 1) or len(found) > schema.get("maxContains", len(found)):
        run.fail(path, "contains", schema, instance, len(found))
    _adopt(seen, found)  # type: ignore[arg-type]


def _unevaluated_items(
    run: "Run", schema: dict[str, Any], member: Any, instance: Any, path: Path, seen: Seen | None
) -> None:
    assert seen is not None
    rest = [index for index in range(len(instance)) if index not in seen]
    if member is False and rest:
        run.fail(path, "unevaluatedItems", schema, instance, rest[0])
        return
    for index in rest:
        run.visit(member, instance[index], (*path, index))
    seen.update(rest)


def _ref(run: "Run", schema: dict[str, Any], target: Any, instance: Any, path: Path, seen: Seen | None) -> None:
    if run.limit > 1:
        _adopt(seen, run.visit(target, instance, path))
        return
    key = (id(target), id(instance))
    known = run.known.get(key)
    if known is None:
        known = run.known[key] = run.tried(target, instance, path)
    run.failures += known[0]
    _adopt(seen, known[1])


def _all_of(run: "Run", schema: dict[str, Any], members: Any, instance: Any, path: Path, seen: Seen | None) -> None:
    for member in members:
        _adopt(seen, run.visit(member, instance, path))
        if len(run.failures) >= run.limit:
            return


def _any_of(run: "Run", schema: dict[str, Any], members: Any, instance: Any, path: Path, seen: Seen | None) -> None:
    held = False
    for member in members:
        failures, more = run.tried(member, instance, path)
        if not failures:
            held = True
            _adopt(seen, more)
            if seen is None:
                return
    if not held:
        _fail_alternatives(run, "anyOf", schema, instance, path)


def _one_of(run: "Run", schema: dict[str, Any], members: Any, instance: Any, path: Path, seen: Seen | None) -> None:
    holding: list[int] = []
    for index, member in enumerate(members):
        failures, more = run.tried(member, instance, path)
        if not failures:
            holding.append(index)
            _adopt(seen, more)
            if len(holding) > 1:
                run.fail(path, "oneOf", schema, instance, tuple(holding))
                return
    if not holding:
        _fail_alternatives(run, "oneOf", schema, instance, path)


def _fail_alternatives(run: "Run", word: str, schema: dict[str, Any], instance: Any, path: Path) -> None:
    """Name the failures of the one alternative that was meant, if that is clear; else the alternatives."""
    if run.limit > 1 and run.steps < DETAIL_STEPS:
        tried = [run.tried(member, instance, path, run.limit)[0] for member in schema[word]]
        meant = [failures for failures in tried if not any(_excludes(failure, path) for failure in failures)]
        if len(meant) == 1:
            run.failures += meant[0]
            return
    run.fail(path, word, schema, instance)


def _excludes(failure: "Failure", path: Path) -> bool:
    """Does a failure show that its alternative was not meant: another type, or another tag?"""
    distance = len(failure.path) - len(path)
    if failure.keyword in ("type", "false"):
        return distance == 0
    tags = (
        [failure.schema["const"]]
        if failure.keyword == "const"
        else failure.schema["enum"]
        if failure.keyword == "enum"
        else ()
    )
    return (distance == 0 and bool(tags)) or (distance == 1 and len(tags) == 1)


def _not(run: "Run", schema: dict[str, Any], member: Any, instance: Any, path: Path, seen: Seen | None) -> None:
    if not run.tried(member, instance, path)[0]:
        run.fail(path, "not", schema, instance)


def _if(run: "Run", schema: dict[str, Any], member: Any, instance: Any, path: Path, seen: Seen | None) -> None:
    failures, more = run.tried(member, instance, path)
    if not failures:
        _adopt(seen, more)
    chosen = schema.get("else" if failures else "then", True)
    _adopt(seen, run.visit(chosen, instance, path))


def _dependent_schemas(
    run: "Run", schema: dict[str, Any], members: Any, instance: Any, path: Path, seen: Seen | None
) -> None:
    for name, member in members.items():
        if name in instance:
            _adopt(seen, run.visit(member, instance, path))


_NUMBERS, _TEXT, _ARRAYS, _OBJECTS = (int, float), (str,), (list,), (dict,)
CHECKS: dict[str, tuple[Check, tuple[type, ...] | None]] = {
    "type": (_type, None),
    "enum": (_enum, None),
    "const": (_const, None),
    "multipleOf": (_bound("multipleOf", _is_multiple), _NUMBERS),
    "maximum": (_bound("maximum", lambda value, limit: value <= limit), _NUMBERS),
    "exclusiveMaximum": (_bound("exclusiveMaximum", lambda value, limit: value < limit), _NUMBERS),
    "minimum": (_bound("minimum", lambda value, limit: value >= limit), _NUMBERS),
    "exclusiveMinimum": (_bound("exclusiveMinimum", lambda value, limit: value > limit), _NUMBERS),
    "maxLength": (_bound("maxLength", lambda value, limit: len(value) <= limit), _TEXT),
    "minLength": (_bound("minLength", lambda value, limit: len(value) >= limit), _TEXT),
    "pattern": (_bound("pattern", lambda value, matcher: matcher.matches(value)), _TEXT),
    "format": (_bound("format", lambda value, check: check(value)), _TEXT),
    "maxItems": (_bound("maxItems", lambda value, limit: len(value) <= limit), _ARRAYS),
    "minItems": (_bound("minItems", lambda value, limit: len(value) >= limit), _ARRAYS),
    "uniqueItems": (_unique_items, _ARRAYS),
    "maxProperties": (_bound("maxProperties", lambda value, limit: len(value) <= limit), _OBJECTS),
    "minProperties": (_bound("minProperties", lambda value, limit: len(value) >= limit), _OBJECTS),
    "required": (_required, _OBJECTS),
    "dependentRequired": (_dependent_required, _OBJECTS),
    "propertyNames": (_property_names, _OBJECTS),
    "properties": (_properties, _OBJECTS),
    "patternProperties": (_pattern_properties, _OBJECTS),
    "additionalProperties": (_additional_properties, _OBJECTS),
    "prefixItems": (_prefix_items, _ARRAYS),
    "items": (_items, _ARRAYS),
    "contains": (_contains, _ARRAYS),
    "$ref": (_ref, None),
    "allOf": (_all_of, None),
    "anyOf": (_any_of, None),
    "oneOf": (_one_of, None),
    "not": (_not, None),
    "if": (_if, None),
    "dependentSchemas": (_dependent_schemas, _OBJECTS),
    "unevaluatedProperties": (_unevaluated_properties, _OBJECTS),
    "unevaluatedItems": (_unevaluated_items, _ARRAYS),
}
