"""Votes count what means the same, and tell a tie."""

import pytest
from concertino_bench.baselines.votes import count
from concertino_bench.graders.answer_keys import reply_key


@pytest.mark.parametrize(
    ("form", "texts"),
    [
        ("number", ["So it is 1,000.", "#### 1000", "A: $1000.00", "\\boxed{1000}", "the answer is 1 000."]),
        ("auto", ["The answer is 7.", "<answer>7.0</answer>", "7", "finish[7]", "We add.\nThe answer is: $7$"]),
        ("auto", ["<answer>The Beatles</answer>", "the beatles", "\\boxed{\\text{Beatles}}", "The answer is Beatles."]),
        ("text", ["(B)", "b", "The answer is (B)."]),
    ],
)
def test_spellings_of_one_answer_share_a_key(form: str, texts: list[str]) -> None:
    keys = {reply_key(text, form) for text in texts}  # type: ignore[arg-type]
    assert len(keys) == 1
    assert None not in keys


def test_what_holds_no_answer_has_no_key() -> None:
    assert reply_key("I do not know.", "number") is None
    assert reply_key("", "auto") is None
    assert reply_key(" \n", "text") is None
    long = "Because of this, and because of that, nobody can say. " * 10
    assert reply_key(long, "auto") is None
    assert reply_key(f"{long}\nSo 12 are left", "auto") == "12"


def test_most_votes_win_and_of_equal_ones_the_first() -> None:
    vote = count(["1", "2", None, "2", "x", "1"], "number")
    assert [(each.key, each.voters) for each in vote.candidates] == [("1", (0, 5)), ("2", (1, 3))]
    assert vote.silent == 2
    assert len(vote.tied) == 2
    assert vote.describe() == "2 for 1, 2 for 2, 2 without an answer; a tie of 2"


def test_a_clear_vote_is_no_tie() -> None:
    vote = count(["2", "1", "2"], "number")
    assert (vote.candidates[0].key, vote.tied) == ("2", ())
    assert count([], "auto").describe() == "nobody voted"
    assert count(["3"], "auto").tied == ()
