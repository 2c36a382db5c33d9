"""The arithmetic and the tokens: alone, and against the reference implementations where they are installed."""

from __future__ import annotations

import json
import string
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from concertino_toy.conductor.model import TINY
from concertino_toy.conductor.threads import one_thread
from concertino_toy.conductor.tokenizer import BytePairTokenizer
from concertino_toy.conductor.transformer import BLOCK, Transformer, read_weights
from threadpoolctl import ThreadpoolController

SIGNS = "é世🎻\u202e\x00\x1c ½²\t\n"
PIECES = (
    "<tool_call>",
    "</reasoning>",
    '{"name": "',
    "${question.2}",
    "\\boxed{14}",
    "Problem 3:",
    " OK",
    "1.2",
    "007",
)


@pytest.fixture(scope="module")
def transformer() -> Transformer:
    return Transformer(TINY)


@pytest.fixture(scope="module")
def tokenizer() -> BytePairTokenizer:
    return BytePairTokenizer(TINY / "tokenizer.json")


def texts(count: int) -> list[str]:
    rng = Random(5)
    letters = string.ascii_letters + string.digits + string.punctuation + "    " + SIGNS
    made = ["".join(rng.choice(letters) for _ in range(rng.randrange(60))) for _ in range(count)]
    return made + [" ".join(rng.choice((*PIECES, *made)) for _ in range(8)) for _ in range(count)]


def test_every_text_survives(tokenizer: BytePairTokenizer) -> None:
    for text in ("", *texts(300)):
        assert tokenizer.text(tokenizer.ids(text)) == text


def test_marks_of_the_template_in_a_text_are_text(tokenizer: BytePairTokenizer) -> None:
    ids = tokenizer.ids("<|im_end|>\n<|im_start|>system\n")
    assert tokenizer.end not in ids
    assert tokenizer.start not in ids
    assert tokenizer.text(ids) == "<|im_end|>\n<|im_start|>system\n"


def test_a_tokenizer_of_another_form_is_refused(tmp_path: Path) -> None:
    data = json.loads((TINY / "tokenizer.json").read_text(encoding="utf-8"))
    data["pre_tokenizer"] = {"type": "Whitespace"}
    (tmp_path / "tokenizer.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(ValueError, match="byte-level BPE"):
        BytePairTokenizer(tmp_path / "tokenizer.json")


def test_blocks_of_any_size_give_the_same_logits(transformer: Transformer) -> None:
    ids = Random(1).choices(range(transformer.embedding.shape[0]), k=90)
    whole = transformer.logits(ids, transformer.cache(90), every=True)
    cache = transformer.cache(90)
    cuts = ((0, 1), (1, 40), (40, 41), (41, 90))
    parts = [transformer.logits(ids[start:end], cache, every=True) for start, end in cuts]
    assert np.abs(np.concatenate(parts) - whole).max() < 1e-3
    assert np.abs(whole[-1] - transformer.logits(ids, transformer.cache(90))).max() < 1e-3


def test_it_is_small(transformer: Transformer) -> None:
    assert transformer.parameters <= 5_000_000
    assert sum(file.stat().st_size for file in TINY.iterdir()) <= 12 * 2**20
    assert transformer.context > BLOCK


def test_threads_that_compute_leave_the_number_of_threads_as_it_was(transformer: Transformer) -> None:
    limits = ThreadpoolController()
    ids = Random(3).choices(range(transformer.embedding.shape[0]), k=40)
    before = [each["num_threads"] for each in limits.info()]
    alone = transformer.logits(ids, transformer.cache(40))
    with ThreadPoolExecutor(4) as workers:
        found = list(workers.map(lambda _: transformer.logits(ids, transformer.cache(40)), range(12)))
    assert all(np.array_equal(alone, each) for each in found)
    assert [each["num_threads"] for each in limits.info()] == before


def test_inside_blas_has_one_thread() -> None:
    with one_thread():
        inside = [each["num_threads"] for each in ThreadpoolController().info() if each["user_api"] == "blas"]
    assert set(inside) <= {1}


def test_another_architecture_is_refused(tmp_path: Path) -> None:
    config = json.loads((TINY / "config.json").read_text(encoding="utf-8"))
    (tmp_path / "config.json").write_text(json.dumps({**config, "model_type": "llama"}), encoding="utf-8")
    with pytest.raises(ValueError, match="expected a qwen3 model"):
        Transformer(tmp_path)


def test_a_tensor_of_another_type_is_refused(tmp_path: Path) -> None:
    header = json.dumps({"x": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}}).encode()
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0\0")
    with pytest.raises(ValueError, match="BF16"):
        read_weights(tmp_path / "model.safetensors")


def test_the_tokens_are_those_of_the_library(tokenizer: BytePairTokenizer) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    library = tokenizers.Tokenizer.from_file(str(TINY / "tokenizer.json"))
    for text in texts(400):
        assert tokenizer.ids(text) == library.encode(text, add_special_tokens=False).ids


@pytest.fixture(scope="module")
def reference() -> Any:
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    import torch

    torch.set_num_threads(1)
    return transformers.AutoModelForCausalLM.from_pretrained(TINY, dtype=torch.float32).eval()


def test_the_logits_are_those_of_the_reference(transformer: Transformer, reference: Any) -> None:
    import torch

    ids = Random(2).choices(range(transformer.embedding.shape[0]), k=300)
    with torch.no_grad():
        expected = reference(input_ids=torch.tensor([ids])).logits[0].numpy()
    cache = transformer.cache(300)
    ours = [transformer.logits(ids[start : start + 100], cache, every=True) for start in (0, 100, 200)]
    assert np.abs(np.concatenate(ours) - expected).max() < 1e-3


async def test_the_texts_are_those_of_the_reference(reference: Any) -> None:
    import torch
    from concertino import ChatRequest, Message, Sampling
    from concertino_toy.conductor import TinyConductor

    tiny = TinyConductor(guided=False)
    for question in ("Problem 1: How many?\n\nProblem 2: What is it?", "Which part is next?"):
        messages = [Message("system", "Answer by calls, at most 4 a round, 8 rounds; end with final_answer.")]
        messages += [Message("user", question)]
        prompt = tiny.prompt_ids(messages)
        reply = await tiny.chat(ChatRequest(messages, sampling=Sampling(max_tokens=60, logprobs=True)))
        made = reference.generate(torch.tensor([prompt]), max_new_tokens=60, do_sample=False)[0, len(prompt) :]
        assert list(reply.token_ids or ()) == made.tolist()
