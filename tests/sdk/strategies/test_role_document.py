"""Workflows of roles as documents: what they may say, every fault with its place and its next step, all at once."""

import json
import os
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.strategies.role_workflow import (
    Agree,
    PassTests,
    ReachGoal,
    Role,
    RoleWorkflow,
    coder_tester,
    planner_programmer,
    reasoner_programmer,
)
from concertino.strategies.role_workflow.document import CODES, faults_of, read_document_text
from concertino.strategies.role_workflow.role import CONDITIONS, ENDINGS
from concertino.strategies.role_workflow.template import check_template, fill_template, parse_template
from hypothesis import given, settings
from hypothesis import strategies as st

FULL = bool(os.environ.get("CONCERTINO_FUZZ"))
DOCUMENT = """\
turns = 3
order = "sequential"
answer = "solver"

[until]
kind = "agree"
left = "solver.value"
right = "checker.result"

[[roles]]
name = "solver"
reads = "answer"
prompt = "Solve {question}"

[[roles]]
name = "checker"
reads = "code"
tools = ["python"]
prompt = "Check {solver.value} of {question}"
again = "Once more: {history}"
skip = ["first"]
sampling = { temperature = 0.5, stop = ["END"] }
"""
BASE: dict[str, Any] = json.loads(json.dumps(__import__("tomllib").loads(DOCUMENT)))


def changed(path: str, value: Any = ...) -> dict[str, Any]:
    """The document with one value set, or taken away."""
    copy: dict[str, Any] = json.loads(json.dumps(BASE))
    *keys, last = [int(key) if key.isdigit() else key for key in path.split("/")]
    place: Any = copy
    for key in keys:
        place = place[key]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return copy


TWICE = changed("roles/1/name", "solver")
FAULTS: list[tuple[str, dict[str, Any], str, str]] = [
    ("unknown_key", changed("turn", 3), "turn", "did you mean 'turns'?"),
    ("unknown_key", changed("roles/0/promt", "x"), "roles[0].promt", "did you mean 'prompt'?"),
    ("unknown_key", changed("until/rigth", "x"), "until.rigth", "did you mean 'right'?"),
    ("missing_key", changed("until"), "", "'until' is missing"),
    ("missing_key", changed("until/kind"), "until", "'kind' is missing; there are agree, tests, goal"),
    ("missing_key", changed("roles/1/prompt"), "roles[1]", "'prompt' is missing"),
    ("bad_value", changed("turns", 0), "turns", "0 is out of range; expected 1 to 1000"),
    ("bad_value", changed("turns", "four"), "turns", "is a str; expected a whole number"),
    ("bad_value", changed("turns", True), "turns", "is a bool"),
    ("bad_value", changed("order", "random"), "order", "expected 'sequential' or 'simultaneous'"),
    ("bad_value", changed("roles/0/reads", "cod"), "roles[0].reads", "did you mean 'code'?"),
    ("bad_value", changed("until/kind", "agreed"), "until.kind", "did you mean 'agree'?"),
    ("bad_value", changed("until/kind", ["agree"]), "until.kind", "is unknown"),
    ("bad_value", changed("until/left", "solver.vale"), "until.left", "did you mean 'value'?"),
    ("bad_value", changed("roles", {}), "roles", "expected a list of roles"),
    ("bad_value", changed("roles/0", "solver"), "roles[0]", "expected a table"),
    ("bad_value", changed("roles/1/sampling", {"temperature": "hot"}), "roles[1].sampling.temperature", "a number"),
    ("no_roles", changed("roles", []), "roles", "at least one role"),
    ("bad_name", changed("roles/0/name", "the solver"), "roles[0].name", "expected a word"),
    ("bad_name", changed("roles/0/name", "history"), "roles[0].name", "is not a valid name of a role"),
    ("duplicate_role", TWICE, "roles[1].name", "two roles 'solver'; rename one"),
    ("unknown_role", changed("answer", "solvr"), "answer", "did you mean 'solver'?"),
    ("unknown_role", changed("until/right", "chekcer.value"), "until.right", "did you mean 'checker'?"),
    ("unknown_role", changed("roles/1/skip", ["ok:solvr"]), "roles[1].skip", "did you mean 'solver'?"),
    ("bad_template", changed("roles/0/prompt", "Solve {question"), "roles[0].prompt", "character 6: '{' is not closed"),
    ("bad_template", changed("roles/0/system", "a } b"), "roles[0].system", "character 2: '}' closes nothing"),
    ("unknown_slot", changed("roles/0/prompt", "{qestion}"), "roles[0].prompt", "did you mean {question}?"),
    ("unknown_slot", changed("roles/0/again", "{checker.values}"), "roles[0].again", "did you mean {checker.value}?"),
    ("bad_condition", changed("roles/1/skip", ["frist"]), "roles[1].skip", "did you mean 'first'?"),
    ("bad_condition", changed("roles/1/skip", ["first:solver"]), "roles[1].skip", "unknown condition"),
    (
        "bad_reading",
        changed("until", {"kind": "tests", "code": "checker", "tests": "solver"}),
        "until.tests",
        "write reads = 'tests' for it",
    ),
    ("too_many_tools", changed("roles/1/tools", ["python", "search"]), "roles[1].tools", "keep one"),
    ("no_tools", changed("roles/0/reads", "calls"), "roles[0].tools", "list some"),
    ("no_result", changed("until/left", "solver.result"), "until.left", "write solver.value"),
]


@pytest.mark.parametrize(("code", "data", "where", "words"), FAULTS)
def test_a_fault_has_a_code_a_place_and_a_next_step(code: str, data: dict[str, Any], where: str, words: str) -> None:
    found = [fault for fault in faults_of(data) if fault.code == code and fault.where == where]
    assert found, faults_of(data)
    assert words in found[0].message
    with pytest.raises(ct.UsageError) as refused:
        RoleWorkflow.from_json(data)
    assert words in str(refused.value)


def test_every_code_is_shown_by_a_document() -> None:
    assert {fault[0] for fault in FAULTS} | {"not_toml", "not_json"} == set(CODES)


def test_all_faults_of_a_document_are_told_at_once() -> None:
    data = changed("turns", 0)
    data["roles"][0]["prompt"] = "{nothing}"
    data["until"]["right"] = "nobody.value"
    assert [fault.code for fault in faults_of(data)] == ["bad_value", "unknown_slot", "unknown_role"]


def test_a_document_becomes_a_workflow(tmp_path: Path) -> None:
    path = tmp_path / "w.toml"
    path.write_text(DOCUMENT, encoding="utf-8")
    workflow = RoleWorkflow.load(path)
    assert workflow.until == Agree("solver.value", "checker.result")
    assert (workflow.turns, workflow.answering, workflow.tools) == (3, "solver", ("python",))
    assert workflow.roles[1].skip == ("first",)
    assert workflow.roles[1].sampling == ct.Sampling(temperature=0.5, stop=("END",))


SHIPPED = {
    "coder-tester": coder_tester(),
    "reasoner-programmer": reasoner_programmer(tool="code/python", turns=2, order="simultaneous"),
    "planner-programmer": planner_programmer("maze"),
    "document": RoleWorkflow.from_json(BASE),
}


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_a_workflow_that_is_saved_is_the_same_when_loaded(name: str, suffix: str, tmp_path: Path) -> None:
    SHIPPED[name].save(tmp_path / f"w{suffix}")
    assert RoleWorkflow.load(tmp_path / f"w{suffix}") == SHIPPED[name]
    data = SHIPPED[name].to_json()
    assert json.loads(json.dumps(data)) == data
    assert RoleWorkflow.from_json(data) == SHIPPED[name]


def test_a_flaw_of_a_file_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "w.toml"
    path.write_text(DOCUMENT.replace('"checker.result"', '"chekcer.result"'), encoding="utf-8")
    with pytest.raises(ct.UsageError, match=r"w.toml:8: until.right: 'chekcer' is unknown; did you mean 'checker'"):
        RoleWorkflow.load(path)


@pytest.mark.parametrize(
    ("kind", "text", "code", "span"),
    [
        ("toml", "turns = 3\norder = \n", "not_toml", "\n"),
        ("toml", "turns = = 3", "not_toml", "= 3"),
        ("json", '{"turns": 3,, }', "not_json", ", }"),
        ("json", "[1]", "not_json", "[1]"),
        ("toml", DOCUMENT.replace("solver.value", "slover.value"), "unknown_role", "slover"),
        ("toml", "turn = 3\n" + DOCUMENT.replace("turns = 3\n", ""), "unknown_key", "turn"),
    ],
)
def test_a_document_that_cannot_be_read_has_flaws_with_places(kind: Any, text: str, code: str, span: str) -> None:
    reading = read_document_text(text, kind)
    assert reading.data is None
    [issue] = [issue for issue in reading.issues if issue.code == code]
    assert text[issue.start : issue.end].startswith(span)


def test_a_file_that_is_no_document_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ct.UsageError, match=r"expected \.toml or \.json"):
        RoleWorkflow.load(tmp_path / "w.yaml")
    with pytest.raises(ct.UsageError, match="cannot be read"):
        RoleWorkflow.load(tmp_path / "w.toml")
    with pytest.raises(ct.UsageError, match=r"expected \.toml or \.json"):
        RoleWorkflow().save(tmp_path / "w.txt")


def test_workflows_made_in_python_go_through_the_same_checks() -> None:
    with pytest.raises(ct.UsageError, match=r"did you mean \{question\}"):
        RoleWorkflow((Role("a", "{qestion}"), Role("b", "x")), Agree("a.value", "b.value"))
    with pytest.raises(ct.UsageError, match="turns: 0 is out of range"):
        RoleWorkflow((Role("a", "x"),), ReachGoal("a", "maze"), turns=0)
    with pytest.raises(ct.UsageError, match="expected roles="):
        RoleWorkflow((Role("a", "x"),), "agree")  # type: ignore[arg-type]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
places = st.sampled_from(
    [
        "turns",
        "order",
        "answer",
        "remember",
        "max_unreadable_replies",
        "strict",
        "until",
        "roles",
        "until/kind",
        "until/left",
        "roles/0",
        "roles/0/name",
        "roles/0/prompt",
        "roles/0/reads",
        "roles/1/tools",
        "roles/1/skip",
        "roles/1/sampling",
        "roles/1/policy",
    ]
)
pieces = st.sampled_from(["{", "}", "[", "[[roles]]", '"', "a = 1", "\n", "{}", DOCUMENT, json.dumps(BASE)])


@settings(max_examples=400, deadline=None)
@given(places, json_values)
def test_whatever_a_document_says_it_is_a_workflow_or_has_faults(place: str, value: Any) -> None:
    data = changed(place, value)
    faults = faults_of(data)
    assert all(fault.code in CODES for fault in faults)
    if not faults:
        assert RoleWorkflow.from_json(data).roles


@settings(max_examples=300, deadline=None)
@given(st.text() | pieces | st.lists(pieces, max_size=4).map("".join), st.sampled_from(["toml", "json"]))
def test_any_text_is_read_as_a_document(text: str, kind: Any) -> None:
    reading = read_document_text(text, kind)
    assert (reading.data is None) == bool(reading.issues)
    assert all(0 <= issue.start <= issue.end <= len(text) for issue in reading.issues)


words = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=20).map(
    lambda text: text.replace("{", "{{").replace("}", "}}")
)
samplings = st.none() | st.builds(
    ct.Sampling,
    temperature=st.none() | st.floats(0, 2),
    max_tokens=st.none() | st.integers(1, 9999),
    stop=st.lists(words, max_size=2).map(tuple),
    logprobs=st.booleans(),
)


@st.composite
def workflows(draw: st.DrawFn) -> RoleWorkflow:
    names = draw(st.lists(st.from_regex("[a-z][a-z0-9_-]{1,8}", fullmatch=True), min_size=2, max_size=4, unique=True))
    names = [f"{name}x" for name in names]  # never a word that templates use themselves
    prompt = st.lists(words | st.sampled_from(["{question}", "{history}", f"{{{names[0]}.value}}"]), max_size=4)
    roles = [
        Role(
            name,
            "".join(draw(prompt)),
            "".join(draw(prompt)),
            draw(words),
            draw(st.sampled_from(["code", "text", "answer"])),
            draw(st.sampled_from(["", "shared"])),
            draw(samplings),
            draw(st.sampled_from([(), ("python",)])),
            draw(st.sampled_from(["code", "query"])),
            draw(st.sampled_from([(), ("later",), (f"ok:{names[0]}", "first")])),
        )
        for name in names
    ]
    roles.append(Role("author_", "p", reads="tests"))
    roles.append(Role("coder_", "p", reads="code"))
    until: Any = draw(
        st.sampled_from(
            [
                Agree(f"{names[0]}.value", f"{names[1]}.text"),
                PassTests("coder_", "author_"),
                ReachGoal("coder_", "maze"),
            ]
        )
    )
    return RoleWorkflow(
        tuple(roles),
        until,
        draw(st.sampled_from(["", names[0]])),
        draw(st.integers(1, 9)),
        draw(st.sampled_from(["sequential", "simultaneous"])),
        draw(st.integers(0, 5)),
        draw(st.integers(1, 3)),
        draw(st.booleans()),
    )


@settings(max_examples=5_000 if FULL else 60, deadline=None)
@given(workflows(), st.sampled_from([".toml", ".json"]))
def test_what_is_written_of_any_workflow_is_read_again(workflow: RoleWorkflow, suffix: str) -> None:
    import tomli_w

    data = workflow.to_json()
    text = tomli_w.dumps(data, multiline_strings=True) if suffix == ".toml" else json.dumps(data)
    reading = read_document_text(text, "toml" if suffix == ".toml" else "json")
    assert reading.issues == ()
    assert reading.data is not None
    assert RoleWorkflow.from_json(reading.data) == workflow


# -- templates ---------------------------------------------------------------------------------------------------------


def test_values_are_put_in_once_and_never_read_again() -> None:
    values = {"question": "{history} {{x}} ${y}", "history": "H"}
    assert fill_template("\\boxed{{{history}}}", values) == "\\boxed{H}"
    assert fill_template("{{q}}: {question}, { history }", values) == "{q}: {history} {{x}} ${y}, H"


@given(
    st.lists(st.sampled_from(["{", "}", "{{", "}}", "{question}", "{a.value}", "x", "\n"]), max_size=12).map("".join)
)
def test_any_template_is_parsed_or_refused_with_a_place(text: str) -> None:
    _, _, fault = parse_template(text)
    if fault is None:
        fill_template(text, {"question": "q", "a.value": "v"}) if not check_template(text, ["a"]) else None
    else:
        assert text[fault.start] in "{}"


def test_conditions_and_endings_are_documented() -> None:
    assert set(ENDINGS) == {Agree.kind, PassTests.kind, ReachGoal.kind}
    assert all(CONDITIONS.values())
