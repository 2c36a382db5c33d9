"""Templates of our own with the marks of a family: what GPT-OSS and GLM write is read back, turn by turn."""

from __future__ import annotations

import os

import pytest
from concertino import Message, ToolCall, UsageError
from concertino_local.codec import ChatCodec
from model_families import family

os.environ.setdefault("HF_HUB_OFFLINE", "1")
pytest.importorskip("transformers")

TOOL = {"type": "function", "function": {"name": "add", "parameters": {}}}


@pytest.fixture(scope="module")
def gpt_oss() -> ChatCodec:
    codec: ChatCodec = family("gpt-oss").codec()
    return codec


def test_a_thought_has_a_channel_and_comes_back_as_reasoning_whatever_it_speaks_of(gpt_oss: ChatCodec) -> None:
    said = Message("assistant", "Ten <|end|> miles.", reasoning="I look <|return|> it up.")
    ids = gpt_oss.turn(said)
    assert gpt_oss.decode(ids) == (
        "<|channel|>analysis<|message|>I look <|return|> it up.<|end|><|start|>assistant"
        "<|channel|>final<|message|>Ten <|end|> miles.<|return|>"
    )
    assert ids.count(gpt_oss.end_ids[0]) == 1
    reply = gpt_oss.read(ids)
    assert (reply.text, reply.reasoning) == (said.text, said.reasoning)


def test_a_call_within_a_channel_is_read_and_one_of_the_commentary_too(gpt_oss: ChatCodec) -> None:
    call = ToolCall("add", {"a": 1}, "call-1")
    assert gpt_oss.read(gpt_oss.turn(Message("assistant", "", (call,))), [TOOL]).tool_calls == (call,)
    text = '<|channel|>commentary to=functions.add <|constrain|>json<|message|>{"a": 1}<|call|>'
    ids = gpt_oss.vocabulary.encode(text)
    (read,) = gpt_oss.read(ids, [TOOL]).tool_calls
    assert (read.name, read.id) == ("add", "call-1")


def test_the_mark_of_the_user_ends_a_turn_of_glm_and_is_written_once() -> None:
    codec = family("glm-4").codec()
    talk = [Message("user", "Far?"), Message("assistant", "Ten."), Message("user", "Back?"), Message("user", "Now.")]
    assert codec.decode(codec.prompt(talk)) == (
        "[gMASK]<sop><|user|>\nFar?<|assistant|>\nTen.<|user|>\nBack?<|user|>\nNow.<|assistant|>\n"
    )


def test_messages_that_follow_each_other_share_a_turn_where_a_family_alternates() -> None:
    codec = ChatCodec.load(family("gemma-3").tokenizer(), "family")
    talk = [Message("system", "Be brief."), Message("user", "Far?"), Message("assistant", "Ten."), Message("user", "a")]
    more = [Message("tool", "b", call_id="1"), Message("user", "c")]
    assert codec.decode(codec.prompt([*talk, *more])).endswith(
        "user\nBe brief.\n\nFar?<end_of_turn>\n<start_of_turn>model\nTen.<end_of_turn>\n<start_of_turn>user\na\n\n"
        "<tool_response>\nb\n</tool_response>\n\nc<end_of_turn>\n<start_of_turn>model\n"
    )


def test_a_tokenizer_with_the_marks_of_no_family_is_refused_with_what_to_do() -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = {letter: place for place, letter in enumerate(pre_tokenizers.ByteLevel.alphabet())}
    bare = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE(alphabet, [])), eos_token="</s>")
    with pytest.raises(UsageError, match=r"the marks of no family that is known here; give a file of Jinja"):
        ChatCodec.load(bare, "family")
