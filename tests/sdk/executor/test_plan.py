"""Plans: references, templates, and what is refused with which words."""

from __future__ import annotations

from typing import Any

import concertino as ct
import pytest
from concertino.core.plan import Template, parse_references, references, substitute, unparse
from hypothesis import assume, given
from hypothesis import strategies as st


def test_calls_without_ids_are_numbered_from_one() -> None:
    assert [call.id for call in ct.Plan([ct.Call("a"), ct.Call("b", id="x"), ct.Call("c")]).calls] == ["1", "x", "3"]


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("plain $ {text}", "plain $ {text}"),
        ("${a}", ct.Ref("a")),
        ("from ${a} to ${b.c}", Template(("from ", ct.Ref("a"), " to ", ct.Ref("b", ("c",))))),
        ("$${a}", "${a}"),
        ("$$${a}", "$${a}"),
        ("costs $5 ${a}", Template(("costs $5 ", ct.Ref("a")))),
    ],
)
def test_a_text_is_parsed_into_literal_parts_and_references(text: str, parsed: Any) -> None:
    assert parse_references(text) == parsed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("see ${a", "'${' at character 4 is not closed"),
        ("${}", r"'\$\{\}' at character 0 is not a reference"),
        ("x ${a b}", r"at character 2 is not a reference; write \$\{id\}"),
        ("${${a}}", "is not closed"),
    ],
)
def test_a_malformed_reference_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(ct.PlanError, match=said.replace("${", r"\$\{") if "\\" not in said else said):
        parse_references(text)


def test_a_result_that_looks_like_a_reference_stays_text() -> None:
    parsed = parse_references({"x": "${a}", "y": ["<${a}>"]})
    assert substitute(parsed, {"a": "${b}"}) == {"x": "${b}", "y": ["<${b}>"]}


def test_results_keep_their_type_alone_and_become_text_inside_a_text() -> None:
    parsed = parse_references(["${a}", "n=${a}"])
    assert substitute(parsed, {"a": {"k": [1, None]}}) == [{"k": [1, None]}, 'n={"k": [1, null]}']


def test_references_are_found_at_any_depth() -> None:
    assert references(parse_references({"x": ["${a}", {"y": "${b} ${a}"}], "z": 3})) == ["a", "b", "a"]


def test_references_are_only_recognised_where_they_are_asked_for() -> None:
    plan = ct.Plan([ct.Call("t", {"x": "${nobody}"})])
    assert plan.edges == {}
    with pytest.raises(ct.PlanError, match="refers to 'nobody', which is not in the plan"):
        ct.Plan.parse([ct.Call("t", {"x": "${nobody}"})])


def test_raw_json_is_read_before_its_references_so_that_none_crosses_a_quote() -> None:
    plan = ct.Plan.parse([ct.Call("a", {}, "a"), ct.Call("t", '{"x": "${a}", "y": "$${a}"}')])
    assert plan.calls[1].arguments == {"x": ct.Ref("a"), "y": "${a}"}
    unreadable = ct.Plan.parse([ct.Call("t", '{"x": ${a}')])
    assert unreadable.calls[0].arguments == '{"x": ${a}'
    assert unreadable.edges == {}


def test_an_unknown_id_is_refused_with_ids_that_are_near() -> None:
    calls = [ct.Call("t", id="search_1"), ct.Call("t", id="b", after=("serch_1",))]
    with pytest.raises(ct.PlanError, match=r"'b' refers to 'serch_1'.*did you mean search_1"):
        ct.Plan(calls)


def test_a_cycle_is_refused_with_its_path() -> None:
    calls = [ct.Call("t", id="a", after=("c",)), ct.Call("t", id="b", after=("a",)), ct.Call("t", id="c", after=("b",))]
    with pytest.raises(ct.PlanError, match=r"has a cycle: b -> c -> a -> b; calls must not wait for each other"):
        ct.Plan([*calls, ct.Call("t", id="d", after=("a",))])


def test_a_call_that_waits_for_itself_and_two_calls_of_one_id_are_refused() -> None:
    with pytest.raises(ct.PlanError, match="'a' depends on itself"):
        ct.Plan([ct.Call("t", id="a", after=("a",))])
    with pytest.raises(ct.PlanError, match="two calls have the id 'a'"):
        ct.Plan([ct.Call("t", id="a"), ct.Call("t", id="a")])


@pytest.mark.parametrize("name", ["a b", "", "${a}", "x" * 65, "-a"])
def test_a_malformed_id_cannot_be_referred_to(name: str) -> None:
    with pytest.raises(ct.PlanError):
        parse_references(f"${{{name}}}")


def test_levels_order_and_critical_path_of_a_diamond() -> None:
    before = {"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c"), "e": ()}
    plan = ct.Plan(ct.Call("t", id=name, after=after) for name, after in before.items())
    assert plan.levels() == [["a", "e"], ["b", "c"], ["d"]]
    assert plan.critical_path({"a": 1, "b": 5, "c": 2, "d": 1, "e": 3}) == (7, ["a", "b", "d"])
    assert plan.followers() == {"a": ["b", "c"], "b": ["d"], "c": ["d"]}
    assert ct.Plan([]).critical_path({}) == (0.0, [])


TEXTS = st.text(alphabet='ab$_{}\\" é', max_size=12)


@given(
    st.recursive(
        TEXTS | st.integers() | st.none(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    )
)
def test_what_parses_without_an_escape_is_written_back_and_parses_to_the_same(value: Any) -> None:
    assume("$${" not in repr(value))  # an escape is read as the text that it stands for, and written as that
    try:
        parsed = parse_references(value)
    except ct.PlanError:
        return
    assert parse_references(unparse(parsed)) == parsed


@given(TEXTS, TEXTS)
def test_substituting_never_reads_results_again(before: str, result: str) -> None:
    literal = before.replace("${", "$${")
    assert substitute(parse_references(f"{literal}|${{a}}"), {"a": result}) == f"{before}|{result}"
