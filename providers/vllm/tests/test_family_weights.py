"""Ten families of tiny models in the real vLLM: it loads what was exported, and has the numbers of transformers."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from model_families import FAMILIES, Family

torch = pytest.importorskip("torch")
policies = pytest.importorskip("concertino_train.policies.transformers", reason="concertino-train is not installed")
exports = pytest.importorskip("concertino_train.export", reason="concertino-train is not installed")

pytestmark = [pytest.mark.server, pytest.mark.soak]

EXACT = 1e-3
"""Log-probabilities of equal weights in float32 are nearer than this."""
ROUNDED = 0.05
"""In 16 bits, in the mean: vLLM for CPUs has no latent attention in float32."""
IDS = tuple(range(5, 60))
WIDE = {"hidden_size": 128, "head_dim": 32}
"""The kernels of vLLM for CPUs begin at heads of 32."""
LATENT = {
    "initializer_range": 0.05,
    "hidden_size": 128,
    "moe_intermediate_size": 64,
    "intermediate_size": 64,
    # Those of DeepSeek itself: the kernel for latent attention takes no others.
    "q_lora_rank": 32,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    # What published settings of DeepSeek say, beside what transformers reads of them.
    "topk_method": "noaux_tc",
    "scoring_func": "sigmoid",
}
SCORING = """
import json, sys
from vllm import LLM, SamplingParams

folder, ids, dtype = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
model = LLM(folder, dtype=dtype, enforce_eager=True, max_model_len=256, max_num_seqs=2, block_size=32,
            kv_cache_memory_bytes=64 << 20, enable_prefix_caching=False)
asked = SamplingParams(max_tokens=1, temperature=1.0, prompt_logprobs=0)
found = model.generate([{"prompt_token_ids": ids}], asked)[0].prompt_logprobs
print("FOUND" + json.dumps([each[token].logprob for each, token in zip(found[1:], ids[1:])]))
"""
MISSING = ("not supported", "NotImplementedError", "has no vLLM implementation", "does not support", "not implemented")
"""What vLLM says where its build for CPUs lacks something of an architecture."""


@pytest.mark.parametrize("each", FAMILIES, ids=[each.name for each in FAMILIES])
def test_vllm_has_the_numbers_of_the_weights_that_were_exported(
    each: Family, tmp_path: Path, real_options: dict[str, Any]
) -> None:
    codec = each.codec()
    model = each.model(codec.tokenizer, **(LATENT if "kv_lora_rank" in each.shape else WIDE))
    model.save_pretrained(str(tmp_path / "model"))
    codec.save(tmp_path / "model")
    dtype, near = ("bfloat16", ROUNDED) if "kv_lora_rank" in each.shape else ("float32", EXACT)
    folder = exports.export(tmp_path / "model", tmp_path / "export", dtype=dtype).folder
    numbers = policies.score(model.to(getattr(torch, dtype)), IDS[:1], IDS[1:], 1.0)
    python = Path(real_options["executable"]).with_name("python")
    done = subprocess.run(
        [str(python), "-c", SCORING, str(folder), json.dumps(IDS), dtype],
        env={**os.environ, **real_options["env"], "VLLM_ENABLE_V1_MULTIPROCESSING": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    line = next((line for line in done.stdout.splitlines() if line.startswith("FOUND")), "")
    if not line:
        why = next((line for line in reversed(done.stderr.splitlines()) if any(w in line for w in MISSING)), "")
        if why:
            pytest.skip(f"this vLLM does not have it: {why.strip()[-200:]}")
        pytest.fail(done.stderr[-3000:])
    found = json.loads(line.removeprefix("FOUND"))
    apart = [abs(one - other) for one, other in zip(found, numbers, strict=True)]
    assert (max(apart) if dtype == "float32" else sum(apart) / len(apart)) < near
