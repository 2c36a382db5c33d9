"""Conformance as pytest classes: a provider subclasses one, says what it knows of its member, and inherits the tests.

    class TestCountLetter(ToolConformance):
        spec = count_letter
        examples = [({"text": "banana", "letter": "a"}, 3)]
        rejected = [{"text": "banana", "letter": "an"}]

Each test is one check of `declaration_checks`, `call_checks`, `agent_checks`, `model_checks` or `strategy_checks`,
where its requirement stands. What is optional is skipped with a reason until the provider gives it.

Invariant: a standard test may not be removed, and may be overridden only as `@pytest.mark.xfail(reason=...)`; one of
the standard tests sees to that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from concertino.core.model import Model
from concertino.core.plan import Call
from concertino.members.specs import AgentSpec, Spec, ToolSpec
from concertino.pool.pool import Pool
from concertino.strategies.base.machine import Strategy

from . import agent_checks, call_checks, declaration_checks, model_checks, strategy_checks
from .calling import make_pool
from .check import Check, CheckFailed, CheckSkipped, MemberSubject, ModelSubject, StrategySubject, Subject, run_check


def _test(check: Check) -> Callable[[_Conformance], None]:
    """A check as a test."""

    def test(self: _Conformance) -> None:
        # Inside: the SDK does not depend on pytest, and `concertino check` runs without it.
        import pytest

        try:
            run_check(check, self.subject())
        except CheckSkipped as skipped:
            pytest.skip(str(skipped))

    test.__doc__ = check.__doc__
    return test


class _Conformance:
    """What the four classes share."""

    def subject(self) -> Subject:
        """What is checked."""
        raise NotImplementedError

    def _given(self, kind: type[Any]) -> dict[str, Any]:
        """The attributes of a kind of subject that the class has too."""
        return {each.name: getattr(self, each.name) for each in fields(kind) if hasattr(self, each.name)}

    def test_no_standard_test_is_removed_or_overridden(self) -> None:
        """A subclass removes no standard test, and overrides one only as xfail with a reason."""
        if wrong := overridden(type(self)):
            raise CheckFailed("\n".join(wrong))


class ToolConformance(_Conformance):
    """Conformance of a tool.

    Attributes:
        spec: the tool.
        examples: pairs of arguments and the expected result: a value to be equal to, or a function of the result.
        rejected: arguments that its input schema refuses; may stay empty for a tool without parameters.
        failing: arguments that the schema takes and the call cannot work with, optional.
        slow: arguments of a call that takes at least a second, optional.
        nondeterministic: why the same arguments may give different results; empty if they may not.
        question: the run's question, for members that read it.
        without: why there are no `failing` or `slow` arguments, by those words.
    """

    spec: ToolSpec
    examples: Sequence[tuple[Mapping[str, Any], Any]] = ()
    rejected: Sequence[Mapping[str, Any]] = ()
    failing: Sequence[Mapping[str, Any]] = ()
    slow: Mapping[str, Any] | None = None
    nondeterministic: str = ""
    question: str = ""
    without: Mapping[str, str] = MappingProxyType({})

    def make_pool(self) -> Pool:
        """What it may call and ask; made once for each call."""
        return Pool()

    def subject(self) -> MemberSubject:
        """The tool with what is known of it."""
        return MemberSubject(**self._given(MemberSubject))

    def test_it_gives_examples_and_rejected_arguments(self) -> None:
        """The provider gives at least one example, and arguments that are refused where there are parameters."""
        if not self.examples:
            raise CheckFailed("give `examples`: at least one pair of arguments and the expected result")
        if self.spec.input_schema.get("properties") and not self.rejected:
            raise CheckFailed("give `rejected`: at least one set of arguments that its input schema refuses")

    test_its_schema_is_admitted_and_small = _test(declaration_checks.its_schema_is_admitted_and_small)
    test_its_description_says_what_it_does = _test(declaration_checks.its_description_says_what_it_does)
    test_every_parameter_is_described = _test(declaration_checks.every_parameter_is_described)
    test_an_unknown_argument_is_refused = _test(declaration_checks.an_unknown_argument_is_refused)
    test_rejected_arguments_are_refused_with_a_reason = _test(
        declaration_checks.rejected_arguments_are_refused_with_a_reason
    )
    test_importing_its_module_is_quick = _test(declaration_checks.importing_its_module_is_quick)
    test_examples_give_the_expected_results = _test(call_checks.examples_give_the_expected_results)
    test_results_are_not_cut = _test(call_checks.results_are_not_cut)
    test_calls_at_once_are_independent = _test(call_checks.calls_at_once_are_independent)
    test_the_same_arguments_give_the_same_result = _test(call_checks.the_same_arguments_give_the_same_result)
    test_a_call_does_not_block_the_event_loop = _test(call_checks.a_call_does_not_block_the_event_loop)
    test_its_cost_is_reported_within_its_bound = _test(call_checks.its_cost_is_reported_within_its_bound)
    test_a_failure_is_explained = _test(call_checks.a_failure_is_explained)
    test_its_timeout_leaves_room = _test(call_checks.its_timeout_leaves_room)
    test_a_deadline_is_honoured = _test(call_checks.a_deadline_is_honoured)
    test_a_cancelled_call_leaves_nothing_behind = _test(call_checks.a_cancelled_call_leaves_nothing_behind)
    test_a_finished_call_leaves_nothing_behind = _test(call_checks.a_finished_call_leaves_nothing_behind)


class AgentConformance(ToolConformance):
    """Conformance of an agent.

    Attributes:
        members: tools and agents that it may call; the rest is as for `ToolConformance`.
    """

    spec: AgentSpec
    members: Sequence[Spec] = ()

    def make_models(self) -> Mapping[str, Model]:
        """Fresh models by role, such as `{"worker": ScriptedModel("42")}`; made once for each call."""
        return {}

    def make_pool(self) -> Pool:
        """Its members, and its models bound to their roles."""
        return make_pool(*self.members, **self.make_models())

    test_it_asks_only_for_roles_that_it_declares = _test(agent_checks.it_asks_only_for_roles_that_it_declares)
    test_a_model_that_fails_is_no_crash = _test(agent_checks.a_model_that_fails_is_no_crash)
    test_an_unexpected_reply_is_no_crash = _test(agent_checks.an_unexpected_reply_is_no_crash)
    test_a_budget_is_never_exceeded = _test(agent_checks.a_budget_is_never_exceeded)


class ModelConformance(_Conformance):
    """Conformance of a model.

    Attributes:
        prompt: a question that it answers in at least ten words.
        long_input: characters of the longest message that is tried.
        at_once: requests that are made at once.
        honours_max_tokens, honours_stop, native_tools, logprobs: optional features that it has.
    """

    prompt = ModelSubject.prompt
    long_input = ModelSubject.long_input
    at_once = ModelSubject.at_once
    honours_max_tokens = False
    honours_stop = False
    native_tools = False
    logprobs = False

    def make_model(self) -> Model:
        """A fresh model; a check closes it."""
        raise NotImplementedError(f"{type(self).__name__} must define make_model(self) -> Model")

    def subject(self) -> ModelSubject:
        """The model with its declared features."""
        return ModelSubject(type(self).__name__, **self._given(ModelSubject))

    test_it_answers_with_a_reply_and_its_usage = _test(model_checks.it_answers_with_a_reply_and_its_usage)
    test_an_empty_system_message_is_no_obstacle = _test(model_checks.an_empty_system_message_is_no_obstacle)
    test_unicode_is_no_obstacle = _test(model_checks.unicode_is_no_obstacle)
    test_a_long_message_is_answered_or_refused = _test(model_checks.a_long_message_is_answered_or_refused)
    test_requests_at_once_are_answered = _test(model_checks.requests_at_once_are_answered)
    test_a_request_does_not_block_the_event_loop = _test(model_checks.a_request_does_not_block_the_event_loop)
    test_a_request_is_not_changed = _test(model_checks.a_request_is_not_changed)
    test_a_cancelled_request_leaves_nothing_behind = _test(model_checks.a_cancelled_request_leaves_nothing_behind)
    test_tokens_are_counted_monotonously = _test(model_checks.tokens_are_counted_monotonously)
    test_close_may_be_called_twice = _test(model_checks.close_may_be_called_twice)
    test_a_stream_ends_with_its_reply = _test(model_checks.a_stream_ends_with_its_reply)
    test_max_tokens_is_honoured = _test(model_checks.max_tokens_is_honoured)
    test_stop_is_honoured = _test(model_checks.stop_is_honoured)
    test_offered_tools_are_called_natively = _test(model_checks.offered_tools_are_called_natively)
    test_log_probabilities_belong_to_the_tokens = _test(model_checks.log_probabilities_belong_to_the_tokens)


class StrategyConformance(_Conformance):
    """Conformance of a strategy, judged by what its machine does; no model is asked and no member runs.

    Attributes:
        strategy: with the settings to check.
        tools: the members that a run offers; by default a `lookup` of a text and an `add` of two numbers.
        questions: of runs.
        calls: for each turn that is written, its calls; by default calls of the tools with made-up arguments.
        texts: replies that the format reads, in addition to those that the strategy writes.
        results: what members return, by visible name: a value, or a function of the arguments.
    """

    strategy: Strategy
    tools: Sequence[ToolSpec | Mapping[str, Any]] = ()
    questions: Sequence[str] = StrategySubject.questions
    calls: Sequence[Sequence[Call]] = ()
    texts: Sequence[str] = ()
    results: Mapping[str, Any] = MappingProxyType({})

    def subject(self) -> StrategySubject:
        """The strategy with what is known of it."""
        return StrategySubject(**self._given(StrategySubject))

    test_its_settings_are_read_back = _test(strategy_checks.its_settings_are_read_back)
    test_it_begins_with_a_question_or_a_plan = _test(strategy_checks.it_begins_with_a_question_or_a_plan)
    test_a_written_turn_is_read_back = _test(strategy_checks.a_written_turn_is_read_back)
    test_a_written_answer_ends_the_run = _test(strategy_checks.a_written_answer_ends_the_run)
    test_any_text_is_read = _test(strategy_checks.any_text_is_read)
    test_every_reply_is_reported = _test(strategy_checks.every_reply_is_reported)
    test_any_observation_is_shown = _test(strategy_checks.any_observation_is_shown)
    test_it_is_written_down_at_every_step = _test(strategy_checks.it_is_written_down_at_every_step)
    test_it_ends_from_outside = _test(strategy_checks.it_ends_from_outside)
    test_it_ends_whatever_the_model_says = _test(strategy_checks.it_ends_whatever_the_model_says)
    test_calls_begun_early_are_those_of_the_turn = _test(strategy_checks.calls_begun_early_are_those_of_the_turn)
    test_fresh_messages_are_counted = _test(strategy_checks.fresh_messages_are_counted)


_STANDARD = (ToolConformance, AgentConformance, ModelConformance, StrategyConformance)


def overridden(subclass: type) -> list[str]:
    """What a subclass does to standard tests without saying why, one text each."""
    wrong = []
    bases = [base for base in subclass.__mro__ if base in (_Conformance, *_STANDARD)]
    for name in dict.fromkeys(name for base in bases for name in vars(base) if name.startswith("test_")):
        # Looked up in the classes themselves: an attribute of the subclass would be the override.
        standard = next(vars(base)[name] for base in bases if name in vars(base))
        given = getattr(subclass, name)
        if given is not standard and not _expected_to_fail(given):
            what = "removed" if given is None else "overridden"
            wrong.append(f"{name} is {what}; override it with @pytest.mark.xfail(reason=...) and call super()")
    return wrong


def _expected_to_fail(test: Any) -> bool:
    marks = getattr(test, "pytestmark", [])
    return any(mark.name == "xfail" and str(mark.kwargs.get("reason", "")).strip() for mark in marks)
