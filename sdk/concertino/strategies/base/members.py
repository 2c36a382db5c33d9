"""The members of a pool as a strategy offers them: by visible name, with the argument that takes a plain text.

Many formats hand a member one text (`<agent_input>`, `<search>`). Which argument that is follows from the schema: the
first of `INPUTS` that it has, else its first required text, but never a choice of a model; for a list of texts, a list
of one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from concertino.schema import SchemaRefused, Validator, compile_schema
from concertino.text.foreign_text import FOREIGN, Quoting

INPUTS = ("agent_input", "subtask", "task", "question", "query", "queries", "prompt", "input", "text")
"""Names of arguments that take what a format hands over, the first that a schema has."""

# These arguments name who is to work; a sub-task written there would be refused as an unknown model.
_CHOICES = ("model", "model_id")
_ALL = frozenset(("string", "array", "object", "number", "integer", "boolean", "null"))


def types_of(schema: Any) -> frozenset[str]:
    """The JSON types that a property may have; all of them where the schema does not say."""
    if not isinstance(schema, Mapping):
        return _ALL
    for key in ("anyOf", "oneOf"):
        if isinstance(branches := schema.get(key), list):
            return frozenset[str]().union(*(types_of(branch) for branch in branches))
    for values in (schema.get("enum"), [schema["const"]] if "const" in schema else None):
        if isinstance(values, list) and "type" not in schema:
            return frozenset("string" if isinstance(value, str) else "number" for value in values)
    kind = schema.get("type")
    if "$ref" in schema:
        return _ALL - {"string"}
    return frozenset([kind] if isinstance(kind, str) else kind if isinstance(kind, list) else _ALL)


def function_lines(tools: Iterable[Mapping[str, Any]], quoting: Quoting = FOREIGN) -> str:
    """Function objects as a prompt lists them: one line of JSON for each, whatever its card says."""
    return "\n".join(quoting.json(json.dumps(tool, ensure_ascii=False)) for tool in tools)


class Offer:
    """One member.

    Attributes:
        name: its visible name.
        description: what it is for.
        schema: of its arguments.
    """

    def __init__(self, tool: Mapping[str, Any]) -> None:
        function = tool["function"]
        self.name: str = function["name"]
        self.description: str = function.get("description") or ""
        self.schema: Mapping[str, Any] = function.get("parameters") or {}

    @property
    def properties(self) -> Mapping[str, Any]:
        """Schemas of its arguments by name."""
        found = self.schema.get("properties")
        return found if isinstance(found, Mapping) else {}

    @property
    def required(self) -> Sequence[str]:
        """Names of the arguments that must be given."""
        found = self.schema.get("required")
        return found if isinstance(found, list) else ()

    @cached_property
    def input(self) -> str:
        """The argument that takes a plain text, `""` if there is none."""
        texts = [name for name, schema in self.properties.items() if _takes_text(schema) and name not in _CHOICES]
        known = [name for name in INPUTS if name in texts]
        return next(iter(known or [name for name in texts if name in self.required]), "")

    def filled(self, text: Any) -> dict[str, Any]:
        """Arguments in which a text (or a template of one) is the input."""
        name = self.input
        if not name:
            return {INPUTS[0]: text}
        return {name: text if "string" in types_of(self.properties[name]) else [text]}

    @cached_property
    def validator(self) -> Validator | None:
        """What checks its arguments, as the executor will; `None` for a schema that no pool would admit."""
        try:
            return compile_schema(self.schema)
        except SchemaRefused:
            return None


def _takes_text(schema: Any) -> bool:
    if not isinstance(schema, Mapping) or "enum" in schema or "const" in schema:
        return False
    types = types_of(schema)
    return "string" in types or ("array" in types and types_of(schema.get("items")) == {"string"})


class Offers(Mapping[str, Offer]):
    """The members by visible name."""

    def __init__(self, tools: Iterable[Mapping[str, Any]]) -> None:
        self._tools = {tool["function"]["name"]: tool for tool in tools}
        self._made: dict[str, Offer] = {}

    def __getitem__(self, name: str) -> Offer:
        # Made on demand: a turn speaks of a few members, and a pool may have ten thousand.
        if name not in self._made:
            self._made[name] = Offer(self._tools[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)
