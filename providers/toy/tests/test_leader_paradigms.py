"""Which paradigm the conductor is led by is told by the marks of a format, in whatever words a prompt is written."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from concertino import ChatRequest, Message
from concertino_toy.leader import ScriptedLeader

PART = "The number of each Moss Court's Bog Bed equals 6. How many Bog Bed does Moss Court have?"
QUESTION = f"Problem 1: {PART}\n\nProblem 2: {PART.replace('equals 6', 'equals 9')}"

GRAPH = """Invent helpers. Each is <agent> with <agent_id>, <agent_name> and <agent_description>.
Whom you may name:
ask_someone: Finds things out.
  <agent_input> (text) what to find out
  <model> (text, optional, one of ["ant", "bee"], else "ant") who does it
merge: Merges.
  <opinions> (array) who said what"""
PLAN = """First <plan>T1: this - Dependencies: none</plan>, then
<ask>something</ask>: asks
ask({task: string, model: string (optional)}): Asks someone (ant | bee).
No more than at most 5 calls. You have 3 rounds."""
ASK = {"subtask": {"type": "string"}, "model": {"enum": ["ant", "bee", "cow"]}}
REPLY = "<reasoning>\nThis is about problem {}.\n</reasoning>\n<answer>\n\\boxed{{{}}}\n</answer>"


def function(name: str, properties: dict[str, Any], *required: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": "…", "parameters": schema}}


TOOLS = (
    function("ask_someone", ASK, "subtask"),
    function("merge", {"opinions": {"type": "array"}}, "opinions"),
    function("reply", {"text": {"type": "string"}}, "text"),
)


async def write(*texts: str, system: str = "", tools: tuple[dict[str, Any], ...] = ()) -> str:
    """What the conductor writes after texts of the user and of itself in turn."""
    roles = ["user", "assistant"] * len(texts)
    messages = [Message("system", system), *(Message(role, text) for role, text in zip(roles, texts, strict=False))]
    return (await ScriptedLeader().chat(ChatRequest(messages, tools=list(tools)))).text


def called(text: str) -> list[tuple[str, dict[str, Any]]]:
    found = [json.loads(body) for body in re.findall(r"<tool_call>(.*?)</tool_call>", text, re.S)]
    return [(call["name"], call["arguments"]) for call in found]


async def test_agents_as_elements_are_a_graph() -> None:
    text = await write(QUESTION, system=GRAPH)
    assert re.findall(r"<agent_name>(.*?)</agent_name>", text) == ["ask_someone"] * 4 + ["merge"]
    assert re.findall(r"<model>(.*?)</model>", text) == ["ant", "bee"] * 2
    assert text.count("<from>") == 4
    assert len(set(re.findall(r"<to>(.*?)</to>", text))) == 1


async def test_tasks_with_dependencies_are_a_plan() -> None:
    text = await write(QUESTION, system=PLAN)
    assert re.findall(r"^T\d: |Dependencies: .*", text, re.M) == ["T1: ", "Dependencies: none"] * 1 + [
        "T2: ",
        "Dependencies: none",
    ]
    nodes = re.findall(r"<node id=\"\w+\">ask\((.*)\)</node>", text)
    assert [json.loads(node)["task"][:10] for node in nodes] == ["Problem 1:", "Problem 2:"]


async def test_results_of_a_plan_are_read_in_order_and_answered() -> None:
    first = await write(QUESTION, system=PLAN)
    seen = [json.dumps({"status": "OK", "content": REPLY.format(k, v)}) for k, v in ((1, 6), (2, 9))]
    again = "\n".join(["<observation>", *seen, "</observation>"])
    second = await write(QUESTION, first, again, system=PLAN)
    assert [json.loads(node)["model"] for node in re.findall(r"ask\((.*)\)</node>", second)] == ["bee", "bee"]
    third = await write(QUESTION, first, again, second, again, system=PLAN)
    assert json.loads(re.findall(r"<answer>(.*)</answer>", third)[0]) == ["6", "9"]


async def test_a_refused_call_of_a_plan_is_mended_from_its_error() -> None:
    first = await write(QUESTION, system=PLAN)
    error = {"code": "invalid_arguments", "message": "…", "path": "/model", "near": ["bee"]}
    seen = [{"status": "PARSE_ERR", "error": error}, {"status": "OK", "content": REPLY.format(2, 9)}]
    again = "\n".join(["<observation>", *map(json.dumps, seen), "</observation>"])
    wrong = first.replace('"model": "ant"', '"model": "bea"', 1)
    second = await write(QUESTION, wrong, again, system=PLAN)
    mended, confirming = [json.loads(node) for node in re.findall(r"ask\((.*)\)</node>", second)]
    assert (mended["task"][:10], mended["model"]) == ("Problem 1:", "bee")
    assert (confirming["task"][:10], confirming["model"]) == ("Problem 2:", "bee")


async def test_one_call_per_turn_is_serial_and_ends_with_the_text() -> None:
    listed = "\n".join(map(json.dumps, TOOLS))
    system = f"Make one call each time. End with reply.\n<tools>\n{listed}\n</tools>"
    texts = [QUESTION]
    for value in (6, 9, 6, 9):
        ((name, _),) = called(await write(*texts, system=system))
        assert name == "ask_someone"
        response = json.dumps({"status": "OK", "content": REPLY.format("?", value)})
        texts += [await write(*texts, system=system), f"<tool_response>\n{response}\n</tool_response>"]
    assert called(await write(*texts, system=system)) == [("reply", {"text": "\\boxed{6}\n\\boxed{9}"})]


@pytest.mark.parametrize(
    "closing", ["Choose an approriate tool.", "Choose an appropriate tool.", "Choose an appropriate tool.'"]
)
async def test_a_stateless_prompt_is_read_with_its_documents(closing: str) -> None:
    empty = f"Problem: {QUESTION}\n\n\n\n{closing}"
    ((name, arguments),) = called(await write(empty, tools=TOOLS))
    assert (name, arguments["subtask"][:10]) == ("ask_someone", "Problem 1:")
    half = f"Problem: {QUESTION}\n\nDocuments:\nDoc 1: {REPLY.format(1, 6)}\n\n\n\n{closing}"
    ((name, arguments),) = called(await write(half, tools=TOOLS))
    assert (name, arguments["subtask"][:10]) == ("ask_someone", "Problem 2:")
    both = half.replace("\n\n\n\n", f"\n\nDoc 2: {REPLY.format(2, 9)}\n\n\n\n")
    assert called(await write(both, tools=TOOLS)) == [("merge", {"opinions": [["\\boxed{6}"], ["\\boxed{9}"]]})]


async def test_a_refused_graph_is_written_again_with_one_solver_per_problem() -> None:
    first = await write(QUESTION, system=GRAPH)
    second = await write(QUESTION, first, "PARSE_ERR: five agents, and three allowed", system=GRAPH)
    third = await write(QUESTION, first, "PARSE_ERR: …", second, "PARSE_ERR: …", system=GRAPH)
    assert [text.count("<agent>") for text in (first, second, third)] == [5, 3, 1]


async def test_a_reference_that_a_question_contains_is_no_reference_of_the_graph() -> None:
    text = await write(QUESTION.replace("have?", "have? Mind ${A1}."), system=GRAPH)
    assert "$${A1}" in text
    assert not re.search(r"(?<!\$)\$\{A1\}", text)
