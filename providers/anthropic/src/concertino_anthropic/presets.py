"""What is known of each Claude model: its dated prices, its limits, and how it thinks; the facts are in `models.toml`.

Invariant: a model that is not in the table has no price, and nothing is sent to it that a model may refuse.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Literal

from concertino import Prices

Thinking = Literal["on", "off", "budget", ""]
_DAY = re.compile(r"-20\d{6}$")


@dataclass(frozen=True, slots=True)
class Preset:
    """One model.

    Attributes:
        name: by which the API knows it.
        prices: $ per million tokens; None for unknown. What writing into the cache costs is that of five minutes.
        cache_write_1h: $ per million tokens written into the cache for an hour.
        context: tokens of the context window, if known.
        max_output: the most tokens of a reply, thoughts included.
        thinking: what it does when a request says nothing; `budget` if it thinks only with a number of tokens for it,
            empty if that is unknown.
        source: where the prices were read.
    """

    name: str
    prices: Prices | None = None
    cache_write_1h: float | None = None
    context: int | None = None
    max_output: int = 32_000
    thinking: Thinking = ""
    source: str = ""


@lru_cache(maxsize=1)
def presets() -> Mapping[str, Preset]:
    """All models of the table, by name."""
    text = (files(__package__) / "models.toml").read_text(encoding="utf-8")
    return {line["name"]: _preset(**line) for line in tomllib.loads(text)["model"]}


def _preset(
    name: str,
    context: int,
    max_output: int,
    thinking: Thinking,
    source: str,
    cache_write_1h: float,
    as_of: object,
    **prices: float,
) -> Preset:
    long_from = int(prices.pop("long_from", 0)) or None
    known = Prices(**prices, as_of=str(as_of), long_from=long_from)
    return Preset(name, known, cache_write_1h, context, max_output, thinking, source)


def preset_of(model: str) -> Preset:
    """What is known of a model; a dated name (`claude-x-20260131`) is looked up without its date."""
    table = presets()
    return table.get(model) or table.get(_DAY.sub("", model)) or Preset(model)
