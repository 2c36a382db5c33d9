"""Conversations of real runs of every strategy: what was read, what was written, and what of it is taught."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import concertino as ct
import pytest
from concertino.strategies import TaskContext
from concertino.strategies.agent_graph import AgentGraph
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino.strategies.parallel_rounds.strategy import ParallelRoundsMachine
from concertino.strategies.role_workflow import Role, RoleWorkflow, coder_tester
from concertino.strategies.serial_calls import SerialCalls
from concertino.testing import ScriptedModel, make_pool
from concertino_train.data import RoleConversation, conversations_of
from concertino_train.data.replaying import replayed, tell

FINAL = [("final_answer", {})]


@ct.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    if a == 13:
        raise ValueError("thirteen is not added")
    return a + b


@ct.tool
def say(text: str) -> str:
    """Say it again."""
    return text


def add_call(a: Any = 1, b: Any = 2) -> tuple[str, dict[str, Any]]:
    return "add", {"a": a, "b": b}


def run_of(*turns: Any, **options: Any) -> ct.Run:
    with ScriptedModel(*turns) as model:
        return ct.Orchestrator(model, **options).run_sync("What is 1 + 2?", pool=make_pool(add))


def taught(found: RoleConversation) -> list[bool]:
    return [place in found.train for place in found.own]


def read_of(trace: ct.Trace) -> list[list[dict[str, Any]]]:
    """What the trace says was asked, message by message."""
    return [record["messages"] for record in trace.of_kind("ask")]


def test_a_baseline_that_asks_its_model_once_gives_one_text_to_learn() -> None:
    (found,) = conversations_of(run_of("It is 3.", strategy="single-model").trace)
    assert (found.texts, found.faults) == (["It is 3."], {})


def test_a_machine_that_does_not_say_what_it_read_is_refused() -> None:
    class Silent(ParallelRounds):
        def begin(self, brief: TaskContext) -> Any:
            return SilentMachine(self, brief)

    class SilentMachine(ParallelRoundsMachine):
        reading = None

    with pytest.raises(ct.UsageError, match=r"SilentMachine does not say what it read.*override Machine\.reading"):
        tell(Silent().begin(TaskContext("?")), ct.Reply("Hm."))


@pytest.mark.parametrize("system", ["rounds", "single", "brief", "native", "serial", "stateless", "graph", "plan"])
def test_every_text_of_every_strategy_stands_behind_what_its_writer_read(
    system: str, traces: dict[str, list[ct.Trace]], sim_pool: ct.Pool
) -> None:
    for trace in traces[system]:
        found = conversations_of(trace, tools=sim_pool.to_openai())
        replies = [record["reply"]["text"] for record in trace.of_kind("reply")]
        assert [each.messages[place].text for each in found for place in each.own] == replies
        fresh = [[message for message in asked if message["role"] != "assistant"] for asked in read_of(trace)]
        others = [
            [each.messages[at].to_json() for at in range(begin, end) if each.messages[at].role != "assistant"]
            for each in found
            for begin, end in zip((0, *(place + 1 for place in each.own[:-1])), each.own, strict=True)
        ]
        assert others == fresh


def test_a_chat_is_one_conversation_and_stateless_prompts_are_one_each(traces: dict[str, list[ct.Trace]]) -> None:
    assert {len(conversations_of(trace)) for trace in traces["serial"]} == {1}
    for trace in traces["serial"]:
        (found,) = conversations_of(trace)
        assert found.messages[0].role == "system"
        assert len(found.own) == len(list(trace.of_kind("reply")))


def test_stateless_prompts_are_conversations_of_one_text_with_the_tools_that_were_offered(
    traces: dict[str, list[ct.Trace]], sim_pool: ct.Pool
) -> None:
    for trace in traces["stateless"]:
        found = conversations_of(trace, tools=sim_pool.to_openai())
        assert {len(each.own) for each in found} == {1}
        assert len(found) == len(list(trace.of_kind("reply")))
        assert all(each.tools for each in found)


def test_native_calls_without_a_pool_are_refused_with_the_next_step(traces: dict[str, list[ct.Trace]]) -> None:
    with pytest.raises(ct.UsageError, match="give the pool that it ran with"):
        conversations_of(traces["native"][0])


def test_a_history_told_afresh_begins_a_conversation_in_which_earlier_texts_are_context(
    traces: dict[str, list[ct.Trace]],
) -> None:
    trace = traces["brief"][0]
    found = conversations_of(trace)
    assert len(found) > 2
    texts = [text for each in found for text in each.texts]
    assert len(set(texts)) == len(texts), "every text is taught at most once"
    later = found[-1]
    context = [place for place, message in enumerate(later.messages) if message.role == "assistant"]
    assert len(context) > len(later.own)
    assert not set(later.train) & (set(context) - set(later.own))


def test_a_refused_call_makes_its_text_context_and_the_repair_is_taught() -> None:
    (found,) = conversations_of(run_of([add_call(), add_call("x", 3)], [add_call(2, 3)], FINAL, "3").trace)
    assert taught(found) == [False, True, True, True]
    assert found.faults == {2: ("invalid_arguments",)}


def test_texts_that_were_handed_back_or_malformed_are_context() -> None:
    sloppy = '<tool_call>{"name": "add", "arguments": {"a": 5, "b": 6}}</tool_call>'
    (found,) = conversations_of(run_of("Hm.", sloppy, [add_call()], FINAL, "<answer>3</answer>").trace)
    assert taught(found) == [False, False, True, True, True]
    assert found.faults[2] == ("unread", "no_reasoning", "stray_text", "no_call")
    assert found.faults[4] == ("no_reasoning",)
    assert found.flags == (False,) * 6 + (True, False, True, False, True)


def test_a_call_that_failed_by_no_fault_of_the_text_is_taught() -> None:
    run = run_of([add_call(13, 1)], [add_call()], FINAL, "3")
    assert run.observations[0].status is ct.Status.EXEC_ERR
    (found,) = conversations_of(run.trace)
    assert taught(found) == [True] * 4


def test_more_calls_than_allowed_are_not_taught() -> None:
    run = run_of([add_call(), add_call(2, 2)], [add_call()], FINAL, "3", strategy=ParallelRounds(max_parallel=1))
    (found,) = conversations_of(run.trace)
    assert taught(found) == [False, True, True, True]
    assert found.faults == {2: ("too_many_calls",)}


def test_a_text_that_was_cut_off_is_never_taught() -> None:
    run = run_of([add_call()], FINAL, "3")
    records = [
        {**record, "reply": {**record["reply"], "finish_reason": "length"}}
        if record.get("id") == "ask.1" and record["t"] == "reply"
        else record
        for record in run.trace.records
    ]
    (found,) = conversations_of(ct.Trace(records))
    assert taught(found) == [False, True, True]
    assert found.faults == {2: ("cut_off",)}


def test_what_a_summariser_wrote_is_no_policy_s() -> None:
    pool = make_pool(add, summariser=ScriptedModel("<answer>3</answer>"))
    with ScriptedModel([add_call()], FINAL) as model:
        strategy = ParallelRounds(summariser="summariser")
        run = ct.Orchestrator(model, strategy).run_sync("What is 1 + 2?", pool=pool)
    assert [said.role for said in replayed(run.trace).spoken] == ["orchestrator", "orchestrator", "summariser"]
    (found,) = conversations_of(run.trace)
    assert (found.role, len(found.own)) == ("orchestrator", 2)
    assert len(conversations_of(run.trace, others=())) == 2


def test_repaired_texts_are_taught_unless_only_exact_ones_are_wanted() -> None:
    undescribed = (
        "<thinking>One.</thinking><agent><agent_id>A</agent_id><agent_name>say</agent_name>"
        "<required_arguments><agent_input>3</agent_input></required_arguments></agent>"
    )
    with ScriptedModel(undescribed) as model:
        run = ct.Orchestrator(model, AgentGraph()).run_sync("What is 1 + 2?", pool=make_pool(say))
    (read,), (exact,) = (conversations_of(run.trace, exact=only) for only in (False, True))
    assert taught(read) == [True]
    assert taught(exact) == [False]
    assert exact.faults == {2: ("missing_field",)}


# -- roles -------------------------------------------------------------------------------------------------------------

TEST = "<test>\n<input>\n</input>\n<output>\n{}\n</output>\n</test>"
CODE = "```python\nprint({})\n```"


@ct.tool
def python(code: str) -> str:
    """Run a script; it prints what stands in its last brackets."""
    return code.rpartition("print(")[2].partition(")")[0]


def workflow_run(*turns: Any, strategy: RoleWorkflow | None = None, **roles: Any) -> ct.Run:
    pool = make_pool(python, **roles)
    with ScriptedModel(*turns) as model:
        return ct.Orchestrator(model, strategy or coder_tester()).run_sync("Print 3.", pool=pool)


def test_each_turn_of_a_role_is_a_conversation_and_a_text_handed_back_goes_on_in_it() -> None:
    run = workflow_run("I would rather not.", CODE.format(3), TEST.format(3))
    found = conversations_of(run.trace)
    assert [(each.part, taught(each)) for each in found] == [("coder", [False, True]), ("tester", [True])]
    assert found[0].messages[-2].text.startswith("Your text could not be used")
    assert {each.role for each in found} == {"coder", "tester"}


def test_roles_of_one_policy_are_told_apart_by_their_part() -> None:
    shared = coder_tester()
    shared = replace(shared, roles=tuple(replace(role, policy="orchestrator") for role in shared.roles), turns=2)
    run = workflow_run(CODE.format(3), TEST.format(4), CODE.format(4), TEST.format(3), strategy=shared)
    found = conversations_of(run.trace)
    assert [each.part for each in found] == ["coder", "tester", "coder", "tester"]
    assert {each.role for each in found} == {"orchestrator"}


def test_a_role_without_instructions_begins_anew_in_every_turn() -> None:
    roles = (Role("left", "Say {question}, turn {turn}.", reads="answer"), Role("right", "Also {question}."))
    from concertino.strategies.role_workflow import Agree

    strategy = RoleWorkflow(roles, Agree("left.value", "right.text"), turns=2)
    texts = ["<answer>\\boxed{1}</answer>", "2", "<answer>\\boxed{1}</answer>", "1"]
    run = workflow_run(*texts, strategy=strategy)
    found = conversations_of(run.trace)
    assert [(each.part, len(each.messages)) for each in found] == [("left", 2), ("right", 2), ("left", 2), ("right", 2)]


def test_a_call_of_a_role_is_told_to_its_writer() -> None:
    strategy = RoleWorkflow(
        (Role("caller", "Call for {question}: {tools}", reads="calls", tools=("python",)), Role("judge", "Judge.")),
        **_agree("caller.result", "judge.text"),
        turns=1,
    )
    call = '<tool_call>{"name": "pythn", "arguments": {"code": "1"}}</tool_call>'
    found = conversations_of(workflow_run(call, "ok", strategy=strategy).trace)
    assert [(each.part, taught(each)) for each in found] == [("caller", [False]), ("judge", [True])]
    assert found[0].faults == {1: ("unknown_name",)}


def _agree(left: str, right: str) -> dict[str, Any]:
    from concertino.strategies.role_workflow import Agree

    return {"until": Agree(left, right)}


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_a_run_without_an_end_is_refused() -> None:
    trace = run_of([add_call()], FINAL, "3").trace
    with pytest.raises(ct.TraceError, match="the run has no end yet; resume it"):
        conversations_of(ct.Trace(trace.records[:-1]))


def test_a_strategy_that_nobody_knows_is_refused_by_name() -> None:
    trace = run_of([add_call()], FINAL, "3").trace
    setup = {**trace.setup, "strategy": {"name": "serial-cals"}}
    with pytest.raises(ct.UsageError, match="did you mean 'serial-calls'"):
        conversations_of(ct.Trace([{**trace.records[0], "setup": setup}, *trace.records[1:]]))


def test_an_error_of_the_model_ends_the_conversation_before_it() -> None:
    run = run_of([add_call()], ct.ProviderError.from_http(400, "no"), strategy=SerialCalls())
    assert run.stop == "model"
    (found,) = conversations_of(run.trace)
    assert taught(found) == [True]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"own": (1,)}, "the last one included"),
        ({"own": (2, 3)}, "message 2 is user's"),
        ({"own": (3,), "train": (1,)}, "message 1 is to be taught and is not the policy's own"),
        ({"own": (3, 1)}, "the last one included"),
        ({"train": (3, 3)}, "expected rising places"),
    ],
)
def test_a_conversation_that_cannot_be_is_refused(wrong: dict[str, Any], said: str) -> None:
    roles = ("user", "assistant", "user", "assistant")
    messages = tuple(ct.Message(role, "x") for role in roles)
    whole = RoleConversation("c", messages, (1, 3), (3,))
    with pytest.raises(ct.UsageError, match=said):
        replace(whole, **wrong)
