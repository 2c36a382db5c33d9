"""What is hidden from logs, what is not, and that no text makes it slow."""

from __future__ import annotations

import time

import concertino as ct
import pytest
from concertino.core.known_secrets import HIDDEN
from concertino.core.redaction import Redactor, is_secret_name
from concertino.testing.hostile_texts import HOSTILE_TEXTS, MEGABYTE_PIECES

PLAIN = Redactor(())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sk-proj-abcdefghijkl123456 is it", "[key] is it"),
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer [key]"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic [key]"),
        ('{"api_key": "two words", "b": 1}', '{"api_key": "[key]", "b": 1}'),
        (r'{"a": "{\"password\": \"x y z\"}"}', r'{"a": "{\"password\": \"[key]\"}"}'),
        ("{'x-api-key': 'ab cd'}", "{'x-api-key': '[key]'}"),
        ("https://example.org/?access_token=abc&page=2", "https://example.org/?access_token=[key]&page=2"),
        ("https://example.org/?key=abcdefgh&page=2", "https://example.org/?key=[key]&page=2"),
        ('{"token": "abc def", "tokens": 5}', '{"token": "[key]", "tokens": 5}'),
        ("postgres://ann:hunter2@host/db", "postgres://[key]@host/db"),
        ("ghp_0123456789abcdefghij", "[key]"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig", "[key]"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- end", "[key] end"),
    ],
)
def test_what_looks_like_a_secret_is_hidden_and_its_name_stays(text: str, shown: str) -> None:
    assert PLAIN.text(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens: 5",
        "the secret garden",
        "key=a",
        "a cookie recipe: flour",
        "risk-averse-strategy-for-all",
        "bearer of good news",
        "ask.1",
        "20261128-031318-0b388a",
        "https://example.org/a:b/c@d",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert PLAIN.text(text) == text


def test_names_of_secrets_are_told_from_names_of_amounts() -> None:
    secret = ["api_key", "x-api-key", "accessToken", "token", "PASSWORD", "Authorization", "clientSecret", "set-cookie"]
    plain = ["tokens", "max_tokens", "key", "keyword", "monkey", "secretary", "author", "query", "tokenizer"]
    assert [name for name in secret if not is_secret_name(name)] == []
    assert [name for name in plain if is_secret_name(name)] == []


def test_data_is_hidden_by_the_names_in_it_and_amounts_are_shown() -> None:
    given = {"token": "abc", "max_tokens": 5, "auth": {"password": ["p1", "p2"]}, "list": [{"api_key": "k"}], "n": None}
    assert PLAIN.data(given, 80) == {
        "token": HIDDEN,
        "max_tokens": 5,
        "auth": {"password": HIDDEN},
        "list": [{"api_key": HIDDEN}],
        "n": None,
    }


def test_data_is_cut_and_says_so() -> None:
    deep: object = "x"
    for _ in range(50):
        deep = [deep]
    cut = PLAIN.data({"many": list(range(1000)), "deep": deep, "long": "x" * 1000}, 80)
    assert cut["many"][-1] == "… 980 more"
    assert len(cut["long"]) == 80
    assert "…" in str(cut["deep"])
    wide = PLAIN.data({str(n): n for n in range(1000)}, 80)
    assert wide["…"] == "980 more"


def test_a_secret_of_the_environment_is_hidden_wherever_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "correct-horse-battery")
    monkeypatch.setenv("NOT_A_MONKEY", "plain-old-banana")
    redactor = Redactor()
    assert redactor.text("(correct-horse-battery)") == f"({HIDDEN})"
    assert redactor.text("plain-old-banana") == "plain-old-banana"


def test_a_secret_that_somebody_named_is_hidden_also_where_it_was_named_later() -> None:
    redactor = Redactor()
    ct.keep_secret("from the vault 17\n")
    ct.keep_secret("none")
    assert redactor.text("it is 'from the vault 17', or none") == f"it is '{HIDDEN}', or none"
    ct.keep_secret("from the vault 17 and more")
    assert redactor.text("from the vault 17 and more, from the vault 17") == f"{HIDDEN}, {HIDDEN}"


@pytest.mark.parametrize("filler", ["x ", "x"])
def test_no_part_of_a_secret_is_left_where_a_text_was_cut(filler: str) -> None:
    secret = "correct-horse-battery"
    redactor = Redactor((secret,))
    for before in range(40):
        for shown in (redactor.short(filler * before + secret, 20), redactor.short(secret * (60 + before), 20)):
            assert "corr" not in shown
    # A text far longer than what is searched, whose cut falls into a secret.
    for shift in range(30):
        assert "horse" not in redactor.short("k" * shift + secret * 500, 20)
        assert "corr" not in redactor.short("k" * shift + secret * 500, 20)


def test_hostile_texts_take_no_time() -> None:
    names = ["api_key:", "://", "eyJ", "-----BEGIN ", "Bearer ", "sk-", '\\"', 'password=\\"', "a:", "cookie="]
    long = [*HOSTILE_TEXTS, *(piece * (1_000_000 // len(piece)) for piece in (*MEGABYTE_PIECES, *names))]
    began = time.process_time()
    for text in long:
        assert len(PLAIN.short(text, 200)) <= 200
    assert (time.process_time() - began) / len(long) < 0.1


@pytest.mark.parametrize("text", ["sk-123456789", "hf_123456789", "password=x1", "password: x", "://:pw@h"])
def test_the_shortest_secrets_are_hidden_too(text: str) -> None:
    assert Redactor(()).text(text) != text
