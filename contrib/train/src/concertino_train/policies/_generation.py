"""Sampling from a network in this process: prompts are read, then every step adds a token to each row.

Equal prompts are read once, and what all prompts begin with is read once for all of them. A row that has ended leaves
at once. The last token of a prompt is read with the first step, so reading prompts needs no logits.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from concertino import UsageError

from ._columns import Batch, Prompts
from ._policy import Prompt, Sample
from ._sampling import choose, draw_uniforms

LEAST = 16
"""Tokens in common that make a pass of their own worth its while."""
TOKENS = 16_384
"""Tokens of prompts that are read in one pass at most, padding included, unless one prompt alone has more."""
ROWS = 8
"""From so many rows on, a pass is not padded by more than a fifth."""
_KINDS = frozenset(("full_attention", "sliding_attention"))


@dataclass
class Work:
    """What generation has done.

    Attributes:
        rows: prompts that were continued.
        prompt_tokens: tokens of them.
        read_tokens: tokens of prompts that were really read, padding included.
        sampled_tokens: tokens that were sampled.
        steps: passes that sampled.
        seconds: that `generate` took.
    """

    rows: int = 0
    prompt_tokens: int = 0
    read_tokens: int = 0
    sampled_tokens: int = 0
    steps: int = 0
    seconds: float = 0.0

    def add(self, other: Work) -> None:
        """Add another's."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


class Network:
    """A causal language model as generation sees it.

    Args:
        module: a model of transformers, or one of PEFT around it, in evaluation mode.

    Raises:
        UsageError: it has layers whose state is no keys and values.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        base: Any = module.get_base_model() if hasattr(module, "get_base_model") else module  # type: ignore[operator]
        self._module = module
        self.config = base.config.get_text_config()
        accepted = frozenset(inspect.signature(base.forward).parameters)
        self._positions = "position_ids" in accepted
        self._short = "logits_to_keep" in accepted
        kinds = set(getattr(self.config, "layer_types", None) or ())
        if getattr(base, "_is_stateful", False) or not kinds <= _KINDS:
            named = ", ".join(sorted(kinds - _KINDS)) or "states that are no keys and values"
            raise UsageError(
                f"{type(base).__name__} has layers that cannot be sampled in a batch here ({named}); serve it with "
                "vLLM and give a VLLMPolicy"
            )
        window = getattr(self.config, "sliding_window", None) or "sliding_attention" in kinds
        self._direct = self.config._attn_implementation == "sdpa" and not window and self._positions
        self.device = next(base.parameters()).device
        self.vocabulary = base.get_input_embeddings().weight.shape[0]

    @property
    def context(self) -> int | None:
        """Tokens that it can read."""
        return getattr(self.config, "max_position_embeddings", None)

    def read(self, ids: Sequence[Sequence[int]], begin: int, cache: Any) -> None:
        """Read tokens of prompts into a cache.

        Args:
            ids: of equal lengths.
            begin: position of the first.
            cache: of the rows.
        """
        tokens = torch.tensor(ids, device=self.device)
        positions = torch.arange(begin, begin + tokens.shape[1], device=self.device).expand(len(ids), -1)
        self._forward(tokens, positions, None, cache)

    def step(
        self, tokens: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor | None, cache: Any
    ) -> torch.Tensor:
        """Read one token of each row; logits of the next, shape (rows, vocabulary), in float32.

        Args:
            tokens, positions: shape (rows,).
            mask: which columns each row may look at, shape (rows, columns), the new one included; None for all.
            cache: of the rows.
        """
        if mask is not None:
            mask = mask[:, None, None] if self._direct else mask.long()
        return self._forward(tokens[:, None], positions[:, None], mask, cache)

    def _forward(
        self, tokens: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor | None, cache: Any
    ) -> torch.Tensor:
        options: dict[str, Any] = {"position_ids": positions} if self._positions else {}
        if self._short:
            options["logits_to_keep"] = 1
        out = self._module(
            input_ids=tokens, attention_mask=mask, past_key_values=cache, use_cache=True, return_dict=True, **options
        )
        logits: torch.Tensor = out.logits[:, -1]
        return logits.float()


class Generation:
    """One batch of prompts that are continued.

    Args:
        network: what continues them.
        prompts: none empty.
        room: tokens to sample at most for each, 1 or more.
        ends: token ids that end a row.
        temperature, top_p: of sampling.
    """

    def __init__(
        self,
        network: Network,
        prompts: Sequence[Prompt],
        room: Sequence[int],
        ends: Collection[int],
        temperature: float,
        top_p: float,
    ) -> None:
        self._network = network
        self._prompts = prompts
        self._room = room
        self._ends = torch.tensor(sorted(ends), device=network.device)
        self._temperature, self._top_p = temperature, top_p
        self.work = Work(rows=len(prompts), prompt_tokens=sum(len(prompt.ids) for prompt in prompts))

    def run(self) -> list[Sample]:
        """Continue them all.

        Raises:
            UsageError: the network's logits are no numbers.
        """
        batch = self._read()
        device, most = self._network.device, max(self._room)
        ids = torch.zeros((len(self._prompts), most), dtype=torch.long, device=device)
        logprobs = torch.zeros((len(self._prompts), most), device=device)
        counts = [0] * len(self._prompts)
        rows = torch.arange(len(self._prompts), device=device)  # which prompt each row of the batch continues
        uniforms, room = self._draw(most), torch.tensor(self._room, device=device)
        tokens = torch.tensor([prompt.ids[-1] for prompt in self._prompts], device=device)
        positions = torch.tensor([len(prompt.ids) - 1 for prompt in self._prompts], device=device)
        columns = max(len(prompt.ids) for prompt in self._prompts) - 1
        starts = torch.tensor(batch.starts, device=device)
        for step in range(most):
            logits = self._network.step(tokens, positions, _mask(batch, starts, columns + step + 1), batch.cache)
            tokens, chosen = choose(logits, uniforms[rows, step], self._temperature, self._top_p)
            ids[rows, step], logprobs[rows, step] = tokens, chosen
            gone = torch.isin(tokens, self._ends) | (room[rows] <= step + 1)
            self.work.steps += 1
            if bool((gone | ~torch.isfinite(chosen)).any()):  # the one wait for the device in a step
                _refuse_no_numbers(chosen)
                rows, tokens, positions, starts = self._leave(
                    batch, gone.nonzero()[:, 0].tolist(), counts, step + 1, (rows, tokens, positions, starts)
                )
                if not batch.starts:
                    break
            positions = positions + 1
        self.work.sampled_tokens = sum(counts)
        return self._samples(ids.tolist(), logprobs.tolist(), counts)

    def _leave(
        self, batch: Batch, gone: list[int], counts: list[int], count: int, states: tuple[torch.Tensor, ...]
    ) -> list[torch.Tensor]:
        """Let rows leave that have ended, and note how many tokens they have."""
        if not gone:
            return list(states)
        for row in states[0][gone].tolist():
            counts[row] = count
        places = list(range(len(batch.starts)))
        for source, target in batch.leave(gone):
            places[target] = places[source]
        kept = torch.tensor(places[: len(batch.starts)], device=self._network.device, dtype=torch.long)
        return [state[kept] for state in states]

    def _draw(self, most: int) -> torch.Tensor:
        if self._temperature <= 0:
            drawn = [[0.0] * most] * len(self._prompts)
        else:
            drawn = [draw_uniforms(prompt.seed, prompt.ids, most) for prompt in self._prompts]
        wide = torch.float32 if self._network.device.type == "mps" else torch.float64
        return torch.tensor(drawn, dtype=wide, device=self._network.device)

    def _samples(self, ids: list[list[int]], logprobs: list[list[float]], counts: list[int]) -> list[Sample]:
        ends = set(self._ends.tolist())
        return [
            Sample(tuple(row[:count]), tuple(numbers[:count]), "stop" if row[count - 1] in ends else "length")
            for row, numbers, count in zip(ids, logprobs, counts, strict=True)
        ]

    # -- prompts ---------------------------------------------------------------------------------------------------

    def _read(self) -> Batch:
        """Read all prompts, but for the last token of each."""
        contexts = [prompt.ids[:-1] for prompt in self._prompts]
        batch = Batch([len(context) for context in contexts])
        rows: dict[tuple[int, ...], list[int]] = {}
        for row, context in enumerate(contexts):
            rows.setdefault(context, []).append(row)
        different = sorted(rows, key=len)
        if not different[-1]:
            return batch
        prefix, common = None, _common(different)
        if len(different) > 1 and common >= LEAST:
            prefix = Prompts(common)
            self._pass([different[0][:common]], 0, prefix)
        else:
            common = 0
        for part in _parts(different, common):
            longest = max(len(part[-1]), 1)
            prompts = Prompts(longest, prefix, len(part))
            if longest > common:
                padded = [[*ids[common:], *([0] * (longest - len(ids)))] for ids in part]
                self._pass(padded, common, prompts)
            sources = [place for place, ids in enumerate(part) for _ in rows[ids]]
            batch.take(prompts, [row for ids in part for row in rows[ids]], sources)
        return batch

    def _pass(self, ids: Sequence[Sequence[int]], begin: int, prompts: Prompts) -> None:
        self.work.read_tokens += len(ids) * len(ids[0])
        self._network.read(ids, begin, prompts.cache)


def _common(contexts: Sequence[tuple[int, ...]]) -> int:
    """Tokens with which all begin."""
    low, high = min(contexts), max(contexts)
    shorter = min(len(low), len(high))
    return next((place for place in range(shorter) if low[place] != high[place]), shorter)


def _parts(contexts: Sequence[tuple[int, ...]], common: int) -> list[list[tuple[int, ...]]]:
    """Contexts, sorted by length, as passes of few enough tokens, and of lengths that are near enough."""
    parts: list[list[tuple[int, ...]]] = [[]]
    for context in contexts:
        rows, length = len(parts[-1]), len(context) - common
        if rows and ((rows + 1) * length > TOKENS or (rows >= ROWS and length > 1.2 * (len(parts[-1][0]) - common))):
            parts.append([])
        parts[-1].append(context)
    return parts


def _mask(batch: Batch, starts: torch.Tensor, columns: int) -> torch.Tensor | None:
    """Which columns each row may look at, among those that are seen; None where all may look at all."""
    first = min(batch.starts)
    if first == max(batch.starts):
        return None
    return torch.arange(first, columns, device=starts.device) >= starts[:, None]


def _refuse_no_numbers(logprobs: torch.Tensor) -> None:
    if not bool(torch.isfinite(logprobs).all()):
        raise UsageError(
            "the policy's logits are no finite numbers: training has diverged, or the weights or their dtype are "
            "broken; go back to the last good checkpoint, with a smaller learning rate or in float32 or bfloat16"
        )
