r"""Mathematics by our own judge: kinds of answers and of replies, each from both sides; and where two judges differ."""

from __future__ import annotations

import time
from typing import Any

import pytest
from concertino_bench import Task
from concertino_bench.graders import Mathematics
from concertino_bench.graders.formula_equality import Conventions, equal_formulas
from concertino_bench.graders.formula_nodes import Unreadable

OWN = Mathematics(judge="own")


def task(*golds: str) -> Task:
    return Task("t", "?", golds[:1], "math", metadata={"aliases": list(golds[1:])})


SAME = [
    ("\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}", "\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}"),
    (
        "\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}",
        "The matrix is $$\\begin{bmatrix}1&2\\\\3&\\frac{8}{2}\\end{bmatrix}$$",
    ),
    (
        "\\begin{bmatrix} 1/2 \\\\ -3 \\end{bmatrix}",
        "\\boxed{\\left[\\begin{array}{c} 0.5 \\\\ -3 \\end{array}\\right]}",
    ),
    (
        "\\begin{cases} x+1 & x<0 \\\\ x^2 & x \\geq 0 \\end{cases}",
        "\\begin{cases} x^2 & \\text{if } x \\ge 0, \\\\ 1+x & \\text{if } x < 0. \\end{cases}",
    ),
    (
        "f(x)=\\begin{cases} x & \\text{if } x > 1 \\\\ 0 & \\text{otherwise} \\end{cases}",
        "\\boxed{\\begin{cases} x & x>1 \\\\ 0 & \\text{otherwise}\\end{cases}}",
    ),
    ("7", "f(2) = 7"),
    ("2", "\\boxed{h'(1)=2}"),
    ("\\sqrt{5}", "|PQ| = \\sqrt5"),
    ("2", "|\\vec{a}| = 2"),
    ("\\frac{3}{5}", "\\cos\\theta = 0.6"),
    ("9", "\\text{Area} = 9"),
    ("4", "f^{-1}(3) = 4"),
    ("|AB| = 1", "|BA| = 1"),
    ("18.90", "The final answer is $\\$18.90$. I hope it is correct."),
    ("\\$18.90", "\\[\\$18.90\\]"),
    ("18.9", "\\(\\$18.90\\)"),
    ("1200", "The total cost is \\boxed{\\$1,200}."),
    ("45", "\\boxed{45 \\text{ dollars}}"),
    ("45", "\\boxed{€45}"),
    ("12, 13", '"$12 $ and $13 $"'),
    ("3/2", "1 1/2"),
    ("\\frac{3}{2}", "\\boxed{1\\frac{1}{2}}"),
    ("-7/3", "\\boxed{-2 \\frac{1}{3}}"),
    ("10", "10 weeks"),
    ("10 weeks", "10"),
    ("45", "45 \\text{ square feet}"),
    ("60", "60 miles per hour"),
    ("3.5", "\\boxed{3.5\\,\\mathrm{cm}^2}"),
    ("3.5", "\\boxed{3.5 \\text{ m/s}}"),
    ("1+2i", "i(2-i)"),
    ("30", "30^\\circ"),
    ("30^{\\circ}", "30 degrees"),
    ("60^\\circ", "\\boxed{60°}"),
    ("60^\\circ", "\\boxed{\\frac{\\pi}{3}}"),
    ("3, 5", "The solutions are $x = \\boxed{3}$ and also $x = \\boxed{5}$."),
    ("3, 5", "We find \\boxed{3} from the first branch, and \\boxed{5} from the second."),
    ("7", "The first guess \\boxed{5} was wrong, so the answer must be \\boxed{7}"),
    ("2", "\\boxed{1} no, \\boxed{2}"),
    ("5", "\\boxed{\\text{The answer is } 5}"),
    ("5", "\\boxed{The answer is 5}"),
    ("5", "<answer>The value of x is 5.</answer>"),
    ("12", "<answer>So we get $x = 12$ apples</answer>"),
    ("1, 2, 3", "[1, 2, 3]"),
    ("1, 2, 3", "1; 2; 3"),
    ("1, 2, 3", "1、2、3"),
    ("1, 2", "The answer is $1$ and $2$."),
    ("24", "答案是24。"),
    ("24", "因此，答案为：24"),
    ("24", "La réponse est 24."),
    ("24", "La respuesta es 24."),
    ("24", "Die Antwort ist 24."),
    ("24", "A resposta é 24"),
    ("24", "La risposta è 24"),
    ("24", "Ответ: 24"),
    ("24", "答えは24です。"),
    ("24", "정답은 24입니다."),
    ("24", "الجواب هو 24"),
    ("24", "उत्तर है 24"),
    ("24", "Đáp án là 24"),
    ("24", "Cevap: 24"),
    ("24", "Odpowiedź: 24"),
    ("24", "所以一共有24个苹果。"),
    ("4000", "面积 = 72000 / 18 = 4000千克"),
    ("x = \\frac13", "x = \\frac{1}{3} \\approx 0.333"),
    ("1/3", "\\boxed{\\frac{1}{3} \\approx 0.33}"),
    ("(-\\infty, 1)", "x < 1"),
    ("(-\\infty,-1)\\cup(3,\\infty)", "x<-1 \\text{ or } x>3"),
    ("3 \\pm 2\\sqrt2", "3+2\\sqrt2, 3-2\\sqrt2"),
    ("3 \\pm 2\\sqrt2", "\\boxed{3+2\\sqrt{2}} \\text{ and } \\boxed{3-2\\sqrt{2}}"),
    ("\\frac{\\sqrt3}{3}", "\\frac{1}{\\sqrt3}"),
    ("2^{10}", "1024"),
    ("\\binom{5}{2}", "10"),
    ("5!", "120"),
    ("\\log_2 8", "3"),
    ("\\sin 30^\\circ", "\\frac12"),
    ("\\cos^2 x", "1-\\sin^2 x"),
    ("e^{2x}", "(e^x)^2"),
    ("y = 2x + 3", "2x - y + 3 = 0"),
    ("5x - 7y + 11z + 4 = 0", "-5x+7y-11z-4=0"),
    ("2516_8", "2516_{8}"),
    ("2516_8", "2516_{\\text{eight}}"),
    ("11:21", "22:42"),
    ("\\text{Navin}", "Navin"),
    ("\\text{ellipse}", "\\boxed{\\text{Ellipse}}"),
    ("\\text{(B)}", "(B)"),
    ("\\text{(B)}", "\\boxed{B}"),
    ("\\text{(B)}", "The correct option is B."),
    ("10\\%", "10 percent"),
    ("0.5", "\\boxed{.5}"),
    ("(2,12) \\cup (12,102)", "(12,102)\\cup(2,12)"),
    ("[-2,7]", "-2 \\leq x \\leq 7"),
    ("\\emptyset", "\\varnothing"),
    ("x^2+1", "1+x\\cdot x"),
    ("6,7", "6\\text{ and }7"),
    ("(6,7)", "\\left( 6, 7 \\right)"),
    ("\\sqrt{51}", "51^{1/2}"),
    ("10,080", "10,\\!080"),
    ("10080", "\\boxed{10{,}080}"),
    ("10080", "\\boxed{10\\,080}"),
    ("10080", "10 080"),
    ("p - q", "-q+p"),
    ("\\frac{x}{x+1}", "1 - \\frac{1}{x+1}"),
    ("k \\geq 2", "[2, \\infty)"),
    ("a_n = 2^n - 1", "2^n - 1"),
    ("n = 4k, k \\in \\mathbb{Z}", "n=4k, k\\in\\mathbb{Z}"),
    ("\\frac{1}{2}", "$\\dfrac{1}{2}$"),
    ("12", "**12**"),
    ("12", "**Answer: 12**"),
    ("12", "### Final Answer\n\n12"),
    ("1.5 \\times 10^3", "1500"),
    ("6.02e23", "6.02 \\times 10^{23}"),
    ("\\{x \\mid x > 2\\}", "\\{x | x>2\\}"),
    ("1,000,000", "1000000"),
    ("3\\sqrt{13}", "\\sqrt{117}"),
    ("5", "$5"),
    ("5", "5$"),
    ("2/3", "$\\frac{2}{3}$ of the cake"),
    ("36", "It is $36."),
    ("36", "She pays $36 in total."),
    ("\\frac{270}7\\text{ degrees}", "270/7"),
    ("1/3", "0.\\overline{3}"),
    ("0.1\\overline{6}", "1/6"),
    ("1500000", "1.5 million"),
    ("5", "5 m"),
    ("x \\ne 3", "(-\\infty,3)\\cup(3,\\infty)"),
    ("\\mathbb{R}", "(-\\infty,\\infty)"),
    ("5", "\\begin{align*} x &= 5 \\end{align*}"),
    ("2 \\times 10^6", "2e6"),
    ("\\log 1000", "3"),
    ("1234.56", "1.234,56"),
    ("1234.56", "1 234,56"),
    ("\\{1,2\\}\\cup\\{3\\}", "\\{1,2,3\\}"),
    ("2x=4", "x=2"),
    ("\\langle 1,2 \\rangle", "(1,2)"),
    ("\\sqrt[3]{-8}", "-2"),
    ("３", "3"),
    ("3:4:5", "6:8:10"),
]
DIFFERENT = [
    ("1", "|x| = 1"),
    ("1", "|xy| = 1"),
    ("7", "3f(2) = 7"),
    ("f(2) = 7", "f(3) = 7"),
    ("7", "f(2) = 8"),
    ("\\text{area} = 9", "\\text{perimeter} = 9"),
    ("4", "x^2 = 4"),
    ("4", "\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}"),
    ("\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}", "\\begin{pmatrix} 1 & 2 \\\\ 3 & 5 \\end{pmatrix}"),
    ("\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}", "4"),
    ("\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}", "\\begin{pmatrix} 1 & 3 \\\\ 2 & 4 \\end{pmatrix}"),
    ("\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}", "\\begin{pmatrix} 1 & 2 \\end{pmatrix}"),
    (
        "\\begin{cases} x+1 & x<0 \\\\ x^2 & x \\geq 0 \\end{cases}",
        "\\begin{cases} x+1 & x<0 \\\\ x^2 & x > 0 \\end{cases}",
    ),
    (
        "\\begin{cases} x+1 & x<0 \\\\ x^2 & x \\geq 0 \\end{cases}",
        "\\begin{cases} x+1 & x\\ge 0 \\\\ x^2 & x < 0 \\end{cases}",
    ),
    ("18.90", "\\[\\$18.09\\]"),
    ("1 1/2", "11/2"),
    ("1 1/2", "1/2"),
    ("3/2", "1 1/3"),
    ("10 weeks", "11 weeks"),
    ("3, 5", "\\boxed{5}"),
    ("5", "\\boxed{3} and \\boxed{5}"),
    ("3, 5", "\\boxed{3} and \\boxed{5} and \\boxed{6}"),
    ("30^\\circ", "60"),
    ("30^\\circ", "\\frac{\\pi}{3}"),
    ("(1,2)", "[1,2]"),
    ("(1,2]", "[1,2)"),
    ("24", "答案是25。"),
    ("x<1", "x \\le 1"),
    ("x<1", "x>1"),
    ("|x|", "x"),
    ("\\sqrt{x^2}", "x"),
    ("2516_8", "2516_9"),
    ("2516_8", "2517_8"),
    ("11:21", "21:11"),
    ("12:00", "1:00"),
    ("\\text{(B)}", "(C)"),
    ("\\text{Navin}", "Evelyn"),
    ("5", "\\text{not } 5"),
    ("x+y", "x-y"),
    ("2x", "2y"),
    ("x^2", "x^3"),
    ("1,2", "1,2,3"),
    ("(1,2,3)", "(1,3,2)"),
    ("10^{100}", "10^{101}"),
    ("\\pi", "3.14"),
    ("\\pi", "22/7"),
    ("\\sqrt2", "1.41"),
    ("y=2x+3", "y=2x-3"),
    ("0.001", "0.002"),
    ("0.0000001", "0.0000002"),
    ("1234567", "1234568"),
    ("e", "\\pi"),
    ("i", "-i"),
    ("3 \\pm 2\\sqrt2", "3+2\\sqrt2"),
    ("\\emptyset", "0"),
    ("120^\\circ", "60^\\circ"),
    ("\\frac{1}{8}", "8"),
    ("[1,2]", "1,2"),
    ("x=5", "y=5"),
    ("1.5 million", "1.5"),
    ("0.\\overline{3}", "0.3"),
    ("\\log 1000", "2"),
    ("\\mathbb{R}", "(0,\\infty)"),
    ("1:2", "2"),
    ("2^{100}", "2^{101}"),
    ("f(x)=2x", "f(x)=3x"),
    ("5 m", "6 m"),
]


@pytest.mark.parametrize(("gold", "text"), SAME)
def test_a_reply_with_the_value_is_right(gold: str, text: str) -> None:
    seen = OWN.judge(task(gold), text)
    assert seen.verdict == "right", seen


@pytest.mark.parametrize(("gold", "text"), DIFFERENT)
def test_a_reply_with_another_value_is_not(gold: str, text: str) -> None:
    seen = OWN.judge(task(gold), text)
    assert seen.verdict == "wrong", seen


def test_a_matrix_is_equal_to_itself_and_its_last_number_is_not_the_answer() -> None:
    matrix = "\\begin{pmatrix} 7 & 8 \\\\ 9 & 5 \\end{pmatrix}"
    assert OWN.judge(task(matrix), matrix).verdict == "right"
    assert OWN.judge(task("5"), matrix).verdict == "wrong"


@pytest.mark.parametrize(
    ("gold", "answer", "note"),
    [
        ("1, 2", "2, 1", "the order of a bare list does not count"),
        ("5 \\text{ cm}", "5", "units are not compared"),
        ("20\\%", "20", "percent signs are not compared"),
        ("1.414", "\\sqrt2", "the answer rounds to the gold"),
        ("\\frac17", "0.142857", "six decimals are exact"),
        ("180^\\circ", "\\pi", "degrees are compared with radians"),
        ("\\log 100", "2", "a log without a base is one to 10"),
        ("x^2 - 1", "(x-1)(x+1)", ""),
    ],
)
def test_the_reason_names_the_convention_that_decided(gold: str, answer: str, note: str) -> None:
    reason = OWN.judge(task(gold), f"\\boxed{{{answer}}}").reason
    assert reason == f"the answer is right; {note}" if note else reason == "the answer is right"


@pytest.mark.parametrize(
    ("gold", "answer", "setting"),
    [
        ("1, 2", "2, 1", Conventions(ordered=True)),
        ("1.414", "\\sqrt2", Conventions(rounding=False)),
        ("5 \\text{ cm}", "5 \\text{ m}", Conventions(units=True)),
    ],
)
def test_a_setting_turns_a_convention_around(gold: str, answer: str, setting: Conventions) -> None:
    assert equal_formulas(gold, answer).equal
    assert not equal_formulas(gold, answer, setting).equal


def test_a_percentage_is_a_share_only_if_a_setting_says_so() -> None:
    assert not equal_formulas("0.28", "28\\%").equal
    seen = equal_formulas("0.28", "28\\%", Conventions(percent=True))
    assert (seen.equal, seen.note) == (True, "a percentage is compared with a share")


@pytest.mark.slow
def test_judges_that_disagree_are_named_and_ours_decides() -> None:
    both = Mathematics(30, second_opinion=30)
    seen = both.judge(task("2516_8"), "\\boxed{2516_9}")
    assert (seen.verdict, seen.values["judges-agree"]) == ("wrong", 0.0)
    assert "the judges disagree: math-verify says equal, our own decides" in seen.reason
    agreed = both.judge(task("\\frac12"), "\\boxed{0.5}")
    assert (agreed.verdict, dict(agreed.values), agreed.reason) == (
        "right",
        {"judges-agree": 1.0},
        "the answer is right",
    )
    alone = Mathematics(30, judge="math-verify").judge(task("2516_8"), "\\boxed{2516_9}")
    assert (alone.verdict, dict(alone.values)) == ("right", {})


@pytest.mark.slow
def test_what_one_judge_cannot_read_the_other_decides() -> None:
    both = Mathematics(30, second_opinion=30)
    summed = both.judge(task("15"), "\\boxed{\\sum_{k=1}^{5} k}")
    assert (summed.verdict, "our own judge: stopped at 'sum'" in summed.reason) == ("right", True)
    clock = both.judge(task("12:00"), "\\boxed{1:00}")
    assert (clock.verdict, "math-verify: it cannot be compared" in clock.reason) == ("wrong", True)


def test_any_of_several_golds_will_do() -> None:
    assert OWN.judge(task("1", "\\frac12"), "\\boxed{0.5}").verdict == "right"
    assert OWN.judge(task("1", "\\frac13"), "\\boxed{0.5}").verdict == "wrong"


@pytest.mark.parametrize("gold", ["\\text{(B)}", "(B)", "B", "$\\textbf{B}$", "B Paris"])
def test_a_gold_that_is_a_letter_is_compared_with_the_letter_that_is_chosen(gold: str) -> None:
    for text in ("Option B is correct, and not A.", "So it is \\boxed{\\text{(B)}}.", "**B**", 'Answer: "B"'):
        assert OWN.judge(task(gold), text).verdict == "right", text
    for text in ("The answer is (C).", "\\boxed{\\textbf{(D)}}", "A, and not B"):
        assert OWN.judge(task(gold), text).verdict == "wrong", text


@pytest.mark.slow
def test_no_hostile_answer_takes_long_or_raises() -> None:
    texts = [
        "(" * 2000,
        "{" * 2000,
        "1+" * 999 + "1",
        "2^" * 900 + "2",
        "9^{9^{9^{9^{9}}}}",
        "x!" + "!" * 1900,
        "-" * 2000,
    ]
    texts += [
        "((((((((((x))))))))))" * 90,
        "\\frac" * 400,
        "|" * 1999,
        "\\{" * 900,
        "99999!",
        "1," * 999,
        "1:" * 900 + "1",
    ]
    texts += ["$1" * 1000, "\\(" * 1000, "\\begin{pmatrix}" + "1&" * 900, "5 " + "abcdefgh " * 220]
    began = time.process_time()
    for text in texts:
        assert OWN.judge(task("\\frac{7}{2}"), text).verdict != "right"
        assert OWN.judge(task("\\frac{7}{2}"), f"\\boxed{{{text}}}").verdict != "right"
    assert time.process_time() - began < 0.5 * len(texts)


@pytest.mark.parametrize(
    "answer", ["", "\\frac{1}", "2 +", "(1, 2", "\\begin{pmatrix} 1 & 2", "x = = 3", "\\sqrt", "{1}}"]
)
def test_a_formula_that_ends_too_early_or_too_late_is_not_read_in_part(answer: str) -> None:
    with pytest.raises(Unreadable, match="stopped"):
        equal_formulas("3", answer)


def test_a_judge_that_does_not_exist_is_refused() -> None:
    unknown: Any = "sympy"
    with pytest.raises(ValueError, match="expected one of both, own, math-verify"):
        Mathematics(judge=unknown)
