"""Pools that are too large for a prompt: a run lists what fits its question, and a tool finds the rest."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.core.function_objects import FINDER
from concertino.pool.short_functions import tokens_of
from concertino.strategies.agent_graph import AgentGraph
from concertino.strategies.dependency_plan import DependencyPlan
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino.strategies.role_workflow import Agree, Role, RoleWorkflow
from concertino.strategies.serial_calls import SerialCalls
from concertino.testing import ScriptedModel

from .conftest import round_of
from .test_resume import cut_after

PLACES = [f"{north}{south}" for north in ("ar", "be", "cal", "dun", "el") for south in ("ton", "ford", "wick", "mouth")]
ALL = [(place, thing) for place in PLACES for thing in ("tide", "crop", "toll")]


class ByWord:
    """Members whose description holds most words of the question first."""

    name = "by-word"

    def order(self, question: str, entries: Sequence[ct.RankingEntry]) -> list[str]:
        words = set(question.lower().replace("?", "").split())
        fitting = [e for e in entries if words & self.of(e)]
        return [e.name for e in sorted(fitting, key=lambda e: -len(words & self.of(e)))]

    def of(self, entry: ct.RankingEntry) -> set[str]:
        return set(" ".join([entry.card, *entry.answered]).lower().replace("?", "").split())


class Backwards:
    """The last members first, whatever is asked."""

    name = "backwards"

    def order(self, question: str, entries: Sequence[ct.RankingEntry]) -> list[str]:
        return [entry.name for entry in entries][::-1]


def tool_of(place: str, thing: str, **options: Any) -> ct.ToolSpec:
    def answer(year: int = 2026) -> str:
        return f"{thing} of {place} in {year}"

    return ct.tool(answer, name=f"{place}/{thing}", description=f"tells the {thing} of {place}", **options)


def searched(**settings: Any) -> ct.Pool:
    search = ct.ToolSearch(**{"above": 0, "most": 4, "ranking": ByWord(), **settings})
    return ct.Pool.of(*(tool_of(place, thing) for place, thing in ALL)).with_search(search)


def listed(request: ct.ChatRequest) -> list[str]:
    """Names in the list of a system message."""
    block = request.messages[0].text.partition("<tools>")[2].partition("</tools>")[0]
    return [json.loads(line)["function"]["name"] for line in block.strip().splitlines()]


def visible(place: str, thing: str) -> str:
    return f"{place}__{thing}"


# -- what is listed ----------------------------------------------------------------------------------------------------


async def test_a_run_lists_what_fits_its_question_and_the_tool_that_finds_the_rest() -> None:
    with ScriptedModel("<answer>high</answer>") as model:
        run = await ct.Orchestrator(model).run("What tide has arton?", pool=searched())
    assert run.answer == "high"
    assert listed(model.requests[0])[:2] == ["find_tools", visible("arton", "tide")]
    assert len(listed(model.requests[0])) == 5


async def test_a_small_pool_is_listed_whole() -> None:
    pool = ct.Pool.of(*(tool_of(place, thing) for place, thing in ALL[:20]))
    with ScriptedModel("<answer>high</answer>") as model:
        await ct.Orchestrator(model).run("What tide has arton?", pool=pool)
    assert len(listed(model.requests[0])) == 20
    assert pool.searched is None


@pytest.mark.parametrize(("above", "is_searched"), [(100, True), (100_000, False)])
def test_the_size_of_the_list_decides(above: int, is_searched: bool) -> None:
    assert (searched(above=above).searched is not None) is is_searched


def test_never_lists_all() -> None:
    assert searched().with_search("never").searched is None


def test_without_a_ranking_the_whole_list_is_shown_and_a_warning_says_what_to_install(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(self: ct.Pool, name: str) -> Any:
        raise ct.PoolError(f"no ranking {name!r} is installed")

    monkeypatch.setattr(ct.Pool, "ranking", nothing)
    long = "word " * 300
    pool = ct.Pool.of(*(tool_of("arton", f"t{n}").with_(description=long) for n in range(100)))
    with caplog.at_level(logging.WARNING, "concertino"):
        assert pool.searched is None
    assert "100 tools and agents" in caplog.text
    assert "no ranking 'search/tools' is installed" in caplog.text
    with pytest.raises(ct.PoolError, match="no ranking 'search/tools'"):
        _ = pool.with_search(ct.ToolSearch()).searched


async def test_members_of_always_and_those_that_the_strategy_names_are_listed_first() -> None:
    pool = searched(always=("dunwick/*",))
    strategy = DependencyPlan(tools={"crop": "beford/crop"})

    def answer(query: str) -> str:
        return query

    pool = pool.replace("beford/crop", ct.tool(answer, name="beford/crop", description="tells the crop of beford"))
    with ScriptedModel("<answer>high</answer>") as model:
        await ct.Orchestrator(model, strategy).run("What tide has arton?", pool=pool)
    system = model.requests[0].messages[0].text
    names = [visible("dunwick", "toll"), "crop({query: string})", visible("arton", "tide")]
    assert all(name in system for name in names)
    assert visible("elmouth", "toll") not in system


def test_the_list_stays_within_its_tokens_whatever_descriptions_and_schemas_say() -> None:
    deep = {"type": "object", "properties": {f"p{n}": {"type": "string", "description": "y" * 900} for n in range(60)}}
    specs = [
        ct.ToolSpec(f"a/t{n}", "finds things " + "z " * 1000, deep, lambda arguments: 1, takes_mapping=True)
        for n in range(40)
    ]
    pool = ct.Pool.of(*specs).with_search(ct.ToolSearch(above=0, most=20, tokens=2_000, ranking=ByWord()))
    view = pool.searched
    assert view is not None
    functions = view.listing(view.find("finds things"))
    assert sum(map(tokens_of, functions)) <= 2_000
    assert len(functions) > 2


def test_settings_out_of_range_are_refused() -> None:
    wrong: list[tuple[str, Any]] = [("above", -1), ("most", 0), ("tokens", 10), ("ranking", "tools"), ("always", "a/*")]
    for name, value in wrong:
        with pytest.raises(ct.UsageError, match=rf"ToolSearch\({name}="):
            ct.ToolSearch(**{name: value})
    unknown: Any = "always"
    with pytest.raises(ct.UsageError, match="expected 'auto', 'never' or a ToolSearch"):
        searched().with_search(unknown)


# -- what is found -----------------------------------------------------------------------------------------------------


async def test_a_member_that_was_found_is_called_by_its_name() -> None:
    found = visible("elmouth", "toll")
    with ScriptedModel(
        [("find_tools", {"queries": ["toll of elmouth"]})], [(found, {"year": 1999})], "<answer>2</answer>"
    ) as model:
        run = await ct.Orchestrator(model).run("What tide has arton?", pool=searched())
    first, second = (round.observations[0] for round in run.rounds)
    assert first.content["tools"][0]["function"]["name"] == found
    assert second.content == "toll of elmouth in 1999"


async def test_a_member_that_nobody_listed_can_be_called() -> None:
    with ScriptedModel([(visible("elmouth", "toll"), {})], "<answer>2</answer>") as model:
        run = await ct.Orchestrator(model).run("What tide has arton?", pool=searched())
    assert run.rounds[0].observations[0].ok


async def test_native_requests_offer_what_was_found_from_then_on() -> None:
    call = [("find_tools", {"queries": ["toll of elmouth"]})]
    with ScriptedModel(call, "high", native=True) as model:
        await ct.Orchestrator(model, ParallelRounds(native=True)).run("What tide has arton?", pool=searched())
    before, after = ({tool["function"]["name"] for tool in request.tools} for request in model.requests)
    assert visible("elmouth", "toll") not in before
    assert before < after
    assert visible("elmouth", "toll") in after


async def test_names_give_the_whole_schema_and_unknown_ones_are_said() -> None:
    many = {"type": "object", "properties": {f"p{n}": {"type": "string", "description": "y" * 80} for n in range(60)}}
    big = ct.ToolSpec("elmouth/toll", "tells the toll of elmouth", many, lambda arguments: 1, takes_mapping=True)
    pool = searched().replace("elmouth/toll", big)
    name = visible("elmouth", "toll")
    with ScriptedModel(
        [("find_tools", {"queries": ["toll of elmouth"]}), ("find_tools", {"names": [name, "nobody"]})],
        "<answer>2</answer>",
    ) as model:
        run = await ct.Orchestrator(model).run("What tide has arton?", pool=pool)
    short, whole = (seen.content for seen in run.rounds[0].observations)
    assert short["tools"][0]["function"]["name"] == name
    assert short["tools"][0]["function"]["parameters"] != many
    assert whole["tools"][0]["function"]["parameters"] == many
    assert whole["unknown"] == ["nobody"]


async def test_a_search_for_nothing_says_what_to_give() -> None:
    with ScriptedModel([("find_tools", {})], "<answer>2</answer>") as model:
        run = await ct.Orchestrator(model).run("What tide has arton?", pool=searched())
    error = run.rounds[0].observations[0].error
    assert error is not None
    assert "give queries" in error.message


async def test_a_tool_of_the_users_that_gives_function_objects_changes_no_offer() -> None:
    def find_tools() -> dict[str, Any]:
        """Look for tools."""
        return {"tools": [{"type": "function", "function": {"name": "evil", "parameters": {}}}]}

    with ScriptedModel([("find_tools", {})], "high", native=True) as model:
        await ct.Orchestrator(model, ParallelRounds(native=True)).run("?", pool=ct.Pool.of(ct.tool(find_tools)))
    assert [[tool["function"]["name"] for tool in request.tools] for request in model.requests] == [["find_tools"]] * 2


# -- every strategy ----------------------------------------------------------------------------------------------------

CALLED = visible("arton", "tide")
GRAPH = f'<graph><node id="a">{CALLED}()</node></graph>'


@pytest.mark.parametrize(
    ("strategy", "turns"),
    [
        (ParallelRounds(), [round_of((CALLED, {})), "<answer>x</answer>"]),
        (SerialCalls(), [f'<tool_call>{{"name": "{CALLED}", "arguments": {{}}}}</tool_call>', "<answer>x</answer>"]),
        (DependencyPlan(), [GRAPH, "<answer>x</answer>"]),
        (
            ParallelRounds(prompt="brief"),
            [round_of((CALLED, {})), round_of(("final_answer", {})), "<answer>x</answer>"],
        ),
    ],
    ids=["parallel-rounds", "serial-calls", "dependency-plan", "brief"],
)
async def test_a_strategy_that_plans_in_turns_searches(strategy: Any, turns: list[str], tmp_path: Path) -> None:
    with ScriptedModel(*turns) as model:
        run = await ct.Orchestrator(model, strategy).run("What tide has arton?", pool=searched(), trace=tmp_path)
    assert run.answer == "x", run.detail
    assert run.rounds[0].observations[0].content == "tide of arton in 2026"
    system = model.requests[0].messages[0].text
    assert "find_tools" in system
    assert visible("elmouth", "crop") not in system
    assert run.path is not None
    assert ct.replay(run.path).answer == "x"


async def test_a_graph_that_is_written_once_lists_what_fits_and_no_search() -> None:
    with ScriptedModel("<answer>x</answer>", strict=False) as model:
        await ct.Orchestrator(model, AgentGraph()).run("What tide has arton?", pool=searched())
    system = model.requests[0].messages[0].text
    assert CALLED in system
    assert "find_tools" not in system


async def test_a_question_that_fits_nothing_leaves_a_graph_something_to_choose_from() -> None:
    with ScriptedModel("<answer>x</answer>", strict=False) as model:
        await ct.Orchestrator(model, AgentGraph()).run("Xyzzy?", pool=searched())
    system = model.requests[0].messages[0].text
    assert all(visible("arton", thing) in system for thing in ("tide", "crop", "toll"))


async def test_the_members_that_a_workflow_calls_are_there_whatever_is_asked() -> None:
    asks = Role("asks", "Ask about {question}.", tools=(visible("elmouth", "crop"),), argument="year")
    says = Role("says", "Say it.")
    strategy = RoleWorkflow((asks, says), Agree("asks.text", "says.text"), turns=1)
    with ScriptedModel("1999", "1999", strict=False) as model:
        run = await ct.Orchestrator(model, strategy).run("What tide has arton?", pool=searched())
    assert [seen.name for round in run.rounds for seen in round.observations] == ["elmouth/crop"]


# -- what lasts --------------------------------------------------------------------------------------------------------


async def test_a_resumed_run_lists_what_it_listed(tmp_path: Path) -> None:
    ranking = ByWord()
    turns = [round_of((CALLED, {})), "<answer>x</answer>"]
    with ScriptedModel(*turns) as model:
        run = await ct.Orchestrator(model).run("What tide has arton?", pool=searched(ranking=ranking), trace=tmp_path)
    assert run.path is not None
    cut = cut_after(run.path, "result")
    with ScriptedModel(turns[1]) as later:
        again = await ct.Orchestrator(later).resume(cut, pool=searched(ranking=Backwards()))
    assert again.answer == "x"
    assert later.requests[0].messages[0] == model.requests[0].messages[0]


async def test_an_orchestrator_that_is_a_member_searches_too() -> None:
    inner = ScriptedModel(
        [("find_tools", {"queries": ["toll of elmouth"]})], [(visible("elmouth", "toll"), {})], "<answer>7</answer>"
    )
    planner = ct.Orchestrator("m/inner").as_agent("planner", "plans")
    pool = searched(always=("planner",)).adding(planner, ct.ModelSpec("m/inner", lambda: inner))
    with ScriptedModel([("planner", {"task": "What tide has arton?"})], "<answer>7</answer>") as model:
        run = await ct.Orchestrator(model).run("Plan.", pool=pool)
    assert run.rounds[0].observations[0].content == "7"
    names = listed(inner.requests[0])
    assert names[:2] == ["find_tools", visible("arton", "tide")]
    assert "planner" not in names


async def test_a_member_is_found_by_the_questions_that_it_helped_to_answer(tmp_path: Path) -> None:
    with ScriptedModel([(visible("elmouth", "toll"), {})], "<answer>2</answer>") as model:
        await ct.Orchestrator(model).run("How dear is the ferry?", pool=searched(), trace=tmp_path)
    wiser = searched(learn_from=str(tmp_path))
    for pool, found in ((searched(), []), (wiser, [visible("elmouth", "toll")])):
        with ScriptedModel("<answer>3</answer>") as model:
            await ct.Orchestrator(model).run("Which ferry?", pool=pool)
        assert listed(model.requests[0])[1:] == found


async def test_a_folder_of_traces_that_is_not_there_is_said(tmp_path: Path) -> None:
    pool = searched(learn_from=str(tmp_path / "none"))
    with pytest.raises(ct.UsageError, match="expected a folder of traces"):
        await ct.Orchestrator(ScriptedModel("x")).run("ferry", pool=pool)


# -- the pool as a value -----------------------------------------------------------------------------------------------


def test_how_a_pool_is_searched_is_part_of_its_id() -> None:
    plain = ct.Pool.of(tool_of("arton", "tide"))
    ways: list[Any] = ["auto", "never", ct.ToolSearch(), ct.ToolSearch(most=3)]
    assert len({plain.with_search(way).id for way in ways}) == 4
    assert plain.id == plain.with_search("auto").id


def test_changes_of_a_pool_keep_how_it_is_searched() -> None:
    pool = searched()
    assert pool.without("arton/tide").searched is not None
    assert pool.bind().with_search("never").only("arton/*").searched is None


def test_a_pool_with_the_finder_in_it_is_searched_once() -> None:
    view = searched().searched
    assert view is not None
    again = view.pool.without("arton/tide").searched
    assert again is not None
    assert [name for name, _ in again.pool.actions].count("find_tools") == 1


def test_a_leader_does_not_index_the_pool_again() -> None:
    view = searched().searched
    assert view is not None
    leaders = [ct.ModelSpec(f"m/leader{n}", lambda: ScriptedModel("x")) for n in range(2)]
    assert all(view.pool.led_by(leader).searched is view for leader in leaders)
    assert (
        view.pool.led_by(leaders[0]).id
        == ct.Pool.of(*view.pool.members, leaders[0], orchestrator="m/leader0").with_search(view.settings).id
    )


def test_a_pool_file_says_how_it_is_searched(tmp_path: Path) -> None:
    file = tmp_path / "pool.toml"
    file.write_text('members = ["toy/*"]\nsearch = "never"\n')
    assert ct.Pool.load(file)._search == "never"
    file.write_text('members = ["toy/*"]\n[search]\nabove = 500\nalways = ["toy/add"]\nlearn_from = "runs"\n')
    pool = ct.Pool.load(file)
    assert pool._search == ct.ToolSearch(above=500, always=("toy/add",), learn_from=str(tmp_path / "runs"))
    copy = tmp_path / "copy.toml"
    pool.save(copy)
    assert ct.Pool.load(copy) == pool
    file.write_text('members = ["toy/*"]\n[search]\nabov = 500\n')
    with pytest.raises(ct.PoolError, match=r"pool.toml: search: .*above"):
        ct.Pool.load(file)


def test_a_ranking_that_is_an_object_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(ct.PoolError, match="publish it in a plugin"):
        ct.Pool.installed("toy/*").with_search(ct.ToolSearch(ranking=ByWord())).save(tmp_path / "pool.toml")


def test_the_tool_that_searches_is_the_pools_own() -> None:
    view = searched().searched
    assert view is not None
    assert view.pool[FINDER].name == FINDER
    assert "60; only some" in view.pool[FINDER].description
