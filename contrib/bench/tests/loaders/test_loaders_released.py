"""Rows that ToolOrchestra published: tasks and run records, with their traps, and errors that say where."""

import json
from typing import Any

import concertino as ct
import pytest
from concertino.strategies import SerialCalls
from concertino.strategies.serial_calls.notebook import CodeRun
from concertino.strategies.serial_calls.released_prompts import released_prompt
from concertino_bench.loaders.released import read_record, read_task
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


def test_a_task_is_read_with_prices_per_million() -> None:
    task = read_task(TASK)
    assert (task.id, task.domain, task.category, task.question, task.answer) == ("qa____7", "qa", "qa", "2+2?", "4")
    assert task.prices == {"big": ct.Prices(1.25, 10)}
    assert task.models == {"search-1": "big"}
    assert task.preference["cost"] == 0.5
    assert task.tools == (TOOL,)


def test_a_row_of_an_evaluation_is_a_task_without_tools() -> None:
    task = read_task({"id": 12, "question": "Who?", "answer": "Ada"})
    assert (task.id, task.question, task.tools, task.prices) == ("12", "Who?", (), {})


def test_a_customer_service_row_keeps_its_task() -> None:
    row = changed(TASK, category="func_call", problem="", answer="", example={"id": "t1"}, index="bank____12")
    task = read_task(row)
    assert (task.domain, task.question, task.example) == ("bank", "", {"id": "t1"})


BAD_TASKS: list[tuple[dict[str, Any], str]] = [
    (changed(TASK, problem=...), "the key 'problem' or 'question' is missing"),
    (changed(TASK, problem=..., problm="x"), "did you mean 'problm'"),
    (changed(TASK, problem=3), "problem is a int"),
    (changed(TASK, problem="  "), "the problem is empty"),
    (changed(TASK, answer=...), "the key 'answer' is missing"),
    (changed(TASK, category="chat"), "expected 'qa' or 'func_call'"),
    (changed(TASK, category="func_call"), "under 'example', which is missing"),
    (changed(TASK, tools={}), "tools is a dict"),
    (changed(TASK, tools=[{"function": 3}]), r"tools\[0\].function: a int"),
    (changed(TASK, tools=[{"function": {"name": 1}}]), r"tools\[0\].function: 'name' is 1"),
    (changed(TASK, model_mapping={"a": 1}), "model_mapping.a is a int"),
    (changed(TASK, tool_pricing={"m": {"input_tokens_per_million": "x"}}), "tool_pricing.m.input_tokens_per_million"),
    (changed(TASK, tool_pricing=[1]), "tool_pricing: a list"),
    (changed(TASK, pref_vec={"accuracy": 2, "cost": 0, "latency": 0}), "pref_vec.accuracy=2; expected"),
    (changed(TASK, pref_vec={"accuracy": 1}), "pref_vec lacks cost, latency"),
]


@pytest.mark.parametrize(("row", "words"), BAD_TASKS, ids=[words[:24] for _, words in BAD_TASKS])
def test_a_task_that_cannot_be_read_says_where_and_why(row: dict[str, Any], words: str) -> None:
    with pytest.raises(ct.UsageError, match=f"rows:3: .*{words}|rows:3: {words}"):
        read_task(row, "rows:3")


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
    ({"all_tool_calls": [], "correct": True}, "this row has all_tool_calls, correct"),
    (changed(RECORD, all_tool_calls=[]), "3 turns have a response and 0 a call"),
    (changed(RECORD, all_tool_calls=[3]), r"all_tool_calls\[0\]: a int"),
    (changed(RECORD, all_tool_calls=[[{"arguments": {}}]]), r"all_tool_calls\[0\]: the key 'name' is missing"),
    (changed(RECORD, all_tool_responses={"turn_x": []}), "turn_x: unknown key; expected turn_<number>_response"),
    (changed(RECORD, all_tool_responses={"turn_1_response": []}), "expected a list with one object"),
    (
        changed(RECORD, all_tool_responses={"turn_1_response": [{"tool": "answer"}]}),
        "turn 1 called 'search' and its response is of 'answer'",
    ),
    (changed(RECORD, problem=7), "problem is a int"),
]


@pytest.mark.parametrize(("row", "words"), BAD_RECORDS, ids=[words[:24] for _, words in BAD_RECORDS])
def test_a_record_that_cannot_be_read_says_where_and_why(row: dict[str, Any], words: str) -> None:
    with pytest.raises(ct.UsageError, match=words):
        read_record(row, "r.json:1")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([*TASK, *RECORD]), json_values)
def test_whatever_stands_under_a_key_nothing_but_a_usage_error_comes_of_it(key: str, value: Any) -> None:
    for row, reader in ((TASK, read_task), (RECORD, read_record)):
        try:
            reader({**row, key: value})
        except ct.UsageError as error:
            assert str(error)  # noqa: PT017 - it may be read, or refused


async def test_a_released_task_runs_with_its_own_tools_and_aliases() -> None:
    from concertino.strategies.serial_calls.format import write_turn
    from concertino.testing import ScriptedModel

    task = read_task(changed(TASK, tools=[changed(TOOL, function={**TOOL["function"], "name": "answer"})]))  # type: ignore[dict-item]
    function = task.tools[0]["function"]
    spec = ct.ToolSpec.from_schema(function["name"], function["description"], function["parameters"], lambda _: "4")
    with ScriptedModel(write_turn("", "answer", {"model": "answer-1"})) as leader:
        run = await ct.Orchestrator(leader, SerialCalls(form="qa")).run(task.question, pool=ct.Pool.of(spec))
    assert run.answer == task.answer
    assert leader.requests[0].tools == list(task.tools)
