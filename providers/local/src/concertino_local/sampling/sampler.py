"""`BatchSampler`: rows join when their prompts have been read, every step adds a token to each, and rows leave.

Prompts are read but for their last token, which the first step reads; so reading needs no logits. Equal prompts are
read once, and what they begin with is read once for all of them. A row's logits are those that it would have alone, up
to rounding, and its random numbers are its own. All state of a step stays on the device: the caller decides when to
wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

import numpy
import torch

from .cache import BatchCache, Slices, SoloCache, behind_prefixes, copy_row
from .choice import Choices, SamplingRule, row_random, wide_float
from .network import Network
from .prefixes import LEAST, PrefixCache

ROWS = 8
"""From so many rows on, a pass over prompts is not padded by more than a fifth."""
BLOCK = 64
"""Random numbers that are drawn at once for each row."""

Context = tuple[int, ...]
"""A prompt but for its last token."""


@dataclass(eq=False)
class BatchRow:
    """A sequence that is continued.

    Attributes:
        prompt: token ids, at least one.
        rule: how it is sampled.
        seed: of its random numbers.
        ids: what was sampled; needed only where sequences are kept for prompts that begin like them.
        cached: prompt tokens whose keys and values were known.
    """

    prompt: Sequence[int]
    rule: SamplingRule = field(default_factory=SamplingRule)
    seed: int = 0
    ids: list[int] = field(default_factory=list)
    cached: int = 0

    def allowed_tokens(self) -> torch.Tensor | None:
        """Which tokens may come next, shape (vocabulary,) of bool; None for all. Asked only if `is_constrained`."""
        return None

    @property
    def is_constrained(self) -> bool:
        """Whether `allowed_tokens` is to be asked before each step."""
        return False


R = TypeVar("R", bound=BatchRow)


class BatchSampler(Generic[R]):
    """A network with the rows that it continues.

    Args:
        network: what continues them.
        solo: it cannot be batched: there is one row at most, and no prefix.
        prefixes: keys and values of earlier sequences.
        tempered: log-probabilities are those at the temperature of sampling; else at temperature 1.

    Attributes:
        rows: in the order of the batch, which changes as rows leave.
        read_tokens: tokens of prompts that were read so far.
        padded_tokens: the same, padding included.
        passes: forward passes over prompts.
    """

    def __init__(
        self, network: Network, *, solo: bool = False, prefixes: PrefixCache | None = None, tempered: bool = False
    ) -> None:
        self.network = network
        self.prefixes = prefixes if prefixes is not None else PrefixCache(0)
        self.batch: BatchCache = SoloCache(network.model_config) if solo else BatchCache()
        self.rows: list[R] = []
        self.read_tokens = self.padded_tokens = self.passes = 0
        self._tempered = tempered
        self._tokens = torch.zeros(0, dtype=torch.long, device=network.device)
        self._random: list[numpy.random.Generator | None] = []
        self._uniforms = torch.zeros((0, BLOCK), dtype=wide_float(network.device), device=network.device)
        self._drawn = BLOCK  # columns of the random numbers that were used
        self._choices: Choices | None = None
        self._constrained = False

    def read(self, rows: Iterable[R], budget: int) -> PromptReading[R]:
        """Begin to read prompts, in passes of at most `budget` tokens, padding included."""
        return PromptReading(self, rows, budget)

    def join(self, prompts: Any, rows: Sequence[R], sources: Sequence[int], begins: Sequence[int]) -> None:
        """Let rows join whose prompts were read into the places `sources` of a cache, from these columns on."""
        device = self.network.device
        self.batch.join(prompts, sources, [len(row.prompt) - 1 for row in rows], begins)
        last = torch.tensor([row.prompt[-1] for row in rows], device=device)
        self._tokens = torch.cat([self._tokens, last])
        fresh = [None if row.rule.greedy else row_random(row.seed, row.prompt) for row in rows]
        # Only the columns that are left of this block: a row's numbers must not depend on when it came.
        self._uniforms = torch.cat([self._uniforms, self._draw(fresh, self._drawn)])
        self._random += fresh
        self.rows += rows
        self._choices = None
        for row, source, begin in zip(rows, sources, begins, strict=True):
            context = row.prompt[:-1]
            # Copied only if the prefix is kept.
            self.prefixes.add(context, partial(copy_row, prompts, source, begin, begin + len(context)))

    def step(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Sample a token for each row.

        Returns:
            Token ids and log-probabilities in the order of `rows`, each of shape (rows,), on the device. A
            log-probability that is not finite says that the logits are not.
        """
        device = self.network.device
        if self._choices is None:
            self._choices = Choices([row.rule for row in self.rows], device, tempered=self._tempered)
            self._constrained = any(row.is_constrained for row in self.rows)
        self.batch.make_room()
        logits = self.network.step(
            self._tokens, self.batch.positions(device), self.batch.mask(device), self.batch.cache
        )
        masked = self._masked(logits) if self._constrained else None
        tokens, logprobs = self._choices.choose(logits, self._next_uniforms(), masked)
        self.batch.advance()
        self._tokens = tokens
        return tokens, logprobs

    def undo(self) -> None:
        """Restore the cache after a `step` that raised."""
        self.batch.restore()

    def leave(self, gone: Sequence[int], *, remember: bool = False) -> list[int]:
        """Let rows leave.

        Args:
            gone: their places, without repeats.
            remember: keep the keys and values of their sequences for prompts that begin like them.

        Returns:
            For each place that is left, which row stands there now, by its old place.
        """
        if not gone:
            return list(range(len(self.rows)))
        for place in gone if remember else ():
            row, begin = self.rows[place], self.batch.starts[place] - self.batch.first
            end = self.batch.last - self.batch.first
            # The token that was sampled last has no keys and values yet.
            known = [*row.prompt, *row.ids][: end - begin]
            self.prefixes.add(known, partial(copy_row, self.batch.cache, place, begin, end))
        kept = self.batch.leave(gone)
        self.rows = [self.rows[place] for place in kept]
        self._random = [self._random[place] for place in kept]
        index = torch.tensor(kept, dtype=torch.long, device=self.network.device)
        self._tokens, self._uniforms = self._tokens[index], self._uniforms[index]
        self._choices = None
        return kept

    def _masked(self, logits: torch.Tensor) -> torch.Tensor:
        """The logits without the tokens that rows may not choose."""
        # Log-probabilities are those of the logits before anything was forbidden.
        masked = logits.clone()
        for place, row in enumerate(self.rows):
            if row.is_constrained and (allowed := row.allowed_tokens()) is not None:
                masked[place].masked_fill_(~allowed.to(logits.device), float("-inf"))
        return masked

    def _next_uniforms(self) -> torch.Tensor | None:
        assert self._choices is not None
        if not self._choices.samples:
            return None
        if self._drawn == BLOCK:
            self._uniforms, self._drawn = self._draw(self._random, 0), 0
        self._drawn += 1
        return self._uniforms[:, self._drawn - 1]

    def _draw(self, random: Sequence[numpy.random.Generator | None], begin: int) -> torch.Tensor:
        """Random numbers of rows for the columns from `begin` on."""
        drawn = numpy.zeros((len(random), BLOCK))
        for row, generator in zip(drawn, random, strict=True):
            if generator is not None:
                row[begin:] = generator.random(BLOCK - begin)
        return torch.from_numpy(drawn).to(self._uniforms)


class PromptReading(Generic[R]):
    """Prompts that are being read; each `advance` is one forward pass at most.

    Attributes:
        current: the rows that the last pass was for.
    """

    def __init__(self, sampler: BatchSampler[R], rows: Iterable[R], budget: int) -> None:
        self.current: list[R] = []
        self._sampler, self._budget = sampler, budget
        self._waiting = {id(row): row for row in rows}
        self._contexts: dict[Context, list[R]] = {}
        for row in self._waiting.values():
            self._contexts.setdefault(tuple(row.prompt[:-1]), []).append(row)
        self._passed = False  # since the last `advance`
        self._steps = self._run()
        self._ended = False

    @property
    def waiting(self) -> list[R]:
        """Rows that have not joined yet."""
        return list(self._waiting.values())

    @property
    def done(self) -> bool:
        """Whether no row waits any more."""
        return self._ended or not self._waiting

    def advance(self) -> None:
        """Make one pass; rows whose prompts are read by it join."""
        self._passed = False
        # The generator gives None at each pause, so `self` can only mean its end.
        self._ended = next(self._steps, self) is self

    def drop(self, wanted: Callable[[R], bool]) -> None:
        """Forget the rows that are not wanted any more."""
        self._waiting = {key: row for key, row in self._waiting.items() if wanted(row)}

    def _run(self) -> Iterator[None]:
        fresh: list[Context] = []
        begun: list[tuple[Context, int, Slices]] = []
        for context, rows in self._contexts.items():
            length, known = self._sampler.prefixes.find(rows[0].prompt)
            if known is None:
                fresh.append(context)
                continue
            # Rows of one context share its prefix, and each of them is told.
            for row in rows:
                row.cached = length
            begun.append((context, length, known))
        begun.sort(key=lambda each: len(each[0]) - each[1])
        for several in _parts(begun, lambda each: len(each[0]) - each[1], self._budget):
            yield from self._continue(several)
        fresh.sort(key=len)
        common, prefix = _common(fresh), None
        if common:
            self.current = self._rows(fresh)
            shared = self._sampler.batch.new_prompts(common)
            yield from self._read([fresh[0][:common]], 0, shared)
            prefix = [(layer.keys[0], layer.values[0]) for layer in shared.layers]
        for part in _parts(fresh, lambda context: len(context) - common, self._budget):
            yield from self._part(part, common, prefix)

    def _part(self, contexts: list[Context], begin: int, prefix: Slices | None) -> Iterator[None]:
        """Read contexts behind what is known of them, and let their rows join."""
        self.current = self._rows(contexts)
        if not self.current:
            return
        longest = len(contexts[-1])
        prompts = self._sampler.batch.new_prompts(max(longest, 1), prefix, len(contexts))
        if longest > begin:
            padded = [[*ids[begin:], *([0] * (longest - len(ids)))] for ids in contexts]
            yield from self._read(padded, begin, prompts)
            padding = sum(longest - len(ids) for ids in contexts)
            # Padding was counted as read.
            self._sampler.read_tokens -= padding
        self._join(prompts, contexts, [0] * len(contexts))

    def _continue(self, parts: list[tuple[Context, int, Slices]]) -> Iterator[None]:
        """Read contexts that begin each with something that is known, and let their rows join."""
        parts = [part for part in parts if self._rows([part[0]])]
        self.current = self._rows(context for context, _, _ in parts)
        if not self.current:
            return
        fresh = [context[length:] for context, length, _ in parts]
        longest = max(map(len, fresh))
        prompts, begins = behind_prefixes([known for _, _, known in parts], longest)
        if longest:
            padded = [[*ids, *([0] * (longest - len(ids)))] for ids in fresh]
            yield from self._read(padded, max(length for _, length, _ in parts), prompts, begins)
            self._sampler.read_tokens -= sum(longest - len(ids) for ids in fresh)
        self._join(prompts, [context for context, _, _ in parts], begins)

    def _join(self, prompts: Any, contexts: Sequence[Context], begins: Sequence[int]) -> None:
        """Let the rows of contexts join, which were read into a cache in this order."""
        places = [(place, row) for place, ids in enumerate(contexts) for row in self._rows([ids])]
        if places:
            rows, sources = [row for _, row in places], [place for place, _ in places]
            self._sampler.join(prompts, rows, sources, [begins[place] for place in sources])
            for row in rows:
                del self._waiting[id(row)]

    def _read(self, ids: Sequence[Sequence[int]], begin: int, cache: Any, starts: Sequence[int] = ()) -> Iterator[None]:
        """Read tokens of equal lengths, as many at once as the budget allows."""
        width = max(1, self._budget // len(ids))
        for start in range(0, len(ids[0]), width):
            # Pauses before a second pass and not behind the first: rows that one pass completes join at once.
            if self._passed:
                yield
                self.current = [row for row in self.current if id(row) in self._waiting]
                if not self.current:
                    return  # nobody waits for it any more
            part = [each[start : start + width] for each in ids]
            self._passed = True
            self._sampler.network.read(part, begin + start, cache, starts)
            self._sampler.passes += 1
            self._sampler.padded_tokens += len(part) * len(part[0])
            self._sampler.read_tokens += len(part) * len(part[0])

    def _rows(self, contexts: Iterable[Context]) -> list[R]:
        """The rows that wait for contexts."""
        return [row for ids in contexts for row in self._contexts[ids] if id(row) in self._waiting]


def _common(contexts: Sequence[Context]) -> int:
    """Tokens with which all contexts begin, if they are worth a pass of their own."""
    if len(contexts) < 2:
        return 0
    # What the least and the greatest have in common, all between them have.
    low, high = min(contexts), max(contexts)
    shorter = min(len(low), len(high))
    common = next((place for place in range(shorter) if low[place] != high[place]), shorter)
    return common if common >= LEAST else 0


P = TypeVar("P")


def _parts(prompts: Sequence[P], fresh: Callable[[P], int], budget: int) -> list[list[P]]:
    """Prompts, sorted by how many tokens are new, as passes of few enough tokens, and of lengths near enough."""
    parts: list[list[P]] = []
    for prompt in prompts:
        rows, length = len(parts[-1]) if parts else 0, fresh(prompt)
        # Rows too few to share a pass are padded rather than read alone: a pass costs more than its padding.
        wide = rows >= ROWS and length > 1.2 * fresh(parts[-1][0])
        if not rows or wide or (rows + 1) * length > budget:
            parts.append([])
        parts[-1].append(prompt)
    return parts
