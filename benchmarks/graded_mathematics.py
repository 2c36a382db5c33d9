"""S24: mathematics and letters of the shared test data: recorded verdicts, wrong answers, the time of a grade.

    python benchmarks/graded_mathematics.py [--json] [--quick]

Firm pairs of five graders' own tests, letters of recorded outputs, every gold in the forms in which models answer, and
golds that are changed until they are wrong (`tests/support/changed_golds.py`). Both judges compare; the grades of one
process are timed one by one, the first included. `--quick` takes a tenth of the grades.
"""

from __future__ import annotations

import json
import os
import sys
import time
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from measure import Row, script

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from changed_golds import right_answers, wrong_answers  # noqa: E402
from concertino_bench import Grade, Task  # noqa: E402
from concertino_bench.graders import Mathematics  # noqa: E402
from concertino_bench.graders.choice import read_letter  # noqa: E402

_GRADES = 10_000
_UPSTREAM_GUESSES = ("I cannot provide an answer", "(None of the above)")
"""Outputs that choose no letter, where upstream took a letter of these words for one."""


def folder() -> Path:
    """The shared test data."""
    data = Path(os.environ.get("CONCERTINO_TEST_DATA", ROOT.parent / "shared" / "data"))
    if not data.is_dir():
        raise SystemExit(f"{data} is not there; point CONCERTINO_TEST_DATA at the folder of data samples")
    return data


def rows_of(file: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON Lines."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


class Timed:
    """A grader, and the seconds of each of its grades."""

    def __init__(self) -> None:
        self.grader = Mathematics()
        self.seconds: list[float] = []

    def grade(self, gold: object, text: object) -> Grade:
        began = time.perf_counter()
        grade = self.grader.judge(Task("t", "?", (str(gold),), "math"), str(text))
        self.seconds.append(time.perf_counter() - began)
        return grade


def letters(data: Path) -> tuple[int, int]:
    """How many recorded letters are read as recorded, and of how many."""
    lettered = [
        row
        for row in rows_of(data / "mmlu_pro_outputs" / "outputs.jsonl")
        if row["upstream_pred"] and not any(guess in row["output"] for guess in _UPSTREAM_GUESSES)
    ]
    same = sum(read_letter(row["output"], row["options"])[0] == row["upstream_pred"] for row in lettered)
    return same, len(lettered)


def rows(quick: bool) -> list[Row]:
    """All figures; shares are of what differs, so that each has a bar that it must not exceed."""
    data, timed = folder(), Timed()
    firm = [row for row in rows_of(data / "math_equivalence" / "pairs.jsonl") if row["firm"]]
    differ = sum(bool(timed.grade(row["gold"], row["pred"]).score) != row["equal"] for row in firm)
    same, lettered = letters(data)
    golds = right_answers(data)
    missed = sum(timed.grade(*pair).score != 1 for pair in golds)
    wrong = wrong_answers(data, at_least=4_000)[:: 10 if quick else 1]
    grades = [timed.grade(*pair) for pair in wrong]
    both = [grade.values["judges-agree"] for grade in grades if grade.values]
    more = [*golds, *wrong, *((str(row["gold"]), str(row["pred"])) for row in firm)]
    for pair in islice(cycle(more), max(0, _GRADES // (10 if quick else 1) - len(timed.seconds))):
        timed.grade(*pair)
    ordered = sorted(timed.seconds)
    return [
        Row("S24", f"{len(firm)} firm pairs of mathematics: another verdict", 100 * differ / len(firm), "%", 2.0),
        Row("S24", f"{lettered} letters: another one", 100 * (1 - same / lettered), "%", 1.0),
        Row("S24", f"{len(golds)} golds as models write them: not right", 100 * missed / len(golds), "%", 2.0),
        Row("S24", f"{len(wrong):,} changed golds: accepted", sum(grade.score for grade in grades), "", 0.0),
        Row("S24", "the same: the two judges disagree", 100 - 100 * sum(both) / max(1, len(both)), "%"),
        Row("S24", f"{len(ordered):,} grades: median", 1e3 * ordered[len(ordered) // 2], "ms"),
        Row("S24", "the same: 99th percentile", 1e3 * ordered[int(0.99 * len(ordered))], "ms", 200.0),
        Row("S24", "the same: longest", 1e3 * ordered[-1], "ms", 5000.0),
    ]


if __name__ == "__main__":
    sys.exit(script(rows, __doc__))
