"""What watches a training: monitors, trackers, reporters, signals, and figures of a step."""

from __future__ import annotations

import importlib.util
import json
import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from concertino import UsageError
from concertino_train.config import load_config
from concertino_train.config.learning import MonitorSection
from concertino_train.episodes import Called, Episode, EpisodeRound
from concertino_train.running import Reporter
from concertino_train.running.figures import episode_figures, evenness, over_ranks
from concertino_train.running.launch import launch_command, launch_text
from concertino_train.running.monitors import Monitors
from concertino_train.running.progress import BarReporter, LineReporter, reporter
from concertino_train.running.signals import GracefulStop
from concertino_train.running.trackers import Trackers, check_trackers

# -- monitors ----------------------------------------------------------------------------------------------------------

FINE = {"tool_entropy": 0.8, "calls": 2.0, "rounds": 2.5, "tokens": 100.0, "groups/zero_variance": 0.2, "format": 0.9}


def watched(steps: list[dict[str, float]], **settings: Any) -> list[str]:
    """Codes of the warnings of some steps, each over the good figures."""
    monitors = Monitors(MonitorSection(**{"warmup": 2, "patience": 2, **settings}))
    found = []
    for number, figures in enumerate(steps, 1):
        found += [warning.code for warning in monitors.look(number, {**FINE, **figures})]
    return found


@pytest.mark.parametrize(
    ("code", "figures"),
    [
        ("tool_entropy", {"tool_entropy": 0.02}),
        ("length", {"tokens": 10.0}),
        ("longer", {"tokens": 1000.0}),
        ("zero_variance", {"groups/zero_variance": 1.0}),
        ("format", {"format": 0.1}),
    ],
)
def test_a_sign_of_collapse_is_told_once_it_lasts_and_again_only_after_it_was_gone(
    code: str, figures: dict[str, float]
) -> None:
    assert watched([{}] * 4) == []
    assert watched([{}, {}, figures, {}, figures]) == []
    assert watched([{}, {}, figures, figures, figures, figures]) == [code]
    assert watched([{}, {}, figures, figures, {}, figures, figures]) == [code, code]


def test_a_monitor_has_a_bound_of_its_own_and_can_be_switched_off() -> None:
    bad = [{}, {}, {"rounds": 0.5}, {"rounds": 0.5}]
    assert watched(bad) == []
    assert watched(bad, rounds=1.0) == ["rounds"]
    assert watched([{}, {}, {"format": 0.0}, {"format": 0.0}], format=None) == []


def test_no_calls_at_all_are_no_collapse_of_the_choice_of_tools() -> None:
    none = {"calls": 0.0, "tool_entropy": 0.0}
    assert watched([{}, {}, none, none, none]) == []


def test_a_warning_says_what_was_seen_and_what_to_try() -> None:
    monitors = Monitors(MonitorSection(warmup=0, patience=1))
    (warning,) = monitors.look(3, {**FINE, "groups/zero_variance": 0.95})
    assert "zero_variance at step 3: 95% of groups have equal rewards, most is 0.9 now" in str(warning)
    assert "dynamic sampling (algorithm.sampling.enabled)" in str(warning)


def test_groups_without_signal_are_told_within_ten_steps_and_once() -> None:
    steps = [{"groups/zero_variance": share} for share in (0.7, 0.5, 0.8, 0.6) * 5]
    assert watched(steps, zero_variance=None) == ["no_signal"]
    assert watched([{"groups/zero_variance": 0.4}] * 20, zero_variance=None) == []
    monitors = Monitors(MonitorSection(zero_variance=None))
    (told,) = [warning for step in range(1, 11) for warning in monitors.look(step, {"groups/zero_variance": 0.6})]
    assert told.step == 8
    assert "rollout.group_size" in told.advice


def test_monitors_go_on_where_they_were_written_down() -> None:
    settings = MonitorSection(warmup=1, patience=2)
    one = Monitors(settings)
    assert one.look(1, FINE) == []
    assert one.look(2, {**FINE, "tokens": 1.0}) == []
    two = Monitors(settings)
    two.restore(json.loads(json.dumps(one.dump())))
    assert [each.code for each in two.look(3, {**FINE, "tokens": 1.0})] == ["length"]


# -- figures -----------------------------------------------------------------------------------------------------------


def test_figures_of_a_step_are_means_and_shares(make: Callable[..., Episode]) -> None:
    calls = tuple(Called(name, status=status) for name, status in (("a", "OK"), ("b", "OK"), ("a", "TIMEOUT")))
    one = make(
        "one",
        True,
        units=3,
        usd=0.2,
        rounds=(EpisodeRound(calls=calls), EpisodeRound("final")),
        totals={"policy_tokens": 30},
    )
    two = make("two", False, units=1, rounds=(EpisodeRound("unread", issues=("no_call",)),), stop="format")
    found = episode_figures([one, two])
    expected = {"success": 0.5, "format": 0.5, "rounds": 1.5, "calls": 1.5, "tokens": 15.0, "units": 2.0, "usd": 0.1}
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert (found["members"], found["ok_calls"]) == (2.0, pytest.approx(2 / 3))
    assert found["stop/format"] == 0.5
    assert found["tool_entropy"] == pytest.approx(0.918, abs=1e-3)


def test_evenness_is_one_for_equal_shares_and_nothing_for_one_name() -> None:
    assert evenness({"a": 5, "b": 5, "c": 5}) == pytest.approx(1.0)
    assert evenness({"a": 5}) == evenness({}) == 0.0
    assert 0 < evenness({"a": 99, "b": 1}) < 0.1


# -- trackers ----------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True, scope="module")
def _accelerate() -> None:
    """The trainer makes accelerate's state before a tracker is opened."""
    from accelerate import PartialState

    PartialState(cpu=True)


def test_a_tracker_that_is_missing_is_said_with_the_command_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for name in ("tensorboard", "trackio", "wandb"):
        with pytest.raises(UsageError, match=f"{name} is not installed; pip install {name}, or leave it out"):
            check_trackers([name])
    with pytest.raises(UsageError, match=r"unknown tracker 'tensorbord'; did you mean 'tensorboard'\?"):
        check_trackers(["tensorbord"])
    check_trackers([])


def board(told: list[Any], log: Callable[..., None]) -> Any:
    """A module in the place of trackio."""
    run = SimpleNamespace(log=log, finish=lambda: told.append("finish"))

    def init(**more: Any) -> Any:
        told.append(("init", more["project"], more["name"], more["config"]))
        return run

    return SimpleNamespace(__spec__=object(), init=init)


def test_a_tracker_is_told_every_step_and_closed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told: list[Any] = []
    module = board(told, lambda figures, step: told.append((step, figures)))
    monkeypatch.setitem(sys.modules, "trackio", module)
    trackers = Trackers(["trackio"], tmp_path, project="p", run="r", settings={"a": 1})
    trackers.log(1, {"reward": 0.5})
    trackers.close()
    assert told == [("init", "p", "r", {"a": 1}), (1, {"reward": 0.5}), "finish"]


def test_a_tracker_that_breaks_is_said_once_and_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[int] = []

    def log(figures: Any, step: int) -> None:
        asked.append(step)
        raise RuntimeError("no room")

    monkeypatch.setitem(sys.modules, "trackio", board([], log))
    trackers = Trackers(["trackio"], tmp_path, project="p", run="r", settings={})
    with caplog.at_level(logging.WARNING):
        trackers.log(1, {})
        trackers.log(2, {})
    assert asked == [1]
    assert caplog.text.count("the tracker trackio failed and is left out from now on: no room") == 1


def test_tensorboard_writes_event_files_in_the_folder(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is absent")
    trackers = Trackers(["tensorboard"], tmp_path, project="p", run="r", settings={"a": {"b": 1}})
    trackers.log(1, {"reward": 0.5})
    trackers.close()
    assert list((tmp_path / "tensorboard").glob("events.*"))


# -- reporters ---------------------------------------------------------------------------------------------------------


def test_a_line_shows_step_figures_speed_and_what_is_left() -> None:
    lines: list[str] = []
    told = LineReporter(lines.append)
    told.begin("rl", 10)
    told.step(5, {"reward": 1.25, "success": 0.5, "usd": 0.0, "tokens_per_second": 1240.0})
    told.step(6, {"reward": 1.5}, show=False)
    told.say("checkpoint-6")
    told.say("careful", "warning")
    assert lines[0].startswith("step 5/10  reward 1.250  success 50%  1,240 tok/s  00:00 left")
    assert lines[1:] == ["checkpoint-6", "warning: careful"]


def test_json_lines_are_read_by_programs() -> None:
    lines: list[str] = []
    told = LineReporter(lines.append, as_json=True)
    told.begin("rl", 2)
    told.step(2, {"reward": 1.0})
    told.say("stopped", "warning")
    events = [json.loads(line) for line in lines]
    assert events[0] == {"event": "step", "step": 2, "total": 2, "left": 0.0, "figures": {"reward": 1.0}}
    assert events[1] == {"event": "warning", "text": "stopped"}


def test_who_goes_on_reckons_with_the_steps_of_this_process_alone() -> None:
    told = Reporter()
    told.begin("rl", 100, done=90)
    assert told.seconds_left is None
    told.step(91, {})
    left = told.seconds_left
    assert left is not None
    assert left < 5


def test_who_begins_to_tell_after_the_first_step_reckons_with_what_that_took() -> None:
    told = Reporter()
    told.begin("sft", 10, elapsed=600.0)
    told.step(1, {})
    assert told.seconds_left == pytest.approx(9 * 600.0, rel=0.01)


def test_views_have_names() -> None:
    assert isinstance(reporter("plain", print), LineReporter)
    assert isinstance(reporter("json", print), LineReporter)
    assert isinstance(reporter("bar", print), BarReporter)
    assert type(reporter("none", print)) is Reporter
    with pytest.raises(UsageError, match="expected auto, bar, plain, json or none"):
        reporter("loud", print)


def test_a_bar_is_drawn_on_a_terminal_and_says_what_happens_above_it(capsys: pytest.CaptureFixture[str]) -> None:
    told = reporter("bar", print)
    told.begin("rl", 3)
    told.step(1, {"reward": 0.5})
    told.say("a note")
    told.end()
    assert "a note" in capsys.readouterr().err


# -- signals -----------------------------------------------------------------------------------------------------------

STOPPING = """
import signal, sys, time
from concertino_train.running.signals import GracefulStop
before = signal.getsignal(signal.SIGTERM)
with GracefulStop(print) as stop:
    print("ready", flush=True)
    while not stop.asked:
        time.sleep(0.01)
    sys.stdout.flush()
    if "twice" in sys.argv:
        try:
            print("asked", flush=True)
            time.sleep(30)
        except KeyboardInterrupt:
            print("at once")
    print(stop.reason)
assert signal.getsignal(signal.SIGTERM) is before
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_asks_and_says_so(number: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", STOPPING], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        out = process.stdout.read()
    assert process.returncode == 0
    assert out.splitlines()[0].startswith(f"{number.name}: finishing the step and writing a checkpoint")
    assert out.splitlines()[1] == number.name


def test_a_second_signal_ends_at_once() -> None:
    with subprocess.Popen([sys.executable, "-c", STOPPING, "twice"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline().startswith("SIGTERM")
        assert process.stdout.readline() == "asked\n"
        process.send_signal(signal.SIGTERM)
        out = process.stdout.read()
    assert out.splitlines() == ["at once", "SIGTERM"]


def test_outside_of_the_main_thread_nothing_is_caught_and_asking_works() -> None:
    before = signal.getsignal(signal.SIGINT)
    found: list[Any] = []

    def work() -> None:
        with GracefulStop() as stop:
            stop.ask("a monitor")
            stop.ask("somebody else")
            found.extend([stop.asked, stop.reason, signal.getsignal(signal.SIGINT) is before])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [True, "a monitor", True]


def test_figures_of_ranks_become_one_by_how_many_tests_and_rollouts_they_are_of() -> None:
    one = {"rows": 8.0, "reward": 1.0, "eval/tests": 3.0, "eval/success": 1.0}
    two = {"rows": 4.0, "reward": 0.0, "eval/tests": 1.0, "eval/success": 0.0}
    assert over_ranks([one, two]) == {"rows": 12.0, "reward": 0.5, "eval/tests": 4.0, "eval/success": 0.75}
    assert over_ranks([one, {"reward": 3.0}])["eval/success"] == 1.0
    assert over_ranks([one]) == one


def test_what_is_said_before_there_is_a_bar_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    reporter("bar", print).say("begins with what was taught")
    assert "begins with what was taught" in capsys.readouterr().err


# -- several processes -------------------------------------------------------------------------------------------------


def test_the_launch_command_names_processes_machines_and_precision() -> None:
    plain = load_config(None, ["trainer.processes=8", "trainer.precision=bfloat16"])
    assert launch_text(launch_command(plain, "rl", ["--config", "a b.yaml"])) == (
        "accelerate launch --num_processes 8 --mixed_precision bf16 --multi_gpu --num_machines 1 -m concertino train "
        "rl --config 'a b.yaml'"
    )
    two = load_config(None, ["trainer.processes=4", "trainer.nodes=2", "trainer.accelerate=fsdp.yaml"])
    text = launch_text(launch_command(two, "rl", []))
    assert "--config_file fsdp.yaml --num_processes 8" in text
    assert "--num_machines 2 --machine_rank $RANK --main_process_ip $MASTER" in text
    preset = launch_command(load_config(None, ["trainer.accelerate=multi_gpu"]), "rl", [])
    assert Path(preset[preset.index("--config_file") + 1]).is_file()
    with pytest.raises(UsageError, match=r"trainer.accelerate=fspd2: .*fsdp1, fsdp2, multi_gpu"):
        launch_command(load_config(None, ["trainer.accelerate=fspd2"]), "rl", [])
    cpu = load_config(None, ["trainer.processes=2", "trainer.device=cpu"])
    assert launch_text(launch_command(cpu, "rl", [])) == "torchrun --nproc-per-node 2 -m concertino train rl"
    far = load_config(None, ["trainer.processes=2", "trainer.nodes=3", "trainer.device=cpu"])
    assert "--nnodes 3 --node-rank $RANK --master-addr $MASTER" in launch_text(launch_command(far, "rl", []))
    one = load_config(None, ["trainer.device=cpu"])
    assert "--num_processes 1 --mixed_precision no --cpu" in launch_text(launch_command(one, "rl", []))
