"""What compares answers: one grader for each kind of task, a lenient one, and a model as judge.

Every verdict is right, wrong or unparsable, with a reason. The graders share one reading of what a solver said
(`answers`), and no grader raises because of it. What a grader needs beyond the text comes from the bench: the sandbox
for programs, a model for the judge. Importing this module imports neither sympy nor math-verify.
"""

from __future__ import annotations

from concertino_bench.tasks.grade import Grader

from .bfcl_official import OfficialCallMatch
from .call_match import CallMatch
from .call_states import CallStates
from .choice import ChoiceGrader
from .environment import EnvironmentGrader
from .exact_match import ExactMatch, TokenF1, normalise
from .final_state import FinalState
from .input_output import InputOutput
from .judge_agreement import agreement
from .judged_state import JudgedState
from .llm_judge import BrowseCompPlusJudge, FramesJudge, HleJudge, LlmJudge, SimpleQaJudge
from .mathematics import Mathematics
from .multi_answer import MultiAnswer
from .numeric import Numeric
from .spans import DropSpans
from .unit_tests import UnitTests
from .verbatim import Contains, Verbatim
from .workflow_match import WorkflowMatch

__all__ = [
    "BrowseCompPlusJudge",
    "CallMatch",
    "CallStates",
    "ChoiceGrader",
    "Contains",
    "DropSpans",
    "EnvironmentGrader",
    "ExactMatch",
    "FinalState",
    "FramesJudge",
    "HleJudge",
    "InputOutput",
    "JudgedState",
    "LlmJudge",
    "Mathematics",
    "MultiAnswer",
    "Numeric",
    "OfficialCallMatch",
    "SimpleQaJudge",
    "TokenF1",
    "UnitTests",
    "Verbatim",
    "WorkflowMatch",
    "agreement",
    "all_graders",
    "normalise",
]


def all_graders() -> list[Grader]:
    """Every grader of this package, with its default settings; no two have a kind in common."""
    return [
        ExactMatch(),
        TokenF1(),
        Verbatim(),
        Contains(),
        Numeric(),
        Mathematics(),
        ChoiceGrader(),
        MultiAnswer(),
        DropSpans(),
        UnitTests(),
        InputOutput(),
        CallMatch(),
        OfficialCallMatch(),
        CallStates(),
        FinalState(),
        JudgedState(),
        EnvironmentGrader(),
        WorkflowMatch(),
        LlmJudge(),
        SimpleQaJudge(),
        HleJudge(),
        BrowseCompPlusJudge(),
        FramesJudge(),
    ]
