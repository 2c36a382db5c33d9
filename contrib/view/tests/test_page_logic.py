"""What the page works out by itself, without a document: the graph of a round, and how the budget was used up."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import concertino_view
import pytest
from concertino_view.run_fold import RunFold
from made_traces import records_of

STATIC = Path(concertino_view.__file__).parent / "static"
Records = list[dict[str, Any]]


def worked_out(records: Records, expression: str) -> Any:
    """The value of a JavaScript expression over `data`, the page's own of these records, as JSON."""
    node = shutil.which("node")
    if node is None:
        pytest.skip(
            "no node on the PATH, so scripts of the page are not run alone; on Debian: apt-get install -y nodejs"
        )
    fold = RunFold()
    for record in records:
        fold.apply(record)
    program = f"""
        import {{ readFileSync }} from "node:fs";
        import {{ RunData, makeFilter }} from {json.dumps((STATIC / "run_data.js").as_uri())};
        import {{ layRound, MOST_BOXES }} from {json.dumps((STATIC / "round_graph.js").as_uri())};
        const data = new RunData();
        data.apply(JSON.parse(readFileSync(0, "utf-8")));
        const boxes = (graph) => graph.boxes.map(({{ item, x, y, width, height }}) => [item.id, x, y, width, height]);
        console.log(JSON.stringify({expression}));
    """
    command = [node, "--no-warnings", "--experimental-default-type=module", "--input-type=module", "-e", program]
    done = subprocess.run(command, input=json.dumps(fold.patch()), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def planned(after: dict[str, list[str]], **more: Any) -> Records:
    """A round whose calls wait for each other as given."""
    calls = [{"name": "add", "arguments": {}, "id": call_id, "after": waits} for call_id, waits in after.items()]
    setup = {"budget": {}}
    return [
        {"t": "run", "run": "r", "question": "q", "setup": setup, "at": 1.0},
        {"t": "plan", "round": 1, "calls": calls, "at": 0.5, **more},
    ]


def test_the_budget_over_time_ends_at_what_was_used() -> None:
    records = records_of(rounds=3, width=4)[:-1]
    records[0]["setup"]["budget"] = {"usd": 1.0, "tokens": 500, "units": 50.0, "calls": 20, "rounds": 5}
    for record in records:
        if record["t"] == "result":
            record["usage"] |= {"units": 2.0}
    found = worked_out(records, "data.budget()")
    assert {each["name"] for each in found} == {"usd", "tokens", "units", "calls", "rounds"}
    for each in found:
        values = [value for _, value in each["points"]]
        assert values[-1] == pytest.approx(each["used"]), each["name"]
        assert each["used"] > 0
        assert values == sorted(values)


def test_a_call_stands_to_the_right_of_all_that_it_waits_for() -> None:
    records = planned({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "e": []})
    graph = worked_out(records, "((g) => ({ boxes: boxes(g), edges: g.edges }))(layRound(data, 1, new Set()))")
    at = {box[0].partition(".")[2]: box for box in graph["boxes"]}
    assert len(graph["edges"]) == 4
    for before, then in ("ab", "ac", "bd", "cd"):
        assert at[before][1] + at[before][3] < at[then][1]
    assert at["e"][1] == at["a"][1]


def test_an_agent_opens_in_place_and_no_box_lies_on_another() -> None:
    records = records_of(rounds=1, width=6)
    agent = next(record for record in records if record.get("kind") == "agent")
    began = next(record for record in records if record.get("parent"))
    ended = next(record for record in records if record["t"] == "result" and record.get("parent"))
    more: Records = []
    for number in (2, 3):
        more += [
            {**began, "id": f"{agent['id']}/{number}", "at": 0.5 + number},
            {**ended, "id": f"{agent['id']}/{number}", "started": 0.5 + number, "ended": 1.4 + number},
        ]
    records[-3:-3] = more
    index = f"data.items.find((item) => item.id === {json.dumps(agent['id'])}).index"
    closed = worked_out(records, "boxes(layRound(data, 1, new Set()))")
    opened = {box[0]: box for box in worked_out(records, f"boxes(layRound(data, 1, new Set([{index}])))")}
    inside = [f"{agent['id']}/{number}" for number in (1, 2, 3)]
    assert set(opened) == {box[0] for box in closed} | set(inside)
    _, x, y, width, height = opened[agent["id"]]
    for name in inside:
        assert x < opened[name][1] < opened[name][1] + opened[name][3] < x + width
        assert y < opened[name][2] < opened[name][2] + opened[name][4] < y + height
    # One after the other, from left to right.
    assert opened[inside[0]][1] < opened[inside[1]][1] < opened[inside[2]][1]
    flat = [box for name, box in opened.items() if name not in inside]
    for place, one in enumerate(flat):
        for other in flat[place + 1 :]:
            apart = one[1] + one[3] <= other[1] or other[1] + other[3] <= one[1]
            assert apart or one[2] + one[4] <= other[2] or other[2] + other[4] <= one[2], (one, other)


def test_a_round_of_any_size_and_depth_is_a_bounded_graph() -> None:
    chain = {str(number): [str(number - 1)] if number > 1 else [] for number in range(1, 5_001)}
    found = worked_out(planned(chain), "((g) => [g.boxes.length, g.left, MOST_BOXES])(layRound(data, 1, new Set()))")
    assert found == [200, 4_800, 200]


def test_calls_that_wait_for_each_other_are_drawn_too() -> None:
    rows = "data.items[0].after = [1], data.items[1].after = [0], boxes(layRound(data, 1, new Set()))"
    assert len(worked_out(planned({"a": [], "b": [], "c": []}), f"({rows})")) == 3


@pytest.mark.parametrize(
    ("choice", "ids"), [("retry", ["1.2"]), ("stall", ["1.2"]), ("approval", []), ("OK", ["1.1", "1.3/1"])]
)
def test_the_list_is_filtered_by_what_happened(choice: str, ids: list[str]) -> None:
    passes = f"makeFilter('', {json.dumps(choice)}, data.critical)"
    shown = f"data.items.filter({passes}).filter((item) => item.kind === 'tool').map((item) => item.id)"
    assert worked_out(records_of(rounds=1, width=3), shown) == ids
