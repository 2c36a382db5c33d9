"""Words and their forms have one number."""

from __future__ import annotations

import pytest
from concertino_scorer.words import WordNumbers, base_form

KNOWN = WordNumbers(["fail", "study", "stop", "hope", "good"], 2, {"better": "good", "gone": "go"})


@pytest.mark.parametrize(
    ("form", "base"),
    [
        ("fails", "fail"),
        ("failed", "fail"),
        ("failing", "fail"),
        ("studies", "study"),
        ("stopped", "stop"),
        ("hoping", "hope"),
        ("better", "good"),
        ("good", "good"),
        ("gone", "gone"),  # its base form is not known
        ("xyzzy", "xyzzy"),
    ],
)
def test_a_form_is_read_as_its_base_form_where_that_is_known(form: str, base: str) -> None:
    assert base_form(form, KNOWN.words, KNOWN.irregular) == base


def test_words_are_numbered_from_the_first_on_and_forms_share_the_number() -> None:
    assert [KNOWN[word] for word in ("fail", "failed", "good", "better")] == [2, 2, 6, 6]
    assert KNOWN.get("xyzzy") is None
    assert "studies" in KNOWN
    assert "xyzzy" not in KNOWN
    assert list(KNOWN) == ["fail", "study", "stop", "hope", "good"]
    assert len(KNOWN) == 5
