"""Collecting, filtering, writing and reading sets: what is in them, what is not, and the card that says so."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino import Message, ToolCall
from concertino_bench import Key, System
from concertino_bench.runner import Progress, Selection
from concertino_local.codec import ByteCodec
from concertino_train.data import (
    GapSettings,
    RoleConversation,
    SelectionSettings,
    SetSettings,
    make_set,
    read_conversations,
    write_conversations,
)
from concertino_train.data.collecting import Collection, collect
from concertino_train.data.encoding import encode
from concertino_train.data.examples import Example
from concertino_train.data.files import from_row, to_row
from concertino_train.data.gap import gap_filter
from concertino_train.data.trajectories import Trajectory
from hypothesis import given
from hypothesis import strategies as st

ALL = SelectionSettings(per_question=8, tool_share=None)

# -- collecting --------------------------------------------------------------------------------------------------------


def test_a_teacher_works_at_each_temperature_and_every_run_leaves_a_trace(
    sim_pool: ct.Pool, questions: Callable[..., Selection], tmp_path: Path
) -> None:
    seen: list[Progress] = []
    found = asyncio.run(
        collect(
            System("teacher"),
            questions(2),
            sim_pool,
            tmp_path,
            samples=2,
            temperatures=(0.0, 0.7),
            on_progress=seen.append,
        )
    )
    assert {item.key.system for item in found.outcome.items} == {"teacher@0", "teacher@0.7"}
    assert (len(found.outcome.items), found.missing, seen[-1].done) == (8, 0, 8)
    for item in found.outcome.items:
        trace = ct.Trace.load(tmp_path / item.trace)
        assert trace.finished
        assert trace.setup["sampling"]["temperature"] == float(item.key.system.partition("@")[2])
        assert trace.setup["sampling"]["seed"] == item.key.sample


def test_the_same_call_goes_on_and_repeats_nothing(
    sim_pool: ct.Pool, questions: Callable[..., Selection], tmp_path: Path
) -> None:
    def again() -> Collection:
        return asyncio.run(collect(System("teacher"), questions(2), sim_pool, tmp_path, samples=2))

    first = again()
    lines = first.results.read_bytes().splitlines(keepends=True)
    first.results.write_bytes(b"".join(lines[:3]))
    kept = first.results.read_bytes()
    second = again()
    assert second.results.read_bytes().startswith(kept)
    assert len(second.outcome.items) == 4
    assert again().results.read_bytes() == second.results.read_bytes()


def test_one_temperature_twice_is_refused(
    sim_pool: ct.Pool, questions: Callable[..., Selection], tmp_path: Path
) -> None:
    with pytest.raises(ct.UsageError, match="one is there twice; take more samples instead"):
        asyncio.run(collect(System("t"), questions(1), sim_pool, tmp_path, temperatures=(1.0, 1.0)))


# -- GAP's filters -----------------------------------------------------------------------------------------------------


def example(name: str, *widths: int, words: int = 10) -> Example:
    """One with so many searches in each round, and an answer of so many words."""
    levels = tuple({"search": width} for width in widths)
    run = Trajectory(Key("t", name, 0), "r.jsonl", Path(), "right", widths=levels)
    text = " ".join(["word"] * words)
    return Example(run, (RoleConversation(name, (Message("user", "q" * 900), Message("assistant", text)), (1,), (1,)),))


def names(found: list[Example]) -> list[str]:
    return [each.trajectory.key.task for each in found]


def test_fewer_than_three_searches_are_too_simple() -> None:
    found = [example("one", 2), example("two", 1, 1, 1), example("three", 3), example("none")]
    kept, left = gap_filter(found, GapSettings(parallel_share=None))
    assert names(kept) == ["two", "three"]
    assert [(each.key.task, each.reason, each.detail) for each in left] == [
        ("one", "simple", "2 searches"),
        ("none", "simple", "0 searches"),
    ]


def test_only_named_members_are_searches() -> None:
    other = example("a", 3)
    other = replace(other, trajectory=replace(other.trajectory, widths=({"solve": 3, "wiki_search": 2}, {"code": 4})))
    kept, _ = gap_filter([other], GapSettings(least_searches=2, parallel_share=None, searches=["*search"]))
    assert names(kept) == ["a"]
    with pytest.raises(ct.UsageError, match="1 have fewer than 3 searches"):
        gap_filter([other], GapSettings(parallel_share=None, searches=["*search"]))


def test_what_is_longer_than_2000_tokens_behind_the_prompt_is_left_out() -> None:
    codec = ByteCodec()
    fits, long = example("fits", 3, words=399), example("long", 3, words=401)
    assert fits.tokens(codec) == 399 * 5 - 1 + 1, "a token is a byte; the end of the turn is one more"
    kept, left = gap_filter([fits, long], GapSettings(parallel_share=None), codec)
    assert (names(kept), [(each.reason, each.detail) for each in left]) == (["fits"], [("long", "2005 tokens")])
    assert fits.tokens() == (399 * 5 - 1) // 3 + 1, "an estimate, without a codec"


@pytest.mark.parametrize(("parallel", "serial"), [(60, 60), (9, 60), (60, 4), (3, 2), (1, 1), (50, 1)])
def test_parallel_and_serial_stand_six_to_four(parallel: int, serial: int) -> None:
    found = [example(f"p{n}", 1, 2) for n in range(parallel)] + [example(f"s{n}", 1, 1, 1) for n in range(serial)]
    kept, left = gap_filter(found)
    counts = [sum(name.startswith(sign) for name in names(kept)) for sign in "ps"]
    assert abs(counts[0] - 1.5 * counts[1]) <= 1
    assert counts[0] == parallel or counts[1] == serial, "no more are left out than the ratio asks for"
    assert len(kept) + len(left) == len(found)
    assert names(kept) == [name for name in names(found) if name in names(kept)], "in order"
    assert names(gap_filter(found)[0]) == names(kept)


def test_one_kind_alone_is_refused_with_the_next_step() -> None:
    with pytest.raises(ct.UsageError, match=r"all 2 examples are serial.*rewrite serial ones as parallel"):
        gap_filter([example("a", 1, 1, 1), example("b", 1, 1, 1)])
    with pytest.raises(ct.UsageError, match=r"all 1 examples are parallel.*one call per round"):
        gap_filter([example("a", 3)])


@pytest.mark.parametrize("wrong", [{"parallel_share": 1.0}, {"searches": "search"}])
def test_a_filter_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ct.UsageError, match=next(iter(wrong))):
        GapSettings(**wrong)


# -- sets --------------------------------------------------------------------------------------------------------------


def test_a_set_holds_the_conversations_of_the_best_trajectories(
    collected: Collection, sim_pool: ct.Pool, folder: Path
) -> None:
    made = make_set(collected.results, folder, pool=sim_pool, codec=ByteCodec())
    found = list(read_conversations(folder))
    assert len({each.task for each in found}) == len(made.examples) == 3
    assert all(example.trajectory.recovered for example in made.examples)
    assert {each.run for each in found if each.faults} == {each.run for each in found}, "what went wrong is context"
    assert len(made.left_out) == collected.outcome.total - 3
    told = [json.loads(line) for line in (folder / "left_out.jsonl").read_text().splitlines()]
    assert [each["reason"] for each in told] == [each.reason for each in made.left_out]


def test_the_same_files_and_settings_make_the_same_set_byte_by_byte(
    collected: Collection, sim_pool: ct.Pool, tmp_path: Path
) -> None:
    for name in "ab":
        make_set(collected.results, tmp_path / name, SetSettings(ALL), pool=sim_pool, codec=ByteCodec())
    for file in ("conversations.jsonl", "left_out.jsonl", "card.json", "README.md"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    assert "/" + str(tmp_path).strip("/") not in (tmp_path / "a" / "card.json").read_text()


def test_the_card_says_what_is_in_the_set(collected: Collection, sim_pool: ct.Pool, folder: Path) -> None:
    made = make_set(collected.results, folder, SetSettings(ALL), pool=sim_pool, codec=ByteCodec())
    card, found = json.loads((folder / "card.json").read_text("utf-8")), list(read_conversations(folder))
    assert card == made.card
    rows = [encode(each, ByteCodec()) for each in found]
    assert card["counts"]["conversations"] == len(found)
    assert card["counts"]["taught"] == sum(len(each.train) for each in found)
    assert card["tokens"]["total"] == sum(len(row.ids) for row in rows)
    assert card["tokens"]["trained"] == sum(row.trained for row in rows)
    assert card["tokens"]["codec"] == ByteCodec().fingerprint
    assert card["pools"] == {collected.outcome.items[0].pool: len(found)}
    assert sum(card["statuses"].values()) == sum(sum(e.trajectory.statuses.values()) for e in made.examples)
    assert set(card["faults"]) == {"invalid_arguments", "too_many_calls"}
    assert card["sources"][0]["file"] == "results.jsonl"
    assert (
        card["sources"][0]["fingerprint"] == json.loads(collected.results.read_text().partition("\n")[0])["fingerprint"]
    )
    import hashlib

    assert card["sha256"] == hashlib.sha256((folder / "conversations.jsonl").read_bytes()).hexdigest()
    shown = (folder / "README.md").read_text()
    assert f"| taught | {card['counts']['taught']} |" in shown
    assert "| parallel-rounds |" in shown


def test_only_the_asked_systems_and_roles_are_in_a_set(
    collected: Collection, sim_pool: ct.Pool, tmp_path: Path
) -> None:
    made = make_set(collected.results, tmp_path / "a", SetSettings(ALL, systems=("serial",)), pool=sim_pool)
    assert made.card["strategies"] == {"serial-calls": 3}
    with pytest.raises(ct.UsageError, match="nothing is left"):
        make_set(collected.results, tmp_path / "b", SetSettings(ALL, roles=("coder",)), pool=sim_pool)


def test_serial_trajectories_are_rewritten_and_filtered_on_the_way(
    collected: Collection, sim_pool: ct.Pool, folder: Path
) -> None:
    gap = GapSettings(least_searches=2, parallel_share=None, most_tokens=100_000)
    settings = SetSettings(
        ALL,
        systems=("serial", "rounds"),
        rewrite="parallel-rounds",
        gap=gap,
    )
    made = make_set(collected.results, folder, settings, pool=sim_pool)
    assert made.card["counts"]["rewritten"] == 3
    assert made.card["strategies"] == {"parallel-rounds": 6}
    rewritten = [each for each in read_conversations(folder) if each.rewritten]
    assert {each.rewritten for each in rewritten} == {"serial-calls"}
    assert made.card["counts"]["parallel"] == 6
    alone = make_set(collected.results, folder, replace(settings, keep_serial=False), pool=sim_pool)
    assert (len(alone.examples), alone.card["left_out"]["not rewritten"]) == (3, 3)


def test_the_pool_of_an_item_may_come_from_a_function(collected: Collection, sim_pool: ct.Pool, tmp_path: Path) -> None:
    asked: list[Key] = []

    def pool_of(item: Any) -> ct.Pool:
        asked.append(item.key)
        return sim_pool

    settings = SetSettings(ALL, systems=("stateless",))
    made = make_set(collected.results, tmp_path / "a", settings, pool=pool_of)
    assert {key.system for key in asked} == {"stateless"}
    assert made.card["sha256"] == make_set(collected.results, tmp_path / "b", settings, pool=sim_pool).card["sha256"]


def test_tools_of_another_pool_are_noted_on_the_card(collected: Collection, sim_pool: ct.Pool, folder: Path) -> None:
    other = sim_pool.alias({"toy/solve": "ask"})
    made = make_set(collected.results, folder, SetSettings(ALL, systems=("stateless",)), pool=other)
    assert made.card["notes"][0].startswith("3 trajectories ran with another pool")
    assert made.card["notes"][0] in (folder / "README.md").read_text()


def test_several_results_files_make_one_set_and_are_told_apart(
    collected: Collection, sim_pool: ct.Pool, tmp_path: Path
) -> None:
    shutil.copytree(collected.folder, tmp_path / "second")
    other = tmp_path / "second" / "results.jsonl"
    made = make_set([collected.results, other], tmp_path / "set", SetSettings(), pool=sim_pool)
    assert len(made.examples) == 3
    assert len({each.source for each in made.left_out}) == 2
    assert not any(Path(each.source).is_absolute() for each in made.left_out)
    with pytest.raises(ct.UsageError, match="expected different results files"):
        make_set([other, other], tmp_path / "set", pool=sim_pool)


# -- on disk -----------------------------------------------------------------------------------------------------------

texts = st.text(max_size=20)
calls = st.builds(
    ToolCall, st.text(min_size=1, max_size=5), st.dictionaries(texts, st.none() | st.integers() | texts, max_size=3)
)


@st.composite
def conversations(draw: st.DrawFn) -> RoleConversation:
    count = draw(st.integers(1, 4))
    messages: list[Message] = []
    own: list[int] = []
    for _ in range(count):
        messages += [Message(draw(st.sampled_from(("user", "system", "tool"))), draw(texts))]
        own.append(len(messages))
        messages.append(
            Message("assistant", draw(texts), tuple(draw(st.lists(calls, max_size=2))), reasoning=draw(texts))
        )
    train = draw(st.sets(st.sampled_from(own)))
    faults = {place: ("unread",) for place in own if place not in train}
    tools = draw(st.sampled_from(((), ({"type": "function", "function": {"name": "x"}},))))
    return RoleConversation(
        "c",
        tuple(messages),
        tuple(own),
        tuple(sorted(train)),
        faults,
        draw(st.sampled_from(("a", "b"))),
        "p",
        tools,
        draw(texts),
        "q",
        "r",
        "pool",
        "s",
        ("m",),
    )


@given(conversations())
def test_a_conversation_survives_its_row(found: RoleConversation) -> None:
    assert from_row(json.loads(json.dumps(to_row(found)))) == found


def test_a_file_is_read_back_as_it_was_written_whatever_the_letters(tmp_path: Path) -> None:
    odd = RoleConversation("c", (Message("user", "\ud800 \u2028\x00"), Message("assistant", "é\n")), (1,), (1,))
    write_conversations([odd, replace(odd, id="d")], tmp_path / "deep" / "set.jsonl")
    assert list(read_conversations(tmp_path / "deep" / "set.jsonl")) == [odd, replace(odd, id="d")]


def test_reading_is_lazy(tmp_path: Path) -> None:
    one = RoleConversation("c", (Message("user", "q"), Message("assistant", "a")), (1,), (1,))
    path = tmp_path / "set.jsonl"
    write_conversations([one], path)
    path.write_bytes(path.read_bytes() + b"nonsense\n")
    stream = read_conversations(path)
    assert next(stream) == one
    with pytest.raises(ct.UsageError, match=r"set.jsonl, line 2: it is not JSON: .*make the set again"):
        next(stream)


ONE = '{"id": "c", "messages": [{"role": "user", "text": "x"}], "own": [0], "train": []}'


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("[]", "a conversation is an object; got list"),
        ('{"id": "c"}', "messages, own, train is missing"),
        ('{"id": "c", "messages": [], "own": [], "train": [], "flags": []}', "'flags' is not part of a conversation"),
        (ONE.replace("user", "bot"), "message 0 is .*a role of"),
        (ONE.replace("[0]", "[7]"), "and there are 1 messages"),
        (ONE.replace("[0]", '["y"]'), "no conversation: Value"),
        (ONE, "expected places behind the first message"),
        ('{"id": "c", "messages"', "it is not JSON"),
    ],
)
def test_a_line_that_is_no_conversation_is_named(row: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "set.jsonl").write_text(row + "\n")
    with pytest.raises(ct.UsageError, match=f"set.jsonl, line 1: .*{said}"):
        list(read_conversations(tmp_path / "set.jsonl"))


def test_a_torn_file_and_a_missing_one_are_told(tmp_path: Path) -> None:
    (tmp_path / "set.jsonl").write_text('{"id": "c", "mess')
    with pytest.raises(ct.UsageError, match="line 1: it is torn"):
        list(read_conversations(tmp_path / "set.jsonl"))
    with pytest.raises(ct.UsageError, match=r"cannot be read: .*; make a set first"):
        list(read_conversations(tmp_path / "no.jsonl"))


def test_two_conversations_of_one_id_are_refused_and_nothing_is_left(tmp_path: Path) -> None:
    one = RoleConversation("c", (Message("user", "q"), Message("assistant", "a")), (1,), (1,))
    with pytest.raises(ct.UsageError, match="two conversations have the id 'c'"):
        write_conversations([one, one], tmp_path / "set.jsonl")
    assert list(tmp_path.iterdir()) == []
