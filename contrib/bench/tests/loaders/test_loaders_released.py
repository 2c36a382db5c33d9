"""Rows that ToolOrchestra published: tasks and run records, with their traps, and errors that say where."""

import json
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.strategies.serial_calls import SerialCalls
from concertino.strategies.serial_calls.notebook import CodeRun
from concertino.strategies.serial_calls.released_prompts import released_prompt
from concertino_bench import DataError, Task
from concertino_bench.loaders.orchestration import toolorchestra
from concertino_bench.loaders.released import read_record
from hypothesis import given, settings
from hypothesis import strategies as st

TOOL = {
    "type": "function",
    "function": {"name": "search", "description": "d", "parameters": {"properties": {}, "required": []}},
}
TASK: dict[str, Any] = {
    "index": "qa____7",
    "category": "qa",
    "problem": "2+2?",
    "answer": "4",
    "tools": [TOOL],
    "model_mapping": {"search-1": "big"},
    "tool_pricing": {
        "big": {"input_tokens_per_million": 1.25e-6, "output_tokens_per_million": 1e-5},
        "code_interpreter_per_second": 8.3e-6,
    },
    "pref_vec": {"search": 0, "accuracy": 1, "cost": 0.5, "latency": 0},
}
RECORD: dict[str, Any] = {
    "id": "h1",
    "problem": "Who?",
    "all_tool_calls": [
        "342 invalid tool calls []",
        [[{"name": "search", "arguments": {"model": "search-1"}}]],
        ["360 invalid tool calls [...]", [{"name": "enhance_reasoning", "arguments": {"model": "reasoner-1"}}]],
        [{"name": "answer", "arguments": {"model": "answer-1"}}],
    ],
    "all_tool_responses": {
        "turn_10_response": [{"tool": "answer", "pred": " Ada ", "answer": "reference", "response": "I think Ada"}],
        "turn_2_response": [{"tool": "search", "query": "q", "search_results_data": ["best", "next"]}],
        "turn_3_response": [{"tool": "enhance_reasoning", "generated_code": "print(1)", "exec_result": "1\n"}],
    },
    "all_message_responses": {"turn_2_message": {"content": "I should look.", "tool_calls": []}},
    "answer": "Ada L.",
    "correct": True,
}


def changed(row: dict[str, Any], **changes: Any) -> dict[str, Any]:
    copy = json.loads(json.dumps(row))
    copy.update(changes)
    return {key: value for key, value in copy.items() if value is not ...}


def read_task(row: dict[str, Any], folder: Path) -> Task:
    (folder / "rows.jsonl").write_text(json.dumps(row))
    return next(toolorchestra(path=folder / "rows.jsonl"))


def test_a_customer_service_row_needs_its_task(tmp_path: Path) -> None:
    row = changed(TASK, category="func_call", problem="", answer="", index="bank____12")
    with pytest.raises(DataError, match="no column 'example'"):
        read_task(row, tmp_path)


BAD_TASKS: list[tuple[dict[str, Any], str]] = [
    (changed(TASK, problem=...), "no column 'problem' or 'question'"),
    (changed(TASK, problem=..., problm="x"), "did you mean 'problm'"),
    (changed(TASK, problem=3), "/problem: expected string, got 3"),
    (changed(TASK, problem="  "), "column 'problem' is blank"),
    (changed(TASK, answer=...), "expected required property 'answer'"),
    (changed(TASK, category="chat"), '/category: expected one of "qa", "func_call"'),
    (changed(TASK, category="func_call"), "no column 'example'"),
    (changed(TASK, tools={}), "/tools: expected array"),
    (changed(TASK, tools=[{"function": 3}]), "/tools/0/function: expected object"),
    (changed(TASK, tools=[{"function": {"name": 1}}]), "/tools/0/function/name: expected string, got 1"),
    (changed(TASK, model_mapping={"a": 1}), "/model_mapping/a: expected string, got 1"),
    (changed(TASK, tool_pricing={"m": {"input_tokens_per_million": "x"}}), "/tool_pricing/m"),
    (changed(TASK, tool_pricing=[1]), "/tool_pricing: expected object"),
    (changed(TASK, pref_vec={"accuracy": 2, "cost": 0, "latency": 0}), "/pref_vec/accuracy: expected"),
    (changed(TASK, pref_vec={"accuracy": 1}), "/pref_vec: expected required property 'cost'"),
]


@pytest.mark.parametrize(("row", "words"), BAD_TASKS, ids=[words[:24] for _, words in BAD_TASKS])
def test_a_task_that_cannot_be_read_says_where_and_why(row: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"rows.jsonl:1: .*{words}"):
        read_task(row, tmp_path)


def test_a_record_pairs_each_response_with_its_call() -> None:
    record = read_record(RECORD)
    assert [(turn.number, turn.tool, turn.thought) for turn in record.turns] == [
        (2, "search", "I should look."),
        (3, "enhance_reasoning", ""),
        (10, "answer", ""),
    ]
    assert (record.predicted, record.answer, record.correct) == ("Ada", "Ada L.", True)
    assert len(record.refused) == 2


def test_a_record_becomes_a_conversation() -> None:
    messages = read_record(RECORD).messages()
    assert [message.role for message in messages] == ["user", *["assistant", "tool"] * 3, "assistant"]
    assert messages[1].tool_calls[0].arguments == {"model": "search-1"}
    assert (messages[1].reasoning, messages[2].text) == ("I should look.", '["best", "next"]')
    assert messages[2].call_id == messages[1].tool_calls[0].id
    assert (messages[-2].text, messages[-1].text) == ("Ada", "Ada")
    assert "reference" not in "".join(message.text for message in messages)


def test_a_record_shows_what_the_orchestrator_was_shown() -> None:
    record = read_record(RECORD)
    books = record.notebooks()
    assert [len(book.documents) for book in books] == [0, 2, 2, 2]
    assert books[2].code == (CodeRun("print(1)", "1\n"),)
    prompt = released_prompt("hle", record.question, books[2])
    assert "Doc 2: best ..." in prompt[1].text


BAD_RECORDS: list[tuple[dict[str, Any], str]] = [
    ({"all_tool_calls": [], "correct": True}, "expected required property 'all_tool_responses'"),
    (changed(RECORD, all_tool_calls=[]), "3 turns have a response and 0 a call"),
    (changed(RECORD, all_tool_calls=[3]), "/all_tool_calls/0: expected"),
    (
        changed(RECORD, all_tool_calls=[[{"arguments": {}}]]),
        r"all_tool_calls\[0\]: /call: expected required property 'name'",
    ),
    (changed(RECORD, all_tool_responses={"turn_x": []}), "turn_x"),
    (changed(RECORD, all_tool_responses={"turn_1_response": []}), "/all_tool_responses/turn_1_response: expected"),
    (
        changed(RECORD, all_tool_responses={"turn_1_response": [{"tool": "answer"}]}),
        "turn 1 called 'search' and its response is of 'answer'",
    ),
    (changed(RECORD, problem=7), "/problem: expected string, got 7"),
]


@pytest.mark.parametrize(("row", "words"), BAD_RECORDS, ids=[words[:24] for _, words in BAD_RECORDS])
def test_a_record_that_cannot_be_read_says_where_and_why(row: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_record(row, "r.json:1")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([*TASK, *RECORD]), json_values)
def test_whatever_stands_under_a_key_only_a_data_error_is_raised(
    tmp_path_factory: pytest.TempPathFactory, key: str, value: Any
) -> None:
    folder = tmp_path_factory.getbasetemp()
    for row, reader in ((TASK, lambda changed: read_task(changed, folder)), (RECORD, read_record)):
        try:
            reader({**row, key: value})
        except DataError as error:
            assert str(error)  # noqa: PT017 - it may be read, or refused


async def test_a_released_task_runs_with_its_own_tools_and_aliases(tmp_path: Path) -> None:
    from concertino.strategies.serial_calls.format import write_turn
    from concertino.testing import ScriptedModel

    tool = changed(TOOL, function={**TOOL["function"], "name": "answer"})  # type: ignore[dict-item]
    task = read_task(changed(TASK, tools=[tool]), tmp_path)
    function = task.metadata["tools"][0]["function"]
    spec = ct.ToolSpec.from_schema(function["name"], function["description"], function["parameters"], lambda _: "4")
    with ScriptedModel(write_turn("", "answer", {"model": "answer-1"})) as leader:
        run = await ct.Orchestrator(leader, SerialCalls(form="qa")).run(task.question, pool=ct.Pool.of(spec))
    assert run.answer == task.answer
    assert leader.requests[0].tools == task.metadata["tools"]
