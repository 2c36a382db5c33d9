"""Run the scenarios with other frameworks, each in a virtual environment of its own, and print one table.

    python benchmarks/peers/run.py --peer langgraph --peer llm        some
    python benchmarks/peers/run.py                                    all that can be installed

The environments are made on demand with pip, from the configured index, in `--folder`; nothing of this is part of the
tests. A peer that cannot be installed, or a scenario that it cannot run, is a row that says why. Every figure comes
from a fresh process; peers take turns, scenario by scenario, `--repeat` times, and the median is shown.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import statistics
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SCENARIOS = ("S0", "S1", "S2", "S2B", "S3", "S4", "S4T", "S5", "S6", "S7", "S8")
PEERS = {
    "concertino": "concertino_rounds",
    "concertino-native": "concertino_native",
    "concertino-trace": "concertino_trace",
    "agent-framework": "agent_framework_agent",
    "autogen": "autogen_agent",
    "dspy": "dspy_react",
    "inspect-ai": "inspect_agent",
    "langchain": "langchain_agent",
    "langgraph": "langgraph_toolnode",
    "llm": "llm_chain",
    "openai-agents": "openai_agents",
    "pydantic-ai-slim": "pydantic_ai_agent",
    "smolagents": "smolagents_agent",
    "strands-agents": "strands_agent",
}
SECONDS = 120
"""What a scenario may take."""


def requirements(module: str) -> list[str]:
    """What an adapter says it needs, read without importing it."""
    for node in ast.parse((HERE / f"{module}.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "REQUIREMENTS":
            return list(ast.literal_eval(node.value))
    raise SystemExit(f"{module}.py names no REQUIREMENTS")


def environment(peer: str, folder: Path) -> Path | str:
    """The Python of a peer's environment, made if need be; or why there is none. Ours gets this tree as it is now."""
    # Ours too: the first model of pydantic looks through all installed distributions, and .venv has hundreds.
    ours = peer.startswith("concertino")
    home = folder / ("concertino" if ours else peer)
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    ready = home / "ready"
    if ready.exists() and not ours:
        return python
    print(f"  installing {peer} into {home}", file=sys.stderr, flush=True)
    if not ready.exists():
        venv.create(home, with_pip=True, clear=True)
    needed = [str(ROOT)] if ours else requirements(PEERS[peer])
    done = subprocess.run(
        [str(python), "-m", "pip", "install", "--quiet", *needed], capture_output=True, text=True, check=False
    )
    if done.returncode:
        return f"not installed: {done.stderr.strip().splitlines()[-1][:100] if done.stderr else 'pip failed'}"
    ready.touch()
    return python


def measured(peer: str, python: Path, scenario: str) -> dict[str, Any]:
    """The figures of one process, or `{scenario: why there are none}`."""
    command = [str(python), str(HERE / "_scenarios.py"), PEERS[peer], scenario]
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS, env=clean)
        found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {scenario: f"not over after {SECONDS} s"}
    except (ValueError, IndexError):
        return {scenario: f"failed: {(done.stderr.strip().splitlines() or ['no output'])[-1][:90]}"}
    return found


def merged(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians of what was measured more than once; the last word where it is no number."""
    names = dict.fromkeys(name for one in found for name in one)
    result: dict[str, Any] = {}
    for name in names:
        values = [one[name] for one in found if name in one]
        numeric = all(isinstance(value, (int, float)) for value in values)
        result[name] = statistics.median(values) if numeric else values[-1]
    return result


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--peer", action="append", choices=list(PEERS), metavar="NAME", help=", ".join(PEERS))
    parser.add_argument("--only", action="append", choices=SCENARIOS, metavar="S", help=", ".join(SCENARIOS))
    parser.add_argument("--repeat", type=int, default=1, help="processes per figure (default: 1)")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "concertino-peers")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    return parser.parse_args()


def main() -> int:
    """Measure and print."""
    options = parse()
    pythons: dict[str, Path] = {}
    found: dict[str, list[dict[str, Any]]] = {}
    for peer in options.peer or PEERS:
        python = environment(peer, options.folder)
        found[peer] = [{"skipped": python}] if isinstance(python, str) else []
        if isinstance(python, Path):
            pythons[peer] = python
    for _ in range(options.repeat):
        for scenario in options.only or SCENARIOS:
            for peer, python in pythons.items():
                print(f"  {scenario} {peer}", file=sys.stderr, flush=True)
                found[peer].append(measured(peer, python, scenario))
    results = {peer: merged(figures) for peer, figures in found.items()}
    print(json.dumps(results, indent=2) if options.json else report(results))
    return 0


def report(results: dict[str, dict[str, Any]]) -> str:
    """One block per figure, the peers below each other."""
    names = {name: None for figures in results.values() for name in figures if name not in ("version", "skipped")}
    lines = [f"{peer:18} {figures.get('version', figures.get('skipped'))}" for peer, figures in results.items()]
    for name in names:
        lines.append(f"\n{name}")
        for peer, figures in results.items():
            if name in figures:
                value = figures[name]
                lines.append(f"    {peer:18}{value if isinstance(value, str) else format(value, '12,.3f')}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
