"""What compares answers: one grader for each kind of task, a lenient one, and a model as judge.

Every verdict is right, wrong or unparsable, with a reason. The graders share one reading of what a solver said
(`answers`), and no grader raises because of it. What a grader needs beyond the text comes from the bench: the sandbox
for programs, a model for the judge. Importing this module imports neither sympy nor math-verify.
"""

from __future__ import annotations

from concertino_bench.grading import Grader
from concertino_bench.toolkits.digests import digest

from .agreement import Agreement, agreement
from .call_match import CallMatch
from .call_reading import Decoded, Made, read_calls
from .choice import Choice, read_letter
from .environment import Environment
from .exact_match import ExactMatch, Likeness, TokenF1, likeness, normalise
from .final_state import FinalState, difference
from .llm_judge import LlmJudge
from .mathematics import Mathematics
from .multi_answer import MultiAnswer, read_answers
from .numeric import Number, Numeric
from .unit_tests import UnitTests, read_programs

__all__ = [
    "Agreement",
    "CallMatch",
    "Choice",
    "Decoded",
    "Environment",
    "ExactMatch",
    "FinalState",
    "Likeness",
    "LlmJudge",
    "Made",
    "Mathematics",
    "MultiAnswer",
    "Number",
    "Numeric",
    "TokenF1",
    "UnitTests",
    "agreement",
    "all_graders",
    "difference",
    "digest",
    "likeness",
    "normalise",
    "read_answers",
    "read_calls",
    "read_letter",
    "read_programs",
]


def all_graders() -> list[Grader]:
    """Every grader of this package, with its default settings; no two have a kind in common."""
    return [
        ExactMatch(), TokenF1(), Numeric(), Mathematics(), Choice(), MultiAnswer(), UnitTests(), CallMatch(),
        FinalState(), Environment(), LlmJudge(),
    ]  # fmt: skip
