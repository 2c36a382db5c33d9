"""A policy that is asked from other processes: the training answers on a socket, and runs elsewhere ask.

    training   PolicyServer   the runs that may ask, each with its seat     ─── one batch with all others ──► policy
    worker     PolicyLine     `ask` for one of its runs                     ◄── what was sampled, as numbers ──

Lines of JSON: `{"hello": token}` first, then `{"n", "run", "prompts"}` and `{"left": run}`; the answer is
`{"n", "answers"}` or `{"n", "error"}`. Invariants: nobody is heard who does not know the token, which workers are given
with their work; what a line carries is numbers and names, never code; and a worker that is gone asks nothing more, so
that nobody waits for its runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import itertools
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from concertino import ConcertinoError, UsageError

from concertino_train.policies import Prompt, Sample
from concertino_train.rollouts.gathering import Answer, Asks, Seat

_LINE_BYTES = 64 << 20
"""Bytes of a question or an answer at most: a million tokens take ten."""
_HELLO_SECONDS = 10.0
"""Seconds in which who connects has to say the token."""


class PolicyLost(ConcertinoError):
    """The training cannot be asked any more: it has ended, or the connection to it is broken."""


@dataclass(frozen=True)
class PolicyAddress:
    """Where a policy is asked, and what lets one ask."""

    host: str
    port: int
    token: str


class PolicyServer:
    """Answers the questions of runs elsewhere, from the seats that they were given here. On one event loop.

    Args:
        host: the address to listen at: loopback, or one that the other machines reach.

    Attributes:
        failed: by run, what the policy raised when it was asked.
    """

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.failed: dict[str, Exception] = {}
        self._host, self._token = host, secrets.token_hex(32)
        self._seats: dict[str, Seat] = {}
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    async def start(self) -> PolicyAddress:
        """Listen.

        Raises:
            UsageError: nobody can listen at this address.
        """
        try:
            self._server = await asyncio.start_server(self._met, self._host, 0, limit=_LINE_BYTES)
        except OSError as error:
            raise UsageError(
                f"rollout.listen={self._host!r}: {error.strerror or error}; give an address of this machine"
            ) from error
        return PolicyAddress(self._host, self._server.sockets[0].getsockname()[1], self._token)

    @contextlib.contextmanager
    def seated(self, run: str, seat: Seat) -> Iterator[None]:
        """While the block lasts, this run may ask."""
        self._seats[run] = seat
        try:
            yield
        finally:
            del self._seats[run]
            self.failed.pop(run, None)

    async def close(self) -> None:
        """Answer nobody any more."""
        if self._server is not None:
            self._server.close()
        for task in list(self._serving):
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def _met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until it is closed."""
        asking: set[asyncio.Task[None]] = set()
        try:
            if not await self._knows_token(reader):
                return
            while line := await reader.readline():
                told = json.loads(line)
                if "left" in told:
                    self._leave(told["left"])
                    continue
                task = asyncio.ensure_future(self._answer(told, writer))
                asking.add(task)
                task.add_done_callback(asking.discard)
        except (OSError, ValueError, KeyError, TypeError):
            pass  # a worker that was killed leaves half a line, and its order is carried out again
        finally:
            for task in list(asking):
                task.cancel()
            writer.close()

    async def _knows_token(self, reader: asyncio.StreamReader) -> bool:
        async with asyncio.timeout(_HELLO_SECONDS):
            told = json.loads(await reader.readline())
        return hmac.compare_digest(str(told.get("hello", "")).encode(), self._token.encode())

    def _leave(self, run: str) -> None:
        if run in self._seats:
            self._seats[run].leave()

    async def _answer(self, told: Mapping[str, Any], writer: asyncio.StreamWriter) -> None:
        run, seat = told["run"], self._seats.get(told["run"])
        if seat is None:
            found: dict[str, Any] = {"error": f"the run {run} is not under way here"}
        else:
            try:
                prompts = [Prompt(tuple(ids), most, role, seed) for ids, most, role, seed in told["prompts"]]
                found = {"answers": [_told(answer) for answer in await seat.ask(prompts)]}
            except Exception as error:
                # The run ends there, and what was raised is raised again where the training waits for it.
                self.failed[run] = error
                found = {"error": f"{type(error).__name__}: {error}"}
        writer.write(json.dumps({"n": told["n"], **found}).encode() + b"\n")
        with contextlib.suppress(OSError):
            await writer.drain()


class PolicyLine:
    """The way of a worker to the policy: one connection, many questions at once.

    Args:
        address: of the training's server.
    """

    def __init__(self, address: PolicyAddress) -> None:
        self._address = address
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[list[Answer]]] = {}
        self._opening: asyncio.Task[asyncio.StreamWriter] | None = None
        self._hearing: asyncio.Task[None] | None = None

    def seat(self, run: str) -> Asks:
        """The place of a run of this process."""
        return _RemoteSeat(self, run)

    async def ask(self, run: str, prompts: Sequence[Prompt]) -> list[Answer]:
        """What the policy samples.

        Raises:
            UsageError: it refuses to; says why.
            PolicyLost: it cannot be asked any more.
        """
        writer = await self._open()
        number = next(self._numbers)
        answer: asyncio.Future[list[Answer]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        asked = [[prompt.ids, prompt.most, prompt.role, prompt.seed] for prompt in prompts]
        try:
            self._send(writer, {"n": number, "run": run, "prompts": asked})
            return await answer
        finally:
            del self._waiting[number]

    def leave(self, run: str) -> None:
        """This run asks no more."""
        if self._opening is not None and self._opening.done() and not self._opening.cancelled():
            self._send(self._opening.result(), {"left": run})

    async def close(self) -> None:
        """Hang up."""
        if self._hearing is not None:
            self._hearing.cancel()
            await asyncio.gather(self._hearing, return_exceptions=True)
        if self._opening is not None:
            with contextlib.suppress(PolicyLost):
                (await self._opening).close()

    @staticmethod
    def _send(writer: asyncio.StreamWriter, told: Mapping[str, Any]) -> None:
        writer.write(json.dumps(told).encode() + b"\n")

    async def _open(self) -> asyncio.StreamWriter:
        """The connection; all who ask meanwhile wait for the same."""
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._connect())
        return await asyncio.shield(self._opening)

    async def _connect(self) -> asyncio.StreamWriter:
        where = self._address
        try:
            reader, writer = await asyncio.open_connection(where.host, where.port, limit=_LINE_BYTES)
        except OSError as error:
            raise PolicyLost(
                f"the training is not to be reached at {where.host}:{where.port} ({error.strerror or error}); where "
                "workers are on other machines, rollout.listen names an address that they reach"
            ) from error
        self._send(writer, {"hello": where.token})
        self._hearing = asyncio.ensure_future(self._hear(reader))
        return writer

    async def _hear(self, reader: asyncio.StreamReader) -> None:
        """Hand answers out, until nobody answers any more."""
        try:
            while line := await reader.readline():
                told = json.loads(line)
                answer = self._waiting.get(told["n"])
                if answer is None or answer.done():
                    continue  # who asked was cancelled meanwhile
                if "error" in told:
                    answer.set_exception(UsageError(told["error"]))
                else:
                    answer.set_result([_answer_of(each) for each in told["answers"]])
        except (OSError, ValueError):
            pass
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(PolicyLost("the training has ended, or the connection to it is broken"))


@dataclass(frozen=True)
class _RemoteSeat:
    """As `Seat`, for a run of another process."""

    line: PolicyLine
    run: str

    async def ask(self, prompts: Sequence[Prompt]) -> list[Answer]:
        return await self.line.ask(self.run, prompts)

    def leave(self) -> None:
        self.line.leave(self.run)


def _told(answer: Answer) -> list[Any]:
    # Python writes a float with as many digits as make it the same again.
    sample = answer.sample
    return [sample.ids, sample.logprobs, sample.finish, answer.version, answer.seconds]


def _answer_of(told: Sequence[Any]) -> Answer:
    ids, logprobs, finish, version, seconds = told
    return Answer(Sample(tuple(ids), tuple(logprobs), finish), version, seconds)
