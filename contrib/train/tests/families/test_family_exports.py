"""Ten families of models: taught, sampled, exported and loaded by others with the same numbers; the rest is refused."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from concertino import Message, UsageError

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
torch = pytest.importorskip("torch")
pytest.importorskip("trl", reason="trl, which trains, is absent")

from concertino_train.config import load_config  # noqa: E402
from concertino_train.data import RoleConversation  # noqa: E402
from concertino_train.export import export  # noqa: E402
from concertino_train.factories.models import load_model  # noqa: E402
from concertino_train.policies import Prompt, TransformersPolicy  # noqa: E402
from concertino_train.policies.transformers import score  # noqa: E402
from model_families import FAMILIES, FEW, Family, family  # noqa: E402

pytestmark = [
    # PEFT asks transformers by a name that is going away.
    pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning"),
    # PEFT has a rank for the experts of a mixture; `all-linear` leaves them as they are.
    pytest.mark.filterwarnings("ignore:The following rank_pattern keys did not match:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:The following alpha_pattern keys did not match:RuntimeWarning"),
]

EACH = [
    pytest.param(each, id=each.name, marks=pytest.mark.slow if each in FEW else pytest.mark.soak) for each in FAMILIES
]
EXACT = 1e-5
"""Log-probabilities of the same float32 weights are nearer than this."""
MERGED = 1e-3
"""Those of an adapter beside its weights and of both in one: sums of other order."""
ROUNDED = 0.1
"""Those of weights in float32 and in bfloat16, in the mean; a single one may lie elsewhere where a mixture of experts
chooses another expert."""
PROMPT, SAID = tuple(range(5, 60)), tuple(range(60, 90))


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def teach(each: Family, out: Path, adapter: Any = None) -> tuple[Any, Any]:
    """Two steps on a conversation; the model and the codec are in `out/model`."""
    from concertino_train.sft import SftSettings, fine_tune

    codec = each.codec()
    model = each.model(codec.tokenizer)
    if adapter is not None:
        model.save_pretrained(str(out / "base"))
        model.name_or_path = str(out / "base")
    messages = (Message("user", "How far?"), Message("assistant", "Ten."))
    talks = [RoleConversation(f"c{number}", messages, (1,), (1,)) for number in range(4)]
    plan: dict[str, Any] = {"steps": 2, "batch": 2, "micro_batch": 2, "learning_rate": 1e-2, "device": "cpu"}
    fine_tune(SftSettings(out=out, log_every=1, **plan), model, codec, talks, adapter=adapter)
    return model, codec


def numbers(model: Any) -> Any:
    return torch.tensor(score(model.eval(), PROMPT, SAID, 1.0))


def apart(one: Any, other: Any) -> float:
    return float((one - other).abs().max())


def load(folder: Path, **options: Any) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(str(folder), local_files_only=True, **options)


@pytest.mark.parametrize("each", EACH)
def test_an_export_has_the_numbers_of_what_was_trained_in_32_and_in_16_bits(each: Family, tmp_path: Path) -> None:
    model, codec = teach(each, tmp_path)
    trained, fresh = numbers(model), each.model(codec.tokenizer)
    assert apart(trained, numbers(fresh)) > 0.01  # something was learnt
    sampled = TransformersPolicy(model, codec).generate([Prompt(PROMPT, 8, seed=1)])[0]
    exact = load(export(tmp_path / "model", tmp_path / "exact").folder)
    assert apart(numbers(exact), trained) < EXACT
    assert TransformersPolicy(exact, codec).generate([Prompt(PROMPT, 8, seed=1)])[0].ids == sampled.ids
    # What TRL sets for mixtures of experts, whose router it trains, would end every sampling.
    for one in (model, exact):
        assert getattr(one.config, "output_router_logits", None) == getattr(fresh.config, "output_router_logits", None)
        assert one.config.use_cache is True
    half = load(export(tmp_path / "model", tmp_path / "half", dtype="bfloat16").folder, dtype="auto")
    assert {str(value.dtype) for value in half.parameters()} <= {"torch.bfloat16", "torch.float32"}
    assert next(half.parameters()).dtype == torch.bfloat16
    # The export rounds the weights once, as whoever loads the trained ones in 16 bits does.
    assert apart(numbers(half), numbers(load(tmp_path / "model", dtype=torch.bfloat16))) < EXACT
    assert (numbers(half) - trained).abs().mean() < ROUNDED


@pytest.mark.parametrize("each", EACH)
def test_an_adapter_has_the_numbers_of_what_was_trained_beside_its_weights_and_in_them(
    each: Family, tmp_path: Path
) -> None:
    from peft import LoraConfig, PeftModel

    adapter = LoraConfig(r=2, lora_alpha=4, target_modules="all-linear", task_type="CAUSAL_LM")
    teach(each, tmp_path, adapter)
    beside = export(tmp_path / "model", tmp_path / "beside", merge=False)
    trained = numbers(PeftModel.from_pretrained(load(tmp_path / "base"), str(tmp_path / "model")))
    assert apart(trained, numbers(load(tmp_path / "base"))) > 0.001
    assert apart(numbers(PeftModel.from_pretrained(load(tmp_path / "base"), str(beside.folder))), trained) < EXACT
    merged = export(tmp_path / "model", tmp_path / "merged")
    assert (beside.kind, merged.kind) == ("adapter", "model")
    assert apart(numbers(load(merged.folder)), trained) < MERGED


# -- what cannot be trained --------------------------------------------------------------------------------------------

HYBRIDS: dict[str, dict[str, Any]] = {
    "Lfm2": {"layer_types": ["conv", "full_attention"], "block_auto_adjust_ff_dim": False},
    "Qwen3Next": {
        "layer_types": ["linear_attention", "full_attention"],
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 2,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 8,
        "head_dim": 8,
        "num_experts": 2,
        "num_experts_per_tok": 1,
        "moe_intermediate_size": 16,
        "shared_expert_intermediate_size": 16,
    },
}


@pytest.mark.parametrize("kind", sorted(HYBRIDS))
def test_a_model_with_another_state_than_keys_and_values_is_refused_before_the_first_step(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import concertino_train.sft.training as sft
    import transformers as hf
    from concertino_train.data import write_conversations

    if not hasattr(hf, f"{kind}ForCausalLM"):
        pytest.skip(f"this transformers has no {kind}")
    tokenizer = family("qwen-2.5").tokenizer()
    size = {"vocab_size": len(tokenizer), "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "pad_token_id": 0}
    config = getattr(hf, f"{kind}Config")(**size, **heads, **HYBRIDS[kind])
    getattr(hf, f"{kind}ForCausalLM")(config).save_pretrained(str(tmp_path / "start"))
    tokenizer.save_pretrained(str(tmp_path / "start"))
    messages = (Message("user", "How far?"), Message("assistant", "Ten."))
    write_conversations([RoleConversation("c", messages, (1,), (1,))], tmp_path / "set")
    asked: Sequence[str] = ["trainer.device=cpu", f"model.path={tmp_path / 'start'}", f"data.sets=[{tmp_path / 'set'}]"]
    settings = load_config(None, [*asked, f"trainer.output={tmp_path / 'out'}"])
    monkeypatch.setattr(sft, "fine_tune", lambda *_, **__: pytest.fail("it was trained"))
    with pytest.raises(UsageError, match=rf"{kind}.*cannot be sampled in a batch here.*rollout.backend=vllm"):
        sft.run_sft(settings)
    served = load_config(None, [*asked, "rollout.backend=vllm"], check=False)
    assert load_model(served).model is not None
