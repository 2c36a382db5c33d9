"""Failures: what the SDK raises becomes a `ProviderError` of the right class.

    what happened                                           class
    no connection, no name, no TLS                          NOT_EXECUTED
    401, 402, 403, no credit, a spending limit              AUTH
    429, 529, 503 with a time to wait                       THROTTLED
    408, 409, other 5xx, silence, a connection that broke   MAYBE_EXECUTED
    anything after the first block of the reply             CUT_OFF
    redirects, web pages, other 4xx                         CALLER

An error in the middle of a stream comes after a 200, so there its own type is read instead of the status.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import anthropic
import httpx2
from concertino import FailureClass, ProviderError

from .keys import redact

SHOWN = 300
"""Characters of a server's own words that an error quotes."""
STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The status of each type of error, as the vendor documents them."""
RAISED = (anthropic.AnthropicError, httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, OSError, ValueError)
"""What a request may raise; the last where an event is no JSON."""
WRONG_FORM = (AttributeError, LookupError, TypeError, ValueError)
"""What reading an answer of an unexpected form raises."""
_NO_CREDIT = re.compile(r"credit balance|usage limits?\b|spend(?:ing)? (?:cap|limit)|billing", re.IGNORECASE)
_PAGE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)


def provider_error(error: Exception, where: str, *, begun: bool) -> ProviderError:
    """Classify what a request raised.

    Args:
        error: of the SDK, of its HTTP client, or a `ProviderError`, which is returned unchanged.
        where: the server's address, for the message.
        begun: whether part of the reply has arrived.
    """
    if isinstance(error, ProviderError):
        return error
    if isinstance(error, anthropic.APIStatusError):
        failed = _status_error(error, where)
    else:
        failure, text = _classify(error)
        failed = ProviderError(redact(f"{where}: {text}"), failure=failure)
    if begun:
        text = f"{failed} (in the middle of the reply)"
        return ProviderError(text, failure=FailureClass.CUT_OFF, status=failed.status)
    return failed


def no_reply(where: str, *, begun: bool) -> ProviderError:
    """An answer that ended without a stop reason."""
    if begun:
        text = f"{where} ended the stream without a stop reason: the rest of the reply is lost"
        return ProviderError(text, failure=FailureClass.CUT_OFF)
    return ProviderError(f"{where} ended without an answer", failure=FailureClass.MAYBE_EXECUTED)


def wrong_form(error: Exception, shown: object, where: str, *, begun: bool) -> ProviderError:
    """An answer that is not what the Messages API gives."""
    what = f"{where} answered in an unexpected form ({type(error).__name__}: {error}): {shorten(str(shown))}"
    advice = "" if begun else "; does it speak Anthropic's Messages API?"
    failure = FailureClass.CUT_OFF if begun else FailureClass.CALLER
    return ProviderError(redact(f"{what}{advice}"), failure=failure)


def not_an_api(status: int, body: str, where: str) -> ProviderError:
    """A web page: the address belongs to a web server, or to a proxy whose server is down."""
    title = _PAGE.search(body)
    text = f"{where} answered {status} with a web page ({shorten(title.group(1) if title else body)!r}), not with JSON"
    if status >= 500:
        return ProviderError.from_http(status, redact(text))
    return ProviderError(redact(f"{text}; is base_url right, without /v1?"), failure=FailureClass.CALLER, status=status)


def _status_error(error: anthropic.APIStatusError, where: str) -> ProviderError:
    status, headers = error.status_code, error.response.headers
    if 300 <= status < 400:
        text = (
            f"{where} redirects to {headers.get('location', '(nowhere)')}, which is not followed, so that no key gets "
        )
        return ProviderError(
            redact(f"{text}to a stranger; set base_url to the final address"),
            failure=FailureClass.CALLER,
            status=status,
        )
    said, kind, request_id = _said(error.body)
    if said.lstrip().startswith("<"):
        return not_an_api(status, said, where)
    if status < 300:  # an error event after a 200
        status = STATUS.get(kind, 500)
    request_id = request_id or headers.get("request-id", "")
    about = f"{where} answered {status} {kind}".rstrip() + (f" (request {request_id})" if request_id else "")
    text = redact(f"{about}: {shorten(said) or '(no text)'}")
    failed = ProviderError.from_http(status, text, retry_after(headers))
    if status == 409:
        failed.failure = FailureClass.MAYBE_EXECUTED
    if status in (400, 429) and _NO_CREDIT.search(said):
        failed.failure = FailureClass.AUTH
    return failed


def _said(body: Any) -> tuple[str, str, str]:
    """The message of an error, its type, and the id of the request."""
    if not isinstance(body, Mapping):
        return ("" if body is None else str(body)), "", ""
    inner = body.get("error")
    request_id = str(body.get("request_id") or "")
    if isinstance(inner, Mapping):
        return str(inner.get("message") or inner), str(inner.get("type") or ""), request_id
    return str(inner or body), "", request_id


def _classify(error: Exception) -> tuple[FailureClass, str]:
    cause = error.__cause__ if isinstance(error, anthropic.APIConnectionError) and error.__cause__ else error
    detail = " ".join(str(cause).split()) or type(cause).__name__
    # The order matters: time-outs and connection errors are kinds of one another.
    match cause:
        case httpx2.ConnectTimeout() | httpx2.PoolTimeout():
            return FailureClass.NOT_EXECUTED, f"connecting took too long ({detail})"
        case httpx2.TimeoutException() | TimeoutError():
            return FailureClass.MAYBE_EXECUTED, f"silent for too long ({detail}); see idle_timeout"
        case httpx2.ConnectError() | httpx2.ProxyError():
            return FailureClass.NOT_EXECUTED, f"no connection ({detail}); is base_url right?"
        case httpx2.UnsupportedProtocol() | httpx2.InvalidURL():
            return FailureClass.CALLER, f"cannot be asked ({detail}); is base_url right?"
        case httpx2.HTTPError() | httpx2.StreamError() | OSError():
            return FailureClass.MAYBE_EXECUTED, f"the connection broke ({detail})"
        case _:
            return FailureClass.MAYBE_EXECUTED, f"answered in an unexpected form ({type(cause).__name__}: {detail})"


def shorten(text: str, limit: int = SHOWN) -> str:
    """One line of at most `limit` characters, without keys."""
    # Keys are removed before the text is cut, as half a key would not be recognised; the first cut bounds the work.
    text = " ".join(redact(text[: 64 * limit])[: 4 * limit].split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the headers ask to wait: a number, a number of milliseconds, or a date."""
    if (milliseconds := _seconds(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    given = headers.get("retry-after")
    if given is None or (seconds := _seconds(given)) is not None:
        return None if given is None else seconds
    try:
        return max(0.0, parsedate_to_datetime(given).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _seconds(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return max(0.0, value) if math.isfinite(value) else None
