"""JSON Schemas of tools: admitted once, then asked whether arguments match, what is wrong, and what would be
right.

    validator = compile_schema(tool.input_schema)      # SchemaRefused: never register this schema
    if not validator.is_valid(arguments):              # the hot path: about a microsecond
        text = explain(validator.check(arguments), validator)

`jsonschema_rs` decides, and `jsonschema` where it is not installed. Both stand behind one admission, which keeps out
what hangs or fetches, and one wording.

Semantics: dialect 2020-12 unless `$schema` declares draft 4, 6, 7 or 2019-09; only local `$ref`, no network
ever; 3.0 is an integer and True is not; `default` is not applied; the formats date-time, date, time, email,
uri, uuid, ipv4, ipv6 and regex are checked, others ignored; patterns are ECMA 262 without look-around and
back-references. Values are plain JSON as `guard_instance` defines it.
"""

from .errors import InstanceRefused, SchemaRefused
from .guard import guard_instance
from .names import near_names, suggestion
from .validator import Validator, admit, compile_schema
from .violations import Violation, explain

__all__ = [
    "InstanceRefused",
    "SchemaRefused",
    "Validator",
    "Violation",
    "admit",
    "compile_schema",
    "explain",
    "guard_instance",
    "near_names",
    "suggestion",
]
