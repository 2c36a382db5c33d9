"""What is trained on: exactly the taught texts with their ends, whatever the codec, the strategy and the failures."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import concertino as ct
import pytest
from concertino import Message, ToolCall
from concertino.strategies.dependency_plan import DependencyPlan
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino.strategies.serial_calls import SerialCalls
from concertino.testing import ScriptedModel, make_pool
from concertino_local.codec import ByteCodec, Codec
from concertino_train.data import RoleConversation, conversations_of, read_conversations, write_conversations
from concertino_train.data.encoding import IGNORED, encode, encode_all, token_lengths

COUNT = int(os.environ.get("CONCERTINO_TRAJECTORIES", "60"))
"""Trajectories of the test of exactness; 1,000 are a matter of a minute."""
WORDS = ("north", "Müller", "</s>", "null-ish", "<|end|>", "7,5", "日本", '"quoted"', "a\nb")

MALFORMED = ("Hm.", "<reasoning>stuck", "<tool_call>{broken</tool_call>", "<search>", "<think>")


@ct.tool
def look(place: str, depth: int = 1) -> dict[str, Any]:
    """Look somewhere."""
    if depth > 8:
        raise ValueError("too deep")
    return {"place": place, "found": None if depth == 8 else f"<tool_call>{depth}</tool_call>"}


@ct.tool
def note(text: str, tags: list[str] | None = None, answer: str = "") -> str:
    """Write something down."""
    return text


POOL = make_pool(look, note)


def trajectory(seed: int) -> ct.Trace:
    """A run with failures at random: malformed texts, refused calls, calls that fail, and in the end an answer."""
    chance = Random(seed)
    kind = seed % 3
    turns = [_turn(kind, chance) for _ in range(chance.randrange(1, 5))]
    turns += _ending(kind, chance)
    strategy: ct.Strategy = [
        ParallelRounds(max_unreadable_replies=9),
        SerialCalls(max_unreadable_replies=9),
        DependencyPlan(tools={"look": "look", "note": "note"}, max_unreadable_replies=9),
    ][kind]
    with ScriptedModel(*turns) as model:
        orchestrator = ct.Orchestrator(model, strategy)
        return orchestrator.run_sync(f"Where is {chance.choice(WORDS)}?", pool=POOL).trace


def _turn(kind: int, chance: Random) -> str:
    """A text: sound, malformed, or with calls that are refused or fail."""
    word, depth = chance.choice(WORDS), chance.choice((1, 2, 8, 9))
    calls = [
        ("look", {"place": word, "depth": depth}),
        ("note", {"text": word}),
        ("note", {"text": word, "tags": [word]}),
        ("lok", {"place": word}),
        ("look", {"place": 3}),
    ]
    chosen = chance.choice(calls)
    if chance.random() < 0.25:
        return chance.choice(MALFORMED)
    if kind == 2:
        return f"<think>{word.replace('<', '')}</think><{chosen[0]}>{_json([word])}</{chosen[0]}>"
    tag = "reasoning" if kind == 0 else "think"
    several = [chosen, *chance.sample(calls, chance.randrange(2))] if kind == 0 else [chosen]
    blocks = "\n".join(f"<tool_call>{_json({'name': n, 'arguments': a})}</tool_call>" for n, a in several)
    return f"<{tag}>{word.replace('<', '')}</{tag}>\n{blocks}"


def _json(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")


def _ending(kind: int, chance: Random) -> list[str]:
    word = chance.choice(WORDS).replace("<", "")
    if kind == 0:
        final = _json({"name": "final_answer", "arguments": {}})
        return [f"<reasoning>done</reasoning>\n<tool_call>{final}</tool_call>", f"<answer>{word}</answer>"]
    if kind == 1:
        return [f"<tool_call>{_json({'name': 'answer', 'arguments': {'text': word}})}</tool_call>"]
    return [f"<think>done</think><answer>{_json([word])}</answer>"]


@pytest.fixture(scope="module")
def conversations() -> list[RoleConversation]:
    return [each for seed in range(COUNT) for each in conversations_of(trajectory(seed)) if each.train]


@pytest.fixture(scope="module")
def chat_codec(conversations: list[RoleConversation]) -> Codec:
    """Of a tokenizer made for these texts, with ChatML."""
    pytest.importorskip("transformers")
    from concertino_local.codec import ChatCodec
    from concertino_train.tiny import new_tokenizer

    texts = [message.text for each in conversations[:20] for message in each.messages]
    return ChatCodec.load(new_tokenizer(texts, 640, phrases=()), "chatml")


@pytest.fixture(params=["bytes", "chat"])
def codec(request: pytest.FixtureRequest) -> Codec:
    return ByteCodec() if request.param == "bytes" else request.getfixturevalue("chat_codec")


def test_decoded_trained_tokens_are_the_taught_texts_with_their_ends_byte_for_byte(
    conversations: list[RoleConversation], codec: Codec
) -> None:
    end = codec.decode(codec.end_ids[:1])
    context = 0
    for each in conversations:
        row = encode(each, codec)
        assert len(row.ids) == len(row.labels)
        assert [codec.decode(turn) for turn in row.turns()] == [text + end for text in each.texts]
        assert all(label in (IGNORED, id_) for id_, label in zip(row.ids, row.labels, strict=True))
        assert row.trained == sum(len(codec.turn(each.messages[place])) for place in each.train)
        context += len(each.own) - len(each.train)
    assert context > len(conversations) / 5, "the trajectories have texts that are not taught"


def test_no_token_of_a_tool_a_user_or_the_instructions_is_trained(conversations: list[RoleConversation]) -> None:
    codec = ByteCodec()
    for each in conversations:
        row = encode(each, codec)
        for role, number, label in _by_role(row.ids, row.labels):
            assert label == IGNORED or (role == "assistant" and each.train.count(number)), (each.id, role, number)


def _by_role(ids: tuple[int, ...], labels: tuple[int, ...]) -> Iterator[tuple[str, int, int]]:
    """Each token's role and message, told by the marks alone: BEGIN, role, newline, text, END."""
    role, head, number = "", b"", -1
    for token, label in zip(ids, labels, strict=True):
        if token == ByteCodec.BEGIN:
            role, head, number = "head", b"", number + 1
        elif role == "head" and token != 10:
            head += bytes([token])
        elif role == "head":
            role = head.decode()
        yield role, number, label
        if token == ByteCodec.END:
            role = ""


def test_the_end_of_the_turn_is_trained_in_every_taught_turn(
    conversations: list[RoleConversation], codec: Codec
) -> None:
    for each in conversations:
        turns = encode(each, codec).turns()
        assert len(turns) == len(each.train)
        assert all(turn[-1] in codec.end_ids for turn in turns)


def test_a_chat_codec_s_own_encoding_of_a_conversation_is_the_same(
    conversations: list[RoleConversation], chat_codec: Any
) -> None:
    for each in conversations:
        row = encode(each, chat_codec)
        ids, mask = chat_codec.encode_conversation(each.messages, each.flags, each.tools)
        assert ids[: len(row.ids)] == row.ids
        assert tuple(label != IGNORED for label in row.labels) == tuple(map(bool, mask[: len(row.ids)]))
        assert not any(mask[len(row.ids) :])


def test_no_null_is_trained_where_no_call_has_one(
    conversations: list[RoleConversation], codec: Codec, tmp_path: Path
) -> None:
    """Arguments of different calls differ in their keys; nothing fills in what one lacks."""
    pytest.importorskip("datasets")
    from concertino_train.sft.rows import table_of

    assert any('"tags"' in text for each in conversations for text in each.texts)
    clean = [each for each in conversations if "null" not in "".join(each.texts)]
    write_conversations(clean, tmp_path / "set.jsonl")
    rows = list(encode_all(read_conversations(tmp_path / "set.jsonl"), codec))
    assert rows == list(encode_all(clean, codec))
    for taught in table_of(rows)["labels"]:
        assert "null" not in codec.decode([label for label in taught if label != IGNORED])


def test_native_calls_keep_their_own_arguments_on_every_path(chat_codec: Any, tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    from concertino_train.sft.rows import table_of

    arguments = [{"place": "here"}, {"text": "x", "tags": ["y"]}, {"depth": 2, "place": "there"}, {"answer": "z"}]
    calls = [ToolCall("look", one, f"call0000{n}") for n, one in enumerate(arguments)]
    answers = [Message("tool", '{"status": "OK"}', call_id=call.id) for call in calls]
    messages = (Message("user", "q"), Message("assistant", "", tuple(calls)), *answers, Message("assistant", "done"))
    one = RoleConversation("c", messages, (1, 6), (1, 6), tools=tuple(POOL.to_openai()))
    write_conversations([one, replace(one, id="d", train=(6,))], tmp_path / "set.jsonl")
    rows = list(encode_all(read_conversations(tmp_path / "set.jsonl"), chat_codec))
    trained = [chat_codec.decode([i for i in taught if i != IGNORED]) for taught in table_of(rows)["labels"]]
    assert "null" not in "".join(trained)
    assert chat_codec.read(rows[0].turns()[0], one.tools).tool_calls == tuple(
        replace(call, id=f"call-{number}") for number, call in enumerate(calls, 1)
    )
    assert trained[1] == f"done{chat_codec.end_text}"


def test_what_is_read_is_what_a_rollout_would_read(conversations: list[RoleConversation], codec: Codec) -> None:
    """The ids before each taught turn are the prompt, the turns and what stood between, as a rollout joins them."""
    each = max(conversations, key=lambda one: len(one.own))
    line = list(codec.prompt(each.messages[: each.own[0]]))
    for number, place in enumerate(each.own):
        if number:
            line += codec.onward(each.messages[each.own[number - 1] + 1 : place], True)
        line += codec.turn(each.messages[place])
    row = encode(each, codec)
    assert tuple(line[: len(row.ids)]) == row.ids
    assert row.prompt == len(codec.prompt(each.messages[: each.own[0]]))


def test_nothing_follows_the_last_taught_turn() -> None:
    roles = ("user", "assistant", "user", "assistant")
    one = RoleConversation("c", tuple(Message(role, role) for role in roles), (1, 3), (1,))
    row = encode(one, ByteCodec())
    assert row.ids[-1] == ByteCodec.END
    assert row.labels[-1] == ByteCodec.END
    assert row.turns() == [(*b"assistant", ByteCodec.END)]


def test_a_conversation_that_teaches_nothing_is_refused_alone_and_passed_over_in_a_set() -> None:
    one = RoleConversation("c", (Message("user", "q"), Message("assistant", "a")), (1,), ())
    with pytest.raises(ct.UsageError, match="conversation c teaches nothing"):
        encode(one, ByteCodec())
    assert list(encode_all([one], ByteCodec())) == []


def test_a_codec_whose_turns_have_no_end_is_refused() -> None:
    class Endless(ByteCodec):
        def turn(self, message: Message) -> tuple[int, ...]:
            return super().turn(message)[:-1]

    one = RoleConversation("c", (Message("user", "q"), Message("assistant", "a")), (1,), (1,))
    with pytest.raises(ct.UsageError, match="a policy that is taught no end never stops"):
        encode(one, Endless())


def test_lengths_are_told_as_figures() -> None:
    one = RoleConversation("c", (Message("user", "q"), Message("assistant", "ab")), (1,), (1,))
    rows = list(encode_all([one, replace(one, id="d")], ByteCodec()))
    figures = token_lengths(rows)
    assert (figures["trained"], figures["total"], figures["most"]) == (6, 2 * len(rows[0].ids), len(rows[0].ids))
    assert token_lengths([]) == {}
