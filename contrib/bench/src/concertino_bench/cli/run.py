"""`concertino bench run`, `tasks` and `graders`: from a file or from options to a results file."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from concertino.cli.options import common_options
from concertino.cli.output import write_json
from concertino.cli.terminal import say, say_json

from .node_rows import node_json, node_summary, node_table
from .place_options import place_options
from .progress import ProgressLine

if TYPE_CHECKING:
    import concertino as ct

    from concertino_bench.runner.evaluation import Evaluation, Selection
    from concertino_bench.runner.evaluator import Outcome, Progress
    from concertino_bench.tasks.system import System
    from concertino_bench.tasks.task import TaskSet


@click.command("run")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--tasks", multiple=True, metavar="SET[,OPTION=VALUE…]", help="A task set: masbench/depth,level=4.")
@click.option(
    "--system",
    "systems",
    multiple=True,
    metavar="[NAME=]STRATEGY[,KEY=VALUE…]",
    help="What is compared: small=single-model,model=toy/steady.",
)
@click.option(
    "--pool",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Pool file; by default everything that is installed.",
)
@click.option("--limit", type=click.IntRange(min=1), help="At most so many tasks of each set.")
@click.option(
    "--skip-bad",
    type=click.IntRange(min=0),
    metavar="N",
    help="Leave out at most so many wrong rows of each set; each is told.  [default: 0]",
)
@click.option(
    "--shots",
    type=click.IntRange(min=0),
    metavar="N",
    help="Solved examples before each question, never the task itself.  [default: 0]",
)
@click.option(
    "--shots-from",
    metavar="FILE|SPLIT",
    help="Where they are drawn from: a file of the same set, or a split of its own file; by default that whole file.",
)
@click.option("--samples", type=click.IntRange(min=1), help="How often each system gets each task.")
@click.option("--seed", type=int, help="Of sampling.")
@click.option("--grader", help="One grader for all tasks.")
@click.option(
    "--unseen",
    metavar="WHAT[,WHAT…]",
    help="Draw at random for each task: names, order, cards (wording), prices, skills (who is there).",
)
@click.option(
    "--counterfactuals",
    is_flag=True,
    help="Also run each system with the order of the pool reversed, and with its descriptions permuted.",
)
@click.option("--max-usd", type=click.FloatRange(min=0), help="Begin nothing more once so many $ are spent.")
@click.option("--units", type=click.FloatRange(min=0), help="Budget of each run, in cost units.")
@click.option("--usd", type=click.FloatRange(min=0), help="Budget of each run, in $.")
@click.option("--seconds", type=click.FloatRange(min=0), help="Budget of each run, in seconds.")
@click.option("--concurrency", type=click.IntRange(min=1), help="Runs at once.  [default: 16]")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("results.jsonl"),
    show_default=True,
    help="Results file; one that is there is continued.",
)
@click.option("--no-traces", is_flag=True, help="Keep no traces; what a crash interrupts is then begun again.")
@click.option(
    "--redo", multiple=True, metavar="STOP", help="Do items again that ended so: model, deadline, unparsable, error."
)
@place_options
@common_options
def run_command(
    file: Path | None,
    out: Path,
    no_traces: bool,
    redo: tuple[str, ...],
    on: str,
    env_from: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Run systems over tasks, many at once, and keep every result.

    FILE is an evaluation in TOML; options override the file. The same command continues where it was interrupted, also
    with another --on. Worker processes get no keys but those named by --env.

    JSON: {"file", "items", "total", "missing", "stopped", "seconds", "usd", "broken",
    "systems": {NAME: {"right", "done"}}, "counterfactuals": [{"system", "change", "same", "items"}],
    "nodes": [{"node", "host", "state", "workers", "running", "done", "lost", "silent"}]}

    `usd` is null where a price is unknown. `nodes` are worker processes, or nodes of a cluster. Ends with status 1 if
    items are missing or a system broke.
    """
    from concertino_bench.runner.evaluator import evaluate
    from concertino_bench.tasks.installed import installed_graders

    evaluation, pool, concurrency = _evaluation(file, options)
    shown = EvaluationProgress(quiet=as_json)
    with told_warnings():
        tasks = evaluation.tasks()  # here, where an interrupt ends it at once
    began = time.monotonic()

    async def run() -> Outcome:
        task = asyncio.current_task()
        assert task is not None
        # Job schedulers end programs so; cancelled, it closes traces and servers as after Ctrl-C.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await evaluate(
            evaluation,
            pool,
            out,
            graders=installed_graders(),
            concurrency=concurrency,
            traces=None if no_traces else "",
            redo=redo,
            tasks=tasks,
            on=on,
            env_from=env_from,
            on_progress=shown,
        )

    try:
        outcome = asyncio.run(run())
    except (KeyboardInterrupt, asyncio.CancelledError):
        shown.end()
        say(f"interrupted; what is done is in {out}, and the same command continues", error=True)
        sys.exit(130)
    shown.end()
    _tell(outcome, shown, time.monotonic() - began, as_json)
    if outcome.missing or broken_of(outcome):
        sys.exit(1)


@click.command("tasks")
@common_options
def tasks_command(as_json: bool) -> None:
    """List the task sets that are installed: their options, which file each wants, and where that is published.

    JSON: [{"name", "summary", "world", "options": {NAME: whether it is needed}, "file", "source"}]
    """
    from concertino_bench.runner.files import options_of
    from concertino_bench.tasks.installed import installed_task_sets

    sets = sorted(installed_task_sets().values(), key=lambda each: each.name)
    if as_json:
        rows = [
            {
                "name": each.name,
                "summary": each.summary,
                "world": each.world is not None,
                "options": options_of(each),
                "file": each.file,
                "source": each.source,
            }
            for each in sets
        ]
        write_json(rows)
        return
    width = max((len(each.name) for each in sets), default=0)
    for each in sets:
        say(f"{each.name:<{width}}  {each.summary}")
        say(f"{'':<{width}}  options: {', '.join(options_of(each)) or 'none'}")
        for label, text in (("file", each.file), ("published at", each.source)):
            if text:
                say(f"{'':<{width}}  {label}: {text}")


@click.command("graders")
@common_options
def graders_command(as_json: bool) -> None:
    """List the graders that are installed, and the kinds of tasks that each has.

    JSON: [{"name", "kinds", "needs", "summary"}]
    """
    from concertino_bench.tasks.installed import installed_graders

    graders = sorted(installed_graders(), key=lambda each: each.name)
    rows = [
        {
            "name": g.name,
            "kinds": list(g.kinds),
            "needs": list(g.needs),
            "summary": (g.__doc__ or "").partition("\n")[0],
        }
        for g in graders
    ]
    if as_json:
        write_json(rows)
        return
    width = max((len(each.name) for each in graders), default=0)
    for row in rows:
        kinds = f" ({', '.join(row['kinds'])})" if row["kinds"] else ""
        say(f"{row['name']:<{width}}  {row['summary']}{kinds}")


@contextmanager
def told_warnings() -> Iterator[None]:
    """Tell warnings as sentences, without the place in the code that Python puts before them."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        finally:
            for each in seen:
                say(f"warning: {each.message}", error=True)


# -- from options to an evaluation -----------------------------------------------------------------------------------


def _evaluation(file: Path | None, options: dict[str, Any]) -> tuple[Evaluation, ct.Pool, int]:
    from dataclasses import replace

    import concertino as ct

    from concertino_bench.runner.evaluation import Evaluation
    from concertino_bench.runner.files import load_evaluation
    from concertino_bench.tasks.installed import installed_task_sets
    from concertino_bench.tasks.system import with_counterfactuals
    from concertino_bench.tasks.unseen import parse_drawn

    sets = installed_task_sets()
    selections = [selection_of(text, sets) for text in options["tasks"]]
    systems = [_system(text) for text in options["systems"]]
    pool_file, concurrency = options["pool"], options["concurrency"]
    if file is not None:
        loaded = load_evaluation(file, sets)
        evaluation = loaded.evaluation
        pool_file = pool_file or loaded.pool
        concurrency = concurrency or loaded.concurrency
        changes: dict[str, Any] = {"selections": selections, "systems": systems}
        evaluation = replace(evaluation, **{key: value for key, value in changes.items() if value})
    else:
        if not selections or not systems:
            raise click.UsageError(
                "name what to run: a FILE, or --tasks and --system; concertino bench tasks lists the task sets"
            )
        evaluation = Evaluation(selections, systems)
    if options["counterfactuals"] and not any(system.change for system in evaluation.systems):
        evaluation = replace(evaluation, systems=with_counterfactuals(evaluation.systems))
    plain = {key: options[key] for key in ("samples", "seed", "grader", "max_usd") if options[key] is not None}
    if options["unseen"] is not None:
        plain["unseen"] = parse_drawn(options["unseen"])
    limits = {key: options[key] for key in ("units", "usd", "seconds") if options[key] is not None}
    if limits:
        plain["budget"] = replace(evaluation.budget, **limits)
    chosen = {key: options[key] for key in ("limit", "skip_bad", "shots", "shots_from") if options[key] is not None}
    if chosen:
        plain["selections"] = [replace(each, **chosen) for each in evaluation.selections]
    pool = ct.Pool.load(pool_file) if pool_file is not None else ct.Pool.installed()
    return replace(evaluation, **plain), pool, concurrency or 16


_OWN = {"limit": "limit", "draw": "seed", **{key: key for key in ("skip_bad", "shots", "shots_from")}}
"""Options of a selection, by the words for them; `seed` is one of generated sets, so drawing has a word of its own."""


def selection_of(text: str, sets: dict[str, TaskSet]) -> Selection:
    """`masbench/depth,level=4,limit=100`, or the TOML file that declares tasks."""
    from concertino_bench.runner.files import make_selection

    name, *parts = _parts(text)
    entry: dict[str, Any] = {"set": name, "options": dict(_pair(part, "--tasks") for part in parts)}
    for key, own in _OWN.items():
        if key in entry["options"]:
            entry[own] = entry["options"].pop(key)
    return make_selection(entry, sets, "--tasks", Path())


def _system(text: str) -> System:
    """`name=strategy,key=value`: keys of a system first, what is none goes to its strategy."""
    from concertino_bench.runner.files import make_system

    head, *parts = _parts(text)
    name, equals, strategy = head.partition("=")
    entry: dict[str, Any] = {"name": name.strip(), "strategy": (strategy if equals else name).strip(), "options": {}}
    for part in parts:
        key, value = _pair(part, "--system")
        if key in ("only", "offer"):
            entry[key] = value if isinstance(value, list) else str(value).split("+")
        elif key in ("model", "eager", "shortlist"):
            entry[key] = value
        elif key in ("temperature", "max_tokens", "top_p"):
            entry.setdefault("sampling", {})[key] = value
        else:
            entry["options"][key] = value
    return make_system(entry, "--system", Path())


def _parts(text: str) -> list[str]:
    """Cut at the commas that stand in no brackets and no quotes."""
    found, depth, quoted = [""], 0, False
    for sign in text:
        quoted ^= sign == '"'
        if not quoted:
            depth += (sign in "[{") - (sign in "]}")
        if sign == "," and depth <= 0 and not quoted:
            found.append("")
        else:
            found[-1] += sign
    return [part.strip() for part in found]


def _pair(text: str, option: str) -> tuple[str, Any]:
    """`key=value`, the value read as JSON if it is that."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise click.UsageError(f"{option}: {text!r} is not a KEY=VALUE")
    try:
        # `level=4` is a number and `model=toy/steady` a text, without quotes that a shell would take.
        return key.strip(), json.loads(value)
    except ValueError:
        return key.strip(), value.strip()


# -- what people see -------------------------------------------------------------------------------------------------


class EvaluationProgress(ProgressLine):
    """How far an evaluation is; `last` is what was told last."""

    last: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        """Show it; the end only on a terminal, since a summary follows."""
        self.last = progress
        nodes, over = node_table(progress.nodes), progress.done == progress.total
        self.show(progress_line(progress), below=nodes if self.terminal else (), now=self.terminal and over)


def progress_line(progress: Progress) -> str:
    """`120/400  30%  serial 55%  graph 61%  0.0123 $  1:02 left`."""
    parts = [f"{progress.done}/{progress.total}", f"{100 * progress.done / max(1, progress.total):.0f}%"]
    scores = [f"{name} {100 * right / done:.0f}%" for name, (right, done) in progress.right.items() if done]
    parts += scores[:4] + ([f"and {len(scores) - 4} more"] if len(scores) > 4 else [])
    parts.append(f"{progress.usd:.4f} $" + (" and what has no price" if progress.unpriced else ""))
    if progress.eta is not None and progress.done < progress.total:
        minutes, seconds = divmod(round(progress.eta), 60)
        parts.append(f"{minutes}:{seconds:02d} left")
    if progress.nodes:
        parts.append(f"on {node_summary(progress.nodes)}")
    return "  ".join(parts)


def broken_of(outcome: Outcome) -> dict[str, tuple[int, int, str]]:
    """By system, items without a run or without a model that answered, of how many, and what the first one says."""
    found: dict[str, tuple[int, int, str]] = {}
    for item in outcome.items:
        count, total, why = found.get(item.key.system, (0, 0, ""))
        failed = bool(item.error) or item.stop == "model"
        found[item.key.system] = (count + failed, total + 1, why or (item.error or item.detail if failed else ""))
    return {name: told for name, told in found.items() if told[0]}


def tell_broken(outcome: Outcome) -> None:
    """Tell which systems broke, and why."""
    for name, (count, total, why) in broken_of(outcome).items():
        say(f"{name}: {count} of {total} items have no answer, for something broke: {why}", error=True)


def _tell(outcome: Outcome, shown: EvaluationProgress, seconds: float, as_json: bool) -> None:
    from concertino_bench.metrics.counterfactuals import followed

    last = shown.last
    right = last.right if last is not None else {}
    if as_json:
        priced = last is not None and not last.unpriced
        summary = {
            "file": str(outcome.path),
            "items": len(outcome.items),
            "total": outcome.total,
            "missing": outcome.missing,
            "stopped": outcome.stopped,
            "seconds": round(seconds, 3),
            "usd": round(last.usd, 6) if priced and last is not None else None,
            "systems": {name: {"right": counts[0], "done": counts[1]} for name, counts in right.items()},
            "counterfactuals": [each._asdict() for each in followed(outcome.items)],
            "broken": {name: count for name, (count, _, _) in broken_of(outcome).items()},
            "nodes": node_json(last.nodes if last is not None else ()),
        }
        say_json(summary)
    else:
        width = max((len(name) for name in right), default=0)
        for name, (good, done) in right.items():
            say(f"{name:<{width}}  {good}/{done}  {100 * good / max(1, done):.1f} %")
        for each in followed(outcome.items):
            say(each.line())
        say(f"{len(outcome.items)} items in {outcome.path}; concertino bench report {outcome.path}")
    if outcome.stopped:
        say(f"stopped: {outcome.stopped}; {outcome.missing} of {outcome.total} items are not done", error=True)
    tell_broken(outcome)
