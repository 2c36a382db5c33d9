"""`Recorder`: what is recorded, what is replayed, and what a miss says."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import concertino as ct
import pytest
from concertino import Call, ChatRequest, Executor, Message, Observation, Orchestrator, Pool, Sampling, Status
from concertino.testing import Recorder, ScriptedModel, call, fake_agent, fake_tool
from concertino.testing.recording import RecordingMiss
from hypothesis import given
from hypothesis import strategies as st


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "made" / "recording.jsonl"


def through(recording: Recorder, tool, arguments) -> Observation:
    return call(tool, arguments, **recording.hooks)


def lines_of(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def request(text: str, **sampling) -> ChatRequest:
    return ChatRequest([Message("user", text)], sampling=Sampling(**sampling))


def test_a_recorded_call_is_replayed_without_running(file: Path) -> None:
    tool = fake_tool("weather", returns={"rain": True}, cost=ct.Cost(units=1, usd=0.5))
    first = through(Recorder(file, "record"), tool, {"city": "Oslo"})
    again = through(Recorder(file, "replay"), tool, {"city": "Oslo"})
    assert len(tool.calls) == 1
    assert (again.status, again.content, again.usage.usd) == (Status.OK, {"rain": True}, 0.5)
    assert (first.replayed, again.replayed) == (False, True)


def test_the_file_is_readable_lines_one_per_request(file: Path) -> None:
    recording = Recorder(file, "record")
    through(recording, fake_tool("a", returns="é"), {"q": 1})
    asyncio.run(recording.model(ScriptedModel("hi"), "lead").chat(request("hello", seed=7)))
    header, first, second = lines_of(file)
    assert header == {"concertino": "recording", "version": 1}
    assert first["request"] == {"kind": "tool", "name": "a", "arguments": {"q": 1}}
    assert (first["answer"]["status"], first["answer"]["content"]) == ("OK", "é")
    assert second["request"]["messages"] == [{"role": "user", "text": "hello"}]
    assert second["request"]["sampling"] == {"seed": 7}
    assert "é" in file.read_text(encoding="utf-8")


def test_failures_are_replayed_too_and_without_tracebacks(file: Path) -> None:
    tool = fake_tool(sequence=[ValueError("no such city")])
    first = through(Recorder(file, "record"), tool, {})
    again = through(Recorder(file, "replay"), tool, {})
    assert again.error == first.error
    assert "Traceback" not in file.read_text(encoding="utf-8")


def test_equal_requests_are_replayed_in_the_order_in_which_they_were_made(file: Path) -> None:
    tool = fake_tool(sequence=[1, 2, 3])
    recording = Recorder(file, "record")
    for _ in range(3):
        through(recording, tool, {})
    replay = Recorder(file, "replay")
    assert [through(replay, tool, {}).content for _ in range(3)] == [1, 2, 3]
    assert "only 3 times" in through(replay, tool, {}).error.message


async def test_equal_requests_at_once_keep_the_order_of_starting(file: Path) -> None:
    waits = iter([0.05, 0.0])

    async def answer(arguments):
        mine = next(waits)
        await asyncio.sleep(mine)
        return mine

    plan = [Call("t", {}, id="first"), Call("t", {}, id="second")]
    for mode in ("record", "replay"):
        recording = Recorder(file, mode)
        async with Executor() as executor:
            seen = await executor.run(plan, Pool.of(fake_tool("t", returns=answer)), **recording.hooks)
        assert [observation.content for observation in seen] == [0.05, 0.0]


async def test_runs_at_once_with_equal_call_ids_are_not_mixed_up(file: Path) -> None:
    async def answer(arguments):
        await asyncio.sleep(0.01 * arguments["n"])
        return arguments["n"]

    recording, tool = Recorder(file, "record"), fake_tool("t", returns=answer)
    async with Executor() as executor:
        runs = (executor.run([Call("t", {"n": n}, id="same")], Pool.of(tool), **recording.hooks) for n in (3, 2, 1))
        await asyncio.gather(*runs)
    answers = {line["request"]["arguments"]["n"]: line["answer"]["content"] for line in lines_of(file)[1:]}
    assert answers == {1: 1, 2: 2, 3: 3}


def test_arguments_in_another_order_are_the_same_request(file: Path) -> None:
    through(Recorder(file, "record"), fake_tool(returns=1), {"a": 1, "b": [{"c": 2, "d": 3}]})
    assert through(Recorder(file, "replay"), fake_tool(), {"b": [{"d": 3, "c": 2}], "a": 1}).content == 1


def test_a_miss_is_an_error_that_shows_the_nearest_recording_and_where_it_differs(file: Path) -> None:
    recording = Recorder(file, "record")
    for city in ("Oslo", "Bergen"):
        through(recording, fake_tool("weather"), {"city": city, "days": 3})
    tool = fake_tool("weather", returns="real")
    replay = Recorder(file, "replay")
    seen = through(replay, tool, {"city": "Bergan", "days": 3})
    assert (seen.status, seen.error.code) == (Status.EXEC_ERR, "not_recorded")
    assert '/arguments/city: recorded "Bergen", asked "Bergan"' in seen.error.message
    assert "mode='record'" in seen.error.message
    assert tool.calls == []
    with pytest.raises(RecordingMiss, match='asked "Bergan"'):
        replay.assert_complete()


def test_a_block_with_a_miss_fails_at_its_end_unless_it_failed_before(file: Path) -> None:
    through(Recorder(file, "record"), fake_tool("t"), {"n": 1})
    with pytest.raises(RecordingMiss, match="recorded 1, asked 2"), Recorder(file, "replay") as replay:
        through(replay, fake_tool("t"), {"n": 2})
    with pytest.raises(ZeroDivisionError), Recorder(file, "replay") as replay:
        _ = through(replay, fake_tool("t"), {"n": 2}), 1 / 0


def test_an_orchestrator_s_own_hooks_are_asked_before_and_told_after_those_of_plugins() -> None:
    from concertino.plugins import PluginManager

    order: list[str] = []

    class Plugin:
        @ct.hookimpl
        def concertino_tools(self):
            return [fake_tool("t", returns=1)]

        @ct.hookimpl
        def concertino_before_call(self):
            order.append("plugin before")

        @ct.hookimpl
        def concertino_after_call(self):
            order.append("plugin after")

    manager = PluginManager(installed=False)
    manager.register(Plugin(), "acme")
    own = {"before": [lambda **_: order.append("own before")], "after": [lambda **_: order.append("own after")]}
    lead = Orchestrator(ScriptedModel([("t", {})], "<answer>1</answer>", "<answer>1</answer>", strict=False), **own)
    lead.run_sync("?", pool=Pool.installed(manager=manager))
    assert order == ["own before", "plugin before", "plugin after", "own after"]


def test_a_miss_without_any_recording_of_that_name_says_so(file: Path) -> None:
    through(Recorder(file, "record"), fake_tool("weather"), {})
    assert "holds no request of tool 'news'" in through(Recorder(file, "replay"), fake_tool("news"), {}).error.message


def test_a_miss_names_what_is_absent_and_counts_what_it_does_not_show(file: Path) -> None:
    through(Recorder(file, "record"), fake_tool("t"), {"a": 1})
    message = through(Recorder(file, "replay"), fake_tool("t"), {"b": 1, "c": 2, "d": [3]}).error.message
    assert "/arguments/a: recorded 1, asked nothing" in message
    assert "(+1 more)" in message


def test_auto_answers_what_is_recorded_and_records_the_rest(file: Path) -> None:
    tool = fake_tool("t", returns=lambda arguments: arguments["n"])
    for numbers in ([1], [1, 2], [2, 1]):
        recording = Recorder(file, "auto")
        assert [through(recording, tool, {"n": n}).content for n in numbers] == numbers
    assert tool.calls == [{"n": 1}, {"n": 2}]
    assert len(lines_of(file)) == 3


def test_record_starts_the_file_anew(file: Path) -> None:
    through(Recorder(file, "record"), fake_tool("t"), {"n": 1})
    through(Recorder(file, "record"), fake_tool("t"), {"n": 2})
    assert [line["request"]["arguments"] for line in lines_of(file)[1:]] == [{"n": 2}]


def test_off_neither_reads_nor_writes(file: Path) -> None:
    recording = Recorder(file, "off")
    assert through(recording, fake_tool(returns=1), {}).content == 1
    assert asyncio.run(recording.model(ScriptedModel("hi")).chat(request("?"))).text == "hi"
    assert not file.exists()


def test_a_model_is_replayed_by_what_it_was_asked_and_not_by_the_key_of_the_run(file: Path) -> None:
    model = Recorder(file, "record").model(ScriptedModel("hi"))
    asyncio.run(model.chat(ChatRequest([Message("user", "hello")], idempotency_key="one")))
    replayed = Recorder(file, "replay").model(ScriptedModel())
    given = ChatRequest([Message("user", "hello")], idempotency_key="two")
    assert asyncio.run(replayed.chat(given)).text == "hi"


@pytest.mark.parametrize(
    "other",
    [
        request("goodbye"),
        request("hello", temperature=0.5),
        request("hello", temperature=0.0),
        request("hello", seed=0),
        ChatRequest([Message("user", "hello")], [{"type": "function"}]),
        ChatRequest([Message("system", ""), Message("user", "hello")]),
    ],
)
def test_a_model_asked_otherwise_is_a_miss_and_the_real_one_is_not_asked(file: Path, other: ChatRequest) -> None:
    asyncio.run(Recorder(file, "record").model(ScriptedModel("hi")).chat(request("hello")))
    recording = Recorder(file, "replay")
    with pytest.raises(RecordingMiss, match="The nearest one differs at /"):
        asyncio.run(recording.model(ScriptedModel("real", strict=False)).chat(other))
    assert len(recording.misses) == 1


def test_long_texts_are_shown_where_they_differ(file: Path) -> None:
    text = "word " * 400
    asyncio.run(Recorder(file, "record").model(ScriptedModel("hi")).chat(request(f"{text}RED{text}")))
    with pytest.raises(RecordingMiss, match=r"…(word )+R?.*GREEN") as miss:
        asyncio.run(Recorder(file, "replay").model(ScriptedModel()).chat(request(f"{text}GREEN{text}")))
    assert len(str(miss.value)) < 600


def test_two_models_are_told_apart_by_their_names(file: Path) -> None:
    recording = Recorder(file, "record")
    for name in ("lead", "worker"):
        asyncio.run(recording.model(ScriptedModel(f"the {name}"), name).chat(request("?")))
    replay = Recorder(file, "replay")
    assert asyncio.run(replay.model(ScriptedModel(), "worker").chat(request("?"))).text == "the worker"
    assert [record.request["name"] for record in replay.unused] == ["lead"]


def test_a_whole_run_is_replayed_with_its_models_agents_and_tools(file: Path) -> None:
    script = [[("add", {"a": 1}), ("solve", {"q": "x"})], [("final_answer", {})], "<answer>3</answer>"]
    pool = Pool.of(fake_tool("add", returns=3), fake_agent("solve", returns="three"))
    budget = ct.Budget(calls=9, units=9)
    runs = []
    for mode, model in (("record", ScriptedModel(*script)), ("replay", ScriptedModel())):
        with Recorder(file, mode) as recording:
            lead = Orchestrator(recording.model(model), **recording.hooks)
            runs.append(lead.run_sync("1 + 2?", pool=pool, budget=budget))
    assert [run.answer for run in runs] == ["3", "3"]
    assert [seen.content for seen in runs[1].observations] == [3, "three"]
    assert all(seen.replayed and seen.ended >= seen.started for seen in runs[1].observations)
    assert len(pool["add"].calls) == 1


def test_what_is_masked_is_neither_written_nor_compared(file: Path) -> None:
    mask = [r"key-\w+", r'"seconds": [0-9.]+']
    recording = Recorder(file, "record", mask=mask)
    through(recording, fake_tool(returns=1), {"auth": "key-secret", "left": '{"seconds": 3.5}', "list": ["key-a"]})
    assert "secret" not in file.read_text(encoding="utf-8")
    replay = Recorder(file, "replay", mask=mask)
    asked = {"auth": "key-other", "left": '{"seconds": 0.1}', "list": ["key-b"]}
    assert through(replay, fake_tool(), asked).content == 1


def test_a_cancelled_call_is_not_recorded(file: Path) -> None:
    async def cancelled() -> None:
        work = asyncio.ensure_future(
            Executor().run([Call("t")], Pool.of(fake_tool("t", delay=9)), **Recorder(file, "record").hooks)
        )
        await asyncio.sleep(0.05)
        work.cancel()
        await asyncio.wait({work})

    asyncio.run(cancelled())
    assert not file.exists()


def test_a_recording_is_a_plugin_too(file: Path) -> None:
    from concertino.plugins import PluginManager

    manager = PluginManager(installed=False)
    assert manager.register(Recorder(file, "record"), "recording").state == "loaded"
    hooks = {"before": manager.before_call_hooks(), "after": manager.after_call_hooks()}
    call(fake_tool("t", returns=5), {"n": 1}, **hooks)
    assert lines_of(file)[1]["answer"]["content"] == 5


def test_a_torn_last_line_is_dropped_and_recorded_again(file: Path) -> None:
    recording = Recorder(file, "record")
    tool = fake_tool("t", returns=lambda arguments: arguments["n"])
    for n in (1, 2):
        through(recording, tool, {"n": n})
    file.write_bytes(file.read_bytes()[:-20])
    auto = Recorder(file)
    assert [through(auto, tool, {"n": n}).content for n in (1, 2)] == [1, 2]
    assert [call["n"] for call in tool.calls] == [1, 2, 2]
    assert len(lines_of(file)) == 3


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ('{"concertino": "recording", "version": 9}\n', ":1: .*expected the header"),
        ("nonsense\n", ":1: "),
        ('{"concertino": "recording", "version": 1}\n{"key": "x"}\n', ":2: .*'request'"),
        ('{"concertino": "recording", "version": 1}\n[1]\n', ":2: "),
    ],
)
def test_a_damaged_file_is_an_error_that_names_the_line(file: Path, content: str, place: str) -> None:
    file.parent.mkdir()
    file.write_text(content)
    with pytest.raises(ct.UsageError, match=place):
        Recorder(file, "replay")


def test_a_missing_file_and_an_unknown_mode_are_errors_with_directions(file: Path) -> None:
    with pytest.raises(ct.UsageError, match="recording not found; run once with mode='record'"):
        Recorder(file, "replay")
    with pytest.raises(ct.UsageError, match="expected one of record, replay, auto, off"):
        Recorder(file, "rewind")  # type: ignore[arg-type]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(arguments=st.dictionaries(st.text(max_size=8), JSON, max_size=4), content=JSON)
def test_any_call_is_replayed_as_it_was(tmp_path_factory, arguments, content) -> None:
    file = tmp_path_factory.mktemp("any") / "recording.jsonl"
    tool = fake_tool(returns=content, max_chars=10**6)

    def both(recording: Recorder) -> Observation:
        known = recording.concertino_before_call(tool, arguments, "1")
        if known is None:
            known = Observation("1", tool.name, Status.OK, content, attempts=1)
            recording.concertino_after_call(tool, known)
        return known

    both(Recorder(file, "record"))
    assert both(Recorder(file, "replay")).content == content
