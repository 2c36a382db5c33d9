"""A policy that is asked from other processes: the training answers on a socket, and runs elsewhere ask.

    training   PolicyServer   the runs that may ask, each with its seat     ─── one batch with all others ──► policy
    worker     PolicyLine     `ask` for one of its runs                     ◄── what was sampled, as numbers ──

First the token, then frames: four bytes of length, then JSON, `{"n", "run", "prompts"}` and `{"left": run}`; the answer
is `{"n", "answers"}` or `{"n", "error"}`. Invariants: nobody is heard who does not know the token, which workers are
given with their work; what a frame carries is numbers and names, never code; a run has one question under way, the
latest; a worker that is gone asks nothing more; and a line that breaks is made again, with the same questions, whose
answers follow from their seeds.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import itertools
import json
import secrets
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from concertino import ConcertinoError, UsageError

from concertino_train.policies import Prompt, Sample
from concertino_train.rollouts.gathering import Answer, Asks, Seat

_MOST_BYTES = 64 << 20
"""Of a frame: a million tokens take ten."""
_HELLO_SECONDS = 10.0
"""Seconds in which who connects has to say the token."""
_TRIES, _PAUSE = 4, 0.5
"""How often a question is asked over lines that break, and seconds between."""
_BROKEN = (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""Errors of a line that broke, or of a message that is not a question."""


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
        self._asking: dict[str, asyncio.Task[None]] = {}

    async def start(self) -> PolicyAddress:
        """Listen.

        Raises:
            UsageError: nobody can listen at this address.
        """
        try:
            self._server = await asyncio.start_server(self._met, self._host, 0)
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
            self._stop(run)

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
        # A worker that was killed leaves half a frame, and its order is carried out again.
        with contextlib.suppress(*_BROKEN):
            try:
                _keep_alive(writer)
                if not await self._knows_token(reader):
                    return
                while True:
                    told = await _read(reader)
                    run = str(told["left"] if "left" in told else told["run"])
                    # One question of a run at a time: an older one is of a worker that is gone, or thought to be.
                    self._stop(run)
                    if "left" in told:
                        self._leave(run)
                        continue
                    task = self._asking[run] = asyncio.ensure_future(self._answer(told, run, writer))
                    asking.add(task)
                    task.add_done_callback(asking.discard)
            finally:
                for task in list(asking):
                    task.cancel()
                writer.close()

    async def _knows_token(self, reader: asyncio.StreamReader) -> bool:
        async with asyncio.timeout(_HELLO_SECONDS):
            said = await reader.readexactly(len(self._token))
        return hmac.compare_digest(said, self._token.encode())

    def _stop(self, run: str) -> None:
        if (task := self._asking.pop(run, None)) is not None:
            task.cancel()

    def _leave(self, run: str) -> None:
        if run in self._seats:
            self._seats[run].leave()

    async def _answer(self, told: Mapping[str, Any], run: str, writer: asyncio.StreamWriter) -> None:
        seat = self._seats.get(run)
        if seat is None:
            found = _frame({"n": told["n"], "error": f"the run {run} is not under way here"})
        else:
            try:
                prompts = [Prompt(tuple(ids), most, role, seed) for ids, most, role, seed in told["prompts"]]
                answers = [_told(answer) for answer in await seat.ask(prompts)]
                found = _frame({"n": told["n"], "answers": answers})
            except asyncio.CancelledError:
                writer.write(_frame({"n": told["n"], "error": f"the run {run} is asked for by another worker"}))
                raise
            except Exception as error:
                # The run ends there, and what was raised is raised again where the training waits for it.
                self.failed[run] = error
                found = _frame({"n": told["n"], "error": f"{type(error).__name__}: {error}"})
        writer.write(found)
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
        asked = [[prompt.ids, prompt.most, prompt.role, prompt.seed] for prompt in prompts]
        for _ in range(_TRIES - 1):
            with contextlib.suppress(PolicyLost):
                return await self._ask(run, asked)
            await asyncio.sleep(_PAUSE)
        return await self._ask(run, asked)

    async def _ask(self, run: str, asked: list[list[Any]]) -> list[Answer]:
        writer = await self._open()
        number = next(self._numbers)
        answer: asyncio.Future[list[Answer]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            writer.write(_frame({"n": number, "run": run, "prompts": asked}))
            return await answer
        finally:
            del self._waiting[number]

    def leave(self, run: str) -> None:
        """This run asks no more."""
        task = self._opening
        if task is not None and task.done() and not task.cancelled() and task.exception() is None:
            task.result().write(_frame({"left": run}))

    async def close(self) -> None:
        """Hang up."""
        if self._hearing is not None:
            self._hearing.cancel()
            await asyncio.gather(self._hearing, return_exceptions=True)
        if self._opening is not None:
            with contextlib.suppress(PolicyLost):
                (await self._opening).close()

    async def _open(self) -> asyncio.StreamWriter:
        """The connection; all who ask meanwhile wait for the same."""
        task = self._opening
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._opening = asyncio.ensure_future(self._connect())
        return await asyncio.shield(task)

    async def _connect(self) -> asyncio.StreamWriter:
        where = self._address
        try:
            reader, writer = await asyncio.open_connection(where.host, where.port)
            _keep_alive(writer)
        except OSError as error:
            raise PolicyLost(
                f"the training is not to be reached at {where.host}:{where.port} ({error.strerror or error}); where "
                "workers are on other machines, rollout.listen names an address that they reach"
            ) from error
        writer.write(where.token.encode())
        self._hearing = asyncio.ensure_future(self._hear(reader, writer))
        return writer

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hand answers out, until nobody answers any more; the next question makes another line."""
        try:
            with contextlib.suppress(*_BROKEN):
                while True:
                    told = await _read(reader)
                    answer = self._waiting.get(told["n"])
                    if answer is None or answer.done():
                        continue  # who asked was cancelled meanwhile
                    if "error" in told:
                        answer.set_exception(UsageError(told["error"]))
                    else:
                        answer.set_result([_answer_of(each) for each in told["answers"]])
        finally:
            self._opening = None
            writer.close()
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


def _frame(told: Mapping[str, Any]) -> bytes:
    """A message.

    Raises:
        UsageError: it is too long.
    """
    body = json.dumps(told).encode()
    if len(body) > _MOST_BYTES:
        raise UsageError(f"a question or an answer of {len(body)} bytes; expected at most {_MOST_BYTES}: fewer tokens")
    return len(body).to_bytes(4, "big") + body


async def _read(reader: asyncio.StreamReader) -> dict[str, Any]:
    """The next message.

    Raises:
        EOFError, OSError: there is none any more.
        ValueError: the bytes are not a message.
    """
    size = int.from_bytes(await reader.readexactly(4), "big")
    if size > _MOST_BYTES:
        raise ValueError(f"a frame of {size} bytes")
    told = json.loads(await reader.readexactly(size))
    if not isinstance(told, dict):
        raise ValueError("no object")
    return told


def _keep_alive(writer: asyncio.StreamWriter) -> None:
    """Notice a peer that is gone without a word, within two minutes."""
    here: socket.socket = writer.get_extra_info("socket")
    here.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 6)):
        if hasattr(socket, name):  # Linux
            here.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _told(answer: Answer) -> list[Any]:
    # Python writes a float with as many digits as make it the same again.
    sample = answer.sample
    return [sample.ids, sample.logprobs, sample.finish, answer.version, answer.seconds]


def _answer_of(told: Sequence[Any]) -> Answer:
    ids, logprobs, finish, version, seconds = told
    return Answer(Sample(tuple(ids), tuple(logprobs), finish), version, seconds)
