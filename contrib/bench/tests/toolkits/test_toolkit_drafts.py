"""Drafts never change what they were made from, and digests are those of tau-bench's canonical form."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
import random
from collections.abc import Callable
from typing import Any

import pytest
from concertino_bench.toolkits import digest
from concertino_bench.toolkits.digests import canonical
from concertino_bench.toolkits.drafts import Draft, changed_entries, plain, records, seen_entries
from concertino_bench.toolkits.toolkit import Database

DATA: dict[str, Any] = {
    "books": {"b1": {"title": "A", "tags": ["x", ["y"]], "at": {"shelf": 1}}, "b2": {"title": "B", "tags": []}},
    "log": [{"log_id": "l1", "n": 1}, {"log_id": "l2", "n": 2}],
    "count": 3,
}

CHANGES: dict[str, Callable[[Any], Any]] = {
    "assignment": lambda d: d["books"]["b1"].__setitem__("title", "C"),
    "deep assignment": lambda d: d["books"]["b1"]["at"].__setitem__("shelf", 2),
    "list append": lambda d: d["books"]["b1"]["tags"].append("z"),
    "nested list": lambda d: d["books"]["b1"]["tags"][1].append("z"),
    "list of records": lambda d: d["log"][0].update(n=9),
    "through get": lambda d: d.get("books").get("b1").update(title="C"),
    "through values": lambda d: [book.update(title="C") for book in d["books"].values()],
    "through items": lambda d: [book["tags"].append(1) for _, book in d["books"].items()],
    "through dict()": lambda d: dict(d)["books"]["b1"].update(title="C"),
    "through unpacking": lambda d: {**d}["books"]["b1"].update(title="C"),
    "through |": lambda d: (d | {})["books"]["b1"].update(title="C"),
    "through | from the left": lambda d: ({} | d)["books"]["b1"].update(title="C"),
    "through |=": lambda d: d.__ior__({"books": {}}),
    "through copy()": lambda d: d.copy()["books"]["b1"].update(title="C"),
    "through copy.copy": lambda d: copy.copy(d)["books"]["b1"].update(title="C"),
    "through deepcopy": lambda d: copy.deepcopy(d)["books"]["b1"].update(title="C"),
    "through pop": lambda d: d.pop("books")["b1"].update(title="C"),
    "through popitem": lambda d: [d.popitem(), d.popitem(), d.popitem()[1]["b1"].update(title="C")],
    "through setdefault": lambda d: d.setdefault("books", {})["b1"].update(title="C"),
    "another dict's update": lambda d: _updated(d)["books"]["b1"].update(title="C"),
    "deletion": lambda d: d["books"].__delitem__("b1"),
    "clear": lambda d: d["books"].clear(),
    "sorted items": lambda d: sorted(d["books"].items())[0][1].update(title="C"),
}


def _updated(source: Any) -> dict[str, Any]:
    taken: dict[str, Any] = {}
    taken.update(source)
    return taken


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_whatever_is_done_to_a_draft_its_source_stays_as_it_was(change: Callable[[Any], Any]) -> None:
    source = copy.deepcopy(DATA)
    change(Draft(source))
    assert source == DATA
    assert source["books"].__class__ is dict


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_draft_of_a_draft_protects_the_first_one_too(change: Callable[[Any], Any]) -> None:
    first = Draft(copy.deepcopy(DATA))
    first["books"]["b2"]["tags"].append("kept")
    before = plain(first)
    change(Draft(first))
    assert plain(first) == before


def test_a_draft_reads_and_writes_like_the_dict_that_it_stands_for() -> None:
    draw = random.Random(7)
    for _ in range(300):
        real = copy.deepcopy(DATA)
        draft = Draft(copy.deepcopy(DATA))
        for change in draw.choices([*CHANGES.values()], k=4):
            outcomes = []
            for subject in (real, draft):
                try:
                    outcomes.append(("done", bool(change(subject))))
                except (KeyError, AttributeError, TypeError, IndexError) as error:
                    outcomes.append((type(error).__name__, False))
            assert outcomes[0] == outcomes[1]
        assert plain(draft) == real
        assert json.loads(json.dumps(draft)) == real


def test_a_draft_is_not_pickled_by_mistake() -> None:
    with pytest.raises(TypeError, match="plain"):
        pickle.dumps(Draft(DATA))


def test_changed_entries_are_those_that_differ_came_or_went() -> None:
    draft = Draft(DATA)
    draft["books"]["b1"]["title"] = "C"
    draft["books"]["b3"] = {"title": "new"}
    del draft["books"]["b2"]
    draft["log"][1]["n"] = 5
    draft["count"] = 4
    assert changed_entries(DATA, draft) == {
        ("books", "b1"),
        ("books", "b2"),
        ("books", "b3"),
        ("log", "l2"),
        ("count", ""),
    }


def test_an_entry_that_was_only_looked_at_or_written_back_equal_is_not_changed() -> None:
    draft = Draft(DATA)
    draft["books"]["b1"]["title"] = "A"
    draft["books"]["b2"]["tags"].append(1)
    draft["books"]["b2"]["tags"].pop()
    assert changed_entries(DATA, draft) == set()


def test_true_and_one_and_one_point_zero_are_three_values() -> None:
    for old, new in ((1, True), (1, 1.0), (0, False), ("1", 1)):
        assert changed_entries({"t": {"k": {"v": old}}}, {"t": {"k": {"v": new}}}) == {("t", "k")}


def test_seen_entries_are_those_looked_up_by_key_and_not_those_walked_over() -> None:
    draft = Draft(DATA)
    list(draft["books"].values())
    assert seen_entries(draft) == set()
    assert draft["books"].get("b1")
    assert draft["books"].get("none") is None
    assert seen_entries(draft) == {("books", "b1")}


def test_records_of_a_list_go_by_their_own_id_else_by_position() -> None:
    assert list(records(DATA["log"])) == ["l1", "l2"]
    assert list(records([{"log_id": "same"}, {"log_id": "same"}])) == ["0", "1"]
    assert list(records([1, 2])) == ["0", "1"]


def test_the_digest_is_the_sha_256_of_sorted_pairs_as_python_writes_them() -> None:
    value = {"b": [1, {"x": None}], "a": {}, "c": [True, 1.5, "é"]}
    written = "(('a', ()), ('b', (1, (('x', None),))), ('c', (True, 1.5, 'é')))"
    assert str(canonical(value)) == written
    assert digest(value) == hashlib.sha256(written.encode()).hexdigest()


def test_the_digest_does_not_depend_on_the_order_of_keys_but_on_that_of_lists() -> None:
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest([1, 2]) != digest([2, 1])


def test_what_is_no_json_has_no_digest() -> None:
    with pytest.raises(TypeError, match="set"):
        digest({"a": {1}})


def test_a_database_gives_the_digest_of_the_plain_state_after_any_changes() -> None:
    database = Database(copy.deepcopy(DATA))
    assert database.digest() == database.digest() == digest(DATA)
    for change in CHANGES.values():
        draft = Draft(database.data)
        change(draft)
        assert database.digest(draft) == digest(plain(draft))
    assert database.digest() == digest(DATA)
