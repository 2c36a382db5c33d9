"""The shape of a trace's records: which fields a record of each kind has, and of which types.

A trace may come from a stranger, and a checksum says only that nobody cut it. So each record is held against what the
record classes themselves write: of each class there are samples, and their JSON says which fields there may be, which
are always there, and of which types. Fields and kinds that are not known are left alone,
because a later version may write more of them.

Invariant: what a reader of traces is given has this shape, or `JournalError` says file, line, field, and what was
expected. It is cheap: for the fields that
a record has, the comparison is compiled once.
"""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from concertino.core.late import LateValue
from concertino.core.observation import Status

from .journal_errors import JournalError

LEAST, MOST = -1e9, 1e11
"""Bounds of a number: of seconds since 1970 these are the years 1938 and 5138."""
_OFTEN = 16
"""Records with the same fields after which their check is compiled, which takes as long as to look at forty."""
LONGEST_ID = 2048
"""Characters of an id."""
_DEEPEST = 64
"""Agents around a call."""
_FORMS = 64
"""Sets of fields that are remembered of one shape: a hostile file could show a new one in each record."""

ANY, KEY = "any value", "*"
"""In a sample: a value of any kind; the name of a field that may have any name."""
_WORDS: dict[type, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    dict: "a table",
    list: "a list",
}
_AMONG: dict[str, Collection[str]] = {
    "result.status": list(Status),
    "reply.observation.status": list(Status),
    "attach.attachments.kind": ["audio", "file", "image"],
}
"""Fields in which only these words may stand."""
_SPARED = ("attempts", "key", "finish_reason")
"""Fields that are always written, and that readers do without."""


class _Rule(Protocol):
    types: frozenset[type]

    def source(self, value: str, given: dict[str, Any]) -> str:
        """Python that is true where a value is as expected; it may put what it needs into `given`."""

    def fault(self, value: Any, place: str) -> str:
        """What is wrong with a value of one of the types, empty if nothing is."""


class _Plain:
    """A value by its type alone, one of some words, or a number in bounds."""

    def __init__(self, types: Collection[type], among: Collection[str] = (), longest: int = 0) -> None:
        # A whole number is a number, too.
        self.types = frozenset({*types, int} if float in types else types)
        self._among = frozenset(among)
        self._longest = longest

    def source(self, value: str, given: dict[str, Any]) -> str:
        bounds = f"{LEAST} <= x <= {MOST}"
        if self._among:
            return f"type(x := {value}) is str and x in {_named(self._among, given)}"
        if self.types == {str}:
            longest = f" and len(x) <= {self._longest}" if self._longest else ""
            return f"type(x := {value}) is str{longest}" if longest else f"type({value}) is str"
        if self.types == {int, float}:
            return f"(type(x := {value}) is float or type(x) is int) and {bounds}"
        return (
            f"type(x := {value}) is int and {bounds}"
            if self.types == {int}
            else f"type({value}) in {_named(self.types, given)}"
        )

    def fault(self, value: Any, place: str) -> str:
        if type(value) in (int, float) and not LEAST <= value <= MOST:
            return _told(value, place, f"a number from {LEAST:g} to {MOST:g}")
        if isinstance(value, str) and self._among and value not in self._among:
            return _told(value, place, f"one of {', '.join(sorted(self._among))}")
        if isinstance(value, str) and self._longest and len(value) > self._longest:
            return _told(value, place, f"at most {self._longest} characters")
        return ""


class _Many:
    """A list, or a table with free keys, whose values follow one rule."""

    def __init__(self, kind: type, within: _Rule | None) -> None:
        self.types = frozenset([kind])
        self._kind = kind
        self._within = within

    def source(self, value: str, given: dict[str, Any]) -> str:
        right = f"type(x := {value}) is {self._kind.__name__}"
        if self._within is None:
            return right
        inner: dict[str, Any] = {}
        source = self._within.source("y", inner)
        values = "v.values()" if self._kind is dict else "v"
        all_right = _compiled(
            f"    for y in {values}:\n        if not ({source}): return False\n    return True", inner
        )
        return f"{right} and (not x or {_named(all_right, given)}(x))"

    def fault(self, value: Any, place: str) -> str:
        pairs = value.items() if self._kind is dict else enumerate(value)
        return next((found for key, each in pairs if (found := _fault(self._within, each, f"{place}[{key!r}]"))), "")


class Shape:
    """A table with known fields.

    Args:
        samples: JSON of what writes it: one with all of its fields, one with those alone that are always written.
        path: where it stands, for `_AMONG`.
    """

    types: frozenset[type] = frozenset([dict])

    def __init__(self, samples: Sequence[Mapping[str, Any]], path: str = "") -> None:
        names = dict.fromkeys(name for sample in samples for name in sample)
        self._rules = {
            name: _rule_of([sample[name] for sample in samples if name in sample], f"{path}.{name}") for name in names
        }
        always = [name for name in names if all(name in sample for sample in samples)]
        self._required = [name for name in always if name not in _SPARED]
        # By the names of fields that a table has, in their order: almost all tables of a trace have the same few.
        self._checks: dict[tuple[str, ...], Callable[[Any], bool]] = {}

    def check(self, names: tuple[str, ...], *also: str, late: tuple[str, ...] = ()) -> Callable[[Any], bool]:
        """What tells whether a table with fields of these names surely has this shape; the rare is left to `fault`.

        Args:
            also: Python that is to be true of the table `v`, too.
            late: fields that hold a `LateValue`, which is checked when it is read.
        """
        if any(name not in names for name in self._required):
            return _never
        given: dict[str, Any] = {}
        asked = [name for name in names if name != "t" and name not in late]
        rules = [(name, rule) for name in asked if (rule := self._rules.get(name)) is not None]
        # The types first: what else is asked counts on them.
        source = " and ".join([*(rule.source(f"v[{name!r}]", given) for name, rule in rules), *filter(None, also)])
        return _compiled(f"    return {source or True}", given)

    def _learned(self, value: Mapping[str, Any]) -> bool:
        names = tuple(value)
        if len(self._checks) >= _FORMS:
            return False
        self._checks[names] = self.check(names)
        return self._checks[names](value)

    def source(self, value: str, given: dict[str, Any]) -> str:
        get, learn = _named(self._checks.get, given), _named(self._learned, given)
        return f"type(x := {value}) is dict and ({get}(tuple(x)) or {learn})(x)"

    def fault(self, value: Mapping[str, Any], place: str = "") -> str:
        """What is wrong with a table, empty if nothing is."""
        for name in self._required:
            if name not in value:
                return f"the field {_joined(place, name)!r} is missing"
        known = ((name, self._rules.get(name), each) for name, each in value.items())
        return next((found for name, rule, each in known if (found := _fault(rule, each, _joined(place, name)))), "")


def _compiled(body: str, given: dict[str, Any]) -> Callable[[Any], bool]:
    # As straight code it is several times as quick as a loop over rules, and every record that is read passes here. It
    # is made of the samples; names of fields stand in it as literals.
    exec(f"def check(v):\n{body}", given)
    made: Callable[[Any], bool] = given["check"]
    return made


def _never(_: Any) -> bool:
    return False


def _named(thing: object, given: dict[str, Any]) -> str:
    name = f"given{len(given)}"
    given[name] = thing
    return name


def checked_record(record: dict[str, Any], path: Path, line: int, late: tuple[str, ...] = ()) -> dict[str, Any]:
    """A record of a trace, if it has the shape of its kind.

    Args:
        line: at which it stands in the file, counted from 1.
        late: fields that hold a `LateValue`.

    Raises:
        JournalError: it has not; names file, line and field.
    """
    # Almost all records of a trace have the same few sets of fields.
    form: _Form = (late, *record) if late else tuple(record)
    check = _checks.get(form)
    if check is not None and check(record):
        return record
    if found := _fault_of(record):
        raise JournalError(
            f"{path}, line {line}: not a record of a trace: {found}. The file was changed, or another program wrote "
            "it; use an unchanged copy."
        )
    if check is None:
        _seen[form] += 1
        if _seen[form] == _OFTEN and len(_checks) < _FORMS:
            _checks[form] = _check_of(record, late)
    return record


_Form = tuple[str | tuple[str, ...], ...]
_checks: dict[_Form, Callable[[Any], bool]] = {}
"""What tells of records with these fields, in their order, whether they are surely right."""
_seen: Counter[_Form] = Counter()


def _check_of(record: Mapping[str, Any], late: tuple[str, ...]) -> Callable[[Any], bool]:
    kind = record["t"]
    nested = f"(v['parent'] + '/') in v['id'] and v['id'].count('/') <= {_DEEPEST}" if "parent" in record else ""
    shape = shape_of(kind)
    return _never if shape is None else shape.check(tuple(record), f"v['t'] == {kind!r}", nested, late=late)


@cache
def _samples() -> Mapping[str, Sequence[Any]]:
    from .record_samples import SAMPLES

    return SAMPLES


def shape_of(kind: str) -> Shape | None:
    """The shape of a kind of record, None of an unknown one."""
    if kind not in _shapes and kind in _samples():
        _shapes[kind] = Shape([event.to_json() for event in _samples()[kind]], kind)
    return _shapes.get(kind)


_shapes: dict[str, Shape] = {}


def _fault_of(record: Any) -> str:
    """What is wrong with a record, empty if nothing is."""
    if not isinstance(record, dict):
        return _told(record, "", "a table")
    kind = record.get("t")
    if not isinstance(kind, str):
        return _told(kind, "t", "the kind of the record") if "t" in record else "the field 't' is missing"
    shape = shape_of(kind)
    if shape is None:
        return ""
    if found := shape.fault(record):
        return f"{kind!r}: {found}"
    parent, call_id = record.get("parent"), record.get("id", "")
    # So no call is inside itself: each level has a stroke more.
    if parent and not (f"{parent}/" in call_id and call_id.count("/") <= _DEEPEST):
        wanted = f"the id of the call around it, {_brief.repr(parent)}, a stroke and more; at most {_DEEPEST} levels"
        return _told(call_id, "id", wanted)
    return ""


def fault_of_answer(answer: Mapping[str, Any]) -> str:
    """What is wrong with the JSON of an observation or of a model's reply, empty if nothing is."""
    seen = {"id": "", "name": "", "status": str(Status.OK), "started": 0, "ended": 0}
    if "status" in answer:
        return _fault_of({"t": "result", **seen, **answer})
    return _fault_of({"t": "reply", "id": "", "role": "", "reply": answer, "observation": seen})


def _fault(rule: _Rule | None, value: Any, place: str) -> str:
    if rule is None or type(value) is LateValue:
        return ""
    return rule.fault(value, place) if type(value) in rule.types else _told(value, place, _expected(rule.types))


_brief = reprlib.Repr()
_brief.maxstring = _brief.maxother = _brief.maxlong = 60


def _told(value: Any, place: str, wanted: str) -> str:
    there = f"the field {place!r} is {_brief.repr(value)}" if place else f"it is {_brief.repr(value)}"
    return f"{there}, expected {wanted}"


def _expected(types: Collection[type]) -> str:
    named: dict[type, str] = {float: "a number"} if float in types else {}
    words = [named.get(kind) or _WORDS[kind] for kind in _WORDS if kind in types and not (kind is int and named)]
    return " or ".join([*words, *(["null"] if type(None) in types else [])])


def _joined(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _rule_of(samples: Sequence[Any], path: str) -> _Rule | None:
    """The rule that all samples of a field obey; None for anything."""
    if any(sample == ANY for sample in samples):
        return None
    tables = [sample for sample in samples if isinstance(sample, dict)]
    if any(KEY in table for table in tables):
        return _Many(dict, _rule_of([each for table in tables for each in table.values()], path))
    if any(tables):
        return Shape(tables, path)
    kinds = {type(sample) for sample in samples}
    if list in kinds:
        return _Many(list, _rule_of([each for sample in samples for each in sample], path))
    if not kinds or kinds == {dict}:
        return _Many(dict, None) if kinds else None
    longest = LONGEST_ID if path.rpartition(".")[2] in ("id", "parent") else 0
    return _Plain(kinds, _AMONG.get(path, ()), longest)
