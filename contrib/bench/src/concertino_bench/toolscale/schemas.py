"""What a model is asked for, step by step, as JSON schemas; and what is wrong with what it wrote, in words for it.

A check is a function of data that gives its problems, one sentence each. The invariant: nothing here runs a model's
code; it is only read.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from concertino.schema import SchemaRefused, Validator, admit, compile_schema, explain

MODULES = ("collections", "datetime", "decimal", "functools", "itertools", "json", "math", "re", "statistics", "string")
"""What the code of a tool may import."""
# Not a protection, which the sandbox is: such a tool would do something else than work on its tables.
_FORBIDDEN = frozenset({"open", "exec", "eval", "compile", "input", "globals", "breakpoint", "__import__"})
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_TEXT = {"type": "string", "minLength": 1}
_NAMES = {"type": "array", "items": _TEXT, "minItems": 1}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


SCHEMA_REPLY = _object(
    policy=_TEXT,
    tables={
        "type": "array",
        "minItems": 2,
        "items": {
            "type": "object",
            "properties": {
                "name": _TEXT,
                "key": _TEXT,
                "entry": {"type": "object"},
                "references": {"type": "object", "additionalProperties": {"type": "string"}},
            },
            "required": ["name", "key", "entry"],
            "additionalProperties": False,
        },
    },
)
SUBJECTS_REPLY = _object(subjects=_NAMES)
ENTRIES_REPLY = _object(entries={"type": "array", "items": {"type": "object"}, "minItems": 1})
REVIEW_REPLY = _object(problems={"type": "array", "items": _object(key=_TEXT, problem=_TEXT)})
TOOLS_REPLY = _object(
    tools={
        "type": "array",
        "minItems": 1,
        "items": _object(
            name=_TEXT, description=_TEXT, writes={"type": "boolean"}, parameters={"type": "object"}, code=_TEXT
        ),
    }
)
INTENTS_REPLY = _object(intents=_NAMES)
TASK_REPLY = _object(
    request=_TEXT,
    calls={"type": "array", "items": _object(name=_TEXT, arguments={"type": "object"})},
    required={"type": "array", "items": _TEXT},
)


@dataclass(frozen=True)
class TableSchema:
    """A table: its name, the field that is its key, the schema of an entry, and fields that name entries elsewhere."""

    name: str
    key: str
    entry: Mapping[str, Any]
    references: Mapping[str, str]

    @cached_property
    def validator(self) -> Validator:
        """The compiled schema of an entry."""
        return compile_schema(dict(self.entry))


@dataclass(frozen=True)
class Schema:
    """A database's tables, and the policy of the domain."""

    policy: str
    tables: Mapping[str, TableSchema]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Schema:
        """A schema as a model wrote it, after `schema_problems` found nothing."""
        tables = [TableSchema(t["name"], t["key"], t["entry"], t.get("references") or {}) for t in data["tables"]]
        return cls(data["policy"], {table.name: table for table in tables})


def schema_problems(data: Mapping[str, Any]) -> list[str]:
    """What is wrong with a database's schema."""
    problems, names = [], [table["name"] for table in data["tables"]]
    if len(set(names)) < len(names):
        problems.append("two tables have one name")
    for place, table in enumerate(data["tables"]):
        where, entry = f"table {table['name']!r}", table["entry"]
        if not _NAME.fullmatch(table["name"]):
            problems.append(f"{where}: expected a name in small letters, digits and _, such as 'bookings'")
        try:
            admit(entry)
        except SchemaRefused as error:
            problems.append(f"{where}: its entry is not a JSON schema: {error}")
            continue
        properties = entry.get("properties") or {}
        if entry.get("type") != "object" or not properties:
            problems.append(f"{where}: expected an entry of type object with properties")
        elif properties.get(table["key"], {}).get("type") != "string" or table["key"] not in entry.get("required", ()):
            problems.append(f"{where}: its key {table['key']!r} must be a required property of type string")
        for field, other in (table.get("references") or {}).items():
            if field not in properties:
                problems.append(f"{where}: references has the field {field!r}, which the entry has not")
            # Entries are written table by table, so a reference can only lead to one before.
            if other not in names[:place]:
                problems.append(f"{where}: {field!r} refers to {other!r}; expected a table that stands before it")
    return problems


def entry_problems(schema: Schema, table: str, entry: Any, key: str = "") -> list[str]:
    """What is wrong with one entry alone."""
    known = schema.tables[table]
    violations = known.validator.check(entry)
    if violations:
        return [explain(violations, known.validator).partition("\n")[0]]
    if key and entry[known.key] != key:
        return [f"its {known.key} is {entry[known.key]!r}, expected {key!r}"]
    return []


def entries_problems(
    schema: Schema, table: str, entries: Sequence[Any], database: Mapping[str, Mapping[str, Any]]
) -> dict[int, str]:
    """What is wrong with new entries of a table, by their place: form, keys used twice, references to nothing."""
    found: dict[int, str] = {}
    known, keys = schema.tables[table], set(database.get(table, ()))
    for place, entry in enumerate(entries):
        problems = entry_problems(schema, table, entry)
        if not problems:
            if entry[known.key] in keys:
                # The later of two is refused, since entries that refer to the earlier one may exist.
                problems.append(f"the {known.key} {entry[known.key]!r} is taken")
            keys.add(entry[known.key])
            for field, other in known.references.items():
                named = entry.get(field)
                for each in named if isinstance(named, list) else [named]:
                    if each is not None and each not in database.get(other, ()):
                        problems.append(f"{field} names {each!r}, which is not an entry of {other}")
        if problems:
            found[place] = problems[0]
    return found


def tools_problems(tools: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What is wrong with tools before they are tried, by name."""
    found: dict[str, str] = {}
    for tool in tools:
        name = tool["name"]
        if name in found or sum(1 for other in tools if other["name"] == name) > 1:
            found[name] = "two tools have this name"
            continue
        problem = _tool_problem(tool)
        if problem:
            found[name] = problem
    return found


def _tool_problem(tool: Mapping[str, Any]) -> str:
    if not _NAME.fullmatch(tool["name"]):
        return "expected a name in small letters, digits and _, such as 'cancel_booking'"
    try:
        admit(tool["parameters"])
    except SchemaRefused as error:
        return f"its parameters are not a JSON schema: {error}"
    if tool["parameters"].get("type") != "object":
        return "its parameters must be a JSON schema of type object"
    try:
        tree = ast.parse(tool["code"])
    except (SyntaxError, ValueError) as error:
        return f"its code is not Python: {error}"
    problems = [*_structure(tree, tool), *_forbidden(tree)]
    return problems[0] if problems else ""


def _structure(tree: ast.Module, tool: Mapping[str, Any]) -> Iterable[str]:
    """Whether the code defines the function with the parameters that are declared."""
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in tree.body:
        if not isinstance(node, (ast.FunctionDef, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.Expr)):
            yield f"line {node.lineno}: expected only imports, constants and functions outside of functions"
    function = functions.get(tool["name"])
    if function is None:
        yield f"its code defines no function {tool['name']!r}"
        return
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    names = [argument.arg for argument in given]
    declared = [*(tool["parameters"].get("properties") or {})]
    if not names or names[0] != "db" or sorted(names[1:]) != sorted(declared) or function.args.vararg:
        yield f"its function takes ({', '.join(names)}); expected (db, {', '.join(declared)}), as its parameters say"
    optional = len(declared) - len(tool["parameters"].get("required") or [])
    defaults = len(function.args.defaults) + sum(default is not None for default in function.args.kw_defaults)
    if optional > defaults:
        yield f"{optional} of its parameters are not required, but {defaults} have a default in the code"


def _forbidden(tree: ast.Module) -> Iterable[str]:
    """What a tool's code has no business with; the sandbox keeps it in, but such a tool is refused early."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            for name in names:
                if name.partition(".")[0] not in MODULES:
                    yield f"line {node.lineno}: it imports {name!r}; only {', '.join(MODULES)} may be imported"
        if isinstance(node, ast.Name) and node.id in _FORBIDDEN:
            yield f"line {node.lineno}: it uses {node.id}; a tool works on db and its arguments alone"
        # Double underscores lead around the list of names above.
        if isinstance(node, ast.Attribute) and node.attr.startswith("__"):
            yield f"line {node.lineno}: it uses .{node.attr}; a tool works on db and its arguments alone"
