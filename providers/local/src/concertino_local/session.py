"""A loaded model at work: what comes is admitted, prompts are read, and each step adds a token to every row.

A `Session` lives in the worker thread of its engine, which alone touches the network, the template and the cache.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from typing import Any

import torch
from concertino import FailureClass, ProviderError

from .errors import is_out_of_memory
from .grammar import Grammars
from .jobs import FIRST_WEIGHTS, Channel, Job, LocalStats, call_in
from .loading import Loaded
from .request import RequestRow
from .sampling import Network
from .sampling.prefixes import PrefixCache
from .sampling.sampler import BatchSampler, PromptReading
from .settings import LocalSettings


class Session:
    """A loaded model at work; lives in the thread.

    Args:
        settings, loaded: the model.
        stats: what is counted.
        take: the jobs that have come; waits for one if `wait`.

    Attributes:
        tokens: token ids that the network knows.
        replacements: how often its weights were replaced.
    """

    def __init__(
        self, settings: LocalSettings, loaded: Loaded, stats: LocalStats, take: Callable[..., list[Job | None]]
    ) -> None:
        self.settings = settings
        self.loaded = loaded
        self.stats = stats
        self._take_jobs = take
        self.stats.weights = FIRST_WEIGHTS
        self.replacements = 0
        self.prefixes = PrefixCache(0 if loaded.solo else self.settings.prefix_tokens)
        self.sampler = self._new_sampler()
        self._most = 1 if loaded.solo else self.settings.max_batch
        self._pass = loaded.context if loaded.solo else self.settings.prefill_tokens
        self.tokens = self.sampler.network.vocabulary
        self.grammars = Grammars(loaded.codec, self.tokens)
        self._waiting: deque[Job] = deque()
        self._pending: list[RequestRow] = []  # whose prompts are not being read yet
        self._reading: PromptReading[RequestRow] | None = None
        self._arrivals = 0
        self._outbox: dict[asyncio.AbstractEventLoop, list[tuple[Channel, Any]]] = {}
        if self.settings.threads is not None:
            torch.set_num_threads(self.settings.threads)

    def use_network(self, network: Any) -> None:
        """Generate with this network from now on; nothing may be under way."""
        self.loaded.network = network
        self.prefixes.clear()
        self.sampler = self._new_sampler()

    def _new_sampler(self) -> BatchSampler[RequestRow]:
        return BatchSampler(Network(self.loaded.network), solo=self.loaded.solo, prefixes=self.prefixes)

    def run(self, closed: BaseException) -> list[Job]:
        """Work until the engine is closed.

        Returns:
            Jobs that were not begun.
        """
        try:
            with torch.inference_mode():
                while self._take():
                    self._drop_cancelled()
                    self._admit()
                    self._read_prompts()
                    self._step()
                    self._report()
        except BaseException as error:  # whatever it is, no caller may wait for ever
            closed = error
            raise
        finally:
            for row in self._rows():
                self._post(row.channel, closed)
            self._flush()
        return list(self._waiting)

    def _rows(self) -> list[RequestRow]:
        """All rows under way."""
        return [*self._pending, *(self._reading.waiting if self._reading else ()), *self.sampler.rows]

    # -- what comes and goes ---------------------------------------------------------------------------------------

    def _take(self) -> bool:
        """Take new jobs, and wait for one if there is nothing to do. False at the end."""
        jobs = self._take_jobs(wait=not (self._waiting or self._rows()))
        self._waiting += [job for job in jobs if job is not None]
        return None not in jobs

    def _drop_cancelled(self) -> None:
        """Let go of what nobody waits for."""
        before = len(self._waiting) + len(self._rows())
        self._waiting = deque(job for job in self._waiting if not job.channel.cancelled)
        self._pending = [row for row in self._pending if not row.channel.cancelled]
        if self._reading is not None:
            self._reading.drop(lambda row: not row.channel.cancelled)
        self._leave(lambda row: row.channel.cancelled)
        self.stats.cancelled += before - len(self._waiting) - len(self._rows())

    def _leave(self, gone: Callable[[RequestRow], object], *, remember: bool = True) -> None:
        """Let rows leave the batch."""
        self.sampler.leave([place for place, row in enumerate(self.sampler.rows) if gone(row)], remember=remember)

    def _admit(self) -> None:
        """Begin what may begin, in the order of arrival."""
        while self._waiting and len(self._rows()) < self._most:
            job = self._waiting[0]
            # It may change the weights, and rows under way would go on with others than they began with.
            if job.alone is not None and self._rows():
                return
            self._waiting.popleft()
            try:
                if job.alone is not None:
                    self._post(job.channel, job.alone(self))
                elif job.prepare is not None:
                    row = job.prepare(self)
                    row.weights = self.stats.weights
                    row.number, self._arrivals = self._arrivals, self._arrivals + 1
                    self._pending.append(row)
            # A request that cannot be prepared fails alone; the batch continues.
            except Exception as error:
                self._fail([job.channel], error)

    def _post(self, channel: Channel, event: Any) -> None:
        self._outbox.setdefault(channel.loop, []).append((channel, event))

    def _fail(self, channels: list[Channel], error: BaseException) -> None:
        self.stats.failed += len(channels)
        for channel in channels:
            self._post(channel, error)

    def _report(self) -> None:
        """Send what has happened in this step."""
        self.stats.running = len(self.sampler.rows)
        self.stats.waiting = len(self._waiting) + len(self._rows()) - self.stats.running
        self._flush()

    def _flush(self) -> None:
        for loop, events in self._outbox.items():
            if not call_in(loop, events):
                # Its event loop is closed, so nobody can wait for them any more.
                for channel, _ in events:
                    channel.cancelled = True
        self._outbox = {}

    # -- generating ------------------------------------------------------------------------------------------------

    def _read_prompts(self) -> None:
        """One pass over prompts that wait to be read."""
        if self._reading is None and self._pending:
            self._reading, self._pending = self.sampler.read(self._pending, self._pass), []
        if self._reading is None:
            return
        reading, passes, tokens = self._reading, self.sampler.passes, self.sampler.read_tokens
        waiting = reading.waiting
        try:
            reading.advance()
        except Exception as error:
            # Rows of other parts of the same reading are read again, as nothing is wrong with them.
            failed = set(map(id, reading.current))
            self._fail([row.channel for row in reading.current], self._explain(error))
            self._pending = [row for row in reading.waiting if id(row) not in failed] + self._pending
            self._reading = None
            return
        self.stats.prompts += self.sampler.passes - passes
        self.stats.prompt_tokens += self.sampler.read_tokens - tokens
        still = set(map(id, reading.waiting))
        self.stats.cached_tokens += sum(row.cached for row in waiting if id(row) not in still)
        if reading.done:
            self._reading = None

    def _step(self) -> None:
        """One token for each row of the batch."""
        # After a failure the rows that are left try again at once; each failure takes one row at least.
        while rows := self.sampler.rows:
            try:
                tokens, logprobs = (each.tolist() for each in self.sampler.step())
                if not all(map(math.isfinite, logprobs)):
                    raise FloatingPointError("the model's logits are not finite; its weights or its dtype are broken")
            # Whatever the network raises concerns rows; the thread has to live on for the others.
            except Exception as error:
                self.sampler.undo()
                self._shed(error)
                continue
            self.stats.steps += 1
            self.stats.output_tokens += len(rows)
            for row, token, logprob in zip(rows, tokens, logprobs, strict=True):
                self._accept(row, token, logprob)
            self._leave(lambda row: row.finish_reason)
            return

    def _accept(self, row: RequestRow, token: int, logprob: float) -> None:
        """Add a token to its row."""
        piece = row.accept(token, logprob)
        if piece and row.streams:
            self._post(row.channel, piece)
        if row.finish_reason:
            self.stats.finished += 1
            self._post(row.channel, row)

    def _shed(self, error: Exception) -> None:
        """After a failed step: the youngest row leaves if memory ran out, else all do."""
        # The youngest has the least to lose.
        youngest = max(self.sampler.rows, key=lambda row: row.number)
        gone = [youngest] if is_out_of_memory(error) else self.sampler.rows
        self._fail([row.channel for row in gone], self._explain(error))
        self._leave(lambda row: row in gone, remember=False)

    def _explain(self, error: Exception) -> Exception:
        """A failure of the network in words that help."""
        if not is_out_of_memory(error):
            return error
        # Memory that is only kept for later is freed before others try again.
        self.prefixes.clear()
        # Alone it will never fit; beside others it may, later.
        alone = len(self._rows()) <= 1
        return ProviderError(
            f"{self.settings.path}: out of memory with {len(self.sampler.rows)} requests under way ({error}); lower "
            f"max_batch (now {self.settings.max_batch}), prefill_tokens or context",
            failure=FailureClass.CALLER if alone else FailureClass.THROTTLED,
        )
