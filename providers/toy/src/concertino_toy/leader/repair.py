"""Correcting a call that was refused: what was wrong is read from the error's fields, not guessed from its
prose.

A `PARSE_ERR` carries a code, a JSON pointer to the argument, what was expected, what was got, and near
names. Three things can be misspelt: the action, an argument's name, an argument's value. Each has one
rule; a call that none of them fits stays as it is, and its problem is asked again.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from .conversation import MemberSchema, WrittenCall


def repair(call: WrittenCall, error: dict[str, Any], actions: dict[str, MemberSchema]) -> WrittenCall | None:
    """The corrected call, or None if the error does not say how."""
    listed = error.get("near")
    near = tuple(map(str, listed)) if isinstance(listed, list) else ()
    if call.name not in actions:
        name = _closest(call.name, near, actions)
        return WrittenCall(name, call.arguments) if name else None
    action = actions[call.name]
    arguments = _renamed(call.arguments, action, near)
    key = str(error.get("path", "")).strip("/").partition("/")[0]
    allowed = [str(value) for value in action.parameters.get(key, {}).get("enum", ())]
    if key in arguments and allowed and arguments[key] not in allowed:
        value = _closest(str(arguments[key]), near, allowed)
        arguments = {**arguments, key: value or allowed[0]}
    return WrittenCall(call.name, arguments) if arguments != call.arguments else None


def _renamed(arguments: dict[str, Any], action: MemberSchema, near: tuple[str, ...]) -> dict[str, Any]:
    """The arguments, each unknown name replaced by the one it resembles among those not yet given."""
    free = [name for name in action.parameters if name not in arguments]
    renamed: dict[str, Any] = {}
    for name, value in arguments.items():
        known = name if name in action.parameters else _closest(name, near, free)
        if known and known not in renamed:
            renamed[known] = value
    return renamed


def _closest(given: str, near: tuple[str, ...], known: Iterable[str]) -> str:
    known = list(known)
    listed = [name for name in near if name in known]
    return (listed or get_close_matches(given, known, 1, 0.5) or [""])[0]
