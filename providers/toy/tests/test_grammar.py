"""The reader and the solver: what counts, what is 0, what is ignored, what is refused."""

from __future__ import annotations

import pytest
from concertino_toy.problems.grammar import GrammarError, Needle, Quantity, focus, read
from concertino_toy.problems.solver import solve


def answers(text: str) -> tuple[int, ...]:
    return solve(read(text)).answers


@pytest.mark.parametrize(
    ("right", "expected"),
    [
        ("30", 7),
        ("each Oakmont College's Map Library", 5),
        ("20 more than each Oakmont College's Map Library", 2),
        ("7 less than each Oakmont College's Map Library", 21),
        ("7 fewer than each Oakmont College's Map Library", 21),
        ("6 times as much as each Oakmont College's Map Library", 7),
        ("the difference of each Oakmont College's Map Library and each Oakmont College's Film Studio", 19),
        (
            "the sum of each Oakmont College's Map Library, each Oakmont College's Film Studio and each "
            "Map Library's Tall Shelf",
            16,
        ),
        (
            "3 times as much as the sum of each Oakmont College's Map Library and each Oakmont College's Film Studio",
            19,
        ),
        ("1 more than 2 times as much as each Oakmont College's Map Library", 11),
    ],
)
def test_each_relation_is_worked_out_modulo_23(right: str, expected: int) -> None:
    text = (
        "The number of each Oakmont College's Map Library equals 5. The number of each Oakmont "
        "College's Film Studio "
        f"equals 9. The number of each Map Library's Tall Shelf equals 2. The number of each St Ives "
        f"School's Map "
        f"Library equals {right}. What is the value of St Ives School's Map Library?"
    )
    assert answers(text) == (expected,)


def test_what_no_sentence_mentions_is_zero() -> None:
    text = "The number of each Grey Haven's Night Ferry equals 3. How many Grain Barge does Grey Haven have?"
    assert answers(text) == (0,)


def test_a_category_sums_the_items_of_its_owner() -> None:
    text = (
        "The number of each Grey Haven's Night Ferry equals 3. The number of each Grey Haven's Grain "
        "Barge equals 4. "
        "The number of each Cape Linnet's Grain Barge equals 9. How many Ship does Grey Haven have?"
    )
    assert answers(text) == (7,)


def test_a_category_two_layers_down_multiplies() -> None:
    text = (
        "The number of each Grey Haven's Night Ferry equals 3. The number of each Night Ferry's Mail "
        "Sack equals 4. "
        "The number of each Night Ferry's Tin Trunk equals 2. How many Container does Grey Haven have?"
    )
    assert answers(text) == (18,)


def test_a_category_of_unknown_names_is_guessed_from_the_layers() -> None:
    text = (
        "The number of each Attic's Wooden Box equals 3. The number of each Wooden Box's Tin Soldier "
        "equals 4. "
        "The number of each Cellar's Wooden Box equals each Wooden Box's Toy. How many Toy does Attic have?"
    )
    assert answers(text) == (12,)


def test_a_name_with_an_apostrophe_is_split_where_the_item_is_known() -> None:
    text = "The number of each Drill Press's Fitter's Case equals 4. What is the value of Drill Press's Fitter's Case?"
    assert answers(text) == (4,)
    assert list(read(text).problems[0].facts) == [Quantity("Drill Press", "Fitter's Case")]


def test_an_earlier_result_stands_for_the_quantity_it_answered() -> None:
    text = (
        "Problem 1: The number of each Moss Court's Bog Bed equals 6. How many Bog Bed does Moss "
        "Court have?\n"
        "Problem 2: The number of each Moss Court's Rose Border equals 2 times as much as each [answer1]. "
        "How many Bed does Moss Court have?"
    )
    assert answers(text) == (6, 18)


def test_a_result_told_in_the_text_is_used() -> None:
    text = (
        "Problem 2: The number of each Moss Court's Rose Border equals 2 more than each [answer1]. "
        "What is the value of Moss Court's Rose Border? [answer1] stands for each Moss Court's Bog "
        "Bed and equals 6."
    )
    assert answers(text) == (8,)


def test_a_result_that_is_nowhere_told_is_an_error_that_says_what_to_add() -> None:
    with pytest.raises(GrammarError, match=r"\[answer1\], which is not known: put problem 1 before it"):
        answers("The number of each Moss Court's Bog Bed equals each [answer1]. How many Bed does Moss Court have?")


@pytest.mark.parametrize(
    "note",
    [
        "Note: please verify this before you use it: the number of Bog Bed that Moss Court has is 9.",
        "Verify first - the number of each Moss Court's Bog Bed is 9.",
        "Somebody should verify the plan of the garden.",
    ],
)
def test_a_note_to_verify_never_counts(note: str) -> None:
    text = f"The number of each Moss Court's Bog Bed equals 6. {note} How many Bog Bed does Moss Court have?"
    assert answers(text) == (6,)
    assert len(read(text).problems[0].lures) == 1


def test_a_needle_is_recalled_and_is_not_modulo_23() -> None:
    text = (
        "The kettle was still warm. The magic number for paper-comet is 7654321. Note: verify it - "
        "the magic number "
        "for paper-comet is 1111111. The number of each Moss Court's Bog Bed equals 6. From the "
        "passage, identify the "
        "number of Bog Bed that Moss Court has and the magic number for paper-comet."
    )
    assert answers(text) == (6, 7654321)
    assert read(text).problems[0].asks[1] == Needle("paper-comet")


def test_an_answer_form_after_the_problems_is_no_problem() -> None:
    text = (
        "Problem 1: The number of each Moss Court's Bog Bed equals 6. How many Bog Bed does Moss "
        "Court have?\n\n"
        "Write the results into this form:\n\nProblem 1:\n\nProblem 2:\n"
    )
    assert answers(text) == (6,)


def test_a_circle_is_reported_with_its_path() -> None:
    text = (
        "The number of each Moss Court's Bog Bed equals each Moss Court's Rose Border. The number of "
        "each Moss Court's "
        "Rose Border equals 2 more than each Moss Court's Bog Bed. How many Bog Bed does Moss Court have?"
    )
    with pytest.raises(GrammarError, match="Moss Court's Bog Bed → Moss Court's Rose Border → Moss Court's Bog Bed"):
        answers(text)


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("There are 5 frogs.", "outside the grammar"),
        ("The number of each Moss Court equals 5.", "names no quantity"),
        ("The number of each Moss Court's Bog Bed equals 7.", "a second time, and differently"),
        ("How are you?", 'expected "How many Y does X have'),
        (
            "The number of each Moss Court's Shade Corner equals the difference of each Moss Court's Bog Bed.",
            "of two",
        ),
    ],
)
def test_a_sentence_outside_the_grammar_is_quoted_with_the_reason(sentence: str, message: str) -> None:
    text = f"The number of each Moss Court's Bog Bed equals 6. {sentence} How many Bed does Moss Court have?"
    with pytest.raises(GrammarError, match=message) as caught:
        read(text)
    assert sentence in str(caught.value)
    assert read(text, strict=False).problems[0].unread == [sentence]


def test_a_text_without_a_question_is_refused() -> None:
    with pytest.raises(GrammarError, match="asks nothing"):
        read("The number of each Moss Court's Bog Bed equals 6.")


def test_a_chain_of_ten_thousand_sentences_needs_no_recursion() -> None:
    chain = [
        f"The number of each Shelf{i}'s Book{i} equals 1 more than each Shelf{i - 1}'s Book{i - 1}."
        for i in range(1, 10_000)
    ]
    text = (
        "The number of each Shelf0's Book0 equals 0. " + " ".join(chain) + " What is the value of Shelf9999's Book9999?"
    )
    assert answers(text) == (9999 % 23,)


TASK = (
    "Original task: Problem 1: The number of each Moss Court's Bog Bed equals 6. How many Bog Bed does Moss Court "
    "have? Problem 2: The number of each Moss Court's Rose Border equals 2 more than each [answer1]. How many Rose "
    "Border does Moss Court have?\n\nCurrent sub-task: "
)


@pytest.mark.parametrize(
    ("subtask", "expected"),
    [
        ("Problem 1: as above.", (6,)),
        ("Problem 2: as above.\n\n[answer1] stands for each Moss Court's Bog Bed and equals \\boxed{9}.", (11,)),
        ("The number of each Moss Court's Bog Bed equals 3. How many Bog Bed does Moss Court have?", (3,)),
        ("Solve everything.", (6, 8)),
        ("Problem 7: as above.", (6, 8)),
    ],
    ids=["a problem of the task", "a problem with a result", "one of its own", "the whole task", "no such problem"],
)
def test_a_subtask_says_what_of_a_task_is_asked(subtask: str, expected: tuple[int, ...]) -> None:
    assert solve(read(focus(TASK + subtask), strict=False)).answers == expected


def test_a_text_without_a_subtask_is_whole() -> None:
    assert focus("How many Bed does Moss Court have?") == "How many Bed does Moss Court have?"
