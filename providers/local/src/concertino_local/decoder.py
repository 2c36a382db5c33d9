"""The forward passes: prompts are read, alone or side by side, and every step adds a token to each row of the batch.

Prompts of one pass are padded on the right, where causal attention never looks; in the batch they are padded on the
left and masked. Either way a row's logits are those that it would have alone, up to rounding.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import torch

from .cache import BatchCache, SoloCache, copy_row
from .prefix import PrefixCache
from .request import Row
from .sampling import choose

LOGITS = 64
"""Rows times places whose logits one pass over unequal prompts may hold."""


class Token(NamedTuple):
    """A token that was chosen for a row, and its log-probability."""

    row: Row
    token: int
    logprob: float


class Decoder:
    """A network with the rows that generate.

    Args:
        network: the causal LM.
        prefixes: where keys and values of known beginnings are.
        solo: it cannot be batched; there is one row at most, and no prefix.

    Attributes:
        rows: in the order of the batch.
    """

    def __init__(self, network: Any, prefixes: PrefixCache, *, solo: bool = False) -> None:
        self.rows: list[Row] = []
        self._prefixes = prefixes
        self._batch = SoloCache(network.config) if solo else BatchCache()
        self.use(network)

    def use(self, network: Any) -> None:
        """Generate with this network; no row may be under way."""
        self._network = network
        base = network.get_base_model() if hasattr(network, "get_base_model") else network
        self._accepts = frozenset(inspect.signature(base.forward).parameters)
        self._device = next(base.parameters()).device

    # -- prompts ---------------------------------------------------------------------------------------------------

    def group(self, pending: Sequence[Row], budget: int) -> list[Row]:
        """The first rows whose prompts can be read in one pass of at most `budget` tokens, padding included.

        A prompt that is longer, or whose beginning is known, is read alone.
        """
        chosen: list[Row] = []
        lengths: set[int] = set()
        for row in pending:
            if row.cache is None and row.done == 0:
                row.cached, known = self._prefixes.find(row.prompt)
                row.done, row.cache = row.cached, self._batch.fresh(known) if known else None
            if row.cache is not None or len(row.prompt) > budget:
                return chosen or [row]
            lengths.add(len(row.prompt))
            wide = len(lengths) > 1 and (len(chosen) + 1) * len(lengths) > LOGITS
            if chosen and (wide or (len(chosen) + 1) * max(lengths) > budget):
                break
            chosen.append(row)
        return chosen

    def read(self, rows: Sequence[Row], budget: int) -> tuple[int, list[Token]]:
        """One pass over prompts of a `group`.

        Returns:
            How many tokens were read, and the first token of each row that has joined the batch by it.
        """
        first = rows[0]
        if first.cache is not None or len(first.prompt) > budget:
            return self._read_on(first, budget)
        prompts = {prompt: place for place, prompt in enumerate(dict.fromkeys(tuple(row.prompt) for row in rows))}
        longest = max(map(len, prompts))
        padded = [[*prompt, *([prompt[-1]] * (longest - len(prompt)))] for prompt in prompts]
        places = sorted({len(prompt) - 1 for prompt in prompts})
        cache = self._batch.fresh()
        logits = self._forward(padded, cache, last=places)
        sources = [prompts[tuple(row.prompt)] for row in rows]
        at = [places.index(len(row.prompt) - 1) for row in rows]
        return sum(map(len, prompts)), self._begin(rows, cache, sources, logits[sources, at])

    def _read_on(self, row: Row, budget: int) -> tuple[int, list[Token]]:
        """One pass over the next part of a prompt."""
        row.cache = row.cache if row.cache is not None else self._batch.fresh()
        part = row.prompt[row.done : row.done + budget]
        positions = torch.arange(row.done, row.done + len(part), device=self._device)[None]
        logits = self._forward([part], row.cache, last=[len(part) - 1], positions=positions)
        row.done += len(part)
        if row.done < len(row.prompt):
            return len(part), []
        cache, row.cache = row.cache, None
        return len(part), self._begin([row], cache, [0], logits[:, 0])

    def _begin(self, rows: Sequence[Row], cache: Any, sources: Sequence[int], logits: torch.Tensor) -> list[Token]:
        """Choose first tokens, and let the rows join the batch."""
        tokens = self._choose(logits, rows)
        self._batch.join(cache, sources, [len(row.prompt) for row in rows])
        for row, source in zip(rows, sources, strict=True):
            row.done = len(row.prompt)
            self._prefixes.add(row.prompt, partial(copy_row, cache, source, 0, row.done))
        self.rows += rows
        return tokens

    # -- steps -----------------------------------------------------------------------------------------------------

    def step(self) -> list[Token]:
        """One token for each row of the batch, in order."""
        tokens = [[row.ids[-1]] for row in self.rows]
        mask, positions = self._batch.mask(self._device), self._batch.positions(self._device)
        logits = self._forward(tokens, self._batch.cache, last=[0], mask=mask, positions=positions)
        self._batch.advance()
        return self._choose(logits[:, 0], self.rows)

    def undo(self) -> None:
        """Make good what a failed step has left behind."""
        self._batch.restore()

    def keep(self, stays: Sequence[bool], *, remember: bool = True) -> None:
        """Let rows leave the batch.

        Args:
            stays: for each row.
            remember: keep the keys and values of those that leave, for prompts that begin like them.
        """
        for place, (row, stay) in enumerate(zip(self.rows, stays, strict=True)):
            if not stay and remember:
                begin, end = self._batch.starts[place], self._batch.columns
                known = [*row.prompt, *row.ids][: end - begin]
                self._prefixes.add(known, partial(copy_row, self._batch.cache, place, begin, end))
        kept = [place for place, stay in enumerate(stays) if stay]
        if len(kept) < len(self.rows):
            self._batch.keep(kept)
            self.rows = [self.rows[place] for place in kept]

    # -- the network -----------------------------------------------------------------------------------------------

    def _forward(
        self,
        ids: Sequence[Sequence[int]],
        cache: Any,
        *,
        last: Sequence[int],
        mask: torch.Tensor | None = None,
        positions: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Logits at some places of each row: (rows, places, vocabulary), in float32."""
        places = torch.tensor(list(last), device=self._device)
        options: dict[str, Any] = {"attention_mask": mask, "past_key_values": cache, "use_cache": True}
        if positions is not None and "position_ids" in self._accepts:
            options["position_ids"] = positions
        if short := "logits_to_keep" in self._accepts:
            options["logits_to_keep"] = places
        logits: torch.Tensor = self._network(input_ids=torch.tensor(ids, device=self._device), **options).logits
        return (logits if short else logits[:, places]).float()

    def _choose(self, logits: torch.Tensor, rows: Sequence[Row]) -> list[Token]:
        allowed = [self._allowed(row) for row in rows]
        tokens, logprobs = choose(logits, [row.chooser for row in rows], allowed)
        return [Token(row, *pair) for row, pair in zip(rows, zip(tokens, logprobs, strict=True), strict=True)]

    def _allowed(self, row: Row) -> torch.Tensor | None:
        grammar = row.constraint()
        return None if grammar is None else grammar.allowed().to(self._device)
