"""The worker thread of a loaded model, and its inbox.

Whoever wants something puts a job into the inbox; the thread takes all that has come before each step. So a request
that arrives while others generate joins them at the next step, and one whose task no longer waits leaves at the next
step. What concerns the model as a whole (new weights) runs alone: what came before it ends first, what came after it
waits.

Invariant: the thread alone touches the network, the tokenizer's template and the cache. It lives from the first job
until the engine is closed or the model cannot be loaded; then every job that it has taken has had its answer.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import queue
import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from concertino import FailureClass, ProviderError

from .errors import is_out_of_memory
from .request import Channel, Row
from .settings import LocalSettings

if TYPE_CHECKING:
    from .codec import Vocabulary
    from .decoder import Token
    from .loading import Loaded

FIRST_WEIGHTS = "0"
PATIENCE = 5.0
"""Seconds that the end of the process waits for a step that is under way."""


@dataclass
class LocalStats:
    """What a model has done since it was loaded.

    Attributes:
        steps: forward passes that added a token to every row of the batch.
        prompts: forward passes over prompts.
        prompt_tokens: tokens read in them, padding not counted.
        cached_tokens: prompt tokens that did not have to be read, as their keys and values were known.
        output_tokens: tokens sampled.
        finished, cancelled, failed: requests by how they ended.
        running, waiting: requests that generate now, and that wait.
        weights: version of the weights.
    """

    steps: int = 0
    prompts: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    finished: int = 0
    cancelled: int = 0
    failed: int = 0
    running: int = 0
    waiting: int = 0
    weights: str = FIRST_WEIGHTS


@dataclass
class Job:
    """Something to be done by the worker.

    Attributes:
        channel: who waits for it.
        prepare: makes the row of a request.
        alone: work on the session that runs while nothing generates; instead of `prepare`.
    """

    channel: Channel
    prepare: Callable[[Session], Row] | None = None
    alone: Callable[[Session], Any] | None = None


class Engine:
    """The thread and the inbox of one model.

    Args:
        settings: of the model.
    """

    def __init__(self, settings: LocalSettings) -> None:
        self.settings = settings
        self.stats = LocalStats()
        self._inbox: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._lock = threading.RLock()  # a collection inside of it may close this very engine
        self._thread: threading.Thread | None = None
        self._closed = False
        self._when_ended: list[Callable[[], object]] = []
        self.vocabulary: Vocabulary | None = None

    def submit(self, job: Job) -> None:
        """Put a job into the inbox; the first one starts the thread.

        Raises:
            ProviderError: the engine is closed.
        """
        with self._lock:
            if self._closed:
                raise ProviderError(f"{self.settings.path}: the model is closed", failure=FailureClass.CALLER)
            self._inbox.put(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="concertino-local", daemon=True)
                self._thread.start()
                _running.add(self)

    def close(self, when_ended: Callable[[], object] | None = None) -> threading.Thread | None:
        """Ask the thread to end. May be called twice, and from any thread.

        Args:
            when_ended: called by the thread at its end.

        Returns:
            The thread, None if there is none; then `when_ended` is not called.
        """
        with self._lock:
            if not self._closed:
                self._closed = True
                self._inbox.put(None)
            if self._thread is not None and when_ended is not None:
                self._when_ended.append(when_ended)
            return self._thread

    def take(self, *, wait: bool) -> list[Job | None]:
        """The jobs that have come; at least one if `wait`."""
        jobs = [self._inbox.get()] if wait else []
        while not self._inbox.empty():
            jobs.append(self._inbox.get())
        return jobs

    def _work(self) -> None:
        left: list[Job] = []
        error: BaseException = ProviderError(f"{self.settings.path}: the model was closed", failure=FailureClass.CALLER)
        try:
            left, error = self._serve(error)
        except BaseException as raised:
            error = raised
        with self._lock:
            left += [job for job in self.take(wait=False) if job is not None]
            self._thread = None
            self.stats = replace(self.stats, running=0, waiting=0)
            self.vocabulary = None
            calls, self._when_ended = self._when_ended, []
        for job in left:
            _call_in(job.channel.loop, [(job.channel, error)])
        for call in calls:
            with contextlib.suppress(RuntimeError):  # its loop is closed
                call()

    def _serve(self, closed: BaseException) -> tuple[list[Job], BaseException]:
        """Load the model and work until the end: the jobs that got no answer, and why."""
        from .loading import load

        session = Session(self, load(self.settings))
        self.vocabulary = session.loaded.codec.vocabulary
        return session.run(closed), closed


class Session:
    """A loaded model at work; lives in the thread.

    Args:
        engine: whose thread this is.
        loaded: the model.

    Attributes:
        tokens: token ids that the network knows.
        replacements: how often its weights were replaced.
    """

    def __init__(self, engine: Engine, loaded: Loaded) -> None:
        import torch

        from .decoder import Decoder
        from .grammar import Grammars
        from .prefix import PrefixCache

        self._engine = engine
        self.settings = engine.settings
        self.loaded = loaded
        self.stats = engine.stats
        self.stats.weights = FIRST_WEIGHTS
        self.replacements = 0
        self.prefixes = PrefixCache(0 if loaded.solo else self.settings.prefix_tokens)
        self.decoder = Decoder(loaded.network, self.prefixes, solo=loaded.solo)
        self._rows = 1 if loaded.solo else self.settings.max_batch
        self._pass = loaded.context if loaded.solo else self.settings.prefill_tokens
        self.tokens = int(loaded.network.get_input_embeddings().weight.shape[0])
        self.grammars = Grammars(loaded.codec, self.tokens)
        self._waiting: deque[Job] = deque()
        self._pending: list[Row] = []
        self._outbox: dict[asyncio.AbstractEventLoop, list[tuple[Channel, Any]]] = {}
        if self.settings.threads is not None:
            torch.set_num_threads(self.settings.threads)

    def run(self, closed: BaseException) -> list[Job]:
        """Work until the engine is closed.

        Returns:
            Jobs that were not begun.
        """
        import torch

        try:
            with torch.inference_mode():
                while self._take():
                    self._drop_cancelled()
                    self._admit()
                    self._read_prompts()
                    self._step()
                    self._report()
        except BaseException as error:  # whatever it is, nobody may wait for ever
            closed = error
            raise
        finally:
            for row in [*self._pending, *self.decoder.rows]:
                self._post(row.channel, closed)
            self._flush()
        return list(self._waiting)

    # -- what comes and goes ---------------------------------------------------------------------------------------

    def _take(self) -> bool:
        """Take new jobs, and wait for one if there is nothing to do. False at the end."""
        idle = not (self._waiting or self._pending or self.decoder.rows)
        jobs = self._engine.take(wait=idle)
        self._waiting += [job for job in jobs if job is not None]
        return None not in jobs

    def _drop_cancelled(self) -> None:
        """Let go of what nobody waits for."""
        before = len(self._waiting) + len(self._pending) + len(self.decoder.rows)
        self._waiting = deque(job for job in self._waiting if not job.channel.cancelled)
        self._pending = [row for row in self._pending if not row.channel.cancelled]
        self.decoder.keep([not row.channel.cancelled for row in self.decoder.rows])
        self.stats.cancelled += before - len(self._waiting) - len(self._pending) - len(self.decoder.rows)

    def _admit(self) -> None:
        """Begin what may begin, in the order of arrival."""
        while self._waiting and len(self._pending) + len(self.decoder.rows) < self._rows:
            job = self._waiting[0]
            if job.alone is not None and (self._pending or self.decoder.rows):
                return
            self._waiting.popleft()
            try:
                if job.alone is not None:
                    self._post(job.channel, job.alone(self))
                elif job.prepare is not None:
                    row = job.prepare(self)
                    row.weights = self.stats.weights
                    self._pending.append(row)
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
        self.stats.running = len(self.decoder.rows)
        self.stats.waiting = len(self._waiting) + len(self._pending)
        self._flush()

    def _flush(self) -> None:
        for loop, events in self._outbox.items():
            if not _call_in(loop, events):
                for channel, _ in events:
                    channel.cancelled = True
        self._outbox = {}

    # -- generating ------------------------------------------------------------------------------------------------

    def _read_prompts(self) -> None:
        """One pass over prompts that wait to be read."""
        if not self._pending:
            return
        rows = self.decoder.group(self._pending, self._pass)
        try:
            count, tokens = self.decoder.read(rows, self._pass)
        except Exception as error:
            self._pending = [row for row in self._pending if row not in rows]
            self._fail([row.channel for row in rows], self._explain(error))
            return
        self.stats.prompts += 1
        self.stats.prompt_tokens += count
        joined = {id(token.row) for token in tokens}
        self.stats.cached_tokens += sum(token.row.cached for token in tokens)
        self._pending = [row for row in self._pending if id(row) not in joined]
        self._accept(tokens)

    def _step(self) -> None:
        """One token for each row of the batch."""
        while self.decoder.rows:
            try:
                tokens = self.decoder.step()
            except Exception as error:
                self.decoder.undo()
                self._shed(error)
                continue
            self.stats.steps += 1
            self._accept(tokens)
            return

    def _shed(self, error: Exception) -> None:
        """After a failed step: without memory the youngest row leaves, else all do."""
        rows = self.decoder.rows
        kept = len(rows) - 1 if is_out_of_memory(error) else 0
        self._fail([row.channel for row in rows[kept:]], self._explain(error))
        self.decoder.keep([place < kept for place in range(len(rows))], remember=False)

    def _accept(self, tokens: list[Token]) -> None:
        """Add tokens to their rows; what is finished leaves."""
        self.stats.output_tokens += len(tokens)
        for row, token, logprob in tokens:
            piece = row.accept(token, logprob)
            if piece and row.streams:
                self._post(row.channel, piece)
            if row.finish_reason:
                self.stats.finished += 1
                self._post(row.channel, row)
        self.decoder.keep([not row.finish_reason for row in self.decoder.rows])

    def _explain(self, error: Exception) -> Exception:
        """A failure of the network in words that help."""
        if not is_out_of_memory(error):
            return error
        self.prefixes.clear()
        alone = len(self._pending) + len(self.decoder.rows) <= 1
        return ProviderError(
            f"{self.settings.path}: out of memory with {len(self.decoder.rows)} requests under way ({error}); lower "
            f"max_batch (now {self.settings.max_batch}), prefill_tokens or context",
            failure=FailureClass.CALLER if alone else FailureClass.THROTTLED,
        )


def _call_in(loop: asyncio.AbstractEventLoop, events: list[tuple[Channel, Any]]) -> bool:
    """Deliver events in their loop; False if that is closed."""
    try:
        loop.call_soon_threadsafe(_deliver, events)
    except RuntimeError:
        return False
    return True


def _deliver(events: list[tuple[Channel, Any]]) -> None:
    for channel, event in events:
        channel.events.put_nowait(event)


_running: weakref.WeakSet[Engine] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    """End the threads before the interpreter does: one inside torch would crash it."""
    threads = [engine.close() for engine in list(_running)]
    for thread in threads:
        if thread is not None:
            thread.join(PATIENCE)
