"""At the door of a model server a request holds no control token, whoever wrote its messages and its tools."""

from __future__ import annotations

import json
from typing import Any

import pytest
from concertino import ChatRequest, Message, ToolCall
from concertino.text.control_tokens import FAMILIES, WRITTEN_BY_STRATEGIES

TOKENS = sorted({token for tokens in FAMILIES.values() for token in tokens} - WRITTEN_BY_STRATEGIES)


def request(text: str) -> ChatRequest:
    properties = {"task": {"type": "string", "description": text, "enum": [text]}, text: {"type": "string"}}
    function = {"name": "add", "description": text, "parameters": {"type": "object", "properties": properties}}
    call = ToolCall("add", {"task": text, text: [text]}, "call1")
    raw = ToolCall("add", json.dumps({"task": text}), "call2")
    messages = [
        Message("system", f"S {text}"),
        Message("user", text),
        Message("assistant", f"a {text}", (call, raw)),
        Message("tool", f"{text} b", call_id="call1"),
        Message("tool", json.dumps([text], ensure_ascii=False), call_id="call2"),
    ]
    return ChatRequest(messages, [{"type": "function", "function": function}])


def body_of(server: str, asked: ChatRequest) -> Any:
    if server == "anthropic":
        pytest.importorskip("concertino_anthropic")
        from concertino_anthropic.options import AnthropicSettings
        from concertino_anthropic.request import RequestWriter as Writer

        return Writer(AnthropicSettings.of({"model": "claude-opus-5-5"}, "test")).write(asked).body
    pytest.importorskip("concertino_openai")
    from concertino_openai.chat.request import RequestWriter
    from concertino_openai.options import OpenAISettings

    settings = OpenAISettings.of({"server": server, "model": "m"}, "test")
    return json.loads(RequestWriter(settings.model, settings.dialect, settings.endpoint, {}).write(asked))


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("server", ["openai", "vllm", "llama.cpp", "anthropic"])
def test_a_request_holds_no_control_token(server: str, token: str) -> None:
    sent = json.dumps(body_of(server, request(token)), ensure_ascii=False)
    assert token not in sent
    assert json.dumps(token, ensure_ascii=False)[1:-1] not in sent


def test_a_request_without_control_tokens_is_sent_as_it_is() -> None:
    asked = request("plain <think>, [1], a | b")
    quoted = asked.quoted(lambda tools: list(tools))
    assert quoted == ChatRequest(list(asked.messages), asked.tools)
    assert all(new is old for new, old in zip(quoted.messages, asked.messages, strict=True))


def test_arguments_of_a_call_hold_none_once_a_server_has_read_them() -> None:
    sent = body_of("openai", request("<|im_end|>"))
    arguments = [json.loads(call["function"]["arguments"]) for call in sent["messages"][2]["tool_calls"]]
    assert arguments == [{"task": "<\\|im_end|>", "<\\|im_end|>": ["<\\|im_end|>"]}, {"task": "<\\|im_end|>"}]


@pytest.mark.slow  # transformers takes seconds to import
@pytest.mark.parametrize("special", [True, False], ids=["special", "added"])
def test_a_local_template_encodes_no_foreign_control_token(special: bool) -> None:
    transformers = pytest.importorskip("transformers")
    local = pytest.importorskip("concertino_local.codec.vocabulary")
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    backend.train_from_iterator(["a b"], trainers.BpeTrainer(initial_alphabet=alphabet, show_progress=False))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=backend)
    tokenizer.add_tokens([AddedToken(token, normalized=False, special=special) for token in TOKENS])
    ids = set(tokenizer.convert_tokens_to_ids(TOKENS))
    vocabulary = local.Vocabulary(tokenizer)
    text = " ".join(TOKENS)
    assert ids & set(vocabulary.encode(text))
    read = vocabulary.encode_rendered(vocabulary.defuse(text))
    assert not ids & set(read)
    assert vocabulary.decode(read) == text
