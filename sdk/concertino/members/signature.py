"""From a typed Python function to the JSON schema that the model sees, and from validated JSON back to arguments.

Pydantic defines the result. For the plain annotations that most tools have (`str`, `int`, `float`, `bool`, `Any`,
`list`, `dict`, `Literal`, unions of these) the same schema is written down directly, without importing pydantic; a
test compares the two for every supported form. Everything else (models, dates, enums, `Annotated[…, Field(…)]`) goes
through pydantic, whose model then also turns the validated JSON into Python values.

The parameter annotated `Context` is the injected one: it never reaches the schema.
"""

from __future__ import annotations

import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, Union
from weakref import WeakKeyDictionary

from concertino.core.errors import SpecError

Convert = Callable[[Mapping[str, Any]], dict[str, Any]]
"""From valid arguments to those that the function takes."""

_ENTRY = re.compile(r" {4}([A-Za-z_]\w*): (\S.*)")
_SCALARS: dict[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}


class Signature(NamedTuple):
    """What a function's signature and docstring say.

    Attributes:
        description: the docstring without its list of parameters; without one, the words of the function's name.
        schema: JSON schema of the arguments, an object.
        context: name of the injected parameter, `""` if none.
        convert: turns validated JSON arguments into keyword arguments; `None` if they can be passed as they are.
        result: the annotation of what it returns; `None` if it has none.
    """

    description: str
    schema: dict[str, Any]
    context: str
    convert: Convert | None
    result: Any = None


_METHOD = "give the method of an object, which has it already, to Pool.of: Pool.of(account.pay)"
_UNTYPED = {"self": _METHOD, "cls": _METHOD, "ctx": "annotate it as concertino.Context"}
"""What helps with a parameter of this name that has no annotation."""


def read_signature(function: Callable[..., Any], context_type: type) -> Signature:
    """Read a function.

    Raises:
        SpecError: a parameter has no annotation, or a kind that JSON arguments cannot fill.
    """
    label = getattr(function, "__qualname__", repr(function))
    try:
        # With extras, because `Annotated` holds what pydantic writes into the schema.
        hints = typing.get_type_hints(function, localns=_enclosing_names(function), include_extras=True)
    except Exception as error:
        raise SpecError(f"{label}: its annotations cannot be resolved ({error}); import the names they use") from error
    summary, described = _read_docstring(function.__doc__ or "")
    context = ""
    fields: dict[str, tuple[Any, Any]] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise SpecError(f"{label}: parameter {name!r} is {parameter.kind.description}; JSON arguments have names")
        if name not in hints:
            step = _UNTYPED.get(name, "the model needs its type")
            raise SpecError(f"{label}: parameter {name!r} has no annotation; {step}")
        kind = typing.get_origin(hints[name]) or hints[name]  # `Context[Bank]` is a `Context`
        if isinstance(kind, type) and issubclass(kind, context_type):
            context = name
            continue
        fields[name] = (hints[name], parameter.default)
    schema = _plain_object(fields)
    convert = None
    if schema is None:
        schema, convert = _with_models(fields) or _through_pydantic(label, fields)
    for name, text in described.items():
        if name in schema["properties"]:
            # A `Field(description=...)` stands closer to the parameter and wins.
            schema["properties"][name].setdefault("description", text)
    # Little to choose by, but better than no tool: `concertino check` asks for more.
    words = str(getattr(function, "__name__", "")).replace("_", " ").strip()
    return Signature(summary or words, schema, context, convert, hints.get("return"))


def _enclosing_names(function: Callable[..., Any]) -> dict[str, Any] | None:
    """Names of the function bodies around a local function: what its annotations, kept as text, may refer to."""
    if "<locals>" not in getattr(function, "__qualname__", ""):
        return None
    names: dict[str, Any] = {}
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals is getattr(function, "__globals__", None):
            # From the inside out: an inner name hides an outer one.
            names = {**frame.f_locals, **names}
        frame = frame.f_back
    return names


def _read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The description, and a text for each parameter (Google, NumPy, Sphinx and Epydoc styles)."""
    text = inspect.cleandoc(text)
    # Most docstrings are one paragraph, and docstring_parser is only imported for the others.
    if "\n\n" not in text and "\n:" not in text and "Args:" not in text:
        return text, {}
    return _read_google(text) or _parse_docstring(text)


def _read_google(text: str) -> tuple[str, dict[str, str]] | None:
    """The commonest form, read directly: one-line entries under `Args:`, and nothing after them."""
    description, found, entries = text.partition("\n\nArgs:\n")
    first, _, more = description.partition("\n")
    if not found or (more and not more.startswith("\n")) or ":\n" in description:
        return None
    described: dict[str, str] = {}
    for line in entries.split("\n"):
        entry = _ENTRY.fullmatch(line)
        if entry is None:
            return None
        described[entry.group(1)] = entry.group(2).strip()
    return f"{first}\n\n{more.strip()}" if more else first, described


def _parse_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Any form, by docstring_parser."""
    import docstring_parser

    # Most docstrings are Google's; trying every style takes three times as long.
    google = "\nArgs:\n" in text
    style = docstring_parser.DocstringStyle.GOOGLE if google else docstring_parser.DocstringStyle.AUTO
    parsed = docstring_parser.parse(text, style=style)
    parts = [part for part in (parsed.short_description, parsed.long_description) if part]
    return "\n\n".join(parts), {p.arg_name: p.description or "" for p in parsed.params if p.description}


def _plain_object(fields: Mapping[str, tuple[Any, Any]]) -> dict[str, Any] | None:
    """The schema of all fields, or None if one of them needs pydantic."""
    properties: dict[str, Any] = {}
    required = []
    for name, (annotation, default) in fields.items():
        schema = plain_schema(annotation)
        # `type` is among them because `Parameter.empty`, for no default, is a class.
        if schema is None or not isinstance(default, (str, int, float, bool, type(None), type)):
            return None
        if default is inspect.Parameter.empty:
            required.append(name)
        elif isinstance(default, type):
            return None
        else:
            schema["default"] = default
        properties[name] = schema
    return _object(properties, required)


def _with_models(fields: Mapping[str, tuple[Any, Any]]) -> tuple[dict[str, Any], Convert] | None:
    """What `_through_pydantic` gives, where each field is plain or a pydantic model; None where one is anything else.

    The schema of a model is made once, and not again for each function that takes it; making a model of every function
    would cost more than all the rest of it.
    """
    pydantic = sys.modules.get("pydantic")
    if pydantic is None:
        return None
    plain: dict[str, tuple[Any, Any]] = {}
    properties: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    models: dict[str, Any] = {}
    for name, (annotation, default) in fields.items():
        if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
            own = _model_schema(annotation)
            if own is None or default is not inspect.Parameter.empty:
                return None
            for known, definition in own.items():
                if definitions.setdefault(known, definition) != definition:
                    return None  # two models of one name: pydantic gives them longer ones
            models[name] = annotation
            properties[name] = {"$ref": f"#/$defs/{annotation.__name__}"}
        else:
            described = _plain_object({name: (annotation, default)})
            if described is None:
                return None
            plain[name] = (annotation, default)
            properties[name] = _sorted(described["properties"][name])
    required = [name for name, (_, default) in fields.items() if default is inspect.Parameter.empty]
    schema = {"$defs": dict(sorted(definitions.items())), **_sorted(_object({}, required)), "properties": properties}

    def convert(arguments: Mapping[str, Any]) -> dict[str, Any]:
        read = {name: model.model_validate(arguments[name]) for name, model in models.items()}
        return {**arguments, **read}

    return dict(sorted(schema.items())), convert


_schemas: WeakKeyDictionary[type, dict[str, Any] | None] = WeakKeyDictionary()


def _model_schema(model: Any) -> dict[str, Any] | None:
    """The definitions that a pydantic model needs, its own among them; None where its name is not its definition's."""
    if model not in _schemas:
        schema = without_titles(model.model_json_schema())
        definitions = schema.pop("$defs", {})
        name = model.__name__
        if set(schema) == {"$ref"} and name in definitions:
            _schemas[model] = definitions  # it contains itself
        else:
            usable = name.isidentifier() and name not in definitions
            _schemas[model] = {**definitions, name: schema} if usable else None
    return _schemas[model]


def _sorted(schema: Any) -> Any:
    """A plain schema with its keywords in the order in which pydantic writes them."""
    if not isinstance(schema, dict):
        return schema
    return {key: _sorted(value) for key, value in sorted(schema.items())}


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = required
    return schema


def plain_schema(annotation: Any) -> dict[str, Any] | None:
    """The schema of a plain annotation, None if it is not one."""
    # Some annotations cannot be hashed, such as `Annotated` with a list.
    if annotation in _SCALARS if _hashable(annotation) else False:
        return {"type": _SCALARS[annotation]}
    if annotation is Any:
        return {}
    if annotation is list:
        return {"type": "array", "items": {}}
    if annotation is dict:
        return {"type": "object", "additionalProperties": True}
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is list and arguments:
        items = plain_schema(arguments[0])
        return None if items is None else {"type": "array", "items": items}
    if origin is dict and arguments and arguments[0] is str:
        values = plain_schema(arguments[1])
        return None if values is None else {"type": "object", "additionalProperties": values or True}
    if origin is Literal:
        return _literal(arguments)
    if origin in (Union, types.UnionType):
        options = [plain_schema(option) for option in arguments]
        return None if None in options else {"anyOf": options}
    return None


def _literal(values: tuple[Any, ...]) -> dict[str, Any] | None:
    kinds = {type(value) for value in values}
    if len(kinds) != 1 or not kinds <= {str, int}:
        return None
    kind = _SCALARS[kinds.pop()]
    return {"const": values[0], "type": kind} if len(values) == 1 else {"enum": list(values), "type": kind}


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _through_pydantic(label: str, fields: Mapping[str, tuple[Any, Any]]) -> tuple[dict[str, Any], Convert]:
    import pydantic

    given = {
        name: (annotation, ... if default is inspect.Parameter.empty else default)
        for name, (annotation, default) in fields.items()
    }
    try:
        # A parameter may be called `model_name`, whose prefix pydantic keeps for itself by default.
        config = pydantic.ConfigDict(arbitrary_types_allowed=False, extra="forbid", protected_namespaces=())
        options: dict[str, Any] = {"__config__": config, **given}
        model: type[pydantic.BaseModel] = pydantic.create_model(label.replace(".", "_"), **options)
        schema = model.model_json_schema()
    except Exception as error:
        # The first line: pydantic adds advice about classes of its own.
        reason = (str(error).splitlines() or [""])[0]
        raise SpecError(f"{label}: no JSON schema can be made from its parameters: {reason}") from error
    names = list(given)

    def convert(arguments: Mapping[str, Any]) -> dict[str, Any]:
        value = model.model_validate(arguments)
        # Not `model_dump`, which would turn nested models back into dicts.
        return {name: getattr(value, name) for name in names}

    return without_titles(schema), convert


def without_titles(schema: Any) -> Any:
    """Drop the titles that pydantic derives from names: tokens that tell the model nothing."""
    if isinstance(schema, list):
        return [without_titles(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    cleaned = {}
    for key, value in schema.items():
        if key == "title" and isinstance(value, str):
            continue
        # Here a key is a name, and a parameter may be called "title".
        if key in ("properties", "$defs") and isinstance(value, dict):
            cleaned[key] = {name: without_titles(part) for name, part in value.items()}
        elif key in ("default", "const", "enum", "examples"):
            # Data and not schema: a title inside is part of the value.
            cleaned[key] = value
        else:
            cleaned[key] = without_titles(value)
    return cleaned
