"""The cache of indexes on disk: each is built once per content, mapped by any number of processes, and never changed.

    <cache>/<key>/            one index; the key is a hash of the corpus' content and of all options
        meta.json             written last: what it is, and the size of every other file
        passages.jsonl …      the passages, the BM25 matrix and, with an embedder, the vectors
    <cache>/stamps/*.json     which content a path had when it was last read, so that an unchanged corpus is not hashed

Invariant: a folder under its final name is complete. An index is built under another name and renamed; of two that are
built at once, the second finds the first one's and uses it. A folder whose files do not have their sizes counts as
absent and is built again.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
import shutil
import time
from pathlib import Path
from typing import Any, Literal

import numpy as np

from concertino_search.analysis import analyser
from concertino_search.errors import CorpusError
from concertino_search.options import IndexOptions

from .bm25 import Bm25
from .corpus import corpus_files, corpus_hash, read_corpus
from .embedding import embed_all
from .index import META, Index, read_meta
from .passages import Passage, PassageStore
from .vectors import VectorIndex

_STAMPS, _BUILDING = "stamps", ".building-"
_PRIVATE = 0o700
"""Rights of a folder: a corpus may hold what other users may not read."""
_RACE = 2.0
"""Seconds after a change within which a second change may leave the same time stamp."""
_ABANDONED = 24 * 3600.0
"""Seconds after which an unfinished build is considered abandoned."""
_BATCH = 256
"""Passages that are analysed or embedded at once; between them, a build can be cancelled."""


def default_cache() -> Path:
    """Where indexes are kept: `CONCERTINO_SEARCH_CACHE`, or `concertino/search` in the user's cache folder."""
    named = os.environ.get("CONCERTINO_SEARCH_CACHE", "")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "concertino" / "search"


async def open_index(
    corpus: str | Path, options: IndexOptions | None = None, *, cache: Path | None = None, trust_stamps: bool = True
) -> Index:
    """The index of a corpus, built if there is none of its present content.

    It computes on the running loop, and gives others their turn between passages.

    Args:
        corpus: a JSON Lines file, a document, or a folder of these.
        options: how it is indexed.
        cache: where indexes are kept, by default `default_cache()`.
        trust_stamps: take a corpus whose files have their names, sizes and times for unchanged; else hash it.

    Raises:
        CorpusError: the corpus cannot be read; names the file and line.
    """
    path, options, cache = Path(corpus), options or IndexOptions(), cache or default_cache()
    stamp = _Stamp(cache, path, options)
    content = stamp.content() if trust_stamps else None
    if content is None:
        content = corpus_hash(path)
    folder = cache / _key(content, options)
    if read_meta(folder) is None:
        await build_index(path, folder, options)
    stamp.write(content, folder)
    return Index(folder, options.embedder)


def index_state(
    corpus: Path, options: IndexOptions, cache: Path | None = None
) -> tuple[Literal["ready", "stale", "absent"], Path, int]:
    """Whether a corpus has an index of its present content; builds nothing.

    Returns:
        `stale` where there is only one of an older content; the folder of the present one; how many passages it has.

    Raises:
        CorpusError: the corpus does not exist.
    """
    cache = cache or default_cache()
    stamp = _Stamp(cache, corpus, options)
    folder = cache / _key(stamp.content() or corpus_hash(corpus), options)
    meta = read_meta(folder)
    if meta is not None:
        return "ready", folder, int(meta["passages"])
    return ("stale" if stamp.known_before else "absent"), folder, 0


async def build_index(corpus: Path, folder: Path, options: IndexOptions) -> None:
    """Build an index at `folder`, whole or not at all.

    Raises:
        CorpusError: the corpus cannot be read; names the file and line.
    """
    building = _begin(folder)
    try:
        await _write(corpus, building, options)
        _put(building, folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)


async def _write(corpus: Path, folder: Path, options: IndexOptions) -> None:
    analyse = analyser(options.analyser)
    passages: list[Passage] = []
    terms: list[list[str]] = []
    for passage in read_corpus(corpus, passage_chars=options.passage_chars):
        passages.append(passage)
        terms.append(analyse(passage.indexed if options.titles else passage.text))
        if len(passages) % _BATCH == 0:
            await asyncio.sleep(0)
    PassageStore.write(folder, passages)
    Bm25.build(terms, k1=options.k1, b=options.b, variant=options.variant).save(folder)
    if options.embedder is not None:
        parts = []
        for start in range(0, len(passages), _BATCH):
            texts = [p.indexed if options.titles else p.text for p in passages[start : start + _BATCH]]
            parts.append(await embed_all(options.embedder, texts, "passage"))
            await asyncio.sleep(0)
        VectorIndex.write(folder, np.concatenate(parts), exact_up_to=options.exact_up_to)
    _seal(folder, options, len(passages))


def _seal(folder: Path, options: IndexOptions, passages: int) -> None:
    """Write the description last: a folder that has it is complete."""
    sizes = {file.name: file.stat().st_size for file in sorted(folder.iterdir())}
    meta = {"options": options.to_json(), "passages": passages, "files": sizes}
    (folder / META).write_text(json.dumps(meta, indent=1), encoding="utf-8")


def _begin(folder: Path) -> Path:
    """An empty folder beside the final one, to build in."""
    folder.parent.mkdir(parents=True, exist_ok=True, mode=_PRIVATE)
    _sweep(folder.parent)
    building = folder.parent / f"{_BUILDING}{folder.name[:16]}-{os.getpid()}-{secrets.token_hex(4)}"
    building.mkdir(_PRIVATE)
    return building


def _put(building: Path, folder: Path) -> None:
    """Give a finished index its final name; a complete one that is there already is kept."""
    for _ in range(3):
        try:
            building.rename(folder)
        except OSError:
            if read_meta(folder) is not None:
                return
            # A damaged index is in the way. It is renamed, since another process may still have it open.
            aside = folder.with_name(f"{_BUILDING}damaged-{secrets.token_hex(4)}")
            try:
                folder.rename(aside)
            except FileNotFoundError:
                continue
            shutil.rmtree(aside, ignore_errors=True)
        else:
            return
    raise CorpusError(f"the index cannot be put at {folder}; is the cache folder writable?")


def _key(content: str, options: IndexOptions) -> str:
    text = json.dumps([content, options.to_json()], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def _sweep(cache: Path) -> None:
    """Remove unfinished builds of processes that died."""
    for folder in cache.glob(f"{_BUILDING}*"):
        try:
            old = time.time() - folder.stat().st_mtime > _ABANDONED
        except OSError:
            continue
        if old:
            shutil.rmtree(folder, ignore_errors=True)


class _Stamp:
    """Which content a path had, and which index was the last one of the same path and options."""

    def __init__(self, cache: Path, corpus: Path, options: IndexOptions) -> None:
        text = json.dumps([str(corpus.resolve()), options.to_json()], sort_keys=True)
        self._file = cache / _STAMPS / f"{hashlib.sha256(text.encode()).hexdigest()[:40]}.json"
        self._cache = cache
        self._fingerprint, self._changed = _fingerprint(corpus)
        try:
            self._known: dict[str, Any] = json.loads(self._file.read_bytes())
        except (OSError, ValueError):
            self._known = {}

    def content(self) -> str | None:
        """The hash of the content, if the files look as they did; None where they must be read."""
        known = self._known
        if known.get("fingerprint") == self._fingerprint and known.get("at", 0) > self._changed + _RACE:
            return str(known["content"])
        return None

    @property
    def known_before(self) -> bool:
        """Whether this path was ever indexed with these options."""
        return bool(self._known.get("index"))

    def write(self, content: str, folder: Path) -> None:
        """Store the content's hash, and remove the index before the last one of this path."""
        known = self._known
        if known.get("content") == content and self.content() is not None:
            return
        before = known.get("index", "") if known.get("index") != folder.name else known.get("before", "")
        if known.get("before", "") not in ("", before, folder.name):
            shutil.rmtree(self._cache / str(known["before"]), ignore_errors=True)
        stamp = {
            "fingerprint": self._fingerprint,
            "content": content,
            "at": time.time(),
            "index": folder.name,
            "before": before,
        }
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=_PRIVATE)
        temporary = self._file.with_suffix(f".{os.getpid()}-{secrets.token_hex(4)}")
        temporary.write_text(json.dumps(stamp), encoding="ascii")
        # Other processes may read it at any moment, and see the old one or the new one whole.
        temporary.replace(self._file)


def _fingerprint(corpus: Path) -> tuple[str, float]:
    """Names, sizes and times of a corpus' files as a hash, and the latest of the times."""
    digest, latest = hashlib.sha256(), 0.0
    for file in corpus_files(corpus):
        known = file.stat()
        # A copy may bring an old mtime along; the ctime is that of its arrival.
        latest = max(latest, known.st_mtime, known.st_ctime)
        # The inode tells a file from another one with its name, size and time.
        digest.update(
            f"{file}\0{known.st_size}\0{known.st_mtime_ns}\0{known.st_ino}\n".encode(errors="surrogateescape")
        )
    return digest.hexdigest(), latest
