"""Bad rows: one is an error unless some are allowed; then it is left out, told, and all rows behind it are read."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from concertino_bench import DataError
from concertino_bench.loaders import DataWarning, skip_bad_rows, stream
from concertino_bench.loaders.grade_school import gsm8k
from concertino_bench.loaders.own import jsonl
from concertino_bench.runner.evaluation import Selection
from concertino_bench.tasks.task import TaskSet

GOOD = {"question": "How many?", "answer": "#### 1"}


def lines(*rows: Any) -> bytes:
    return b"\n".join(row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows)


# What is wrong with the second of three rows, and what the error says.
BAD: list[tuple[bytes | dict[str, Any], str]] = [
    ({"question": "How many?"}, r":2: no column 'answer'"),
    ({"question": 7, "answer": "#### 1"}, r":2: column 'question' is a number \(7\); expected a text"),
    ({"question": "How many?", "answer": "many"}, r":2: column 'answer' is a text"),
    (b'{"question": "cut', r":2: invalid JSON"),
    (b"[1]", r":2: a list"),
    (b'{"question": "\xe9"}', r":2: byte 0xe9 is not UTF-8"),
    (b'{"question": NaN}', r":2: invalid JSON \(NaN is not JSON\)"),
    ({**GOOD, "id": "gsm8k/row-1"}, r":2: the id 'gsm8k/row-1' is that of line 1 too"),
]


@pytest.mark.parametrize(("bad", "says"), BAD)
@pytest.mark.parametrize("packed", [False, True])
def test_a_bad_row_is_an_error_or_left_out_and_the_rows_behind_it_are_read(
    bad: Any, says: str, packed: bool, tmp_path: Path
) -> None:
    file = tmp_path / ("rows.jsonl.gz" if packed else "rows.jsonl")
    content = lines(GOOD, bad, GOOD)
    file.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(DataError, match=says):
        list(gsm8k(path=file))
    with skip_bad_rows(1) as skipped:
        assert [task.id for task in gsm8k(path=file)] == ["gsm8k/row-1", "gsm8k/row-3"]
    (error,) = skipped.errors
    with pytest.raises(DataError, match=says):
        raise error


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (b"4|5|6", ":3: 3 cells; expected 2"),
        (b'"a" b|5', ":3: invalid CSV"),
        (b"\xe9|5", ":3: byte 0xe9 is not UTF-8"),
    ],
)
def test_a_bad_row_of_a_table_is_left_out_alone(suffix: str, bad: bytes, says: str, tmp_path: Path) -> None:
    file = tmp_path / f"rows.{suffix}"
    content = b"question|answer\n1+1?|2\n" + bad + b"\n2+2?|4\n"
    file.write_bytes(content.replace(b"|", b"," if suffix == "csv" else b"\t"))
    with pytest.raises(DataError, match=says):
        list(jsonl(path=file))
    with skip_bad_rows(1) as skipped:
        assert [task.answer for task in jsonl(path=file)] == ["2", "4"]
    assert len(skipped.errors) == 1


def test_one_bad_row_more_than_allowed_is_an_error_that_says_how_many_were_allowed(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(lines({}, {"a": 1}, GOOD))
    with skip_bad_rows(1), pytest.raises(DataError, match=r":2: .* \(1 bad row may be left out, and this is one more"):
        list(gsm8k(path=file))
    with pytest.raises(ValueError, match="expected a whole number from 0"), skip_bad_rows(-1):
        pass


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rows.json", b'[{"question": "a", "answer": "#### 1"}, {"question" 2}]'),
        ("rows.csv", b'question,answer\na,"never closed\nb,c\n'),
        ("rows.csv", b"question,question\na,b\n"),
        ("rows.jsonl", b""),
        ("rows.jsonl.gz", gzip.compress(lines(*[GOOD] * 99), mtime=0)[:60]),
    ],
    ids=["a list that breaks off", "an open quote", "a name twice", "no row", "gzip that is cut off"],
)
def test_what_is_wrong_with_a_whole_file_is_never_left_out(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with skip_bad_rows(1000), pytest.raises(DataError):
        list(gsm8k(path=tmp_path / name))


def test_what_was_allowed_when_the_loader_was_called_counts_and_not_what_is_allowed_later(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(lines(b"{", GOOD, {**GOOD, "id": "gsm8k/row-2"}))
    with skip_bad_rows(2) as skipped:
        tasks = gsm8k(path=file)
    # The second reading, which looks for the first row of an id, does not count the first fault again.
    assert [task.id for task in tasks] == ["gsm8k/row-2"]
    assert len(skipped.errors) == 2
    with skip_bad_rows(1), pytest.raises(DataError, match=r":3: the id 'gsm8k/row-2' is that of line 2 too"):
        list(gsm8k(path=file))
    strict = gsm8k(path=file)
    with skip_bad_rows(9), pytest.raises(DataError):
        list(strict)


def test_a_selection_tells_each_row_that_it_leaves_out_and_how_to_leave_one_out(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(lines(GOOD, {"question": "?"}, GOOD))
    home = TaskSet("gsm8k", "Rows.", gsm8k)
    with pytest.raises(Exception, match=r"rows.jsonl:2: no column 'answer'.*; --skip-bad N leaves out up to N such"):
        Selection(home, {"path": file}).tasks()
    with pytest.warns(DataWarning, match=r"left out of gsm8k: .*rows.jsonl:2: no column 'answer'"):
        assert len(Selection(home, {"path": file}, skip_bad=1).tasks()) == 2


def test_a_loader_of_ones_own_may_make_several_tasks_of_a_row_or_none(tmp_path: Path) -> None:
    from concertino_bench import Task

    file = tmp_path / "rows.jsonl"
    file.write_bytes(lines({"n": 2}, {"n": 0}, {"n": 1}))

    def make(row: Any) -> list[Task]:
        return [Task(f"{row.number}/{k}", "Q?", ("a",), "text") for k in range(row.data["n"])]

    assert [task.id for task in stream(file, make)] == ["1/0", "1/1", "3/0"]


# -- folders, patterns, Parquet ----------------------------------------------------------------------------------------


def test_a_folder_is_read_in_the_order_of_its_names_and_rows_are_numbered_on(tmp_path: Path) -> None:
    for name, question in (("b.jsonl", "second?"), ("a.jsonl", "first?"), ("README.md", "no")):
        (tmp_path / name).write_bytes(lines({**GOOD, "question": question}))
    tasks = list(gsm8k(path=tmp_path))
    assert [(task.id, task.question) for task in tasks] == [("gsm8k/row-1", "first?"), ("gsm8k/row-2", "second?")]
    (tmp_path / "b.jsonl").write_bytes(lines({**GOOD, "id": "gsm8k/row-1"}))
    with pytest.raises(DataError, match=r"b.jsonl:1: the id 'gsm8k/row-1' is that of .*a.jsonl:1 too"):
        list(gsm8k(path=tmp_path))


def test_splits_of_one_folder_are_not_mixed_and_a_pattern_chooses_one(tmp_path: Path) -> None:
    for name in ("train-0.jsonl", "train-1.jsonl", "test-0.jsonl", "trainers.jsonl"):
        (tmp_path / name).write_bytes(lines({**GOOD, "question": name}))
    with pytest.raises(DataError, match=r"files of several splits \('test-0.jsonl', 'train-1.jsonl'\); .* path="):
        list(gsm8k(path=tmp_path))
    assert [task.question for task in gsm8k(path=tmp_path / "train-*.jsonl")] == ["train-0.jsonl", "train-1.jsonl"]


@pytest.fixture
def parquet(tmp_path: Path) -> Callable[..., Path]:
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'concertino-bench[parquet]'")
    tables = pytest.importorskip("pyarrow.parquet")

    def write(rows: list[dict[str, Any]], name: str = "rows.parquet") -> Path:
        tables.write_table(pyarrow.Table.from_pylist(rows), tmp_path / name)
        return tmp_path / name

    return write


def test_parquet_is_read_row_by_row_as_json_data(parquet: Callable[..., Path]) -> None:
    import datetime
    import decimal

    odd = {"at": datetime.date(2020, 1, 2), "raw": b"\0a", "n": float("nan"), "price": decimal.Decimal("1.50")}
    file = parquet([{"question": "a?", "answer": "x", **odd, "list": [{"k": 1}]}, {"question": "b?", "answer": None}])
    columns = ("at", "raw", "price", "list")
    with skip_bad_rows(1) as skipped:
        (task,) = jsonl(path=file, metadata=columns)
    assert task.metadata == {"at": "2020-01-02", "raw": "AGE=", "price": "1.50", "list": [{"k": 1}]}
    assert json.loads(json.dumps(dict(task.metadata))) == task.metadata
    assert "rows.parquet:2: column 'answer' is null" in str(skipped.errors[0])


def test_a_parquet_file_that_is_none_and_a_missing_pyarrow_say_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parquet: Callable[..., Path]
) -> None:
    file = tmp_path / "broken.parquet"
    file.write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match=r"broken.parquet: no Parquet file that can be read"):
        list(gsm8k(path=file))
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"needs pyarrow; .* pip install 'concertino-bench\[parquet\]'"):
        list(gsm8k(path=parquet([GOOD])))


@pytest.mark.slow
def test_a_hundred_thousand_rows_of_parquet_are_read_in_seconds(parquet: Callable[..., Path]) -> None:
    import time

    rows = [{"question": f"What is {n}?", "answer": f"It is.\n#### {n}", "id": f"row-{n}"} for n in range(100_000)]
    file = parquet(rows)
    begun = time.process_time()
    assert sum(1 for _ in gsm8k(path=file)) == 100_000
    # 2 s of CPU when it was written; the bar of the project is 5 s on an idle machine.
    assert time.process_time() - begun < 15
