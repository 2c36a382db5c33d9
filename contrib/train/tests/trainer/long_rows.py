"""One step of reinforcement learning on one long row, as a program: what it takes at the peak, in MiB.

    python long_rows.py TOKENS OUT [again] [whole]

`again` computes activations again; `whole` computes the log-probabilities from all logits at once, as a plain forward
pass does, in place of TRL's tiles.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")

import torch
from concertino_local.codec import ByteCodec
from concertino_train.groups import GroupKey
from concertino_train.rollouts import Batch, TrainingRow
from concertino_train.trainer import Algorithm, OrchestratorGRPOTrainer
from transformers import Qwen3Config, Qwen3ForCausalLM

VOCABULARY, LAYERS, HIDDEN = 4096, 4, 64


class WholeLogits(OrchestratorGRPOTrainer):
    """Log-probabilities from all logits at once."""

    def _get_per_token_logps_and_entropies(
        self, model: Any, input_ids: Any, attention_mask: Any, logits_to_keep: int, **more: Any
    ) -> Any:
        logits = model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).logits
        numbers = logits[:, -logits_to_keep - 1 : -1].log_softmax(-1)
        chosen = numbers.gather(2, input_ids[:, -logits_to_keep:, None])[:, :, 0]
        with torch.no_grad():
            entropies = -(numbers.exp() * numbers).sum(-1)
        return chosen, entropies, None


def peak() -> float:
    """MiB that this process has held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Make the step, and write what it took to OUT/told.json."""
    tokens, out, words = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=HIDDEN,
        intermediate_size=3 * HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=1,
        num_key_value_heads=1,
        head_dim=HIDDEN,
        max_position_embeddings=tokens,
        tie_word_embeddings=True,
    )
    model = Qwen3ForCausalLM(config)
    drawn = torch.randint(0, VOCABULARY, (tokens,)).tolist()
    before = model.model.embed_tokens.weight.detach().clone()
    row = TrainingRow(
        GroupKey("q"), "orchestrator", tuple(drawn[:8]), tuple(drawn[8:]), (1,) * (tokens - 8), (-1.0,) * (tokens - 8)
    )
    batch = Batch([row], [1.0], [True], [1.0], ("",), {})
    algorithm = Algorithm(
        steps=1, questions_per_step=1, group_size=2, device="cpu", gradient_checkpointing="again" in words
    )
    kind = WholeLogits if "whole" in words else OrchestratorGRPOTrainer
    trainer = kind(model, algorithm, lambda tasks, step: batch, [0], codec=ByteCodec(), folder=out)
    out.mkdir(parents=True, exist_ok=True)
    held, began = peak(), time.process_time()
    trainer.train()
    moved = float((model.model.embed_tokens.weight.detach() - before).abs().max())
    told = {"held": held, "peak": peak(), "cpu_seconds": time.process_time() - began, "moved": moved}
    (out / "told.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main()
