"""The system prompts of ParallelRounds, AgentGraph and DependencyPlan, kept in `prompts/`, and what they cost;
brief ones, those with references, and a whole brief conversation.

    CONCERTINO_WRITE_PROMPTS=1 python -m pytest tests/sdk/strategies/test_prompts.py

writes the files anew. Their first line is the count of tokens by the SDK's own estimate (a token per 3 bytes).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.strategies import Ask, Done, Strategy, TaskContext
from concertino.strategies.agent_graph import AgentGraph
from concertino.strategies.dependency_plan import DependencyPlan
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino.strategies.parallel_rounds.format import write_round
from concertino.strategies.serial_calls import SerialCalls

from .graph_texts import COT, DEBATE, SEARCH, tool

FOLDER = Path(__file__).parent / "prompts"
FIND = tool("search", {"queries": {"type": "array", "items": {"type": "string"}}}, "queries")
PROMPTS: dict[str, Strategy] = {
    "parallel-rounds": ParallelRounds(),
    "parallel-rounds-native": ParallelRounds(native=True),
    "agent-graph-high": AgentGraph(),
    "agent-graph-low": AgentGraph(dom="low"),
    "agent-graph-alone": AgentGraph(prepend_task=False, max_agents=8),
    "dependency-plan-graph": DependencyPlan(),
    "dependency-plan-calls": DependencyPlan(graph=False, max_rounds=4, max_parallel=3),
    "parallel-rounds-references": ParallelRounds(references=True),
    "serial-calls-references": SerialCalls(references=True),
    "parallel-rounds-brief": ParallelRounds(prompt="brief"),
    "parallel-rounds-brief-references": ParallelRounds(prompt="brief", references=True),
    "parallel-rounds-brief-native": ParallelRounds(prompt="brief", native=True),
    "agent-graph-brief": AgentGraph(prompt="brief"),
    "agent-graph-low-brief": AgentGraph(prompt="brief", dom="low"),
    "dependency-plan-brief": DependencyPlan(prompt="brief"),
    "dependency-plan-calls-brief": DependencyPlan(prompt="brief", graph=False),
    "serial-calls-brief": SerialCalls(prompt="brief"),
    "serial-calls-brief-references": SerialCalls(prompt="brief", references=True),
}
QUESTION = "Compare two ways.\n\nA pump fills a tank of 90 l in 6 min.\n\nTwo pumps fill it in 4 min."


@pytest.mark.parametrize("name", PROMPTS)
def test_a_system_prompt_is_what_its_file_says_and_costs_what_it_says(name: str) -> None:
    tools = [COT, DEBATE, SEARCH] if name.startswith("agent") else [FIND, COT]
    step = PROMPTS[name].begin(TaskContext("Q?", tools)).step()
    assert isinstance(step, Ask)
    prompt = step.messages[0].text
    written = f"tokens: {ct.Model().count_tokens(prompt)}\n\n{prompt}\n"
    check_file(name, written)


def check_file(name: str, written: str) -> None:
    file = FOLDER / f"{name}.txt"
    if os.environ.get("CONCERTINO_WRITE_PROMPTS"):
        file.write_text(written, "utf-8")
    assert written == file.read_text("utf-8")


@pytest.mark.parametrize("name", PROMPTS)
def test_a_system_prompt_without_members_is_short(name: str) -> None:
    counted = int((FOLDER / f"{name}.txt").read_text("utf-8").split()[1])
    assert counted < 1_200


@pytest.mark.parametrize("name", [name for name in PROMPTS if "brief" in name])
def test_beside_its_members_and_quotes_a_brief_prompt_is_a_short_line(name: str) -> None:
    _, _, first, *rest = (FOLDER / f"{name}.txt").read_text("utf-8").rstrip("\n").split("\n")
    assert ct.Model().count_tokens(first) <= 25
    assert [line for line in rest if "(" not in line and not line.startswith("Arguments ")] == []


SCRIPT: list[Any] = [
    ct.Reply(write_round("Each alone.", [("cot", {"subtask": f"Litres a minute: ${{question.{n}}}"}) for n in (2, 3)])),
    [
        ct.Observation("1.1", "cot", ct.Status.OK, 15),
        ct.Observation("1.2", "cot", ct.Status.TIMEOUT, error=ct.ErrorInfo("deadline", "its 5 s are over")),
    ],
    ct.Reply(write_round("Again.", [("cot", {"subtask": "Check ${1.1} for ${question}", "model": "large"})])),
    [ct.Observation("2.1", "cot", ct.Status.OK, "First 15.\nThen 22.5.")],
    ct.Reply(write_round("Both are known.", [("final_answer", {})])),
    ct.Reply("<answer>\\boxed{${1.1}}, \\boxed{22.5}</answer>"),
]


def test_a_whole_brief_conversation_is_what_its_file_says() -> None:
    machine = ParallelRounds(prompt="brief", references=True).begin(
        TaskContext(QUESTION, [FIND, COT], remaining={"units": 9})
    )
    for number, item in enumerate(SCRIPT):
        machine.observe(item, {"units": 9 - number}) if isinstance(item, list) else machine.on_reply(item)
    step = machine.step()
    assert isinstance(step, Done)
    assert step.answer == "\\boxed{15}, \\boxed{22.5}"
    messages = machine.messages  # type: ignore[attr-defined]
    shown = sum(ct.Model().count_tokens(message.text) for message in messages if message.role != "assistant")
    texts = "\n\n".join(f"--- {message.role}\n{message.text}" for message in messages)
    check_file("parallel-rounds-brief-conversation", f"tokens shown to the model: {shown}\n\n{texts}\n")
