"""Calls: the rules for values, names and counts, and the reading of what models write."""

from __future__ import annotations

import json
from typing import Any

import pytest
from concertino_bench import Submission, Task
from concertino_bench.graders import CallMatch
from concertino_bench.graders.call_match import Functions, trouble
from concertino_bench.graders.call_reading import MadeCall, read_calls, read_python_call

PROPERTIES = {
    "city": {"type": "string"},
    "days": {"type": "integer"},
    "price": {"type": "float"},
    "sure": {"type": "boolean"},
    "sizes": {"type": "array", "items": {"type": "integer"}},
    "where": {"type": "dict"},
    "any": {"type": "any"},
}
FUNCTIONS = [{"name": "trip.plan", "parameters": {"type": "dict", "properties": PROPERTIES}}]
KNOWN = Functions(FUNCTIONS)


def task(*gold: dict[str, Any], category: str = "parallel", functions: Any = FUNCTIONS) -> Task:
    metadata = {"ground_truth": [{"trip.plan": each} for each in gold], "functions": functions, "category": category}
    return Task("t", "?", (), "calls", metadata=metadata)


def call(name: str = "trip.plan", **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments, "status": "OK"}


@pytest.mark.parametrize(
    ("argument", "accepted", "value", "fits"),
    [
        ("city", ["New York, NY"], "new york NY", True),
        ("city", ["a-b/c_d*e^f."], "ABCDEF", True),
        ("city", ["Bern"], "Berne", False),
        ("city", ["it's"], 'it"s', True),
        ("city", ["5"], 5, False),
        ("days", [5], 5, True),
        ("days", [5], 5.0, False),
        ("days", [5], True, False),
        ("days", [1], True, False),
        ("days", [5], "5", False),
        ("price", [5.0], 5, True),
        ("price", [5], 5.0, True),
        ("price", [5.5], 5, False),
        ("sure", [True], True, True),
        ("sure", [True], 1, False),
        ("sure", [True], "true", False),
        ("sizes", [[1, 2]], [1, 2], True),
        ("sizes", [[1, 2]], [2, 1], False),
        ("sizes", [[1, 2]], [1.0, 2], False),
        ("sizes", [[1], [2]], [2], True),
        ("sizes", [[]], [], True),
        ("sizes", [["A b"]], ["ab"], True),
        ("sizes", [[1]], "[1]", False),
        ("sizes", [[1]], 1, False),
        ("where", [{"lat": [1, 2], "hint": ["x", ""]}], {"lat": 2}, True),
        ("where", [{"lat": [1, 2], "hint": ["x", ""]}], {"hint": "x"}, False),
        ("where", [{"lat": [1]}], {"lat": 1, "more": 1}, False),
        ("where", [{"in": [{"deep": ["a"]}]}], {"in": {"deep": "A"}}, True),
        ("any", [None], None, True),
        ("any", ["null"], None, False),
        ("any", [3], 3.0, False),
        ("any", [3.0], 3, True),
        ("city", ["dontcare"], "dontcare", True),
        ("days", ["a_variable"], "a_variable", True),
    ],
)
def test_values_are_compared_by_the_rules(argument: str, accepted: list[Any], value: Any, fits: bool) -> None:
    why = trouble(MadeCall("trip.plan", {argument: value}), "trip.plan", {argument: accepted}, KNOWN)
    assert (why == "") == fits, why


def test_what_may_be_left_out_may_and_nothing_else_and_nothing_more() -> None:
    accepted = {"city": ["Bern"], "days": [3, ""], "sizes": []}
    assert trouble(MadeCall("trip.plan", {"city": "Bern"}), "trip.plan", accepted, KNOWN) == ""
    assert trouble(MadeCall("trip.plan", {"city": "Bern", "sizes": []}), "trip.plan", accepted, KNOWN) == ""
    assert "city is missing" in trouble(MadeCall("trip.plan", {"days": 3}), "trip.plan", accepted, KNOWN)
    assert "more is not expected" in trouble(
        MadeCall("trip.plan", {"city": "Bern", "more": 1}), "trip.plan", accepted, KNOWN
    )


def test_source_code_of_java_will_do_in_its_categories_only() -> None:
    java = Functions(FUNCTIONS, java=True)
    for value, gold in (("5L", 5), ("2.5f", 2.5), ("true", True), ("[1, 2]", [1, 2])):
        made = MadeCall("trip.plan", {"any": value})
        assert trouble(made, "trip.plan", {"any": [gold]}, java) == ""
        assert trouble(made, "trip.plan", {"any": [gold]}, KNOWN) != ""


async def test_calls_match_one_to_one_in_any_order(no_bench: Any) -> None:
    asked = task({"city": ["Bern", "Rome"]}, {"city": ["Bern"]})
    for calls in ([call(city="Bern"), call(city="Rome")], [call(city="Rome"), call(city="Bern")]):
        assert (await CallMatch().grade(asked, Submission("", calls), no_bench)).verdict == "right"
    seen = await CallMatch().grade(asked, Submission("", [call(city="Rome"), call(city="Rome")]), no_bench)
    assert (seen.verdict, seen.marks) == ("wrong", (True, False))
    assert "1 of 2 calls are right; trip.plan: city is 'Rome', expected one of" in seen.reason
    same = task({"city": ["Bern"]}, {"city": ["Bern"]})
    assert (await CallMatch().grade(same, Submission("", [call(city="Bern")] * 2), no_bench)).verdict == "right"
    seen = await CallMatch().grade(same, Submission("", [call(city="Bern")] * 3), no_bench)
    assert seen.reason == "3 calls, expected 2"


@pytest.mark.parametrize("name", ["trip.plan", "trip_plan", "bfcl/trip.plan", "bfcl/trip_plan"])
async def test_a_name_may_have_underscores_for_dots_and_a_provider(name: str, no_bench: Any) -> None:
    seen = await CallMatch().grade(task({"city": ["Bern"]}), Submission("", [call(name, city="Bern")]), no_bench)
    assert seen.verdict == "right"


def test_two_names_that_differ_only_in_their_dots_are_told_apart_or_refused() -> None:
    known = Functions([{"name": "a.b_c"}, {"name": "a_b.c"}])
    assert (known.resolve("a.b_c"), known.resolve("a_b.c"), known.resolve("a_b_c")) == ("a.b_c", "a_b.c", None)


async def test_other_members_and_calls_that_were_not_understood_are_no_part_of_the_answer(no_bench: Any) -> None:
    broken = {"name": "trip.plan", "arguments": "{", "status": "PARSE_ERR"}
    asked = task({"city": ["Bern"]})
    done = Submission("", [broken, call("agents/critic", text="x"), call(city="Bern")])
    assert (await CallMatch().grade(asked, done, no_bench)).verdict == "right"
    seen = await CallMatch().grade(asked, Submission("", [broken]), no_bench)
    assert seen.verdict == "unparsable"
    assert "was not understood" in seen.reason
    nothing_fits = task(category="irrelevance")
    assert (await CallMatch().grade(nothing_fits, Submission("", [broken]), no_bench)).verdict == "wrong"
    assert (
        await CallMatch().grade(nothing_fits, Submission("No.", [call("agents/critic")]), no_bench)
    ).verdict == "right"


async def test_a_refusal_is_wrong_and_a_broken_call_or_silence_is_unparsable(no_bench: Any) -> None:
    asked = task({"city": ["Bern"]})
    verdicts = {
        text: (await CallMatch().grade(asked, Submission(text), no_bench)).verdict
        for text in ("Which city?", '{"name": "trip.plan", "arguments": {"city": Bern + 1}}', "")
    }
    assert list(verdicts.values()) == ["wrong", "unparsable", "unparsable"]


@pytest.mark.parametrize("status", ["EXEC_ERR", "TIMEOUT"])
async def test_a_call_that_was_not_carried_out_is_not_made(status: str, no_bench: Any) -> None:
    failed = {**call(city="Bern"), "status": status}
    asked, fits = task({"city": ["Bern"]}), task(category="live_relevance")
    seen = await CallMatch().grade(asked, Submission("It failed.", [failed]), no_bench)
    assert (seen.verdict, f"trip.plan was not carried out: {status}" in seen.reason) == ("unparsable", True)
    again = Submission("", [failed, call(city="Bern")])
    assert (await CallMatch().grade(asked, again, no_bench)).verdict == "right"
    assert (await CallMatch().grade(fits, Submission("", [failed]), no_bench)).verdict == "unparsable"
    assert (await CallMatch().grade(fits, again, no_bench)).verdict == "right"
    attempt = Submission("It failed.", [failed])
    assert (await CallMatch().grade(task(category="irrelevance"), attempt, no_bench)).verdict == "wrong"


@pytest.mark.parametrize(
    ("text", "stop", "verdict"),
    [
        ("", "answered", "unparsable"),
        (" \n", "", "unparsable"),
        ("I cannot do that.", "answered", "right"),
        ("Error 500: server overloaded", "model", "unparsable"),
        ("I cannot", "crashed", "unparsable"),
        ("Error 500: server overloaded", "answered", "right"),
        ("No.", "rounds", "right"),
    ],
)
async def test_silence_and_a_run_that_broke_off_are_no_refusal(
    text: str, stop: str, verdict: str, no_bench: Any
) -> None:
    seen = await CallMatch().grade(task(category="irrelevance"), Submission(text, stop=stop), no_bench)
    assert seen.verdict == verdict


def test_a_broken_task_is_found_before_anything_is_graded() -> None:
    for metadata in ({}, {"ground_truth": ["f()"]}, {"category": "irrelevance", "functions": [{}]}):
        with pytest.raises(ValueError, match=r"^t: "):
            CallMatch().check(Task("t", "?", (), "calls", metadata=metadata))
    CallMatch().check(task({"city": ["Bern"]}))
    CallMatch().check(task(category="irrelevance"))


async def test_a_task_without_gold_is_refused(no_bench: Any) -> None:
    with pytest.raises(ValueError, match="expected a list of accepted calls"):
        await CallMatch().grade(Task("t", "?", (), "calls"), Submission(""), no_bench)
    with pytest.raises(ValueError, match="in ground_truth"):
        await CallMatch().grade(
            Task("t", "?", (), "calls", metadata={"ground_truth": ["f()"]}), Submission(""), no_bench
        )


CALLS = [("f", {"a": 1}), ("g.h", {"b": "x"})]
JSON = [{"name": name, "arguments": arguments} for name, arguments in CALLS]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(JSON),
        f"```json\n{json.dumps(JSON)}\n```",
        "\n".join(map(json.dumps, JSON)),
        "".join(f"<tool_call>{json.dumps(each)}</tool_call>" for each in JSON),
        f"[TOOL_CALLS] {json.dumps(JSON)}",
        "Let me see. " + "; ".join(map(json.dumps, JSON)) + " Right?",
        '{"f": {"a": 1}, "g.h": {"b": "x"}}',
        json.dumps({"tool_calls": [{"function": {"name": n, "arguments": json.dumps(a)}} for n, a in CALLS]}),
        '<function=f>{"a": 1}</function> <function=g.h>{"b": "x"}</function>',
        "[f(a=1), g.h(b='x')]",
        "```python\nf(a=1)\ng.h(b='x')\n```",
        '["f(a=1)", "g.h(b=\'x\')"]',
        "f(1)\ng.h('x')",
        '- `f(a=1)`\n- `g.h(b="x")`',
        "[f(a=1), bad(a=b'z'), g.h(b='x')]",
        "{'name': 'f', 'arguments': {'a': 1}} {'name': 'g.h', 'arguments': {'b': 'x'}}",
        "<think>f(a=9)</think>[f(a=1), g.h(b='x')]",
    ],
)
def test_calls_are_read_from_every_common_form(text: str) -> None:
    seen = read_calls(text, {"f": ["a"], "g.h": ["b"]})
    assert [(each.name, dict(each.arguments)) for each in seen.calls] == CALLS, seen


def test_escaped_underscores_are_underscores() -> None:
    assert read_calls("get\\_it(a=1)", {"get_it": []}).calls == [MadeCall("get_it", {"a": 1})]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('<tool_call>{"name": "f", "arguments": {"a": 1}', ""),
        ("This is f(x) in prose.", ""),
        ('{"query": "x"}', ""),
        ("f(a=10-5)", "not a literal at column 4"),
        ("f(a=open('x'))", "not a literal"),
        ("f(a=1", "is not closed"),
        ("f(1, 2)", "2 positional arguments"),
        ("f(**{'a': 1})", "** or an argument twice"),
        ('{"name": "f", "arguments": {"a": 2 * 3.14}}', "the JSON at character 0 cannot be read"),
        ('{"name": "f"}', ""),
    ],
)
def test_no_call_is_made_up_and_what_cannot_be_read_is_told_with_its_place(text: str, why: str) -> None:
    seen = read_calls(text, {"f": ["a"]})
    assert seen.calls == []
    assert any(why in fault for fault in seen.faults) if why else True


def test_an_expression_is_never_run() -> None:
    with pytest.raises(ValueError, match="not a literal"):
        read_python_call("f(a=__import__('os').system('true'))", {})
    assert read_python_call("f(a=[1, -2.5, {'k': (True, None)}], b=true)", {}).arguments == {
        "a": [1, -2.5, {"k": [True, None]}],
        "b": True,
    }


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "trip.plan", "arguments": {"days": 1e999}}',
        '{"name": "trip.plan", "arguments": {"days": -1e400}}',
        '{"name": "trip.plan", "arguments": {"price": NaN}}',
        '{"name": "trip.plan", "arguments": {"sizes": [1, Infinity]}}',
        '{"name": "trip.plan", "arguments": "{\\"price\\": NaN}"}',
        '<function=trip.plan>{"price": Infinity}</function>',
        "trip.plan(price=1e999)",
        "[trip.plan(price=-1e999)]",
    ],
)
def test_a_number_that_is_not_finite_is_a_fault_and_no_argument(text: str) -> None:
    seen = read_calls(text, KNOWN.parameters)
    assert seen.calls == []
    assert len(seen.faults) == 1


@pytest.mark.parametrize("arguments", ['"in Bern for 3 days"', "[1, 2]", "7", '"[1]"', "true"])
def test_arguments_that_are_no_object_are_a_fault_that_names_the_call(arguments: str) -> None:
    good = '{"name": "trip.plan", "arguments": {"days": 2}}'
    seen = read_calls(f'{{"name": "trip.plan", "arguments": {arguments}}}\n{good}', KNOWN.parameters)
    assert [call.arguments for call in seen.calls] == [{"days": 2}]
    assert "trip.plan" in seen.faults[0]
    assert "expected an object" in seen.faults[0]
