"""Votes: counted by meaning, decided by number, told in words."""

from __future__ import annotations

import itertools

from concertino_reasoning.votes import count_votes


def test_equal_answers_are_one_candidate_as_first_written() -> None:
    vote = count_votes(["\\frac{3}{4}", "1", "0.75", "3/4"])
    assert vote.winner is not None
    assert (vote.winner.answer, vote.winner.samples) == ("\\frac{3}{4}", (0, 2, 3))
    assert vote.tied == ()
    assert vote.describe() == "4 of 4 samples voted: \\frac{3}{4} (3), 1 (1)"


def test_a_tie_goes_to_the_answer_that_was_given_first_and_is_stated() -> None:
    vote = count_votes(["17", "42", "42", "17", "5"])
    assert vote.winner is not None
    assert vote.winner.answer == "17"
    assert [candidate.answer for candidate in vote.tied] == ["17", "42"]
    assert "a tie of 2, decided for the one that was given first" in vote.describe()


def test_a_sample_without_an_answer_does_not_vote_but_is_counted() -> None:
    vote = count_votes([None, "42", "", None])
    assert vote.winner is not None
    assert vote.winner.samples == (1,)
    assert vote.describe().startswith("1 of 4 samples voted")


def test_without_votes_there_is_no_winner() -> None:
    vote = count_votes([None, None])
    assert (vote.winner, vote.tied, vote.describe()) == (None, (), "0 of 2 samples voted")


def test_only_the_numbers_of_samples_decide() -> None:
    for answers in itertools.product(["1", "2", None], repeat=4):
        vote = count_votes(answers)
        counts = {answer: answers.count(answer) for answer in ("1", "2") if answer in answers}
        best = [answer for answer in answers if answer and counts[answer] == max(counts.values())]
        assert (vote.winner.answer if vote.winner else None) == (best[0] if best else None)


def test_many_and_long_candidates_are_shown_shortened() -> None:
    text = count_votes([f"answer number {n} " * 20 for n in range(9)]).describe()
    assert "4 more" in text
    assert len(text) < 500
