"""`concertino train`: from a settings file to a model that answers, command by command."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from concertino import Orchestrator, Pool, Sampling, Shortlist
from concertino.core.events import Replied
from concertino.strategies import strategy_by_name
from concertino_bench.reports import read_results
from concertino_train.cli import COMMANDS, train
from concertino_train.config import load_config, recipe_names
from concertino_train.running import read_metrics

os.environ.setdefault("HF_HUB_OFFLINE", "1")

SETTINGS: dict[str, Any] = {
    "name": "tiny",
    "about": "for tests",
    "model": {"new": {"layers": 1, "hidden": 16, "heads": 2, "context": 768, "vocabulary": 640}},
    "pool": {"make": {"name": "practice", "manners": ["sure"], "twin": False}},
    "tasks": {
        "train": [{"set": "practice/facts", "options": {"split": "train", "count": 8, "level": 1}}],
        "eval": [{"set": "practice/facts", "options": {"count": 3, "level": 1}}],
    },
    "data": {"collect": {"teacher": {"name": "practice"}, "samples": 2}, "select": {"tool_share": None}},
    "rollout": {
        "strategy": {"name": "parallel-rounds", "prompt": "brief", "references": True, "max_rounds": 3},
        "group_size": 2,
        "turn_tokens": 6,
        "total_tokens": 12,
    },
    "reward": {"terms": {"short": {"term": "shared/spending", "of": "sequence_tokens", "limit": 500}}},
    "trainer": {
        "device": "cpu",
        "threads": 1,
        "sft": {"steps": 3, "batch": 4, "micro_batch": 4, "learning_rate": 1e-3},
        "rl": {"steps": 1, "questions_per_step": 2, "learning_rate": 1e-3, "save_every": 1},
    },
    "logging": {"plot_every": 0},
}


def run(*arguments: object) -> Result:
    return CliRunner().invoke(train, list(map(str, arguments)))


def done(*arguments: object) -> Any:
    """What a command prints as JSON."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("settings") / "tiny.yaml"
    file.write_text(yaml.safe_dump(SETTINGS), encoding="utf-8")
    return file


ASKED: list[str] = []
"""Addresses beyond this machine that were asked while the fixture below was made."""


@contextmanager
def no_network() -> Iterator[None]:
    """Sockets reach this machine alone; whatever else is tried is noted and fails."""
    connect, look_up = socket.socket.connect, socket.getaddrinfo

    def is_here(host: object) -> bool:
        return host in (None, "", "localhost", "127.0.0.1", "::1", b"localhost", b"127.0.0.1")

    def guarded_connect(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not is_here(address[0]):
            ASKED.append(str(address))
            raise OSError("no network")
        connect(self, address)

    def guarded_look_up(host: Any, *more: Any, **options: Any) -> Any:
        if not is_here(host):
            ASKED.append(str(host))
            raise OSError("no network")
        return look_up(host, *more, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded_connect)
        patch.setattr(socket, "getaddrinfo", guarded_look_up)
        yield


@pytest.fixture(scope="module")
def out(settings: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Collected, taught and reinforced, without a network."""
    with no_network():
        return trained(settings, tmp_path_factory.mktemp("out"))


def trained(settings: Path, folder: Path) -> Path:
    common = ("--config", settings, "--output", folder)
    collected = done("collect", *common)
    assert (collected["runs"], collected["missing"], collected["examples"]) == (16, 0, 8)
    assert collected["right"] >= 8
    taught = done("sft", *common)
    assert (taught["rows"], taught["step"], taught["stopped"]) == (8, 3, "")
    assert "eval/success" in taught["figures"]
    reinforced = done("rl", *common, "--force")  # what three steps teach gives all rollouts one reward
    assert (reinforced["step"], reinforced["model"]) == (1, str(folder / "rl" / "model"))
    return folder


# -- the whole way -----------------------------------------------------------------------------------------------------


def test_the_whole_way_asks_nobody_beyond_this_machine(out: Path) -> None:
    assert ASKED == []
    with no_network(), pytest.raises(OSError, match="no network"):
        socket.create_connection(("192.0.2.1", 80), timeout=1)
    assert ASKED.pop().startswith("192.0.2.1")


def test_weights_that_are_named_are_begun_with_whatever_was_taught(settings: Path, out: Path, tmp_path: Path) -> None:
    from concertino_train.cli.options import TrainingOptions
    from concertino_train.cli.settings import settings as read
    from concertino_train.cli.settings import taught

    def given(*named: str) -> TrainingOptions:
        return TrainingOptions(str(settings), named, out, dry_run=False, live=None, as_json=False)

    named = (f"model.path={tmp_path}",)
    config, note = taught(read(given(*named)), named)
    assert (config.model.path, note) == (str(tmp_path), f"starts from {tmp_path}")
    named = (f"model={{path: {tmp_path}}}",)
    assert taught(read(given(*named)), named)[1] == f"starts from {tmp_path}"
    config, note = taught(read(given()), ())
    assert config.model.path == str(out / "sft" / "model")
    assert note.startswith("starts from")


def test_what_was_taught_from_another_model_is_not_begun_with(settings: Path, out: Path) -> None:
    refused = run("rl", "--config", settings, "--output", out, "--dry-run", "model.new.hidden=64")
    assert refused.exit_code == 2
    assert "was taught from another model (model.new.hidden: " in refused.stderr
    assert f"nevertheless (model.path={out / 'sft' / 'model'})" in refused.stderr
    refused = run("rl", "--config", "toolorchestra", "--output", out, "--dry-run")
    assert refused.exit_code == 2
    assert "was taught from another model (model.path: None, now '" in refused.stderr
    told = run("rl", "--config", settings, "--output", out, "--dry-run")
    assert f"starts from {out / 'sft' / 'model'}" in told.stdout


@pytest.mark.slow
@pytest.mark.parametrize("command", ["sft", "rl"])
def test_a_folder_that_is_in_use_is_begun_anew_where_that_is_asked_for(
    settings: Path, out: Path, tmp_path: Path, command: str
) -> None:
    again = tmp_path / "out"
    shutil.copytree(out, again)
    common = (command, "--config", settings, "--output", again)
    refused = run(*common, "--force")
    assert refused.exit_code == 2
    assert "start over (--restart)" in refused.stderr
    (again / command / "traces" / "old").mkdir(parents=True)
    found = done(*common, "--restart", "--force")
    assert found["stopped"] == ""
    assert not (again / command / "traces" / "old").exists()


def test_a_speed_without_a_dry_run_is_refused_before_anything_is_trained(settings: Path, tmp_path: Path) -> None:
    for words, text in (
        (["--tflops", "990"], "--tflops 990 is for --dry-run"),
        (["--tflops", "inf", "--dry-run"], "inf"),
    ):
        refused = run("rl", "--config", settings, "--output", tmp_path / "o", *words)
        assert refused.exit_code == 2
        assert text in refused.stderr
    assert not (tmp_path / "o").exists()


def test_a_file_of_somebody_else_above_a_model_is_not_its_settings(out: Path, tmp_path: Path) -> None:
    from concertino_train.export import settings_of

    copied = tmp_path / "out" / "model"
    shutil.copytree(out / "rl" / "model", copied)
    (tmp_path / "config.yaml").write_text("db: sqlite", encoding="utf-8")
    found = settings_of(copied, tmp_path)
    assert found is not None
    assert found.name == "tiny"
    (copied / "training.yaml").unlink()
    assert settings_of(copied, tmp_path) is None


def test_what_a_command_said_in_the_end_stays_with_the_figures_of_the_weights_that_came_of_it(out: Path) -> None:
    for command in ("sft", "rl"):
        result = json.loads((out / command / "result.json").read_text(encoding="utf-8"))
        assert result["model"] == str(out / command / "model")
        assert result["step"] == result["steps"]
        assert 0 <= result["figures"]["eval/success"] <= 1
        if command == "sft":
            *_, last = read_metrics(out / "sft" / "metrics.jsonl")
            assert last["eval/success"] == result["figures"]["eval/success"]


@pytest.mark.slow
def test_evaluations_of_a_teaching_are_told_and_written_when_they_are_made(
    settings: Path, out: Path, tmp_path: Path
) -> None:
    from concertino_train.running import Reporter
    from concertino_train.sft import run_sft

    said: list[tuple[str, int]] = []

    class Heard(Reporter):
        def say(self, text: str, kind: str = "note") -> None:
            said.append((text.partition(":")[0], len(list(read_metrics(tmp_path / "sft" / "metrics.jsonl")))))

    every = ["trainer.sft.eval_every=2", "logging.every=2", f"trainer.output={tmp_path}"]
    run_sft(load_config(settings, every), sets=[out / "set"], reporter=Heard())
    assert said == [("after step 2", 0), ("after step 3", 1)]
    lines = list(read_metrics(tmp_path / "sft" / "metrics.jsonl"))
    assert [(line["step"], "loss" in line, "eval/success" in line) for line in lines] == [
        (2, True, True),
        (3, False, True),
    ]


def test_reinforcement_begins_with_what_was_taught(settings: Path, out: Path) -> None:
    assert load_config(out / "rl" / "config.yaml").model.path == str(out / "sft" / "model")
    assert load_config(out / "sft" / "config.yaml").model.path == ""
    again = run("collect", "--config", settings, "--output", out)
    assert "of 16 runs are right; 8 examples in" in again.stdout


@pytest.mark.slow
def test_a_first_batch_of_one_reward_is_refused(settings: Path, out: Path, tmp_path: Path) -> None:
    model = f"model.path={out / 'sft' / 'model'}"
    refused = run("rl", "--config", settings, "--output", tmp_path, "reward={preset: gap}", model)
    assert refused.exit_code == 2
    assert "Change that, or force it if you know better" in refused.stderr


@pytest.mark.slow
def test_a_folder_is_not_trained_in_twice_unasked(settings: Path, out: Path) -> None:
    refused = run("rl", "--config", settings, "--output", out, "--json")
    assert refused.exit_code == 2
    assert "continue it (--resume)" in json.loads(refused.stderr.splitlines()[-1])["error"]["message"]
    assert done("rl", "--config", settings, "--output", out, "--resume")["step"] == 1


def test_a_checkpoint_is_measured_and_compared_with_what_it_was_before(settings: Path, out: Path) -> None:
    found = done("eval", "--config", settings, "--output", out, "--traces", 2)
    assert (found["system"], found["tasks"], found["rollouts"]) == ("rl", 3, 3)
    assert found["metrics"]["accuracy"]["value"] == 0.0
    assert found["pool"] == found["trained_pool"]
    assert found["reward"] < 0
    items = read_results(found["results"]).items
    assert [bool(item.trace) for item in items] == [True, True, False]
    assert all((out / "eval" / item.trace).is_file() for item in items[:2])
    before = done("eval", "--config", settings, "--output", out, "--checkpoint", out / "sft")
    assert before["system"] == "sft"
    assert before["results"] != found["results"]


def test_another_pool_is_a_word_on_the_command_line_and_both_are_recorded(
    settings: Path, out: Path, tmp_path: Path
) -> None:
    pool = tmp_path / "other.toml"
    pool.write_text('members = ["toy/calculate"]\n', encoding="utf-8")
    found = done("eval", "--config", settings, "--output", out, "--pool", pool)
    assert found["pool"] == Pool.load(pool).id != found["trained_pool"]
    assert read_results(found["results"]).header["trained_pool"] == found["trained_pool"]


def test_a_policy_is_measured_where_its_own_pool_or_a_preference_of_its_reward_is_missing(
    settings: Path, out: Path, tmp_path: Path
) -> None:
    moved, pool = tmp_path / "moved", tmp_path / "other.toml"
    shutil.copytree(out / "rl" / "model", moved)
    pool.write_text('members = ["toy/calculate"]\n', encoding="utf-8")
    told = yaml.safe_load((moved / "training.yaml").read_text(encoding="utf-8"))
    told["pool"] = {"file": str(tmp_path / "gone.toml")}
    (moved / "training.yaml").write_text(yaml.safe_dump(told), encoding="utf-8")
    common = ("eval", "--config", settings, "--output", tmp_path, "--checkpoint", moved, "--pool", pool)
    reward = "reward={terms: {wish: {term: toolorchestra/preference}}}"
    found = done(*common, reward)
    assert (found["trained_pool"], found["reward"]) == ("", None)
    assert len(read_results(found["results"]).items) == 3
    refused = run(*common, "--system", "org/name")
    assert refused.exit_code == 2
    assert "system='org/name': expected a name that can be that of a file" in refused.stderr


def test_an_export_is_declared_in_a_pool_and_answers_at_once(out: Path, tmp_path: Path) -> None:
    found = done("export", out / "rl", tmp_path / "frugal")
    folder = Path(found["folder"])
    assert (found["name"], found["kind"]) == ("frugal", "model")
    wanted = {
        "model.safetensors",
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        "chat_template.jinja",
        "concertino.toml",
        "pool.toml",
        "strategy.json",
        "training.yaml",
        "README.md",
    }
    assert wanted <= set(found["files"])
    told = json.loads((folder / "strategy.json").read_text())
    strategy = strategy_by_name(told["name"]).from_json(told)
    from concertino_toy.practice import practice_pool

    pool = Pool.load(folder / "pool.toml").adding(*practice_pool(manners=["sure"]).members)
    leader = Orchestrator(strategy=strategy, sampling=Sampling(max_tokens=8, temperature=0))
    answered = leader.run_sync("What is the toll of Belmar?", pool=pool)
    said = [event.reply for event in answered.events if isinstance(event, Replied)]
    assert said
    assert said[0].usage.output_tokens > 0
    assert answered.stop != "model", answered.detail
    refused = run("export", out / "rl", folder)
    assert refused.exit_code == 2
    assert "holds something already" in refused.stderr


def test_an_export_says_how_the_pool_was_listed_in_training(out: Path, tmp_path: Path) -> None:
    trained = tmp_path / "rl"
    shutil.copytree(out / "rl", trained, ignore=shutil.ignore_patterns("traces"))
    for file in trained.rglob("training.yaml"):
        settings = yaml.safe_load(file.read_text())
        settings["pool"]["shortlist"] = {"ranking": "scorer/best", "most": 3, "handles": True}
        file.write_text(yaml.safe_dump(settings))
    folder = Path(done("export", trained, tmp_path / "frugal")["folder"])
    shortlist = Shortlist.parse(json.loads((folder / "shortlist.json").read_text()))
    assert shortlist == Shortlist("scorer/best", most=3, handles=True)
    card = (folder / "README.md").read_text()
    assert "--shortlist scorer/best,most=3,best=first,parts=false,handles=true" in card
    assert "pip install concertino concertino-local concertino-scorer" in card


def test_settings_of_a_folder_are_declared_for_a_whole_machine(out: Path, tmp_path: Path) -> None:
    from concertino.core.settings import load_settings

    run("export", out / "rl", tmp_path / "frugal", "--name", "thrifty")
    loaded = load_settings({"CONCERTINO_CONFIG": str(tmp_path / "frugal" / "concertino.toml")})
    assert loaded.models == {"local/thrifty": {"path": str(tmp_path / "frugal")}}


# -- what would be done ------------------------------------------------------------------------------------------------


def test_a_dry_run_tells_settings_memory_cost_and_launch_and_does_nothing(settings: Path, tmp_path: Path) -> None:
    found = done("rl", "--config", settings, "--output", tmp_path / "o", "trainer.processes=4", "--dry-run")
    memory, spending = found["estimate"]["memory"], found["estimate"]["spending"]
    assert found["config"]["trainer"]["processes"] == 4
    assert found["estimate"]["rollouts"] == 4
    assert memory["trained"] == memory["parameters"] > 10_000
    assert memory["total"] > memory["weights"] == 4 * memory["parameters"]
    # Four rollouts of three rounds of four calls, each at most 0.02 $.
    assert spending["calls"] == 48
    assert spending["usd"] == pytest.approx(0.96)
    assert found["estimate"]["seconds"] > 0
    assert "--nproc-per-node 4" in found["launch"]
    assert not (tmp_path / "o").exists()
    faster = done(
        "rl", "--config", settings, "--dry-run", "--tflops", "1000", "trainer.processes=4", "trainer.rl.steps=3"
    )
    assert (faster["estimate"]["rate"], faster["estimate"]["steps"]) == (1e15, 3)
    assert 0 < faster["estimate"]["seconds"] < found["estimate"]["seconds"]
    assert found["note"] == "starts with new weights"
    told = run("rl", "--config", settings, "--output", tmp_path / "o", "--dry-run", "--tflops", "2250").stdout
    assert "at 35% of 2,250 TFLOP/s, as given, on each of 1" in told
    text = run("sft", "--config", settings, "--dry-run").stdout
    assert "memory" in text
    assert "launch       accelerate launch" in text
    assert done("collect", "--config", settings, "--dry-run")["runs"] == 16


def test_a_dry_run_says_that_a_model_does_not_fit_and_what_to_try(settings: Path) -> None:
    large = "model.new={layers: 64, hidden: 8192, heads: 64, vocabulary: 8000}"
    told = run("rl", "--config", settings, "--dry-run", "model.start=given", large).stdout
    assert "DOES NOT FIT on this machine" in told
    assert "model.adapter={rank: 16}" in told
    assert "DOES NOT FIT" not in run("rl", "--config", settings, "--dry-run", "model.start=given").stdout


def test_a_dry_run_counts_trained_weights_in_32_bits_and_divides_them_among_processes(settings: Path) -> None:
    def memory(*more: str) -> dict[str, int]:
        words = ("rl", "--config", settings, "--dry-run", "model.start=given", *more)
        return dict(done(*words)["estimate"]["memory"])

    alone = memory("model.dtype=bfloat16")
    assert alone["weights"] == 4 * alone["parameters"]
    shared = memory("model.dtype=bfloat16", "trainer.processes=2", "trainer.sharding=full")
    for name in ("weights", "gradients", "optimizer"):
        assert shared[name] == alone[name] // 2


def test_the_size_of_a_new_model_is_told_before_it_is_made(settings: Path, out: Path) -> None:
    import math

    from safetensors import safe_open

    with safe_open(out / "sft" / "model" / "model.safetensors", "np") as file:
        shapes = {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118
    words = f"model.new.vocabulary={shapes['model.embed_tokens.weight'][0]}"
    told = done("rl", "--config", settings, "--dry-run", "model.start=given", words)["estimate"]["memory"]
    assert told["parameters"] == sum(math.prod(shape) for shape in shapes.values())


# -- recipes and templates ---------------------------------------------------------------------------------------------


def test_recipes_are_listed_and_printed() -> None:
    assert [row["name"] for row in done("recipes")] == recipe_names()
    text = run("recipes", "gap").stdout
    assert yaml.safe_load(text)["name"] == "gap"
    assert done("recipes", "gap/paper")["config"]["reward"] == {"preset": "gap"}
    assert "did you mean 'gap/" in run("recipes", "gapp").stderr


def test_a_template_is_shown_with_marks_around_what_is_trained(out: Path) -> None:
    found = done("inspect-template", out / "sft" / "model")
    assert found["text"].count("[[") == 2
    assert "[[Second turn.<|im_end|>]]" in found["text"]
    assert found["trained"] < found["tokens"]


# -- the command line itself -------------------------------------------------------------------------------------------

LIGHT = """
import sys
from concertino_train.cli import train
train.get_help(__import__("click").Context(train))
heavy = {"torch", "transformers", "trl", "numpy", "pydantic", "concertino_bench"} & set(sys.modules)
assert not heavy, heavy
for command in sys.argv[1:]:
    train.get_command(None, command)
assert not {"torch", "transformers", "trl"} & set(sys.modules)
"""


def test_help_imports_nothing_heavy_and_no_command_imports_torch() -> None:
    found = subprocess.run([sys.executable, "-c", LIGHT, *COMMANDS], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


def test_the_commands_are_those_of_concertino_train() -> None:
    from concertino.plugins import PluginManager

    assert [command.name for command in PluginManager().commands() if command.name == "train"] == ["train"]
    assert set(COMMANDS) >= {"collect", "sft", "audit", "rl", "eval", "export", "recipes", "inspect-template"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("rl",), "missing option '--config'"),
        (("rl", "--config", "gapp"), "did you mean 'gap/"),
        (("rl", "--config", "gap", "trainer.rl.stps=1"), "unknown key 'trainer.rl.stps'; did you mean 'steps'?"),
        (("rl", "--config", "gap", "nonsense"), "expected KEY=VALUE"),
        (("eval", "--config", "gap", "--output", "/nonexistent"), "holds no trained model yet"),
        (("inspect-template", "no-such-folder"), "no-such-folder"),
        (("exprt",), "did you mean 'export'"),
    ],
)
def test_wrong_usage_is_told_and_ends_with_2(arguments: tuple[str, ...], told: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert told in result.stderr


@pytest.mark.slow
def test_progress_is_json_lines_on_stderr_beside_json(settings: Path, out: Path, tmp_path: Path) -> None:
    result = run("sft", "--config", settings, "--output", tmp_path, "--set", out / "set", "tasks.eval=[]", "--json")
    assert result.exit_code == 0, result.stderr
    events = [json.loads(line) for line in result.stderr.splitlines()]
    assert [event["step"] for event in events if event["event"] == "step"] == [1, 2, 3]
    assert json.loads(result.stdout)["step"] == 3
