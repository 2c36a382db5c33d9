"""Reinforcement learning, whole and tiny: what it leaves, how it stops, and that it goes on as if nothing had been."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from concertino import Trace, UsageError
from concertino_train.audit import AuditFailed, audit, read_episodes
from concertino_train.config import TrainConfig, load_config
from concertino_train.rewards import Reward
from concertino_train.rl import RlResult, run_rl
from concertino_train.running import Reporter, read_metrics

Settings = Callable[..., TrainConfig]


class Heard(Reporter):
    """Keeps what is said, and presses Ctrl-C behind a step."""

    def __init__(self, interrupt: int = 0) -> None:
        super().__init__()
        self.interrupt, self.said = interrupt, list[str]()

    def step(self, step: int, figures: Mapping[str, Any], show: bool = True) -> None:
        super().step(step, figures, show)
        if step == self.interrupt:
            signal.raise_signal(signal.SIGINT)

    def say(self, text: str, kind: str = "note") -> None:
        self.said.append(f"{kind}: {text}")


def weights(result: RlResult) -> dict[str, Any]:
    from safetensors.torch import load_file

    assert result.model is not None
    return dict(load_file(result.model / "model.safetensors"))


def shown(folder: Path) -> list[dict[str, Any]]:
    """Figures of steps, without those of the clock."""
    clock = ("seconds", "cpu_seconds", "tokens_per_second", "step_time", "critical_path")
    return [
        {name: value for name, value in line.items() if not name.startswith(clock)}
        for line in read_metrics(folder / "metrics.jsonl")
    ]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RlResult:
    """Four steps in one go."""
    from .conftest import SETTINGS

    folder = tmp_path_factory.mktemp("whole") / "out"
    return run_rl(load_config(SETTINGS, [f"trainer.output={folder}", "trainer.rl.eval_every=2"]))


def test_a_training_leaves_weights_figures_curves_traces_and_its_settings(whole: RlResult) -> None:
    assert (whole.step, whole.steps, whole.stopped) == (4, 4, "")
    names = {path.name for path in whole.folder.iterdir()}
    assert {"config.yaml", "metrics.jsonl", "plot.svg", "audit.json", "result.json"} <= names
    assert {"traces", "checkpoints", "model"} <= names
    assert json.loads((whole.folder / "result.json").read_text()) == whole.to_json()
    lines = shown(whole.folder)
    assert [line["step"] for line in lines] == [1, 2, 3, 4]
    assert ["eval/success" in line for line in lines] == [True, False, True, False]
    assert all(line["grad_norm"] > 0 for line in lines)
    assert "eval/success" in whole.figures
    assert [path.name for path in sorted((whole.folder / "checkpoints").iterdir())] == ["checkpoint-2", "checkpoint-4"]
    assert load_config(whole.folder / "config.yaml").id == load_config(whole.model / "training.yaml").id  # type: ignore[operator]


def test_rewards_are_computed_again_from_what_was_written(whole: RlResult) -> None:
    home = whole.folder / "traces" / "step-000004"
    (trace,) = home.glob("*.trace.jsonl")
    assert Trace.load(trace).finished
    config = load_config(whole.folder / "config.yaml")
    groups = read_episodes(home / "episodes.jsonl")
    again = {
        episode.id: scored.total
        for group in groups.values()
        for episode, scored in zip(group, Reward.from_json(config.reward).score(group), strict=True)
    }
    written = [json.loads(line) for line in (home / "rewards.jsonl").read_text().splitlines()]
    assert again == {row["id"]: row["total"] for row in written}
    # Advantages of a group add up to 0, and belong to turns that the policy wrote.
    for group in {row["group"] for row in written}:
        rows = [row for told in written if told["group"] == group for row in told["rows"]]
        assert rows
        assert sum(row["advantage"] for row in rows) == pytest.approx(0, abs=1e-4)
        assert all(row["turns"] for row in rows)
    assert audit(groups, Reward.from_json(config.reward)).figures["episodes"] == 4


def test_a_training_that_was_interrupted_goes_on_as_if_nothing_had_been(tiny: Settings, whole: RlResult) -> None:
    config, heard = tiny("trainer.rl.eval_every=2"), Heard(interrupt=2)
    stopped = run_rl(config, reporter=heard)
    assert (stopped.stopped, stopped.step, stopped.model) == ("SIGINT", 3, None)
    assert stopped.checkpoint is not None
    assert stopped.checkpoint.name == "checkpoint-3"
    assert any("writing a checkpoint; a second signal ends at once" in text for text in heard.said)
    assert any("--resume continues" in text for text in heard.said)
    with pytest.raises(UsageError, match="holds a training already"):
        run_rl(config)
    resumed = run_rl(config, resume=True)
    assert resumed.step == 4
    one, two = weights(whole), weights(resumed)
    assert one.keys() == two.keys()
    assert all((one[name] == two[name]).all() for name in one)
    assert shown(whole.folder) == shown(resumed.folder)


def test_a_first_batch_that_teaches_nothing_is_refused_before_anything_is_learnt(tiny: Settings) -> None:
    config = tiny("reward={preset: gap}")
    with pytest.raises(AuditFailed, match="all"):
        run_rl(config)
    home = Path(config.trainer.output)
    assert json.loads((home / "audit.json").read_text())["ok"] is False
    assert not (home / "model").exists()
    assert shown(home) == []
    with pytest.raises(AuditFailed, match="all"):
        run_rl(config, resume=True)  # nothing is there to go on from
    assert run_rl(tiny("trainer.rl.steps=1")).step == 1, "what was refused holds the folder for nobody"


@pytest.mark.slow
def test_a_first_batch_that_fails_the_audit_may_be_trained_on_where_the_settings_say_so(tiny: Settings) -> None:
    heard = Heard()
    result = run_rl(tiny("reward={preset: gap}", "trainer.rl.audit=tell", "trainer.rl.steps=1"), reporter=heard)
    assert result.step == 1
    assert json.loads((result.folder / "audit.json").read_text())["ok"] is False
    assert any(text.startswith("warning: audit, ") for text in heard.said)


@pytest.mark.slow
def test_a_monitor_may_end_a_training(tiny: Settings) -> None:
    off = "tool_entropy: null, zero_variance: null, length: null, longer: null"
    monitors = f"logging.monitors={{warmup: 0, patience: 1, format: 0.99, stop: true, {off}}}"
    result = run_rl(tiny(monitors, "trainer.rl.steps=50"))
    assert result.stopped == "the monitor format"
    assert result.step == 2
    assert result.warnings
    assert "format at step 1: 0% of rollouts have the exact form" in result.warnings[0]


ROLES = (
    "pool={make: {name: practice-workflow}}",
    "tasks={train: [{set: environments/plan-path, options: {split: train, count: 4, level: 5}}], eval: []}",
    "rollout.strategy={name: role-workflow, make: practice, turns: 1}",
    "rollout.tree={branch: greedy}",
    "algorithm.grouping=agent_turn",
    "model.new.context=2048",
    "reward={preset: at-grpo}",
    "trainer.rl.steps=1",
    "trainer.rl.questions_per_step=1",
)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
@pytest.mark.parametrize("policies", ["lora", "full"])
def test_roles_may_have_a_policy_each(tiny: Settings, policies: str) -> None:
    adapter = ["model.adapter={rank: 2, targets: all-linear}"] if policies == "lora" else []
    config = tiny(*ROLES, f"roles.policies={policies}", *adapter)
    result = run_rl(config, force=True)
    assert result.model is not None
    file = "adapter_model.safetensors" if policies == "lora" else "model.safetensors"
    assert sorted(path.parent.name for path in result.model.glob(f"*/{file}")) == ["planner", "programmer"]
    (line,) = shown(result.folder)
    assert line["groups"] == 2
    again = tiny(*ROLES, f"roles.policies={policies}", *adapter, f"model.path={result.model}", "trainer.seed=1")
    moved = run_rl(again, output=result.folder.with_name("again"), force=True)
    assert moved.step == 1


def test_whole_rollouts_of_several_roles_are_compared_though_their_later_prompts_differ(tiny: Settings) -> None:
    """The second role reads what the first one wrote, so only the first prompts are alike."""
    whole = ("rollout.tree=null", "algorithm.grouping=trajectory", "rollout.total_tokens=60")
    result = run_rl(tiny(*ROLES, *whole), force=True)
    report = json.loads((result.folder / "audit.json").read_text(encoding="utf-8"))
    assert "mixed-group" not in [finding["code"] for finding in report["findings"]]
    (line,) = shown(result.folder)
    assert line["groups"] == 1
    assert line["rows"] > 2  # two rollouts, and more lines than one in them


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
def test_an_adapter_is_exported_alone_or_within_its_weights(tiny: Settings, tmp_path: Path) -> None:
    import torch
    from concertino_train.export import export
    from concertino_train.factories.models import load_model

    result = run_rl(tiny("model.adapter={rank: 2}", "trainer.rl.steps=1"))
    assert result.model is not None
    alone, merged = export(result.folder, tmp_path / "alone", merge=False), export(result.folder, tmp_path / "merged")
    assert (alone.kind, merged.kind) == ("adapter", "model")
    assert f'adapter = "{tmp_path / "alone"}"' in (tmp_path / "alone" / "pool.toml").read_text()
    ids = torch.tensor([[5, 6, 7]])
    with torch.no_grad():
        logits = [
            load_model(tiny(f"model.path={folder}")).model.eval()(input_ids=ids).logits
            for folder in (result.model, tmp_path / "alone", tmp_path / "merged")
        ]
    assert torch.equal(logits[0], logits[1])
    assert torch.allclose(logits[0], logits[2], atol=1e-5)
    export(result.folder, tmp_path / "alone", merge=True, force=True)
    assert not list((tmp_path / "alone").glob("adapter_*")), "what was exported there before is put on nothing"
    with torch.no_grad():
        again = load_model(tiny(f"model.path={tmp_path / 'alone'}")).model.eval()(input_ids=ids).logits
    assert torch.equal(again, logits[2])
    with pytest.raises(UsageError, match="is the model itself"):
        export(result.folder, result.model, force=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
def test_an_adapter_is_trained_further_as_it_was_made_and_without_its_dropout(tiny: Settings, tmp_path: Path) -> None:
    given = "model.adapter={rank: 2, dropout: 0.3}"
    first = run_rl(tiny(given, "trainer.rl.steps=1"))
    assert first.model is not None
    settings = json.loads((first.model / "adapter_config.json").read_text())
    (first.model / "adapter_config.json").write_text(json.dumps({**settings, "lora_dropout": 0.3}))
    home = tmp_path / "again"
    further = (f"model.path={first.model}", "trainer.rl.steps=1")
    assert run_rl(tiny(given, *further), output=home).step == 1
    assert json.loads((home / "model" / "adapter_config.json").read_text())["lora_dropout"] == 0.0
    told = rf"{first.model} is an adapter with rank 2, and model.adapter.rank is 4; .* give model.adapter.rank=2, or"
    with pytest.raises(UsageError, match=told):
        run_rl(tiny("model.adapter={rank: 4}", *further), output=tmp_path / "other")


@pytest.mark.slow
def test_a_training_goes_on_with_the_weights_and_the_tokenizer_that_it_began_with(tiny: Settings) -> None:
    import shutil

    def begun(name: str, *more: str) -> Path:
        found = run_rl(tiny("trainer.rl.steps=1", *more), output=start.with_name(name)).model
        assert found is not None
        return found

    start = Path(tiny().trainer.output).with_name("start")
    begun("start")
    config = tiny(f"model.path={start / 'model'}", "trainer.rl.save_every=1", "trainer.rl.steps=2")
    run_rl(config, reporter=Heard(interrupt=1))
    checkpoint = Path(config.trainer.output) / "checkpoints" / "checkpoint-1"
    assert checkpoint.is_dir()
    shutil.rmtree(start / "model")
    shutil.copytree(begun("other", "trainer.seed=5"), start / "model")
    with pytest.raises(UsageError, match=r"is of another training: (tokenizer was .*; )?first weights was"):
        run_rl(config, resume=True)
    assert run_rl(config, resume=True, force=True).step == 2


@pytest.mark.slow
def test_how_often_is_saved_may_change_when_a_training_goes_on(tiny: Settings) -> None:
    keep = "trainer.keep=9"
    config = tiny("trainer.rl.save_every=20", keep)
    run_rl(config, reporter=Heard(interrupt=1))
    run_rl(tiny("trainer.rl.save_every=1", keep, f"trainer.output={config.trainer.output}"), resume=True)
    names = {path.name for path in (Path(config.trainer.output) / "checkpoints").iterdir()}
    assert names == {"checkpoint-2", "checkpoint-3", "checkpoint-4"}


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("rollout.group_size=1", "a group of one has nothing to compare with"),
        ("rollout.temperature=0.0", "all rollouts of a question would be the same"),
        ("logging.trackers=[nothing]", "unknown tracker 'nothing'"),
        ("tasks.train=[]", "tasks.train: no tasks are given"),
        ("pool.make.name=practise", "expected one of practice"),
    ],
)
def test_what_can_be_known_to_be_wrong_is_said_before_a_folder_is_made(
    tiny: Settings, override: str, told: str
) -> None:
    config = tiny(override)
    with pytest.raises(UsageError, match=told):
        run_rl(config)
    assert not Path(config.trainer.output).exists()
