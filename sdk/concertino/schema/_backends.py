"""The two back ends: functions that take a value and say whether it is valid.

Both decide the same normal schema, with the same formats and the same reading of patterns. Rust's
(`jsonschema_rs`) is some twenty times faster and is used where it is installed and the schema does not
multiply; the evaluator is plain Python, needs nothing, and decides everything else. Neither ever touches the
network: a normal schema has no remote references, and Rust's is told to stay offline as well. The library is
imported on first use only.
"""

from collections.abc import Callable
from typing import Any

from ._admission import Admission
from ._evaluator import Evaluator
from ._formats import FORMATS
from ._normal import NormalSchema
from ._patterns import to_rust

Verdict = Callable[[Any], bool]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PATTERN_BYTES = 10 * 1024 * 1024
_BY_NAME = ("properties", "dependentSchemas")
_LISTED = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE = (
    "additionalProperties", "propertyNames", "unevaluatedProperties", "unevaluatedItems", "items", "contains",
    "not", "if", "then", "else",
)  # fmt: skip


class BackendMissing(RuntimeError):
    """The back end that was asked for is not installed, or cannot decide this schema."""


def python_verdict(evaluator: Evaluator) -> Verdict:
    """The verdict of the evaluator in plain Python."""
    return evaluator.is_valid


def rust_verdict(admission: Admission) -> Verdict:
    """The verdict of `jsonschema_rs`; raises `BackendMissing` where it is not to be had."""
    if admission.multiplies:
        raise BackendMissing("this schema is recursive or unfolds too far for the Rust back end; use backend='auto'")
    try:
        import jsonschema_rs
    except ImportError:
        raise BackendMissing(
            "jsonschema_rs is not installed; pip install 'concertino[fast]' or use backend='auto'"
        ) from None
    normal = admission.normal
    schema = {"$schema": _DIALECT, **_translated(normal.root, normal)}
    if normal.defs:
        schema["$defs"] = {key: _translated(part, normal) for key, part in normal.defs.items()}
    try:
        compiled = jsonschema_rs.validator_for(
            schema,
            offline=True,
            validate_formats=True,
            formats=dict(FORMATS),
            pattern_options=jsonschema_rs.RegexOptions(size_limit=_PATTERN_BYTES),
        )
    except Exception as fault:
        raise BackendMissing(
            f"the Rust back end cannot compile this schema ({str(fault)[:200]}); use backend='auto'"
        ) from fault
    return compiled.is_valid


def _translated(schema: Any, normal: NormalSchema) -> Any:
    """A normal schema in Rust's terms: patterns rewritten, and nothing that is not a rule."""
    if type(schema) is bool:
        return schema
    new: dict[str, Any] = {}
    for word, value in schema.items():
        if word in _BY_NAME:
            new[word] = {name: _translated(member, normal) for name, member in value.items()}
        elif word in _LISTED:
            new[word] = [_translated(member, normal) for member in value]
        elif word in _SINGLE:
            new[word] = _translated(value, normal)
        elif word == "pattern":
            new[word] = to_rust(normal.matchers[value].tree)
        elif word == "patternProperties":
            new[word] = _translated_patterns(value, normal)
        elif word not in ("default", "examples"):
            new[word] = value
    return new


def _translated_patterns(members: dict[str, Any], normal: NormalSchema) -> dict[str, Any]:
    new: dict[str, Any] = {}
    for pattern, member in members.items():
        text = to_rust(normal.matchers[pattern].tree)
        while text in new:  # two patterns may read differently and mean the same
            text += "(?:)"
        new[text] = _translated(member, normal)
    return new
