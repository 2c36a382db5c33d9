"""Rows that ToolOrchestra published, read into concertino's words: tasks of its data set, and records of its runs.

    task     {"index": "qa____7", "category": "qa", "problem": …, "answer": …, "tools": […], "model_mapping": {…},
              "tool_pricing": {…}, "pref_vec": {…}, "example": {…}}          the RL data
             {"id": …, "question": …, "answer": …}                          FRAMES and HLE
    record   {"id": …, "problem": …, "all_tool_calls": […], "all_tool_responses": {"turn_0_response": […]},
              "all_message_responses": {"turn_0_message": {…}}, "answer": …, "correct": …}

Traps of the format: `input_tokens_per_million` holds $ per single token; a turn of `all_tool_calls` is a list of calls,
a list of lists of one call, or an error text; a turn whose request failed is missing there, while responses are
numbered by turn. A row that cannot be read is a `UsageError` that names the place, the key and what was expected.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from concertino import Message, Prices, ToolCall, UsageError
from concertino.schema import near_names
from concertino.strategies import Notebook

_PER_MILLION = 1e6
_TURN = re.compile(r"turn_(\d{1,6})_response")
_FEATURES = ("accuracy", "cost", "latency")
_TASK_KEYS = (
    "index",
    "id",
    "category",
    "problem",
    "question",
    "answer",
    "tools",
    "model_mapping",
    "tool_pricing",
    "pref_vec",
    "example",
)


@dataclass(frozen=True, slots=True)
class ReleasedTask:
    """A task of the data set.

    Attributes:
        id: its index.
        category: `qa` or `func_call`.
        domain: what stands before `____` in the index.
        question: the problem; empty for `func_call`, whose example holds it.
        answer: the reference answer.
        tools: function objects, as the orchestrator reads them.
        models: model by alias.
        prices: $ per million tokens, by model.
        preference: how much each feature counts, in [0, 1], by tool or one of accuracy, cost and latency.
        example: the task of a customer-service domain, as tau2-bench writes it.
    """

    id: str
    category: str
    domain: str
    question: str
    answer: str
    tools: tuple[Mapping[str, Any], ...] = ()
    models: Mapping[str, str] = field(default_factory=dict)
    prices: Mapping[str, Prices] = field(default_factory=dict)
    preference: Mapping[str, float] = field(default_factory=dict)
    example: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReleasedTurn:
    """A turn of a recorded run.

    Attributes:
        number: counted from 0.
        thought: what the orchestrator wrote beside the call.
        tool: the tool that ran.
        arguments: of the call.
        response: what the tool left on record.
    """

    number: int
    thought: str
    tool: str
    arguments: Mapping[str, Any]
    response: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReleasedRecord:
    """A recorded run.

    Attributes:
        refused: error texts of turns in which no call was accepted.
        answer: the reference answer.
        predicted: the answer of the run, `None` if it gave none.
        correct: what the released judge said.
    """

    id: str
    question: str
    turns: tuple[ReleasedTurn, ...]
    refused: tuple[str, ...]
    answer: str
    predicted: str | None
    correct: bool

    def messages(self) -> list[Message]:
        """The run as a conversation: question, then call and result in turns, and the answer at the end."""
        messages = [Message("user", self.question)]
        for turn in self.turns:
            call = ToolCall(turn.tool, dict(turn.arguments), f"turn_{turn.number}")
            messages.append(Message("assistant", "", (call,), reasoning=turn.thought))
            messages.append(Message("tool", _result_text(turn), call_id=call.id))
        if self.predicted is not None:
            messages.append(Message("assistant", self.predicted))
        return messages

    def notebooks(self, *, woven: bool = False) -> list[Notebook]:
        """What the orchestrator was shown at the start of each turn; the last one is the state at the end."""
        notebooks = [Notebook()]
        for turn in self.turns:
            notebooks.append(_noted(notebooks[-1], turn, woven))
        return notebooks


def _result_text(turn: ReleasedTurn) -> str:
    response = turn.response
    if "search_results_data" in response:
        return json.dumps(response["search_results_data"], ensure_ascii=False)
    if "exec_result" in response:
        return json.dumps(
            {"code": response.get("generated_code", ""), "output": response["exec_result"]}, ensure_ascii=False
        )
    return _predicted(response)


def _predicted(response: Mapping[str, Any]) -> str:
    """The answer that was given; the key `answer` of a response holds the reference answer."""
    return str(response.get("pred") or "").strip()


def _noted(notebook: Notebook, turn: ReleasedTurn, woven: bool) -> Notebook:
    response = turn.response
    if "search_results_data" in response:
        return notebook.with_documents(response["search_results_data"], woven=woven)
    if "exec_result" in response:
        return notebook.with_code(str(response.get("generated_code", "")), str(response["exec_result"]))
    return notebook.with_attempt(str(turn.arguments.get("model", "")), _predicted(response))


def read_task(row: Mapping[str, Any], place: str = "row") -> ReleasedTask:
    """A task from its row.

    Raises:
        UsageError: names the place, the key, what was given and what was expected.
    """
    row = _object(row, place)
    name = str(_first(row, place, ("index", "id"), (str, int)))
    category = row.get("category", "qa")
    if category not in ("qa", "func_call"):
        raise UsageError(f"{place}: category={category!r}; expected 'qa' or 'func_call'")
    example = _object(row.get("example") or {}, f"{place}: example")
    if category == "func_call" and not example:
        raise UsageError(f"{place}: a func_call row has its task under 'example', which is missing or empty")
    question = str(_first(row, place, ("problem", "question"), (str,)))
    if category == "qa" and not question.strip():
        raise UsageError(f"{place}: the problem is empty; expected the question as text")
    answer = _first(row, place, ("answer",), (str, int, float))
    return ReleasedTask(
        id=name,
        category=category,
        domain=name.partition("____")[0] if "____" in name else "",
        question=question,
        answer=str(answer),
        tools=tuple(_tool(tool, f"{place}: tools[{i}]") for i, tool in enumerate(_list(row, place, "tools"))),
        models=_texts(row, place, "model_mapping"),
        prices=_prices(row, place),
        preference=_preference(row, place),
        example=example,
    )


def _tool(tool: Any, place: str) -> Mapping[str, Any]:
    function = _object(_object(tool, place).get("function"), f"{place}.function")
    if not isinstance(function.get("name"), str):
        raise UsageError(f"{place}.function: 'name' is {function.get('name')!r}; expected a text")
    _object(function.get("parameters", {}), f"{place}.function.parameters")
    return _object(tool, place)


def _prices(row: Mapping[str, Any], place: str) -> dict[str, Prices]:
    """$ per million tokens by model; what is no model's price (the sandbox, a search) is left to who runs it."""
    prices: dict[str, Prices] = {}
    for model, entry in _object(row.get("tool_pricing") or {}, f"{place}: tool_pricing").items():
        if not isinstance(entry, Mapping) or "input_tokens_per_million" not in entry:
            continue
        where = f"{place}: tool_pricing.{model}"
        read = _number(entry, where, "input_tokens_per_million")
        written = _number(entry, where, "output_tokens_per_million")
        prices[model] = Prices(round(read * _PER_MILLION, 9), round(written * _PER_MILLION, 9))
    return prices


def _preference(row: Mapping[str, Any], place: str) -> dict[str, float]:
    entry = _object(row.get("pref_vec") or {}, f"{place}: pref_vec")
    weights = {name: _number(entry, f"{place}: pref_vec", name) for name in entry}
    for name, weight in weights.items():
        if not 0 <= weight <= 1:
            raise UsageError(f"{place}: pref_vec.{name}={weight:g}; expected a number from 0 to 1")
    if weights and (missing := [name for name in _FEATURES if name not in weights]):
        raise UsageError(f"{place}: pref_vec lacks {', '.join(missing)}; it has {', '.join(weights)}")
    return weights


def read_record(row: Mapping[str, Any], place: str = "record") -> ReleasedRecord:
    """A recorded run from its row.

    Raises:
        UsageError: names the place, the key, what was given and what was expected.
    """
    row = _object(row, place)
    if "all_tool_responses" not in row or "problem" not in row:
        have = ", ".join(list(row)[:8]) or "nothing"
        raise UsageError(
            f"{place}: a run record has problem, all_tool_calls and all_tool_responses; this row has {have} (records "
            "of FRAMES keep no more than calls and verdict, so no run can be read from them)"
        )
    accepted, refused = _calls(_list(row, place, "all_tool_calls"), place)
    responses = _responses(row, place)
    if len(accepted) < len(responses):
        raise UsageError(
            f"{place}: {len(responses)} turns have a response and {len(accepted)} a call in all_tool_calls; each "
            "response needs its call"
        )
    thoughts = _object(row.get("all_message_responses") or {}, f"{place}: all_message_responses")
    turns = tuple(
        _turn(number, response, call, thoughts, place)
        for (number, response), call in zip(responses, accepted, strict=False)
    )
    predicted = next((answer for turn in reversed(turns) if (answer := _predicted(turn.response))), None)
    return ReleasedRecord(
        id=str(row.get("id", "")),
        question=str(_first(row, place, ("problem",), (str,))),
        turns=turns,
        refused=tuple(refused),
        answer=str(row.get("answer", "")),
        predicted=predicted,
        correct=bool(row.get("correct", False)),
    )


def _calls(turns: Sequence[Any], place: str) -> tuple[list[tuple[str, Mapping[str, Any]]], list[str]]:
    """The accepted call of each turn that has one, and the error texts of the others."""
    accepted: list[tuple[str, Mapping[str, Any]]] = []
    refused: list[str] = []
    for number, turn in enumerate(turns):
        where = f"{place}: all_tool_calls[{number}]"
        items = [turn] if isinstance(turn, str) else turn
        if not isinstance(items, list):
            raise UsageError(f"{where}: a {type(turn).__name__}; expected a list of calls, or an error text")
        calls = []
        for item in items:
            call = item[0] if isinstance(item, list) and len(item) == 1 else item
            if isinstance(call, str):
                refused.append(call)
                continue
            call = _object(call, where)
            name = _first(call, where, ("name",), (str,))
            calls.append((str(name), _object(call.get("arguments", {}), f"{where}.arguments")))
        accepted += calls[:1]
    return accepted, refused


def _responses(row: Mapping[str, Any], place: str) -> list[tuple[int, Mapping[str, Any]]]:
    """The response of each turn that has one, by the number of the turn."""
    found: list[tuple[int, Mapping[str, Any]]] = []
    for key, entry in _object(row["all_tool_responses"], f"{place}: all_tool_responses").items():
        match = _TURN.fullmatch(key)
        where = f"{place}: all_tool_responses.{key}"
        if match is None:
            raise UsageError(f"{where}: unknown key; expected turn_<number>_response")
        if not isinstance(entry, list) or not entry:
            raise UsageError(f"{where}: {str(entry)[:60]!r}; expected a list with one object")
        found.append((int(match.group(1)), _object(entry[0], where)))
    return sorted(found, key=lambda pair: pair[0])


def _turn(
    number: int,
    response: Mapping[str, Any],
    call: tuple[str, Mapping[str, Any]],
    thoughts: Mapping[str, Any],
    place: str,
) -> ReleasedTurn:
    name, arguments = call
    told = response.get("tool", name)
    if told != name:
        raise UsageError(
            f"{place}: turn {number} called {name!r} and its response is of {told!r}; calls and responses do not pair"
        )
    message = thoughts.get(f"turn_{number}_message")
    thought = message.get("content") if isinstance(message, Mapping) else None
    return ReleasedTurn(number, thought if isinstance(thought, str) else "", name, arguments, response)


# -- checks ------------------------------------------------------------------------------------------------------------


def _object(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UsageError(f"{place}: a {type(value).__name__} ({str(value)[:60]!r}); expected an object")
    return value


def _first(row: Mapping[str, Any], place: str, keys: Sequence[str], kinds: tuple[type, ...]) -> Any:
    key = next((key for key in keys if key in row), None)
    if key is None:
        near = near_names(keys[0], [other for other in row if other not in _TASK_KEYS], limit=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the row has {', '.join(list(row)[:8]) or 'nothing'}"
        raise UsageError(f"{place}: the key {' or '.join(map(repr, keys))} is missing; {hint}")
    value = row[key]
    if not isinstance(value, kinds) or isinstance(value, bool):
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise UsageError(f"{place}: {key} is a {type(value).__name__} ({str(value)[:60]!r}); expected {expected}")
    return value


def _list(row: Mapping[str, Any], place: str, key: str) -> list[Any]:
    value = row.get(key, [])
    if not isinstance(value, list):
        raise UsageError(f"{place}: {key} is a {type(value).__name__} ({str(value)[:60]!r}); expected a list")
    return value


def _texts(row: Mapping[str, Any], place: str, key: str) -> dict[str, str]:
    entry = _object(row.get(key) or {}, f"{place}: {key}")
    for name, value in entry.items():
        if not isinstance(value, str):
            raise UsageError(f"{place}: {key}.{name} is a {type(value).__name__} ({str(value)[:60]!r}); expected text")
    return dict(entry)


def _number(row: Mapping[str, Any], place: str, key: str) -> float:
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        raise UsageError(f"{place}.{key} is {str(value)[:60]!r}; expected a number >= 0")
    return float(value)
