"""What the process knows to be secret is found in every form, at every place of a text, and in pieces of any size."""

from __future__ import annotations

import base64
import json
import logging
import traceback
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from concertino.core.known_secrets import (
    HIDDEN,
    Finder,
    HeldText,
    Secret,
    finder,
    hidden,
    hidden_data,
    keep_headers,
    keep_secret,
    read_secret,
    without_secrets,
)
from concertino.core.redaction import Redactor
from hypothesis import given
from hypothesis import strategies as st

CANARY = 'ca/na+ry "7Q\\x" & Zürich 42?'
PLAIN = "canary-7Qx42-Yb93-kk"

FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "JSON": json.dumps,
    "JSON with letters as they are": lambda text: json.dumps(text, ensure_ascii=False),
    "quoted for an address": lambda text: quote(text, safe=""),
    "quoted for a path": quote,
    "quoted for a form": quote_plus,
    "quoted in small letters": lambda text: quote(text, safe="").lower() if text == text.lower() else quote(text),
    "hexadecimal digits": lambda text: text.encode().hex(),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 for addresses": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "base64 of user and password": lambda text: base64.b64encode(b"a:" + text.encode()).decode(),
    "base64 of a longer user": lambda text: base64.b64encode(b"ab:" + text.encode()).decode(),
    "base64 inside a document": lambda text: base64.b64encode(b"abcd " + text.encode() + b" and more").decode(),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("secret", [CANARY, PLAIN], ids=["with marks", "plain"])
def test_a_secret_is_found_in_this_form(form: str, secret: str) -> None:
    keep_secret(secret)
    written = FORMS[form](secret)
    shown = hidden(f"before {written} after")
    assert HIDDEN in shown
    core = written.strip('"')[4:-4]
    assert core not in shown
    assert shown.startswith("before ")
    assert shown.endswith(" after")


@given(
    before=st.text(max_size=60),
    after=st.text(max_size=60),
    size=st.integers(8, 40),
    others=st.lists(st.text("ab", min_size=8, max_size=12)),
)
def test_a_secret_is_found_at_every_place(before: str, after: str, size: int, others: list[str]) -> None:
    secret = ("7Zq-" * 10)[:size]
    assert secret not in Finder([secret, *others]).hidden(before + secret + after)


def test_a_secret_is_found_at_the_borders_of_blocks_of_a_long_text() -> None:
    found = Finder([PLAIN])
    block = found._block
    for place in (*range(block - 40, block + 40), *range(3 * block - 40, 3 * block + 10)):
        assert found.may_be_in("x" * place + PLAIN + "y" * 10)
        assert found.may_be_in("x" * place + PLAIN)
        assert found.hidden("x" * place + PLAIN[:9]) == "x" * place + PLAIN[:9]


def test_a_text_without_a_secret_is_given_back_itself() -> None:
    keep_secret(PLAIN)
    text = "nothing of the kind " * 50
    assert hidden(text) is text
    data = {"a": [text, 1, None], "b": {"c": True}}
    found = finder()
    assert found is not None
    assert hidden_data(data, found) is data


@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=40))
def test_no_piece_of_a_stream_shows_a_part_of_a_secret(sizes: list[int]) -> None:
    text = f"The key is {PLAIN}, again {PLAIN}{PLAIN}; {PLAIN[:9]} is only a beginning."
    keep_secret(PLAIN)
    held, told, at = HeldText(), [], 0
    for size in [*sizes, len(text)]:
        told.append(held.feed(text[at : at + size]))
        at += size
        assert PLAIN[:10] not in "".join(told)
    told.append(held.finish())
    assert "".join(told) == text.replace(PLAIN, HIDDEN)


def test_pieces_that_begin_no_secret_are_told_at_once() -> None:
    keep_secret(PLAIN)
    held = HeldText()
    assert [held.feed(piece) for piece in ("One ", "two ", "three")] == ["One ", "two ", "three"]


def test_a_secret_that_becomes_known_while_a_text_is_told_is_hidden_from_then_on() -> None:
    held = HeldText()
    assert held.feed("The key ") == "The key "
    keep_secret(PLAIN)
    assert held.feed(PLAIN[:5]) == ""
    assert held.feed(PLAIN[5:] + ".") == f"{HIDDEN}."


def test_a_secret_that_looks_like_a_word_is_hidden_in_logs_and_errors_alone() -> None:
    keep_secret("localhost")
    keep_secret("/etc/keys/ada.pem")
    assert hidden("at localhost, /etc/keys/ada.pem") == "at localhost, /etc/keys/ada.pem"
    assert without_secrets("at localhost, /etc/keys/ada.pem") == f"at {HIDDEN}, {HIDDEN}"
    assert Redactor().text("at localhost") == f"at {HIDDEN}"


def test_what_is_too_short_is_no_secret() -> None:
    keep_secret("none")
    assert without_secrets("none") == "none"


def test_of_an_address_the_password_is_the_secret() -> None:
    keep_secret("https://ada:pass-word-17@proxy.example:3128")
    assert hidden("pass-word-17 at https://proxy.example") == f"{HIDDEN} at https://proxy.example"
    keep_secret("https://example.org/a/long/path")
    assert hidden("https://example.org/a/long/path") == "https://example.org/a/long/path"


@pytest.mark.parametrize("name", ["MY_KEY", "MY_TOKEN", "MY_SECRET", "MY_PASSWORD", "MYAPIKEY", "my_api_key"])
def test_a_variable_whose_name_says_so_is_known_without_being_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, PLAIN)
    assert hidden(f"it is {PLAIN}") == f"it is {HIDDEN}"


def test_the_password_in_the_address_of_a_proxy_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://ada:{PLAIN}@127.0.0.1:1")
    assert PLAIN not in hidden(f"it is {PLAIN}")


def test_a_variable_that_a_setting_names_is_known_once_it_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIN_NAME", f" {PLAIN} ")
    assert hidden(PLAIN) == PLAIN
    assert read_secret("PLAIN_NAME") == PLAIN
    assert hidden(PLAIN) == HIDDEN
    assert read_secret("NOT_SET_AT_ALL") == ""


def test_values_of_headers_are_secrets_but_for_those_that_everybody_may_see() -> None:
    keep_headers({"Content-Type": "application/json", "Authorization": f"Bearer {PLAIN}", "X-Tenant": "tenant-90210-b"})
    assert hidden(f"{PLAIN} tenant-90210-b application/json") == f"{HIDDEN} {HIDDEN} application/json"


def test_a_traceback_with_locals_shows_no_secret_that_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIN_NAME", PLAIN)

    def fails() -> None:
        value = read_secret("PLAIN_NAME")
        raise ValueError(len(value))

    try:
        fails()
    except ValueError as error:
        shown = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert f"value = '{HIDDEN}'" in shown
    assert PLAIN not in shown
    assert f"{Secret(PLAIN)}" == PLAIN


@pytest.mark.parametrize(
    "name", ["concertino", "concertino.mcp", "concertino.vllm", "concertino.call", "concertino.bench"]
)
def test_a_logger_of_concertino_tells_no_secret(name: str, caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger(name)
    keep_secret(PLAIN)
    with caplog.at_level(logging.DEBUG, name):
        logger.debug("the server said %s", PLAIN)
        try:
            raise ValueError(f"refused {PLAIN}")
        except ValueError:
            logger.exception("it failed with %s and %d", PLAIN, 3)
    assert len(caplog.records) == 2
    assert PLAIN not in caplog.text
    assert HIDDEN in caplog.text
    assert "Traceback" in caplog.text


def test_the_time_to_look_through_a_text_does_not_grow_with_the_number_of_secrets() -> None:
    few, many = Finder([f"{n:04d}-{'k' * 20}" for n in range(2)]), Finder([f"{n:04d}-{'k' * 20}" for n in range(500)])
    # Both look at one place in 22 of a text; what is looked up is in a set.
    assert few._step == many._step == 22
