"""S10: search: rankings against a recorded oracle, one batch against single calls, recall on multi-hop questions.

    python benchmarks/search.py [--json] [--quick]

The oracle is the ranking that another BM25 (rank_bm25, white space, texts without titles) recorded for 250 questions
over 4,937 passages; a difference is any difference in the first ten. Batch and single calls take the same way, through
the executor, on an open index, and are measured in turn. Recall counts gold titles among the first ten passages.
HotpotQA is pooled: all paragraphs of all its questions make one corpus. The hashing embedder knows no meaning; its
figures say that dense and hybrid search work, not how well a model would do. The data are public samples that lie
beside the checkout; without them, the rows say so.

What bounds a batch: single calls cost 0.35 to 0.4 ms each, most of it the call. A batch pays the call once, and per
1,000 queries about 20 ms of BM25 (three quarters of it numpy: adding up 1.3 million scores, looking for the greatest of
5 million), 15 ms for analysing queries and laying out passages, and 35 ms in which the executor checks and copies 3 MB
of results as JSON. That last part is the same for single calls, and is the largest that is left.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measure import Row, in_turn, script

DATA = Path(os.environ.get("CONCERTINO_TEST_DATA", Path(__file__).parents[2] / "shared" / "data"))
QUERIES = 1000
OPENING = """
import asyncio, json, sys, time
from concertino_search import IndexOptions
from concertino_search.index import open_index
from pathlib import Path
async def work():
    began = time.perf_counter()
    index = await open_index(sys.argv[1], cache=Path(sys.argv[2]))
    await index.search(["who directed it"], 5)
    return time.perf_counter() - began
import concertino_search.index
print(asyncio.run(work()) * 1000)
"""


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_bytes().splitlines()]


def rows(quick: bool) -> list[Row]:
    """All figures."""
    if not DATA.is_dir():
        note = "no data: point CONCERTINO_TEST_DATA at the folder of data samples"
        return [Row("S10", "search", None, "", note=note)]
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        return _rows(cache, 100 if quick else QUERIES, 1 if quick else 3)


def _rows(cache: Path, count: int, repeat: int) -> list[Row]:
    return [
        asyncio.run(_oracle(cache)),
        *_building(cache, repeat),
        *_batches(cache, "bm25", count, repeat),
        *_batches(cache, "dense", count // 4, repeat),
        *asyncio.run(_recall(cache)),
    ]


async def _oracle(cache: Path) -> Row:
    from concertino_search import IndexOptions
    from concertino_search.index import open_index

    options = IndexOptions(analyser="whitespace", variant="okapi", titles=False)
    index = await open_index(DATA / "bm25_hotpot_pool" / "corpus.jsonl", options, cache=cache)
    questions = _lines("bm25_hotpot_pool/queries_250.jsonl")
    found = await index.search([row["question"] for row in questions], 10)
    wrong = sum(
        [hit.passage.title for hit in hits] != row["bm25_top50"][:10]
        for hits, row in zip(found, questions, strict=True)
    )
    return Row(
        "S10", "BM25: questions whose first ten differ from the oracle's", 100 * wrong / len(questions), "%", 1.0
    )


def _building(cache: Path, repeat: int) -> list[Row]:
    from concertino_search import IndexOptions
    from concertino_search.index import build_index

    corpus = DATA / "bm25_hotpot_pool" / "corpus.jsonl"
    seconds = []
    for number in range(repeat):
        began = time.perf_counter()
        asyncio.run(build_index(corpus, cache / f"built-{number}", IndexOptions()))
        seconds.append(time.perf_counter() - began)
    command = [sys.executable, "-c", OPENING, str(corpus), str(cache / "opened")]
    opening = [float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(4)]
    return [
        Row("S10", "building an index, 4,937 passages", min(seconds), "s"),
        Row("S10", "opening it in a fresh process, with one search", min(opening[1:]), "ms"),
    ]


def _batches(cache: Path, mode: Any, count: int, repeat: int) -> list[Row]:
    from concertino import Call, Executor, Pool
    from concertino_search import Corpus, IndexOptions, corpus_tools
    from concertino_search.index import HashingEmbedder

    options = IndexOptions(embedder=HashingEmbedder() if mode == "dense" else None)
    corpus = Corpus(DATA / "bm25_hotpot_pool" / "corpus.jsonl", options, cache=cache)
    tool = corpus_tools(corpus, mode=mode, max_queries=QUERIES, max_chars=50_000_000, timeout=None)[0]
    pool, queries = Pool.of(tool), _questions(count)

    async def run(batches: list[list[str]]) -> list[list[str]]:
        async with Executor() as executor:
            await executor.run([Call("search", {"queries": ["warm"]})], pool)
            began, found = time.perf_counter(), []
            for batch in batches:
                seen = (await executor.run([Call("search", {"queries": batch})], pool))[0]
                found += seen.content["results"]
            took.append(time.perf_counter() - began)
            return [[passage["id"] for passage in result["passages"]] for result in found]

    took: list[float] = []
    systems = {"single": [[query] for query in queries], "batch": [queries]}
    given: dict[str, list[list[str]]] = {}

    def measured(name: str) -> float:
        given[name] = asyncio.run(run(systems[name]))
        return took[-1] * 1000

    seen = in_turn({name: lambda name=name: measured(name) for name in systems}, repeat)  # type: ignore[misc]
    single, batch = min(seen["single"]), min(seen["batch"])
    same = "the same passages" if given["single"] == given["batch"] else "DIFFERENT PASSAGES"
    return [
        Row("S10", f"{mode}: {count:,} queries, one call each", single, "ms"),
        Row("S10", f"{mode}: {count:,} queries in one call", batch, "ms", note=same),
        Row("S10", f"{mode}: one call, as a share of single calls", 100 * batch / single, "%", 20.0),
    ]


def _questions(count: int) -> list[str]:
    """Distinct questions of five sets, then titles."""
    found = [row["question"] for row in _lines("bm25_hotpot_pool/queries_250.jsonl")]
    found += [row["question"] for row in _lines("hotpotqa/items_150.jsonl")]
    for name in ("bamboogle", "musique_100", "2wiki_100"):
        found += [row["question"] for row in _lines(f"multihop_questions/{name}.jsonl")]
    found += [row["title"] for row in _lines("bm25_hotpot_pool/corpus.jsonl")]
    return list(dict.fromkeys(found))[:count]


async def _recall(cache: Path) -> list[Row]:
    from concertino_search import IndexOptions
    from concertino_search.index import HashingEmbedder, open_index

    pooled = {p["title"]: p["text"] for row in _lines("hotpotqa/items_150.jsonl") for p in row["paragraphs"]}
    corpus = cache / "hotpotqa.jsonl"
    corpus.write_text("".join(json.dumps({"title": t, "text": x}) + "\n" for t, x in pooled.items()), encoding="utf-8")
    sets = {
        "HotpotQA pool, 250 questions": (
            DATA / "bm25_hotpot_pool" / "corpus.jsonl",
            [(row["question"], row["gold_titles"]) for row in _lines("bm25_hotpot_pool/queries_250.jsonl")],
        ),
        f"HotpotQA, 150 questions, {len(pooled):,} passages": (
            corpus,
            [(row["question"], row["supporting_facts"]["title"]) for row in _lines("hotpotqa/items_150.jsonl")],
        ),
    }
    embedder = _real_embedder() or HashingEmbedder()
    found = []
    for name, (path, questions) in sets.items():
        index = await open_index(path, IndexOptions(embedder=embedder), cache=cache)
        for mode in ("bm25", "dense", "hybrid"):
            hits = await index.search([question for question, _ in questions], 10, mode=mode)
            titles = [{hit.passage.title for hit in part} for part in hits]
            recall = [len(t & set(gold)) / len(set(gold)) for t, (_, gold) in zip(titles, questions, strict=True)]
            note = "" if mode == "bm25" else embedder.name
            found.append(Row("S10", f"recall@10 {mode}: {name}", 100 * sum(recall) / len(recall), "%", note=note))
    return found


def _real_embedder() -> Any:
    """An embedder of `CONCERTINO_BENCH_ENCODER=module:function`, a function that gives an object with `encode`."""
    named = os.environ.get("CONCERTINO_BENCH_ENCODER", "")
    if not named:
        return None
    from importlib import import_module

    from concertino_search.index import EncodingEmbedder

    module, _, function = named.partition(":")
    return EncodingEmbedder(getattr(import_module(module), function)(), name=named)


if __name__ == "__main__":
    sys.exit(script(rows, __doc__))
