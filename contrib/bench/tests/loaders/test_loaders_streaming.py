"""Streams: 100,000 rows take little more memory than 10,000, and the first task comes before the last is read."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from concertino_bench.loaders import overlap, subset
from concertino_bench.loaders.grade_school import gsm8k

PROGRAM = """
import sys, concertino_bench.loaders
heavy = {"numpy", "pandas", "sympy", "pickle5", "torch", "aiohttp"} & set(sys.modules)
assert not heavy, heavy
"""


def rows(count: int) -> Iterator[str]:
    for number in range(count):
        question = f"What is {number} plus {number}? " + "x" * 800
        yield json.dumps({"id": f"row-{number}", "question": question, "answer": f"Twice.\n#### {2 * number}"})


def write(path: Path, count: int) -> Path:
    with path.open("w", encoding="utf-8") as file:
        listed = path.suffix == ".json"
        file.write("[\n" if listed else "")
        for number, row in enumerate(rows(count)):
            file.write((",\n" if listed and number else "") + row + ("" if listed else "\n"))
        file.write("]" if listed else "")
    return path


def peak_of(path: Path) -> tuple[int, int]:
    """Tasks, and the most bytes that were held at once."""
    tracemalloc.start()
    try:
        count = sum(1 for _ in gsm8k(path=path))
        return count, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".jsonl", pytest.param(".json", marks=pytest.mark.soak)])
def test_memory_is_flat_while_many_rows_stream(suffix: str, tmp_path: Path) -> None:
    most = 100_000 if os.environ.get("CONCERTINO_FUZZ") else 25_000
    few, small = peak_of(write(tmp_path / f"few{suffix}", 5_000))
    file = write(tmp_path / f"many{suffix}", most)
    many, large = peak_of(file)
    assert (few, many) == (5_000, most)
    assert file.stat().st_size > 850 * most
    assert large - small < 40 * most, f"{large - small:,} bytes more"


def test_the_first_task_is_there_before_the_last_row_is_read(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl.gz"
    with gzip.open(file, "wt", encoding="utf-8") as packed:
        packed.writelines(f"{row}\n" for row in rows(500))
        packed.write("no JSON")
    stream = gsm8k(path=file)
    assert next(stream).id == "row-0"
    assert [task.id for task in subset((task for task, _ in zip(stream, range(400), strict=False)), 2)]


def test_importing_the_loaders_is_light() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_two_real_sets_are_compared(shared_data: Path) -> None:
    test = list(gsm8k(path=shared_data / "gsm8k" / "test_400.jsonl"))
    train = list(gsm8k(path=shared_data / "gsm8k" / "train_600.jsonl"))
    report = overlap(train, test)
    assert report.exact == ()
    assert overlap(train, train).shared == 600
