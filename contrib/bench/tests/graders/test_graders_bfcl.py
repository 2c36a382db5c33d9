"""BFCL's published verdicts: what each dialect takes, what the rules say, and the grader that joins them."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

import pytest
from concertino_bench import Submission, Task
from concertino_bench.graders import CallMatch, OfficialCallMatch
from concertino_bench.graders.bfcl_dialects import DIALECTS, dialect_of, read_dialect
from concertino_bench.graders.bfcl_rules import fault
from concertino_bench.graders.bfcl_source import read_source_call, source_value

PROPERTIES = {
    "city": {"type": "string"},
    "days": {"type": "integer"},
    "price": {"type": "float"},
    "sure": {"type": "boolean"},
    "sizes": {"type": "array", "items": {"type": "float"}},
    "names": {"type": "array", "items": {"type": "string"}},
    "pair": {"type": "tuple", "items": {"type": "integer"}},
    "where": {"type": "dict"},
    "stops": {"type": "array", "items": {"type": "dict"}},
    "any": {"type": "any"},
}
FUNCTIONS = [
    {"name": "trip.plan", "parameters": {"type": "dict", "properties": PROPERTIES, "required": ["city"]}},
    {"name": "trip.list", "parameters": {"type": "dict", "properties": {}, "required": []}},
]
NOTHING: Any = None  # these graders ask nothing of the pool
GOLD = [{"trip.plan": {"city": ["Bern"], "days": ["", 5]}}]
WANTED = [{"trip.plan": {"city": "Bern", "days": 5}}]


def task(gold: Any = GOLD, category: str = "simple_python", functions: Any = FUNCTIONS, **more: Any) -> Task:
    metadata = {"ground_truth": gold, "functions": functions, "category": category, **more}
    return Task("t", "?", (), "calls", metadata=metadata)


def why(calls: list[Any], gold: Any = GOLD, category: str = "simple_python") -> str:
    return fault(calls, gold, FUNCTIONS, category, False)


# -- dialects ----------------------------------------------------------------------------------------------------------

BARE = "trip.plan(city='Bern', days=5)"
LISTED = f"[{BARE}]"
NAMED = '{"name": "trip.plan", "arguments": {"city": "Bern", "days": 5}}'


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("python", LISTED),
        ("prompted", LISTED),
        ("prompted", BARE),
        ("prompted", f"```\n{LISTED}\n```"),
        ("prompted", f"\n\n {BARE} \n"),
        ("brackets", f" {BARE}"),
        ("escaped", BARE),
        ("one-line", LISTED.replace(", ", ",\n")),
        ("added-brackets", BARE),
        ("unquoted", "['trip.plan(city=\"Bern\", days=5)']"),
        ("outermost", f"Here you are:\n```python\n{LISTED}\n```\nDone."),
        ("fenced", f"```python\n        {LISTED}\n        ```\nand more"),
        ("semicolons", f"{BARE};"),
        ("databricks", "['trip.plan(city=\"Bern\", days=5)']"),
        ("hermes", f"I call it.\n<tool_call>\n{NAMED}\n</tool_call>\n"),
        ("hermes", "<tool_call>\n" + NAMED.replace('"', "'") + "\n</tool_call>"),
        ("qwen", f"<tool_call>\n{NAMED}\n</tool_call>"),
        ("granite", f"<function_call> {NAMED}"),
        ("glm", 'trip.plan\n{"city": "Bern", "days": 5}'),
        ("xlam", f'{{"tool_calls": [{NAMED}]}}'),
        ("native", '[{"trip.plan": "{\\"city\\": \\"Bern\\", \\"days\\": 5}"}]'),
    ],
)
def test_each_dialect_reads_its_own_way_of_writing(dialect: str, text: str) -> None:
    assert read_dialect(text, dialect, "python") == WANTED


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("python", BARE),
        ("python", f"```{LISTED}```"),
        ("python", f" {LISTED}"),
        ("python", "[trip.list()]"),
        ("prompted", f"```python\n{LISTED}\n```"),
        ("prompted", f"Here it is: {LISTED}"),
        ("prompted", "[1, 2]"),
        ("prompted", f"['{BARE}']"),
        ("brackets", f"```{LISTED}```"),
        ("fenced", LISTED),
        ("semicolons", "out_of_domain(user_query='x')"),
        ("granite", '<function_call> {"name": "no_function"}'),
        ("granite", "no JSON"),
        ("glm", "I cannot help."),
        ("hermes", "<tool_call>\n{not JSON}\n</tool_call>"),
        ("native", "I cannot help."),
    ],
)
def test_a_dialect_takes_nothing_but_its_own_way_of_writing(dialect: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_dialect(text, dialect, "python")


@pytest.mark.parametrize(
    "text",
    [
        LISTED,
        f"<tool_call>\n{NAMED}\n</tool_call>",
        f"<function_call> {NAMED}",
        'trip.plan\n{"city": "Bern", "days": 5}',
        f'\n{{"tool_calls": [{NAMED}]}}',
        '[{"trip.plan": "{\\"city\\": \\"Bern\\", \\"days\\": 5}"}]',
    ],
)
def test_auto_takes_the_dialect_that_a_text_looks_like(text: str) -> None:
    assert read_dialect(text, "auto", "python") == WANTED


def test_calls_of_a_model_with_native_calls_may_come_as_data() -> None:
    assert read_dialect([{"trip.plan": '{"city": "Bern", "days": 5}'}], "native", "python") == WANTED


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("Bern", "Bern"),
        ("-5", -5),
        ("+5", -5),
        ("not True", -1),
        ("2 * 3 + 1", 7),
        ("7 / 2", 3.5),
        ("'a' + 'b'", "ab"),
        ("(1, 2)", (1, 2)),
        ("{'a': [1]}", {"a": [1]}),
        ("f(1)", "f(1)"),
        ("f(a=1)", {"f": {"a": 1}}),
        ("items[0]", "items[0]"),
        ("...", "..."),
        ("None", None),
    ],
)
def test_values_are_read_as_the_published_reader_reads_them(written: str, value: Any) -> None:
    (call,) = read_dialect(f"[f(x={written})]", "prompted", "python")
    assert call == {"f": {"x": value}}
    assert type(call["f"]["x"]) is type(value)


@pytest.mark.parametrize(
    "written",
    [
        "a.b",
        "lambda: 1",
        "2 * x",
        "len('abc') + 1",
        "1 / 0",
        "9**9**9",
        "9.0**9999",
        "'a' * 10**9",
        "[0] * 10**9",
        "10**3000 * 10**3000",
        "1e999999 * 10**5000",
        "x" * 500_000,
        "(" * 3000 + ")" * 3000,
        "-" * 100_000 + "1",
    ],
)
def test_what_cannot_be_worked_out_from_literals_is_no_call_and_costs_nothing(written: str) -> None:
    began = time.process_time()
    with pytest.raises(ValueError, match=r"\w"):
        read_dialect(f"[f(x={written})]", "prompted", "python")
    assert time.process_time() - began < 5


HOSTILE = [
    "[",
    "(",
    "{",
    "'",
    '"',
    "`",
    "```[",
    "<tool_call>\n",
    "new a<",
    "new a(",
    "new HashMap<",
    "f(",
    "a.",
    "\\",
    "/",
    "-",
]
HOSTILE += ["[f(x=" + part for part in (" ", "new a<", "new a(", "new HashMap<", "[", "/x", "'a',", "a:", "a, ")]


@pytest.mark.slow
@pytest.mark.parametrize("language", ["python", "java", "javascript"])
@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_costs_no_dialect_more_than_seconds(text: str, language: str) -> None:
    head, piece = (text[:5], text[5:]) if text.startswith("[f(x=") else ("", text)
    long = head + piece * (60_000 // len(piece))
    began = time.process_time()
    for dialect in ["auto", *DIALECTS]:
        with contextlib.suppress(ValueError):
            for call in read_dialect(f"{long})]", dialect, language):
                for value in next(iter(call.values())).values():
                    for kind in ("ArrayList", "HashMap", "array", "dict") if language != "python" else ():
                        source_value(value, kind, "", language)
    # All 18 together: a quadratic one alone takes longer.
    assert time.process_time() - began < 10


def test_escaped_underscores_are_read_by_their_dialect_alone() -> None:
    text = "[trip\\_plan(city='Bern')]"
    assert read_dialect(text, "escaped", "python") == [{"trip_plan": {"city": "Bern"}}]
    with pytest.raises(ValueError, match="unexpected character"):
        read_dialect(text, "prompted", "python")


def test_an_unknown_dialect_names_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"dialect='gpt'; expected auto, native, prompted, python"):
        OfficialCallMatch("gpt")


def test_the_models_of_2024_have_the_dialect_of_their_handler() -> None:
    models = {
        "gpt-4-0613": "python",
        "gpt-4-0613-FC": "native",
        "mistral-large-2407-FC-Any": "native",
        "open-mixtral-8x7b": "escaped",
        "THUDM_glm-4-9b-chat": "glm",
        "google_gemma-7b-it": "outermost",
        "NousResearch/Hermes-2-Pro-Mistral-7B": "hermes",
        "a-model-of-next-year": "auto",
    }
    assert {model: dialect_of(model) for model in models} == models
    assert set(models.values()) <= {"auto", *DIALECTS}
    assert OfficialCallMatch.of("gpt-4-0613-FC").dialect == "native"


# -- rules -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "accepted", "value", "fits"),
    [
        ("city", ["New York, NY"], "new york NY", True),
        ("city", ["it's"], 'it"s', True),
        ("city", ["a b"], "a\tb", False),
        ("city", ["5"], 5, False),
        ("city", [5], "5", False),
        ("days", [5], 5, True),
        ("days", [5], 5.0, False),
        ("days", [1], True, False),
        ("days", [0.85], 0.85, True),
        ("days", ["n"], "n", True),
        ("days", ["n"], "N", False),
        ("price", [5.0], 5, True),
        ("price", [5.5], 5, False),
        ("sure", [True], 1, False),
        ("sizes", [[1.0, 2.0]], [1.0, 2.0], True),
        ("sizes", [[1.0, 2.0]], [1, 2.0], False),
        ("sizes", [[1.0, 2.0], ""], [1, 2.0], True),
        ("sizes", [[1, 2]], [1, 2], True),
        ("sizes", [[1.0]], (1.0,), False),
        ("sizes", [[1.0], ""], [], True),
        ("names", [["A b", "c"]], ["ab", "C"], True),
        ("names", [["a", "b"]], ["b", "a"], False),
        ("pair", [[1, 2]], (1, 2), True),
        ("where", [{"a": ["X y"], "b": ["", 1]}], {"a": "xY"}, True),
        ("where", [{"a": ["x"]}], {"a": "x", "c": 1}, False),
        ("where", [{"a": ["x"]}], {}, False),
        ("where", [{"a": "x"}], {}, True),
        ("stops", [[{"a": ["x"]}, {"a": ["y"]}]], [{"a": "x"}, {"a": "y"}], True),
        ("stops", [[{"a": ["x"]}, {"a": ["y"]}]], [{"a": "y"}, {"a": "x"}], False),
        ("any", ["x"], "X", True),
        ("any", [5], 5, True),
    ],
)
def test_values_are_right_as_the_published_checker_says(
    argument: str, accepted: list[Any], value: Any, fits: bool
) -> None:
    given = {"city": "Bern"} | {argument: value}
    gold = [{"trip.plan": {"city": ["Bern"]} | {argument: accepted}}]
    assert (why([{"trip.plan": given}], gold) == "") is fits


@pytest.mark.parametrize(
    ("calls", "reason"),
    [
        ([], "0 calls, expected 1"),
        (WANTED * 2, "2 calls, expected 1"),
        ([{"trip_plan": {"city": "Bern"}}], "trip_plan is called, expected trip.plan"),
        ([{"trip.plan": {"days": 5}}], "trip.plan: city is missing, and is required"),
        ([{"trip.plan": {"city": "Bern", "price": 1.0}}], "trip.plan: price is not expected"),
        ([{"trip.plan": {"city": "Bern", None: 1}}], "trip.plan: None is not expected"),
        ([{"trip.plan": {"city": "Basel"}}], "trip.plan: city is 'Basel', expected one of ['Bern']"),
        ([{"trip.plan": {"city": 5}}], "trip.plan: city is 5, expected the type string"),
    ],
)
def test_a_wrong_call_has_its_reason(calls: list[Any], reason: str) -> None:
    assert why(calls) == reason


def test_a_required_argument_must_be_given_though_the_gold_lets_it_out() -> None:
    gold = [{"trip.plan": {"city": ["Bern", ""]}}]
    assert why([{"trip.plan": {}}], gold) == "trip.plan: city is missing, and is required"


def test_of_several_calls_the_first_that_fits_is_taken_and_no_better_pairing_is_sought() -> None:
    gold = [{"trip.plan": {"city": ["a", "b"]}}, {"trip.plan": {"city": ["a"]}}]
    first, second = {"trip.plan": {"city": "a"}}, {"trip.plan": {"city": "b"}}
    assert why([second, first], gold, "parallel") == ""
    assert "expected one of ['a']" in why([first, second], gold, "parallel")


def test_names_are_taken_with_dots_with_underscores_or_with_both() -> None:
    dotted, short = WANTED, [{"trip_plan": {"city": "Bern"}}]
    verdicts = [
        [not fault(calls, GOLD, FUNCTIONS, "multiple", how) for calls in (dotted, short)] for how in (False, True, None)
    ]
    assert verdicts == [[True, False], [False, True], [True, True]]


# -- Java and JavaScript -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "inner", "value"),
    [
        ("5", "integer", "", 5),
        ("5L", "long", "", 5),
        ("5", "long", "", "5"),
        ("1.5f", "float", "", 1.5),
        ("1.5", "float", "", "1.5"),
        ("true", "boolean", "", True),
        ("x", "String", "", "x"),
        ('new ArrayList<>(Arrays.asList("a", "b"))', "ArrayList", "String", ["a", "b"]),
        ("new ArrayList<Integer>() {{ add(1); add(2); }}", "ArrayList", "integer", [1, 2]),
        ("new ArrayList<>()", "ArrayList", "String", []),
        ("list", "ArrayList", "String", "list"),
        ("new int[]{1, 2}", "Array", "integer", [1, 2]),
        ('new HashMap<String, Object>() {{ put("a", 1L); }}', "HashMap", "", {"a": 1}),
        ("9" * 100_000, "integer", "", "9" * 100_000),
    ],
)
def test_values_of_java_are_read_by_their_type(text: str, kind: str, inner: str, value: Any) -> None:
    assert source_value(text, kind, inner, "java") == value


@pytest.mark.parametrize(
    ("text", "kind", "inner", "value"),
    [
        ("5n", "Bigint", "", 5),
        ("1.5", "float", "", 1.5),
        ("'a'", "String", "", "a"),
        ("[1, 'two', true]", "array", "", [1, "two", True]),
        ("[1, 2]", "array", "integer", [1, 2]),
        ("new Array(1, 2)", "array", "", [1, 2]),
        ("[[1, 2], [3]]", "array", "array", [[1, 2], [3]]),
        ("[]", "array", "", []),
        ("x", "array", "", "x"),
        ("{a: 1, 'b': \"c\", d: true}", "dict", "", {"a": 1, "b": "c", "d": True}),
        ("{}", "dict", "", {}),
    ],
)
def test_values_of_javascript_are_read_by_their_type(text: str, kind: str, inner: str, value: Any) -> None:
    assert source_value(text, kind, inner, "javascript") == value


def test_a_call_of_java_keeps_its_arguments_as_source() -> None:
    values = 'name="x, y", list=new ArrayList<>(Arrays.asList("a", "b"))'
    text = f'A.b({values}, map=new HashMap<String, X>() {{{{ put("k", 1); }}}})'
    given = {"name": "x, y", "list": 'new ArrayList<>(Arrays.asList("a", "b"))', "map": "new HashMap<String,X>()"}
    assert read_source_call(text, "java") == [{"A.b": given}]
    assert read_source_call("f(x=/a b/g, y=[1, 2])", "javascript") == [{"f": {"x": "/a b/g", "y": "[1, 2]"}}]


@pytest.mark.parametrize(
    "text",
    [
        "f(a=1",
        "f(a='x)",
        "f(a=1))",
        "f(a=LED TV)",
        "f(a=/usr/local)",
        "f(a=1.2.3)",
        "f(a=x@y.z)",
        "f(a=1, a=2)",
        "f(a=a:b)",
    ],
)
def test_what_java_could_not_parse_is_no_call(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_source_call(text, "java")


def test_java_is_judged_by_the_values_of_its_source() -> None:
    functions = [{"name": "f", "parameters": {"properties": {"n": {"type": "long"}}, "required": ["n"]}}]
    gold = [{"f": {"n": [5]}}]
    verdicts = [fault([{"f": {"n": value}}], gold, functions, "simple_java", False) == "" for value in ("5L", "5", 5)]
    assert verdicts == [True, False, False]


# -- the grader --------------------------------------------------------------------------------------------------------


async def grade(each: Task, text: str = "", dialect: str = "auto", **more: Any) -> tuple[str, str]:
    submission = Submission(text, **more)
    found = await OfficialCallMatch(dialect).grade(each, submission, NOTHING)
    return found.verdict.value, found.reason


async def test_the_text_is_read_in_the_dialect_of_the_grader_or_of_the_task() -> None:
    fenced = f"```python\n{LISTED}\n```"
    assert (await grade(task(), LISTED))[0] == "right"
    assert (await grade(task(), fenced))[0] == "unparsable"
    assert (await grade(task(), fenced, "outermost"))[0] == "right"
    assert (await grade(task(dialect="outermost"), fenced))[0] == "right"
    own = await CallMatch().grade(task(), Submission(fenced), NOTHING)
    assert own.verdict == "right", "our own grader is kinder to how a call is written"


async def test_calls_that_a_run_made_go_before_its_text() -> None:
    made = {"name": "toy/trip_plan", "arguments": {"city": "Bern"}, "status": "OK"}
    other = {"name": "code/python", "arguments": {}, "status": "OK"}
    assert (await grade(task(), "done", calls=[other, made]))[0] == "right"
    unknown = {"name": "trip.cancel", "arguments": {}, "status": "PARSE_ERR"}
    assert await grade(task(), LISTED, calls=[made, unknown]) == ("wrong", "2 calls, expected 1")


@pytest.mark.parametrize(
    ("category", "text", "right"),
    [
        ("irrelevance", "I cannot do that.", True),
        ("irrelevance", "[]", True),
        ("live_irrelevance", LISTED, False),
        ("live_irrelevance", "[trip.list()]", False),
        ("live_relevance", LISTED, True),
        ("live_relevance", "I cannot do that.", False),
    ],
)
async def test_relevance_asks_only_whether_a_call_can_be_read(category: str, text: str, right: bool) -> None:
    assert (await grade(task(None, category), text))[0] == ("right" if right else "wrong")


@pytest.mark.parametrize(
    ("text", "verdict"),
    [("It is Zhang Yi-ming (2025).", "right"), ("Yimingo", "wrong"), ("YIMING!", "right"), (" ", "unparsable")],
)
async def test_memory_and_web_search_ask_for_a_mention(text: str, verdict: str) -> None:
    each = Task("t", "?", ("zhang yiming",), "mention", metadata={"category": "web_search", "aliases": ["Yiming"]})
    assert (await grade(each, text))[0] == verdict


def test_multi_turn_and_broken_gold_are_refused_before_a_run() -> None:
    with pytest.raises(ValueError, match="compares states and answers; use the grader `call-states`"):
        OfficialCallMatch().check(task([["f()"]], "multi_turn_base"))
    with pytest.raises(ValueError, match=r"t: ground_truth is .*; expected \[\{name: \{argument: values\}\}\]"):
        OfficialCallMatch().check(task(["f()"]))


async def test_own_grading_takes_the_gold_where_it_breaks_its_schema() -> None:
    each = task([{"trip.plan": {"city": ["Bern"], "days": [0.85]}}])
    text = json.dumps({"name": "trip.plan", "arguments": {"city": "Bern", "days": 0.85}})
    found = await CallMatch().grade(each, Submission(text), NOTHING)
    assert found.verdict == "right"


CATEGORIES = (
    "simple_python multiple parallel parallel_multiple live_simple live_multiple live_parallel live_parallel_multiple"
)


def _given(accepted: Any) -> Any:
    """Arguments of the gold, each with its first value."""
    first = {name: next((one for one in values if one != ""), None) for name, values in accepted.items()}
    return {name: _plain(value) for name, value in first.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(options[0]) for key, options in value.items() if options[0] != ""}
    return [_plain(item) for item in value] if isinstance(value, list) else value


async def test_published_gold_is_right_and_changed_gold_is_not(rows: Any) -> None:
    counts = {"right": 0, "kept": 0, "changed": 0}
    for category in CATEGORIES.split():
        for row in rows(f"bfcl/{category}.jsonl"):
            gold, functions = row["ground_truth"], row["function"]
            calls = [{name: _given(accepted)} for call in gold for name, accepted in call.items()]
            counts["right"] += not fault(calls, gold, functions, category, False)
            counts["kept"] += 1
            for broken in (
                calls[1:],
                [*calls, calls[0]],
                [{f"{name}x": given} for c in calls for name, given in c.items()],
            ):
                counts["changed"] += not fault(broken, gold, functions, category, False)
    assert counts["changed"] == 0
    # Some published gold breaks its own schema: the published checker refuses it too.
    assert counts["right"] >= 0.99 * counts["kept"], counts
