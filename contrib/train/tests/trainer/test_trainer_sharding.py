"""Two processes with gloo, weights spread over both: the gradients of one process, and checkpoints in parts."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from concertino import UsageError
from concertino_train.device import optimizer_argument
from concertino_train.running.shards import merged_shards
from concertino_train.trainer import OrchestratorGRPOTrainer
from concertino_train.trainer.sharded_training import ShardedTraining

SCRIPT = Path(__file__).with_name("sharded_ranks.py")
pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # peft asks transformers so
KINDS = ("whole", "adapter", "roles")
FEW = (14,)
"""Points at which a training is killed: within its second checkpoint."""
SOAK = (*range(1, 28), *range(101, 104))


def script() -> Any:
    spec = importlib.util.spec_from_file_location("sharded_ranks", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(folder: Path, *points: int, **more: str) -> None:
    environment = {**os.environ, **more, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    words = [sys.executable, str(SCRIPT), str(folder), *map(str, points)]
    done = subprocess.run(
        words, env=environment, capture_output=True, text=True, timeout=400 + 100 * len(points), check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes leave."""
    made = tmp_path_factory.mktemp("sharded")
    run(made, *FEW)
    return made


@pytest.fixture(scope="module")
def reports(folder: Path) -> list[dict[str, Any]]:
    return [json.loads((folder / f"report-{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_sharded_ranks_have_the_gradients_of_one_process(
    kind: str, folder: Path, reports: list[dict[str, Any]], tmp_path: Path, light: None
) -> None:
    _has_the_gradients_of_one(kind, folder, reports, tmp_path)


@pytest.mark.soak
def test_sharded_ranks_that_pack_their_rows_have_the_gradients_of_rows_apart(tmp_path: Path, light: None) -> None:
    run(tmp_path / "there", CONCERTINO_PACKED="1")
    reports = [json.loads((tmp_path / "there" / f"report-{rank}.json").read_text()) for rank in range(2)]
    _has_the_gradients_of_one("packed", tmp_path / "there", reports, tmp_path)


def _has_the_gradients_of_one(kind: str, folder: Path, reports: list[dict[str, Any]], tmp_path: Path) -> None:
    script().tiny.make_model().save_pretrained(tmp_path / "base")
    trainer, recorder = script().train(kind, tmp_path, sharding="none")
    there = torch.load(folder / kind / "trained.pt")
    apart = [float((one - two).abs().max()) for one, two in zip(recorder.gradients, there["gradients"], strict=True)]
    assert len(apart) == 4
    assert max(apart) <= 1e-5
    assert min(float(each.abs().max()) for each in recorder.gradients) > 1e-3
    for report in reports:
        assert report[kind]["losses"] == pytest.approx([log["loss"] for log in recorder.logs[:-1]], abs=1e-5)
    own = trainer.model.state_dict()
    assert max(float((value - own[name]).abs().max()) for name, value in there["weights"].items()) <= 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["whole", "roles"])
def test_a_sharded_training_that_resumes_ends_with_the_same_weights_bit_by_bit(
    kind: str, reports: list[dict[str, Any]]
) -> None:
    assert [report[kind]["equal"] for report in reports] == [True, True]


@pytest.mark.slow
def test_each_process_holds_its_part_and_samples_alone_with_all_weights(
    folder: Path, reports: list[dict[str, Any]]
) -> None:
    from concertino_train.policies import TransformersPolicy
    from transformers import AutoModelForCausalLM

    module = script()
    model: Any = AutoModelForCausalLM.from_pretrained(folder / "whole" / "saved")
    texts = [list(each.ids) for each in TransformersPolicy(model, module.tiny.CODEC).generate(module.PROMPTS)]
    for report in reports:
        assert report["whole"]["held"] <= 0.51 * report["whole"]["all"]
    # Different numbers of passes: a process that waited for the other would wait for ever.
    assert [report["whole"]["texts"] for report in reports] == [texts, texts[:1]]


@pytest.mark.slow
def test_what_is_saved_has_the_gathered_weights_and_loads_in_transformers_and_peft(folder: Path) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    for kind, home in (("whole", "saved"), ("adapter", "saved"), ("roles", "saved/critic")):
        base = folder / kind / ("saved" if kind == "whole" else "base")
        model: Any = AutoModelForCausalLM.from_pretrained(base)
        if kind != "whole":
            name = "critic" if kind == "roles" else "default"
            model = PeftModel.from_pretrained(model, folder / kind / home, adapter_name=name)
        found, there = model.state_dict(), torch.load(folder / kind / "trained.pt")["weights"]
        shared = [name for name in there if name in found]
        assert len(shared) == len(there) // (2 if kind == "roles" else 1)
        assert all(torch.equal(found[name], there[name]) for name in shared)


@pytest.mark.slow
def test_a_training_that_is_killed_goes_on_from_its_newest_complete_checkpoint(folder: Path) -> None:
    _goes_on(folder)


@pytest.mark.soak
def test_a_training_that_is_killed_at_any_of_thirty_points_goes_on(tmp_path: Path) -> None:
    run(tmp_path, *SOAK)
    _goes_on(tmp_path, least=25)


def _goes_on(folder: Path, least: int = len(FEW)) -> None:
    found = json.loads((folder / "kills.json").read_text())
    assert sum(each["died"] for each in found) >= least
    assert [each for each in found if not (each["ended"] and each["equal"])] == []
    # The first one was not killed.
    assert any(each["died"] and each["from"] for each in found)
    assert len({each["from"] for each in found}) > 1


@pytest.mark.slow
def test_a_checkpoint_goes_to_a_training_that_is_sharded_alike(folder: Path, tmp_path: Path, light: None) -> None:
    with pytest.raises(UsageError, match=r"of 2 ranks, there are 1"):
        script().train("whole", folder / "whole", sharding="none", resume="checkpoint-2")
    trainer, _ = script().train("whole", tmp_path, sharding="none")
    with pytest.raises(UsageError, match=r"is sharded; resume with trainer\.sharding=full"):
        trainer._load_from_checkpoint(str(folder / "whole" / "run" / "checkpoint-2"))
    trainer.sharding = True
    with pytest.raises(UsageError, match=r"no folder 'shards'.*trainer\.sharding=none"):
        trainer._load_optimizer_and_scheduler(str(tmp_path / "run" / "checkpoint-2"))


@pytest.mark.slow
def test_a_checkpoint_in_parts_is_put_together_by_one_process(folder: Path) -> None:
    for kind in KINDS:
        found = merged_shards(folder / kind / "run" / "checkpoint-4")
        there = torch.load(folder / kind / "trained.pt")["weights"]
        assert found.keys() == there.keys()
        assert all(torch.equal(found[name], there[name]) for name in there)


def test_an_optimiser_of_8_bits_says_what_it_needs() -> None:
    assert optimizer_argument("adamw", sharded=True) == {}
    with pytest.raises(UsageError, match=r"cannot be spread over processes; take trainer\.optimizer=adamw"):
        optimizer_argument("adamw_8bit", sharded=True)
    if importlib.util.find_spec("bitsandbytes") is not None:
        assert optimizer_argument("adamw_8bit", sharded=False) == {"optim": "adamw_bnb_8bit"}
        return
    with pytest.raises(UsageError, match=r"needs bitsandbytes.*pip install bitsandbytes"):
        optimizer_argument("adamw_8bit", sharded=False)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ("is_deepspeed_enabled", r"without DeepSpeed.*as many passes as its rows need.*trainer\.sharding=full"),
        ("is_fsdp_enabled", r"shards by itself; give trainer\.sharding=full"),
    ],
)
def test_sharding_by_others_is_refused_with_what_to_do(other: str, said: str) -> None:
    class Trainer(OrchestratorGRPOTrainer):
        def __init__(self) -> None:
            self.is_deepspeed_enabled, self.is_fsdp_enabled = False, False
            setattr(self, other, True)

    with pytest.raises(UsageError, match=said):
        Trainer()._refuse_others_sharding()


@pytest.mark.parametrize(
    ("other", "said"), [("is_fsdp_enabled", "both would spread the weights"), ("fp16", "precision=bfloat16")]
)
def test_sharding_is_refused_where_it_does_not_go(other: str, said: str) -> None:
    class Trainer(ShardedTraining):
        def __init__(self) -> None:
            self.is_deepspeed_enabled, self.is_fsdp_enabled = False, other == "is_fsdp_enabled"
            self.args = SimpleNamespace(fp16=other == "fp16")

    with pytest.raises(UsageError, match=said):
        Trainer()._shard(torch.nn.Linear(2, 2))
