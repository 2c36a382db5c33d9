"""Every baseline under any texts and results: no exception, an end within few steps, copies with the same future."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import concertino as ct
import pytest
from concertino.strategies import Act, Ask, Done, Machine, Strategy, TaskContext
from concertino_bench.baselines import (
    Cascade,
    KnnRouter,
    MajorityVote,
    Prompted,
    RouterProfile,
    SelfRefine,
    Serial,
    SingleModel,
    SingleWithTools,
    StaticWorkflow,
    strategies,
)
from concertino_bench.baselines.procedure import Procedure
from hypothesis import given, settings
from hypothesis import strategies as st

FUZZ = settings(max_examples=int(os.environ.get("CONCERTINO_FUZZ", "60")), deadline=None)
QUESTION = "How many is ${a} and {question}?"


def function(name: str, *properties: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {key: {"type": "string"} for key in properties},
        "required": list(properties),
    }
    return {"type": "function", "function": {"name": name, "description": f"The member {name}.", "parameters": schema}}


EXPERTS = [function(f"ask_{name}", "task") for name in ("small", "middle", "large")]
TOOLS = [*EXPERTS, function("search", "query")]
PROFILE = RouterProfile.fit(
    [
        {"question": question, "model": model, "correct": (model == "large") == ("hard" in question), "usd": cost}
        for question in ("an easy sum of apples", "a hard integral of waves", "another easy sum of pears")
        for model, cost in (("small", 0.01), ("large", 1.0))
    ]
)
GRAPH = {
    "agents": [
        {"id": "a", "name": "ask_small", "arguments": {"task": "{question}"}},
        {"id": "b", "name": "ask_large", "arguments": {"task": "{question} A colleague said: ${a}"}},
    ]
}
BASELINES: list[Strategy] = [
    SingleModel(),
    SingleModel(instruction="Be brief."),
    SingleWithTools(),
    SingleWithTools(native=True, max_rounds=2),
    MajorityVote(),
    MajorityVote(samples=3, members=("ask_large", "search"), answers="text"),
    MajorityVote(voters="leader", samples=4, answers="number"),
    SelfRefine(),
    SelfRefine(revisions=1),
    KnnRouter(fitted=PROFILE, k=2),
    KnnRouter(fitted=PROFILE, tries=3, cost_weight=1.0, members=("ask_large", "ask_small")),
    Cascade(),
    Cascade(agreement=3, first=1, width=2, samples=2),
    StaticWorkflow(graph=GRAPH),
    Serial(),
    Prompted(max_rounds=3),
]
TEXTS = [
    "",
    " ",
    "The answer is 4.",
    "\\boxed{5}",
    "<answer>4</answer>",
    "#### 4",
    "NO FAULTS",
    "no",
    "${a}",
    "{question}",
    '<tool_call>{"name": "search", "arguments": {"query": "x"}}</tool_call>',
    "</reasoning><tool_call>{",
    '<reasoning>r</reasoning>\n<tool_call>{"name": "final_answer", "arguments": {}}</tool_call>',
    "\ud800 9" * 50,
]
texts = st.sampled_from(TEXTS) | st.text(max_size=60)
replies = st.builds(lambda text, end: ct.Reply(text, finish_reason=end), texts, st.sampled_from(["stop", "length"]))
contents = texts | st.sampled_from([None, 4, ["a"], {"answer": "4"}])
briefs = st.builds(
    lambda rounds, parallel, seed: TaskContext(
        QUESTION, TOOLS, rounds, parallel, sampling=None if seed is None else ct.Sampling(seed=seed, stop=("END",))
    ),
    st.none() | st.integers(1, 5),
    st.none() | st.integers(1, 4),
    st.none() | st.integers(0, 9),
)


def observed(act: Act, given: list[Any]) -> list[ct.Observation]:
    """One observation per call; None is a failure."""
    found = []
    for place, call in enumerate(act.plan.calls):
        content = given[(act.round + place) % len(given)]
        error = ct.ErrorInfo("raised", "no") if content is None else None
        status = ct.Status.EXEC_ERR if content is None else ct.Status.OK
        found.append(ct.Observation(f"{act.round}.{call.id}", call.name, status, content, error))
    return found


def advance(machine: Machine, step: Any, reply: ct.Reply, given: list[Any]) -> None:
    machine.observe(observed(step, given), {"usd": 1.0}) if isinstance(step, Act) else machine.on_reply(reply)


def same(one: Any, other: Any) -> bool:
    """Whether two steps want the same; plans have no equality of their own."""
    if isinstance(one, Act) and isinstance(other, Act):
        return (one.round, one.plan.to_json(), one.issues) == (other.round, other.plan.to_json(), other.issues)
    return bool(one == other)


@pytest.mark.timeout(3600)
@FUZZ
@given(
    st.sampled_from(BASELINES),
    briefs,
    st.lists(replies, min_size=1, max_size=6),
    st.lists(contents, min_size=1, max_size=6),
    st.none() | st.integers(0, 6),
)
def test_any_run_comes_to_an_end_and_its_copies_to_the_same(
    strategy: Strategy, brief: TaskContext, said: list[ct.Reply], given: list[Any], cut: int | None
) -> None:
    machine = strategy.begin(brief)
    for turn in range(60):
        step = machine.step()
        assert same(step, machine.step())
        if isinstance(step, Done):
            break
        dumped = json.loads(json.dumps(machine.dump()))
        restored, forked = strategy.restore(dumped), machine.fork()
        for twin in (restored, forked):
            assert same(twin.step(), step)
            if turn == cut:
                twin.finish("budget", "it is spent")
            else:
                advance(twin, twin.step(), said[turn % len(said)], given)
        assert json.loads(json.dumps(machine.dump())) == dumped
        if turn == cut:
            machine.finish("budget", "it is spent")
        else:
            advance(machine, step, said[turn % len(said)], given)
        assert restored.dump() == forked.dump() == machine.dump()
    last = machine.step()
    assert isinstance(last, Done)
    assert last.stop in ct.STOP_REASONS
    if cut is None and isinstance(strategy, Procedure) and last.stop == "answered":
        assert last.answer


@pytest.mark.parametrize("strategy", BASELINES, ids=lambda each: each.name)
def test_settings_survive_being_written_down(strategy: Strategy) -> None:
    written = json.loads(json.dumps(strategy.to_json()))
    assert written == strategy.to_json(), "a trace compares them after reading"
    assert written["name"] == strategy.name
    assert type(strategy).from_json(written) == strategy
    assert type(strategy).from_json({**written, "unknown": 1}) == strategy


@pytest.mark.parametrize("kind", strategies(), ids=lambda kind: kind.name)
def test_each_baseline_has_a_name_of_its_own_and_settings_by_default(kind: type[Strategy]) -> None:
    assert kind.name in {each.name for each in BASELINES}
    assert kind.from_json(kind().to_json()) == kind()
    assert kind.__doc__


def test_the_names_of_the_baselines_clash_with_none_of_the_sdk() -> None:
    from concertino.strategies import BUILT_IN

    names = [kind.name for kind in strategies()]
    assert len(set(names)) == len(names)
    assert not set(names) & set(BUILT_IN)


def test_a_question_of_a_plan_is_text_and_never_a_reference() -> None:
    for strategy in (MajorityVote(), StaticWorkflow(graph=GRAPH)):
        step = strategy.begin(TaskContext(QUESTION, TOOLS)).step()
        assert isinstance(step, Act)
        first: Mapping[str, Any] = step.plan.calls[0].arguments  # type: ignore[assignment]
        assert first["task"] == QUESTION


def test_a_run_that_is_cut_short_hands_in_what_it_has() -> None:
    machine = MajorityVote().begin(TaskContext("How many?", TOOLS, parallel=2))
    step = machine.step()
    assert isinstance(step, Act)
    assert len(step.plan) == 2
    machine.observe(observed(step, ["The answer is 7."]))
    machine.finish("budget", "it is spent")
    assert machine.step() == Done("The answer is 7.", "budget", "it is spent")
    machine.finish("deadline")
    assert machine.step() == Done("The answer is 7.", "budget", "it is spent")


def test_a_limit_of_rounds_ends_with_what_is_there() -> None:
    machine = MajorityVote().begin(TaskContext("How many?", TOOLS, rounds=1, parallel=1))
    step = machine.step()
    assert isinstance(step, Act)
    machine.observe(observed(step, ["The answer is 7."]))
    assert machine.step() == Done("The answer is 7.", "rounds", "1 rounds are over")


def test_asking_is_pure() -> None:
    machine = SelfRefine().begin(TaskContext("How many?"))
    assert isinstance(machine.step(), Ask)
    assert machine.step() == machine.step()
