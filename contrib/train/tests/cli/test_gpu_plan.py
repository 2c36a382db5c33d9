"""`concertino train plan`: what fits on which GPUs, how long a step takes, what it costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from concertino import UsageError
from concertino_train.cli import train
from concertino_train.cli.gpus import GPUS, read_gpus


def run(*words: object) -> Result:
    return CliRunner().invoke(train, ["plan", *map(str, words)])


def plan(*words: object) -> Any:
    result = run(*words, "--json")
    assert result.exit_code in (0, 1), result.stderr
    return json.loads(result.stdout)


def ways(*words: object) -> dict[str, Any]:
    return {way["name"]: way for way in plan(*words)["ways"]}


@pytest.mark.parametrize(
    ("text", "count", "name"), [("1xH200", 1, "H200"), ("8 x h100", 8, "H100"), ("A100-80GB", 1, "A100-80GB")]
)
def test_gpus_are_written_as_people_say_them(text: str, count: int, name: str) -> None:
    assert read_gpus(text) == (count, GPUS[name])


@pytest.mark.parametrize(
    ("text", "words"),
    [("2xH20", "did you mean H200"), ("0xH200", "a number and a name"), ("", "such as 1xH200"), ("1xQ9", "known are")],
)
def test_other_gpus_are_refused_with_those_that_are_known(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read_gpus(text)


def test_a_plan_says_what_fits_what_a_step_takes_and_what_it_costs() -> None:
    found = plan("--gpus", "1xH200", "--model", "8B", "--hourly", "3.6")
    asked = {way["name"]: way for way in found["ways"]}
    whole, adapter = asked["as the settings say"], asked["an adapter"]
    assert whole["fits"] is False
    assert whole["memory"] > adapter["memory"], "an adapter keeps no gradients and moments of all weights"
    assert found["chosen"] == next(name for name, way in asked.items() if way["fits"])
    for way in asked.values():
        assert way["usd"] == pytest.approx(3.6 * way["seconds"] / 3600)
    text = run("--gpus", "1xH200", "--model", "8B", "--hourly", "3.6").stdout
    assert "model.adapter={rank: 16}" in text
    assert "a usual shape is assumed" in text


def test_twice_the_gpus_take_half_the_time_and_as_much_money() -> None:
    one = ways("--gpus", "1xH100", "--model", "4B", "--hourly", "2")["an adapter"]
    two = ways("--gpus", "2xH100", "--model", "4B", "--hourly", "2")["an adapter"]
    assert two["update_seconds"] == pytest.approx(one["update_seconds"] / 2)
    assert two["usd"] / one["usd"] == pytest.approx(two["seconds"] * 2 / one["seconds"])


def test_a_faster_gpu_is_faster_and_a_larger_model_slower() -> None:
    seconds = [
        ways("--gpus", gpus, "--model", model)["as the settings say"]["seconds"]
        for gpus, model in (("1xB200", "4B"), ("1xH200", "4B"), ("1xH200", "14B"))
    ]
    assert seconds == sorted(seconds)


def test_what_the_settings_say_already_is_not_looked_at_twice() -> None:
    named = list(ways("--gpus", "H200", "--model", "4B", "trainer.gradient_checkpointing=true"))
    assert "activations computed again" not in named
    given = ways("--gpus", "H200", "--model", "4B", "model.adapter={rank: 64}")
    assert "an adapter" not in given, "the adapter of the settings is kept"


def test_a_model_that_fits_nowhere_ends_with_status_1() -> None:
    result = run("--gpus", "2xL4", "--model", "70B")
    assert result.exit_code == 1
    assert "DOES NOT FIT" in result.stdout
    assert run("--gpus", "1xH200", "--model", "0.6B", "rollout.batch=8").exit_code == 0


def test_supervised_learning_samples_nothing() -> None:
    way = ways("--gpus", "1xH200", "--model", "4B", "--work", "sft")["as the settings say"]
    assert (way["sample_seconds"], way["sample_rate"]) == (0.0, None)
    assert way["update_rate"] > 0


def test_this_machine_is_measured() -> None:
    found = plan("--gpus", "here", "--config", "gap/toy")
    assert found["gpu"]["rate"] > 1e9
    assert found["gpu"]["bandwidth"] > 1e8
    assert found["chosen"] == "as the settings say"


def test_what_a_training_took_is_shown_beside_its_plan(tmp_path: Path) -> None:
    lines = [
        {"step": step, "seconds": 10.0 * slow, "seconds/rollouts": 6.0, "seconds/generate": 4.0 * slow}
        | {"seconds/environment": 1.0, "sampled": 400.0, "tokens_per_second": 100.0 / slow}
        for step, slow in ((1, 9.0), (2, 1.0), (3, 1.0))  # the first one warms up
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    words = ("--gpus", "1xH200", "--model", "4B", "--measured", tmp_path)
    measured = plan(*words)["measured"]
    assert (measured["steps"], measured["seconds"], measured["sample_rate"]) == (2, 10.0, 100.0)
    text = run(*words).stdout
    planned = ways(*words[:4])["as the settings say"]["sample_rate"]
    row = next(line for line in text.splitlines() if line.startswith("sampling, tok/s"))
    assert row.split()[-1] == f"{100 / planned:.2f}"


def test_a_folder_without_figures_is_refused(tmp_path: Path) -> None:
    result = run("--gpus", "1xH200", "--measured", tmp_path)
    assert result.exit_code == 2
    assert "expected the output of a training" in result.stderr
