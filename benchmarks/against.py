"""Compare the benchmarks of this tree with those of another checkout, run after run in turn.

    python benchmarks/against.py PATH                    ten rounds of every benchmark
    python benchmarks/against.py PATH --only overhead    one of them; may be repeated

PATH is a checkout that has its own `.venv`. In every round each benchmark runs once per tree, in a fresh process; the
tree that runs first changes from round to round. Two kinds of figure come out: the processor time of the whole process
with its children ("CPU"), which other load on the machine hardly moves, and the rows that a scenario prints. A ratio is
this tree's median over the other's. Its interval holds 95 % of 2,000 resamplings of the rounds, drawn in pairs.
A figure is *slower* where the whole interval lies above +3 %.

All figures are added to `.make/against.jsonl` as soon as they are measured. The same call continues there, with
the rounds that are missing; `--rounds 0` prints what is there. Rounds of other commits do not count.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from run import OTHERS, SCENARIOS, SHORTENED

HERE = Path(__file__).resolve().parent
MEASURED = HERE.parent / ".make" / "against.jsonl"
TOLERANCE = 1.03
QUICK = (*SHORTENED, "bench", "clients", "crash", "rollouts")
"""These run with `--quick`: in full, ten rounds in both trees would take hours."""
COSTS = ("us", "µs", "ms", "s", "MB", "KB")
"""Units in which less is better; rows in other units are counts and rates, which the trees' own tests judge."""

Pair = tuple[float, float]
"""A figure of one round: of this tree, and of the other."""
Figures = dict[str, float]


@dataclass(slots=True)
class Comparison:
    """One figure in both trees: medians, their ratio, and the interval of the ratio."""

    benchmark: str
    what: str
    here: float
    there: float
    ratio: float
    low: float
    high: float
    rounds: int

    @property
    def slower(self) -> bool:
        """Whether this tree costs more than the tolerance, beyond doubt."""
        return self.low > TOLERANCE


def measure(tree: Path, name: str) -> Figures:
    """The figures of one benchmark in one tree, from one fresh process; empty if it fails, with its error on stderr.

    "CPU" is the processor time that it took in all, with its children, in seconds.
    """
    options = ["--json", *["--quick"][: name in QUICK]]
    command = [str(tree / ".venv/bin/python"), str(tree / "benchmarks" / f"{name}.py"), *options]
    before = _spent()
    done = subprocess.run(command, capture_output=True, text=True, cwd=tree, check=False)
    spent = _spent() - before
    if not done.stdout.strip():
        print(f"  {tree}: {name} failed\n{done.stderr[-1000:]}", file=sys.stderr, flush=True)
        return {}
    rows = json.loads(done.stdout)["rows"] if name in SCENARIOS else []
    costs = {row["what"]: row["value"] for row in rows if re.split(r"[ /]", row["unit"])[0] in COSTS and row["value"]}
    return {**costs, "CPU": spent}


def _spent() -> float:
    now = os.times()
    return now.children_user + now.children_system


def compare(other: Path, names: list[str], rounds: int) -> list[Comparison]:
    """Every figure that both trees have, from so many rounds or from all that were measured before."""
    commits = [_commit(HERE.parent), _commit(other)]
    measured = {name: _measured_before(name, commits) for name in names}
    for number in range(rounds):
        for name in names:
            if len(measured[name]) <= number:
                measured[name].append(_measure_both(other, name, commits, here_first=bool(number % 2)))
        print(f"  round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    found: list[Comparison] = []
    for name, both in sorted(measured.items()):
        for what in sorted({what for here, there in both for what in here.keys() & there.keys()}):
            pairs = [(here[what], there[what]) for here, there in both if what in here and what in there]
            found.append(_compared(name, what, pairs))
    return found


def _commit(tree: Path) -> str:
    command = ["git", "-C", str(tree), "rev-parse", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _measured_before(name: str, commits: list[str]) -> list[tuple[Figures, Figures]]:
    lines = MEASURED.read_text(encoding="utf-8").splitlines() if MEASURED.is_file() else []
    rows = [json.loads(line) for line in lines if line.endswith("}")]  # a run that was killed may have left half a line
    return [(row["here"], row["there"]) for row in rows if (row["benchmark"], row["commits"]) == (name, commits)]


def _measure_both(other: Path, name: str, commits: list[str], *, here_first: bool) -> tuple[Figures, Figures]:
    trees = [HERE.parent, other]
    both = {tree: measure(tree, name) for tree in (trees if here_first else reversed(trees))}
    here, there = both[trees[0]], both[trees[1]]
    if not (here and there):
        return here, there  # it failed in a tree: the next call tries again
    MEASURED.parent.mkdir(exist_ok=True)
    with MEASURED.open("a", encoding="utf-8") as file:
        file.write("\n" + json.dumps({"benchmark": name, "commits": commits, "here": here, "there": there}) + "\n")
    return here, there


def _compared(benchmark: str, what: str, pairs: list[Pair]) -> Comparison:
    chance = random.Random(0)
    ratios = sorted(_ratio(chance.choices(pairs, k=len(pairs))) for _ in range(2000))
    here, there = (statistics.median(side) for side in zip(*pairs, strict=True))
    return Comparison(benchmark, what, here, there, _ratio(pairs), ratios[49], ratios[1949], len(pairs))


def _ratio(pairs: list[Pair]) -> float:
    return statistics.median(here for here, _ in pairs) / statistics.median(there for _, there in pairs)


def main() -> int:
    """Compare and print; the exit status is 1 if a figure is slower."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("other", type=Path, help="a checkout with a .venv of its own")
    names = [*SCENARIOS, *OTHERS]
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help="may be repeated")
    parser.add_argument("--rounds", type=int, default=10, help="runs of each benchmark in each tree (default: 10)")
    parser.add_argument("--json", action="store_true", help="print one JSON list instead of a table")
    options = parser.parse_args()
    found = compare(options.other.resolve(), options.only or names, options.rounds)
    if options.json:
        print(json.dumps([{**asdict(each), "slower": each.slower} for each in found], indent=2))
    else:
        print(f"{'benchmark':12}{'figure':58}{'here':>10}{'there':>10}{'ratio':>7}  95 % interval")
        for each in found:
            interval = f"{each.low:.3f} to {each.high:.3f}" + "  SLOWER" * each.slower
            print(f"{each.benchmark:12}{each.what:58}{each.here:10.4g}{each.there:10.4g}{each.ratio:7.3f}  {interval}")
    return int(any(each.slower for each in found))


if __name__ == "__main__":
    sys.exit(main())
