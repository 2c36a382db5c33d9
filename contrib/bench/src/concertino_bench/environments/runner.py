"""Scripts for environments that are used without a pool: a sandbox of concertino-code behind a plain function.

In a run, the world of a task calls the pool's own tool instead, so that scripts are counted and traced like any call.
The invariant: a script runs in a sandbox that passed its self-test, or not at all.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, Self

from concertino import UsageError

from .acting import Ran

if TYPE_CHECKING:
    from concertino_code.sandbox import Sandbox


class ScriptRunner:
    """Runs scripts one after another in a sandbox, which is opened at the first one. Close it, or use `with`.

    Args:
        options: of `concertino_code.sandbox.open_sandbox`.

        with ScriptRunner() as run:
            environment = CodeTests(instance, run=run)
    """

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._sandbox: Sandbox | None = None

    def __call__(self, script: str) -> Ran:
        """Run a script.

        Raises:
            UsageError: concertino-code is not installed.
            SandboxUnavailable: this machine has no sandbox.
        """
        with self._lock:
            loop = self._started()
            return asyncio.run_coroutine_threadsafe(self._run(script), loop).result()

    async def _run(self, script: str) -> Ran:
        if self._sandbox is None:
            try:
                from concertino_code.sandbox import open_sandbox
            except ImportError as error:
                raise UsageError("scripts need a sandbox; pip install concertino-code") from error
            self._sandbox = await open_sandbox(**self._options)
        done = await self._sandbox.run(script)
        return Ran(done.ok, done.stdout.text, "" if done.ok else done.explain())

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            # A loop of its own: environments are stepped from plain code, which may itself be inside a running loop.
            self._loop = asyncio.new_event_loop()
            # Daemon: a runner that nobody closed must not keep the process from ending.
            self._thread = threading.Thread(target=self._loop.run_forever, name="script-runner", daemon=True)
            self._thread.start()
        return self._loop

    def close(self) -> None:
        """Give the sandbox back. May be called twice."""
        with self._lock:
            loop, thread, self._loop = self._loop, self._thread, None
            if loop is None or thread is None:
                return
            if self._sandbox is not None:
                asyncio.run_coroutine_threadsafe(self._sandbox.close(), loop).result()
                self._sandbox = None
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()
