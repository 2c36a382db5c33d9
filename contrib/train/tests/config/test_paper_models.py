"""The recipes of the papers load the models that they name; here small ones of the same kind, under the same names."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from concertino_train.config.config import load_config

pytestmark = pytest.mark.slow

TEMPLATES = {
    "Qwen/Qwen3-8B": "qwen3",
    "Qwen/Qwen3-1.7B": "qwen3",
    "Qwen/Qwen3-4B-Instruct-2507": "qwen3_instruct_2507",
    "Qwen/Qwen2.5-3B-Instruct": "qwen2_5",
    "Qwen/Qwen2.5-7B-Instruct": "qwen2_5",
}
"""By model, its own chat template as TRL knows it."""
LOADING = """
import sys
from concertino import Message
from concertino_train.config.config import load_config
from concertino_train.factories.models import load_model

loaded = load_model(load_config(sys.argv[1], ["trainer.device=cpu"], check=False))
talk = [Message("user", "Far?"), Message("assistant", "Ten."), Message("user", "Back?")]
print(type(loaded.model).__name__, "Ten." in loaded.codec.decode(loaded.codec.prompt(talk)))
"""


def save(folder: Path, family: str) -> None:
    """A small model with the template of its family, as the hub's cache holds it."""
    import torch
    import transformers as hf
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

    found = importlib.util.find_spec("trl")
    assert found is not None
    assert found.origin is not None
    template = (Path(found.origin).parent / "chat_templates" / f"{family}.jinja").read_text(encoding="utf-8")
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    backend.train_from_iterator(["far"], trainers.BpeTrainer(initial_alphabet=alphabet, show_progress=False))
    marks = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
    backend.add_special_tokens([AddedToken(mark, special=True, normalized=False) for mark in marks])
    make = hf.PreTrainedTokenizerFast
    tokenizer = make(
        tokenizer_object=backend, chat_template=template, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    torch.manual_seed(0)
    size = {"vocab_size": len(tokenizer), "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
    if family == "qwen2_5":
        hf.Qwen2ForCausalLM(hf.Qwen2Config(**size, **heads)).save_pretrained(folder)
    else:
        hf.Qwen3ForCausalLM(hf.Qwen3Config(**size, **heads, head_dim=8)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


OFTEN = ("gap", "paramanager")
"""Loaded at each change, one of each family; `make soak` loads all: each takes ten seconds."""
SYSTEMS = [
    pytest.param(system, marks=[] if system in OFTEN else [pytest.mark.soak])
    for system in ("at-grpo", "gap", "mas-orchestra", "paramanager", "toolorchestra")
]


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_recipe_of_a_paper_loads_the_model_that_it_names(system: str, tmp_path: Path) -> None:
    pytest.importorskip("trl", reason="trl, which has the variants for training, is absent")
    recipe = f"{system}/paper"
    name = load_config(recipe, check=False).model.path
    home = tmp_path / "hub" / f"models--{name.replace('/', '--')}"
    save(home / "snapshots" / "0", TEMPLATES[name])
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text("0")
    done = subprocess.run(
        [sys.executable, "-c", LOADING, recipe],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"},
    )
    kind = "Qwen2ForCausalLM" if TEMPLATES[name] == "qwen2_5" else "Qwen3ForCausalLM"
    assert done.stdout.split() == [kind, "True"], done.stderr[-2000:]
