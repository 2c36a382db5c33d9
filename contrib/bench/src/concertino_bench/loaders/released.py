"""Records of ToolOrchestra's runs, as it published them, read into concertino's words.

    {"id": …, "problem": …, "all_tool_calls": […], "all_tool_responses": {"turn_0_response": […]},
     "all_message_responses": {"turn_0_message": {…}}, "answer": …, "correct": …}

Traps of the format: a turn of `all_tool_calls` is a list of calls, a list of lists of one call, or an error text; a
turn whose request failed is missing there, while responses are numbered by turn. Its tasks are read by
`orchestration.toolorchestra`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from concertino import Message, ToolCall
from concertino.schema import InstanceRefused, compile_schema, explain
from concertino.strategies.serial_calls import Notebook

from concertino_bench.tasks.task import DataError

_TURN = re.compile(r"turn_(\d{1,6})_response")
_CALL = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
    "required": ["name"],
}
_ONE_CALL = {"type": "object", "properties": {"call": _CALL}}
_RECORD = {
    "type": "object",
    "properties": {
        "problem": {"type": "string"},
        "all_tool_calls": {
            "type": "array",
            "items": {"type": ["array", "string"], "items": {"type": ["object", "array", "string"]}},
        },
        "all_tool_responses": {
            "type": "object",
            "propertyNames": {"pattern": r"^turn_[0-9]{1,6}_response$"},
            "additionalProperties": {"type": "array", "minItems": 1, "items": {"type": "object"}},
        },
        "all_message_responses": {"type": "object"},
    },
    "required": ["problem", "all_tool_calls", "all_tool_responses"],
}


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

    def notebooks(self) -> list[Notebook]:
        """What the orchestrator was shown at the start of each turn; the last one is the state at the end."""
        notebooks = [Notebook()]
        for turn in self.turns:
            notebooks.append(_noted(notebooks[-1], turn))
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


def _noted(notebook: Notebook, turn: ReleasedTurn) -> Notebook:
    response = turn.response
    if "search_results_data" in response:
        return notebook.with_documents(response["search_results_data"], woven=False)
    if "exec_result" in response:
        return notebook.with_code(str(response.get("generated_code", "")), str(response["exec_result"]))
    return notebook.with_attempt(str(turn.arguments.get("model", "")), _predicted(response))


def read_record(row: Mapping[str, Any], place: str = "record") -> ReleasedRecord:
    """A recorded run from its row. Records of FRAMES keep no more than calls and verdict, so they cannot be read.

    Raises:
        DataError: names the place, the key, what was given and what was expected.
    """
    row = checked(row, _RECORD, place)
    accepted, refused = _calls(row["all_tool_calls"], place)
    # By number and not by text: turn_10 sorts before turn_2.
    responses = sorted(
        (int(match[1]), entry[0]) for key, entry in row["all_tool_responses"].items() if (match := _TURN.fullmatch(key))
    )
    if len(accepted) < len(responses):
        raise DataError(
            f"{place}: {len(responses)} turns have a response and {len(accepted)} a call in all_tool_calls; each "
            "response needs its call"
        )
    thoughts = row.get("all_message_responses", {})
    turns = tuple(
        _turn(number, response, call, thoughts, place)
        # Calls may outnumber responses: the last tool of a run that was cut off left none.
        for (number, response), call in zip(responses, accepted, strict=False)
    )
    # A run may ask several answering models, and its answer is what the last one said.
    predicted = next((answer for turn in reversed(turns) if (answer := _predicted(turn.response))), None)
    return ReleasedRecord(
        id=str(row.get("id", "")),
        question=row["problem"],
        turns=turns,
        refused=tuple(refused),
        answer=str(row.get("answer", "")),
        predicted=predicted,
        correct=bool(row.get("correct", False)),
    )


def checked(row: Mapping[str, Any], schema: Mapping[str, Any], place: str) -> dict[str, Any]:
    """A row without its empty columns, if it fits a JSON schema.

    Raises:
        DataError: it does not fit; names the place, what was given and what was expected.
    """
    # Parquet gives every row all columns, null where it has no value.
    filled = {name: value for name, value in row.items() if value is not None}
    validator = compile_schema(schema)
    try:
        violations = validator.check(filled)
    except InstanceRefused as error:
        raise DataError(f"{place}: {error}; correct the row") from error
    if violations:
        first = explain(violations, validator).partition("\n")[0]
        raise DataError(f"{place}: {first}; correct the row")
    return filled


def _calls(turns: Sequence[Any], place: str) -> tuple[list[Mapping[str, Any]], list[str]]:
    """The accepted call of each turn that has one, and the error texts of the others."""
    accepted: list[Mapping[str, Any]] = []
    refused: list[str] = []
    for number, turn in enumerate(turns):
        items = [turn] if isinstance(turn, str) else turn
        # Some turns wrap each call in a list of its own.
        calls = [item[0] if isinstance(item, list) and len(item) == 1 else item for item in items]
        refused += [call for call in calls if isinstance(call, str)]
        made = next((call for call in calls if not isinstance(call, str)), None)
        if made is not None:
            where = f"{place}: all_tool_calls[{number}]"
            accepted.append(checked({"call": made}, _ONE_CALL, where)["call"])
    return accepted, refused


def _turn(
    number: int, response: Mapping[str, Any], call: Mapping[str, Any], thoughts: Mapping[str, Any], place: str
) -> ReleasedTurn:
    name, tool = call["name"], response.get("tool", call["name"])
    if tool != name:
        raise DataError(
            f"{place}: turn {number} called {name!r} and its response is of {tool!r}; calls and responses do not pair"
        )
    message = thoughts.get(f"turn_{number}_message")
    thought = message.get("content") if isinstance(message, Mapping) else None
    return ReleasedTurn(number, thought if isinstance(thought, str) else "", name, call.get("arguments", {}), response)
