"""AsyncHow and WorFBench: plans of steps that wait for each other.

AsyncHow has everyday plans of steps that take time. A task asks for the shortest time for the whole. `plan_of` gives
the same steps as a plan of calls, so that an executor's clock can be held against the answer. A step without edges
still has to be done; seconds are taken as the file has them, never read from texts. WorFBench asks for the plan itself.

The invariant: every task has a plan. START and END are marks, not steps. A cycle, or an edge to a step that is not
there, is an error of its row.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import IO, Any, Literal

import concertino as ct

from concertino_bench.tasks.task import DataError, Task

from .bad_rows import SkippedRows, allowed_now
from .plain_pickles import load_plain
from .row_values import brief, is_number, number_text
from .rows import DataRow, checked, opened
from .streaming import DataWarning, distinct, id_of, rest, split_of, stream

Durations = Literal["shortest", "longest"]
_MARKS = ("START", "END")
_WHICH = {"shortest": 0, "longest": 1}
_COLUMNS = ("titles", "steps", "edge_list", "time_dic", "timedelta_dic", "task_time")


def asynchow(*, path: str | Path, durations: Durations = "shortest", split: str = "") -> Iterator[Task]:
    """Tasks of the kind "plan", whose answer is a whole number of seconds.

    Args:
        path: rows with `title`, `steps`, `edges`, `durations_s` and `makespan_s` ([shortest, longest] seconds each), or
            one of the published files, such as `async_benchmark.pkl`, of which nothing but plain data is loaded.
        durations: which of the two, where a step's duration is a range.

    Returns:
        The tasks; metadata holds `title`, `steps` and `seconds` by step id, and `edges` between steps.
    """
    if durations not in _WHICH:
        raise DataError(f"durations={durations!r}; expected 'shortest' or 'longest'")

    def make(row: DataRow) -> Task:
        return _task(row, _WHICH[durations], split)

    if Path(path).name.removesuffix(".gz").endswith(".pkl"):
        file = checked(path, (".pkl",))
        skipped = allowed_now()
        return distinct(_pickled(path, file, skipped), make, lambda: _pickled(path, file, skipped))
    return stream(path, make)


def plan_of(task: Task, tool: str = "step", argument: str = "seconds") -> ct.Plan:
    """The steps of a task as a plan: one call per step, after the steps that it waits for.

    Args:
        task: a task of AsyncHow.
        tool: what every call calls.
        argument: which of its arguments is the step's duration in seconds.

    Raises:
        ValueError: the task has no steps.
        PlanError: the steps wait for each other, or for one that is not there.
    """
    seconds = durations_of(task)
    before: dict[str, list[str]] = {step: [] for step in seconds}
    for first, second in task.metadata["edges"]:
        before.setdefault(second, []).append(first)
    return ct.Plan(ct.Call(tool, {argument: seconds[step]}, step, tuple(before[step])) for step in seconds)


def durations_of(task: Task) -> dict[str, float]:
    """Seconds by step id.

    Raises:
        ValueError: the task has no steps.
    """
    if "seconds" not in task.metadata:
        raise ValueError(f"{task.id} has no steps; expected a task of AsyncHow, with 'seconds' in its metadata")
    return dict(task.metadata["seconds"])


def _task(row: DataRow, which: int, split: str) -> Task:
    title, steps = row.text("title"), row.texts("steps")
    seconds = {step: _seconds(row, "durations_s", value, which) for step, value in _durations(row).items()}
    if not steps or len(steps) != len(seconds):
        raise row.error(f"{len(steps)} steps and {len(seconds)} durations; expected one for each: correct the row")
    # Steps are a list, durations an object by number as text: sorted as texts, 10 would come before 2.
    texts = dict(zip(sorted(seconds, key=_rank), steps, strict=True))
    edges = _edges(row, seconds)
    makespan = _seconds(row, "makespan_s", row.data[row.needed("makespan_s")], which)
    metadata = {"title": title, "steps": texts, "seconds": seconds, "edges": edges}
    task = Task(
        id_of("asynchow", row, "id"),
        _question(title, texts, seconds, edges),
        (number_text(makespan),),
        "plan",
        split=split_of(row, split),
        metadata=metadata | rest(row, "durations_text"),
    )
    _check_plan(row, task, makespan)
    return task


def _check_plan(row: DataRow, task: Task, makespan: float) -> None:
    try:
        # The published answer stands even where it differs: scores have to stay comparable.
        longest, _ = plan_of(task).critical_path(durations_of(task))
    except ct.PlanError as error:
        raise row.error(f"the steps are not a plan ({error}); expected edges without a cycle: correct it") from None
    if longest != makespan:
        text = (
            f"the longest chain takes {number_text(longest)} s, and the answer is {number_text(makespan)} s, as given"
        )
        warnings.warn(f"{row.place}: {task.id}: {text}", DataWarning, stacklevel=2)


def _durations(row: DataRow) -> Mapping[str, Any]:
    value = row.data[row.needed("durations_s")]
    if not isinstance(value, dict) or not value:
        row.wrong("durations_s", "[shortest, longest] seconds by step id")
    return value


def _seconds(row: DataRow, column: str, value: Any, which: int) -> float:
    pair = value if isinstance(value, list | tuple) else [value, value]
    if len(pair) != 2 or not all(is_number(each) and 0 <= each < float("inf") for each in pair):
        raise row.error(f"column {column!r} holds {brief(value)}; expected [shortest, longest] in seconds, not below 0")
    seconds: float = pair[which]
    return seconds


def _edges(row: DataRow, seconds: Mapping[str, float]) -> list[list[str]]:
    """Edges between steps; the marks START and END are left out."""
    edges = []
    for edge in row.items("edges"):
        if not isinstance(edge, list | tuple) or len(edge) != 2:
            row.wrong("edges", f"pairs of step ids, and one is {brief(edge)}")
        first, second = map(str, edge)
        unknown = next((end for end in (first, second) if end not in seconds and end not in _MARKS), None)
        if unknown is not None:
            known = ", ".join(seconds)
            raise row.error(f"an edge {edge!r} leads to {unknown!r}; expected START, END or one of {known}")
        if first not in _MARKS and second not in _MARKS:
            edges.append([first, second])
    return edges


def _rank(step: str) -> tuple[int, str]:
    return (int(step) if step.isdecimal() else 1 << 30, step)


def _question(title: str, steps: Mapping[str, str], seconds: Mapping[str, float], edges: list[list[str]]) -> str:
    listed = [f"Step {step} ({number_text(seconds[step])} seconds): {text}" for step, text in steps.items()]
    waits = [f"Step {second} can begin only when step {first} is done." for first, second in edges]
    ask = "Steps that do not wait for each other can be done at the same time, by as many people as needed."
    end = "What is the shortest time, in seconds, in which all steps are done? Answer with a whole number."
    return "\n".join([f"{title}.", *listed, *(waits or ["No step waits for another."]), ask, end])


# -- the published files -----------------------------------------------------------------------------------------------


def _pickled(path: str | Path, file: Path, skipped: SkippedRows) -> Iterator[DataRow]:
    """The rows of a published file: columns, each a list over the plans."""
    with opened(path, file) as raw:
        table = _table(path, raw)
    columns = [values for name in _COLUMNS if isinstance(values := table.get(name), list)]
    if len(columns) < len(_COLUMNS) or len({len(values) for values in columns}) != 1:
        raise DataError(f"{path}: expected lists of equal length under {', '.join(_COLUMNS)}: is it AsyncHow's file?")
    kind = re.sub(r"_benchmark|\.gz$|\.pkl", "", file.name)
    for index, (title, steps, edges, texts, spans, total) in enumerate(zip(*columns, strict=True)):
        try:
            data = {
                "id": f"{kind}/{index}",
                "title": title,
                "steps": list(steps),
                "edges": [list(edge) for edge in edges],
                "durations_text": dict(texts),
                "durations_s": {step: _span(span) for step, span in spans.items()},
                "makespan_s": _span(total),
            }
        except (AttributeError, TypeError, ValueError) as error:
            skipped.leave_out(DataError(f"{path}: plan {index}: {error}; expected steps, edges and time spans"))
            continue
        yield DataRow(str(path), index + 1, index + 1, data)


def _table(path: str | Path, raw: IO[bytes]) -> Mapping[str, Any]:
    try:
        table = load_plain(raw)
    except ValueError as error:
        raise DataError(f"{path}: {error}; take the published file, or JSON Lines") from None
    if not isinstance(table, dict):
        raise DataError(f"{path}: {type(table).__name__}; expected columns by name: is it AsyncHow's file?")
    return table


def _span(pair: Any) -> list[float]:
    low, high = (each.total_seconds() for each in pair)
    # `total_seconds` gives floats, and an answer is written as a whole number.
    return [int(each) if each == int(each) else each for each in (low, high)]


# -- WorFBench ---------------------------------------------------------------------------------------------------------

_FORM = (
    "Divide the task into sub-tasks, and say which of them wait for which. Write the sub-tasks one a line, with their "
    "numbers, then all edges, from START to END:\nNode:\n1: first sub-task\n2: second sub-task\nEdge: (START,1) (1,2) "
    "(2,END)"
)


def worfbench(*, path: str | Path, split: str = "") -> Iterator[Task]:
    """Tasks of the kind "workflow", whose `nodes` and `edges` are in the metadata; the axis is the number of sub-tasks.

    Args:
        path: rows with `conversations` (the published `gold_traj/…/graph_eval.json`), or with `task` and `gold_text`.

    Raises:
        DataError: the file or a row is wrong, or its gold has no edges, an edge to no sub-task, or a cycle.
    """
    return stream(path, lambda row: _workflow(row, split))


def _workflow(row: DataRow, split: str) -> Task:
    from concertino_bench.graders.workflow_match import read_workflow

    asked, gold = _said(row) if row.column("conversations") else (row.text("task"), row.text("gold_text"))
    nodes, edges = read_workflow(gold)
    if not nodes or not edges:
        raise row.error(
            f"the gold {brief(gold)} has no sub-tasks or no edges; expected 'Node:' and 'Edge: (START,1) …'"
        )
    steps = [pair for pair in edges if not {*pair} & {*_MARKS}]
    stranger = next((name for pair in edges for name in pair if name not in nodes and name not in _MARKS), None)
    if stranger is not None:
        raise row.error(f"the gold has an edge with {stranger}, which is no sub-task of {', '.join(nodes)}; correct it")
    _refuse_cycle(row, nodes, steps)
    metadata = {"nodes": dict(nodes), "edges": [[*pair] for pair in edges]} | rest(row, "source")
    name = id_of("worfbench", row, "id")
    question = f"{asked.strip()}\n\n{_FORM}"
    return Task(name, question, (), "workflow", "nodes", len(nodes), split_of(row, split), metadata)


def _said(row: DataRow) -> tuple[str, str]:
    """What the user asked and the assistant answered last."""
    last: dict[str, str] = {}
    for turn in row.items("conversations"):
        if not isinstance(turn, dict) or not isinstance(turn.get("content"), str):
            row.wrong("conversations", "messages with 'role' and 'content'")
        last[str(turn.get("role"))] = turn["content"]
    if "user" not in last or "assistant" not in last:
        row.wrong("conversations", "a message of the user and one of the assistant")
    return last["user"], last["assistant"]


def _refuse_cycle(row: DataRow, nodes: Mapping[str, str], edges: list[tuple[str, str]]) -> None:
    try:
        TopologicalSorter({node: [left for left, right in edges if right == node] for node in nodes}).prepare()
    except CycleError as error:
        raise row.error(f"the gold has a cycle ({' to '.join(error.args[1])}); expected none: correct it") from None
