"""References in the arguments of calls: what they stand for, what is none, and that runs, copies and replays agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.core.events import Planned
from concertino.strategies import Act, Done, Machine, Strategy, TaskContext
from concertino.strategies.base.references import (
    MOST_CHARACTERS,
    Sources,
    UnknownReference,
    fill,
    fill_call,
    fill_text,
)
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino.strategies.parallel_rounds.format import write_round
from concertino.strategies.serial_calls import SerialCalls
from concertino.strategies.serial_calls.format import write_turn
from concertino.testing import ScriptedModel
from hypothesis import given
from hypothesis import strategies as st
from linear import assert_linear

from .graph_texts import TEXT, tool
from .machine_checks import check_every_point, cut_after

QUESTION = "Solve both.\n\nFirst: 2 + 2.\nShow it.\n \n\nSecond: ${question}"
SOURCES = Sources(QUESTION, {"1.1": "four", "1.2": "${1.1}"})
SEARCH = tool("search", {"query": TEXT}, "query")
FINAL = write_round("Done.", [("final_answer", {})])

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


# -- what a reference stands for ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("${question}", QUESTION),
        ("${question.1}", "Solve both."),
        ("a ${question.2} b", "a First: 2 + 2.\nShow it. b"),
        ("${1.1} and ${1.1}", "four and four"),
        ("$${question}", "${question}"),
        ("$$${1.1}", "$${1.1}"),
        ("$ { ${1.1} } $", "$ { four } $"),
    ],
)
def test_a_reference_stands_for_the_question_a_paragraph_or_a_result(text: str, filled: str) -> None:
    assert fill({"query": text}, SOURCES) == {"query": filled}


def test_what_a_reference_brings_in_is_not_read_again() -> None:
    assert fill("${question.3} / ${1.2}", SOURCES) == "Second: ${question} / ${1.1}"


def test_texts_at_any_depth_are_filled_and_keys_are_not() -> None:
    data = {"${1.1}": ["${1.1}", {"deep": ["x${1.1}"]}, 3, None]}
    assert fill(data, SOURCES) == {"${1.1}": ["four", {"deep": ["xfour"]}, 3, None]}


@given(json_values.filter(lambda value: "${" not in json.dumps(value)))
def test_arguments_without_a_reference_are_the_very_same(value: Any) -> None:
    assert fill(value, SOURCES) is value


@given(st.text(), st.text(alphabet="${}1.q\n"))
def test_an_escaped_text_is_filled_to_itself(plain: str, signs: str) -> None:
    text = plain + signs
    assert fill(text.replace("${", "$${"), SOURCES) == text


@given(st.text(), st.text(), st.text())
def test_one_pass_puts_any_result_between_what_stands_around_it(before: str, result: str, behind: str) -> None:
    around = [part.replace("$", "") for part in (before, behind)]
    assert fill(f"{around[0]}${{1.1}}{around[1]}", Sources("", {"1.1": result})) == result.join(around)


@given(st.text(alphabet="ab \n\t", max_size=40))
def test_the_paragraphs_of_a_question_hold_all_its_words_in_order(question: str) -> None:
    paragraphs = Sources(question).paragraphs
    assert " ".join(paragraphs).split() == question.split()
    assert all(part.strip() and "\n\n" not in part for part in paragraphs)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "${2.1}",
            r"\$\{2\.1\} refers to nothing; there are question, question\.1 to question\.3, 1\.1, 1\.2; write \$",
        ),
        ("${question.4}", "question.1 to question.3"),
        ("${question.0}", "refers to nothing"),
        ("${question.²}", "refers to nothing"),
        ("${}", "refers to nothing"),
        ("ab ${1.1", "at character 3 of an argument is not closed"),
        ("${" + "x" * 99 + "}", "refers to nothing"),
    ],
)
def test_a_reference_to_nothing_says_what_there_is(text: str, words: str) -> None:
    with pytest.raises(UnknownReference, match=words) as caught:
        fill(text, SOURCES)
    assert len(str(caught.value)) <= 200


def test_of_many_results_the_newest_are_named() -> None:
    many = Sources("One.", {f"{number}.1": "" for number in range(1, 30)})
    with pytest.raises(UnknownReference, match=r"question\.1, …, 24\.1, 25\.1, 26\.1, 27\.1, 28\.1, 29\.1;") as caught:
        fill("${0.1}", many)
    assert len(str(caught.value)) <= 200


def test_references_cannot_grow_without_bound() -> None:
    big = Sources("x" * (MOST_CHARACTERS // 4))
    assert len(fill(["${question}" * 2, "${question}" * 2], big)[0]) == MOST_CHARACTERS // 2
    with pytest.raises(UnknownReference, match="more than 1,000,000 characters"):
        fill(["${question}" * 2, "${question}" * 3], big)


@pytest.mark.parametrize("piece", ["${", "$${", "${1.1", "${}", "\n \n", "$"])
def test_a_megabyte_of_signs_is_filled_in_linear_time(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    call = ct.Call("f", {"text": text, "more": "${question.1}"})
    assert_linear(lambda: fill_call(call, Sources(text)), len(text))
    filled = fill_call(call, Sources(text))
    assert filled.arguments or filled.error


def test_the_raw_json_of_a_native_call_is_read_before_it_is_filled() -> None:
    sources = Sources('say "hi"\n\\')
    call = fill_call(ct.Call("f", '{"text": "${question}",}'), sources)
    assert call.arguments == {"text": 'say "hi"\n\\'}
    assert call.repairs
    for left in ('{"text": "$"}', '{"text": ${question}', "${"):
        assert fill_call(ct.Call("f", left), sources) == ct.Call("f", left)


# -- in a round --------------------------------------------------------------------------------------------------------


def asks(*queries: str) -> ct.Reply:
    return ct.Reply(write_round("Look.", [("search", {"query": query}) for query in queries]))


def seen(call_id: str, content: Any) -> ct.Observation:
    return ct.Observation(call_id, "search", ct.Status.OK, content)


def failed(call_id: str) -> ct.Observation:
    error = ct.ErrorInfo("raised", "it broke")
    return ct.Observation(call_id, "search", ct.Status.EXEC_ERR, "half", error)


def begin(strategy: Strategy, *script: Any) -> Machine:
    machine = strategy.begin(TaskContext(QUESTION, [SEARCH]))
    for item in script:
        machine.observe(item) if isinstance(item, list) else machine.on_reply(item)
    return machine


def queries(machine: Machine) -> list[Any]:
    step = machine.step()
    assert isinstance(step, Act)
    return [call.arguments["query"] for call in step.plan.calls]  # type: ignore[index]


def errors(machine: Machine) -> list[str | None]:
    step = machine.step()
    assert isinstance(step, Act)
    return [call.error and call.error[0] for call in step.plan.calls]


QUOTING = ParallelRounds(references=True)
FIRST = [asks("a", "b", "c"), [seen("1.1", "one"), failed("1.2"), seen("1.3", {"n": [3]})]]


def test_results_of_earlier_rounds_are_referred_to_by_round_and_place() -> None:
    machine = begin(QUOTING, *FIRST, asks("x ${1.1} ${1.3}"), [seen("2.1", "two")], asks("${2.1}${1.1}"))
    assert queries(machine) == ["twoone"]
    assert queries(begin(QUOTING, *FIRST, asks("x ${1.1} ${1.3}"))) == ['x one {"n": [3]}']


def test_a_result_is_referred_to_whole_however_briefly_it_is_shown() -> None:
    long = "many words " * 999
    strategy = ParallelRounds(references=True, observation_tokens=40, prompt="brief", history_tokens=400)
    machine = begin(strategy, asks("a"), [seen("1.1", long)], *[asks("b"), [seen("9", "x" * 900)]] * 4, asks("${1.1}"))
    assert queries(machine) == [long]


@pytest.mark.parametrize("name", ["1.2", "1.4", "2.1", "7.1", "search"])
def test_a_reference_to_what_failed_or_is_not_there_stops_its_call_alone(name: str) -> None:
    machine = begin(QUOTING, *FIRST, asks("fine ${1.1}", f"${{{name}}}"))
    assert errors(machine) == [None, "invalid_arguments"]
    assert queries(machine) == ["fine one", f"${{{name}}}"]


def test_an_unknown_reference_is_observed_as_a_parse_error_and_its_sibling_runs() -> None:
    with ScriptedModel(asks("${question.1}", "${9.9}").text, FINAL, "<answer>1</answer>") as model:
        run = ct.Orchestrator(model, QUOTING).run_sync(QUESTION, pool=POOL)
    first, second = run.observations
    assert (first.status, first.content) == (ct.Status.OK, "Solve both.")
    assert (second.status, second.attempts) == (ct.Status.PARSE_ERR, 0)
    assert second.error is not None
    assert second.error.message.startswith("${9.9} refers to nothing; there are question, question.1 to question.3;")


def test_without_the_setting_a_reference_is_text() -> None:
    for strategy in (ParallelRounds(), SerialCalls()):
        machine = begin(strategy, asks("${question} $${ ${7.7} ${"))
        assert queries(machine) == ["${question} $${ ${7.7} ${"]
        assert machine.dump()["results"] == {}


def test_a_call_that_begins_early_is_the_call_of_the_finished_plan() -> None:
    machine = begin(QUOTING, *FIRST)
    text = asks("${1.1}", "${5.5}", "$${", "${question}").text
    early = {call.id: call for end in range(len(text)) for call in machine.complete_calls(text[:end])}
    assert set(early) == {"1", "2", "3"}  # the closing tag of the last one is cut off
    whole = machine.complete_calls(text)
    machine.on_reply(ct.Reply(text))
    step = machine.step()
    assert isinstance(step, Act)
    assert list(step.plan.calls) == whole
    assert [step.plan.calls[int(name) - 1] for name in early] == list(early.values())


@pytest.mark.parametrize("prompt", ["full", "brief"])
def test_a_copy_made_at_any_point_refers_to_the_same(prompt: Any) -> None:
    script = [
        *FIRST,
        asks("${1.1}", "${1.2}"),
        [seen("2.1", "x"), failed("2.2")],
        asks("${2.1}${1.3}"),
        [seen("3.1", "y")],
        ct.Reply(FINAL),
        ct.Reply("<answer>1</answer>"),
    ]
    for strategy in (
        ParallelRounds(references=True, prompt=prompt),
        ParallelRounds(references=True, prompt=prompt, history_tokens=400),
    ):
        check_every_point(strategy, TaskContext(QUESTION, [SEARCH], remaining={"units": 2}), script)


def test_native_calls_can_refer() -> None:
    native = ct.Reply("", (ct.ToolCall("search", json.dumps({"query": "${question.1}"}), "n1"),))
    assert queries(begin(ParallelRounds(references=True, native=True), native)) == ["Solve both."]
    assert queries(begin(SerialCalls(references=True, native=True), native)) == ["Solve both."]


# -- one call a turn ---------------------------------------------------------------------------------------------------


def turn(name: str = "search", **arguments: Any) -> ct.Reply:
    return ct.Reply(write_turn("Look.", name, arguments))


def test_a_turn_refers_to_the_results_of_earlier_turns() -> None:
    script = [turn(query="${question.2}"), [seen("1.1", "one")], turn(query="${1.1}!")]
    assert queries(begin(SerialCalls(references=True), *script)) == ["one!"]


def test_an_answer_can_be_referred_to() -> None:
    machine = begin(
        SerialCalls(references=True), turn(query="q"), [seen("1.1", "\\boxed{4}")], turn("answer", text="${1.1}")
    )
    assert machine.step() == Done("\\boxed{4}", "answered")


def test_an_answer_that_refers_to_nothing_is_handed_back() -> None:
    machine = begin(SerialCalls(references=True), turn("answer", text="${1.1}"))
    assert errors(machine) == ["invalid_arguments"]


def test_a_copy_of_a_chat_made_at_any_point_refers_to_the_same() -> None:
    script = [
        turn(query="${question}"),
        [seen("1.1", "one")],
        turn(query="${1.1} ${1.2}"),
        [failed("2.1")],
        turn("answer", text="${1.1}"),
    ]
    for prompt in ("full", "brief"):
        strategy = SerialCalls(references=True, prompt=prompt)  # type: ignore[arg-type]
        check_every_point(strategy, TaskContext(QUESTION, [SEARCH]), script)


def test_the_released_form_has_no_references() -> None:
    with pytest.raises(ct.UsageError, match=r"SerialCalls\(form='qa', references=True\)"):
        SerialCalls(form="qa", references=True)


# -- in runs -----------------------------------------------------------------------------------------------------------


@ct.tool
async def search(query: str) -> str:
    """Say it back."""
    return query


POOL = ct.Pool.of(search)
ROUNDS = (asks("${question.1}", "b").text, asks("${1.1} ${1.2}", "${1.9}").text, FINAL, "<answer>1</answer>")
TURNS = (turn(query="${question.1}").text, turn(query="${1.1}${question.2}").text, turn("answer", text="1").text)
CASES: dict[str, tuple[Strategy, tuple[str, ...]]] = {
    "rounds": (QUOTING, ROUNDS),
    "rounds-brief": (ParallelRounds(references=True, prompt="brief"), ROUNDS),
    "turns": (SerialCalls(references=True), TURNS),
}


def led(strategy: Strategy, *turns: str, eager: bool = False) -> ct.Orchestrator:
    return ct.Orchestrator(ct.ModelSpec("m/lead", lambda: ScriptedModel(*turns)), strategy, eager=eager)


def planned(run: ct.Run) -> list[Any]:
    return [event.plan.to_json() for event in run.events if isinstance(event, Planned)]


@pytest.mark.parametrize("case", CASES)
async def test_the_recorded_plan_holds_what_the_references_stand_for(case: str, tmp_path: Path) -> None:
    strategy, turns = CASES[case]
    run = await led(strategy, *turns).run(QUESTION, pool=POOL, trace=tmp_path)
    assert planned(run)[0][0]["arguments"] == {"query": "Solve both."}
    assert planned(run)[1][0]["arguments"]["query"].startswith("Solve both.")
    assert ct.replay(ct.Trace.load(str(run.path))) == Done("1", "answered")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("kind", "count"), [("reply", 1), ("plan", 1), ("result", 1), ("reply", 2), ("plan", 2)])
async def test_a_run_interrupted_anywhere_refers_to_the_same_when_it_goes_on(
    case: str, kind: str, count: int, tmp_path: Path
) -> None:
    strategy, turns = CASES[case]
    run = await led(strategy, *turns).run(QUESTION, pool=POOL, trace=tmp_path)
    path = cut_after(Path(str(run.path)), kind, count)
    resumed = await led(strategy, *turns[len(ct.Trace.load(path).replies()) :]).resume(path, pool=POOL)
    assert (resumed.answer, resumed.stop) == ("1", "answered")
    assert planned(resumed) == planned(run)
    assert [each.content for each in resumed.observations] == [each.content for each in run.observations]


async def test_calls_that_begin_early_are_not_made_twice(tmp_path: Path) -> None:
    eager = await led(QUOTING, *ROUNDS, eager=True).run(QUESTION, pool=POOL)
    plain = await led(QUOTING, *ROUNDS).run(QUESTION, pool=POOL)
    assert planned(eager) == planned(plain)
    assert [each.attempts for each in eager.observations] == [1, 1, 1, 0]
    assert [each.content for each in eager.observations] == [each.content for each in plain.observations]


def test_an_answer_refers_to_results_and_one_that_refers_to_nothing_stays_as_it_is() -> None:
    sources = Sources("Q", {"1.1": "14"})
    assert fill_text("\\boxed{${1.1}}", sources) == "\\boxed{14}"
    assert fill_text("${1.1} and ${9.9}", sources) == "${1.1} and ${9.9}"
