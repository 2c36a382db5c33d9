"""What this tree does on one GPU: its tests marked `gpu`, and two models that learn; `make gpu`.

    python scripts/gpu.py [--again] [--only PART] [--publish]

Nothing is downloaded. Each part runs in a process of its own with a limit of time; one that fails is reported, and the
others still run. What has passed is not run again until the source changes; `--again` starts from nothing. On a CPU
everything is smaller, which proves the command and says nothing of a GPU.

`.make/gpu/gpu.json` has all figures, `.make/gpu/gpu.md` the page. `--publish` puts the page into
docs/explanation/performance.md, if it was measured on a GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import gpu_environment
import gpu_page
from tree import ROOT, tree_files

WORK = ROOT / ".make" / "gpu"
LEARNING = ["scripts/gpu_learning.py"]
TESTS = ["-m", "pytest", "-p", "no:cacheprovider", "-n", "0", "-m", "gpu and not soak"]


@dataclass(frozen=True)
class Part:
    """A part of the run.

    Attributes:
        name: of its folder, too.
        words: for Python; its folder is the last one.
        limit: seconds after which it is stopped.
    """

    name: str
    words: tuple[str, ...]
    limit: float


PARTS = (
    Part("machine", (*LEARNING, "machine"), 60),
    Part("tests", (*TESTS, "--junit-xml"), 120),
    Part("small", (*LEARNING, "small"), 130),
    Part("large", (*LEARNING, "large"), 190),
)
"""Together less than nine minutes with what making the environment takes."""
PATIENCE = 1.0 if shutil.which("nvidia-smi") else 4.0
"""Factor of all limits: a CPU that others use as well takes long even for what is small."""


def run(python: Path, parts: Sequence[Part], work: Path, source: str) -> dict[str, Any]:
    """Run the parts that have not passed with this source; what became of each."""
    found: dict[str, Any] = {}
    for part in parts:
        folder = work / part.name
        record = work / f"{part.name}.json"
        known = _read(record)
        if known.get("source") != source:
            shutil.rmtree(folder, ignore_errors=True)
        elif known.get("outcome") == "passed":
            print(f"[{part.name}] passed before with this source; --again runs it again", flush=True)
            found[part.name] = known
            continue
        folder.mkdir(parents=True, exist_ok=True)
        # Written before it runs: what a part that is killed leaves belongs to this source.
        _write(record, {"outcome": "begun", "source": source})
        outcome, seconds = _run_part(python, part, folder)
        found[part.name] = {"outcome": outcome, "seconds": round(seconds, 1), "source": source, **_results(folder)}
        _write(record, found[part.name])
        print(f"[{part.name}] {outcome}, {seconds:.0f} s", flush=True)
    return found


def _run_part(python: Path, part: Part, folder: Path) -> tuple[str, float]:
    print(f"[{part.name}] at most {part.limit:.0f} s", flush=True)
    place = folder / "tests.xml" if "--junit-xml" in part.words else folder
    began = time.monotonic()
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": "scripts", "HF_HUB_OFFLINE": "1"}
    late = threading.Event()
    with (
        subprocess.Popen(
            [str(python), *part.words, str(place)],
            cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", start_new_session=True,
        ) as process,
        (folder / "output.txt").open("a", encoding="utf-8") as log,
    ):  # fmt: skip

        def stop() -> None:
            late.set()
            _kill(process)

        watch = threading.Timer(part.limit, stop)
        watch.start()
        try:
            assert process.stdout is not None
            for line in process.stdout:
                log.write(line)
                print(f"[{part.name} {time.monotonic() - began:4.0f} s] {line}", end="", flush=True)
            status = process.wait()
        finally:
            watch.cancel()
            _kill(process)
    if late.is_set():
        return f"stopped at its limit of {part.limit:.0f} s; the same command continues", time.monotonic() - began
    return "passed" if status == 0 else f"failed with status {status}", time.monotonic() - began


def _kill(process: subprocess.Popen[str]) -> None:
    """End a part with all that it started: its session is its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _results(folder: Path) -> dict[str, Any]:
    """The figures that a part has left, whatever became of it."""
    found: dict[str, Any] = {}
    if figures := _read(folder / "figures.json"):
        found["figures"] = figures
    if (file := folder / "tests.xml").is_file():
        (suite,) = ElementTree.parse(file).getroot().iter("testsuite")
        found["tests"] = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
        found["skipped"] = sorted({each.get("message", "") for each in suite.iter("skipped")})
        found["failed"] = [
            f"{case.get('classname')}::{case.get('name')}"
            for case in suite.iter("testcase")
            if case.find("failure") is not None or case.find("error") is not None
        ]
    return found


def source_key() -> str:
    """A hash of the code that is measured."""
    digest = hashlib.sha256()
    for file in sorted(tree_files()):
        if file.suffix in (".py", ".toml", ".yaml") and file.relative_to(ROOT).parts[0] != "docs":
            digest.update(f"{file.relative_to(ROOT)}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def _read(file: Path) -> dict[str, Any]:
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else {}


def _write(file: Path, data: dict[str, Any]) -> None:
    unfinished = file.with_suffix(".part")
    unfinished.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(file)


def main(python: Callable[[], Path] = gpu_environment.python) -> None:
    """Run what the command line asks for, and exit with 1 if a part did not pass."""
    parser = argparse.ArgumentParser(prog="make gpu", description="Measure this tree on one GPU.")
    parser.add_argument("--again", action="store_true", help="run all parts, also those that have passed")
    parser.add_argument("--only", action="append", choices=[part.name for part in PARTS], help="run this part")
    parser.add_argument("--publish", action="store_true", help="put the page into docs/explanation/performance.md")
    asked = parser.parse_args()
    parts = [part for part in PARTS if asked.only is None or part.name in asked.only]
    if asked.again:
        for part in parts:
            shutil.rmtree(WORK / part.name, ignore_errors=True)
            (WORK / f"{part.name}.json").unlink(missing_ok=True)
    WORK.mkdir(parents=True, exist_ok=True)
    try:
        chosen = python()
    except gpu_environment.NotReady as error:
        sys.exit(str(error))
    parts = [replace(part, limit=part.limit * PATIENCE) for part in parts]
    found = run(chosen, parts, WORK, source_key())
    report = {"date": time.strftime("%Y-%m-%d"), "parts": found}
    _write(WORK / "gpu.json", report)
    page = gpu_page.page(report)
    (WORK / "gpu.md").write_text(page, encoding="utf-8")
    print(f"\n{page}\n.make/gpu/gpu.json has all figures.", flush=True)
    if asked.publish and not gpu_page.publish(page, report):
        sys.exit("Not published: these figures are of a CPU, or of some parts only")
    sys.exit(any(each["outcome"] != "passed" for each in found.values()))


if __name__ == "__main__":
    main()
