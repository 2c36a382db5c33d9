"""A run shows where it happens: a table on a terminal, a few words elsewhere, data as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from concertino.rollouts import NodeHealth
from concertino_bench.cli import bench
from concertino_bench.cli.node_rows import node_json, node_table
from concertino_bench.cli.run import EvaluationProgress, progress_line
from concertino_bench.runner import Progress

NODES = [
    NodeHealth("f" * 56, "10.0.0.2:4711", "gone", 0, 0, 12, 1, 0.0),
    NodeHealth("a" * 56, "10.0.0.1:4711", "ready", 2, 31, 100, 0, 0.61234),
]


def told(done: int = 1, nodes: list[NodeHealth] = NODES) -> Progress:
    return Progress(done, 4, done, {"a": (done, done)}, 0.0, 1.0, nodes=nodes)


def test_who_is_there_stands_first_and_a_long_list_is_cut() -> None:
    assert node_table([]) == []
    assert node_table(NODES) == [
        "NODE          HOST           STATE  WORKERS  RUNNING  DONE  LOST  SILENT",
        "aaaaaaaaaaaa  10.0.0.1:4711  ready  2        31       100   0     1 s",
        "ffffffffffff  10.0.0.2:4711  gone   0        0        12    1     0 s",
    ]
    many = node_table(NODES * 10)
    assert len(many) == 1 + 12 + 1
    assert many[-1] == "and 8 more: 8 gone"


def test_the_line_counts_the_nodes() -> None:
    assert progress_line(told()).endswith("on 1 gone, 1 ready")
    assert " on " not in progress_line(told(nodes=[]))


def test_on_a_terminal_the_table_is_written_over_the_last_one(capsys: pytest.CaptureFixture[str]) -> None:
    shown = EvaluationProgress(quiet=True)
    shown.terminal = True
    for nodes in ([], NODES, NODES[:1], []):
        shown._last = 0.0
        shown(told(nodes=nodes))
    shown.end()
    screen, shows = [""], []
    for piece in capsys.readouterr().err.split("\r")[1:]:
        up = int(piece[2 : piece.index("A")]) if piece.startswith("\x1b[") and "A" in piece[:5] else 0
        assert up <= len(screen) - 1
        screen = screen[: len(screen) - 1 - up]
        screen += piece[piece.rindex("\x1b[J") + 3 if "\x1b[J" in piece else 0 :].split("\n")
        shows.append(screen[:])
    assert shows[1][-3:-1] == node_table(NODES)[:2]
    assert [" ".join(line.split()) for line in screen] == ["1/4 25% a 100% 0.0000 $ 0:03 left", ""]


def test_without_a_terminal_there_is_no_table(capsys: pytest.CaptureFixture[str]) -> None:
    shown = EvaluationProgress(quiet=False)
    shown.terminal = False
    shown._last -= 60
    shown(told())
    assert capsys.readouterr().err == f"{progress_line(told())}\n"


def test_data_is_plain() -> None:
    assert json.loads(json.dumps(node_json(NODES[1:]))) == [
        {"node": "a" * 56, "host": "10.0.0.1:4711", "state": "ready", "workers": 2, "running": 31, "done": 100}
        | {"lost": 0, "silent": 0.612}
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("on", "workers"), [("local", 0), ("local:2", 2)])
def test_the_summary_of_a_run_says_where_it_happened(tmp_path: Path, on: str, workers: int) -> None:
    given = ["run", "--tasks", "masbench/depth,level=3,limit=4", "--system", "rounds=parallel-rounds,model=toy/leader"]
    done = CliRunner().invoke(bench, [*given, "--out", str(tmp_path / "r.jsonl"), "--on", on, "--json"])
    nodes = json.loads(done.stdout)["nodes"]
    assert len(nodes) == workers
    assert sum(node["done"] for node in nodes) == (4 if workers else 0)
