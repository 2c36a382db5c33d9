"""GAP's turns as text: what is read, every code with the text that causes it and its place, and what is written."""

from __future__ import annotations

import os
from typing import Any

import pytest
from concertino.core.errors import PlanError
from concertino.core.plan import Call, Plan, Ref, Template
from concertino.strategies.dependency_plan.format import CODES, TurnText, read_turn, write_turn
from concertino.strategies.dependency_plan.graph import by_levels, write_nodes
from concertino.strategies.dependency_plan.queries import cut_parts, join_parts, write_parts
from concertino.strategies.dependency_plan.tasks import PlanTask
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from linear import assert_linear

from .graph_texts import TEXT, tool

FUZZ = settings(
    max_examples=int(os.environ.get("CONCERTINO_FUZZ", "100")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
TOOLS = [
    tool("find", {"queries": {"type": "array", "items": TEXT, "minItems": 1}, "k": {"type": "integer"}}, "queries"),
    tool("ask", {"question": TEXT}, "question"),
]
CALL_TAGS = {"search": "find", "wiki_search": "find", "ask": "ask"}
PLAN = """<plan>
T1: Find A's birth year
- Dependencies: none
T2: Find B's birth year
- Dependencies: none
T3: Compare
- Dependencies: T1, T2
</plan>"""
CAPITALS = (
    "<think>four look-ups</think>\n<graph>\n"
    '<node id="s1">search("capital of France")</node>\n'
    '<node id="s2">search("capital of Germany") </node>\n'
    '<node id="s3" depends="s1">search("population of {s1}")</node>\n'
    '<node id="s4" depends="s2">search("population of {s2}")</node>\n</graph>'
)


def read(text: str, **options: Any) -> TurnText:
    return read_turn(text, CALL_TAGS, TOOLS, **options)


def asked(text: str, **options: Any) -> list[str]:
    """The queries of a text without a fault."""
    found = read(text, **options)
    assert not found.faults, found.faults
    return [call.arguments["queries"][0] for call in found.calls]  # type: ignore[index]


def graph(*nodes: str) -> str:
    return "<think>t</think><graph>" + "".join(nodes) + "</graph>"


def node(own_id: str, call: str = 'ask("x")', depends: str = "") -> str:
    more = f' depends="{depends}"' if depends else ""
    return f'<node id="{own_id}"{more}>{call}</node>'


# -- queries -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('["one", "two"]', ["one", "two"]),
        ('["P(A|B)", "a|b"]', ["P(A|B)", "a|b"]),
        ("one|two | three", ["one", "two", "three"]),
        ("P(A|B) formula", ["P(A|B) formula"]),
        ("P(A|B) formula | Bayes", ["P(A|B) formula", "Bayes"]),
        ("{x | x > 0} | [a|b]", ["{x | x > 0}", "[a|b]"]),
        (r"a \| b", ["a | b"]),
        (r"a \| b | c", ["a | b", "c"]),
        ("smile :( | frown", ["smile :(", "frown"]),
        ("a) | b(", ["a)", "b("]),
        ("[Fe/H] of the Sun | Vega", ["[Fe/H] of the Sun", "Vega"]),
        ("A || B |", ["A", "B"]),
        ("|", []),
        ("", []),
        ("[]", []),
    ],
)
def test_a_text_is_cut_into_queries(text: str, parts: list[str]) -> None:
    assert list(cut_parts(text).texts) == parts


@pytest.mark.parametrize("text", ['["one", 2]', '["one"', '["one"] and more'])
def test_a_list_that_is_no_list_of_texts_says_so(text: str) -> None:
    assert cut_parts(text).error


lines = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=12).filter(str.strip)
parts = st.lists(
    lines.map(str.strip) | st.sampled_from(["a|b", "P(A|B)", "(", "]", "</search>", '"', "\\"]), min_size=1
)


@given(parts)
def test_written_queries_are_cut_into_the_same(texts: list[str]) -> None:
    assert list(cut_parts(write_parts(texts)).texts) == texts


@given(parts.filter(lambda texts: len(texts) > 1 and not any(set("()[]{}\\") & set(text) for text in texts)))
def test_several_joined_answers_are_cut_into_the_same(texts: list[str]) -> None:
    assert list(cut_parts(join_parts(texts)).texts) == texts


# -- what is read ------------------------------------------------------------------------------------------------------


def test_queries_of_all_tags_become_calls_without_dependencies() -> None:
    found = read('<think>t</think><search>one | two</search>\n<ask>["three"]</ask>', strict=True)
    assert [(call.id, call.name, call.arguments, call.after) for call in found.calls] == [
        ("1", "find", {"queries": ["one"]}, ()),
        ("2", "find", {"queries": ["two"]}, ()),
        ("3", "ask", {"question": "three"}, ()),
    ]
    assert (found.thinking, found.issues) == ("t", ())


@pytest.mark.parametrize(
    "text",
    [
        PLAN,
        PLAN.replace("T1:", "Task 1:").replace("T2:", "Task2.").replace("T3:", "**T3**:"),
        PLAN.replace("\n- Dependencies: none", " - Dependencies: none"),
        PLAN.replace("T1, T2", "Task 1, Task 2").replace("none", "None."),
        PLAN.replace("T1:", "- Task ID: T1 -").replace("T1, T2", "[1, 2]"),
    ],
)
def test_a_plan_is_read_with_its_dependencies(text: str) -> None:
    found = read("<think>t</think>" + text)
    assert not found.faults
    assert found.tasks is not None
    assert [(task.id, task.depends) for task in found.tasks] == [("T1", ()), ("T2", ()), ("T3", ("T1", "T2"))]
    assert "birth year" in found.tasks[0].text


def test_the_graph_of_the_paper_becomes_a_plan_with_references() -> None:
    found = read(CAPITALS, strict=True)
    assert not found.issues
    plan = Plan(found.calls)
    assert plan.levels() == [["s1", "s2"], ["s3", "s4"]]
    assert plan.calls[2].arguments == {"queries": [Template(("population of ", Ref("s1")))]}


def test_each_level_waits_for_the_end_of_the_whole_level_before_it() -> None:
    levels = by_levels(Plan(read(CAPITALS).calls))
    assert levels.barriers == {"s3": ("s2",), "s4": ("s1",)}
    assert levels.edges == {"s3": ("s1",), "s4": ("s2",)}


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        (r"\\frac{1}{2} and {x}", r"\frac{1}{2} and {x}"),
        ("{{s1}} is {s1}", Template(("{s1} is ", Ref("s1")))),
        ("{{s1} and {s1}}", Template(("{", Ref("s1"), " and ", Ref("s1"), "}"))),
        ("{s1}", Template((Ref("s1"),))),
        ("${s1}", Template(("$", Ref("s1")))),
    ],
)
def test_braces_around_an_id_are_a_reference_and_all_others_are_text(text: str, parsed: Any) -> None:
    found = read(graph(node("s1"), node("s2", f'ask("{text}")', "s1")))
    assert not found.faults
    assert found.calls[1].arguments == {"question": parsed}


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ('find({"queries": ["a", "b"], "k": 3})', {"queries": ["a", "b"], "k": 3}),
        ('search(["a", "b"])', {"queries": ["a", "b"]}),
        ("ask('single quotes')", {"question": "single quotes"}),
        ('ask ( "P(A|B)" )', {"question": "P(A|B)"}),
        ("ask()", {}),
    ],
)
def test_a_node_calls_a_tool_by_tag_or_name_with_a_text_or_an_object(call: str, arguments: dict[str, Any]) -> None:
    [only] = read(graph(node("s1", call))).calls
    assert (only.error, only.arguments) == (None, arguments)


@pytest.mark.parametrize("tag", ["think", "reflection", "plan"])
def test_a_call_that_another_element_mentions_is_no_call(tag: str) -> None:
    inner = "T1: <search>no</search>\n- Dependencies: none\n <answer>no</answer>"
    found = read(f"<think>t</think><{tag}>{inner}</{tag}><search>yes</search>")
    assert [call.arguments for call in found.calls] == [{"queries": ["yes"]}]
    assert found.answers is None


def test_what_stands_before_a_closing_think_was_thought() -> None:
    assert asked("I could <search> now.</think><search>yes</search>") == ["yes"]


def test_results_that_the_model_wrote_itself_are_dropped_with_all_behind_them() -> None:
    text = "<think>t</think><search>a</search><observation>made up</observation><answer>wrong</answer>"
    found = read(text)
    assert ([call.name for call in found.calls], found.answers) == (["find"], None)
    assert [issue.code for issue in found.issues] == ["own_observation"]


def test_the_last_call_may_lack_its_closing_tag_unless_the_length_limit_ended_it() -> None:
    assert asked("<think>t</think><search>a | b") == ["a", "b"]
    [call] = read("<think>t</think><search>a | b", cut_off=True).calls
    assert call.error is not None
    assert "length limit" in call.error[1]


def test_whole_calls_before_a_cut_are_run() -> None:
    found = read("<think>t</think><search>a</search><search>b", cut_off=True)
    assert [call.error is None for call in found.calls] == [True, False]


def test_a_cut_answer_or_thought_is_nothing() -> None:
    for text in ("<think>t</think><answer>4", "<think>I <search>a</search>"):
        found = read(text, cut_off=True)
        assert (found.answers, found.calls, found.faults) == (None, (), ())


def test_one_unreadable_call_does_not_take_its_siblings_along() -> None:
    found = read(graph(node("s1", "ask(x y)"), node("s2"), node("s3", "nonsense")))
    assert [(call.name, call.error is None) for call in found.calls] == [("ask", False), ("ask", True), ("?", False)]


def test_several_answers_are_a_list() -> None:
    assert read("<think>t</think><answer>director | writer</answer>").answers == ("director", "writer")
    assert read('<think>t</think><answer>["a|b"]</answer>').answers == ("a|b",)


# -- what is wrong -----------------------------------------------------------------------------------------------------

T = "<think>t</think>"
S1 = node("s1")
FAULTS: list[tuple[str, str, str, str, dict[str, Any]]] = [
    (
        "an answer beside a call",
        T + "<search>a</search><answer>b</answer>",
        "answer_too_early",
        "<answer>b",
        {"strict": True},
    ),
    ("an empty answer", T + "<answer> </answer>", "bad_answer", "<answer> ", {}),
    ("an answer that is half a list", T + '<answer>["a", </answer>', "bad_answer", '<answer>["a", ', {}),
    ("a node without an id", graph("<node>ask(1)</node>"), "bad_id", "<node>", {}),
    ("a node with a number as id", graph(node("1")), "bad_id", '<node id="1">', {}),
    ("dependencies on nothing", T + PLAN.replace("T1, T2", "the others"), "bad_plan_line", " the others", {}),
    ("dependencies before a task", T + "<plan>Dependencies: T1\nT1: a</plan>", "bad_plan_line", "Dependencies: T1", {}),
    (
        "nodes in a ring",
        graph(node("s1", depends="s2"), node("s2", depends="s1")),
        "cycle",
        node("s1", depends="s2") + node("s2", depends="s1"),
        {},
    ),
    ("a node that waits for itself", graph(node("s1", depends="s1")), "cycle", '<node id="s1" depends="s1">', {}),
    ("a node that uses itself", graph(node("s1", 'ask("{s1}")')), "cycle", node("s1", 'ask("{s1}")'), {}),
    ("two nodes with one id", graph(S1, S1), "duplicate_id", '<node id="s1">', {}),
    ("one query twice", T + "<search>a|a</search>", "duplicate_query", "<search>a|a", {"strict": True}),
    (
        "one task twice",
        T + "<plan>T1: a\nDependencies: none\nT1: b\nDependencies: none</plan>",
        "duplicate_task",
        "T1: b",
        {},
    ),
    ("a graph without nodes", T + "<graph> </graph>", "empty_graph", " ", {}),
    ("a plan without tasks", T + "<plan>first this</plan>", "empty_plan", "first this", {}),
    ("an empty query among others", T + "<search>a||b</search>", "empty_query", "<search>a||b", {"strict": True}),
    (
        "a graph where none is read",
        CAPITALS,
        "graph_not_allowed",
        CAPITALS[CAPITALS.index("<graph>") : -8],
        {"graph": False},
    ),
    ("a task without dependencies", T + "<plan>T1: a</plan>", "no_dependencies", "T1: a", {"strict": True}),
    ("invented results", T + "<search>a</search><observation>x", "own_observation", "<observation>x", {"strict": True}),
    ("tasks in a ring", T + PLAN.replace("none", "T3", 1), "plan_cycle", "T1: Find A's birth year", {}),
    ("a task that waits for itself", T + PLAN.replace("T1, T2", "T3"), "plan_cycle", "T3: Compare", {}),
    (
        "another plan without a reason",
        T + PLAN,
        "plan_without_reflection",
        PLAN[: -len("</plan>")],
        {"strict": True, "planned": True},
    ),
    (
        "a reference without a dependency",
        graph(S1, node("s2", 'ask("{s1}")')),
        "reference_without_dependency",
        '<node id="s2">',
        {"strict": True},
    ),
    ("two answers", T + "<answer>a</answer><answer>b</answer>", "several_answers", "<answer>b", {}),
    ("two graphs", graph(S1) + f"<graph>{S1}</graph>", "several_graphs", f"<graph>{S1}", {}),
    (
        "two plans",
        T + PLAN + "<plan>T1: a\nDependencies: none</plan>",
        "several_plans",
        "<plan>T1: a\nDependencies: none",
        {"strict": True},
    ),
    ("a tag too many", T + "<search>a</search></search>", "stray_tag", "</search>", {"strict": True}),
    ("words outside", T + "Let me look. <search>a</search>", "stray_text", "Let me look.", {"strict": True}),
    ("capitals", T + "<Search>a</Search>", "tag_case", "<Search>", {"strict": True}),
    (
        "many calls",
        T + "".join(f"<ask>{n}</ask>" for n in range(257)),
        "too_many_calls",
        T + "".join(f"<ask>{n}</ask>" for n in range(257)),
        {},
    ),
    ("many nodes", graph(*[node(f"s{n}") for n in range(65)]), "too_many_nodes", '<node id="s64">', {}),
    ("many tasks", T + "<plan>" + "\n".join(f"T{n}: a" for n in range(65)) + "</plan>", "too_many_tasks", "T64: a", {}),
    (
        "very many references",
        graph(S1, node("s2", 'ask("' + "{s1}" * 1_001 + '")', "s1")),
        "too_many_references",
        node("s2", 'ask("' + "{s1}" * 1_001 + '")', "s1"),
        {},
    ),
    ("very many tags", "<ask>" * 50_001, "too_many_tags", "<ask>" * 50_001, {}),
    ("an unclosed thought", "<think>I <search>a</search>", "unclosed_tag", "<think>", {}),
    ("an unclosed node", T + '<graph><node id="s1">ask("x")</graph>', "unclosed_tag", '<node id="s1">', {}),
    ("an unclosed graph", T + "<graph>" + S1, "unclosed_tag", "<graph>", {}),
    ("a task that waits for no task", T + PLAN.replace("T1, T2", "T1, T9"), "unknown_dependency", "T3: Compare", {}),
    (
        "a node that waits for no node",
        graph(S1, node("s2", depends="s1, s7")),
        "unknown_dependency",
        '<node id="s2" depends="s1, s7">',
        {},
    ),
    ("the result of no node", graph(S1, node("s2", 'ask("{s9}")')), "unknown_reference", node("s2", 'ask("{s9}")'), {}),
]
CALL_FAULTS: list[tuple[str, str, str, str]] = [
    ("a node without quotes", graph(node("s1", "ask(population)")), "bad_call", "ask(population)</node>"),
    ("a node with quotes in quotes", graph(node("s1", 'ask("say "hi"")')), "bad_call", 'ask("say "hi"")</node>'),
    ("a node that is no call", graph(node("s1", "look it up")), "bad_call", "look it up</node>"),
    ("a node with a number", graph(node("s1", "ask(3)")), "bad_call", "ask(3)</node>"),
    ("queries that are half a list", T + '<search>["a", </search>', "bad_queries", '<search>["a", '),
    ("queries that are numbers", T + '<search>["a", 1]</search>', "bad_queries", '<search>["a", 1]'),
    ("no query", T + "<search> | </search>", "empty_query", "<search> | "),
    ("a tag in the same tag", T + "<search>a <search>b</search>", "nested_tag", "<search>a <search>b"),
    ("an unclosed call before another", T + "<search>a <ask>b</ask>", "unclosed_tag", "<search>"),
]


@pytest.mark.parametrize(
    ("text", "code", "span", "options"), [row[1:] for row in FAULTS], ids=[row[0].replace(" ", "-") for row in FAULTS]
)
def test_a_fault_of_the_turn_runs_nothing_and_has_a_code_a_place_and_words(
    text: str, code: str, span: str, options: dict[str, Any]
) -> None:
    found = read(text, **options)
    assert (found.calls, found.answers) == ((), None)
    issues = [issue for issue in found.faults if issue.code == code]
    assert span in [text[issue.start : issue.end] for issue in issues], found.faults
    assert len(issues[0].message) > 20


@pytest.mark.parametrize(
    ("text", "code", "span"), [row[1:] for row in CALL_FAULTS], ids=[row[0].replace(" ", "-") for row in CALL_FAULTS]
)
def test_a_fault_of_one_call_is_a_call_with_an_error(text: str, code: str, span: str) -> None:
    found = read(text + "<ask>other</ask>")
    assert not found.faults
    assert [call.error is not None for call in found.calls] == [True] + [False] * (len(found.calls) - 1)
    assert found.calls[-1].arguments == {"question": "other"} or code == "unclosed_tag"
    assert span in [text[issue.start : issue.end] for issue in found.issues if issue.code == code], found.issues


def test_every_code_has_a_text_that_causes_it_and_a_sentence() -> None:
    assert {row[2] for row in FAULTS} | {row[2] for row in CALL_FAULTS} == set(CODES)
    assert all(words.endswith(".") for words in CODES.values())


@pytest.mark.parametrize(
    "row", [row for row in FAULTS if row[4].get("strict")], ids=lambda row: str(row[0]).replace(" ", "-")
)
def test_a_lenient_reader_repairs_what_has_one_reading_and_says_so(row: tuple[str, str, str, str, Any]) -> None:
    found = read(row[1], **{**row[4], "strict": False})
    assert not found.faults
    assert row[2] in [issue.code for issue in found.issues if issue.repaired]


# -- any text ----------------------------------------------------------------------------------------------------------

PIECES = [
    "<think>",
    "</think>",
    "<search>",
    "</search>",
    "a|b",
    '["a"]',
    "<plan>",
    "</plan>",
    "T1: x\n",
    "<ASK>",
    "</ask>",
    "<graph>",
    "</graph>",
    node("s1"),
    node("s2", 'ask("{s1}")', "s1"),
    "<node id='s3'>",
    "</node>",
    "{s1}",
    "\n",
    "</answer>",
    "<observation>",
    "<reflection>",
    "</reflection>",
    "|",
    "\\|",
    "(",
    "]",
    "\ud800",
    "<answer>",
    "Dependencies: T2\n",
]


@pytest.mark.timeout(3600)
@FUZZ
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=30).map("".join), st.booleans(), st.booleans())
def test_any_text_is_calls_or_an_answer_or_a_fault_or_nothing(text: str, cut_off: bool, strict: bool) -> None:
    found = read(text, strict=strict, cut_off=cut_off)
    assert bool(found.calls) + (found.answers is not None) + bool(found.faults) <= 1
    assert all(0 <= issue.start <= issue.end <= len(text) for issue in found.issues), found.issues
    assert all(issue.code in CODES for issue in found.issues)
    Plan(found.calls)


HOSTILE = {
    "open calls": T + "<search>" * 120_000,
    "open thoughts": "<think>" * 140_000,
    "closed thoughts": T * 60_000,
    "signs": T + "<search>" + "|" * 1_000_000 + "</search>",
    "brackets": T + "<search>" + "(|" * 500_000 + "</search>",
    "escapes": T + "<search>" + "\\" * 1_000_000 + "</search>",
    "calls": T + "<search>a</search>" * 50_000,
    "plan lines": T + "<plan>" + "T1: a\n- Dependencies: T1\n" * 40_000 + "</plan>",
    "spaces in a plan": T + "<plan>" + "T1: a\n" + " " * 1_000_000 + "x</plan>",
    "dashes in a plan": T + "<plan>" + "- " * 500_000 + "</plan>",
    "one long task": T + "<plan>T1: a\n" + "words\n" * 170_000 + "</plan>",
    "dependencies": T + "<plan>T1: a\nDependencies: " + "T1, " * 250_000 + "</plan>",
    "nodes": T + "<graph>" + node("s1") * 40_000 + "</graph>",
    "open nodes": T + "<graph>" + '<node id="s1">' * 70_000 + "</graph>",
    "attributes": T + '<graph><node id="s1" ' + 'a="b" ' * 160_000 + ">x</node></graph>",
    "braces": graph(S1, node("s2", 'ask("' + "{" * 1_000_000 + '")')),
    "references": graph(S1, node("s2", 'ask("' + "{s1}" * 250_000 + '")', "s1")),
    "unknown references": graph(S1, node("s2", 'ask("' + "{s9}" * 250_000 + '")')),
    "half tags": "<sear" * 200_000,
    "parentheses": graph(node("s1", "ask(" * 250_000)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_megabyte_of_hostile_text_is_read_in_linear_time(name: str) -> None:
    text = HOSTILE[name]
    assert_linear(lambda: read(text), len(text))


# -- writing -----------------------------------------------------------------------------------------------------------

words = lines | st.sampled_from(["{s1}", "{{s1}}", "{s9}", "{", "}", "</node>", "</graph>", '"', "\\", ") ", "<think>"])


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """A graph of calls, each with references to some of the earlier ones."""
    size = draw(st.integers(1, 6))
    calls = []
    for place in range(size):
        used = draw(st.sets(st.integers(0, place - 1), max_size=2)) if place else set()
        texts: list[str | Ref] = []
        for other in sorted(used):
            texts += [draw(words) + " ", Ref(f"s{other}")]
        texts.append(" " + draw(words))
        value: Any = Template(tuple(texts)) if used else "".join(t for t in texts if isinstance(t, str))
        after = (
            tuple(f"s{other}" for other in sorted(draw(st.sets(st.integers(0, place - 1), max_size=1)) - used))
            if place
            else ()
        )
        name, arguments = draw(
            st.sampled_from([("ask", {"question": value}), ("find", {"queries": [value, "x"], "k": 2})])
        )
        calls.append(Call(name, arguments, f"s{place}", after))
    return Plan(calls)


def normal(plan: Plan) -> list[Any]:
    return [(call.id, call.name, call.arguments, set(plan.edges.get(call.id, ()))) for call in plan.calls]


@pytest.mark.timeout(3600)
@FUZZ
@given(plans(), st.booleans())
def test_a_written_graph_is_read_as_the_same_plan(plan: Plan, by_tag: bool) -> None:
    text = write_turn("so", graph=plan, call_tags={"search": "find"} if by_tag else None)
    found = read(text, strict=True)
    assert not found.issues, (text, found.issues)
    assert normal(Plan(found.calls)) == normal(plan)


@pytest.mark.timeout(3600)
@FUZZ
@given(parts.map(lambda texts: list(dict.fromkeys(texts))[:9]), lines)
def test_a_written_turn_is_read_back(texts: list[str], thinking: str) -> None:
    tasks = (PlanTask("T1", "Find it"), PlanTask("T2", "Compare", ("T1",)))
    found = read(write_turn(thinking.replace("<", ""), tasks=tasks, queries={"ask": texts}), strict=True)
    assert not found.issues
    assert [call.arguments for call in found.calls] == [{"question": text} for text in texts]
    assert found.tasks == tasks
    assert read(write_turn("so", answers=texts), strict=True).answers == tuple(texts)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (Call("ask", {"question": "x"}, "1"), "begins with a letter"),
        (Call("ask", {"question": Template(("{", Ref("a"), "}"))}, "b"), "between braces cannot be written"),
    ],
)
def test_a_plan_that_the_format_cannot_express_is_refused(call: Call, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        write_nodes(Plan([Call("ask", {"question": "x"}, "a"), call]))
