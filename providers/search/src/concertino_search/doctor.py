"""What the doctor reports: whether the index of the corpus is up to date, and which web service is used."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from concertino import Finding

from .errors import CorpusError
from .options import IndexOptions
from .settings import SearchSettings
from .web.backends import BACKENDS, chosen_backend

_TABLE = "[providers.search]"


def findings(settings: SearchSettings) -> Iterator[Finding]:
    """Look at the corpus, its index and the web back-ends. Asks no service; hashes a corpus that seems changed."""
    yield _corpus(settings)
    yield _web(settings)


def _corpus(settings: SearchSettings) -> Finding:
    from .index.cache import index_state

    subject = "tool search/search"
    if settings.corpus is None:
        return Finding("ok", subject, f"not published: {_TABLE} names no corpus")
    try:
        state, folder, passages = index_state(settings.corpus, IndexOptions(analyser=settings.analyser), settings.cache)
    except (CorpusError, OSError) as error:
        return Finding("error", subject, str(error), f"correct corpus in {_TABLE}")
    if state == "ready":
        return Finding("ok", subject, f"{settings.corpus}: an index of {passages:,} passages at {folder}")
    seen = "its index is of an older content" if state == "stale" else "it has no index yet"
    text = f"{settings.corpus}: {seen}; the first call builds one"
    return Finding("warning", subject, text, _command(settings))


def _command(settings: SearchSettings) -> str:
    """What builds the index of these settings."""
    words = ["concertino", "search-index", str(settings.corpus)]
    words += ["--analyser", settings.analyser] if settings.analyser != SearchSettings.analyser else []
    words += ["--cache", str(settings.cache)] if settings.cache else []
    return shlex.join(words)


def _web(settings: SearchSettings) -> Finding:
    subject = "tool search/web_search"
    chosen = chosen_backend(settings.web)
    ready = [backend.name for backend in BACKENDS.values() if backend.needs and backend.configured]
    if chosen is None:
        needs = ", ".join(name for backend in BACKENDS.values() for name in backend.needs)
        return Finding("ok", subject, f"not published: none of {needs} is set, and {_TABLE} names no back-end")
    missing = [name for name in chosen.needs if name not in chosen.present]
    if missing:
        return Finding("error", subject, f"{chosen.name} needs {missing[0]}, which is not set", f"set {missing[0]}")
    others = [name for name in ready if name != chosen.name]
    also = f"; also set up: {', '.join(others)}" if others else ""
    return Finding("ok", subject, f"asks {chosen.name}, which was not asked now{also}")
