"""The index on disk: built once per content, whole or not at all, the same for every process."""

# ruff: noqa: ASYNC110, ASYNC220, ASYNC240
# Files and processes of a test may block its own loop.
from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from concertino_search import Corpus, CorpusError, IndexOptions
from concertino_search.errors import IndexDamaged
from concertino_search.index import HashingEmbedder, build_index, open_index
from concertino_search.index import cache as module
from concertino_search.index.index import Index

Rows = list[dict[str, str]]


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The corpora of which an index was really built."""
    seen: list[Path] = []
    write = module._write

    async def counted(corpus: Path, folder: Path, options: IndexOptions) -> None:
        seen.append(corpus)
        await write(corpus, folder, options)

    monkeypatch.setattr(module, "_write", counted)
    return seen


async def ids(index: Index, query: str, k: int = 2, **options: object) -> list[str]:
    return [hit.passage.id for hit in (await index.search([query], k, **options))[0]]  # type: ignore[arg-type]


def backdate(file: Path, seconds: float = 60) -> None:
    """A file of a minute ago, as far as its times say."""
    then = time.time() - seconds
    os.utime(file, (then, then))


async def test_a_batch_gives_each_query_its_own_ranking(birds: Path, cache: Path) -> None:
    index = await open_index(birds, cache=cache)
    found = await index.search(["fish under water", "worms", "fish under water", "nothing of it"], 2)
    assert [[hit.passage.id for hit in hits] for hits in found] == [
        ["penguin", "owl"],
        ["kiwi"],
        ["penguin", "owl"],
        [],
    ]
    assert found[0][0].score > found[0][1].score > 0
    assert await index.search([]) == []


async def test_titles_are_searched_unless_told_otherwise(write_lines: Callable[..., Path], cache: Path) -> None:
    corpus = write_lines([{"title": "Heron", "text": "It wades."}, {"title": "", "text": "A stork wades."}])
    assert await ids(await open_index(corpus, cache=cache), "heron") == ["1"]
    assert await ids(await open_index(corpus, IndexOptions(titles=False), cache=cache), "heron") == []


async def test_an_unchanged_corpus_is_neither_built_nor_hashed_again(
    birds: Path, cache: Path, builds: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    backdate(birds)
    monkeypatch.setattr(module, "_RACE", -3600.0)  # its change time is now, whatever the file says
    first = await open_index(birds, cache=cache)
    monkeypatch.setattr(module, "corpus_hash", lambda path: pytest.fail("it was hashed"))
    second = await open_index(birds, cache=cache)
    assert builds == [birds]
    assert second.folder == first.folder


async def test_a_change_within_the_grain_of_time_stamps_is_seen(
    birds: Path, bird_rows: Rows, cache: Path, write_lines: Callable[..., Path]
) -> None:
    known = birds.stat()
    await open_index(birds, cache=cache)
    changed = [*bird_rows[:3], {**bird_rows[3], "text": bird_rows[3]["text"].replace("worms", "beets")}]
    write_lines(changed)
    os.utime(birds, ns=(known.st_atime_ns, known.st_mtime_ns))
    assert birds.stat().st_size == known.st_size
    assert await ids(await open_index(birds, cache=cache), "beets") == ["kiwi"]


async def test_a_changed_corpus_is_built_again_and_only_the_last_two_indexes_stay(
    birds: Path, bird_rows: Rows, cache: Path, builds: list[Path], write_lines: Callable[..., Path]
) -> None:
    folders = []
    for n in range(4):
        write_lines([*bird_rows, {"id": "new", "text": f"bird number{n}"}])
        index = await open_index(birds, cache=cache)
        folders.append(index.folder)
        assert await ids(index, f"number{n}") == ["new"]
    assert len(builds) == 4
    assert [folder.exists() for folder in folders] == [False, False, True, True]


async def test_other_options_are_another_index(birds: Path, cache: Path) -> None:
    stemmed = await open_index(birds, cache=cache)
    plain = await open_index(birds, IndexOptions(analyser="words"), cache=cache)
    assert await ids(stemmed, "hunting") == ["owl", "penguin"]
    assert await ids(plain, "hunting") == []
    assert stemmed.folder.exists()


async def test_a_build_that_is_cancelled_leaves_nothing(
    write_lines: Callable[..., Path], cache: Path, builds: list[Path]
) -> None:
    corpus = write_lines([{"text": f"word{n}"} for n in range(3000)])
    building = asyncio.ensure_future(open_index(corpus, cache=cache))
    while not builds:
        await asyncio.sleep(0)
    building.cancel()
    await asyncio.wait([building])
    assert building.cancelled()
    assert [entry.name for entry in cache.iterdir()] == []


async def test_a_corpus_with_an_error_leaves_nothing(write_lines: Callable[..., Path], cache: Path) -> None:
    with pytest.raises(CorpusError, match=":2: 'text' is missing"):
        await open_index(write_lines([{"text": "a"}, {}]), cache=cache)
    assert [entry.name for entry in cache.iterdir()] == []


@pytest.mark.parametrize("damage", ["truncated", "lost", "unfinished"])
async def test_a_damaged_index_is_built_again(birds: Path, cache: Path, damage: str) -> None:
    folder = (await open_index(birds, cache=cache)).folder
    if damage == "truncated":
        (folder / "passages.jsonl").write_bytes(b"[")
    elif damage == "lost":
        (folder / "ids.npy").unlink()
    else:
        (folder / "meta.json").unlink()
    with pytest.raises(IndexDamaged, match="delete the folder"):
        Index(folder)
    assert await ids(await open_index(birds, cache=cache), "worms") == ["kiwi"]


async def test_of_two_builds_at_once_the_second_finds_the_first(birds: Path, cache: Path) -> None:
    folder = cache / "same"
    await asyncio.gather(*(build_index(birds, folder, IndexOptions()) for _ in range(3)))
    assert await ids(Index(folder), "worms") == ["kiwi"]
    assert [entry.name for entry in cache.iterdir()] == ["same"]


async def test_a_corpus_is_opened_once_for_calls_at_the_same_time(birds: Path, cache: Path, builds: list[Path]) -> None:
    corpus = Corpus(birds, cache=cache)
    opened = await asyncio.gather(*(corpus.index() for _ in range(8)))
    assert len(builds) == 1
    assert len(set(map(id, opened))) == 1


async def test_several_processes_read_one_index_from_a_read_only_folder(birds: Path, cache: Path) -> None:
    folder = (await open_index(birds, IndexOptions(embedder=HashingEmbedder()), cache=cache)).folder
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    code = (
        "import asyncio, json, sys; from pathlib import Path; from concertino_search.index import *\n"
        "from concertino_search.index.index import Index\n"
        "index = Index(Path(sys.argv[1]), HashingEmbedder())\n"
        "found = asyncio.run(index.search(['fish under water'], 2))\n"
        "print(json.dumps([hit.passage.id for hit in found[0]]))"
    )
    try:
        command = [sys.executable, "-c", code, str(folder)]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        printed = [process.communicate(timeout=60)[0] for process in running]
    finally:
        folder.chmod(0o755)
    assert [json.loads(text) for text in printed] == [["penguin", "owl"]] * 2


# -- dense and hybrid --------------------------------------------------------------------------------------------------


class Colours:
    """An embedder that knows colours by their meaning: texts with words for one colour lie together."""

    def __init__(self, name: str = "colours") -> None:
        self.name = name
        self.kinds: list[str] = []

    async def embed(self, texts: Sequence[str], kind: str) -> list[list[float]]:
        self.kinds.append(kind)
        words = (("red", "crimson"), ("blue", "azure"), ("green", "viridian"))
        return [[float(sum(word in text for word in family)) for family in words] + [0.01] for text in texts]


COLOURED = [{"id": w, "text": f"the {w} one"} for w in ("crimson", "azure", "viridian", "blue", "plain")]


async def test_dense_search_finds_what_shares_no_word(write_lines: Callable[..., Path], cache: Path) -> None:
    embedder = Colours()
    index = await open_index(write_lines(COLOURED), IndexOptions(embedder=embedder), cache=cache)
    assert await ids(index, "red", 1, mode="bm25") == []
    assert await ids(index, "red", 1, mode="dense") == ["crimson"]
    assert embedder.kinds == ["passage", "query"]


async def test_a_hybrid_search_fuses_by_reciprocal_rank(write_lines: Callable[..., Path], cache: Path) -> None:
    index = await open_index(write_lines(COLOURED), IndexOptions(embedder=Colours()), cache=cache)
    assert index.mode == "hybrid"
    hits = (await index.search(["blue"], 2))[0]
    assert [hit.passage.id for hit in hits] == ["blue", "azure"]
    dense = [hit.passage.id for hit in (await index.search(["blue"], 5, mode="dense"))[0]]
    assert hits[0].score == pytest.approx(1 / 61 + 1 / (61 + dense.index("blue")))
    only_words = (await index.search(["blue"], 5, weights=(1, 0)))[0]
    assert [hit.passage.id for hit in only_words] == ["blue"]


class Scattered:
    """An embedder that puts texts anywhere, always at the same place, and queries near a text."""

    name = "scattered"

    async def embed(self, texts: Sequence[str], kind: str) -> object:
        places = np.stack([np.random.default_rng(int(text)).normal(size=32) for text in texts])
        noise = np.random.default_rng(0).normal(size=places.shape) if kind == "query" else 0.0
        return places + 0.5 * noise


async def test_a_graph_finds_what_exact_search_finds(write_lines: Callable[..., Path], cache: Path) -> None:
    pytest.importorskip("usearch", reason="usearch is not installed: pip install 'concertino-search[ann]'")
    corpus = write_lines([{"text": str(n)} for n in range(2000)])
    queries = [str(n) for n in range(0, 2000, 20)]
    exact = await open_index(corpus, IndexOptions(embedder=Scattered()), cache=cache)
    graph = await open_index(corpus, IndexOptions(embedder=Scattered(), exact_up_to=100), cache=cache)
    wanted, found = [await index.search(queries, 5, mode="dense") for index in (exact, graph)]
    same = [len({h.passage.id for h in w} & {h.passage.id for h in f}) for w, f in zip(wanted, found, strict=True)]
    assert sum(same) >= 0.95 * sum(map(len, wanted))


async def test_without_usearch_a_large_index_says_what_to_install(
    birds: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    with pytest.raises(CorpusError, match=r"concertino-search\[ann\]"):
        await open_index(birds, IndexOptions(embedder=HashingEmbedder(), exact_up_to=1), cache=cache)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[1.0]], r"shape \(1, 1\) for 4 texts"),
        ([[1.0], [2.0], [float("nan")], [0.0]], "finite"),
        ([["x"]] * 4, "no array of numbers"),
        ([1.0, 2.0, 3.0, 4.0], r"shape \(4,\)"),
    ],
)
async def test_an_embedder_that_gives_no_vectors_is_named(
    birds: Path, cache: Path, given: object, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def embed(self: object, texts: object, kind: str) -> object:
        return given

    monkeypatch.setattr(Colours, "embed", embed)
    with pytest.raises(CorpusError, match=f"'colours' gave .*{message}"):
        await open_index(birds, IndexOptions(embedder=Colours()), cache=cache)


async def test_an_embedder_whose_vectors_changed_length_is_refused(birds: Path, cache: Path) -> None:
    wider = HashingEmbedder(64)
    wider.name = HashingEmbedder(32).name
    await open_index(birds, IndexOptions(embedder=HashingEmbedder(32)), cache=cache)
    index = await open_index(birds, IndexOptions(embedder=wider), cache=cache)
    with pytest.raises(CorpusError, match="gives 64 numbers, the index holds 32"):
        await index.search(["owl"])


async def test_an_index_is_not_opened_with_another_embedder(birds: Path, cache: Path) -> None:
    index = await open_index(birds, cache=cache)
    with pytest.raises(CorpusError, match="'hashing-1024' is given"):
        Index(index.folder, HashingEmbedder())
    with pytest.raises(CorpusError, match="needs an embedder"):
        await index.search(["owl"], mode="dense")


@pytest.mark.parametrize("options", [{"k": 0}, {"weights": (-1, 1)}, {"mode": "sparse"}])
async def test_arguments_out_of_range_are_refused(birds: Path, cache: Path, options: dict[str, object]) -> None:
    index = await open_index(birds, cache=cache)
    with pytest.raises(CorpusError, match="expected k >= 1"):
        await index.search(["owl"], **options)  # type: ignore[arg-type]


async def test_a_served_embedder_gets_its_prefixes_and_gives_its_vectors() -> None:
    from types import SimpleNamespace

    from concertino_search.index import ServedEmbedder

    asked: list[list[str]] = []

    class Served:
        settings = SimpleNamespace(model="e5")

        async def embed(self, texts: list[str]) -> object:
            asked.append(texts)
            return SimpleNamespace(vectors=tuple((1.0, 0.0) for _ in texts))

    embedder = ServedEmbedder(Served(), query_prefix="query: ", passage_prefix="passage: ")
    assert embedder.name == "e5|query: |passage: "
    assert await embedder.embed(["a"], "query") == ((1.0, 0.0),)
    await embedder.embed(["b"], "passage")
    assert asked == [["query: a"], ["passage: b"]]
    with pytest.raises(CorpusError, match="give name="):
        ServedEmbedder(object())


async def test_an_openai_compatible_server_embeds_passages_and_queries(
    write_lines: Callable[..., Path], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    openai = pytest.importorskip("concertino_openai.client", reason="concertino-openai is not installed")
    from aiohttp import web
    from concertino_search.index import ServedEmbedder

    asked: list[list[str]] = []

    async def embeddings(request: web.Request) -> web.Response:
        texts = (await request.json())["input"]
        asked.append(texts)
        vectors = await Colours().embed(texts, "passage")
        rows = [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)]
        return web.json_response({"object": "list", "data": rows, "usage": {"prompt_tokens": 3, "total_tokens": 3}})

    app = web.Application()
    app.router.add_post("/v1/embeddings", embeddings)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    served = openai.Embedder(model="colours", base_url=url, key_env="")
    try:
        embedder = ServedEmbedder(served, query_prefix="query: ")
        index = await open_index(write_lines(COLOURED), IndexOptions(embedder=embedder), cache=cache)
        assert await ids(index, "red", 1, mode="dense") == ["crimson"]
    finally:
        await served.close()
        await runner.cleanup()
    assert embedder.name == "colours|query: |"
    assert asked[-1] == ["query: red"]


async def test_an_encoding_embedder_runs_in_batches_off_the_loop() -> None:
    import threading

    from concertino_search.index import EncodingEmbedder

    seen: list[tuple[int, bool]] = []

    class Encoder:
        def encode(self, texts: list[str]) -> object:
            seen.append((len(texts), threading.current_thread() is threading.main_thread()))
            return np.array([[float(len(text))] for text in texts])

    embedder = EncodingEmbedder(Encoder(), name="lengths", query_prefix="q: ", batch=2)
    assert (await embedder.embed(["a", "bb", "ccc"], "query")).tolist() == [[4.0], [5.0], [6.0]]
    assert (await embedder.embed([], "query")).shape[0] == 0
    assert seen == [(2, False), (1, False)]
