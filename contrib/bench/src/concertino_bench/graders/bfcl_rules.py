"""The verdicts of BFCL's published checker on calls that are already read, rule by rule.

They differ from `call-match` on purpose: a value's type must be the schema's (an integer is no float inside a list), a
required argument must be given whatever the gold says, accepted calls take the first call that fits, in order, and a
value whose type is the gold's and not the schema's is compared as it stands. What looks odd here is odd there: the
empty list fits a gold that holds `""`.

The invariant: `fault` never raises because of a call; where the published checker would stop, the call is not right.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .base import shown, written
from .bfcl_source import source_value

_MARKS = re.compile(r"[ ,./\-_*^]")
_PYTHON: dict[str, type] = {
    **dict.fromkeys(("string", "any"), str),
    **dict.fromkeys(("array", "tuple"), list),
    "integer": int,
    "float": float,
    "boolean": bool,
    "dict": dict,
}
_JAVA: dict[str, type] = {
    **dict.fromkeys(("byte", "short", "integer", "long"), int),
    **dict.fromkeys(("float", "double"), float),
    **dict.fromkeys(("char", "String", "any"), str),
    **dict.fromkeys(("Array", "ArrayList", "Queue", "Stack"), list),
    **dict.fromkeys(("HashMap", "Hashtable"), dict),
    "boolean": bool,
    "Set": set,
}
_SCRIPT: dict[str, type] = {
    **dict.fromkeys(("String", "any"), str),
    **dict.fromkeys(("integer", "Bigint"), int),
    "float": float,
    "Boolean": bool,
    "array": list,
    "dict": dict,
}
_TYPES = {"python": _PYTHON, "java": _JAVA, "javascript": _SCRIPT}
# Whose `items` say a type that is checked too.
_LISTS = {"python": ("array", "tuple"), "java": ("Array", "ArrayList"), "javascript": ("array",)}

Call = Mapping[Any, Mapping[Any, Any]]
"""A call as the published checker has it: `{name: arguments}`."""


def language_of(category: str) -> str:
    """The language of a category's values: "python", "java" or "javascript"."""
    return "javascript" if "javascript" in category else "java" if "java" in category else "python"


def fault(
    calls: Sequence[Call],
    gold: Sequence[Call],
    functions: Sequence[Mapping[str, Any]],
    category: str,
    underscored: bool | None,
) -> str:
    """Why calls are not right; empty if they are.

    Args:
        calls: in order, as they were read.
        gold: the accepted calls, `{name: {argument: accepted values}}`.
        functions: in BFCL's dialect.
        category: of the task; it says the language, and whether there are several calls.
        underscored: names are written with `_` for `.`; None takes both.
    """
    if len(calls) != len(gold):
        return f"{len(calls)} calls, expected {len(gold)}"
    several = "parallel" in category or "multiple" in category
    free = list(calls)
    for accepted in gold:
        name = next(iter(accepted))
        function = next((each for each in functions if each["name"] == name), None) if several else functions[0]
        if function is None:
            return f"the gold calls {name}, which is not among the functions"
        whys = [_call_fault(call, function, accepted[name], language_of(category), underscored) for call in free]
        if "" not in whys:
            return whys[0]
        # The first that fits, and no better pairing: that is what the published verdicts rest on.
        del free[whys.index("")]
    return ""


def _call_fault(
    call: Call, function: Mapping[str, Any], accepted: Mapping[str, Any], language: str, underscored: bool | None
) -> str:
    name = str(function["name"])
    short = name.replace(".", "_")
    spelled = {None: (name, short), True: (short,), False: (name,)}[underscored]
    found = next((each for each in spelled if each in call), None)
    if found is None:
        return f"{shown(str(next(iter(call), 'nothing')), 80)} is called, expected {spelled[0]}"
    given = call[found]
    parameters = function.get("parameters") or {}
    schemas = parameters.get("properties") or {}
    if missing := [each for each in parameters.get("required") or () if each not in given]:
        return f"{name}: {missing[0]} is missing, and is required"
    for argument, value in given.items():
        if argument not in schemas or argument not in accepted:
            return f"{name}: {shown(str(argument), 80)} is not expected"
        if why := _value_fault(value, accepted[argument], schemas[argument], language):
            return f"{name}: {argument} is {shown(written(value), 80)}, {why}"
    missing = [each for each, values in accepted.items() if each not in given and "" not in values]
    return f"{name}: {missing[0]} is missing" if missing else ""


def _value_fault(value: Any, accepted: Sequence[Any], schema: Mapping[str, Any], language: str) -> str:
    said = schema.get("type")
    kind, inner = _kinds(schema, language)
    if kind is None:
        return f"whose type {said!r} the published checker does not know"
    if language != "python":
        if not isinstance(value, str):
            return f"expected source code of {language} as a text"
        value = source_value(value, str(said), str((schema.get("items") or {}).get("type") or ""), language)
    elif said == "tuple" and isinstance(value, tuple):
        value = list(value)
    elif said == "float" and type(value) is int:
        value = _float(value)
    fits, variable = _typed(value, accepted, kind, inner)
    if not fits:
        return f"expected the type {said}" + (f" of {(schema.get('items') or {}).get('type')}" if inner else "")
    if not (_accepted(value, accepted) if variable else _same(value, accepted, kind, inner)):
        return f"expected one of {shown(written(accepted), 80)}"
    return ""


def _kinds(schema: Mapping[str, Any], language: str) -> tuple[type | None, type | None]:
    """The types of a parameter's value and of its items; None where there is none, or none that is known."""
    types, said = _TYPES[language], schema.get("type")
    kind = types.get(said) if isinstance(said, str) else None
    inner = (schema.get("items") or {}).get("type") if said in _LISTS[language] else None
    return kind, types.get(inner) if isinstance(inner, str) else None


def _typed(value: Any, accepted: Sequence[Any], kind: type, inner: type | None) -> tuple[bool, bool]:
    """Whether a value has the type of the schema or of the gold; and whether it is to be compared as it stands."""
    golden = next((type(one) for one in accepted if one != ""), None)
    variable = golden is not None and golden is not kind
    same = type(value) is kind
    if same:
        if inner is None:
            return True, variable
        # Lists in lists are looked at one level deep.
        fits = any(
            type(one) is not list or all(_typed(item, one, inner, None)[0] for item in value) for one in accepted
        )
        return fits, variable
    return (True, True) if golden is type(value) else (False, False)


def _same(value: Any, accepted: Sequence[Any], kind: type, inner: type | None) -> bool:
    if kind is dict:
        return any(_same_object(value, one) for one in accepted)
    if kind is list and inner is dict:
        return any(_same_objects(value, one) for one in accepted)
    if kind is str:
        return isinstance(value, str) and _plain(value) in [_plain(one) for one in accepted if isinstance(one, str)]
    if kind is list:
        items = [_plain(item) for item in value]
        return any(items == [_plain(item) for item in one] for one in accepted if isinstance(one, (list, str)))
    return _accepted(value, accepted)


def _same_objects(values: Sequence[Any], gold: Any) -> bool:
    if not isinstance(gold, (list, str)) or len(values) != len(gold):
        return False
    return all(_same_object(value, one) for value, one in zip(values, gold, strict=True))


def _same_object(value: Any, gold: Any) -> bool:
    if not isinstance(gold, Mapping) or not isinstance(value, Mapping):
        return False
    if not all(isinstance(options, (list, str, Mapping)) for options in gold.values()):
        return False
    fits = all(name in gold and _same_item(item, gold[name]) for name, item in value.items())
    return fits and all(name in value or "" in options for name, options in gold.items())


def _same_item(item: Any, options: Any) -> bool:
    if isinstance(options, Mapping):
        return _same_object(item, options)
    return _accepted(_plain(item), [_plain(one) for one in options])


def _accepted(value: Any, accepted: Sequence[Any]) -> bool:
    # Python's equality: by then the type has been looked at.
    return value in accepted


def _plain(value: Any) -> Any:
    return _MARKS.sub("", value).lower().replace("'", '"') if isinstance(value, str) else value


def _float(value: int) -> Any:
    try:
        return float(value)
    except OverflowError:
        return value
