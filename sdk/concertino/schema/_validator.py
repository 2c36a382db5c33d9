"""The validator: one admitted schema, compiled once, asked many times.

`is_valid` is the hot path and answers yes or no; `check` is asked after a no and says what is wrong; `coerce`
tries the one named repair; `example` shows a right value. Verdicts come from a back end, explanations always
from the evaluator, so the words do not depend on what is installed. A validator holds no state of a call and
may be shared between threads.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal

from ._admission import Admission, admission_of
from ._backends import BackendMissing, Verdict, python_verdict, rust_verdict
from ._coercion import coerced
from ._evaluator import Evaluator
from ._examples import example_of
from ._faults import InstanceRefused
from ._guard import MAX_SCANNED_ITEMS
from ._violations import Violation, violations_of


class Validator:
    """Answers questions about values for one schema. Made by `compile_schema`.

    `schema` is the admitted copy, `backend` the one that decides ("rust" or "python"), `max_items` what to pass
    to `guard_instance` (None, or 10,000 where the schema compares items). Values that did not come from our JSON
    reader must pass the guard first.
    """

    __slots__ = ("_decide", "_evaluator", "_example", "_normal", "backend", "max_items", "schema")

    def __init__(self, admission: Admission, evaluator: Evaluator, decide: Verdict, backend: str) -> None:
        self.schema: dict[str, Any] = admission.schema
        self.backend = backend
        self.max_items = None if admission.normal.words.isdisjoint(("uniqueItems", "contains")) else MAX_SCANNED_ITEMS
        self._normal = admission.normal
        self._evaluator = evaluator
        self._decide = decide
        self._example: str | None = None

    def __repr__(self) -> str:
        return f"<Validator {self.backend}, {len(self._normal.root)} keywords>"

    def is_valid(self, instance: Any) -> bool:
        """Does the value match? Raises `InstanceRefused` for a value that is not JSON."""
        try:
            return self._decide(instance)
        except InstanceRefused:
            raise
        except Exception as fault:  # a back end met what the guard would have refused
            raise _not_json(fault) from fault

    def check(self, instance: Any) -> tuple[Violation, ...]:
        """What is wrong: () for a valid value, else up to five violations, sorted by pointer, then keyword.

        Raises `InstanceRefused` for a value that is not JSON.
        """
        if self.is_valid(instance):
            return ()
        try:
            found = violations_of(self._evaluator.failures(instance), self._normal)
        except InstanceRefused:
            raise
        except Exception as fault:
            raise _not_json(fault) from fault
        if not found:
            text = "the back ends disagree about this value; report it together with its schema"
            raise InstanceRefused("undecided", (), text)
        return found

    def example(self) -> Any:
        """One minimal value made from the schema: deterministic, and valid wherever one can be found."""
        if self._example is None:
            self._example = json.dumps(example_of(self._normal, self._evaluator))
        return json.loads(self._example)

    def coerce(self, instance: Any) -> tuple[Any, tuple[str, ...]]:
        """The value with text read as a number or boolean where only that can be meant, and the repairs' names."""
        return coerced(self._normal, instance)


def _not_json(fault: Exception) -> InstanceRefused:
    return InstanceRefused("not_json", (), f"{str(fault)[:120]}; pass it through guard_instance first")


def compile_schema(schema: Mapping[str, Any], *, backend: Literal["auto", "rust", "python"] = "auto") -> Validator:
    """Admit a schema and compile it once.

    Raises `SchemaRefused` where admission does, and `BackendMissing` where `backend="rust"` cannot be had.
    """
    admission = admission_of(schema)
    evaluator = Evaluator(admission.normal)
    if backend != "python":
        try:
            return Validator(admission, evaluator, rust_verdict(admission), "rust")
        except BackendMissing:
            if backend == "rust":
                raise
    return Validator(admission, evaluator, python_verdict(evaluator), "python")
