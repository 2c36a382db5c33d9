"""The batch sampler by itself: prompts are read pass by pass, and rows join, leave and are dropped."""

from __future__ import annotations

import pytest
import torch
from concertino_local.sampling import BatchRow, Network, SamplingRule, SamplingWork, complete_batch
from concertino_local.sampling.sampler import BatchSampler
from local_models import make_network, make_tokenizer

GREEDY = SamplingRule(0.0)


@pytest.fixture(scope="module")
def network() -> Network:
    return Network(make_network(make_tokenizer(), seed=3))


def rows_of(*lengths: int) -> list[BatchRow]:
    return [BatchRow([(7 * length + place) % 300 for place in range(length)], GREEDY) for length in lengths]


@torch.no_grad()
def test_a_pass_reads_no_more_than_its_budget_and_a_row_that_is_dropped_meanwhile_never_joins(network: Network) -> None:
    sampler: BatchSampler[BatchRow] = BatchSampler(network)
    short, long, other = rows_of(6, 81, 61)
    reading = sampler.read([long, short, other], budget=20)
    joined = []
    while not reading.done:
        before = sampler.padded_tokens
        reading.advance()
        assert sampler.padded_tokens - before <= 20
        joined.append(len(sampler.rows))
        if sampler.passes == 5:  # the long prompt is half read
            reading.drop(lambda row: row is not long)
    assert sampler.rows == [short, other]
    assert joined == [1, 1, 1, 2, 2]


@torch.no_grad()
def test_a_row_that_joins_later_gets_the_tokens_that_it_gets_alone(network: Network) -> None:
    prompts = rows_of(1, 40, 9, 22)
    alone = complete_batch(network, prompts, [12] * 4, (), SamplingWork())
    sampler: BatchSampler[BatchRow] = BatchSampler(network)
    for row in prompts:
        reading = sampler.read([row], budget=100)
        while not reading.done:
            reading.advance()
        for each, token in zip(sampler.rows, sampler.step()[0].tolist(), strict=True):
            each.ids.append(token)
        if len(sampler.rows) == 3:
            sampler.leave([0])
    while len(prompts[-1].ids) < 12:
        for each, token in zip(sampler.rows, sampler.step()[0].tolist(), strict=True):
            each.ids.append(token)
    counts = [min(len(row.ids), 12) for row in prompts]
    assert counts == [3, 12, 2, 12]  # the last row takes the place of the one that leaves
    for row, expected, count in zip(prompts, alone, counts, strict=True):
        assert tuple(row.ids[:count]) == expected.ids[:count]
