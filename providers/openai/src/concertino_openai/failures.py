"""Failures: what a server answers instead of a reply becomes a `ProviderError` of the right class.

Servers put an error into an object (`{"error": {"message", "code"}}`), a text (`{"error": "..."}`), a detail
(`{"detail": ...}`), a list with one of these, plain text, HTML, a 200, or an event of a stream. The class decides about
repeating, so the text of an error decides before its status does: a prompt that is too long stays too long,
whether the status is 400 or 500.

    what it says                                        class
    context length, content filter, invalid parameter   CALLER, with any status
    wrong key, no credit, quota used up                  AUTH, with any status
    429, 529, 503 (a queue that is full)                 THROTTLED
    408, 409, 425, other 5xx                             MAYBE_EXECUTED
    anything after the first token                       CUT_OFF
    redirects, HTML, other 4xx                           CALLER
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from concertino import FailureClass, ProviderError

from .keys import redact

SHOWN = 300
"""Characters of a server's own words that an error quotes."""

_CONTEXT = re.compile(
    r"context[_ ](?:length|window|size)|maximum context|exceed_context_size|prompt is too long|input is too long"
    r"|too many (?:input )?tokens|maximum (?:number of )?(?:input )?tokens|max_model_len|longer than the maximum",
    re.IGNORECASE,
)
_FILTER = re.compile(
    r"content[_ ](?:filter|policy|management)|content_policy_violation|safety system|moderation|flagged", re.IGNORECASE
)
_QUOTA = re.compile(
    r"insufficient[_ ](?:quota|credits|balance|funds)|billing_hard_limit|exceeded your current quota|out of credits"
    r"|(?:invalid|incorrect) api key|api key not valid|api_key_invalid|invalid_api_key",
    re.IGNORECASE,
)
_INVALID = re.compile(
    r"validation error|literal_error|Input should be|field required|value_error|extra_forbidden|unrecognized request "
    r"argument|unsupported (?:parameter|value)",
    re.IGNORECASE,
)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_TAGS = re.compile(r"<[^>]*>")
_AGAIN_LATER = frozenset({408, 409, 425})


def from_response(status: int, headers: Mapping[str, str], body: bytes, where: str) -> ProviderError:
    """The error of a response that is not a reply.

    Args:
        status: the HTTP status.
        headers: the response's headers.
        body: its body, or the beginning of it.
        where: the endpoint, for the message.
    """
    if 300 <= status < 400:
        return ProviderError(
            redact(
                f"{where} redirects to {headers.get('Location', '(nowhere)')}, which is not followed, so that no key "
                "gets to a stranger; set base_url to the final address"
            ),
            failure=FailureClass.CALLER,
            status=status,
        )
    text = body.decode("utf-8", "replace").strip()
    said, code, data = _said(text)
    if said.startswith("<"):
        return not_an_api(status, said, where)
    after = retry_after(headers)
    return _error(status, said, code, f"{where} answered {status}", after if after is not None else _delay_in(data))


def from_error(error: Any, where: str, *, begun: bool) -> ProviderError:
    """The error in the body of a 200 or in an event of a stream.

    Args:
        error: the value under `error`.
        where: the endpoint, for the message.
        begun: the reply has begun; then it is cut off, whatever the reason.
    """
    said, code, _ = _read(error)
    status = _status(code)
    # Without a status it counts as a 500: after a 200 the work may have begun.
    failed = _error(status or 500, said, code, f"{where} answered with an error", _delay_in(error))
    if begun:
        return ProviderError(f"{failed} (in the middle of the reply)", failure=FailureClass.CUT_OFF, status=status)
    failed.status = status
    return failed


_STEPS = {
    401: "; check the key in the variable that key_env names",
    404: "; check base_url, up to and including /v1, and the name of the model",
}
"""What to do next. Many servers say no more than `Not Found`."""


def _error(status: int, said: str, code: str, answered: str, after: float | None) -> ProviderError:
    about = f"{code} {said}"
    kind = ""
    if status in (401, 402) or _QUOTA.search(about):
        failure = FailureClass.AUTH
    # A rate limit counts tokens too, in words that read like a context limit.
    elif _CONTEXT.search(about) and status not in (429, 503):
        failure, kind = FailureClass.CALLER, "the context is too long: "
    elif _FILTER.search(about) and status < 500:
        failure, kind = FailureClass.CALLER, "refused by the content filter: "
    elif status in (429, 503, 529):
        failure = FailureClass.THROTTLED
    elif status in _AGAIN_LATER or (status >= 500 and not _INVALID.search(about)):
        failure = FailureClass.MAYBE_EXECUTED
    else:
        failure = FailureClass.AUTH if status == 403 else FailureClass.CALLER
    text = redact(f"{answered}: {kind}{shorten(said) or '(no text)'}{_STEPS.get(status, '')}")
    return ProviderError(text, failure=failure, retry_after=after, status=status)


def not_an_api(status: int, said: str, where: str) -> ProviderError:
    """A web page: the address belongs to a web server, or to a proxy whose server is down."""
    title = _TITLE.search(said)
    text = shorten(_TAGS.sub(" ", title.group(1) if title else said))
    gone = status >= 500 or status in (408, 429)
    if gone:
        return _error(status, text, "", f"{where} answered {status}", None)
    advice = "" if status >= 400 else "; is base_url right, up to and including /v1?"
    failure = FailureClass.AUTH if status in (401, 402, 403) else FailureClass.CALLER
    return ProviderError(
        redact(f"{where} answered {status} with a web page ({text!r}), not with JSON{advice}"),
        failure=failure,
        status=status,
    )


# -- what a body says ------------------------------------------------------------------------------------------------


def _said(text: str) -> tuple[str, str, Any]:
    """The message of an error body, its code, and its data."""
    try:
        data = json.loads(text)
    # JSON that is nested too deeply raises RecursionError.
    except (ValueError, RecursionError):
        return text, "", None
    return _read(data)


def _read(data: Any) -> tuple[str, str, Any]:
    if isinstance(data, list) and data:
        data = data[0]
    if isinstance(data, dict) and data.get("error"):
        data = data["error"]
    if not isinstance(data, dict):
        return (data if isinstance(data, str) else json.dumps(data)), "", data
    code = " ".join(str(data[name]) for name in ("code", "type", "status") if data.get(name))
    for name in ("message", "detail", "msg"):
        if said := data.get(name):
            return said if isinstance(said, str) else json.dumps(said, ensure_ascii=False), code, data
    return json.dumps(data, ensure_ascii=False), code, data


def _status(code: str) -> int | None:
    """The HTTP status in a code, if it is one."""
    first = code.partition(" ")[0]
    return int(first) if len(first) == 3 and first.isdigit() and 400 <= int(first) < 600 else None


def shorten(text: str, limit: int = SHOWN) -> str:
    """One line of at most `limit` characters, without keys."""
    # Keys are removed before the text is cut, as half a key would not be recognised; the first cut bounds the work.
    text = " ".join(redact(text[: 64 * limit])[: 4 * limit].split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


# -- how long to wait ------------------------------------------------------------------------------------------------


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the headers ask to wait: a number, a number of milliseconds, or a date."""
    if (milliseconds := _seconds(headers.get("Retry-After-Ms"))) is not None:
        return milliseconds / 1000
    given = headers.get("Retry-After")
    if given is None:
        return None
    if (seconds := _seconds(given)) is not None:
        return seconds
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


def _delay_in(data: Any) -> float | None:
    """Seconds in Google's form of an error: a detail with a `retryDelay` such as "34s"."""
    details = data.get("details") if isinstance(data, dict) else None
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str) and delay.endswith("s"):
            return _seconds(delay[:-1])
    return None
