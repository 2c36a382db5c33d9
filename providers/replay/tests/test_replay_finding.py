"""A recorded question is found by its words, wherever it stands, and never guessed."""

import pytest
from concertino_replay.questions import QuestionIndex, _outer, normalised, words_of
from hypothesis import given
from hypothesis import strategies as st

TRAIN = "Tom’s train leaves at 9.  How far\nis it?"
INDEX = QuestionIndex(
    {"train": TRAIN, "short": "How far is it?", "odd": "¿Qué?", "empty": "", "long": "a b c d e f g h i j"}
)


@pytest.mark.parametrize(
    "message",
    [
        TRAIN,
        "tom's train leaves at 9. how far is it?",
        "TOM`S TRAIN LEAVES  AT 9.\n\nHOW FAR IS IT?",
        f"Solve this step by step.\n\n{TRAIN}\n\nEnd with the answer.",
        "<task>(Tom's train leaves at 9. How far is it?)</task>",
        "id: train",
        "Question ID:  train \nWhatever stands here",
        "train",
    ],
)
def test_a_question_is_found_in_another_spelling_and_inside_a_prompt(message: str) -> None:
    assert INDEX.find(message) == ["train"]


def test_a_question_that_is_part_of_another_one_is_found_alone_only() -> None:
    assert INDEX.find("How far is it?") == ["short"]
    assert INDEX.find(f"{TRAIN} How far is it?") == ["train", "short"]


def test_words_must_stand_side_by_side_and_whole() -> None:
    assert INDEX.find("How far away is it?") == []
    assert INDEX.find("Show far is it?") == []
    assert INDEX.find("aa b c d e f g h i j") == []
    assert INDEX.find("a b c d e f g h i") == []


def test_an_empty_message_and_an_unknown_id_find_nothing() -> None:
    assert INDEX.find("") == []
    assert INDEX.find("id: nobody") == []
    assert INDEX.find("empty") == ["empty"]


def test_two_questions_of_one_text_are_both_found_and_told_apart_by_id() -> None:
    twins = QuestionIndex({"a": "What now?", "b": "what  now?"})
    assert twins.find("What now?") == ["a", "b"]
    assert twins.find("id: b\nWhat now?") == ["b"]


def test_the_nearest_question_has_most_words_in_common() -> None:
    near = INDEX.nearest("When does Tom's train leave?")
    assert near is not None
    assert near.id == "train"
    assert 0 < near.share < 1
    assert INDEX.nearest("xyzzy") is None
    assert QuestionIndex({}).nearest("anything") is None


@given(st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=8), st.text(max_size=40), st.text(max_size=40))
def test_every_question_is_found_between_any_other_words(texts: list[str], before: str, behind: str) -> None:
    index = QuestionIndex({f"q{place}": text for place, text in enumerate(texts)})
    for place, text in enumerate(texts):
        if not words_of(text):
            continue
        found = index.find(f"{before}\n\n{text}\n\n{behind}")
        assert any(normalised(text) in normalised(texts[int(key[1:])]) for key in found)
        assert f"q{place}" in found or len(found) >= 1


def test_of_many_questions_in_a_message_each_is_compared_with_its_neighbour_only() -> None:
    compared = 0

    class Place(int):
        """A place in a text that counts how often it is compared."""

        def __gt__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return int(self) > int(other)  # type: ignore[call-overload]

    spans = [(Place(10 * at), Place(10 * at + 8), f"q{at}") for at in range(2_000)]
    inner = [(Place(10 * at + 2), Place(10 * at + 5), "short") for at in range(2_000)]
    assert list(_outer(spans + inner)) == spans
    assert compared == 4_000


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 6)), max_size=14))
def test_the_sweep_gives_the_spans_that_stand_in_no_other_one(given_: list[tuple[int, int]]) -> None:
    spans = [(begin, begin + length, f"{begin}-{length}") for begin, length in given_]
    expected = {
        (begin, end, text)
        for begin, end, text in spans
        if not any(b <= begin and end <= e and (b, e) != (begin, end) for b, e, _ in spans)
    }
    found = list(_outer(spans))
    assert set(found) == expected
    assert len(found) == len(expected)
    assert [begin for begin, _, _ in found] == sorted(begin for begin, _, _ in found)


def test_a_question_at_the_end_of_a_message_is_found_once() -> None:
    assert QuestionIndex({"a": "How far?", "b": "one two three four five six seven eight nine"}).find(
        "Well. How far?"
    ) == ["a"]
