"""LiveCodeBench, CodeContests and APPS: programs that read an input and print an output, or a function that is called.

A task's metadata is what the grader `input-output` takes: `tests`, `entry_point`, `compare` and its other rules, the
limits. The invariants: nothing is run here, and no published pickle is loaded but for plain data; every task has a
test, with an output; outputs are compared by the rule of their benchmark's own script.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import warnings
import zlib
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from concertino_bench.tasks.task import DataError, Task

from .plain_pickles import load_plain
from .row_values import brief, is_number
from .rows import DataRow
from .streaming import DataWarning, Make, id_of, rest, split_of, stream

Test = dict[str, str]

_READ = (
    "Write a Python program that reads its input from standard input and prints its output to standard output. "
    "Answer with the whole program, imports included, in one code block."
)
_CALL = "Write the Python function `{name}`. Answer with the whole program, imports included, in one code block."
_START = "Begin with this:\n\n```python\n{code}\n```"
# Unpacked bytes of one row's hidden tests: the largest published ones have some hundred megabytes.
_LARGEST = 1 << 30


def livecodebench(
    *, path: str | Path, hidden: bool = True, since: str = "", until: str = "", split: str = ""
) -> Iterator[Task]:
    """Tasks of the kind "program".

    Args:
        path: rows with `question_content`, `public_test_cases`, `private_test_cases`, `metadata`, as in `test6.jsonl`.
        hidden: with the hidden tests; without them only the public ones count.
        since: leaves out problems of contests before this day, such as "2025-01-01".
        until: the same for contests after this day.
    """
    window = tuple(_day(name, text) for name, text in (("since", since), ("until", until)))
    return stream(path, lambda row: _live(row, hidden, window, split))


def codecontests(*, path: str | Path, generated: bool = True, split: str = "") -> Iterator[Task]:
    """Tasks of the kind "program". Problems that read a file instead of their input are left out, with a warning.

    Args:
        path: rows with `description`, `public_tests`, `private_tests` and `generated_tests`: the Parquet files.
        generated: with the tests that were generated from the others.
    """
    return stream(path, _codecontests(generated, split))


def apps(*, path: str | Path, split: str = "") -> Iterator[Task]:
    """Tasks of the kind "program". Problems without a test are left out, with a warning.

    Args:
        path: rows with `question` and `input_output`, such as `test.jsonl`.
    """
    return stream(path, _apps(split))


# -- LiveCodeBench -----------------------------------------------------------------------------------------------------


def _live(row: DataRow, hidden: bool, window: tuple[date | None, ...], split: str) -> Task | None:
    since, until = window
    if since or until:
        day = _contest_day(row)
        if (since and day < since) or (until and day > until):
            return None
    entry = str(_json(row, "metadata", dict).get("func_name") or "") if row.column("metadata") else ""
    cases = _json(row, "public_test_cases", list)
    if hidden and row.column("private_test_cases"):
        cases = [*cases, *_hidden(row)]
    tests = [_live_test(row, case, entry) for case in cases]
    if not tests:
        row.wrong("public_test_cases", "at least one test")
    question = _question(row.text("question_content"), entry, row.text("starter_code", default=""))
    # As its own script does: line by line, numbers as decimals, the usual names imported, six seconds for each test.
    metadata = _metadata(tests, entry, compare="lines", imports=True, seconds=6.0)
    metadata |= rest(row, "question_title", "platform", "contest_id", "contest_date", "difficulty")
    name = id_of("livecodebench", row, "question_id")
    return Task(name, question, (), "program", split=split_of(row, split), metadata=metadata)


def _live_test(row: DataRow, case: Any, entry: str) -> Test:
    if not isinstance(case, Mapping) or not all(isinstance(case.get(name), str) for name in ("input", "output")):
        raise row.error(f"a test is {brief(case)}; expected an object with the texts 'input' and 'output'")
    if (case.get("testtype") == "functional") != bool(entry):
        needs = "no func_name in 'metadata'" if not entry else f"the func_name {entry!r} in 'metadata'"
        raise row.error(f"a test of the type {case.get('testtype')!r}, and {needs}; expected one that fits")
    if not entry:
        return {"input": case["input"], "output": case["output"]}
    try:
        # Each line is one argument.
        arguments = [json.loads(line) for line in case["input"].split("\n")]
        json.loads(case["output"])
    except (ValueError, RecursionError):
        raise row.error(f"a test of a function, {brief(case)}; expected JSON, an argument in each line") from None
    return {"input": json.dumps(arguments), "output": case["output"]}


def _hidden(row: DataRow) -> list[Any]:
    """The hidden tests: JSON, or as published: JSON in a pickle, compressed, in base64."""
    text = row.text("private_test_cases")
    if text.lstrip().startswith("["):
        return list(_json(row, "private_test_cases", list))
    try:
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(base64.b64decode(text, validate=True), _LARGEST)
        if not unpacking.eof:
            raise ValueError(f"cut short, or more than {_LARGEST >> 20} MiB")
        found = load_plain(io.BytesIO(data))
        tests = json.loads(found) if isinstance(found, str) else found
    except (binascii.Error, zlib.error, ValueError, RecursionError) as error:
        raise row.error(
            f"column 'private_test_cases': {error}; expected JSON, or JSON in a pickled text, compressed, in base64"
        ) from None
    if not isinstance(tests, list):
        raise row.error(f"column 'private_test_cases' holds {brief(tests)}; expected a list of tests")
    return tests


def _day(name: str, text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise DataError(f"{name}={text!r}; expected a day, such as '2025-01-31'") from None


def _contest_day(row: DataRow) -> date:
    text = row.text("contest_date")
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        row.wrong("contest_date", "a day, such as '2025-01-31T00:00:00'")


# -- CodeContests ------------------------------------------------------------------------------------------------------


def _codecontests(generated: bool, split: str) -> Make:
    left_out = _Told()

    def make(row: DataRow) -> Task | None:
        if row.data.get("input_file") or row.data.get("output_file"):
            left_out.tell(row, "a problem that reads or writes a file")
            return None
        names = ["public_tests", "private_tests", *(["generated_tests"] if generated else [])]
        row.needed(*names)
        tests = [test for name in names if row.column(name) for test in _pairs(row, name)]
        if not tests:
            row.wrong(row.needed(*names), "at least one test")
        # As its own script compares: words without case, numbers within 1e-5.
        metadata = _metadata(tests, tolerance=1e-5, ignore_case=True) | _limits(row)
        metadata |= rest(row, "source", "difficulty", "cf_rating", "cf_tags")
        question = _question(row.text("description"))
        name = id_of("codecontests", row, "name")
        return Task(name, question, (), "program", split=split_of(row, split), metadata=metadata)

    return make


def _pairs(row: DataRow, name: str) -> list[Test]:
    """Tests: an object with two lists, as in the Parquet files, or a list of objects, as their own converter writes."""
    value = row.data[name]
    if isinstance(value, Mapping):
        given, wanted = value.get("input"), value.get("output")
        if isinstance(given, list) and isinstance(wanted, list) and len(given) == len(wanted):
            value = [{"input": one, "output": other} for one, other in zip(given, wanted, strict=True)]
    if not isinstance(value, list) or not all(
        isinstance(test, Mapping) and isinstance(test.get("input"), str) and isinstance(test.get("output"), str)
        for test in value
    ):
        row.wrong(name, "lists of texts of one length under 'input' and 'output'")
    return [{"input": test["input"], "output": test["output"]} for test in value]


def _limits(row: DataRow) -> dict[str, float]:
    found: dict[str, float] = {}
    limit: Any = row.data.get("time_limit")
    if isinstance(limit, Mapping):
        limit = (limit.get("seconds") or 0) + (limit.get("nanos") or 0) / 1e9
    if is_number(limit) and limit > 0:
        found["seconds"] = float(limit)
    memory: Any = row.data.get("memory_limit_bytes")
    if is_number(memory) and memory > 0:
        found["memory_mb"] = memory / (1 << 20)
    return found


# -- APPS --------------------------------------------------------------------------------------------------------------


def _apps(split: str) -> Make:
    left_out = _Told()

    def make(row: DataRow) -> Task | None:
        row.needed("question")
        data = _json(row, "input_output", dict) if row.text("input_output", default="").strip() else {}
        given, wanted = data.get("inputs", []), data.get("outputs", [])
        if not given and not wanted:
            left_out.tell(row, "a problem without a test")
            return None
        if not isinstance(given, list) or not isinstance(wanted, list) or len(given) != len(wanted):
            row.wrong("input_output", "lists of one length under 'inputs' and 'outputs'")
        entry = str(data.get("fn_name") or "")
        tests = [_apps_test(row, *pair, entry) for pair in zip(given, wanted, strict=True)]
        # As its own script does: numbers nearly, a result also as the first item of the expected list, four seconds.
        rules = {"unwrap": True} if entry else {"tolerance": 1e-8, "relative_tolerance": 1e-5}
        metadata = _metadata(tests, entry, imports=True, seconds=4.0, **rules) | rest(row, "difficulty", "url")
        question = _question(row.text("question"), entry, row.text("starter_code", default=""))
        name = id_of("apps", row, "problem_id", "id")
        return Task(name, question, (), "program", split=split_of(row, split), metadata=metadata)

    return make


def _apps_test(row: DataRow, given: Any, wanted: Any, entry: str) -> Test:
    if entry:
        if not isinstance(given, list):
            raise row.error(f"the input of a function is {brief(given)}; expected the list of its arguments")
        return {"input": json.dumps(given), "output": json.dumps(wanted)}
    found = ["\n".join(map(str, each)) if isinstance(each, list) else each for each in (given, wanted)]
    if not all(isinstance(each, str) for each in found):
        raise row.error(f"a test is {brief((given, wanted))}; expected texts, or lists of lines")
    return {"input": found[0], "output": found[1]}


# -- all of them -------------------------------------------------------------------------------------------------------


class _Told:
    """Warns of the first row that is left out, and of no further one."""

    done = False

    def tell(self, row: DataRow, what: str) -> None:
        """Warn, if that was not done."""
        if not self.done:
            warnings.warn(f"{row.place}: {what}; it and further ones are left out", DataWarning, stacklevel=4)
            self.done = True


def _question(text: str, entry: str = "", start: str = "") -> str:
    parts = [text.strip(), _CALL.format(name=entry) if entry else _READ]
    if start.strip():
        parts.append(_START.format(code=start.rstrip()))
    return "\n\n".join(parts)


def _metadata(tests: list[Test], entry: str = "", **rules: Any) -> dict[str, Any]:
    return {"tests": tests, "entry_point": entry, "language": "python", **rules}


def _json(row: DataRow, name: str, kind: type) -> Any:
    """What a column holds as JSON, or as it is."""
    value = row.data[row.needed(name)]
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            row.wrong(name, "JSON")
    if not isinstance(value, kind):
        row.wrong(name, f"JSON: {'an object' if kind is dict else 'a list'}")
    return value
