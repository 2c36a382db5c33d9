"""The pytest classes: good members pass them, and their tests can be neither lost nor quietly weakened."""

from __future__ import annotations

import inspect

import pytest
from concertino.testing import AgentConformance, ModelConformance, ScriptedModel, StrategyConformance, ToolConformance
from concertino.testing.agent_checks import AGENT_CHECKS
from concertino.testing.call_checks import CALL_CHECKS
from concertino.testing.conformance import overridden
from concertino.testing.declaration_checks import DECLARATION_CHECKS
from concertino.testing.model_checks import MODEL_CHECKS
from concertino.testing.strategy_checks import STRATEGY_CHECKS

pytest_plugins = ["pytester"]


class TestModelThatSpeaksAScript(ModelConformance):
    """The scripted model is a model like any other."""

    def make_model(self) -> ScriptedModel:
        return ScriptedModel("one two three four five six seven eight nine ten", strict=False)


@pytest.mark.parametrize(
    ("conformance", "checks"),
    [
        (ToolConformance, (*DECLARATION_CHECKS, *CALL_CHECKS)),
        (AgentConformance, AGENT_CHECKS),
        (ModelConformance, MODEL_CHECKS),
        (StrategyConformance, STRATEGY_CHECKS),
    ],
)
def test_a_class_has_one_test_for_each_check_and_runs_that_check(conformance: type, checks: tuple) -> None:
    tests = {name for name in dir(conformance) if name.startswith("test_")}
    extra = {"test_no_standard_test_is_removed_or_overridden", "test_it_gives_examples_and_rejected_arguments"}
    assert tests - extra == {f"test_{check.__name__}" for check in checks}
    for check in checks:
        test = getattr(conformance, f"test_{check.__name__}")
        assert inspect.getclosurevars(test).nonlocals["check"] is check


def test_a_removed_and_an_overridden_test_are_found_and_an_explained_one_is_not() -> None:
    class Weakened(ToolConformance):
        test_results_are_not_cut = None  # type: ignore[assignment]

        def test_a_deadline_is_honoured(self) -> None: ...

        @pytest.mark.xfail(reason="")
        def test_a_failure_is_explained(self) -> None: ...

        @pytest.mark.xfail(reason="the service answers a second late")
        def test_every_parameter_is_described(self) -> None: ...

        def test_of_its_own(self) -> None: ...

    texts = overridden(Weakened)
    assert [text.split(";")[0] for text in texts] == [
        "test_results_are_not_cut is removed",
        "test_a_failure_is_explained is overridden",
        "test_a_deadline_is_honoured is overridden",
    ]
    assert overridden(ToolConformance) == []


SUITE = """
import asyncio
import pytest
import concertino as ct
from concertino.testing import AgentConformance, ModelConformance, ScriptedModel, ToolConformance, fake_agent


@ct.tool(timeout=5)
async def count_letter(text: str, letter: str) -> int:
    '''Count how often one letter occurs in a text.

    Args:
        text: Where to look.
        letter: What to look for.
    '''
    return text.count(letter)


class TestCountLetter(ToolConformance):
    spec = count_letter
    examples = [({"text": "banana", "letter": "a"}, 3)]
    rejected = [{"text": 3, "letter": "a"}]


class TestWrong(ToolConformance):
    spec = count_letter
    examples = [({"text": "banana", "letter": "a"}, 4)]
    rejected = [{"text": 3, "letter": "a"}]

    test_results_are_not_cut = None

    @pytest.mark.xfail(reason="it counts wrongly", strict=True)
    def test_calls_at_once_are_independent(self):
        super().test_calls_at_once_are_independent()


class TestBare(ToolConformance):
    spec = count_letter


async def ask(arguments, context):
    return (await context.model("worker").chat("?")).text


class TestAgent(AgentConformance):
    spec = fake_agent("asking", returns=ask, models=("worker",), description="Asks a worker and passes its answer on.")
    examples = [({}, "42")]

    def make_models(self):
        return {"worker": ScriptedModel("42", strict=False)}


class TestUnfinished(ModelConformance):
    pass
"""


@pytest.mark.slow
def test_a_provider_s_suite_says_what_passed_what_failed_and_what_was_not_given(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("concertino.testing.declaration_checks.HEAVY_IMPORT", 5.0)  # it imports the testing kit
    pytester.makepyfile(SUITE)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:asyncio", "-rsfx")
    text = str(result.stdout)
    failed = {line.split(" - ")[0].split("::", 1)[1] for line in text.splitlines() if line.startswith("FAILED")}
    unfinished = {name for name in failed if name.startswith("TestUnfinished")}
    assert failed - unfinished == {
        "TestWrong::test_examples_give_the_expected_results",
        "TestWrong::test_no_standard_test_is_removed_or_overridden",
        "TestBare::test_it_gives_examples_and_rejected_arguments",
    }
    assert len(unfinished) >= 9
    assert "must define make_model" in text
    assert "gave 3; expected 4" in text
    assert "test_results_are_not_cut is removed" in text
    assert "no `slow` arguments are given" in text
    assert result.parseoutcomes()["xfailed"] == 1
