"""How long from nothing to the first streamed answer: four commands, as a new user types them.

    make dist && python benchmarks/fresh_environment.py [--server transformers] [--json]

A new folder, a new virtual environment, pip without its cache, wheels of this tree for concertino and the package index
for all else. The local server runs already: a stand-in that streams, or with `--server transformers` the real server of
transformers with the tiny model of the tests. Time goes on from the first command to the first character of the answer.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from measure import Row, machine, table

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "docs" / "examples" / "first_stream.py"
QUESTION = "Work in rounds on 8 and 9."
BAR = 90
"""Seconds in which the first character is to be there, and COMMANDS the most commands."""
COMMANDS = (
    "python3 -m venv .venv",
    f"./.venv/bin/pip install --quiet --find-links {ROOT / 'dist'} 'concertino[openai]'",
    "export OPENAI_BASE_URL={address} OPENAI_API_KEY=any",
    f"./.venv/bin/python first_stream.py openai/{{model}} '{QUESTION}'",
)


SHORT = re.compile(rf"\./\.venv/bin/| --quiet|{re.escape(str(ROOT))}/| OPENAI_API_KEY=any| '{QUESTION}'")
"""What is left out where a command names a row."""


@contextlib.contextmanager
def server(kind: str) -> Iterator[tuple[str, str]]:
    """Address and model name of a running server."""
    sys.path[:0] = [str(ROOT / folder) for folder in ("scripts", "tests/servers", "tests/support")]
    if kind == "transformers":
        import launch

        with launch.transformers(launch.model()) as real:
            yield real.base_url, real.model
        return
    from stand_in import StandIn

    call = '<tool_call>{"name": "%s", "arguments": %s}</tool_call>'
    replies = [call % ("add", '{"a": 8, "b": 9}'), call % ("final_answer", "{}"), "<answer>17</answer>"]
    with StandIn(*replies) as standing:
        yield standing.address, "stand-in"


def measure(address: str, model: str) -> tuple[list[float], str]:
    """Seconds after which each command had ended, for the last one its first character; and all that it printed."""
    ends: list[float] = []
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    with tempfile.TemporaryDirectory(prefix="concertino-fresh-") as folder:
        (Path(folder) / PROGRAM.name).write_bytes(PROGRAM.read_bytes())
        lines = [line.format(address=address, model=model) for line in COMMANDS]
        script = "\n".join(f"{line} || exit 1\necho done >&2" for line in lines[:-1]) + f"\nexec {lines[-1]}\n"
        began = time.monotonic()
        shell = subprocess.Popen(
            ["/bin/sh", "-c", script],
            cwd=folder,
            env={**kept, "PIP_NO_CACHE_DIR": "1"},
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert shell.stdout is not None
        assert shell.stderr is not None
        errors = []
        while len(ends) < len(lines) - 1 and (line := shell.stderr.readline()):
            errors.append(line)
            if line == "done\n":
                ends.append(time.monotonic() - began)
        said = shell.stdout.read(1)
        ends.append(time.monotonic() - began)
        said += shell.stdout.read()
        if shell.wait() or not said.strip():
            sys.exit(f"no answer; the commands printed:\n{''.join(errors)}{shell.stderr.read()}{said}")
    return ends, said.strip()


def _used() -> float:
    """Seconds of a processor that commands which have ended took, with their own children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Measure once and print a row for each command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", choices=("stand-in", "transformers"), default="stand-in")
    chosen = parser.parse_args().server
    if not list((ROOT / "dist").glob("concertino-*.whl")):
        sys.exit("dist/ has no wheels; run: make dist")
    with server(chosen) as (address, model):
        before = _used()
        ends, said = measure(address, model)
        used = _used() - before
    rows = []
    for number, (line, end) in enumerate(zip(COMMANDS, ends, strict=True)):
        words = SHORT.sub("", line).format(address="...", model=model)
        rows.append(Row("fresh", f" {words}", end - (ends[number - 1] if number else 0), "s"))
    rows.append(Row("fresh", f" {len(COMMANDS)} commands, to the first character", ends[-1], "s", target=BAR))
    rows.append(Row("fresh", " the same in seconds of a processor", used, "s"))
    facts = machine()
    print(f"{facts['date']}, Python {facts['python']}, {facts['cores']} cores; server: {chosen}; it said {said!r}")
    print(table(rows))
    sys.exit(ends[-1] > BAR)


if __name__ == "__main__":
    main()
