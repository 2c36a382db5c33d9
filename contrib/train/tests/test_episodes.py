"""Episodes of real runs, and episodes as data."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import concertino as ct
import pytest
from concertino.strategies.role_workflow import RoleWorkflow, coder_tester, reasoner_programmer
from concertino.strategies.serial_calls import SerialCalls
from concertino.testing import ScriptedModel, fake_tool, make_pool
from concertino_bench import Grade, Verdict
from concertino_bench.environments import TurnReward
from concertino_bench.metrics import Preference
from concertino_train.episodes import Called, Episode, EpisodeRound, RoleTurn, Totals
from hypothesis import given, settings
from hypothesis import strategies as st

RIGHT = Grade(Verdict.RIGHT, "it is right", ("3",), ("3",))
FINAL = [("final_answer", {})]


@ct.tool(cost=ct.Cost(units=2, usd=0.01))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@ct.agent(cost=ct.Cost(units=1))
async def ask(ctx: ct.Context, question: str) -> str:
    """Ask a model."""
    return (await ctx.model("worker").chat(question)).text


def run_of(*turns: Any, pool: ct.Pool | None = None, **options: Any) -> ct.Run:
    pool = pool or make_pool(add, ask, worker=ScriptedModel("yes", strict=False))
    with ScriptedModel(*turns) as model:
        return ct.Orchestrator(model, **options).run_sync("What is 1 + 2?", pool=pool)


def episode_of(*turns: Any, **options: Any) -> Episode:
    return Episode.of_run(run_of(*turns, **options), RIGHT, group="q")


def add_call(a: int = 1, b: int = 2) -> tuple[str, dict[str, int]]:
    return "add", {"a": a, "b": b}


# -- rounds ------------------------------------------------------------------------------------------------------------


def test_every_text_of_the_policy_is_a_round() -> None:
    sloppy = '<tool_call>{"name": "add", "arguments": {"a": 5, "b": 6}}</tool_call>'
    episode = episode_of("Hm.", [add_call()], sloppy, FINAL, "<answer>3</answer>")
    assert [each.kind for each in episode.rounds] == ["unread", "calls", "calls", "final", "answer"]
    assert [each.exact for each in episode.rounds] == [False, True, False, True, True]
    assert episode.rounds[2].issues == ("no_reasoning",)
    assert len(episode.policy_rounds) == 4
    assert (episode.correct, episode.verdict, episode.answered, episode.answer) == (1.0, "right", True, "3")


def test_an_answer_without_final_answer_ends_the_run_and_lacks_the_form_where_a_summariser_writes_it() -> None:
    from concertino.strategies.parallel_rounds import ParallelRounds

    answer = "<reasoning>Easy.</reasoning><answer>3</answer>"
    assert [(each.kind, each.exact) for each in episode_of(answer).rounds] == [("final", True)]
    episode = episode_of(answer, strategy=ParallelRounds(summariser="summariser"))
    assert [(each.kind, each.exact) for each in episode.rounds] == [("final", False)]


def test_an_answer_that_the_limit_of_rounds_asks_for_is_no_round_of_the_protocol() -> None:
    from concertino.strategies.parallel_rounds import ParallelRounds

    episode = episode_of([add_call()], "<answer>3</answer>", strategy=ParallelRounds(max_rounds=1))
    assert [each.kind for each in episode.rounds] == ["calls", "answer"]
    assert episode.stop == "rounds"


def test_texts_that_could_not_be_read_end_a_run_without_an_answer() -> None:
    run = run_of("One.", "Two.", "Three.")
    episode = Episode.of_run(run, Grade(Verdict.UNPARSABLE, "there is no answer"), group="q")
    assert [each.kind for each in episode.rounds] == ["unread"] * 3
    assert (episode.answered, episode.answer, episode.stop) == (False, None, "format")


def test_a_text_of_the_summariser_is_not_the_policy_s() -> None:
    from concertino.strategies.parallel_rounds import ParallelRounds

    pool = make_pool(add, summariser=ScriptedModel("<answer>3</answer>"))
    episode = episode_of([add_call()], FINAL, pool=pool, strategy=ParallelRounds(summariser="summariser"))
    assert [each.kind for each in episode.rounds] == ["calls", "final"]
    assert episode.totals.policy_tokens == sum(each.tokens for each in episode.rounds)


def test_a_text_that_was_cut_off_is_truncated() -> None:
    cut = ct.Reply("<answer>3</answer>", finish_reason="length", usage=ct.Usage(input_tokens=9, output_tokens=4))
    episode = episode_of([add_call()], FINAL, cut)
    assert [each.truncated for each in episode.rounds] == [False, False, True]
    assert episode.truncated


def test_sampled_ids_are_counted_where_they_are_known() -> None:
    reply = ct.Reply("<answer>3</answer>", token_ids=(5, 6, 7), usage=ct.Usage(input_tokens=9, output_tokens=4))
    assert episode_of(reply).totals.policy_tokens == 3


# -- calls and sums ----------------------------------------------------------------------------------------------------


def test_calls_have_kind_status_costs_and_width() -> None:
    episode = episode_of([add_call(), ("ask", {"question": "?"}), ("nobody", {})], FINAL, "<answer>3</answer>")
    first, second, third = episode.rounds[0].calls
    assert (first.name, first.kind, first.status, first.units, first.usd, first.width) == (
        "add",
        "tool",
        "OK",
        2,
        0.01,
        3,
    )
    assert (second.name, second.kind, second.unpriced) == ("ask", "agent", 1)
    assert (third.kind, third.status, third.units) == ("unknown", "PARSE_ERR", 0)
    assert (episode.totals.units, episode.totals.usd) == (3, 0.01)


def test_uses_count_members_at_any_depth_and_neither_the_policy_nor_unknown_names() -> None:
    episode = episode_of([add_call(), ("ask", {"question": "?"}), ("nobody", {})], FINAL, "<answer>3</answer>")
    assert episode.uses == {"add": 1, "ask": 1, "model-worker": 1}


def test_an_unknown_price_is_counted_and_named_the_policy_s_apart() -> None:
    episode = episode_of([("ask", {"question": "?"})], FINAL, "<answer>3</answer>")
    assert (episode.totals.unpriced, episode.totals.policy_unpriced) == (4, 3)
    assert episode.unpriced == ("model-worker",)


def test_a_call_that_failed_says_so() -> None:
    pool = ct.Pool.of(fake_tool("flaky", raises=ValueError("no")))
    episode = episode_of([("flaky", {})], FINAL, "<answer>3</answer>", pool=pool)
    assert [call.status for call in episode.calls] == ["EXEC_ERR"]


def test_the_sequence_is_what_was_written_and_read_behind_the_first_prompt() -> None:
    run = run_of([add_call()], FINAL, "<answer>3</answer>")
    episode = Episode.of_run(run, RIGHT, group="q")
    replies = [event.reply.usage for event in run.events if type(event).__name__ == "Replied"]
    expected = replies[-1].input_tokens + replies[-1].output_tokens - replies[0].input_tokens
    assert episode.totals.sequence_tokens == expected > episode.totals.policy_tokens > 0


def test_a_dependency_plan_gives_the_width_of_each_level() -> None:
    text = """<think>Two, then one.</think>
<graph>
<node id="s1">echo("a")</node>
<node id="s2">echo("b")</node>
<node id="s3" depends="s1,s2">echo("{s1}{s2}")</node>
</graph>"""

    @ct.tool
    def echo(text: str) -> str:
        """Say it again."""
        return text

    from concertino.strategies.dependency_plan import DependencyPlan

    episode = episode_of(text, "<answer>ab</answer>", pool=ct.Pool.of(echo), strategy=DependencyPlan())
    assert [call.width for call in episode.rounds[0].calls] == [2, 2, 1]
    assert [each.kind for each in episode.rounds] == ["calls", "final"]


def test_serial_calls_are_rounds_of_one_call() -> None:
    call = '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>'
    episode = episode_of(call, "<message>3</message>", pool=ct.Pool.of(add), strategy=SerialCalls())
    assert len(episode.rounds[0].calls) == 1
    assert episode.rounds[0].role == "orchestrator"


def test_roles_of_a_workflow_speak_under_their_names() -> None:
    pool = ct.Pool.of(fake_tool("python", returns="3"))
    workflow: RoleWorkflow = reasoner_programmer()
    script, answer = "```python\nprint(1 + 2)\n```", "It is \\boxed{3}."
    turns = {"reasoner": answer, "programmer": script}
    texts = [turns[role.name] for role in workflow.roles]
    episode = episode_of(*texts, pool=pool, strategy=workflow)
    assert [each.role for each in episode.rounds] == [role.name for role in workflow.roles]
    assert [call.name for call in episode.calls] == ["python"]
    assert all(each.kind != "unread" for each in episode.rounds)


def test_tests_that_a_workflow_runs_by_itself_are_nobody_s_round() -> None:
    code = "```python\nprint(input())\n```"
    tests = "**Test Input:**\n```\n5\n```\n**Test Output:**\n```\n5\n```"
    episode = episode_of(code, tests, pool=ct.Pool.of(fake_tool("python", returns="5")), strategy=coder_tester())
    assert [each.role for each in episode.rounds if each.kind != "world"] == ["coder", "tester"]
    assert episode.calls
    assert len(episode.policy_rounds) == 2


def test_a_plan_without_a_text_of_its_own_is_the_world_s() -> None:
    run = run_of([add_call()], FINAL, "<answer>3</answer>")
    planned = next(event for event in run.events if type(event).__name__ == "Planned")
    run.events.insert(run.events.index(planned) + 1, planned)
    run.rounds.append(run.rounds[0])
    episode = Episode.of_run(run, RIGHT, group="q")
    assert [(each.kind, each.role) for each in episode.rounds][:2] == [("calls", "orchestrator"), ("world", "")]


def test_role_turns_come_from_what_an_environment_says() -> None:
    scores = {"planner": {"format": 1.0, "legal": 0.5, "shortest": 0.0}, "programmer": {"format": 0.0}}
    reward = TurnReward("plan-path", 0.25, scores, frozenset({"programmer"}))
    planner, programmer = RoleTurn.of(2, reward, {"planner": {"environment": -0.1}})
    assert (planner.turn, planner.role, planner.team, planner.verifiable) == (2, "planner", 0.25, True)
    assert planner.facts == {"environment": -0.1}
    assert not programmer.verifiable


# -- as data -----------------------------------------------------------------------------------------------------------


def test_an_episode_of_a_run_survives_json() -> None:
    episode = replace(
        episode_of([add_call(), ("ask", {"question": "?"})], FINAL, "<answer>3</answer>"),
        preference=Preference({"add": 0.5}, 1, 0.25, 0),
        turns=(RoleTurn(1, "coder", 0.5, {"builds": 1.0}),),
    )
    assert Episode.from_json(json.loads(json.dumps(episode.to_json()))) == episode


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_episode_survives_json(groups_of: Callable[..., Any], data: st.DataObject) -> None:
    for episode in data.draw(groups_of(1, 2)):
        assert Episode.from_json(json.loads(json.dumps(episode.to_json()))) == episode


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"id": "a"}, "group"),
        ({"id": "a", "group": "q", "colour": "red"}, "colour"),
        ({"id": "a", "group": "q", "correct": 2}, "from 0 to 1"),
        ({"id": "a", "group": "q", "verdict": "maybe"}, "right, wrong, unparsable"),
        ({"id": "a", "group": "q", "totals": {"usd": float("nan")}}, "finite"),
        ({"id": "a", "group": "q", "totals": {"units": -1}}, "0 or more"),
        ({"id": "a", "group": "q", "rounds": [{"kind": "chat"}]}, "calls, final"),
        ({"id": "a", "group": "q", "rounds": [{"calls": [{"name": "x", "status": "FINE"}]}]}, "PARSE_ERR"),
        ({"id": "a", "group": "q", "turns": [{"turn": 1, "role": "coder", "team": 3}]}, "team=3"),
        ({"id": "a", "group": "q", "preference": {"colour": 1}}, "colour"),
    ],
)
def test_what_is_no_episode_is_refused_with_the_field(data: dict[str, Any], message: str) -> None:
    with pytest.raises(ct.UsageError, match=message):
        Episode.from_json(data)


def test_infinite_facts_and_scores_above_one_are_refused() -> None:
    with pytest.raises(ct.UsageError, match="facts"):
        RoleTurn(1, "coder", facts={"golden": float("inf")})
    with pytest.raises(ct.UsageError, match="scores"):
        RoleTurn(1, "coder", scores={"builds": 1.5})


def test_parts_have_defaults_that_say_nothing() -> None:
    assert Totals() == Totals(0, 0, 0)
    assert EpisodeRound().exact
    assert not EpisodeRound("unread").exact
    assert Called("add").ok
