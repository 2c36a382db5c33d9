"""Every text gets the verdict a careful reader gave it: our cases, and the shared malformed calls."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from concertino.text.json import ReadingError, read_json
from concertino.text.json.tokens import REPAIRS

CASES = [json.loads(line) for line in (Path(__file__).parent / "cases.jsonl").read_text("utf-8").splitlines()]
LOG = logging.getLogger(__name__)
REJECTED = object()


def dumped(value: Any) -> str:
    """A form in which 1, 1.0 and True differ and NaN equals itself."""
    return json.dumps(value, sort_keys=True)


def read(text: str, **options: Any) -> Any:
    try:
        return read_json(text, **options).value
    except ReadingError:
        return REJECTED


def tally(outcomes: Iterable[str], name: str) -> Counter[str]:
    counts = Counter(outcomes)
    LOG.info("%s: %s", name, dict(counts))
    return counts


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_text_gets_the_verdict_judged_by_hand(case: dict[str, Any]) -> None:
    options = {"expect": "any" if case.get("any") else "object", "maths_fields": case.get("maths", ())}
    if "value" in case["expect"]:
        reading = read_json(case["text"], **options)
        assert dumped(reading.value) == dumped(case["expect"]["value"])
        is_strict = read(case["text"], strict=True, expect=options["expect"]) is not REJECTED
        assert (reading.repairs == ()) == is_strict
        return
    with pytest.raises(ReadingError) as caught:
        read_json(case["text"], **options)
    if case["expect"]["reject"] is not True:
        assert caught.value.code == case["expect"]["reject"]


def test_there_are_at_least_two_hundred_cases_with_both_verdicts() -> None:
    values = sum("value" in case["expect"] for case in CASES)
    assert values >= 100
    assert len(CASES) - values >= 100
    assert len({case["id"] for case in CASES}) == len(CASES)


def test_every_repair_is_named_by_some_case() -> None:
    named: set[str] = set()
    for case in CASES:
        if "value" in case["expect"]:
            options = {
                "expect": "any" if case.get("any") else "object",
                "maths_fields": case.get("maths", ()),
            }
            named |= set(read_json(case["text"], **options).repairs)
    assert named == set(REPAIRS)


def test_no_strict_reading_is_a_repaired_one() -> None:
    for case in CASES:
        value = read(case["text"], strict=True, expect="any")
        if value is not REJECTED:
            assert dumped(value) == dumped(json.loads(case["text"]))


def test_the_shared_malformed_calls_are_read_or_refused_and_never_misread(shared_malformed: Path) -> None:
    def outcome(case: dict[str, Any]) -> str:
        expect = case["expect"]
        allowed = [expect["value"]] if "value" in expect else expect.get("any_of", ["<<REJECT>>"])
        # In these cases `tex` is the field of mathematics, as a tool would declare it.
        value = read(case["text"], maths_fields=("tex",))
        if value is REJECTED:
            return "right" if "<<REJECT>>" in allowed else "refused"
        return "right" if dumped(value) in map(dumped, allowed) else "misread"

    lines = (shared_malformed / "cases.jsonl").read_text("utf-8").splitlines()
    counts = tally((outcome(json.loads(line)) for line in lines), "malformed")
    assert counts["misread"] == 0
    assert counts["right"] >= 0.97 * len(lines)
