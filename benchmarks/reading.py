"""How long `read_json` takes: valid calls against `json.loads`, and 25 hostile texts at the size limits.

    python benchmarks/reading.py [--json]

Two tables. *Valid*: microseconds for one call of ordinary arguments, and the ratio to bare `json.loads`
(bar: 2.5 below 1 KB). *Hostile*: seconds for texts built to make a reader slow, deep or hungry, each as long
as the limits let it be (bar: 0.5 s), and the verdict. `HOSTILE` is also what the tests run.
"""

from __future__ import annotations

import argparse
import json
import time
import timeit
from collections.abc import Callable
from typing import Any

from concertino.text.json import ReadingError, read_json
from concertino.text.json.limits import MAX_REPAIR_CHARS, MAX_STRICT_CHARS

VALID: dict[str, Any] = {
    "empty": {},
    "query": {"query": "population of Lyon 2021", "top_k": 3},
    "prose": {"question": "Which of the two rivers is longer? " * 20, "n": 3},
    "code": {"code": 'for i in range(3):\n    print("a", i)\n' * 18, "timeout": 5},
    "chinese": {"query": "北京的人口是多少" * 40},
    "nested": {"agents": [{"name": "cot", "k": i, "w": 0.5, "opts": {"vote": True}} for i in range(14)]},
    "integers": {"values": list(range(200))},
    "floats": {"values": [i / 7 for i in range(45)]},
}


def _filled(before: str, unit: str, behind: str = "", size: int = MAX_REPAIR_CHARS) -> str:
    return before + unit * ((size - len(before) - len(behind)) // len(unit)) + behind


HOSTILE: dict[str, Callable[[], str]] = {
    "strict: one string": lambda: _filled('{"a":"', "x", '"}', MAX_STRICT_CHARS),
    "strict: escapes": lambda: _filled('{"a":"', "\\n", '"}', MAX_STRICT_CHARS),
    "strict: unicode escapes": lambda: _filled('{"a":"', "\\ud83d\\ude00", '"}', MAX_STRICT_CHARS),
    "strict: integers": lambda: _filled('{"a":[', "1,", "1]}", MAX_STRICT_CHARS),
    "strict: empty arrays": lambda: _filled('{"a":[', "[],", "1]}", MAX_STRICT_CHARS),
    "strict: empty objects": lambda: _filled('{"a":[', "{},", "1]}", MAX_STRICT_CHARS),
    "strict: infinity at the end": lambda: _filled('{"a":[', "0.5,", "1e999]}", MAX_STRICT_CHARS),
    "strict: too deep at the end": lambda: _filled('{"a":[', "1,[2],", "[" * 70, MAX_STRICT_CHARS),
    "strict: long digits": lambda: _filled('{"a":', "7", "}", MAX_STRICT_CHARS),
    "strict: not closed": lambda: _filled('{"a":"', "x", "", MAX_STRICT_CHARS),
    "open objects": lambda: _filled("", "{"),
    "open arrays": lambda: _filled('{"a":', "["),
    "nested keys": lambda: _filled("", '{"a":'),
    "open quoted braces": lambda: _filled("", "{'"),
    "braces of prose": lambda: _filled("", "{x} ", '{"a": 1}'),
    "empty objects in prose": lambda: _filled("", "{} "),
    "stray backslashes": lambda: _filled('{"a": "', "\\d", '"}'),
    "backslashes only": lambda: _filled('{"a": "', "\\"),
    "raw controls": lambda: _filled('{"a": "', "\n", '"}'),
    "single quotes": lambda: _filled("{'a': [", "'x', ", "]}"),
    "bare keys": lambda: "{" + ",".join(f"k{i}:{i}" for i in range(MAX_REPAIR_CHARS // 14)) + "}",
    "comments": lambda: _filled('{"a": 1', " /**/", "}"),
    "comment openers": lambda: _filled('{"a": 1 ', "/*"),
    "missing commas": lambda: _filled('{"a": [', "1 ", "]}"),
    "tags": lambda: _filled("", "<tool_call>"),
    "tag openers": lambda: _filled("", "<a"),
    "think openers": lambda: _filled("", "<think>"),
    "think blocks": lambda: _filled("", "<think>{</think>", "{'a': 1}"),
    "fences": lambda: _filled("", "```"),
    "blanks": lambda: _filled("", " \n", "x"),
    "invisible": lambda: _filled("", "\u200b", "{'a': 1}"),
    "quotes in prose": lambda: _filled("{'a': 1} ", '"'),
    "encoded twice": lambda: json.dumps(_filled("{'a': '", "x", "'}", MAX_REPAIR_CHARS)),
    "escaped quotes": lambda: _filled("", '{\\"'),
}


def valid_rows() -> list[dict[str, Any]]:
    """Microseconds for `json.loads` and `read_json`, the best of seven repeats."""
    rows = []
    for name, value in VALID.items():
        text = json.dumps(value, ensure_ascii=False)
        loads = min(timeit.repeat(lambda text=text: json.loads(text), number=4000, repeat=7)) / 4e-3
        ours = min(timeit.repeat(lambda text=text: read_json(text), number=4000, repeat=7)) / 4e-3
        rows.append({"case": name, "chars": len(text), "loads_us": loads, "ours_us": ours, "ratio": ours / loads})
    return rows


def hostile_rows() -> list[dict[str, Any]]:
    """Seconds and verdict for each hostile text, read once."""
    rows = []
    for name, build in HOSTILE.items():
        text = build()
        started = time.perf_counter()
        try:
            verdict = ", ".join(read_json(text).repairs) or "read"
        except ReadingError as error:
            verdict = error.code
        rows.append({"case": name, "chars": len(text), "s": time.perf_counter() - started, "verdict": verdict})
    return rows


def main() -> None:
    """Print both tables, or both as one JSON object."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    as_json = parser.parse_args().json
    valid, hostile = valid_rows(), hostile_rows()
    if as_json:
        print(json.dumps({"valid": valid, "hostile": hostile}))
        return
    print(f"{'valid call':12}{'chars':>7}{'loads us':>10}{'ours us':>10}{'ratio':>7}")
    for row in valid:
        numbers = f"{row['chars']:>7}{row['loads_us']:>10.2f}{row['ours_us']:>10.2f}{row['ratio']:>7.2f}"
        print(f"{row['case']:12}{numbers}")
    print(f"\n{'hostile text':30}{'chars':>9}{'seconds':>9}  verdict")
    for row in hostile:
        print(f"{row['case']:30}{row['chars']:>9}{row['s']:>9.3f}  {row['verdict']}")


if __name__ == "__main__":
    main()
