"""The worker thread of a loaded model, and its inbox.

Whoever wants something puts a job into the inbox; the thread takes all that has come before each step. So a request
that arrives while others generate joins them at the next step, and one whose task no longer waits leaves at the next
step. What concerns the model as a whole (new weights) runs alone: what came before it ends first, what came after it
waits.

Invariant: the thread alone touches the network, the tokenizer's template and the cache. It lives from the first job
until the engine is closed or the model cannot be loaded; then every job that it has taken has had its answer.
"""

from __future__ import annotations

import atexit
import contextlib
import queue
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from concertino import FailureClass, ProviderError

from .jobs import Job, LocalStats, call_in
from .settings import LocalSettings

if TYPE_CHECKING:
    from .codec.vocabulary import Vocabulary

PATIENCE = 5.0
"""Seconds that the end of the process waits for a step that is under way."""


class Engine:
    """The thread and the inbox of one model."""

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
                # A daemon: `_end_all` says how long the interpreter waits for it.
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

    def _take(self, *, wait: bool) -> list[Job | None]:
        """The jobs that have come; at least one if `wait`."""
        jobs = [self._inbox.get()] if wait else []
        # Only this thread takes, so what is not empty stays so until `get`.
        while not self._inbox.empty():
            jobs.append(self._inbox.get())
        return jobs

    def _work(self) -> None:
        left: list[Job] = []
        error: BaseException = ProviderError(f"{self.settings.path}: the model was closed", failure=FailureClass.CALLER)
        try:
            left, error = self._serve(error)
        # Whatever ended the thread, every job that it took has to be answered.
        except BaseException as raised:
            error = raised
        # Under the lock: a job comes either before this and is answered here, or after it and finds no thread.
        with self._lock:
            left += [job for job in self._take(wait=False) if job is not None]
            self._thread = None
            self.stats = replace(self.stats, running=0, waiting=0)
            self.vocabulary = None
            calls, self._when_ended = self._when_ended, []
        for job in left:
            call_in(job.channel.loop, [(job.channel, error)])
        for call in calls:
            with contextlib.suppress(RuntimeError):  # its loop is closed
                call()

    def _serve(self, closed: BaseException) -> tuple[list[Job], BaseException]:
        """Load the model and work until the end: the jobs that got no answer, and why."""
        # Imported in the thread, since torch takes seconds and the event loop must not wait.
        from .loading import load
        from .session import Session

        loaded = load(self.settings)
        self.vocabulary = loaded.codec.vocabulary
        return Session(self.settings, loaded, self.stats, self._take).run(closed), closed


# Weak, so that a model that nobody uses is collected.
_running: weakref.WeakSet[Engine] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    """End the threads before the interpreter does: one inside torch would crash it."""
    threads = [engine.close() for engine in list(_running)]
    for thread in threads:
        if thread is not None:
            thread.join(PATIENCE)
