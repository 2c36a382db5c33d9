"""The settings of what is published: the table `[providers.search]`, and variables of the environment.

    key           variable                      what it says
    corpus        CONCERTINO_SEARCH_CORPUS      a JSON Lines file, a document, or a folder of these
    analyser      CONCERTINO_SEARCH_ANALYSER    how its text is analysed, `english` unless set
    about         CONCERTINO_SEARCH_ABOUT       what it holds, for the descriptions that models read
    cache         CONCERTINO_SEARCH_CACHE       where indexes are kept
    web           CONCERTINO_SEARCH_WEB         a web back-end; without it, the first whose key or address is set
    fetch_allow   CONCERTINO_FETCH_ALLOW        private networks that pages may be fetched from

Invariant: a variable wins over the table, key by key; keys of services are read from the environment only.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from concertino import ProviderSettings, UsageError
from concertino.schema import suggestion

from .analysis import analyser
from .web.addresses import AddressGuard
from .web.backends import BACKENDS

VARIABLES = {
    "corpus": "CONCERTINO_SEARCH_CORPUS",
    "analyser": "CONCERTINO_SEARCH_ANALYSER",
    "about": "CONCERTINO_SEARCH_ABOUT",
    "cache": "CONCERTINO_SEARCH_CACHE",
    "web": "CONCERTINO_SEARCH_WEB",
    "fetch_allow": "CONCERTINO_FETCH_ALLOW",
}


@dataclass(frozen=True)
class SearchSettings:
    """What a person can set.

    Attributes:
        corpus: None for none.
        analyser, about: of the corpus.
        cache: where indexes are kept; None for the user's cache folder.
        web: name of a back-end; empty for the first that has what it needs.
        fetch_allow: networks such as `10.20.0.0/16`.
    """

    corpus: Path | None = None
    analyser: str = "english"
    about: str = ""
    cache: Path | None = None
    web: str = ""
    fetch_allow: tuple[str, ...] = ()


def read_settings(table: ProviderSettings | None = None, environ: Mapping[str, str] | None = None) -> SearchSettings:
    """The settings in force.

    Args:
        table: `[providers.search]`; relative paths count from its folder.
        environ: by default that of this process.

    Raises:
        UsageError: a key is unknown, or has a value that it cannot have; says where.
    """
    table = ProviderSettings() if table is None else table
    table.check(VARIABLES)
    environ = os.environ if environ is None else environ
    given = {key: environ.get(name, "").strip() for key, name in VARIABLES.items()}
    found: dict[str, Any] = {}
    for key in ("corpus", "cache"):
        found[key] = Path(given[key]) if given[key] else table.path(key)
    for key in ("analyser", "about", "web"):
        found[key] = given[key] or _text(table, key)
    found["web"] = found["web"].lower()
    networks = given["fetch_allow"].split(",") if given["fetch_allow"] else _texts(table, "fetch_allow")
    found["fetch_allow"] = tuple(filter(None, map(str.strip, networks)))
    where = {key: VARIABLES[key] if given[key] else f"{table.where}: {key}" for key in VARIABLES}
    return _checked(SearchSettings(**{**found, "analyser": found["analyser"] or "english"}), where)


def _checked(settings: SearchSettings, where: Mapping[str, str]) -> SearchSettings:
    try:
        analyser(settings.analyser)
    except UsageError as error:
        raise UsageError(f"{where['analyser']}: {error}") from None
    try:
        AddressGuard.of(settings.fetch_allow)
    except UsageError as error:
        raise UsageError(f"{where['fetch_allow']}: {error}") from None
    if settings.web and settings.web not in BACKENDS:
        hint = suggestion(settings.web, BACKENDS, f"expected one of {', '.join(BACKENDS)}")
        raise UsageError(f"{where['web']} = {settings.web!r}; {hint}")
    return settings


def _text(table: ProviderSettings, key: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise UsageError(f"{table.where}: {key} = {value!r}; expected text in quotes")
    return value


def _texts(table: ProviderSettings, key: str) -> list[str]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UsageError(f'{table.where}: {key} = {value!r}; expected a list such as ["10.20.0.0/16"]')
    return value
