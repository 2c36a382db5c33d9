"""The cache of a batch: rows keep their columns, what no row uses is dropped, what is masked is zero."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from concertino_local.sampling.cache import BatchCache, copy_row, prompt_cache
from concertino_local.sampling.prefixes import LEAST, PrefixCache


def filled(*lengths: int, seed: int = 0) -> Any:
    """A cache into which rows were read, padded on the right."""
    generator = torch.Generator().manual_seed(seed)
    cache = prompt_cache(max(lengths))
    for layer in range(2):
        shape = (len(lengths), 2, max(lengths), 4)
        cache.update(torch.randn(shape, generator=generator), torch.randn(shape, generator=generator), layer)
    return cache


def step(batch: BatchCache, number: int) -> None:
    """Write the next column of every row."""
    batch.make_room()
    for layer in range(2):
        fresh = torch.full((len(batch.starts), 2, 1, 4), float(number))
        batch.cache.update(fresh, fresh, layer)
    batch.advance()


def test_rows_that_come_and_go_keep_their_keys_and_values() -> None:
    random = Random(1)
    batch = BatchCache()
    expected: list[list[torch.Tensor]] = []  # per row, per layer: (heads, tokens, size)
    for number in range(60):
        if expected and random.random() < 0.3:
            stays = [random.random() < 0.6 for _ in expected]
            kept = batch.leave([place for place, stay in enumerate(stays) if not stay])
            assert sorted(kept) == [place for place, stay in enumerate(stays) if stay]
            expected = [expected[place] for place in kept]
        if random.random() < 0.4 or not expected:
            lengths = [random.randrange(1, 150) for _ in range(random.randrange(1, 4))]
            cache = filled(*lengths, seed=number)
            rows = [random.randrange(len(lengths)) for _ in range(random.randrange(1, 4))]
            batch.join(cache, rows, [lengths[row] for row in rows])
            expected += [[layer.keys[row, :, : lengths[row]].clone() for layer in cache.layers] for row in rows]
        step(batch, number)
        new = torch.full((2, 1, 4), float(number))
        expected = [[torch.cat([keys, new], 1) for keys in row] for row in expected]
        assert batch.last - batch.first == max(row[0].shape[1] for row in expected)
        for place, row in enumerate(expected):
            begin = batch.starts[place] - batch.first
            assert batch.last - batch.starts[place] == row[0].shape[1]
            for layer, keys in zip(batch.cache.layers, row, strict=True):
                assert layer.keys.shape[2] == batch.last - batch.first
                assert torch.equal(layer.keys[place, :, begin:], keys)
                assert not layer.keys[place, :, :begin].any()


def test_a_failed_step_is_forgotten() -> None:
    batch = BatchCache()
    batch.join(filled(5, 3), [0, 1], [5, 3])
    before = [layer.keys.clone() for layer in batch.cache.layers]
    fresh = torch.ones((2, 2, 1, 4))
    batch.cache.update(fresh, fresh, 0)  # the second layer was never reached
    batch.restore()
    assert [torch.equal(layer.keys, keys) for layer, keys in zip(batch.cache.layers, before, strict=True)] == [True] * 2
    step(batch, 7)
    assert batch.last == 6


def test_prefixes_are_found_by_their_longest_beginning_and_dropped_by_age() -> None:
    cache = filled(60)
    prefixes = PrefixCache(limit=100)
    ids = list(range(60))

    def add(sequence: list[int]) -> None:
        prefixes.add(sequence, lambda: copy_row(cache, 0, 0, len(sequence)))

    add(ids[:40])
    assert prefixes.find(ids)[0] == 40
    assert prefixes.find(ids[:40])[0] == 39  # the last token is always read
    assert prefixes.find(ids[: LEAST - 1]) == (0, None)
    assert prefixes.find([*ids[:30], 99, 99])[0] == 30
    add(ids)
    assert prefixes.tokens == 60  # it holds the shorter one
    add([99] * 50)
    assert (prefixes.tokens, prefixes.find(ids)) == (50, (0, None))
    add([7] * 101)
    assert prefixes.tokens == 50
    prefixes.clear()
    assert prefixes.find([99] * 50) == (0, None)
