"""Two runs compared: the first divergence is found wherever it is, and what does not matter is none."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import pytest
from concertino_view.run_difference import MOST, Difference, comparison, differences
from concertino_view.run_file import RunFile
from hostile_traces import write_trace
from made_traces import records_of

Records = list[dict[str, Any]]
KINDS = ("question", "arguments", "member", "fewer", "status", "result", "answer", "order", "inside")


def compared(folder: Path, a: Records, b: Records) -> list[Difference]:
    runs = [RunFile(write_trace(folder / f"{name}.trace.jsonl", records)) for name, records in (("a", a), ("b", b))]
    return list(differences(*runs))


def call_of(records: Records, call_id: str) -> Records:
    return [record for record in records if record.get("id") == call_id]


def planted(records: Records, kind: str, round_: int, place: int) -> tuple[Records, str]:
    """The records with one change, and where it is."""
    changed = copy.deepcopy(records)
    if kind in ("question", "answer"):
        changed[0 if kind == "question" else -1][kind] = "4"
        return changed, {"question": "question question", "answer": "end answer"}[kind]
    call_id = f"{round_}.{place}"
    about = call_of(changed, call_id)
    if kind in ("status", "result"):
        was = about[-1].pop("error", None)
        about[-1] |= {"status": "OK" if kind == "result" or was else "TIMEOUT", "content": "another"}
        return changed, f"round {round_} {'status' if was or kind == 'status' else 'result'}"
    if kind == "inside":
        for record in call_of(changed, f"{round_}.5/1"):
            record["name"] = "other"
        return changed, f"round {round_} inside"
    plan = next(record for record in changed if record["t"] == "plan" and record["round"] == round_)
    call = plan["calls"][place - 1]
    if kind == "fewer":
        plan["calls"].remove(call)
        changed = [record for record in changed if record not in about]
    elif kind == "order":
        call["after"] = ["5"]
    else:
        value: dict[str, Any] = {"name": "other"} if kind == "member" else {"arguments": {"of": "y"}}
        for each in (call, *about):
            each |= {name: new for name, new in value.items() if name in each}
    return changed, f"round {round_} call"


@pytest.mark.parametrize("number", range(100))
def test_the_first_divergence_is_the_one_that_was_planted(tmp_path: Path, number: int) -> None:
    chance = random.Random(number)
    records = records_of(rounds=6, width=5)
    changed, where = planted(records, KINDS[number % len(KINDS)], chance.randint(1, 6), chance.choice((1, 3, 4)))
    # A later divergence beside it: the first one is to be told first.
    later = changed if where.startswith("end") else planted(changed, "answer", 1, 1)[0]
    first = compared(tmp_path, records, later)[0]
    assert f"{first.where} {first.what}" == where


def test_runs_that_called_and_found_the_same_do_not_differ(tmp_path: Path) -> None:
    records = records_of(rounds=3, width=5)
    other = copy.deepcopy(records)
    other[0] |= {"run": "r2", "at": 5.0}
    for record in other[1:]:
        for name in ("at", "started", "ended"):
            if name in record:
                record[name] = record[name] * 3 + 1
        if record["t"] == "intent":
            record["arguments"] = dict(reversed(record["arguments"].items()))
    assert compared(tmp_path, records, other) == []


def test_calls_of_a_round_that_ended_in_another_order_do_not_differ(tmp_path: Path) -> None:
    records = records_of(rounds=1, width=5)
    begin = next(place for place, record in enumerate(records) if record["t"] == "intent")
    results = [record for record in records if record["t"] == "result" and "/" not in record["id"]]
    others = [record for record in records[begin:] if record not in results]
    tail = others.index(next(record for record in others if record["t"] == "ask"))
    shuffled = [*records[:begin], *others[:tail], *reversed(results), *others[tail:]]
    assert compared(tmp_path, records, shuffled) == []


def test_the_same_call_twice_is_matched_with_its_outcome(tmp_path: Path) -> None:
    records = records_of(rounds=1, width=5)
    for record in records:
        if record["t"] == "plan":
            for call in record["calls"][2:4]:
                call.update(name="same", arguments={"x": 1})
        if record.get("id") in ("1.3", "1.4"):
            record["name"] = "same"
            if record["t"] == "intent":
                record["arguments"] = {"x": 1}
    swapped = copy.deepcopy(records)
    for record in swapped:
        if record.get("id") in ("1.3", "1.4"):
            record["id"] = {"1.3": "1.4", "1.4": "1.3"}[record["id"]]
    assert compared(tmp_path, records, swapped) == []


def test_a_comparison_lists_a_bounded_number_of_differences(tmp_path: Path) -> None:
    long, short = records_of(rounds=120, width=5), records_of(rounds=1, width=5)
    runs = [RunFile(write_trace(tmp_path / f"{len(r)}.trace.jsonl", r)) for r in (long, short)]
    found = comparison(*runs)
    assert len(found["differences"]) == MOST
    assert found["more"] > 0
