"""The tiny conductor as a model: messages in, one turn's text out, computed here with numpy.

It writes only names that the prompt lists; log-probabilities are those among the allowed tokens. It caches the keys and
values of recent conversations, so a longer conversation costs only its new tokens. Invariant: a reply depends on the
messages and the sampling alone, never on earlier requests.
"""

from __future__ import annotations

import asyncio
import codecs
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from concertino import ChatRequest, FailureClass, Message, Model, ParallelRounds, ProviderError, Reply, Sampling, Usage

from .guide import Guide
from .tokenizer import BytePairTokenizer
from .transformer import BLOCK, Floats, KeyValueCache, Transformer

TINY = Path(__file__).with_name("tiny")
"""The folder of the model that is shipped; any other tiny model of the same form can stand in for it."""
MOST_TOKENS = 512
"""Tokens of a reply, unless the request says otherwise."""
_REMEMBERED = 16
"""Conversations that are remembered."""


def strategy(**settings: Any) -> ParallelRounds:
    """The strategy that the tiny conductor was trained for: brief prompts, references, short observations.

    Args:
        settings: further settings of `ParallelRounds`, or other values of these.
    """
    chosen: dict[str, Any] = {"prompt": "brief", "references": True, "show_budget": False, "observation_tokens": 80}
    return ParallelRounds(**{**chosen, **settings})


@dataclass
class _CachedSequence:
    """A sequence and what was computed of it."""

    ids: list[int]
    cache: KeyValueCache


class TinyConductor(Model):
    """A tiny transformer that leads parallel rounds with brief prompts and references.

    Args:
        folder: with `config.json`, `model.safetensors` and `tokenizer.json`.
        guided: write names of members, arguments and choices only as the prompt offers them (see `guide`).
    """

    def __init__(self, folder: Path = TINY, *, guided: bool = True) -> None:
        self._folder, self._guided = folder, guided
        self._lines: OrderedDict[int, _CachedSequence] = OrderedDict()
        self._count = 0

    @cached_property
    def transformer(self) -> Transformer:
        """Its weights, read at the first request."""
        return Transformer(self._folder)

    @cached_property
    def tokenizer(self) -> BytePairTokenizer:
        """Its tokens."""
        return BytePairTokenizer(self._folder / "tokenizer.json")

    def count_tokens(self, text: str) -> int:
        """Tokens of a text."""
        return len(self.tokenizer.ids(text))

    def prompt_ids(self, messages: Sequence[Message]) -> list[int]:
        """A conversation as tokens, up to where the model writes: ChatML."""
        ids: list[int] = []
        for message in messages:
            ids += self._opened(message.role)
            ids += [*self.tokenizer.ids(message.text), self.tokenizer.end, *self.tokenizer.ids("\n")]
        return ids + self._opened("assistant")

    def _prepared(self, messages: Sequence[Message]) -> tuple[list[int], int]:
        """The prompt, and how much can be read; what was not read from disk yet is read now."""
        return self.prompt_ids(messages), self.transformer.context

    def _opened(self, role: str) -> list[int]:
        return [self.tokenizer.start, *self.tokenizer.ids(f"{role}\n")]

    async def chat(self, request: ChatRequest) -> Reply:
        """Write the next turn.

        Raises:
            ProviderError: the conversation is longer than the model can read (CALLER).
        """
        said = [piece async for piece in self.stream(request)]
        reply = said[-1]
        assert isinstance(reply, Reply)
        return reply

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | Reply]:
        """Yield the text as it is written, then the reply.

        Raises:
            ProviderError: as `chat`.
        """
        # Reading the weights and cutting the prompt takes long enough to hold up the event loop.
        prompt, context = await asyncio.to_thread(self._prepared, request.messages)
        sampling, room = request.sampling, context - len(prompt)
        if room < 1:
            message = f"the conversation has {len(prompt)} tokens; {context - 1} can be read; shorten it"
            raise ProviderError(message, failure=FailureClass.CALLER)
        most = min(sampling.max_tokens or MOST_TOKENS, room)
        line, known = self._taken(prompt, most)
        sampler = _Sampler(sampling)
        guide = Guide(request.messages if self._guided else (), self.tokenizer)
        writing = _Writing(sampling.stop)
        written: list[int] = []
        finish = "length"
        logits = await self._read(line, prompt[known:])
        while len(written) < most:
            if (names := guide.names(writing.text)) and self._fit(names, line.cache):
                scores = await asyncio.to_thread(self._scored, names, line.cache, logits)
                sampler.follow(self.tokenizer.ids(names[sampler.choose(scores)]))
            token = sampler.choose(guide.steered(writing.text, logits), guide.allowed(writing.text))
            written.append(token)
            if token == self.tokenizer.end:
                finish = "stop"
                break
            if piece := writing.add(self.tokenizer.raw([token])):
                yield piece
            if writing.stopped:
                finish = "stop"
                break
            # The logits behind the last token are not needed, and each pass costs as much as any other.
            if len(written) < most:
                logits = await self._read(line, [token])
        self._keep(line)
        if piece := writing.rest():
            yield piece
        usage = Usage(input_tokens=len(prompt), output_tokens=len(written), cached_tokens=known)
        more = (tuple(written), tuple(sampler.logprobs), tuple(prompt)) if sampling.logprobs else (None, None, None)
        yield Reply(
            writing.text,
            usage=usage,
            finish_reason=finish,
            token_ids=more[0],
            logprobs=more[1],
            prompt_token_ids=more[2],
        )

    async def _read(self, line: _CachedSequence, ids: list[int]) -> Floats:
        """Compute what is new, in blocks, each in a thread; logits behind the last token."""
        logits: Floats | None = None
        for start in range(0, len(ids), BLOCK):
            block = ids[start : start + BLOCK]
            logits = await asyncio.to_thread(self.transformer.logits, block, line.cache)
            line.ids += block
        assert logits is not None
        return logits

    def _fit(self, names: Sequence[str], cache: KeyValueCache) -> bool:
        """Whether there is room to read any of the names; at the end of a reply that is cut off there is not."""
        room = cache.keys[0].shape[1] - cache.length
        return all(len(self.tokenizer.ids(name)) <= room for name in names)

    def _scored(self, names: Sequence[str], cache: KeyValueCache, logits: Floats) -> Floats:
        """How probable each name is as a whole, shape (names,); the first token that differs does not decide alone.

        Logarithms, as if all names had as many tokens: by their sum a name of one word would win over any of four.

        Args:
            names: of which one is written next.
            cache: of what is behind it; as it was afterwards.
            logits: of the next token.
        """
        length, scores, sizes = cache.length, [], []
        ends = [number for number, _ in self.tokenizer.by_begin[b'"']]
        for name in names:
            ids = self.tokenizer.ids(name)
            seen = _logs(np.vstack([logits, self.transformer.logits(ids, cache, every=True)]))
            # Takes the name back: its keys and values are written over by the next.
            cache.length = length
            ended = np.log(np.exp(seen[-1, ends]).sum())
            scores.append((seen[np.arange(len(ids)), ids].sum() + ended) / (len(ids) + 1))
            sizes.append(len(ids) + 1)
        return np.asarray(scores, np.float32) * np.float32(np.mean(sizes))

    # -- what is remembered ----------------------------------------------------------------------------------------

    def _taken(self, prompt: list[int], most: int) -> tuple[_CachedSequence, int]:
        """A sequence with the longest known beginning of a prompt, and its length; no other request uses it."""
        known, key = max(((_common(line.ids, prompt), key) for key, line in self._lines.items()), default=(0, -1))
        known = min(known, len(prompt) - 1)  # the last token is read again, for its logits
        cache = self.transformer.cache(len(prompt) + most)
        if known:
            # Copied, for another request may continue the same conversation.
            old = self._lines[key].cache
            for fresh, told in zip((*cache.keys, *cache.values), (*old.keys, *old.values), strict=True):
                fresh[:, :known] = told[:, :known]
            cache.length = known
        return _CachedSequence(prompt[:known], cache), known

    def _keep(self, line: _CachedSequence) -> None:
        """Remember a sequence, in place of one that it continues, or of the oldest."""
        for key, other in list(self._lines.items()):
            # A sequence that this one continues is of no further use.
            if _common(other.ids, line.ids) == len(other.ids):
                del self._lines[key]
        self._count += 1
        self._lines[self._count] = line
        while len(self._lines) > _REMEMBERED:
            self._lines.popitem(last=False)

    async def close(self) -> None:
        """Forget everything that was asked."""
        self._lines.clear()


def _logs(logits: Floats) -> Floats:
    """Log-probabilities, by row."""
    logits = logits - logits.max(-1, keepdims=True)
    sums: Floats = np.exp(logits).sum(-1, keepdims=True, dtype=np.float32)
    return logits - np.log(sums)


def _common(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens two sequences begin with alike."""
    least = min(len(first), len(second))
    return next((place for place in range(least) if first[place] != second[place]), least)


class _Sampler:
    """Chooses tokens: the most probable one, or a random one if there is a temperature."""

    def __init__(self, sampling: Sampling) -> None:
        self._temperature = sampling.temperature or 0.0
        self._top = 1.0 if sampling.top_p is None else sampling.top_p
        self._rng = np.random.default_rng(sampling.seed)
        self.logprobs: list[float] = []
        self._decided: list[int] = []
        self._borne = 0.0

    def follow(self, tokens: Sequence[int]) -> None:
        """Take these next: they were chosen as a whole, and the first carries the log-probability of that choice."""
        self._decided = list(tokens)
        self._borne = self.logprobs.pop()

    def choose(self, logits: Floats, among: Sequence[int] = ()) -> int:
        """The next token, of these alone if there are any."""
        if self._decided:
            self.logprobs.append(self._borne)
            self._borne = 0.0
            return self._decided.pop(0)
        scaled = logits.astype(np.float64) / (self._temperature or 1.0)
        if among:
            others = np.ones(len(scaled), bool)
            others[list(among)] = False
            scaled[others] = -np.inf
        scaled -= scaled.max()
        logs = scaled - np.log(np.exp(scaled).sum())
        token = int(np.argmax(scaled)) if not self._temperature else self._drawn(np.exp(logs))
        # Rounding may put it above 0, which no log-probability is.
        self.logprobs.append(float(min(0.0, logs[token])))
        return token

    def _drawn(self, shares: np.ndarray) -> int:
        order = np.argsort(-shares, kind="stable")
        kept = order[: int(np.searchsorted(np.cumsum(shares[order]), self._top)) + 1]
        weights = shares[kept] / shares[kept].sum()
        # Rounding may put the number behind the last share.
        return int(kept[int(np.searchsorted(np.cumsum(weights), self._rng.random()).clip(0, len(kept) - 1))])


class _Writing:
    """The text of a reply while it grows; what may be the beginning of a stop text is held back."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [stop for stop in stops if stop]
        # So much of the end may belong to a stop text that is not whole yet.
        self._held = max((len(stop) for stop in self._stops), default=1) - 1
        # A token may end inside a letter of several bytes.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.text = ""
        self._given = 0
        self.stopped = False

    def add(self, data: bytes) -> str:
        """Append bytes; returns the text that can be shown."""
        self.text += self._decoder.decode(data)
        found = [place for stop in self._stops if (place := self.text.find(stop)) >= 0]
        if found:
            self.text, self.stopped = self.text[: min(found)], True
        return self._show(len(self.text) - (0 if self.stopped else self._held))

    def rest(self) -> str:
        """What was held back."""
        if not self.stopped:
            self.text += self._decoder.decode(b"", final=True)
        return self._show(len(self.text))

    def _show(self, end: int) -> str:
        piece = self.text[self._given : max(end, self._given)]
        self._given += len(piece)
        return piece
