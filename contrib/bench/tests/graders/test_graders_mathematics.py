"""Mathematical answers: the conventions, each from both sides, and the comparison that can be cut off."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from concertino_bench import Submission, Task, Verdict
from concertino_bench.graders import Mathematics
from concertino_bench.graders.comparing import Comparer
from concertino_bench.graders.formula_places import read_answer

GRADER = Mathematics(seconds=30)


def task(answer: str) -> Task:
    return Task("t", "?", (answer,), "math")


SAME = [
    (r"\frac12", "0.5"),
    (r"\frac{1}{2}", r"\dfrac12"),
    (r"\tfrac13", "1/3"),
    (r"\sqrt3", r"\sqrt{3}"),
    (r"2\frac58", r"\frac{21}{8}"),
    ("14{,}916", "14916"),
    ("11111", r"11,\! 111"),
    ("7,425,000", "7425000"),
    ("033", "33"),
    ("204", "204.0"),
    (r"90^\circ", "90"),
    (r"\text{east}", "east"),
    ("E", r"\mathrm{E}"),
    (r"10\%", "10"),
    ("10", r"10\%"),
    ("28", "28 percent"),
    (r"\$10", "10"),
    ("1000,99", "1000.99"),
    ("0,5", "1/2"),
    ("1, 2, 3", "3, 1, 2"),
    (r"\{1, 3\}", r"\{3, 1\}"),
    ("(1, 3)", r"\left(1, 3\right)"),
    ("1,3", r"\{1,3\}"),
    ("5", "x = 5"),
    ("x = 5", "5"),
    (r"x \in [-2,7]", "[-2,7]"),
    ("[-2,7]", r"-2 \le x \le 7"),
    ("x < 1", "-x > -1"),
    ("0.333", r"\frac13"),
    ("2.236", r"\sqrt5"),
    (r"\frac1{12}", "0.083333333"),
    ("(r+5)(r+5)", "(r+5)^2"),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}1\\2\end{pmatrix}"),
]
DIFFERENT = [
    (r"\frac12", "0.51"),
    (r"10\%", "0.1"),
    ("0.1", r"10\%"),
    ("(1, 3)", "(3, 1)"),
    ("(1, 3)", r"\{1, 3\}"),
    ("32, 349", "32349"),
    ("1,22", "1.22"),
    ("7 = 11a + c", "11a + c"),
    ("1/3", "0.33"),
    ("0.33", "1/3"),
    (r"1 - \frac{1}{\mathrm{e}}", r"1 + \frac{1}{\mathrm{e}}"),
    ("4", r"4\sqrt2"),
    (r"\pm 2021", "2021"),
    ("5", "6"),
    ("f(x) = 2x + 3", "y = 2x + 3"),
    ("1, 2", "1, 2, 3"),
    ("[0,9)", "[0,1)"),
    ("x+2n+1", "x+1"),
]


@pytest.mark.parametrize(("gold", "answer"), SAME)
def test_equal_values_are_right(gold: str, answer: str) -> None:
    assert GRADER.judge(task(gold), f"So we get\n\\boxed{{{answer}}}").verdict == "right"


@pytest.mark.parametrize(("gold", "answer"), DIFFERENT)
def test_other_values_are_wrong(gold: str, answer: str) -> None:
    assert GRADER.judge(task(gold), f"So we get\n\\boxed{{{answer}}}").verdict == "wrong"


@pytest.mark.slow
def test_conventions_that_are_options_hold_the_other_way_too() -> None:
    ordered = Mathematics(seconds=30, ordered=True)
    assert ordered.judge(task("1, 2, 3"), "\\boxed{3, 1, 2}").verdict == "wrong"
    assert ordered.judge(task("1, 2, 3"), "\\boxed{1, 2, 3}").verdict == "right"
    exact = Mathematics(seconds=30, rounding=False)
    assert exact.judge(task("0.333"), "\\boxed{\\frac13}").verdict == "wrong"


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("\\boxed{1} no, \\boxed{2}", "2"),
        ("\\boxed{1} and \\boxed{-2}", "1, -2"),
        ("\\boxed{(3, 3)} \\text{ for part (a) and } \\boxed{(1, 1)}", "(3, 3), (1, 1)"),
        ("\\boxed{200} so far. Final Answer: The final answer is $10,455$. I hope it is correct.", "10455"),
        ("The final answer is \\boxed{12 $ and $13 }", "12 and 13"),
        ("So the answer is $x^2$.", "x^2"),
        ("The answer is the number of points of $f(x)$, which is 19. Bye.", "19"),
        ("<answer>$\\frac12$</answer>", "\\frac12"),
        ("\\frac{1}{2}", "\\frac{1}{2}"),
        ("<think>\\boxed{3}</think> \\boxed{4}", "4"),
    ],
)
def test_the_answer_of_a_text_is_found(text: str, latex: str) -> None:
    assert read_answer(text) == (latex, True)


@pytest.mark.parametrize("text", ["", "I do not know.", "\\boxed{}"])
def test_a_text_without_mathematics_is_unparsable(text: str) -> None:
    assert GRADER.judge(task("5"), text).verdict == "unparsable"


def test_a_gold_text_with_nothing_in_it_is_refused() -> None:
    with pytest.raises(ValueError, match="holds nothing to compare"):
        GRADER.judge(task("\\boxed{}"), "5")


HARD = "9^{9^{9^{9^{9}}}}"


@pytest.mark.slow
def test_a_comparison_that_takes_too_long_is_wrong_with_that_reason_and_the_next_one_works() -> None:
    grader = Mathematics(seconds=1.0)
    seen = grader.judge(task("\\int_0^1 x^{x} dx"), f"\\boxed{{{HARD}!}}")
    assert (seen.verdict, "not compared within 1 s" in seen.reason or "too much memory" in seen.reason) == (
        Verdict.WRONG,
        True,
    ), seen
    assert grader.judge(task("\\frac12"), "\\boxed{0.5}").verdict == "right"


@pytest.mark.slow
async def test_it_works_in_threads_and_in_an_event_loop_that_goes_on() -> None:
    grader = Mathematics(seconds=30, workers=2)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1

    ticking = asyncio.create_task(tick())
    submissions = [Submission(f"\\boxed{{\\frac{{{n}}}{{{2 * n}}}}}") for n in range(1, 13)]
    grades = await asyncio.gather(*(grader.grade(task("0.5"), each, None) for each in submissions))  # type: ignore[arg-type]
    ticking.cancel()
    assert [grade.verdict for grade in grades] == ["right"] * 12
    assert ticks > 3
    with ThreadPoolExecutor(4) as threads:
        seen = list(threads.map(lambda n: grader.judge(task("0.5"), f"\\boxed{{{n}/{2 * n}}}").verdict, range(1, 9)))
    assert seen == ["right"] * 8


@pytest.mark.slow
def test_a_worker_is_used_again_and_ends_with_its_owner() -> None:
    comparer = Comparer(seconds=30, workers=1)
    assert comparer.compare(["\\frac12"], "0.5").equal
    (worker,) = comparer._idle
    assert not comparer.compare(["\\frac12"], "0.6").equal
    assert comparer._idle == [worker]
    process = worker.process
    del comparer, worker
    gc.collect()
    assert process.poll() is not None


@pytest.mark.slow
def test_a_worker_that_was_killed_is_replaced() -> None:
    comparer = Comparer(seconds=30, workers=1)
    assert comparer.compare(["\\frac12"], "0.5").equal
    comparer._idle[0].process.kill()
    comparer._idle[0].process.wait()
    assert comparer.compare(["\\frac12"], "0.5").equal
    comparer.close()


def test_a_worker_that_is_stopped_in_a_comparison_gives_no_verdict() -> None:
    comparer = Comparer(seconds=60, workers=1)
    assert comparer.compare(["\\frac12"], "0.5").equal
    process = comparer._idle[0].process
    waiting = threading.Thread(
        target=comparer.compare, args=(["\\int_0^1 x^{x} dx"], "\\int_0^2 \\sin(x^x) dx"), daemon=True
    )
    waiting.start()
    time.sleep(0.3)
    process.kill()
    assert process.wait(timeout=20) is not None
    waiting.join(20)
    assert not waiting.is_alive()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_gets_workers_of_its_own() -> None:
    comparer = Comparer(seconds=30, workers=1)
    assert comparer.compare(["\\frac12"], "0.5").equal
    child = os.fork()
    if not child:
        os._exit(0 if comparer.compare(["\\frac12"], "0.5").equal else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert comparer.compare(["\\frac12"], "0.5").equal
    comparer.close()


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="seconds=0"):
        Mathematics(seconds=0)
