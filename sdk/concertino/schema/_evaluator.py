"""The evaluator: what fails where, in plain Python, over a schema in normal form.

It explains every violation (so the wording cannot depend on a library), it is the validator where Rust's is
absent, and it decides the schemas that multiply. It yields `Failure`s; `_violations` puts them into words.

A *run* is one evaluation of one value. It has a limit: 1 while only a verdict is wanted, more to explain.
During verdicts, every (referenced schema, value) pair is decided once and remembered, which keeps recursive
schemas polynomial. *Seen* is the set of property names or item indexes that some keyword has evaluated; it is
kept only where the schema uses `unevaluatedProperties` or `unevaluatedItems`.
"""

from typing import Any, NamedTuple

from ._checks import CHECKS, TYPE_NAMES, Check, Seen, identity
from ._faults import InstanceRefused, Path
from ._formats import FORMATS
from ._normal import NormalSchema

MAX_STEPS = 2_000_000
_MAX_FAILURES = 100


class Failure(NamedTuple):
    """A keyword that does not hold: `schema` is the one that has it, `detail` what the wording needs more."""

    path: Path
    keyword: str
    schema: Any
    instance: Any
    detail: Any = None


def type_name(instance: Any) -> str:
    """The JSON type of a value; a whole float is an integer."""
    name = TYPE_NAMES.get(type(instance), "unknown")
    return "integer" if name == "number" and instance.is_integer() else name


class Evaluator:
    """Evaluates values against one normal schema. Reentrant: all state of an evaluation is in its `Run`."""

    __slots__ = ("_normal", "_plans", "tracks_seen")

    def __init__(self, normal: NormalSchema) -> None:
        self._normal = normal
        self._plans: dict[tuple[int, type], list[tuple[Check, Any]]] = {}
        self.tracks_seen = not normal.words.isdisjoint(("unevaluatedProperties", "unevaluatedItems"))

    def is_valid(self, instance: Any) -> bool:
        """The verdict, without reasons."""
        return not self._evaluate(instance, 1)

    def failures(self, instance: Any) -> list[Failure]:
        """What fails, in schema order; [] where the value is valid."""
        return self._evaluate(instance, _MAX_FAILURES)

    def _evaluate(self, instance: Any, limit: int) -> list[Failure]:
        run = Run(self, limit)
        try:
            run.visit(self._normal.root, instance, ())
        except RecursionError:
            raise InstanceRefused("too_deep", (), "nested too deeply for this schema; flatten the value") from None
        return run.failures

    def plan(self, schema: dict[str, Any], kind: type) -> list[tuple[Check, Any]]:
        """The checks of a schema that concern values of a type, with their operands prepared; made once."""
        key = (id(schema), kind)
        plan = self._plans.get(key)
        if plan is None:
            plan = [
                (check, self._prepared(word, schema[word]))
                for word, (check, kinds) in CHECKS.items()
                if word in schema and (kinds is None or kind in kinds)
            ]
            self._plans[key] = plan
        return plan

    def _prepared(self, word: str, value: Any) -> Any:
        if word == "enum":
            return frozenset(map(identity, value))
        if word == "const":
            return identity(value)
        if word == "type":
            names = {value} if type(value) is str else set(value)
            return frozenset(names | {"integer"} if "number" in names else names)
        if word == "pattern":
            return self._normal.matchers[value]
        if word == "patternProperties":
            return [(self._normal.matchers[pattern], schema) for pattern, schema in value.items()]
        if word == "$ref":
            return self._normal.target(value)
        return FORMATS[value] if word == "format" else value

    def matched_by_pattern(self, schema: dict[str, Any], name: str) -> bool:
        """Does a pattern of `patternProperties` claim this property?"""
        return any(self._normal.matchers[pattern].matches(name) for pattern in schema.get("patternProperties", ()))


class Run:
    __slots__ = ("evaluator", "failures", "known", "limit", "steps")

    def __init__(self, evaluator: Evaluator, limit: int) -> None:
        self.evaluator = evaluator
        self.limit = limit
        self.failures: list[Failure] = []
        self.known: dict[tuple[int, int], tuple[list[Failure], Seen | None]] = {}
        self.steps = 0

    def visit(self, schema: Any, instance: Any, path: Path) -> Seen | None:
        """Evaluate one schema against one value; failures are added to the run, what was seen is returned."""
        seen: Seen | None = set() if self.evaluator.tracks_seen else None
        if schema is True:
            return seen
        if schema is False:
            self.failures.append(Failure(path, "false", False, instance))
            return seen
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise InstanceRefused("too_costly", path, "too much work to check against this schema; send less at once")
        for check, operand in self.evaluator.plan(schema, type(instance)):
            check(self, schema, operand, instance, path, seen)
            if len(self.failures) >= self.limit:
                return seen
        return seen

    def tried(self, schema: Any, instance: Any, path: Path, limit: int = 1) -> tuple[list[Failure], Seen | None]:
        """Evaluate on the side: the failures are returned and not added."""
        kept = self.failures, self.limit
        self.failures, self.limit = [], limit
        try:
            seen = self.visit(schema, instance, path)
            return self.failures, seen
        finally:
            self.failures, self.limit = kept

    def fail(self, path: Path, keyword: str, schema: Any, instance: Any, detail: Any = None) -> None:
        self.failures.append(Failure(path, keyword, schema, instance, detail))
