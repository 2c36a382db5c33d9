"""Agent graphs as text: what is read, every code with the text that causes it and its place, and what is written."""

from __future__ import annotations

import os
from typing import Any

import concertino as ct
import pytest
from concertino.core.plan import Call, Plan, Ref, Template
from concertino.strategies.agent_graph.format import CODES, GraphReading, read_graph, write_answer, write_graph
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from linear import assert_linear

from .graph_texts import DIAMOND, LOW, RENAMED, TEXT, THOUGHT, TOOLS, TWO, agent, edges, graph, tool

FUZZ = settings(
    max_examples=int(os.environ.get("CONCERTINO_FUZZ", "100")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


def read(text: str, **options: Any) -> GraphReading:
    return read_graph(text, TOOLS, **{"question": "Q?", "renamed": RENAMED, **options})


def plan_of(text: str, **options: Any) -> Plan:
    found = read(text, **options)
    assert not found.faults, found.faults
    assert found.plan is not None
    return found.plan


# -- what is read ------------------------------------------------------------------------------------------------------


def test_agents_and_edges_become_a_plan_with_references() -> None:
    found = read(TWO, prepend_task=False, strict=True)
    assert found.plan is not None
    assert (found.sink, found.thinking, found.issues) == ("B", "Split it.", ())
    assert [(call.id, call.name, call.arguments) for call in found.plan.calls] == [
        ("A", "cot", {"subtask": "Compute 3*4."}),
        ("B", "cot", {"subtask": Template(("Given ", Ref("A"), ", answer."))}),
    ]
    assert found.plan.edges == {"B": ("A",)}


def test_the_original_task_stands_in_front_of_an_input_and_alone_where_it_is_empty() -> None:
    text = graph(agent("A"), agent("B", "Check ${A}"), edges("A>B"))
    first, second = plan_of(text).calls
    assert first.arguments == {"subtask": "Q?"}
    assert second.arguments == {"subtask": Template(("Original task: Q?\n\nCurrent sub-task: Check ", Ref("A")))}


@pytest.mark.parametrize("written", ["", '""', "  ", "“”"])
def test_an_empty_input_is_the_original_question(written: str) -> None:
    assert plan_of(graph(agent("A", written))).calls[0].arguments == {"subtask": "Q?"}


def test_a_reference_in_the_original_task_is_text() -> None:
    text = graph(agent("A", "x"), agent("B", "Check ${A}"), edges("A>B"))
    plan = plan_of(text, question="What is ${A} in ${Z}?")
    assert plan.calls[0].arguments == {"subtask": "Original task: What is ${A} in ${Z}?\n\nCurrent sub-task: x"}
    assert plan.edges == {"B": ("A",)}


def test_a_reference_alone_becomes_text_not_data() -> None:
    text = graph(agent("A", "x"), agent("B", "${A}"), edges("A>B"))
    assert plan_of(text, prepend_task=False).calls[1].arguments == {"subtask": Template((Ref("A"),))}


def test_arguments_are_read_as_their_schema_wants_them() -> None:
    text = graph(agent("A", "x", "debate", debate_roles=["Analyst", "Skeptic"]))
    assert plan_of(text, prepend_task=False).calls[0].arguments == {"subtask": "x", "roles": ["Analyst", "Skeptic"]}
    text = graph(
        "<agent><agent_id>A</agent_id><agent_name>count</agent_name><agent_description>d</agent_description>"
        '<required_arguments><agent_input></agent_input><of>{"a": [1, null]}</of><times>3</times></required_arguments>'
        "</agent>"
    )
    assert plan_of(text).calls[0].arguments == {"of": {"a": [1, None]}, "times": 3}


def test_an_input_for_a_list_of_texts_becomes_a_list_of_one_and_a_list_stays_a_list() -> None:
    assert plan_of(graph(agent("A", "x", "look_up")), prepend_task=False).calls[0].arguments == {"queries": ["x"]}
    text = graph(agent("A", "x", "look_up").replace("agent_input>", "queries>").replace(">x<", '>["a", "b"]<'))
    assert plan_of(text).calls[0].arguments == {"queries": ["a", "b"]}


def test_an_argument_under_its_own_name_is_handed_over_as_it_is() -> None:
    text = graph(agent("A", "x").replace("agent_input>", "subtask>"))
    assert plan_of(text, strict=True).calls[0].arguments == {"subtask": "x"}


def test_an_agent_that_takes_no_text_gets_none_and_a_choice_of_a_model_is_no_input() -> None:
    tools = [tool("conclude", {"model": TEXT})]
    found = read_graph(graph(agent("A", "", "conclude")), tools, question="Q?")
    assert found.plan is not None
    assert found.plan.calls[0].arguments == {}
    [fault] = read_graph(graph(agent("A", "x", "conclude")), tools).faults
    assert (fault.code, "agent_input" in fault.message) == ("invalid_arguments", True)


def test_python_literals_and_nulls_in_roles_are_data_or_refused_and_never_code() -> None:
    roles = "['Analyst', 'Skeptic']"
    text = graph(agent("A", "x", "debate").replace("</required", f"<debate_roles>{roles}</debate_roles></required"))
    assert plan_of(text).calls[0].arguments["roles"] == ["Analyst", "Skeptic"]  # type: ignore[index]
    for bad in ("[None, True]", "__import__('os').getcwd()"):
        faults = read(text.replace(roles, bad)).faults
        assert [issue.code for issue in faults] in (["invalid_arguments"], ["bad_json"])


def test_three_quotes_in_a_description_stay_text() -> None:
    text = TWO.replace(">d<", '>""" + exit() + """<')
    assert len(plan_of(text)) == 2


def test_tags_inside_an_input_are_text() -> None:
    quoted = "What do </agent>, <edge>, </edge> and <agent> mean in `x < 3 </required_arguments>`?"
    text = graph(agent("A", quoted), agent("B", "Given ${A}"), edges("A>B"))
    assert plan_of(text, prepend_task=False).calls[0].arguments == {"subtask": quoted}


def test_an_own_closing_tag_is_quoted_by_a_cdata_section() -> None:
    text = graph(agent("A", "what is <![CDATA[</agent_input> ]]>for?"))
    assert plan_of(text, prepend_task=False).calls[0].arguments == {"subtask": "what is </agent_input> for?"}


def test_an_argument_may_be_named_like_a_block() -> None:
    tools = [tool("judge", {"answer": TEXT, "subtask": TEXT}, "answer")]
    text = graph(agent("A", "x", "judge").replace("</required", "<answer>42</answer></required"))
    found = read_graph(text, tools, prepend_task=False)
    assert found.plan is not None
    assert found.plan.calls[0].arguments == {"subtask": "x", "answer": "42"}


@pytest.mark.parametrize(
    "thought",
    [
        "<thinking>I could write <agent><agent_id>X</agent_id></agent> <![CDATA[ here.</thinking>",
        "<think><agent></think>\n<thinking><edge><from>Q</from></thinking>",
        "I think <agent><agent_id>X</agent_id> … </think>",
        "analysis We need <agent> blocks. <thinking>a</thinking>" + agent("X") + "assistantfinal<thinking>b</thinking>",
        "",
    ],
)
def test_what_was_thought_is_never_read_as_an_agent(thought: str) -> None:
    plan = plan_of(thought + "\n" + agent("A", "x") + agent("B", "${A}") + edges("A>B"))
    assert [call.id for call in plan.calls] == ["A", "B"]


def test_a_thought_between_agents_is_never_read_as_an_agent() -> None:
    text = graph(agent("A", "x"), f"<think>or {agent('X')}?</think>", agent("B", "${A}"), edges("A>B"))
    assert [call.id for call in plan_of(text).calls] == ["A", "B"]


def test_a_direct_answer_is_taken_in_both_degrees() -> None:
    text = "<thinking>easy</thinking>\n<answer> 1073 </answer>"
    assert read(text, dom="low", strict=True).answer == "1073"
    assert read(text, dom="high").answer == "1073"


def test_one_agent_in_the_low_format_is_a_plan_of_one_call() -> None:
    found = read(LOW, dom="low", strict=True)
    assert found.plan is not None
    assert (found.sink, [call.arguments for call in found.plan.calls]) == (
        "out",
        [{"subtask": "Original task: Q?\n\nCurrent sub-task: {}"}],
    )


def test_one_agent_without_edges_is_a_graph() -> None:
    assert len(plan_of(graph(agent("A")), strict=True)) == 1


def test_ids_of_which_one_begins_the_other_do_not_clash() -> None:
    plan = plan_of(
        graph(agent("A", "x"), agent("A1", "${A}"), agent("A2", "${A} ${A1}"), edges("A>A1", "A>A2", "A1>A2"))
    )
    assert plan.edges == {"A1": ("A",), "A2": ("A", "A1")}


def test_a_stray_closing_tag_between_the_ends_of_an_edge_is_left_out_and_noted() -> None:
    text = TWO.replace("</from>", "</from></from>")
    assert [issue.code for issue in read(text).issues] == ["stray_tag"]
    assert len(plan_of(text)) == 2


def test_several_edge_blocks_are_read_as_one() -> None:
    plan = plan_of(graph(agent("A", "x"), agent("B", "${A}"), agent("C", "${B}"), edges("A>B"), edges("B>C")))
    assert plan.edges == {"B": ("A",), "C": ("B",)}


def test_an_edge_without_a_reference_orders_the_agents() -> None:
    plan = plan_of(graph(agent("A", "x"), agent("B", "y"), edges("A>B")))
    assert (plan.calls[1].after, plan.edges) == (("A",), {"B": ("A",)})


def test_a_reference_without_an_edge_is_an_edge() -> None:
    assert plan_of(graph(agent("A", "x"), agent("B", "${A}"))).edges == {"B": ("A",)}


def test_dollar_dollar_brace_writes_a_dollar_and_a_brace() -> None:
    arguments = plan_of(graph(agent("A", "echo $${HOME}")), prepend_task=False).calls[0].arguments
    assert arguments == {"subtask": "echo ${HOME}"}


# -- what is wrong -----------------------------------------------------------------------------------------------------

A, B = agent("A", "x"), agent("B", "${A}")
AB = edges("A>B")
ODD = "<edge><from>A</from><to>B</to><from>B</from></edge>"
FAULTS: list[tuple[str, str, str, str, dict[str, Any]]] = [
    (
        "an answer that is not the agent's output",
        LOW.replace(">out</answer", ">42</answer"),
        "answer_and_agent",
        "42",
        {"dom": "low"},
    ),
    ("an id with a space", graph(agent("A 1", "x")), "bad_id", "A 1", {}),
    (
        "roles that are no JSON",
        graph(agent("A", "x", "debate").replace("</req", "<roles>[a, b</roles></req")),
        "bad_json",
        "[a, b",
        {},
    ),
    ("a reference with spaces", TWO.replace("${A}", "${ A }"), "bad_reference", "${ A }", {}),
    ("an unclosed reference", TWO.replace("${A}", "${A"), "bad_reference", "${A, answer.", {}),
    ("an empty reference", TWO.replace("${A}", "${}"), "bad_reference", "${}", {}),
    ("a formula", TWO.replace("3*4", "${\\frac{1}{2}}$"), "bad_reference", "${\\frac", {}),
    ("a cut text", graph(A), "cut_off", "", {"cut_off": True}),
    (
        "a cycle",
        graph(agent("A", "${C}"), B, agent("C", "${B}"), edges("A>B", "B>C", "C>A")),
        "cycle",
        "A</from><to>B",
        {},
    ),
    ("a direct answer", THOUGHT + "<answer>4</answer>", "direct_answer", "4", {"strict": True}),
    ("one edge twice", graph(A, B, edges("A>B", "A>B")), "duplicate_edge", "A</from><to>B", {"strict": True}),
    ("two inputs", TWO.replace("</required", "<subtask>y</subtask></required", 1), "duplicate_field", "y", {}),
    (
        "one argument twice",
        graph(A.replace("</req", "<model>m</model><model>n</model></req")),
        "duplicate_field",
        "<model>",
        {},
    ),
    (
        "two names",
        TWO.replace("<agent_name>", "<agent_name>cot</agent_name><agent_name>", 1),
        "duplicate_field",
        "<agent_name>",
        {},
    ),
    ("two answers", THOUGHT + "<answer>4</answer><answer>5</answer>", "duplicate_field", "<answer>", {"dom": "low"}),
    ("two agents with one id", graph(A, agent("A", "y"), B, AB), "duplicate_id", "A", {}),
    (
        "an edge without data",
        graph(A, agent("B", "y"), AB),
        "edge_without_reference",
        "A</from><to>B",
        {"strict": True},
    ),
    (
        "a reference in other brackets",
        graph(A, agent("B", "use #{A}"), AB),
        "edge_without_reference",
        "A</from><to>B",
        {},
    ),
    (
        "edges in two groups",
        graph(A, B, "<edge><from>A</from><from>A</from><to>B</to><to>B</to></edge>"),
        "grouped_edges",
        "<from>A</from><from>A</from><to>B</to><to>B</to>",
        {"strict": True},
    ),
    ("one debate role", graph(agent("A", "x", "debate", debate_roles=["one"])), "invalid_arguments", '["one"]', {}),
    ("no debate roles", graph(agent("A", "x", "debate")), "invalid_arguments", agent("A", "x", "debate"), {}),
    ("an unknown argument", graph(agent("A", "x", rolls=1)), "invalid_arguments", agent("A", "x", rolls=1), {}),
    ("an agent alone", graph(A, B, agent("C", "z"), AB), "isolated_agent", "C", {}),
    (
        "an argument outside",
        graph(A.replace("<required_arguments>", "").replace("</required_arguments>", "")),
        "misplaced_argument",
        "<agent_input>",
        {"strict": True},
    ),
    (
        "no id",
        graph(A.replace("<agent_id>A</agent_id>", ""), B, AB),
        "missing_field",
        A.replace("<agent_id>A</agent_id>", ""),
        {},
    ),
    (
        "no name",
        graph(A.replace("<agent_name>cot</agent_name>", "")),
        "missing_field",
        A.replace("<agent_name>cot</agent_name>", ""),
        {},
    ),
    ("nothing", "I do not know.", "no_graph", "I do not know.", {}),
    ("an empty answer", THOUGHT + "<answer> </answer>", "no_graph", THOUGHT + "<answer> </answer>", {}),
    ("a reference without an edge", graph(A, B), "reference_without_edge", "${A}", {"strict": True}),
    ("an edge to itself", graph(agent("A", "x"), edges("A>A")), "self_edge", "A</from><to>A", {}),
    ("a reference to itself", graph(agent("A", "x ${A}")), "self_edge", "${A}", {}),
    (
        "two edge blocks",
        graph(A, B, agent("C", "${B}"), AB, edges("B>C")),
        "several_edge_blocks",
        "<edge>",
        {"strict": True},
    ),
    ("two sinks", graph(A, B, agent("C", "${A}"), edges("A>B", "A>C")), "several_sinks", "C", {}),
    ("two groups", graph(A, B, agent("C", "z"), agent("D", "${C}"), edges("A>B", "C>D")), "several_sinks", "D", {}),
    ("a tag too many", graph(A + "</agent>"), "stray_tag", "</agent>", {"strict": True}),
    ("words outside", graph("Here it is:", A), "stray_text", "Here it is:", {"strict": True}),
    ("an id as attribute", graph(A.replace("<agent>", '<agent id="A">')), "tag_attributes", '<agent id="A">', {}),
    ("too many agents", TWO, "too_many_agents", agent("B", "Given ${A}, answer."), {"dom": "low"}),
    ("more agents than allowed", TWO, "too_many_agents", agent("B", "Given ${A}, answer."), {"max_agents": 1}),
    (
        "many arguments",
        graph(A.replace("</req", "".join(f"<a{n}>1</a{n}>" for n in range(64)) + "</req")),
        "too_many_arguments",
        "<a63>",
        {},
    ),
    ("very many references", graph(A, agent("B", "${A}" * 1_001), AB), "too_many_references", "${A}" * 1_001, {}),
    ("very many tags", "<b>" * 50_001, "too_many_tags", "<b>" * 50_001, {}),
    ("an unclosed from", TWO.replace("<from>A</from>", "<from>A"), "unclosed_tag", "<from>", {}),
    ("an unclosed edge", TWO.replace("</edge>", ""), "unclosed_tag", "<edge>", {}),
    ("an unclosed agent", TWO.replace("</agent>", "", 1), "unclosed_tag", "<agent>", {}),
    ("an unclosed input", TWO.replace("</agent_input>", "", 1), "unclosed_tag", "<agent_input>", {}),
    ("unclosed arguments", TWO.replace("</required_arguments>", "", 1), "unclosed_tag", "<required_arguments>", {}),
    ("an unclosed thought", "<thinking>I could " + TWO.removeprefix(THOUGHT), "unclosed_tag", "<thinking>", {}),
    ("an edge inside an agent's place", graph("<from>A</from>", A), "unexpected_tag", "<from>", {}),
    (
        "a node in the edges",
        graph(A, B, AB.replace("</edge>", "<node>A</node></edge>")),
        "unexpected_tag",
        "<node>",
        {},
    ),
    ("an unknown agent", TWO.replace(">cot<", ">Cott<", 1), "unknown_agent", "Cott", {}),
    ("an edge from nowhere", graph(A, B, edges("A>B", "Z>B")), "unknown_node", "Z", {}),
    ("a reference to nothing", TWO.replace("${A}", "${A} ${Z}"), "unknown_reference", "${Z}", {}),
    ("three ends", graph(A, B, ODD), "unpaired_edge", "<from>", {}),
]


@pytest.mark.parametrize(
    ("text", "code", "span", "options"), [row[1:] for row in FAULTS], ids=[row[0].replace(" ", "-") for row in FAULTS]
)
def test_a_fault_has_a_code_a_place_and_words_for_the_model(
    text: str, code: str, span: str, options: dict[str, Any]
) -> None:
    found = read(text, **options)
    assert (found.plan, found.answer) == (None, None)
    issues = [issue for issue in found.faults if issue.code == code]
    assert span in [text[issue.start : issue.end] for issue in issues], found.faults
    assert len(issues[0].message) > 20


def test_every_code_has_a_text_that_causes_it_and_a_sentence() -> None:
    assert {row[2] for row in FAULTS} == set(CODES)
    assert all(words.endswith(".") for words in CODES.values())


REPAIRED = [
    "direct_answer",
    "duplicate_edge",
    "edge_without_reference",
    "grouped_edges",
    "misplaced_argument",
    "reference_without_edge",
    "several_edge_blocks",
    "stray_tag",
    "stray_text",
]


@pytest.mark.parametrize("code", REPAIRED)
def test_a_lenient_reader_repairs_what_has_one_reading_and_says_so(code: str) -> None:
    text = next(row[1] for row in FAULTS if row[2] == code and row[4].get("strict"))
    found = read(text)
    assert not found.faults
    assert code in [issue.code for issue in found.issues if issue.repaired]
    assert found.plan is not None or found.answer is not None


@pytest.mark.parametrize(
    ("field", "options"),
    [("agent_description", {}), ("agent_output_id", {"dom": "low"}), ("agent_input", {})],
)
def test_a_missing_field_that_changes_nothing_is_noted_and_refused_only_if_strict(
    field: str, options: dict[str, Any]
) -> None:
    text = LOW if options else graph(agent("A", "x"))
    start, end = text.index(f"<{field}>"), text.index(f"</{field}>") + len(field) + 3
    text = (text[:start] + text[end:]).replace("<answer>out</answer>", "")
    assert len(plan_of(text, **options)) == 1
    assert "missing_field" in [issue.code for issue in read(text, **options).issues if issue.repaired]
    assert read(text, strict=True, **options).plan is None


def test_an_output_id_stands_in_for_the_id_that_is_missing() -> None:
    plan = plan_of(TWO.replace("agent_id>", "agent_output_id>"))
    assert [call.id for call in plan.calls] == ["A", "B"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TWO.replace(">cot<", ">COT<", 1), "there is no agent 'COT'; did you mean cot?"),
        (TWO.replace("${A}", "${a}"), "${a} refers to no agent of the graph; did you mean A?"),
        (TWO.replace("${A}", "${ A }"), '"${ A }" is not a reference; write ${A}, or $${ for the characters ${'),
        (graph(A, B, agent("C", "${A}"), edges("A>B", "A>C")), "2 agents have no outgoing edge (B, C)"),
        (graph(agent("A", "${B}"), B, edges("A>B", "B>A")), "the edges go round: "),
        (graph(A, agent("B", "use {A}"), AB), "write ${A} in the input of 'B'; its input names {A}"),
        (graph(agent("A", "x", "debate", debate_roles=["one"])), "/roles: expected"),
    ],
)
def test_the_words_say_what_to_write(text: str, words: str) -> None:
    assert any(words in issue.message for issue in read(text).faults), read(text).faults


def test_a_place_behind_a_cdata_section_is_the_place_in_the_whole_text() -> None:
    text = graph(agent("A", "<![CDATA[<b>]]> then ${Z} <![CDATA[ and ${Y}]]>"))
    assert [text[issue.start : issue.end] for issue in read(text).faults] == ["${Z}", "${Y}"]


def test_a_direct_answer_that_was_closed_before_the_limit_is_taken() -> None:
    assert read(THOUGHT + "<answer>4</answer> and so", dom="low", cut_off=True).answer == "4"
    assert read(THOUGHT + "<answer>4", dom="low", cut_off=True).answer is None


# -- any text ----------------------------------------------------------------------------------------------------------

PIECES = [
    "</think>",
    "<agent>",
    "</agent>",
    "<agent_id>",
    "</agent_id>",
    "A",
    "B",
    "<agent_name>cot</agent_name>",
    "<edge>",
    "</edge>",
    "<from>A</from>",
    "<to>B</to>",
    "<from>",
    "</to>",
    "${A}",
    "${",
    "$${",
    "<![CDATA[",
    "]]>",
    "<thinking>",
    "<required_arguments>",
    "</required_arguments>",
    "<agent_input>",
    "</agent_input>",
    "<roles>[",
    "</roles>",
    " x ",
    "<answer>",
    "</answer>",
    "assistantfinal",
    agent("A", "x"),
    agent("B", "${A}"),
    edges("A>B"),
    "\ud800",
    "<a b='c'/>",
]


@pytest.mark.timeout(3600)
@FUZZ
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=30).map("".join), st.booleans(), st.booleans())
def test_any_text_is_a_plan_or_an_answer_or_a_fault(text: str, low: bool, strict: bool) -> None:
    found = read(text, dom="low" if low else "high", strict=strict)
    assert (found.plan is not None) + (found.answer is not None) + bool(found.faults) == 1
    assert all(0 <= issue.start <= issue.end <= len(text) for issue in found.issues)
    assert all(issue.code in CODES for issue in found.issues)
    if strict:
        assert not any(issue.repaired for issue in found.issues)


HOSTILE = {
    "open agents": "<agent>" * 150_000,
    "open inputs": "<agent><required_arguments>" + "<agent_input>" * 80_000,
    "open sections": "<agent><required_arguments>" + "<![CDATA[" * 110_000,
    "half tags": "<a" * 500_000,
    "thoughts": "<think></think>" * 70_000,
    "open thoughts": "<thinking>" * 100_000,
    "many names": "".join(f"<a{n}>" for n in range(120_000)),
    "many edges": graph(A, B, "<edge>" + "<from>A</from><to>B</to>" * 12_000 + "</edge>", "x" * 700_000),
    "many agents": graph(*[agent(f"A{n}", "x" * 70) for n in range(4_000)]),
    "open references": TWO.replace("3*4", "${" * 500_000),
    "unknown references": TWO.replace("3*4", "${q}" * 250_000),
    "references": TWO.replace("Given", "${A}" * 250_000),
    "channels": "assistantfinal" * 70_000,
    "closers": "</agent>" * 120_000,
    "signs": "<" * 1_000_000,
    "spaces": "<agent" + " " * 1_000_000,
    "brackets": graph(agent("A", "x", "debate").replace("</req", "<roles>" + "[" * 900_000 + "</roles></req")),
    "sections": TWO.replace("3*4", "<![CDATA[x]]>" * 75_000),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_megabyte_of_hostile_text_is_read_in_linear_time(name: str) -> None:
    text = HOSTILE[name]
    assert_linear(lambda: read(text), len(text))


# -- writing -----------------------------------------------------------------------------------------------------------

words = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12) | st.sampled_from(
    ["</agent>", "]]>", "<![CDATA[", "</subtask>", "$${", "${x", "assistantfinal", "</think>", " a ", "<agent>", '"']
)


def safe_in_json(text: str) -> bool:
    """Control characters are refused in the JSON of models on purpose: they are half of a LaTeX command."""
    return text.isprintable()


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """A graph in which every agent leads to the last one, along references."""
    size = draw(st.integers(1, 6))
    ids = draw(st.lists(st.from_regex(r"[A-Za-z0-9_]{1,6}", fullmatch=True), min_size=size, max_size=size, unique=True))
    followed: dict[int, set[int]] = {n: set() for n in range(size)}
    for source in range(size - 1):
        targets = draw(st.sets(st.integers(source + 1, size - 1), min_size=1, max_size=2))
        for target in targets:
            followed[target].add(source)
    calls = []
    for place, own_id in enumerate(ids):
        parts: list[str | Ref] = []
        for source in sorted(followed[place]):
            text = draw(words)
            parts += [f"{text.rstrip('$')} ", Ref(ids[source])]
        parts.append(draw(words) + ".")
        value: Any = Template(tuple(parts)) if followed[place] else "".join(p for p in parts if isinstance(p, str))
        if draw(st.booleans()):
            roles = draw(st.lists(words.filter(safe_in_json), min_size=2, max_size=3))
            calls.append(Call("debate", {"subtask": value, "roles": roles}, own_id))
        else:
            calls.append(Call("cot", {"subtask": value}, own_id))
    return Plan(calls)


def normal(plan: Plan) -> list[Any]:
    return [(call.id, call.name, call.arguments, call.after) for call in plan.calls]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@FUZZ
@given(plans(), words)
def test_what_the_writer_writes_the_strict_reader_reads(plan: Plan, thinking: str) -> None:
    text = write_graph(plan, thinking=thinking)
    found = read(text, strict=True)
    assert not found.issues, (text, found.issues)
    assert found.plan is not None
    assert normal(found.plan) == normal(plan)
    assert found.plan.edges == plan.edges
    assert found.sink == plan.calls[-1].id


def test_a_plan_of_one_call_is_written_in_the_low_format_too() -> None:
    plan = Plan([Call("cot", {"subtask": "x"}, "out")])
    found = read(write_graph(plan, dom="low"), dom="low", strict=True, prepend_task=False)
    assert found.plan is not None
    assert normal(found.plan) == normal(plan)


@given(words.filter(str.strip))
def test_a_written_answer_is_read_back(answer: str) -> None:
    assert read(write_answer(answer, "so"), dom="low", strict=True).answer == answer


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (Call("cot", {"subtask": "x"}, "a-b"), "call 'a-b': an agent_id has 1 to 64 letters"),
        (Call("cot", {"subtask": Template(("costs $", Ref("A")))}, "B"), "cannot be written; put a space between them"),
    ],
)
def test_a_plan_that_the_format_cannot_express_is_refused(call: Call, words: str) -> None:
    with pytest.raises(ct.PlanError, match=words.replace("$", r"\$")):
        write_graph(Plan([Call("cot", {"subtask": "x"}, "A"), call]))


def test_a_diamond_has_the_levels_that_its_edges_say() -> None:
    assert plan_of(DIAMOND).levels() == [["A"], ["B", "C"], ["D"]]
