"""The figures of `make gpu` as a page, and where that page goes.

The invariant: a figure that was not measured is called so, and never shown as 0; and what was measured on a CPU is
never published as that of a GPU.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tree import ROOT

PUBLISHED = ROOT / "docs" / "explanation" / "performance.md"
BEGIN, END = "<!-- make gpu: begin -->", "<!-- make gpu: end -->"
NOT_MEASURED = "not measured"
MODELS = ("small", "large")
Figures = Mapping[str, Any]


def page(report: Figures) -> str:
    """All figures, as Markdown."""
    return "\n".join(_lines(report)) + "\n"


def publish(text: str, report: Figures) -> bool:
    """Put a page into the documentation, in place of the one before; whether it was measured whole, on a GPU."""
    parts = report["parts"]
    whole = {"machine", "tests", *MODELS} <= parts.keys()
    if not whole or _machine(report).get("cuda") is None:
        return False
    before, _, rest = PUBLISHED.read_text(encoding="utf-8").partition(BEGIN)
    PUBLISHED.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    return True


def _machine(report: Figures) -> Figures:
    """What the machine is, as any part has noted it."""
    for part in report["parts"].values():
        if found := part.get("figures", {}).get("machine"):
            return dict(found)
    return {}


def _lines(report: Figures) -> Iterator[str]:
    machine, parts = _machine(report), report["parts"]
    yield f"Measured on {report['date']} on {machine.get('device', 'a machine that did not say what it is')}."
    if machine:
        versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
        peak = f"{machine['peak_rate'] / 1e12:,.3g} TFLOP/s ({machine['peak_of']})"
        yield f"Python {machine['python']}, {versions}; peak {peak}; measured: {_tera(machine['measured_rate'])}, "
        yield f"{machine['measured_bandwidth'] / 1e12:,.3g} TB/s."
    yield ""
    yield from _parts(parts)
    learnt = {name: parts[name].get("figures", {}) for name in MODELS if name in parts}
    if learnt:
        yield ""
        yield from _table(learnt, machine.get("peak_rate"))


def _parts(parts: Mapping[str, Figures]) -> Iterator[str]:
    yield "| Part | Result | Seconds |"
    yield "| --- | --- | ---: |"
    for name, part in parts.items():
        result = part["outcome"]
        if tests := part.get("tests"):
            bad = tests["failures"] + tests["errors"]
            result += f": {tests['tests']} tests, {bad} failed, {tests['skipped']} skipped"
            if part["failed"]:
                result += f" ({', '.join(part['failed'])})"
        yield f"| {name} | {result} | {part['seconds']:.0f} |"


def _table(learnt: Mapping[str, Figures], peak: float | None) -> Iterator[str]:
    rows = {name: dict(_rows(figures, peak)) for name, figures in learnt.items()}
    names = list(dict.fromkeys(name for each in rows.values() for name in each))
    yield f"| | {' | '.join(learnt)} |"
    yield f"| --- | {' | '.join('---:' for _ in learnt)} |"
    for name in names:
        yield f"| {name} | {' | '.join(rows[model].get(name, NOT_MEASURED) for model in learnt)} |"


def _rows(figures: Figures, peak: float | None) -> Iterator[tuple[str, str]]:
    """The rows of one model; what a stage that did not happen would say is left out."""
    if sft := figures.get("sft"):
        yield "parameters", f"{sft['parameters'] / 1e6:,.3g} million"
        yield "teaching: tokens/s", _number(sft["tokens_per_second"])
        yield "teaching: share of the peak (MFU)", _share(sft["reached"], peak)
        yield "teaching: memory at most", _size(sft["peak_memory"])
    if rl := figures.get("rl"):
        yield "generation: tokens/s", _number(rl["generated_per_second"])
        yield "update: tokens/s", _number(rl["updated_per_second"])
        yield "update: share of the peak (MFU)", _share(rl["reached"], peak)
        yield "a step of reinforcement", f"{rl['seconds']:.3g} s"
        yield "share of a step outside generation and update", f"{rl['outside']:.1%}"
        yield "reinforcement: memory at most", _size(rl["peak_memory"])
        yield from _plans(rl)
    if "before" in figures and "after" in figures:
        yield "reward before, after", _both(figures, "before", "after")
        yield "gain, 95 % interval", gain(figures["before"]["rewards"], figures["after"]["rewards"])
    if "before" in figures and "after_control" in figures:
        control = gain(figures["before"]["rewards"], figures["after_control"]["rewards"])
        yield "gain with rewards dealt out at random", control


def _plans(rl: Figures) -> Iterator[tuple[str, str]]:
    """What `concertino train plan` said, beside what was measured."""
    planned = rl["planned"]
    pairs = (
        ("memory", planned["memory"], rl["peak_memory"]),
        ("seconds of generation", planned["sample_seconds"], rl["generate_seconds"]),
        ("seconds of update", planned["update_seconds"], rl["update_seconds"]),
    )
    for name, said, seen in pairs:
        yield f"measured over planned: {name}", f"{seen / said:.2f}" if said else NOT_MEASURED


def gain(before: Sequence[float], after: Sequence[float]) -> str:
    """Mean difference by question, with its interval: normal, 95 %."""
    apart = [two - one for one, two in zip(before, after, strict=True)]
    mean = statistics.fmean(apart)
    half = 1.96 * statistics.stdev(apart) / math.sqrt(len(apart)) if len(apart) > 1 else math.inf
    return f"{mean:+.3f} [{mean - half:.3f}, {mean + half:.3f}]"


def _both(figures: Figures, one: str, two: str) -> str:
    means = [statistics.fmean(figures[name]["rewards"]) for name in (one, two)]
    return f"{means[0]:.3f}, {means[1]:.3f}"


def _share(reached: float | None, peak: float | None) -> str:
    return f"{reached / peak:.1%}" if reached and peak else NOT_MEASURED


def _number(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:,.0f}"


def _size(value: float) -> str:
    return f"{value / 2**30:,.2f} GiB"


def _tera(value: float) -> str:
    return f"{value / 1e12:,.3g} TFLOP/s"
