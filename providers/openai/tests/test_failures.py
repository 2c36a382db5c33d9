"""Failures: what an error says decides about repeating it, before its number does."""

from __future__ import annotations

import json
import time
from email.utils import formatdate
from typing import Any

import pytest
from concertino import ProviderError
from concertino_openai.failures import from_error, from_response, retry_after

from .recordings import RECORDED, recordings


def http(status: int, body: Any, **headers: str) -> ProviderError:
    raw = body if isinstance(body, str) else json.dumps(body)
    return from_response(status, {name.replace("_", "-"): text for name, text in headers.items()}, raw.encode(), "here")


def openai(message: str, code: Any = None, type_: str = "") -> dict[str, Any]:
    return {"error": {"message": message, "type": type_, "param": None, "code": code}}


CASES: list[tuple[int, Any, str]] = [
    # by number
    *((status, openai("x"), "auth") for status in (401, 402, 403)),
    *((status, openai("x"), "throttled") for status in (429, 503, 529)),
    *((status, openai("x"), "maybe_executed") for status in (408, 409, 425, 500, 502, 504, 520)),
    *((status, openai("x"), "caller") for status in (400, 404, 405, 413, 415, 422)),
    # too long, whatever the number
    (400, openai("This model's maximum context length is 4096 tokens", "context_length_exceeded"), "caller"),
    (500, openai("the request exceeds the available context size", type_="exceed_context_size_error"), "caller"),
    (500, {"detail": "prompt is too long: 9000 tokens > 4096 maximum"}, "caller"),
    # key and credit, whatever the number
    (429, openai("You exceeded your current quota, please check your plan", "insufficient_quota"), "auth"),
    (400, [{"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}}], "auth"),
    (402, {"error": {"code": 402, "message": "Insufficient credits"}}, "auth"),
    # content
    (400, openai("The response was filtered", "content_filter"), "caller"),
    (403, {"error": {"code": 403, "message": "input was flagged by moderation"}}, "caller"),
    # a 500 that is the caller's
    (500, openai("[{'type': 'literal_error', 'msg': \"Input should be 'text'\"}]"), "caller"),
    # shapes
    (422, {"detail": [{"loc": ["body", "n"], "msg": "extra fields not permitted"}]}, "caller"),
    (400, {"detail": "Server is pinned to 'tiny'"}, "caller"),
    (500, "Internal Server Error", "maybe_executed"),
    (503, {"object": "error", "message": "queue is full", "code": 503}, "throttled"),
    (503, "", "throttled"),
    (400, {"error": "bad things"}, "caller"),
    (502, "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>", "maybe_executed"),
    (404, "<!doctype html><title>Not here</title>", "caller"),
    (200, "<html><title>Welcome</title></html>", "caller"),
    (301, "", "caller"),
]


@pytest.mark.parametrize(("status", "body", "failure"), CASES)
def test_an_error_has_its_class(status: int, body: Any, failure: str) -> None:
    error = http(status, body)
    assert (error.failure, error.status) == (failure, status)
    assert "here" in str(error)
    assert len(str(error)) < 500


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (openai("no such model"), "no such model"),
        ({"detail": "pinned"}, "pinned"),
        ({"detail": [{"msg": "bad field"}]}, "bad field"),
        ([{"error": {"message": "from a list"}}], "from a list"),
        ({"message": "bare"}, "bare"),
        ({"error": "as text"}, "as text"),
        ({"odd": "thing"}, '{"odd": "thing"}'),
        ("plain words", "plain words"),
    ],
)
def test_the_servers_own_words_are_shown(body: Any, shown: str) -> None:
    assert shown in str(http(400, body))


@pytest.mark.parametrize(("status", "step"), [(401, "the variable that key_env names"), (404, "check base_url")])
@pytest.mark.parametrize("body", ["", "Not Found", {"detail": "Not Found"}])
def test_a_bare_refusal_says_what_to_check(status: int, step: str, body: Any) -> None:
    assert step in str(http(status, body))


def test_a_context_that_is_too_long_is_named_as_such() -> None:
    assert "the context is too long" in str(http(400, openai("maximum context length is 5", "context_length_exceeded")))


def test_a_redirect_is_not_followed_and_says_where_to() -> None:
    error = http(307, "", Location="https://other.example/v1")
    assert "redirects to https://other.example/v1" in str(error)
    assert "set base_url" in str(error)


def test_an_error_in_a_stream_has_its_class_until_the_first_token() -> None:
    error = {"code": 429, "message": "slow"}
    assert from_error(error, "here", begun=False).failure == "throttled"
    assert from_error(error, "here", begun=False).status == 429
    assert from_error(error, "here", begun=True).failure == "cut_off"
    assert from_error("boom", "here", begun=False).failure == "maybe_executed"
    assert from_error({"code": "model_not_found", "message": "x"}, "here", begun=False).status is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "2"}, 2.0),
        ({"Retry-After": "0.5"}, 0.5),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After-Ms": "250", "Retry-After": "9"}, 0.25),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": ""}, None),
        ({}, None),
    ],
)
def test_how_long_to_wait_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_how_long_to_wait_may_be_a_date() -> None:
    after = retry_after({"Retry-After": formatdate(time.time() + 30, usegmt=True)})
    assert after is not None
    assert 25 < after <= 31
    assert retry_after({"Retry-After": formatdate(time.time() - 30, usegmt=True)}) == 0.0


def test_googles_delay_is_read_from_the_body() -> None:
    body = [{"error": {"code": 429, "message": "slow", "details": [{"@type": "Help"}, {"retryDelay": "34s"}]}}]
    assert http(429, body).retry_after == 34.0


def test_recorded_refusals_are_never_repeated_and_crashes_may_be() -> None:
    seen = 0
    for file, recording in recordings():
        if recording.status == 200:
            continue
        error = from_response(recording.status, {}, recording.body, "here")
        crash = recording.body.lower().startswith((b"internal server error", b'{"error":{"message":"internal server'))
        assert error.failure == ("maybe_executed" if crash else "caller"), file
        seen += 1
    if not seen:
        pytest.skip(f"no recordings of real servers in {RECORDED}")
