"""SerialCalls as a state machine, and in runs with a pool whose tools name models by alias."""

import json
import os
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.strategies import Act, Ask, Done, Machine, TaskContext, strategy_by_name
from concertino.strategies.serial_calls import ModelChoice, SerialCalls, write_choice
from concertino.strategies.serial_calls.format import LIMIT, write_message, write_turn
from concertino.strategies.serial_calls.notebook import Attempt, CodeRun
from concertino.strategies.serial_calls.released_prompts import estimating_cutter
from concertino.testing import ScriptedModel
from hypothesis import given, settings
from hypothesis import strategies as st
from linear import assert_linear

FULL = bool(os.environ.get("CONCERTINO_FUZZ"))
SNAPSHOTS = Path(__file__).parent / "prompts"
PROSE = {"description": "The model used. Choices: ['m-1', 'm-2'].", "type": "string"}
Item = ct.Reply | list[ct.Observation]


def function(name: str, *properties: str) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": {key: PROSE if key == "model" else {"type": "string"} for key in properties},
        "required": list(properties),
    }
    return {"type": "function", "function": {"name": name, "description": "d", "parameters": parameters}}


PLAIN = [function("search", "query")]
RELEASED = [function(name, "model") for name in ("enhance_reasoning", "answer", "search")]


def begin(context: TaskContext | None = None, **options: Any) -> Machine:
    qa = options.get("form") == "qa"
    return SerialCalls(**options).begin(context or TaskContext("Who?", RELEASED if qa else PLAIN))


def ask(machine: Machine) -> Ask:
    step = machine.step()
    assert isinstance(step, Ask)
    return step


def act(machine: Machine) -> Act:
    step = machine.step()
    assert isinstance(step, Act)
    return step


def seen(content: Any = "yes", call_id: str = "1", name: str = "search") -> ct.Observation:
    return ct.Observation(call_id, name, ct.Status.OK, content)


def failed(code: str = "raised", status: ct.Status = ct.Status.EXEC_ERR, call_id: str = "1") -> ct.Observation:
    return ct.Observation(call_id, "search", status, None, ct.ErrorInfo(code, "it broke"))


def call(name: str = "search", **arguments: Any) -> ct.Reply:
    return ct.Reply(write_turn("Look.", name, arguments))


def shown(step: Any) -> Any:
    return (step.round, step.plan.to_json()) if isinstance(step, Act) else step


def feed(machine: Machine, item: Item) -> None:
    machine.observe(item, {"units": 1.0}) if isinstance(item, list) else machine.on_reply(item)


# -- the chat ----------------------------------------------------------------------------------------------------------


def test_the_system_prompt_of_a_chat_is_the_snapshot() -> None:
    step = ask(begin(TaskContext("Who?", PLAIN, remaining={"units": 5.0}), preference="Spend little."))
    assert step.messages[0].text == (SNAPSHOTS / "serial-calls-chat.txt").read_text(encoding="utf-8").rstrip("\n")
    assert (
        step.messages[1].text == 'Who?\n\n<preference>\nSpend little.\n</preference>\n<budget>{"units": 5.0}</budget>'
    )
    native = ask(begin(native=True))
    assert native.messages[0].text == (SNAPSHOTS / "serial-calls-native.txt").read_text(encoding="utf-8").rstrip("\n")


def test_one_call_becomes_a_plan_of_one_call() -> None:
    machine = begin()
    machine.on_reply(call(query="x"))
    [only] = act(machine).plan.calls
    assert (only.name, only.arguments, act(machine).round) == ("search", {"query": "x"}, 1)


def test_a_second_call_is_not_run_and_says_so() -> None:
    machine = begin()
    machine.on_reply(ct.Reply(call(query="a").text + call(query="b").text))
    assert [one.error and one.error[0] for one in act(machine).plan.calls] == [None, "too_many_calls"]


def test_behind_an_unreadable_call_the_first_readable_one_runs() -> None:
    machine = begin()
    machine.on_reply(ct.Reply('<tool_call>{"arguments": {}}</tool_call>' + call(query="b").text + call(query="c").text))
    errors = [one.error and one.error[0] for one in act(machine).plan.calls]
    assert errors == ["bad_format", None, "too_many_calls"]


def test_a_result_is_shown_with_the_budget() -> None:
    machine = begin()
    machine.on_reply(call(query="x"))
    machine.observe([seen("found")], {"usd": 0.5})
    step = ask(machine)
    assert '"content": "found"' in step.messages[-1].text
    assert step.messages[-1].text.endswith('<budget>{"usd": 0.5}</budget>')
    assert step.fresh == 1


def test_the_own_answer_tool_ends_with_its_argument() -> None:
    machine = begin()
    machine.on_reply(call("answer", text="\\boxed{42}"))
    assert machine.step() == Done("\\boxed{42}", "answered")


def test_a_native_answer_ends_as_well() -> None:
    machine = begin(native=True)
    assert [tool["function"]["name"] for tool in ask(machine).tools] == ["search", "answer"]
    machine.on_reply(ct.Reply("", (ct.ToolCall("answer", '{"text": "42"}', "n1"),)))
    assert machine.step() == Done("42", "answered")


def test_an_answer_without_its_text_is_handed_back() -> None:
    machine = begin()
    machine.on_reply(call("answer"))
    [only] = act(machine).plan.calls
    assert only.error == ("invalid_arguments", 'the answer is missing: give it as {"text": "..."}')


def test_an_answering_member_runs_and_its_result_is_the_answer() -> None:
    machine = begin(TaskContext("Who?", RELEASED), answering="member")
    machine.on_reply(call("answer", model="m-1"))
    assert act(machine).plan.calls[0].name == "answer"
    machine.observe([seen({"answer": "Ada"}, name="answer")])
    assert machine.step() == Done("Ada", "answered")


def test_an_answering_member_that_fails_does_not_end_the_run() -> None:
    machine = begin(TaskContext("Who?", RELEASED), answering="member")
    machine.on_reply(call("answer", model="m-1"))
    machine.observe([failed()])
    assert '"status": "EXEC_ERR"' in ask(machine).messages[-1].text


def test_a_native_reply_without_a_call_is_the_answer() -> None:
    machine = begin(native=True)
    machine.on_reply(ct.Reply("<think>40 + 2</think>It is 42."))
    assert machine.step() == Done("It is 42.", "answered")
    empty = begin(native=True)
    empty.on_reply(ct.Reply("<think>40 + 2"))
    assert isinstance(empty.step(), Ask)


def test_native_calls_are_all_answered_with_their_ids() -> None:
    machine = begin(native=True)
    native = (ct.ToolCall("search", '{"query": "a"}', "n1"), ct.ToolCall("search", '{"query": "b"}', "n2"))
    machine.on_reply(ct.Reply("", native))
    assert [one.error and one.error[0] for one in act(machine).plan.calls] == [None, "too_many_calls"]
    machine.observe([seen(), failed("too_many_calls", ct.Status.PARSE_ERR, "2")], {"rounds": 3})
    roles = [(message.role, message.call_id) for message in ask(machine).messages[2:]]
    assert roles == [("assistant", ""), ("tool", "n1"), ("tool", "n2"), ("user", "")]


def test_native_calls_beyond_those_that_are_read_are_answered_too() -> None:
    machine = begin(native=True)
    native = tuple(ct.ToolCall("search", '{"query": "a"}', f"n{place}") for place in range(LIMIT + 2))
    machine.on_reply(ct.Reply("", native))
    machine.observe([seen(), *[failed("too_many_calls", ct.Status.PARSE_ERR)] * (LIMIT - 1)])
    answered = [message.call_id for message in ask(machine).messages if message.role == "tool"]
    assert answered == [one.id for one in native]


def test_an_alias_that_is_none_of_the_choices_is_refused_with_the_near_one() -> None:
    machine = begin(TaskContext("Who?", RELEASED), answering="member")
    machine.on_reply(call("search", model="m_2"))
    error = act(machine).plan.calls[0].error
    assert error is not None
    assert error[0] == "invalid_arguments"
    assert "did you mean 'm-2'?" in error[1]


@pytest.mark.parametrize("text", [write_message("", "Ada"), "<answer>Ada</answer>", "<think>x</think><answer>Ada"])
def test_an_answer_given_directly_is_taken(text: str) -> None:
    machine = begin()
    machine.on_reply(ct.Reply(text))
    assert machine.step() == Done("Ada", "answered")


def test_a_text_without_a_call_is_handed_back_with_what_is_wrong() -> None:
    machine = begin()
    machine.on_reply(ct.Reply("<think>and so on"))
    text = ask(machine).messages[-1].text
    assert text.startswith("PARSE_ERR: the text ends inside <think>")
    machine.on_reply(call(query="x"))
    assert isinstance(machine.step(), Act)


def test_texts_without_a_call_in_a_row_end_the_run() -> None:
    machine = begin(max_unreadable_replies=2)
    machine.on_reply(ct.Reply("hm"))
    machine.on_reply(ct.Reply("hm"))
    done = machine.step()
    assert isinstance(done, Done)
    assert done.stop == "format"
    assert done.detail.startswith("2 texts in a row held no readable call; the last: the text holds no call")


def test_after_the_last_turn_the_answer_is_asked_for() -> None:
    machine = begin(max_rounds=1)
    machine.on_reply(call(query="x"))
    machine.observe([seen()])
    assert "no turns left" in ask(machine).messages[-1].text
    machine.on_reply(ct.Reply("<answer>7</answer>"))
    assert machine.step() == Done("7", "rounds", "1 turns are over")


def test_strict_reading_hands_back_what_lenient_reading_repairs() -> None:
    text = "<tool_call>{'name': 'search', 'arguments': {}}</tool_call>"
    for strict, code in ((False, None), (True, "bad_format")):
        machine = begin(strict=strict)
        machine.on_reply(ct.Reply(text))
        assert [one.error and one.error[0] for one in act(machine).plan.calls] == [code]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_rounds": 0}, "max_rounds=0"),
        ({"max_unreadable_replies": 0}, "max_unreadable_replies=0"),
        ({"form": "tree"}, "form='tree'"),
        ({"variant": "test"}, "variant='test'"),
        ({"answering": "me"}, "answering='me'"),
        ({"search_tools": "search"}, r"write \('search',\)"),
    ],
)
def test_settings_that_cannot_work_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ct.UsageError, match=words):
        SerialCalls(**options)


def test_a_pool_that_does_not_fit_is_refused_before_anything_runs() -> None:
    with pytest.raises(ct.UsageError, match="answering='member'"):
        begin(TaskContext("Who?", RELEASED))
    with pytest.raises(ct.UsageError, match="no member is visible as 'answer'"):
        begin(TaskContext("Who?", PLAIN), form="qa")


# -- the released form -------------------------------------------------------------------------------------------------


def test_each_turn_of_the_released_form_is_a_fresh_prompt() -> None:
    machine = begin(form="qa", variant="frames")
    first = ask(machine)
    assert (len(first.messages), first.fresh, len(first.tools)) == (2, 2, 3)
    machine.on_reply(call("search", model="m-1"))
    machine.observe([seen(["best", "next"])])
    second = ask(machine)
    assert (len(second.messages), second.fresh) == (2, 2)
    assert second.messages[1].text.startswith("Problem: Who?\n\nDocuments:\nDoc 1: next\n\nDoc 2: best\n\n")
    assert [tool["function"]["name"] for tool in second.tools] == ["enhance_reasoning", "answer"]


def test_code_and_documents_find_their_way_into_the_notebook() -> None:
    machine = begin(form="qa", variant="train")
    machine.on_reply(call("enhance_reasoning", model="m-1"))
    machine.observe([seen({"code": "print(42)", "output": "42"}, name="enhance_reasoning")])
    machine.on_reply(call("answer", model="m-2"))
    machine.observe([seen({"answer": ""}, name="answer")])
    book = machine.notebook  # type: ignore[attr-defined]
    assert (book.code, book.attempts) == ((CodeRun("print(42)", "42"),), (Attempt("m-2", ""),))
    assert "Attempt1 answer by m-2: \n" in ask(machine).messages[1].text


@pytest.mark.parametrize(("variant", "documents"), [("train", ("c", "a", "b")), ("hle", ("a", "b", "c"))])
def test_only_training_weaves_what_a_second_search_found(variant: Any, documents: tuple[str, ...]) -> None:
    machine = begin(form="qa", variant=variant)
    for found in (["b", "a"], ["c"]):
        machine.on_reply(call("search", model="m-1"))
        machine.observe([seen(found)])
    assert machine.notebook.documents == documents  # type: ignore[attr-defined]


def test_the_answer_of_the_answer_tool_ends_the_released_form() -> None:
    machine = begin(form="qa")
    machine.on_reply(ct.Reply("", (ct.ToolCall("answer", '{"model": "m-1"}', "n1"),)))
    machine.observe([seen("Ada", name="answer")])
    assert machine.step() == Done("Ada", "answered")


def test_in_the_released_form_the_first_call_that_is_offered_runs() -> None:
    machine = begin(form="qa")
    texts = [call("find").text, call("search", model="m-9").text, call("search", model="m-1").text, call("answer").text]
    machine.on_reply(ct.Reply("".join(texts)))
    errors = [one.error and one.error[0] for one in act(machine).plan.calls]
    assert errors == ["unknown_name", "invalid_arguments", None, "too_many_calls"]


def test_a_failed_call_leaves_the_released_prompt_as_it_was() -> None:
    machine = begin(form="qa")
    before = ask(machine).messages
    machine.on_reply(call("search", model="m-1"))
    machine.observe([failed()])
    assert ask(machine).messages == before


def test_refused_calls_in_a_row_end_the_released_form() -> None:
    machine = begin(form="qa", max_unreadable_replies=2)
    for _ in range(2):
        machine.on_reply(call("find"))
        machine.observe([failed("unknown_name", ct.Status.PARSE_ERR)])
    assert machine.step() == Done(None, "format", "2 texts in a row held no call that could run; the last: it broke")


def test_the_released_form_ends_without_an_answer_when_its_turns_are_over() -> None:
    machine = begin(form="qa", max_rounds=1)
    machine.on_reply(call("search", model="m-1"))
    machine.observe([seen("d")])
    assert machine.step() == Done(None, "rounds", "1 turns are over and answer gave no answer")


def test_the_preference_follows_the_problem() -> None:
    machine = begin(form="qa", preference="Avoid paid models.")
    assert "Problem: Who?\nAvoid paid models.\n\n" in ask(machine).messages[1].text


def test_a_cutter_of_ones_own_is_used_and_not_written_down() -> None:
    sizes: list[int] = []

    def cutter(text: str, limit: int) -> Any:
        sizes.append(limit)
        return estimating_cutter(text, limit)

    strategy = SerialCalls(form="qa", variant="hle", cutter=cutter)
    ask(strategy.restore(json.loads(json.dumps(strategy.begin(TaskContext("Who?", RELEASED)).dump()))))
    assert 8_000 in sizes
    assert "cutter" not in strategy.to_json()


# -- copies ------------------------------------------------------------------------------------------------------------

CHAT: list[Item] = [
    call(query="a"),
    [seen("one")],
    ct.Reply("hm"),
    ct.Reply(call(query="b").text * 2),
    [seen("two"), failed("too_many_calls", ct.Status.PARSE_ERR, "2")],
    call("answer", text="7"),
]
QA: list[Item] = [
    call("search", model="m-1"),
    [seen(["d1", "d2"])],
    ct.Reply("hm"),
    call("enhance_reasoning", model="m-1"),
    [seen({"code": "c", "output": "o"})],
    call("answer", model="m-2"),
    [seen("7")],
]


@pytest.mark.parametrize("place", range(7))
@pytest.mark.parametrize("options", [{}, {"native": True}, {"form": "qa"}, {"form": "qa", "variant": "train"}])
def test_a_machine_written_down_or_copied_at_any_point_goes_on_the_same_way(
    options: dict[str, Any], place: int
) -> None:
    script = QA if options.get("form") else CHAT
    place = min(place, len(script))
    straight, interrupted = begin(**options), begin(**options)
    for item in script[:place]:
        feed(straight, item)
        feed(interrupted, item)
    twin = interrupted.fork()
    restored = SerialCalls().restore(json.loads(json.dumps(interrupted.dump())))
    for item in script[place:]:
        assert shown(straight.step()) == shown(twin.step()) == shown(restored.step())
        for machine in (straight, twin, restored):
            feed(machine, item)
    assert restored.dump() == straight.dump() == twin.dump()
    assert restored.step() == straight.step() == twin.step() == Done("7", "answered")


@pytest.mark.parametrize(("form", "script"), [("chat", CHAT), ("qa", QA)])
def test_what_happens_to_a_fork_never_shows_in_its_origin(form: str, script: list[Item]) -> None:
    machine = begin(form=form)
    twin = machine.fork()
    before = json.dumps(machine.dump())
    for item in script:
        feed(twin, item)
    assert json.dumps(machine.dump()) == before


replies = st.builds(
    ct.Reply,
    st.lists(
        st.sampled_from(
            [
                call(query="x").text,
                call("answer", text="7").text,
                call("answer", model="m-1").text,
                "<think>",
                "</think>",
                "<tool_call>",
                "hm",
                "<answer>",
                '{"name": "f"}',
            ]
        )
        | st.text(max_size=5),
        max_size=4,
    ).map("".join),
    st.lists(
        st.builds(ct.ToolCall, st.sampled_from(["search", "answer", ""]), st.text(max_size=9), st.just("n")), max_size=2
    ).map(tuple),
    finish_reason=st.sampled_from(["stop", "length"]),
)


@settings(max_examples=3_000 if FULL else 100, deadline=None)
@given(st.lists(replies, min_size=12, max_size=12), st.sampled_from(["chat", "qa"]), st.booleans(), st.data())
def test_whatever_is_written_the_machine_ends_cleanly(
    written: list[ct.Reply], form: str, native: bool, data: st.DataObject
) -> None:
    machine = begin(form=form, native=native, max_rounds=4)
    for reply in written:
        step = machine.step()
        if isinstance(step, Ask):
            machine.on_reply(reply)
        elif isinstance(step, Act):
            outcomes = st.sampled_from([seen(), seen(None), failed(), failed("bad_json", ct.Status.PARSE_ERR)])
            machine.observe([data.draw(outcomes) for _ in step.plan.calls])
        assert machine.step() == machine.step()
    machine.finish("deadline")
    done = machine.step()
    assert isinstance(done, Done)
    assert done.stop in ct.STOP_REASONS


@pytest.mark.parametrize("piece", ["<tool_call>", CHAT[0].text, "<think>", "{", '{"name": "search", '])  # type: ignore[union-attr]
@pytest.mark.parametrize("form", ["chat", "qa"])
def test_a_megabyte_of_hostile_text_is_told_in_linear_time(form: str, piece: str) -> None:
    def tell() -> None:
        machine = begin(form=form)
        machine.on_reply(ct.Reply(piece * (1_000_000 // len(piece))))
        machine.step()

    assert_linear(tell, 1_000_000)


def test_it_is_found_by_its_name_and_its_settings_survive() -> None:
    strategy = SerialCalls(form="qa", variant="hle", code_tools=("python", "sh"), preference="p")
    assert strategy_by_name("serial-calls") is SerialCalls
    assert SerialCalls.from_json(json.loads(json.dumps(strategy.to_json()))) == strategy
    assert json.loads(json.dumps(strategy.to_json())) == strategy.to_json()


# -- runs --------------------------------------------------------------------------------------------------------------


def pool(*models: ct.ModelSpec) -> ct.Pool:
    """`search` and `answer` work with the model that their alias is bound to."""

    async def search(arguments: dict[str, Any], *, ctx: ct.Context) -> list[str]:
        reply = await ctx.model(arguments["model"]).chat(f"query for {ctx.question}")
        return [f"document about {reply.text}"]

    async def answer(arguments: dict[str, Any], *, ctx: ct.Context) -> str:
        found = [seen.content for seen in ctx.history if seen.name == "search"]
        return (await ctx.model(arguments["model"]).chat(f"{ctx.question} {found}")).text

    def member(name: str, run: Any) -> ct.AgentSpec:
        aliases = [ModelChoice(f"{name}-1", "strong", ct.Prices(1, 10), 20), ModelChoice(f"{name}-2", "quick")]
        schema = {
            "type": "object",
            "properties": {"model": write_choice("Who does it.", aliases)},
            "required": ["model"],
        }
        return ct.AgentSpec.from_schema(name, f"{name} it", schema, run, context="ctx")

    bound = {"search-1": models[0].name, "search-2": models[0].name, "answer-1": models[1].name}
    return ct.Pool.of(member("search", search), member("answer", answer), *models).bind(
        **bound, **{"answer-2": models[1].name}
    )


@pytest.mark.parametrize("form", ["chat", "qa"])
async def test_a_run_calls_models_by_their_aliases_and_replays_from_its_trace(form: Any, tmp_path: Path) -> None:
    writer = ct.ModelSpec("lab/writer", lambda: ScriptedModel("Ada Lovelace", strict=False))
    solver = ct.ModelSpec("lab/solver", lambda: ScriptedModel("Ada", strict=False))
    turns = [call("search", model="search-7"), call("search", model="search-2"), call("answer", model="answer-1")]
    strategy = SerialCalls(form=form, answering="member")
    with ScriptedModel(*turns) as leader:
        path = tmp_path / "run.jsonl"
        run = await ct.Orchestrator(leader, strategy).run("Who?", pool=pool(writer, solver), trace=path)
    assert (run.answer, run.stop) == ("Ada", "answered")
    assert [seen.status.value for seen in run.observations] == ["PARSE_ERR", "OK", "OK"]
    near = run.observations[0].error
    assert near is not None
    assert "search-" in f"{near.message} {near.near} {near.expected}"
    assert ct.replay(ct.Trace.load(path)) == Done("Ada", "answered")
    if form == "qa":
        assert "Doc 1: document about Ada Lovelace" in leader.requests[-1].messages[1].text


async def test_models_offered_as_agents_are_called_like_any_tool() -> None:
    expert = ct.ModelSpec("lab/expert", lambda: ScriptedModel("42"), "knows everything", ct.Prices(3, 15))
    offered = ct.Pool.of(expert).offering("lab/*").alias({"lab/ask_expert": "expert_1"})
    with ScriptedModel(call("expert_1", task="6 * 7?"), call("answer", text="42")) as leader:
        run = await ct.Orchestrator(leader, SerialCalls()).run("6 * 7?", pool=offered)
    assert (run.answer, [seen.content for seen in run.observations]) == ("42", ["42"])
    system = leader.requests[0].messages[0].text
    assert "knows everything" in system
    assert "$3 / $15 per million tokens" in system
    assert "lab" not in system


async def test_an_interrupted_run_goes_on_without_repeating_a_paid_call(tmp_path: Path) -> None:
    asked: list[str] = []

    @ct.tool
    def search(query: str) -> str:
        """Search."""
        asked.append(query)
        return f"about {query}"

    path = tmp_path / "run.jsonl"
    first = ScriptedModel(call(query="x"), RuntimeError("gone"), strict=False)
    tools = ct.Pool.of(search)
    spec = ct.ModelSpec("lab/leader", lambda: first)
    broken = await ct.Orchestrator(spec, SerialCalls()).run("Who?", pool=tools, trace=path)
    assert broken.stop == "model"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[: next(i for i, line in enumerate(lines) if '"t":"result"' in line) + 1]))
    second = ScriptedModel(call("answer", text="Ada"))
    spec = ct.ModelSpec("lab/leader", lambda: second)
    run = await ct.Orchestrator(spec, SerialCalls()).resume(path, pool=tools)
    assert (run.answer, asked) == ("Ada", ["x"])
