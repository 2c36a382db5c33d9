"""Results files: read, damaged, torn, and several as one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from concertino import UsageError
from concertino_bench.reports import Results, read_all, read_results
from concertino_bench.reports.results import combine

Make = Callable[..., Results]


def lines_of(results: Results) -> list[str]:
    header = json.dumps({"t": "bench", "version": 1, **results.header})
    return [header, *(json.dumps({"t": "item", **item.to_json()}) for item in results.items)]


def write(path: Path, lines: list[str], end: str = "\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + end, encoding="utf-8")
    return path


def test_a_file_reads_as_what_was_written(tmp_path: Path, make_results: Make) -> None:
    results = make_results(5)
    found = read_results(write(tmp_path / "r.jsonl", lines_of(results)))
    assert found.items == results.items
    assert found.header == {"version": 1, **results.header}
    assert (found.notes, found.files) == ((), ("r.jsonl",))


def test_a_file_of_the_runner_reads_as_its_items(tmp_path: Path, make_results: Make) -> None:
    from concertino_bench.runner.results_file import ResultsFile

    results = make_results(3)
    with ResultsFile(tmp_path / "r.jsonl", {**results.header, "fingerprint": "f"}) as file:
        for item in results.items:
            file.append(item)
    assert read_results(tmp_path / "r.jsonl").items == results.items


def test_a_torn_last_line_is_left_out_with_a_note(tmp_path: Path, make_results: Make) -> None:
    lines = lines_of(make_results(2))
    path = write(tmp_path / "r.jsonl", [*lines, lines[-1][:50]], end="")
    found = read_results(path)
    assert len(found.items) == len(lines) - 1
    assert len(found.notes) == 1
    assert "torn" in found.notes[0]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ('{"t": "item", "key": [', "not JSON"),
        ('{"t": "item"}', "not an item of a results file"),
        ("[]", 'expected {"t"'),
        ("", "not JSON"),
        ('{"t": "item", "key": ["a", "b", 0], "kind": "k", "verdict": "great", "reason": "r"}', "great"),
    ],
)
def test_a_damaged_line_is_an_error_with_its_number_unless_lenient(
    damage: str, words: str, tmp_path: Path, make_results: Make
) -> None:
    lines = lines_of(make_results(2))
    path = write(tmp_path / "r.jsonl", [*lines[:3], damage, *lines[3:]])
    with pytest.raises(UsageError, match=r"line 4: ") as caught:
        read_results(path)
    assert words in str(caught.value)
    found = read_results(path, lenient=True)
    assert len(found.items) == len(lines) - 1
    assert "line 4" in found.notes[0]


def test_a_second_item_with_the_same_key_is_an_error(tmp_path: Path, make_results: Make) -> None:
    lines = lines_of(make_results(2))
    with pytest.raises(UsageError, match="a second item with the key"):
        read_results(write(tmp_path / "r.jsonl", [*lines, lines[1]]))


@pytest.mark.parametrize("first", ["", "nonsense", '{"t": "item"}', "[1]"])
def test_a_file_without_a_header_is_refused(first: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="line 1: expected the header"):
        read_results(write(tmp_path / "r.jsonl", [first]))


def test_a_missing_file_is_said_and_results_without_items_are_refused(tmp_path: Path) -> None:
    from concertino_bench.reports import build

    with pytest.raises(UsageError, match=r"gone\.jsonl cannot be read"):
        read_results(tmp_path / "gone.jsonl")
    with pytest.raises(ValueError, match="at least one"):
        build(read_results(write(tmp_path / "r.jsonl", ['{"t": "bench"}'])))


# -- several files ---------------------------------------------------------------------------------------------------


def test_systems_of_one_name_are_named_after_their_files(tmp_path: Path, make_results: Make) -> None:
    paths = [write(tmp_path / f"{name}.jsonl", lines_of(make_results(3, seed=seed))) for seed, name in enumerate("ab")]
    found = read_all(paths)
    assert found.systems[:2] == ["single (a)", "single+tools (a)"]
    assert len(found.systems) == 10
    assert len({item.key for item in found.items}) == len(found.items) == 30
    assert [each["name"] for each in found.header["systems"]] == found.systems
    assert any("'single' of a is called 'single (a)' here" in note for note in found.notes)
    assert list(found.headers) == ["a", "b"]


def test_systems_of_different_names_keep_them(make_results: Make) -> None:
    both = make_results(3)
    parts = {
        name: Results(both.header, [item for item in both.items if item.key.system == name])
        for name in ("single", "serial")
    }
    assert combine(parts).systems == ["single", "serial"]


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path: Path, make_results: Make) -> None:
    paths = [write(tmp_path / folder / "r.jsonl", lines_of(make_results(2))) for folder in ("old", "new")]
    assert read_all(paths).systems[0] == "single (old/r)"
    with pytest.raises(UsageError, match="named twice"):
        read_all([paths[0], paths[0]])
    with pytest.raises(ValueError, match="at least one"):
        combine({})


def test_a_name_that_looks_like_a_renamed_one_stays_unique(make_results: Make) -> None:
    from dataclasses import replace

    one = make_results(1)
    first = [item for item in one.items if item.key.system == "single"]
    odd = [replace(item, key=item.key._replace(system="single (a)")) for item in first]
    found = combine({"a": Results({}, [*first, *odd]), "b": Results({}, first)})
    assert len(set(found.systems)) == 3
