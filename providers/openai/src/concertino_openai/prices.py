"""Prices of models, from a table with a date and a source for every entry.

The table `prices.toml` is part of the package. A file of the same form, named by the option `price_file` or by the
environment variable `CONCERTINO_OPENAI_PRICES`, is looked at first, and the prices of a pool win over both. A price
that is not in any table is unknown; it is never 0.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from concertino import Prices, SpecError

PRICE_FILE_ENV = "CONCERTINO_OPENAI_PRICES"
"""Environment variable that names a file of prices."""

_PRICES = ("input", "output", "cached", "cache_write", "long_from", "long_input", "long_output")
_FIELDS = {"model", *_PRICES, "as_of", "until", "source", "context", "note"}


@dataclass(frozen=True, slots=True)
class PriceEntry:
    """One line of a price table.

    Attributes:
        server: name of the preset.
        model: name of the model at that server.
        prices: $ per million tokens.
        source: where it was read.
        context: tokens of the context window, if known.
        until: the last day on which it holds, if that was announced.
        note: what the numbers leave out.
    """

    server: str
    model: str
    prices: Prices
    source: str
    context: int | None = None
    until: date | None = None
    note: str = ""


def price_table(file: str | Path | None = None) -> Mapping[tuple[str, str], PriceEntry]:
    """All entries that hold today, by server and model.

    Args:
        file: a table whose entries take precedence over the package's; by default the one that the environment names.

    Raises:
        SpecError: a file cannot be read as a price table; says where and why.
    """
    path = file or os.environ.get(PRICE_FILE_ENV)
    table = dict(_packaged())
    if path:
        table.update(_read(Path(path).expanduser()))
    today = date.today()
    return {key: entry for key, entry in table.items() if entry.until is None or entry.until >= today}


def find_price(server: str, model: str, file: str | Path | None = None) -> PriceEntry | None:
    """The entry of a model, None if its price is unknown. A dated name (`gpt-x-2026-01-31`) is looked up without it."""
    table = price_table(file)
    return table.get((server, model)) or table.get((server, _undated(model)))


def _undated(model: str) -> str:
    name, day = model[:-11], model[-10:]
    try:
        date.fromisoformat(day)
    except ValueError:
        return model
    return name if model[-11:-10] == "-" else model


@lru_cache(maxsize=1)
def _packaged() -> dict[tuple[str, str], PriceEntry]:
    return _parse((files(__package__) / "prices.toml").read_text(encoding="utf-8"), "prices.toml")


def _read(path: Path) -> dict[tuple[str, str], PriceEntry]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SpecError(f"price file {path}: {error.strerror}; correct price_file or {PRICE_FILE_ENV}") from error
    return _parse(text, str(path))


def _parse(text: str, place: str) -> dict[tuple[str, str], PriceEntry]:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"price file {place}: not TOML: {error}") from error
    entries = {}
    for server, lines in data.items():
        if not isinstance(lines, list) or not all(isinstance(line, dict) for line in lines):
            raise SpecError(f"price file {place}: {server}: expected [[{server}]] tables, one per model")
        for line in lines:
            entry = _entry(server, line, f"price file {place}: [[{server}]] {line.get('model', '')!r}")
            entries[server, entry.model] = entry
    return entries


def _entry(server: str, line: dict[str, Any], place: str) -> PriceEntry:
    if unknown := sorted(set(line) - _FIELDS):
        raise SpecError(f"{place}: unknown key {unknown[0]!r}; known: {', '.join(sorted(_FIELDS))}")
    if missing := [name for name in ("model", "input", "output", "as_of") if name not in line]:
        raise SpecError(f"{place}: {missing[0]!r} is missing; a price needs model, input, output and as_of")
    for name in _PRICES:
        value = line.get(name, 0.0)
        if type(value) not in (int, float):
            raise SpecError(f"{place}: {name} = {value!r}; expected $ per million tokens, a number")
    for name in ("as_of", "until"):
        if name in line and type(line[name]) is not date:
            raise SpecError(f"{place}: {name} = {line[name]!r}; expected a date such as 2026-01-31, without quotes")
    prices = Prices(**{name: line[name] for name in _PRICES if name in line}, as_of=line["as_of"].isoformat())
    return PriceEntry(
        server,
        str(line["model"]),
        prices,
        str(line.get("source", "")),
        line.get("context"),
        line.get("until"),
        str(line.get("note", "")),
    )
