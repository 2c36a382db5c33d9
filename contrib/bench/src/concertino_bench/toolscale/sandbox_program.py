"""One call of one function on a state. This file is the script that runs in the sandbox; it imports nothing of ours."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import zlib
from typing import Any


class FunctionRefused(Exception):
    """A function refuses."""


class TrackedTable(dict[str, Any]):
    """A table that remembers which keys were looked up one by one."""

    def __init__(self, rows: dict[str, Any]) -> None:
        super().__init__(rows)
        self.seen: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self.seen.add(key)
        return dict.__getitem__(self, key)

    def get(self, key: str, default: Any = None) -> Any:
        """A row, or the default."""
        return self[key] if key in self else default  # noqa: SIM401 - that is what this is


def perform(given: dict[str, Any]) -> dict[str, Any]:
    """Run the function, and find out what it changed."""
    tables: dict[str, Any] = {name: TrackedTable(rows) for name, rows in given["state"].items()}
    # As texts: a copy would cost the same, and texts tell 1 from true.
    before = _texts(tables)
    # Not "__main__": a block of tries at the end of the code must not run.
    scope: dict[str, Any] = {"__name__": "tools", "ToolError": FunctionRefused}
    silent = io.StringIO()
    # What the function prints is not its result.
    with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
        exec(compile(given["code"], given["name"] + ".py", "exec"), scope)
        content = scope[given["name"]](tables, **given["arguments"])
    # The result is told as records of tables; a function that replaces a table could not be told.
    if set(tables) != set(before) or not all(isinstance(rows, dict) for rows in tables.values()):
        raise TypeError("the tables of the database must stay what they are")
    if not all(isinstance(key, str) for rows in tables.values() for key in rows):
        raise TypeError("keys of records must be texts")
    after = _texts(tables)
    seen: dict[str, set[str]] = {name: getattr(rows, "seen", set()) for name, rows in tables.items()}
    changes = [
        [name, key, json.loads(after[name][key]) if key in after[name] else None]
        for name in before
        for key in sorted({*before[name], *after[name]})
        if before[name].get(key) != after[name].get(key)
    ]
    read = [[name, key] for name, keys in seen.items() for key in sorted(keys) if key in after[name]]
    return {"content": json.loads(json.dumps(content, allow_nan=False)), "read": read, "changes": changes}


def answer(given: dict[str, Any]) -> dict[str, Any]:
    """The result of the call, whatever the function did."""
    try:
        return perform(given)
    except Exception as error:
        if isinstance(error, FunctionRefused):
            return {"error": str(error) or "refused"}
        trace, line = error.__traceback__, 0
        # The innermost line of the model's own code: that is what the model can mend.
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == given["name"] + ".py":
                line = trace.tb_lineno
            trace = trace.tb_next
        where = f" (line {line} of its code)" if line else ""
        return {"error": f"{type(error).__name__}: {error}{where}", "broken": True}


def main(packed: str) -> None:
    """Read what is given, and write one line: the mark, and the result."""
    given = json.loads(zlib.decompress(base64.b85decode(packed)))
    done = base64.b85encode(zlib.compress(json.dumps(answer(given)).encode())).decode()
    print(f"{given['mark']}{done}")  # noqa: T201 - this is the script's output


def _texts(tables: dict[str, Any]) -> dict[str, dict[str, str]]:
    return {name: {key: json.dumps(row, sort_keys=True) for key, row in rows.items()} for name, rows in tables.items()}
