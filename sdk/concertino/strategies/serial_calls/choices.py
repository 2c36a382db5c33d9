"""The models that a tool offers under aliases: written into a tool's JSON, and read out of it again.

ToolOrchestra's policy chooses a model by an argument of the call: `search(model="search-2")`. Which aliases there are,
what each is good at, what it costs and how long it takes stands in the description of that argument. An alias is a role
of the pool (`pool.bind(**{"search-2": "vllm/qwen3-4b"})`), so the models behind the aliases change from run to run, or
from one training example to the next, while the policy reads aliases only.

The released tool lists hold the aliases as prose (`Choices: ['a', 'b']`), with a table of prices; ours hold an `enum`
too. Both are read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from concertino.core.errors import PoolError, UsageError
from concertino.core.usage import Prices
from concertino.members.specs import ModelSpec

_LISTED = re.compile(r"Choices: ?\[([^\[\]\n]*)\]")
_QUOTED = re.compile(r"'([^'\n]*)'|\"([^\"\n]*)\"")
_AMOUNT = re.compile(r"\${0,2}(\d{1,9}(?:\.\d{1,9})?)")
_SECONDS = re.compile(r"(\d{1,6}(?:\.\d{1,6})?) ?s")
_HEADING = "Model | price per million input tokens | price per million output tokens | average latency"
_COLUMNS = 4


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model as one tool offers it.

    Attributes:
        alias: what the orchestrator writes, and the role of the pool that stands for it.
        text: strengths and weaknesses, a sentence.
        prices: $ per million tokens, `None` when unknown.
        seconds: how long a call takes on average, `None` when unknown.
    """

    alias: str
    text: str = ""
    prices: Prices | None = None
    seconds: float | None = None


class BoundModels(Protocol):
    """What is read of a pool: the models that are bound to its roles."""

    @property
    def roles(self) -> Mapping[str, str]:
        """Model names by role."""

    def model(self, role_or_name: str) -> ModelSpec:
        """The model of a role."""


def choices_of(
    pool: BoundModels, aliases: Sequence[str], seconds: Mapping[str, float] | None = None
) -> list[ModelChoice]:
    """The choices that aliases are in a pool: described and priced as the models bound to them.

    Args:
        pool: with each alias bound as a role.
        aliases: in the order in which they are shown.
        seconds: average latency by alias, where it was measured.

    Raises:
        PoolError: an alias is bound to no model.
    """
    for alias in aliases:
        if alias not in pool.roles:
            raise PoolError(f"the alias {alias!r} is bound to no model; pool.bind(**{{{alias!r}: 'provider/model'}})")
    models = [pool.model(alias) for alias in aliases]
    times = seconds or {}
    return [
        ModelChoice(alias, model.description, model.prices, times.get(alias))
        for alias, model in zip(aliases, models, strict=True)
    ]


def write_choice(purpose: str, choices: Sequence[ModelChoice]) -> dict[str, Any]:
    """The JSON schema of an argument that takes one of the choices.

    Raises:
        UsageError: no choice, two of one alias, or an alias with a quote or a line break.
    """
    aliases = [choice.alias for choice in choices]
    if not choices or len(set(aliases)) < len(aliases):
        raise UsageError(f"choices {aliases}: expected at least one, each alias once")
    for alias in aliases:
        if not alias or any(sign in alias for sign in "'\"[]|\n"):
            raise UsageError(f"the alias {alias!r} cannot be listed; expected a name without quotes, brackets or '|'")
    told = " ".join(f"{c.alias}: {' '.join(c.text.split()).rstrip('.')}." for c in choices if c.text.strip())
    rows = [_row(choice) for choice in choices if choice.prices or choice.seconds is not None]
    table = "\n".join([_HEADING, *rows]) if rows else ""
    text = f"{purpose} Choices: [{', '.join(map(repr, aliases))}]. {told}".rstrip()
    return {"type": "string", "enum": aliases, "description": "\n".join(filter(None, [text, table]))}


def _row(choice: ModelChoice) -> str:
    prices = (f"${choice.prices.input:g}", f"${choice.prices.output:g}") if choice.prices else ("unknown", "unknown")
    seconds = "unknown" if choice.seconds is None else f"{choice.seconds:g}s"
    return " | ".join([choice.alias, *prices, seconds])


def read_choices(schema: Mapping[str, Any]) -> tuple[ModelChoice, ...]:
    """The choices of one argument, from its JSON schema; none if it offers none."""
    text = schema.get("description")
    text = text if isinstance(text, str) else ""
    listed = schema.get("enum")
    if isinstance(listed, (list, tuple)):
        aliases = [alias for alias in listed if isinstance(alias, str)]
    elif found := _LISTED.search(text):
        aliases = [one or other for one, other in _QUOTED.findall(found.group(1))]
    else:
        return ()
    table = _read_table(text)
    return tuple(table.get(alias, ModelChoice(alias)) for alias in dict.fromkeys(aliases))


def _read_table(text: str) -> dict[str, ModelChoice]:
    """The rows `alias | $1.25 | $10 | 31s` of a description."""
    table: dict[str, ModelChoice] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) != _COLUMNS or cells[0] == "Model":
            continue
        read, written = _AMOUNT.fullmatch(cells[1]), _AMOUNT.fullmatch(cells[2])
        prices = Prices(float(read.group(1)), float(written.group(1))) if read and written else None
        seconds = _SECONDS.fullmatch(cells[3])
        table[cells[0]] = ModelChoice(cells[0], "", prices, float(seconds.group(1)) if seconds else None)
    return table


def choices_by_tool(tools: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Aliases by tool and argument, for those arguments whose aliases stand in prose, where no schema checks them."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for tool in tools:
        function = tool["function"]
        properties = function.get("parameters", {}).get("properties", {})
        prose = {
            name: tuple(choice.alias for choice in read_choices(schema))
            for name, schema in properties.items()
            # An `enum` is checked by the executor, with the schema.
            if isinstance(schema, Mapping) and "enum" not in schema
        }
        if offered := {name: aliases for name, aliases in prose.items() if aliases}:
            found[function["name"]] = offered
    return found
