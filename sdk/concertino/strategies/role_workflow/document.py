"""Workflows of roles as documents: TOML or JSON data, checked as a whole before a run.

    turns = 4
    order = "sequential"                 # or "simultaneous"
    answer = "coder"

    [until]
    kind = "tests"                       # or "agree", "goal"
    code = "coder"
    tests = "tester"

    [[roles]]                            # in the order of a turn
    name = "coder"
    reads = "code"
    prompt = "Write a Python program that … {question}"

A document may come from a person, a trace or a model, so it is checked key by key. All faults are reported at once,
each with its place. Workflows made in Python go through the same checks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, Literal, NamedTuple

from concertino.core.format_issue import FormatIssue
from concertino.core.model import Sampling
from concertino.schema import near_names
from concertino.text.json import ReadingError, read_json

from .format import FORMS
from .role import CONDITIONS, ENDINGS, Role, Workflow
from .template import FIELDS, check_template

CODES: dict[str, str] = {
    "not_toml": "Invalid TOML.",
    "not_json": "Invalid JSON, or no JSON object.",
    "unknown_key": "Unknown key.",
    "missing_key": "A required key is missing.",
    "bad_value": "Wrong type, or value out of range.",
    "no_roles": "The workflow has no role.",
    "bad_name": "Invalid name of a role, or a name that templates reserve.",
    "duplicate_role": "Two roles have the same name.",
    "unknown_role": "The workflow has no role of this name.",
    "bad_template": "A template has an unclosed or a stray brace.",
    "unknown_slot": "A template refers to an unknown value.",
    "bad_condition": "Unknown condition for skipping a role.",
    "bad_reading": "The form that the role's text is read as does not fit the ending.",
    "too_many_tools": "A role has several tools, and its text is not read as calls.",
    "no_tools": "A role whose text is read as calls has no tools.",
    "no_result": "`result` of a role without tools.",
}
"""Every fault of a document."""

_SETTINGS = ("turns", "order", "answer", "remember", "max_unreadable_replies", "strict")
_KEYS = ("name", *_SETTINGS, "until", "roles")
_NEEDED = {
    "role": ("name", "prompt"),
    "agree": ("left", "right"),
    "tests": ("code", "tests"),
    "goal": ("action", "tool"),
}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
# Templates use these words themselves: `{history}` could mean a role of that name.
_RESERVED = ("question", "turn", "turns", "history", "observation", "tools")
_ROLE_KEYS = tuple(field.name for field in fields(Role))
_SAMPLING_KEYS = tuple(field.name for field in fields(Sampling))
_ONE_TOOL = ("text", "code", "answer")
_SHOWN = 16


class Fault(NamedTuple):
    """One fault of a document.

    Attributes:
        code: one of `CODES`.
        where: path of keys, as `roles[0].prompt`; for a template with the character.
        message: what is wrong, what was expected, and the next step.
        value: the text that is wrong, by which its place in a file is found.
    """

    code: str
    where: str
    message: str
    value: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class _Check:
    """The faults found so far."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def note(self, code: str, where: str, message: str, value: object = "") -> None:
        self.faults.append(Fault(code, where, message, str(value)[:200]))

    def keys(self, data: Mapping[str, Any], known: Sequence[str], needed: Sequence[str], where: str) -> None:
        for key in data:
            if key not in known:
                near = near_names(str(key), known, limit=1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
                self.note("unknown_key", _path(where, key), f"unknown key {key!r}; {hint}", key)
        for key in needed:
            if key not in data:
                self.note("missing_key", where, f"{key!r} is missing; there are {', '.join(known)}")

    def known(self, name: Any, known: Collection[str], where: str, code: str = "unknown_role") -> bool:
        if isinstance(name, str) and name in known:
            return True
        near = near_names(str(name), known, limit=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known) or 'none'}"
        self.note(code, where, f"{str(name)[:60]!r} is unknown; {hint}", name)
        return False

    def of_type(self, value: Any, kind: type | tuple[type, ...], where: str, expected: str) -> bool:
        # `True` is an `int` to Python; in a document it is a slip.
        if isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool):
            return True
        self.note("bad_value", where, f"{str(value)[:60]!r} is a {type(value).__name__}; expected {expected}", value)
        return False


def _path(where: str, key: object) -> str:
    return f"{where}.{key}" if where else str(key)


def faults_of(data: Any) -> list[Fault]:
    """Everything that is wrong with a document."""
    check = _Check()
    if not isinstance(data, Mapping):
        check.note("bad_value", "", f"a workflow is a table of keys; got {type(data).__name__}")
        return check.faults
    check.keys(data, _KEYS, ("roles", "until"), "")
    for key, least in (("turns", 1), ("max_unreadable_replies", 1), ("remember", 0)):
        value = data.get(key, least)
        if check.of_type(value, int, key, "a whole number") and not least <= value <= 1000:
            check.note("bad_value", key, f"{value} is out of range; expected {least} to 1000", value)
    if "strict" in data:
        check.of_type(data["strict"], bool, "strict", "true or false")
    if data.get("order", "sequential") not in ("sequential", "simultaneous"):
        given = data["order"]
        check.note("bad_value", "order", f"{given!r}; expected 'sequential' or 'simultaneous'", given)
    roles = _check_roles(check, data.get("roles"))
    if "until" in data:
        _check_until(check, data["until"], roles)
    if data.get("answer"):
        check.known(data["answer"], roles, "answer")
    return check.faults


def _check_roles(check: _Check, listed: Any) -> dict[str, Mapping[str, Any]]:
    """The roles by name, as far as they can be told apart."""
    if listed is None:
        return {}
    if not check.of_type(listed, (list, tuple), "roles", "a list of roles"):
        return {}
    if not listed:
        check.note("no_roles", "roles", "a workflow needs at least one role")
    roles: dict[str, Mapping[str, Any]] = {}
    # Names first: templates and conditions may refer to roles that come later.
    for place, role in enumerate(listed):
        where = f"roles[{place}]"
        if check.of_type(role, Mapping, where, "a table with name and prompt"):
            _check_name(check, role, where, roles)
    for place, role in enumerate(listed):
        if isinstance(role, Mapping):
            _check_role(check, role, f"roles[{place}]", roles)
    return roles


def _check_name(check: _Check, role: Mapping[str, Any], where: str, roles: dict[str, Mapping[str, Any]]) -> None:
    """A role goes under its name, if that is one."""
    if "name" not in role:
        return
    name = role["name"]
    if not (isinstance(name, str) and _NAME.fullmatch(name) and name not in _RESERVED):
        message = f"{str(name)[:60]!r} is not a valid name of a role; expected a word of letters, digits, '_' and '-'"
        check.note("bad_name", f"{where}.name", message, name)
    elif name in roles:
        check.note("duplicate_role", f"{where}.name", f"there are two roles {name!r}; rename one", name)
    else:
        roles[name] = role


def _check_role(check: _Check, role: Mapping[str, Any], where: str, roles: Mapping[str, Any]) -> None:
    check.keys(role, _ROLE_KEYS, _NEEDED["role"], where)
    for key in ("prompt", "again", "system"):
        template = role.get(key, "")
        if not check.of_type(template, str, f"{where}.{key}", "a text"):
            continue
        for code, message, start in check_template(template, roles)[:_SHOWN]:
            check.note(code, f"{where}.{key}", f"character {start}: {message}", template[start : start + 60])
    for key in ("policy", "argument"):
        check.of_type(role.get(key, ""), str, f"{where}.{key}", "a text")
    reads = role.get("reads", "text")
    if check.known(reads, FORMS, f"{where}.reads", "bad_value"):
        _check_tools(check, role, reads, where)
    if role.get("sampling") is not None and check.of_type(role["sampling"], Mapping, f"{where}.sampling", "a table"):
        _check_sampling(check, role["sampling"], f"{where}.sampling")
    skip = role.get("skip", ())
    if check.of_type(skip, (list, tuple), f"{where}.skip", "a list of conditions"):
        for condition in skip:
            _check_condition(check, condition, f"{where}.skip", roles)


def _check_tools(check: _Check, role: Mapping[str, Any], reads: str, where: str) -> None:
    tools = role.get("tools", ())
    if not check.of_type(tools, (list, tuple), f"{where}.tools", "a list of names"):
        return
    for tool in tools:
        check.of_type(tool, str, f"{where}.tools", "names of members")
    if reads == "calls" and not tools:
        check.note("no_tools", f"{where}.tools", "its text is read as calls, and it has no tools; list some")
    elif tools and reads not in (*_ONE_TOOL, "calls"):
        check.note("too_many_tools", f"{where}.tools", f"what is read as {reads} calls no tool; leave tools out")
    elif len(tools) > 1 and reads != "calls":
        message = f"{len(tools)} tools, and its text is read as {reads}; keep one, or write reads = 'calls'"
        check.note("too_many_tools", f"{where}.tools", message)


def _check_sampling(check: _Check, sampling: Mapping[str, Any], where: str) -> None:
    check.keys(sampling, _SAMPLING_KEYS, (), where)
    for key in ("temperature", "top_p", "max_tokens", "seed"):
        if sampling.get(key) is not None:
            check.of_type(sampling[key], (int, float), f"{where}.{key}", "a number")
    if "stop" in sampling:
        check.of_type(sampling["stop"], (list, tuple), f"{where}.stop", "a list of texts")


def _check_condition(check: _Check, condition: Any, where: str, roles: Mapping[str, Any]) -> None:
    if not check.of_type(condition, str, where, "a condition as text"):
        return
    word, colon, role = condition.partition(":")
    takes_role = word in ("ok", "failed", "unread")
    if word not in CONDITIONS or bool(colon) != takes_role:
        known = [name if name in ("first", "later") else f"{name}:role" for name in CONDITIONS]
        near = near_names(condition, known, limit=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        check.note("bad_condition", where, f"unknown condition {condition!r}; {hint}", condition)
    elif takes_role:
        check.known(role, roles, where)


def _check_until(check: _Check, until: Any, roles: Mapping[str, Mapping[str, Any]]) -> None:
    if not check.of_type(until, Mapping, "until", "a table with its kind"):
        return
    kind = until.get("kind")
    if "kind" not in until:
        check.note("missing_key", "until", f"'kind' is missing; there are {', '.join(ENDINGS)}")
        return
    if not check.known(kind, ENDINGS, "until.kind", "bad_value"):
        return
    known = ("kind", *(field.name for field in fields(ENDINGS[kind])))
    check.keys(until, known, _NEEDED[kind], "until")
    for key in known:
        if key in until:
            check.of_type(until[key], str, f"until.{key}", "a text")
    if kind == "agree":
        for key in ("left", "right"):
            _check_place(check, until.get(key), f"until.{key}", roles)
    elif kind == "tests":
        _check_reading(check, until, "code", ("code",), roles)
        _check_reading(check, until, "tests", ("tests",), roles)
    else:
        _check_reading(check, until, "action", ("actions", "text", "answer", "code"), roles)


def _check_reading(
    check: _Check, until: Mapping[str, Any], key: str, forms: Sequence[str], roles: Mapping[str, Mapping[str, Any]]
) -> None:
    """The role that an ending refers to is read as what the ending needs."""
    name = until.get(key)
    if not isinstance(name, str) or not check.known(name, roles, f"until.{key}"):
        return
    reads = roles[name].get("reads", "text")
    if reads not in forms:
        message = f"the text of {name!r} is read as {reads}; write reads = {forms[0]!r} for it"
        check.note("bad_reading", f"until.{key}", message, name)


def _check_place(check: _Check, place: Any, where: str, roles: Mapping[str, Mapping[str, Any]]) -> None:
    """`role.field` in an agreement."""
    if not isinstance(place, str):
        return
    name, _, part = place.partition(".")
    if not check.known(name, roles, where) or not check.known(part, FIELDS, where, "bad_value"):
        return
    if part == "result" and not roles[name].get("tools"):
        check.note("no_result", where, f"{name!r} has no tools, so it has no result; write {name}.value", place)


# -- documents and workflows -------------------------------------------------------------------------------------------


def to_document(workflow: Workflow) -> dict[str, Any]:
    """Plain JSON data of a workflow; fields of roles that have their default are left out."""
    return {
        **{name: getattr(workflow, name) for name in _SETTINGS},
        "until": {"kind": workflow.until.kind, **asdict(workflow.until)},
        "roles": [_role_json(role) for role in workflow.roles],
    }


def _role_json(role: Role) -> dict[str, Any]:
    data: dict[str, Any] = {"name": role.name, "prompt": role.prompt}
    default = Role("", "")
    for field in fields(Role):
        value = getattr(role, field.name)
        if field.name not in data and value != getattr(default, field.name):
            data[field.name] = list(value) if isinstance(value, tuple) else value
    if role.sampling is not None:
        plain = Sampling()
        given = {name: getattr(role.sampling, name) for name in _SAMPLING_KEYS}
        chosen = {name: value for name, value in given.items() if value != getattr(plain, name)}
        data["sampling"] = {n: list(v) if isinstance(v, tuple) else v for n, v in chosen.items()}
    return data


def from_document(data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the workflow that a document without faults declares."""
    given = dict(data["until"])
    return {
        "roles": tuple(_role(role) for role in data["roles"]),
        "until": ENDINGS[given.pop("kind")](**given),
        **{name: data[name] for name in _SETTINGS if name in data},
    }


def _role(data: Mapping[str, Any]) -> Role:
    given = dict(data)
    for key in ("tools", "skip"):
        if key in given:
            given[key] = tuple(given[key])
    if given.get("sampling") is not None:
        chosen: dict[str, Any] = {n: tuple(v) if n == "stop" else v for n, v in given["sampling"].items()}
        given["sampling"] = Sampling(**chosen)
    return Role(**given)


class DocumentReading(NamedTuple):
    """A document as read from text; `data` is `None` if it has issues."""

    data: dict[str, Any] | None
    issues: tuple[FormatIssue, ...]


def read_document_text(text: str, kind: Literal["toml", "json"]) -> DocumentReading:
    """Read and check a workflow document; never raises. Places of issues are those of the words that are wrong."""
    try:
        data = _parse(text, kind)
    except _Unparsed as error:
        code, message, at = error.args
        return DocumentReading(None, (FormatIssue(code, message, at, len(text)),))
    issues = tuple(FormatIssue(fault.code, str(fault), *_place(text, fault.value)) for fault in faults_of(data))
    return DocumentReading(None if issues else data, issues)


class _Unparsed(Exception):
    """The text cannot be parsed: code, message, place."""


def _parse(text: str, kind: str) -> dict[str, Any]:
    if kind == "json":
        try:
            value: dict[str, Any] = read_json(text, strict=True).value
        except ReadingError as error:
            raise _Unparsed("not_json", f"Invalid JSON: {error}", min(error.position, len(text))) from None
        return value
    # Inside the function: only workflows read from files need it, and importing the SDK must stay quick.
    import tomllib

    try:
        return tomllib.loads(text)
    # Deeply nested arrays exhaust the recursion of `tomllib`, and huge numbers raise a plain ValueError.
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        # `TOMLDecodeError` has its place only in its words before Python 3.14.
        found = re.search(r"line (\d{1,9}), column (\d{1,9})", str(error))
        at = len(text)
        if found:
            lines = text.split("\n")[: int(found.group(1)) - 1]
            at = sum(len(line) + 1 for line in lines) + int(found.group(2)) - 1
        raise _Unparsed("not_toml", f"Invalid TOML: {error}", min(at, len(text))) from None


def _place(text: str, value: str) -> tuple[int, int]:
    """The place of a wrong value in the text; the whole document if it cannot be found."""
    if not value:
        return 0, len(text)
    # Quoted forms first: the bare word may stand in a comment or inside another text.
    for written in (json.dumps(value, ensure_ascii=False), f"'{value}'", value, json.dumps(value)[1:-1]):
        if (start := text.find(written)) >= 0:
            return start, start + len(written)
    return 0, len(text)
