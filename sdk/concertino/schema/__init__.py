"""JSON Schemas of tools: admitted once, then asked whether arguments match, what is wrong, and what would be
right.

    validator = compile_schema(tool.input_schema)      # SchemaRefused: never register this schema
    if not validator.is_valid(arguments):              # the hot path: about a microsecond
        text = explain(validator.check(arguments), validator)

Semantics: dialect 2020-12 unless `$schema` declares draft 4, 6, 7 or 2019-09; only local `$ref`, no network
ever; 3.0 is an integer and True is not; `default` is not applied; the formats date-time, date, time, email,
uri, uuid, ipv4, ipv6 and regex are asserted, others ignored; patterns are the regular part of ECMA 262.
Values are plain JSON as `guard_instance` defines it. Two back ends, Rust's and plain Python, give the same
verdicts and the same words.
"""

from ._admission import admit
from ._backends import BackendMissing
from ._faults import InstanceRefused, SchemaRefused, pointer_of
from ._guard import guard_instance
from ._names import near_names
from ._validator import Validator, compile_schema
from ._violations import Violation, explain

__all__ = [
    "BackendMissing",
    "InstanceRefused",
    "SchemaRefused",
    "Validator",
    "Violation",
    "admit",
    "compile_schema",
    "explain",
    "guard_instance",
    "near_names",
    "pointer_of",
]
