"""Requests: each dialect is sent what it understands, and nothing that it refuses."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from concertino import Audio, ChatRequest, File, Image, Message, Reply, Sampling, ToolCall
from concertino_openai.chat.request import RequestWriter, is_strict
from concertino_openai.dialects import PRESETS
from concertino_openai.options import OpenAISettings

from .streams import TOOL

ASK = [Message("system", "Be brief."), Message("user", "Hi")]
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


def writer(server: str = "openai", **options: Any) -> RequestWriter:
    settings = OpenAISettings.of({"server": server, "model": "m", **options}, "test")
    return RequestWriter(settings.model, settings.dialect, settings.endpoint, settings.extra_body or {})


def body(request: ChatRequest, server: str = "openai", **options: Any) -> dict[str, Any]:
    return json.loads(writer(server, **options).write(request))  # type: ignore[no-any-return]


def test_a_request_is_streamed_and_asks_for_the_usage() -> None:
    assert body(ChatRequest(ASK)) == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
    }
    assert "stream_options" not in body(ChatRequest(ASK), "transformers")
    assert set(body(ChatRequest(ASK), stream=False)) == {"model", "messages"}


def test_sampling_is_sent_under_the_names_of_the_dialect() -> None:
    sampling = Sampling(temperature=0.0, top_p=0.5, max_tokens=7, stop=("a", "b"), seed=1, logprobs=True)
    request = ChatRequest(ASK, sampling=sampling)
    openai = body(request)
    assert (openai["temperature"], openai["top_p"], openai["stop"], openai["seed"]) == (0.0, 0.5, ["a", "b"], 1)
    assert openai["max_completion_tokens"] == 7
    assert "max_tokens" not in openai
    assert (openai["logprobs"], openai["top_logprobs"]) == (True, 0)
    assert "return_token_ids" not in openai
    vllm = body(request, "vllm")
    assert (vllm["max_tokens"], vllm["logprobs"], vllm["return_token_ids"]) == (7, True, True)
    assert not {"logprobs", "top_logprobs", "return_token_ids"} & set(body(request, "transformers"))
    assert "seed" not in body(request, "google")


def test_what_is_not_asked_for_is_not_sent() -> None:
    assert not {"temperature", "seed", "stop", "tools", "logprobs", "response_format"} & set(body(ChatRequest(ASK)))


@pytest.fixture(autouse=True)
def _places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")


@pytest.mark.parametrize("server", sorted(PRESETS))
def test_a_schema_is_sent_in_the_servers_own_way(server: str) -> None:
    sent = body(ChatRequest(ASK, schema=CITY), server)
    style = PRESETS[server].schema_style
    wanted = {"name": "reply", "schema": CITY, "strict": True}
    expected = {
        "json_schema": {"type": "json_schema", "json_schema": wanted},
        "json_object_schema": {"type": "json_object", "schema": CITY},
        "json_object": {"type": "json_object"},
    }
    assert sent.get("response_format") == expected.get(style)
    told = [message["content"] for message in sent["messages"] if json.dumps(CITY) in message["content"]]
    assert len(told) == (style in ("instruction", "json_object"))


@pytest.mark.parametrize(
    ("style", "field", "value"),
    [("structured_outputs", "structured_outputs", {"json": CITY}), ("format", "format", CITY)],
)
def test_a_schema_can_be_sent_in_other_ways(style: str, field: str, value: Any) -> None:
    sent = body(ChatRequest(ASK, schema=CITY), "vllm", schema_style=style)
    assert sent[field] == value
    assert "response_format" not in sent


def test_an_instruction_joins_the_system_message_or_becomes_one() -> None:
    joined = body(ChatRequest(ASK, schema=CITY), "transformers")["messages"]
    assert [message["role"] for message in joined] == ["system", "user"]
    assert joined[0]["content"].startswith("Be brief.\n\n")
    alone = body(ChatRequest(ASK[1:], schema=CITY), "transformers")["messages"]
    assert [message["role"] for message in alone] == ["system", "user"]


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (CITY, True),
        ({**CITY, "additionalProperties": True}, False),
        ({**CITY, "required": []}, False),
        ({"type": "array", "items": {"type": "object", "properties": {"a": {}}}}, False),
        ({"anyOf": [CITY, {"type": "null"}]}, True),
    ],
)
def test_strict_is_only_promised_for_schemas_that_keep_the_rules(schema: dict[str, Any], strict: bool) -> None:
    assert is_strict(schema) is strict
    sent = body(ChatRequest(ASK, schema=schema))["response_format"]["json_schema"]
    assert sent.get("strict", False) is strict


def test_extra_fields_are_in_every_request_and_those_about_tools_only_beside_tools() -> None:
    extra = {"top_k": 5, "tool_choice": "required", "parallel_tool_calls": False}
    without = body(ChatRequest(ASK), extra_body=extra)
    assert without["top_k"] == 5
    assert not {"tool_choice", "parallel_tool_calls"} & set(without)
    beside = body(ChatRequest(ASK, tools=[TOOL]), extra_body=extra)
    assert (beside["tool_choice"], beside["parallel_tool_calls"], beside["tools"]) == ("required", False, [TOOL])


def test_an_empty_system_message_is_left_out() -> None:
    assert body(ChatRequest([Message("system", ""), ASK[1]]))["messages"] == [{"role": "user", "content": "Hi"}]


def test_calls_and_their_results_are_paired() -> None:
    messages = [
        ASK[1],
        Message("assistant", "", (ToolCall("add", '{"a": 1}', "x"), ToolCall("now", {}, "y"))),
        Message("tool", "2", call_id="x"),
        Message("tool", "noon", call_id="y"),
    ]
    sent = body(ChatRequest(messages))["messages"]
    assert sent[1]["content"] is None
    assert [call["id"] for call in sent[1]["tool_calls"]] == ["x", "y"]
    assert [call["function"] for call in sent[1]["tool_calls"]] == [
        {"name": "add", "arguments": '{"a": 1}'},
        {"name": "now", "arguments": "{}"},
    ]
    assert [(message["tool_call_id"], message["content"]) for message in sent[2:]] == [("x", "2"), ("y", "noon")]
    assert body(ChatRequest(messages), "llama-cpp-python")["messages"][1]["content"] == ""


def test_calls_without_ids_are_given_ones_that_pair_with_their_results() -> None:
    def round_of(n: int) -> list[Message]:
        calls = (ToolCall("add", "{}"), ToolCall("now", "{}", "own"), ToolCall("sub", "{}"))
        return [
            Message("assistant", "", calls),
            *(Message("tool", f"{n}.{i}", call_id=call.id) for i, call in enumerate(calls)),
        ]

    sent = body(ChatRequest([ASK[1], *round_of(1), ASK[1], *round_of(2)]))["messages"]
    for start in (1, 6):
        ids = [call["id"] for call in sent[start]["tool_calls"]]
        assert len(set(ids)) == 3
        assert all(ids)
        assert [message["tool_call_id"] for message in sent[start + 1 : start + 4]] == ids
    assert sent[1]["tool_calls"][0]["id"] != sent[6]["tool_calls"][0]["id"]


@pytest.mark.parametrize("raw", ['{"a": 2, "b":', "[6, 7]", "511", "", "not json", '"text"'])
def test_a_broken_call_goes_back_as_an_object_that_quotes_it(raw: str) -> None:
    sent = body(ChatRequest([ASK[1], Message("assistant", "", (ToolCall("?", raw, "x"),))]))["messages"][1]
    function = sent["tool_calls"][0]["function"]
    assert json.loads(function["arguments"]) == {"unreadable": raw}
    assert function["name"] == "unreadable"


def test_thoughts_go_back_only_where_the_option_says_so() -> None:
    message = Message("assistant", "Hello", reasoning="Hm.")
    assert body(ChatRequest([message]))["messages"][0] == {"role": "assistant", "content": "Hello"}
    sent = body(ChatRequest([message]), "deepseek", reasoning_field="reasoning_content")["messages"][0]
    assert sent["reasoning_content"] == "Hm."


def test_opaque_data_goes_back_unchanged_to_the_same_endpoint_and_to_no_other() -> None:
    here = OpenAISettings.of({"server": "google", "model": "m"}, "test").endpoint
    details = [{"type": "reasoning.encrypted", "data": "AbC=", "index": 0}]
    signature = {"google": {"thought_signature": "s=="}}
    message = Message(
        "assistant",
        "Hello",
        (ToolCall("add", "{}", "x", {"endpoint": here, "extra_content": signature}),),
        extra={"endpoint": here, "opaque": {"reasoning_details": details}, "id": "c1"},
    )
    back = Message.from_json(json.loads(json.dumps(message.to_json())))
    sent = body(ChatRequest([back]), "google")["messages"][0]
    assert sent["tool_calls"][0]["extra_content"] == signature
    assert sent["reasoning_details"] == details
    assert "id" not in sent
    for other in ({"server": "google", "model": "other"}, {"server": "openrouter", "model": "m"}):
        settings = OpenAISettings.of(other, "test")
        elsewhere = RequestWriter(settings.model, settings.dialect, settings.endpoint, {})
        sent = elsewhere.body(ChatRequest([back]))["messages"][0]
        assert set(sent) == {"role", "content", "tool_calls"}
        assert set(sent["tool_calls"][0]) == {"id", "type", "function"}


def test_a_reply_can_be_sent_on_as_it_came() -> None:
    reply = Reply("", (ToolCall("add", '{"a": 1}', "x"),), reasoning="Hm.", extra={"id": "c1", "model": "m"})
    sent = body(ChatRequest([ASK[1], Message.of(reply), Message("tool", "2", call_id="x")]))["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool"]


def test_a_request_is_not_changed() -> None:
    request = ChatRequest([*ASK, Message("assistant", "", (ToolCall("add", {"a": 1}),))], tools=[copy.deepcopy(TOOL)])
    before = copy.deepcopy((list(request.messages), list(request.tools)))
    for server in PRESETS:
        writer(server, extra_body={"tool_choice": "auto"}).write(request)
        writer(server).write(ChatRequest(request.messages, schema=CITY))
    assert (list(request.messages), list(request.tools)) == before


@pytest.mark.parametrize("text", ["\x00", "\ud800", "é\u0301", "\u202e", '"\\'])
def test_any_text_can_be_written(text: str) -> None:
    assert body(ChatRequest([Message("user", text)]))["messages"][0]["content"] == text


def test_attachments_are_parts_of_the_message_in_the_servers_form() -> None:
    image, sound = Image(b"\x89PNG\r\n\x1a\nx", name="a.png"), Audio(b"ID3x", name="b.mp3")
    paper = File(b"%PDF-1", name="c.pdf")
    sent = body(ChatRequest([Message("user", "look", attachments=(image, sound, paper))]))["messages"]
    assert sent[0]["content"] == [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": image.data_url}},
        {"type": "input_audio", "input_audio": {"data": sound.base64, "format": "mp3"}},
        {"type": "file", "file": {"filename": "c.pdf", "file_data": paper.data_url}},
    ]


def test_what_results_show_follows_them_in_a_message_of_its_own() -> None:
    image = Image(b"\x89PNG\r\n\x1a\nx", name="a.png")
    conversation = [
        Message("user", "draw two"),
        Message("assistant", "", (ToolCall("draw", "{}", "1"), ToolCall("draw", "{}", "2"))),
        Message("tool", image.mark, call_id="1", attachments=(image,)),
        Message("tool", "none", call_id="2"),
        Message("assistant", "done"),
    ]
    sent = body(ChatRequest(conversation))["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "tool", "user", "assistant"]
    assert sent[4]["content"][1]["type"] == "image_url"
