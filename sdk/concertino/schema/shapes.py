"""How a schema is refused that a library cannot compile: the keyword, what it must be, what it is, and a direction."""

from typing import Any

from .document import LATEST, Document, brief
from .errors import Path, SchemaRefused
from .failures import KeywordFailure
from .names import near_names
from .wording import expected

_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_MEANT = {"dict": "object", "list": "array", "tuple": "array", "bool": "boolean", "none": "null"} | {
    **dict.fromkeys(("float", "double"), "number"),
    **dict.fromkeys(("int", "long"), "integer"),
    "str": "string",
}


def shape_refused(document: Document, path: Path, keyword: str, operand: Any) -> SchemaRefused:
    """The refusal of a keyword whose value broke a `keyword` of the metaschema, such as `type` or `minimum`."""
    word = next((step for step in reversed(path) if type(step) is str), "(root)")
    value = document.at(path)
    if word == "type":
        wanted = f"one of {', '.join(_TYPES)}, or a list of different ones"
    elif operand is None:
        wanted = "a value that the dialect allows"
    else:
        wanted = expected(KeywordFailure((), keyword, {keyword: operand}, value), document)
    text = f"`{word}`: expected {wanted}, got {brief(value)}"
    return SchemaRefused("keyword_shape", path, f"{text}; {_next_step(document, word, value)}")


def _next_step(document: Document, word: str, value: Any) -> str:
    if word == "items" and document.dialect == LATEST and type(value) is list:
        return "use `prefixItems` for a list of schemas, or declare the older `$schema`"
    if word == "required" and type(value) is bool:
        return "list the required names next to `properties`"
    if word == "type" and type(value) is str:
        meant = _MEANT.get(value.lower())
        nearest = [meant] if meant else near_names(value, _TYPES, 1)
        return f"did you mean '{nearest[0]}'?" if nearest else "leave `type` out if any value will do"
    return "correct the schema"


def pattern_refused(path: Path, pattern: str) -> SchemaRefused:
    """The refusal of a pattern that the engine cannot compile."""
    return SchemaRefused("pattern_syntax", path, f"the pattern {brief(pattern)} cannot be read; correct it")
