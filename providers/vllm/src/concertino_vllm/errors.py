"""What can go wrong with a server, as exceptions that the executor and a trainer can act on."""

from __future__ import annotations

from concertino import ConcertinoError, FailureClass, ProviderError


class VllmServerError(ProviderError):
    """A server could not be started, or ended.

    The first sentence says what happened and what to do; then come the log's path and its end.

    Attributes:
        log: the log file, "" if there is none.
    """

    def __init__(self, message: str, *, log: str = "", failure: FailureClass = FailureClass.CALLER) -> None:
        super().__init__(message, failure=failure)
        self.log = log


class NotSupported(ConcertinoError):
    """The server, or the platform that it runs on, cannot do this."""


class SwapError(ConcertinoError):
    """New weights or a new adapter are not in use; the message says what is.

    Attributes:
        version: the version that answers now; None if nothing may answer before a load has succeeded.
    """

    def __init__(self, message: str, version: int | None) -> None:
        super().__init__(message)
        self.version = version
