"""The calculator and the reader: right, bounded, and never a way to run Python."""

from __future__ import annotations

import pytest
from concertino import Call, Executor, Pool
from concertino_toy.simulated.agents import solve
from concertino_toy.simulated.models import SAGE, SWIFT, model_spec
from concertino_toy.simulated.tools import calculate, combine, read_problem


@pytest.mark.parametrize(
    ("expression", "modulus", "expected"),
    [
        ("3 * (4 + 5)", 23, 4),
        ("-1", 23, 22),
        ("2 ** 10", 0, 1024),
        ("7 // 2 - 10", 0, -7),
        ("7 % 4", 0, 3),
        (" 5 ", 23, 5),
    ],
)
def test_arithmetic_is_worked_out(expression: str, modulus: int, expected: int) -> None:
    assert calculate(expression, modulus) == expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("9 ** 9 ** 9", "out of bounds"),
        ("2 ** -1", "out of bounds"),
        ("9**999 * 9**999 * 9**999", "more than 4096 bits"),
        ("9" * 3000, "at most 2000"),
        ("9" * 1500, "more than 4096 bits"),
        ("(" * 900 + "1" + ")" * 900, "not an arithmetic expression"),
        ("-" * 1500 + "1", "nested more than|not an arithmetic expression"),
        ("1 +" * 600 + "1", "nested more than"),
        ("1 // 0", "division by zero"),
        ("1.5 + 1", "not allowed"),
        ("True + 1", "not allowed"),
        ("x + 1", "not allowed"),
        ("(1).bit_length()", "not allowed"),
        ("__import__('os').getcwd()", "not allowed"),
        ("[1 for _ in (1,)]", "not allowed"),
        ("1 if 1 else 2", "not allowed"),
        ("1 << 99999", "not allowed"),
        ("1 +", "not an arithmetic expression"),
        ("", "not an arithmetic expression"),
        ("1\0", "not an arithmetic expression"),
    ],
)
def test_anything_else_is_refused_with_the_reason(expression: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        calculate(expression)


def test_a_negative_modulus_is_refused() -> None:
    with pytest.raises(ValueError, match="modulus=-1"):
        calculate("1", -1)


def test_the_reader_lists_what_a_text_states() -> None:
    text = (
        "The number of each Moss Court's Bog Bed equals 6. The number of each Moss Court's Rose "
        "Border equals 2 times as "
        "much as the sum of each Moss Court's Bog Bed and each Rose Border's Lady Fern. There are 5 "
        "frogs. Please verify "
        "it. The magic number for paper-comet is 7654321. How many Bed does Moss Court have?"
    )
    assert read_problem(text) == {
        "count": 1,
        "problems": [
            {
                "problem": 1,
                "quantities": {
                    "Moss Court's Bog Bed": "6",
                    "Moss Court's Rose Border": "2 * (Moss Court's Bog Bed + Rose Border's Lady Fern)",
                },
                "asked": ["Moss Court's Bed"],
                "magic_numbers": {"paper-comet": 7654321},
                "notes_to_ignore": ["Please verify it"],
                "not_understood": ["There are 5 frogs."],
            }
        ],
    }


async def test_the_solver_returns_the_reply_of_the_model_it_was_told_to_use() -> None:
    question = "The number of each Moss Court's Bog Bed equals 6. How many Bed does Moss Court have?"
    pool = Pool([solve, model_spec("swift", SWIFT), model_spec("sage", SAGE)])
    calls = [Call("solve", {"subtask": question, "model": model}) for model in ("sage", "swift")]
    sage, swift = await Executor().run(calls, pool)
    assert sage.content.endswith("<answer>\n\\boxed{6}\n</answer>")
    assert "total is beyond me" in swift.content


def test_the_solver_publishes_its_models_and_its_cost() -> None:
    assert solve.input_schema["properties"]["model"]["enum"] == ["swift", "steady", "sage"]
    assert solve.input_schema["required"] == ["subtask"]
    assert solve.cost.units == 1


@pytest.mark.parametrize(
    ("opinions", "joined"),
    [
        ([["so \\boxed{4}"], ["\\boxed{7}"]], "\\boxed{4}\n\\boxed{7}"),
        ([["\\boxed{4}", "\\boxed{5}", "\\boxed{4}"]], "\\boxed{4}"),
        ([["\\boxed{4}", "\\boxed{5}"]], "\\boxed{5}"),
        ([["I cannot", "\\boxed{5}", "\\boxed{"]], "\\boxed{5}"),
        ([["\\boxed{4} \\boxed{1234567}", "\\boxed{4} \\boxed{7654321}"]], "\\boxed{4}\n\\boxed{7654321}"),
    ],
    ids=["joined", "most votes", "the later of equals", "replies without an answer", "several values"],
)
def test_replies_are_combined(opinions: list[list[str]], joined: str) -> None:
    assert combine(opinions) == joined


def test_a_problem_without_any_answer_fails_and_is_named() -> None:
    with pytest.raises(ValueError, match="problem 2"):
        combine([["\\boxed{4}"], ["unknown"]])
