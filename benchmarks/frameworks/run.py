"""Run one application in four frameworks, each in an environment of its own, and print what it took.

    python benchmarks/frameworks/run.py                           all four
    python benchmarks/frameworks/run.py --framework concertino    one; may be repeated
    python benchmarks/frameworks/run.py --here                    concertino alone, in the environment that runs this
    python benchmarks/frameworks/run.py --json                    one JSON object instead of tables

The application is a desk for returns: three tools, two models, instructions, a typed answer, a second question in the
same conversation, text as it is written, a person who approves one tool, dependencies for the tools, a photo in the
question. Each program follows the newest documentation of its framework and asks the same server of a script
(`scripted_server.py`, `desk.py`), each in the API that is its default. A program that leaves out a part, or answers
otherwise, is reported with what is missing, and the exit status is 1.

- *Lines*: of the program as `ruff format` writes it, 120 characters wide, without magic trailing commas; imports count,
  and so do docstrings of tools, which a model reads; blank lines, comments and the docstring of the module do not.
- *CPU* is of the whole process, user and system; *imports* is that of a process that only runs the program's imports;
  both are medians, and so is the time on the clock. The server's own time is in neither.
- *Requests* and *kB* are what the server was asked: a service charges for both.

The environments are made with pip from the configured index, in `--folder`. What cannot be installed is a row that says
why.
"""

from __future__ import annotations

import argparse
import ast
import base64
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tokenize
from pathlib import Path
from typing import Any

import desk
from environments import FOLDER, QUIET, Absent, environment
from scripted_server import ScriptedServer

HERE = Path(__file__).resolve().parent
FRAMEWORKS = ("concertino", "pydantic-ai", "langgraph", "openai-agents")
SHOWN = {"pydantic-ai": ("pydantic-ai-slim",), "langgraph": ("langgraph", "langchain")}
"""Distributions whose versions are shown, where they are not called as the framework is."""
CANNOT = {
    "concertino": (
        "give out parts of a typed answer, validated, while it is written",
        "take another type of answer for one run: it belongs to the orchestrator",
        "tell a type checker that `deps` fit the tools",
    ),
    "pydantic-ai": (
        "resume a killed run without a durable engine beside it (Temporal, DBOS, Prefect, ...)",
        "resolve an approval in `run_stream`, which takes the held call for the output; `run_stream_events` can",
    ),
    "langgraph": (
        "limit a run in dollars or in tokens; it counts calls and steps",
        "wait for a person inside a run: it ends, and the caller invokes it again in a loop",
        "limit the seconds of one call of a tool; it limits those of a node",
    ),
    "openai-agents": (
        "limit a run in dollars or in tokens; it counts turns",
        "wait for a person inside a run: it ends, and the caller runs it again in a loop",
        "resume a killed run without a durable engine beside it (Temporal, DBOS, Restate, Dapr)",
    ),
}
"""What this application, or its operation, would want of each framework and does not get from it alone."""
MUG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="
)


def program(framework: str) -> Path:
    """The program of a framework."""
    return HERE / f"with_{framework.replace('-', '_')}.py"


def lines(source: str) -> int:
    """Lines of a program, by the rule above."""
    style = ["--isolated", "--line-length", "120", "--config", "format.skip-magic-trailing-comma=true"]
    ruff = [sys.executable, "-m", "ruff", "format", *style, "-"]
    written = subprocess.run(ruff, input=source, capture_output=True, text=True, check=True).stdout
    body = ast.parse(written).body
    title = body[0].end_lineno or 0 if body and ast.get_docstring(ast.parse(written)) else 0
    idle = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    used: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(written).readline):
        if token.type not in idle and token.start[0] > title:
            used |= set(range(token.start[0], token.end[0] + 1))
    return len(used)


def imports_of(source: str) -> str:
    """Only the imports of a program."""
    return "\n".join(
        ast.unparse(node) for node in ast.parse(source).body if isinstance(node, (ast.Import, ast.ImportFrom))
    )


def measured(command: list[str], folder: Path, variables: dict[str, str], typed: str) -> dict[str, Any]:
    """Run one process; what it printed, and what it used.

    Raises:
        RuntimeError: it failed, with the end of what it said.
    """
    with (
        tempfile.TemporaryFile("w+") as given,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
    ):
        given.write(typed)
        given.seek(0)
        # Values of the caller, such as a recorded pool, are no part of the comparison.
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CONCERTINO_"))}
        kept.update(QUIET)
        began = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, env={**kept, **variables}, stdin=given, stdout=out, stderr=err)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        printed, said = out.read(), err.read()
    if process.returncode:
        raise RuntimeError(f"ended with {process.returncode}: {said[-800:]}")
    cpu = used.ru_utime + used.ru_stime
    return {"printed": printed, "said": said, "cpu": cpu, "wall": wall, "mb": used.ru_maxrss / 1024}


def versions(framework: str, python: Path) -> str:
    """The versions that were measured."""
    names = SHOWN.get(framework, (framework,))
    code = f"from importlib import metadata; print(*(n + ' ' + metadata.version(n) for n in {names!r}), sep=', ')"
    return subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def one_run(framework: str, python: Path) -> dict[str, Any]:
    """The figures of one run of a program, and of one of its imports alone."""
    source = program(framework)
    with ScriptedServer(desk.script) as server, tempfile.TemporaryDirectory() as folder:
        Path(folder, "mug.png").write_bytes(MUG)
        seen = measured([str(python), str(source)], Path(folder), server.environment, "yes\n")
        only = imports_of(source.read_text(encoding="utf-8"))
        imports = measured([str(python), "-c", only], Path(folder), server.environment, "")
    return {
        "cpu": seen["cpu"],
        "imports": imports["cpu"],
        "wall": seen["wall"],
        "mb": seen["mb"],
        "requests": len(server.heard),
        "kb": server.bytes / 1000,
        "faults": desk.faults(server.heard, seen["printed"]),
        "printed": seen["printed"],
        "said": seen["said"],
    }


def figures(framework: str, runs: list[dict[str, Any]], python: Path) -> dict[str, Any]:
    """Medians of the runs, and what does not vary."""
    names = ("cpu", "imports", "wall", "mb", "requests", "kb")
    return {
        "versions": versions(framework, python),
        "lines": lines(program(framework).read_text(encoding="utf-8")),
        **{name: statistics.median(run[name] for run in runs) for name in names},
        "faults": sorted({fault for run in runs for fault in run["faults"]}),
        "printed": runs[-1]["printed"],
        "said": runs[-1]["said"],
        "cannot": CANNOT[framework],
    }


def compare(chosen: list[str], folder: Path | None, repeat: int) -> dict[str, dict[str, Any]]:
    """The figures of the frameworks, measured in turn; of one that cannot be had, `{"skipped": why}`.

    Args:
        folder: of the environments; None for the one that runs this.
    """
    found: dict[str, dict[str, Any]] = {}
    pythons: dict[str, Path] = {}
    for framework in chosen:
        try:
            python = Path(sys.executable) if folder is None else environment(framework, folder)
            one_run(framework, python)  # compiles what pip did not
            pythons[framework] = python
        except (Absent, OSError) as failure:
            found[framework] = {"skipped": str(failure)}
        except RuntimeError as failure:
            found[framework] = {"skipped": f"failed: {failure}", "faults": [f"the program {failure}"]}
    runs: dict[str, list[dict[str, Any]]] = {framework: [] for framework in pythons}
    for _ in range(repeat):
        for framework, python in pythons.items():
            runs[framework].append(one_run(framework, python))
    measured_ = {framework: figures(framework, seen, pythons[framework]) for framework, seen in runs.items()}
    return {framework: measured_.get(framework) or found[framework] for framework in chosen}


def report(results: dict[str, dict[str, Any]]) -> str:
    """The figures as a table, and what each cannot do below it."""
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    head = f"{time.strftime('%Y-%m-%d')}, Python {sys.version.split()[0]}, {os.cpu_count()} cores{load}"
    rows = [head, ""]
    rows.append(
        f"{'':15}{'lines':>6}{'CPU s':>8}{'imports':>9}{'wall s':>8}{'MB':>6}{'requests':>10}{'kB':>7}  versions"
    )
    for framework, seen in results.items():
        if "skipped" in seen:
            rows.append(f"{framework:15}{seen['skipped']}")
            continue
        numbers = f"{seen['lines']:6}{seen['cpu']:8.2f}{seen['imports']:9.2f}{seen['wall']:8.2f}{seen['mb']:6.0f}"
        rows.append(f"{framework:15}{numbers}{seen['requests']:10.0f}{seen['kb']:7.1f}  {seen['versions']}")
    for framework, seen in results.items():
        if "skipped" not in seen:
            rows += ["", f"{framework} cannot", *(f"  - {what}" for what in seen["cannot"])]
            rows += [f"  MISSING HERE: {fault}" for fault in seen["faults"]]
    return "\n".join(rows)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    names = list(FRAMEWORKS)
    parser.add_argument("--framework", action="append", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--repeat", type=int, default=5, help="measured runs of each (default: 5)")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of the environments")
    parser.add_argument("--here", action="store_true", help="concertino alone, in this environment")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    return parser.parse_args()


def main() -> int:
    """Measure and print."""
    options = parse()
    if options.here:
        results = compare(["concertino"], None, options.repeat)
    else:
        results = compare(options.framework or list(FRAMEWORKS), options.folder, options.repeat)
    print(json.dumps(results, indent=2) if options.json else report(results))
    return 1 if any(seen.get("faults") for seen in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
