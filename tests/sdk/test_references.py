"""References in texts: one syntax for plans, agent graphs and quoted results."""

import json
import re
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.core.plan import Ref, Template, substitute
from concertino.core.references import LookupFailed, Placeholder, follow, name_and_path, read_path, split, write_path
from concertino.testing import fake_tool, make_pool
from hypothesis import given
from hypothesis import strategies as st

DATA = {"hotels": [{"name": "Ritz", "stars": 5}, {"name": "Lux", "stars": 2}], "a b": {"": 1}, "n": None}


def test_a_text_is_literals_and_placeholders_in_order() -> None:
    assert list(split("a ${b} $${c} ${d")) == [
        "a ",
        Placeholder("b", 2, 6, True),
        " ",
        "${",
        "c} ",
        Placeholder("d", 13, 16, False),
    ]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("", DATA),
        (".hotels[0].name", "Ritz"),
        (".hotels[-1].stars", 2),
        (".hotels.1.name", "Lux"),
        ('["a b"][""]', 1),
        (".n", None),
    ],
)
def test_a_path_leads_to_a_field_or_an_item(path: str, value: Any) -> None:
    assert follow(DATA, read_path(path)) == value


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (".hotel", "the result has no field 'hotel'; its fields are hotels, a b, n"),
        (".hotels[2]", ".hotels is a list of 2; 2 is not one of its places"),
        (".hotels.first", ".hotels is a list of 2; 'first' is not one of its places"),
        (".hotels[0].name.x", ".hotels[0].name is a text, which has no .x"),
        (".n[0]", ".n is null, which has no [0]"),
    ],
)
def test_a_path_to_nothing_says_where_it_ends_and_what_is_there(path: str, message: str) -> None:
    with pytest.raises(LookupFailed, match=re.escape(message)):
        follow(DATA, read_path(path))


@given(st.lists(st.one_of(st.text(max_size=8), st.integers(-(10**8), 10**8)), max_size=5))
def test_a_written_path_is_read_back(steps: list[str | int]) -> None:
    assert read_path(write_path(tuple(steps))) == tuple(steps)


def test_a_name_with_dots_wins_over_a_path() -> None:
    assert name_and_path("a.b.c", {"a", "a.b"}) == ("a.b", ("c",))
    assert name_and_path("a.b.c", {"x"}) == ("a", ("b", "c"))
    assert name_and_path("a.b.c", {"a.b.c", "a"}) == ("a.b.c", ())


def test_a_whole_reference_keeps_the_type_and_a_part_of_a_text_becomes_text() -> None:
    plan = ct.Plan.parse([ct.Call("f", {}, "s1"), ct.Call("g", {"n": "${s1.hotels[0].stars}", "t": "in ${s1.n}!"})])
    arguments = plan.calls[1].arguments
    assert isinstance(arguments, dict)
    assert arguments["n"] == Ref("s1", ("hotels", 0, "stars"))
    assert isinstance(arguments["t"], Template)
    assert substitute(arguments, {"s1": DATA}) == {"n": 5, "t": "in null!"}
    assert plan.to_json()[1]["arguments"] == {"n": "${s1.hotels[0].stars}", "t": "in ${s1.n}!"}


async def test_a_call_that_refers_to_a_missing_field_is_not_run_and_says_what_is_there() -> None:
    search, book = fake_tool("search", returns={"name": "Ritz"}), fake_tool("book", returns="booked")
    plan = ct.Plan.parse([ct.Call("search", {}, "s1"), ct.Call("book", {"hotel": "${s1.hotel_name}"}, "s2")])
    async with ct.Executor() as executor:
        first, second = await executor.run(plan, make_pool(search, book))
    assert first.ok
    assert second.status is ct.Status.PARSE_ERR
    assert second.error is not None
    assert "no field 'hotel_name'; its fields are name" in second.error.message


def test_every_reference_of_nestful_can_be_written_directly(shared_data: Path) -> None:
    rows = json.loads((shared_data / "nestful" / "sgd.json").read_text())
    found = 0
    for row in rows:
        text = json.dumps(row["output"])
        found += len(re.findall(r"\$var[^$\"]*\$", text))
        calls = json.loads(re.sub(r"\$(var[^$\"]*)\$", r"${\1}", text))
        labels = [call.get("label") for call in calls]
        for number, call in enumerate(calls):
            if "label" in call and labels.index(call["label"]) < number:
                call["label"] = f"var{number + 1}"  # some rows repeat a label where the next number is meant
        plan = ct.Plan.parse([ct.Call(call["name"], call["arguments"], call.get("label", "end")) for call in calls])
        results = {call["label"]: _echo(call["label"], text) for call in calls if "label" in call}
        for call, written in zip(plan.calls, calls, strict=True):
            expected = _filled(json.loads(json.dumps(written["arguments"])), results)
            assert substitute(call.arguments, results) == expected
            assert set(plan.edges.get(call.id, ())) == set(re.findall(r"\$\{(var\d+)", json.dumps(written)))
    assert found == 164


def _echo(label: str, text: str) -> dict[str, str]:
    """A result with every field that anything refers to."""
    return {field: f"{label}/{field}" for field in re.findall(rf"\${label}\.([^$]*)\$", text)}


def _filled(value: Any, results: dict[str, dict[str, str]]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(item, results) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, results) for item in value]
    found = re.fullmatch(r"\$\{(var\d+)(?:\.(\w+))?\}", value) if isinstance(value, str) else None
    if not found:
        return value
    return results[found[1]][found[2]] if found[2] else results[found[1]]
