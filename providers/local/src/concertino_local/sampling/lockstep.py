"""A batch of rows that begin together, from its first token to its last: what training samples.

A row that has ended leaves at once. Each step waits for the device once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import torch

from .network import Network
from .prefixes import PrefixCache
from .sampler import BatchRow, BatchSampler

BUDGET = 16_384
"""Tokens of prompts that are read in one pass at most, padding included, unless one prompt alone has more."""


@dataclass
class SamplingWork:
    """What sampling has done.

    Attributes:
        rows: prompts that were continued.
        prompt_tokens: tokens of them.
        read_tokens: tokens of prompts that were really read, padding included.
        sampled_tokens: tokens that were sampled.
        steps: passes that sampled.
        seconds: that it took, where the caller measures it.
    """

    rows: int = 0
    prompt_tokens: int = 0
    read_tokens: int = 0
    sampled_tokens: int = 0
    steps: int = 0
    seconds: float = 0.0

    def add(self, other: SamplingWork) -> None:
        """Add another's."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


class CompletedRow(NamedTuple):
    """What was sampled for a row: token ids, and their log-probabilities at the temperature of sampling."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]


def complete_batch(
    network: Network,
    rows: Sequence[BatchRow],
    limits: Sequence[int],
    end_ids: Collection[int],
    work: SamplingWork,
    prefixes: PrefixCache | None = None,
) -> list[CompletedRow]:
    """Continue rows until each has ended.

    Args:
        network: what continues them.
        rows: prompts, none empty.
        limits: tokens to sample at most for each, 1 or more.
        end_ids: tokens that end a row.
        work: what was done is added to it.
        prefixes: keys and values of earlier sequences of these weights; those of the rows are added.

    Raises:
        FloatingPointError: the network's logits are not finite.
    """
    device, most = network.device, max(limits)
    sampler: BatchSampler[BatchRow] = BatchSampler(network, prefixes=prefixes, tempered=True)
    # Without the last token of each prompt, which the first step reads.
    sampler.batch.reserve(len(rows), max(len(row.prompt) for row in rows) - 1)
    reading = sampler.read(rows, BUDGET)
    while not reading.done:
        reading.advance()
    # By identity, as equal prompts of a group are equal rows.
    numbers = {id(row): number for number, row in enumerate(rows)}
    order = [numbers[id(row)] for row in sampler.rows]
    at = torch.tensor(order, device=device)  # which of `rows` each row of the batch is
    room = torch.tensor(limits, device=device)[at]
    ends = torch.tensor(sorted(end_ids), device=device)
    # Kept on the device to the end: fetching each token would make every step wait for it.
    ids = torch.zeros((len(rows), most), dtype=torch.long, device=device)
    logprobs = torch.zeros((len(rows), most), device=device)
    counts = [0] * len(rows)
    for step in range(most):
        tokens, chosen = sampler.step()
        ids[at, step], logprobs[at, step] = tokens, chosen
        gone = torch.isin(tokens, ends) | (room <= step + 1)
        work.steps += 1
        if bool((gone | ~torch.isfinite(chosen)).any()):  # the one wait for the device in a step
            if not bool(torch.isfinite(chosen).all()):
                raise FloatingPointError("the model's logits are not finite")
            places = gone.nonzero()[:, 0].tolist()
            for place in places:
                counts[order[place]] = step + 1
            if prefixes is not None:
                written = ids[at[places], : step + 1].tolist()
                for place, each in zip(places, written, strict=True):
                    sampler.rows[place].ids = each
            kept = sampler.leave(places, remember=prefixes is not None)
            if not kept:
                break
            order = [order[place] for place in kept]
            index = torch.tensor(kept, device=device)
            at, room = at[index], room[index]
    work.rows += len(rows)
    work.prompt_tokens += sum(len(row.prompt) for row in rows)
    work.read_tokens += sampler.padded_tokens
    work.sampled_tokens += sum(counts)
    return [
        CompletedRow(tuple(row[:count]), tuple(values[:count]))
        for row, values, count in zip(ids.tolist(), logprobs.tolist(), counts, strict=True)
    ]
