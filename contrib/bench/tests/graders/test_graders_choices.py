"""Letters out of messy outputs."""

from __future__ import annotations

import pytest
from concertino_bench import Task, Verdict
from concertino_bench.graders import ChoiceGrader
from concertino_bench.graders.choice import read_letter

CHOICES = ["Rome", "Paris", "the Oslo fjord", "Bern"]
TASK = Task("t", "?", ("B",), "choice", metadata={"choices": CHOICES})


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("The answer is (C).", "C"),
        ("the answer is **(D)**", "D"),
        ("The answer is A because it is.", "A"),
        ("Answer: C\n\nQuestion: 2 + 2? Answer: D", "C"),
        ("\\text{The answer is } (J)", "J"),
        ("The answer is $\\boxed{A}$.", "A"),
        ("The answer is \\( \\boxed{F} \\).", "F"),
        ("\\boxed{\\text{(B)}}", "B"),
        ("<answer>C</answer>", "C"),
        ("<answer>(B) Paris</answer>", "B"),
        ("C", "C"),
        ("(c)", "C"),
        ("**B**", "B"),
        ("B) Paris", "B"),
        ("D, since it is late", "D"),
        ("B。 不是 A", "B"),
        ("Option B is correct.", "B"),
        ("The answer is for sure D, it can't be A or B", "D"),
        ("The correct option is B", "B"),
        ("so it is\nC.", "C"),
        ("The answer is (A). Wait. The answer is (B).", "B"),
        ("It must be Paris.\n\nParis", "B"),
        ("Oslo fjord.", "C"),
        ("<think>The answer is (A)</think>The answer is (B)", "B"),
        ("Answer: I", "I"),
        ('Answer: "C"', "C"),
        ("Answer: “D”.", "D"),
        ("The answer is `C`.", "C"),
        ("`B`", "B"),
        ('{"answer": "C"}', "C"),
        ("{'answer': 'C'}", "C"),
        ("Option C", "C"),
        ("**Option (C)**", "C"),
        ("Option C: the Oslo fjord", "C"),
        ("\\boxed{Option C}", "C"),
        ("<answer>Option C</answer>", "C"),
        ("I choose option C.", "C"),
        ("I would go with (D).", "D"),
        ("C is the correct answer.", "C"),
        ("Hence, (C) is correct.", "C"),
        ("The correct answer is therefore (B).", "B"),
        ("Correct answer: [[B]]", "B"),
        ("The answer is (F", "F"),
        ("So the answer is **(F\n", "F"),
        ("答案是B", "B"),
        ("正确答案是（D）。", "D"),
        ("故选：A", "A"),
        ("La réponse est B.", "B"),
        ("La respuesta correcta es la C", "C"),
        ("A resposta é C", "C"),
        ("La risposta è D", "D"),
        ("Die richtige Antwort ist B.", "B"),
        ("Правильный ответ — B", "B"),
        ("答えはCです", "C"),
        ("정답은 B입니다", "B"),
        ("الجواب هو B", "B"),
        ("\\boxed{\\text{(B) Paris}}", "B"),
        ("The answer is Paris", "B"),
        ("The correct answer is Paris (B).", "B"),
        ("Rome is too far south. So it is D.", "D"),
        ("It has to be (C).", "C"),
        ("the answer is d", "D"),
        ("Answer: b", "B"),
        ("Answer - D", "D"),
        ("the option that fits is (B)", "B"),
        ("I choose option D because it is the capital.", "D"),
        ("The correct option is therefore: B.", "B"),
        ("C is the answer", "C"),
        ("The right letter is D", "D"),
    ],
)
def test_the_chosen_letter_is_found(text: str, letter: str) -> None:
    assert read_letter(text, CHOICES)[0] == letter, read_letter(text, CHOICES)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot answer.",
        "The answer is I cannot say.",
        "The answer is a dog",
        "The answer is (None of the above)",
        "A man walks in.",
        "(a) The flow rate is given by Q.",
        "Borax",
        "The answer is Borax.",
        "x = C + 1",
        "Option A is wrong.",
        "not option C",
        "I do not choose option C.",
        "Options A and B are both plausible.",
        "Option A: too small.\nOption B: too large.\nOption C: too slow.",
        "We select A from the set.",
        'Answer: "Can you help?"',
        "The answer is not C",
        "答案不是B",
        "不选B",
        "La respuesta es a menudo otra.",
        "If it is D, the sun is cold.",
        "It is C that is wrong",
        "The answer is Paris (C)",
        "Is it C?",
        "it is C minor",
        "The option that is wrong is easy to see.",
    ],
)
def test_no_letter_is_guessed(text: str) -> None:
    assert read_letter(text, CHOICES)[0] == ""
    seen = ChoiceGrader().judge(TASK, text)
    assert seen.verdict == "unparsable"
    assert seen.reason


def test_a_letter_is_right_wrong_or_none_of_the_choices() -> None:
    assert ChoiceGrader().judge(TASK, "The answer is B.").verdict == "right"
    assert ChoiceGrader().judge(TASK, "The answer is C.").reason == "C, expected B (said to be the answer)"
    seen = ChoiceGrader().judge(TASK, "The answer is J.")
    assert (seen.verdict, seen.reason) == (Verdict.WRONG, "J is none of the 4 choices, expected B")


def test_the_gold_may_be_a_letter_in_brackets_or_the_text_of_a_choice() -> None:
    for gold in ("(B)", "b", "Paris"):
        assert (
            ChoiceGrader().judge(Task("t", "?", (gold,), "choice", metadata={"choices": CHOICES}), "B").verdict
            == "right"
        )
    with pytest.raises(ValueError, match="not a letter of the 4 choices"):
        ChoiceGrader().judge(Task("t", "?", ("E",), "choice", metadata={"choices": CHOICES}), "B")


def test_more_than_ten_choices_have_further_letters() -> None:
    task = Task("t", "?", ("M",), "choice", metadata={"choices": [f"choice {n}" for n in range(14)]})
    assert ChoiceGrader().judge(task, "The answer is (M).").verdict == "right"
    assert read_letter("The answer is (M).")[0] == ""
