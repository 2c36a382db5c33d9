"""How the server listens: its socket, and HTTP with limits that the application cannot set.

Invariant: a client that connects and does not finish the head of a request is dropped after some seconds, so idle and
slow clients hold no connection for long. The body has a limit of its own, in `gate`.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket

import uvicorn
from concertino.core.errors import UsageError
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

ENDS_WITH_SERVER = "concertino.ends_with_server"
"""In the scope of a request: its answer has no end of its own, so a stop of the server does not wait for it."""
HEAD_SECONDS = 20.0
"""Until the head of a request has come."""


class PatientProtocol(H11Protocol):
    """HTTP/1.1 that waits so long for a head, and no longer."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has come."""
        assert isinstance(transport, asyncio.Transport)
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """More has come."""
        if self._waiting is None and not self._busy:
            self._wait()  # for the head of a further request
        super().data_received(data)
        if self._busy:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone."""
        self._stop_waiting()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """The server stops."""
        if self._busy and self.cycle.scope.get(ENDS_WITH_SERVER):
            self.transport.close()
        else:
            super().shutdown()

    @property
    def _busy(self) -> bool:
        """Whether a request whose head has come is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def _wait(self) -> None:
        self._waiting = asyncio.get_running_loop().call_later(HEAD_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


def server_of(app: ASGIApp, drain_seconds: float) -> uvicorn.Server:
    """The HTTP server of an application.

    Args:
        drain_seconds: how long a stop waits for requests.
    """
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=max(1, round(drain_seconds)),
        lifespan="on",
    )
    return uvicorn.Server(config)


def listen(host: str, port: int) -> socket.socket:
    """A bound socket.

    Args:
        port: 0 for a free one.

    Raises:
        UsageError: the address cannot be had.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with contextlib.ExitStack() as undo:
            # With its protocol named: asyncio lets a socket of no protocol hold small answers back for 40 ms.
            made = undo.enter_context(socket.socket(family, kind, protocol))
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(address)
            made.listen()  # who reads the address may ask at once
            undo.pop_all()
    except OSError as error:
        raise UsageError(f"--host {host} --port {port}: cannot be used: {error.strerror or error}") from error
    return made
