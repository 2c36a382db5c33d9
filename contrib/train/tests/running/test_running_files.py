"""What a training writes: figures that survive a crash, a folder that one process holds, curves, traces."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from concertino import UsageError
from concertino_train.config import load_config
from concertino_train.episodes import Episode
from concertino_train.rewards import Scored
from concertino_train.running import read_metrics
from concertino_train.running.curves import plot, smoothed
from concertino_train.running.folder import TrainingFolder
from concertino_train.running.metrics import MetricsFile
from concertino_train.running.traces import TraceWriter, choose

# -- figures -----------------------------------------------------------------------------------------------------------


def test_what_is_written_is_read_back_and_what_is_not_finite_is_counted(tmp_path: Path) -> None:
    with MetricsFile(tmp_path / "metrics.jsonl") as file:
        file.write(1, {"reward": 0.5, "loss": float("nan")})
        file.write(3, {"reward": 0.75})
    assert list(read_metrics(file.path)) == [
        {"step": 1, "reward": 0.5, "not_finite": 1},
        {"step": 3, "reward": 0.75},
    ]


def test_steps_go_up(tmp_path: Path) -> None:
    with MetricsFile(tmp_path / "metrics.jsonl") as file:
        file.write(2, {})
        with pytest.raises(UsageError, match="step 2 after step 2"):
            file.write(2, {})


def test_a_torn_last_line_is_passed_over_and_cut_off_by_who_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step":1}\n{"step":2}\n{"step":3,"rew', encoding="utf-8")
    assert [line["step"] for line in read_metrics(path)] == [1, 2]
    with MetricsFile(path, after=1) as file:
        file.write(2, {"reward": 1.0})
    assert list(read_metrics(path)) == [{"step": 1}, {"step": 2, "reward": 1.0}]


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step":1}\nnonsense\n{"step":3}\n', encoding="utf-8")
    with pytest.raises(UsageError, match=r"metrics.jsonl:2: not a line of figures"):
        list(read_metrics(path))


def test_a_new_training_does_not_write_behind_an_old_one(tmp_path: Path) -> None:
    with MetricsFile(tmp_path / "metrics.jsonl") as file:
        file.write(1, {})
    with pytest.raises(UsageError, match="has 1 steps already; resume it"):
        MetricsFile(file.path)


def test_a_killed_process_leaves_whole_lines(tmp_path: Path) -> None:
    program = (
        "import os, sys; from concertino_train.running.metrics import MetricsFile\n"
        "file = MetricsFile(sys.argv[1])\n"
        "for step in range(1, 51): file.write(step, {'reward': step / 50})\n"
        "os._exit(9)\n"
    )
    path = tmp_path / "metrics.jsonl"
    subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert [line["step"] for line in read_metrics(path)] == list(range(1, 51))


# -- the folder --------------------------------------------------------------------------------------------------------


def test_a_folder_is_held_by_one_process_and_begun_once(tmp_path: Path) -> None:
    config = load_config({"trainer": {"seed": 1}})
    with TrainingFolder(tmp_path / "out", config) as home:
        assert load_config(home.config_file) == config
        with pytest.raises(UsageError, match="another process trains in"):
            TrainingFolder(home.path, config, resume=True)
        home.metrics.write_text('{"step":1}\n')
    with pytest.raises(UsageError, match=r"holds a training already; continue it \(--resume\)"):
        TrainingFolder(home.path, config)
    with TrainingFolder(home.path, config, resume=True) as again:
        assert again.resumes


def test_a_folder_in_which_nothing_was_done_is_begun_again_without_being_told_to(tmp_path: Path) -> None:
    with TrainingFolder(tmp_path, load_config({"trainer": {"seed": 1}})) as home:
        home.metrics.touch()  # the audit refused the first batch, say
    other = load_config({"trainer": {"seed": 2}})
    with TrainingFolder(tmp_path, other) as home:
        assert load_config(home.config_file) == other


def test_a_folder_goes_on_with_its_own_settings_or_says_what_differs(tmp_path: Path) -> None:
    with TrainingFolder(tmp_path, load_config({"trainer": {"seed": 1}})):
        pass
    other = load_config({"trainer": {"seed": 2}})
    with pytest.raises(UsageError, match=r"trained with other settings \(trainer.seed: 1, now 2\)"):
        TrainingFolder(tmp_path, other, resume=True)
    longer = load_config({"trainer": {"seed": 1, "rl": {"steps": 7}}})
    with TrainingFolder(tmp_path, longer, resume=True) as home:
        assert home.resumes
    with TrainingFolder(tmp_path, other, resume=True, force=True) as home:
        assert load_config(home.config_file) == other


def test_a_restart_begins_anew_and_leaves_what_is_not_its_own(tmp_path: Path) -> None:
    config = load_config()
    with TrainingFolder(tmp_path, config) as home:
        home.metrics.write_text('{"step":1}\n')
        home.checkpoints.mkdir()
        (home.path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"start over \(--restart\)"):
        TrainingFolder(tmp_path, config, force=True)
    with pytest.raises(UsageError, match="not both"):
        TrainingFolder(tmp_path, config, restart=True, resume=True)
    with TrainingFolder(tmp_path, config, restart=True) as home:
        assert not home.resumes
        assert not home.metrics.exists()
        assert not home.checkpoints.exists()
        assert (home.path / "notes.txt").read_text() == "mine"


def test_resuming_what_is_not_there_begins(tmp_path: Path) -> None:
    with TrainingFolder(tmp_path / "new", load_config(), resume=True) as home:
        assert not home.resumes


def test_a_rank_that_does_not_lead_writes_nothing(tmp_path: Path) -> None:
    with TrainingFolder(tmp_path / "out", load_config(), leader=False):
        assert not (tmp_path / "out").exists()


# -- curves ------------------------------------------------------------------------------------------------------------


def test_curves_are_an_svg_of_what_there_is_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    lines = [{"step": step, "reward": step / 10, "tokens": 100 - step, "usd": 0.0} for step in range(1, 6)]
    one, two = plot(lines, tmp_path / "one.svg", "a <title>"), plot(lines, tmp_path / "two.svg", "a <title>")
    assert one is not None
    assert two is not None
    assert one.read_bytes() == two.read_bytes()
    words = [each.text for each in ElementTree.parse(one).iter() if each.tag.endswith("text")]
    assert {"reward", "length", "tokens", "step"} <= set(words)
    assert "cost of a rollout" not in words
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.svg", "two.svg"]


def test_nothing_to_draw_is_no_file(tmp_path: Path) -> None:
    assert plot([{"step": 1, "seconds": 2.0}], tmp_path / "plot.svg") is None
    assert not (tmp_path / "plot.svg").exists()


def test_smoothing_keeps_a_constant_and_lags_behind_a_step() -> None:
    assert smoothed([2.0] * 5) == pytest.approx([2.0] * 5)
    found = smoothed([0.0, 0.0, 1.0])
    assert found[:2] == [0.0, 0.0]
    assert 0 < found[2] < 1


# -- traces ------------------------------------------------------------------------------------------------------------


class FakeRollout(SimpleNamespace):
    """A rollout as far as a writer of traces looks at it."""

    def write_trace(self, path: Path) -> Path:
        path.write_text(self.id, encoding="utf-8")
        return path


def rollouts_of(make: Callable[..., Episode], rewards: dict[str, list[float]]) -> tuple[list[Any], list[Scored]]:
    rollouts, scored = [], []
    for group, totals in rewards.items():
        for sample, total in enumerate(totals):
            id_ = f"{group}-{sample}"
            rollouts.append(FakeRollout(id=id_, group=group, episode=make(id_, group=group)))
            scored.append(Scored(total, {"correct": total}))
    return rollouts, scored


def test_a_step_of_traces_holds_the_best_and_the_worst_where_they_differ_most(make: Callable[..., Episode]) -> None:
    rollouts, scored = rollouts_of(make, {"even": [1, 1, 1], "apart": [0, 1, 0.5], "close": [0.2, 0.4, 0.3]})
    names = [rollouts[place].id for place in choose(rollouts, scored, 4)]
    assert names == ["apart-1", "close-1", "even-0", "apart-0"]
    assert len(choose(rollouts, scored, 99)) == 9
    rollouts, scored = rollouts_of(make, {"a": [0, 1, 0.5, 0.4], "b": [0, 0.9, 0.5, 0.3]})
    assert [rollouts[place].id for place in choose(rollouts, scored, 4)] == ["a-1", "b-1", "a-0", "b-0"]


def test_episodes_of_a_step_are_written_with_their_rewards(tmp_path: Path, make: Callable[..., Episode]) -> None:
    from concertino_train.audit import read_episodes

    writer = TraceWriter(
        tmp_path, load_config(None, ["logging.traces.every=5", "logging.traces.keep=2"]).logging.traces
    )
    assert [step for step in range(1, 12) if writer.due(step)] == [1, 5, 10]
    rollouts, scored = rollouts_of(make, {"q": [1, 0], "r": [0, 0]})
    paths = writer.write(5, rollouts, scored)
    home = tmp_path / "step-000005"
    assert [path.name for path in paths] == ["q-0.trace.jsonl", "r-0.trace.jsonl"]
    assert [episode.id for group in read_episodes(home / "episodes.jsonl").values() for episode in group] == [
        "q-0",
        "q-1",
        "r-0",
        "r-1",
    ]
    rewards = [json.loads(line) for line in (home / "rewards.jsonl").read_text().splitlines()]
    assert rewards[0] == {"id": "q-0", "group": "q", "total": 1, "components": {"correct": 1}, "rows": []}
    writer.write(5, rollouts[:2], scored[:2])
    assert len((home / "rewards.jsonl").read_text().splitlines()) == 2
    assert len(list(home.iterdir())) == 4


def test_no_traces_are_due_where_none_are_wanted(tmp_path: Path) -> None:
    settings = load_config(None, ["logging.traces.every=0"]).logging.traces
    assert not any(TraceWriter(tmp_path, settings).due(step) for step in range(1, 30))
