"""What a client is told of an error, in the form that clients of the OpenAI API read.

Invariant: a client is told to ask again only where that costs nothing twice: the official one repeats whatever ends
with 408, 409, 429 or 5xx by itself.
"""

from __future__ import annotations

from typing import Any

_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
NO_ANSWER: dict[str, tuple[int, str]] = {
    "budget": (402, "the budget of the run is used up before there was an answer"),
    "deadline": (504, "the time of the run is over before there was an answer"),
    "rounds": (502, "the rounds of the run are over before there was an answer"),
    "format": (502, "the model wrote nothing that could be read"),
    "model": (502, "the model that leads did not answer"),
    "guard": (400, "a guard denied the question or the answer"),
    "suspended": (
        409,
        "calls wait for a person's decision; POST /v1/responses takes it",
    ),
    "cancelled": (409, "the run was cancelled"),
    "crashed": (500, "the run failed; the log of the server says why"),
    "unfinished": (503, "the run was interrupted; ask again to continue it"),
}
"""Status and sentence of a run without an answer, by why it ended."""


class ApiError(Exception):
    """A request that gets an error.

    Args:
        status: of HTTP.
        message: what was given, what was expected, what to do.
        code: for programs.
        param: the field of the body that is wrong.
        retry_after: seconds after which it may be asked again; None where that helps nothing.
    """

    def __init__(
        self, status: int, message: str, *, code: str = "", param: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param
        self.retry_after = retry_after

    @classmethod
    def of_run(cls, stop: str) -> ApiError:
        """The error of a run that ended without an answer. What it was about is in its trace, not here."""
        status, message = NO_ANSWER.get(stop, (500, "the run ended without an answer"))
        return cls(status, f"{message} ({stop})", code=stop)

    def to_json(self) -> dict[str, Any]:
        """The body."""
        kind = _TYPES.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")
        return {"error": {"message": str(self), "type": kind, "param": self.param or None, "code": self.code or None}}

    @property
    def headers(self) -> dict[str, str]:
        """What says whether to ask again."""
        if self.retry_after is None:
            return {"x-should-retry": "false"}
        return {"retry-after": str(max(1, round(self.retry_after))), "x-should-retry": "true"}
