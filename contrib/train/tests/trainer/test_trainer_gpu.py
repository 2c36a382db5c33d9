"""What a GPU computes is what a CPU does; on a CPU alone, what one precision or way computes is what another does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from concertino_local.codec import ByteCodec
from concertino_train.policies import Prompt, Sample, TransformersPolicy
from concertino_train.rollouts import Batch
from concertino_train.settings import Precision
from concertino_train.trainer import Algorithm

pytestmark = pytest.mark.gpu
CUDA = torch.cuda.is_available()
needs_cuda = pytest.mark.skipif(not CUDA, reason="torch sees no CUDA device here")
DEVICE = torch.device("cuda" if CUDA else "cpu")
CPU = Algorithm(
    steps=2, questions_per_step=2, group_size=4, learning_rate=1e-3, max_grad_norm=0, kl=0.05, device="cpu",
    precision="float32",
)  # fmt: skip
HERE = CPU.changed(device=DEVICE.type, micro_batch=3)
PROMPTS = [Prompt(tuple(range(1, 2 + 7 * number)), 20, seed=number) for number in range(1, 9)]


@pytest.fixture
def gradients(
    tiny: Callable[..., Any], made_batch: Callable[..., Batch], trained: Callable[..., Any]
) -> Callable[[Algorithm], tuple[list[torch.Tensor], list[float]]]:
    """Gradients and losses of a training of two steps, on the CPU to be compared."""

    def work(algorithm: Algorithm) -> tuple[list[torch.Tensor], list[float]]:
        _, recorder = trained(tiny(), algorithm, lambda tasks, step: made_batch(step))
        return [each.float().cpu() for each in recorder.gradients], [log["loss"] for log in recorder.logs[:-1]]

    return work


@pytest.fixture
def repeatable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """torch takes algorithms that give the same bits each time, and refuses others."""
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture
def alone() -> Iterator[None]:
    """The group of one process that sharding forms is gone afterwards."""
    yield
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def apart(one: list[torch.Tensor], two: list[torch.Tensor]) -> float:
    """The greatest difference, as a share of the greatest number."""
    assert len(one) == len(two) > 0
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(one, two, strict=True))


def sampled(model: Any, codec: ByteCodec, precision: Precision = "float32", **options: Any) -> list[Sample]:
    return TransformersPolicy(model, codec, precision=precision, **options).generate(PROMPTS)


def test_losses_and_gradients_in_float32_are_those_of_a_cpu(gradients: Callable[..., Any]) -> None:
    there, losses = gradients(CPU)
    here, own = gradients(HERE)
    assert apart(here, there) <= 1e-3
    assert own == pytest.approx(losses, abs=1e-4)
    assert all(float(each.abs().max()) > 1e-2 for each in there)


def test_gradients_in_bfloat16_point_where_those_in_float32_do(gradients: Callable[..., Any]) -> None:
    there, losses = gradients(CPU)
    here, own = gradients(HERE.changed(precision="bfloat16"))
    first = torch.nn.functional.cosine_similarity(here[0], there[0], 0)
    assert 0.98 < float(first) < 1.0
    assert own[0] == pytest.approx(losses[0], abs=0.05)


@pytest.mark.slow
def test_sharding_over_one_process_changes_no_gradient(gradients: Callable[..., Any], alone: None) -> None:
    plain, losses = gradients(HERE)
    sharded, own = gradients(HERE.changed(sharding="full"))
    assert apart(sharded, plain) <= 1e-5
    assert own == pytest.approx(losses, abs=1e-5)


def test_greedy_texts_in_float32_are_those_of_a_cpu(tiny: Callable[..., Any], codec: ByteCodec) -> None:
    there = sampled(tiny(), codec, temperature=0.0, batch=1)
    here = sampled(tiny().to(DEVICE), codec, temperature=0.0)
    assert [each.ids for each in here] == [each.ids for each in there]
    pairs = [
        pair for one, two in zip(here, there, strict=True) for pair in zip(one.logprobs, two.logprobs, strict=True)
    ]
    assert max(abs(one - two) for one, two in pairs) <= 1e-4


def test_log_probabilities_in_bfloat16_are_those_of_the_trained_model_in_it(
    tiny: Callable[..., Any], codec: ByteCodec
) -> None:
    model = tiny().to(DEVICE)
    samples = sampled(model, codec, "bfloat16")
    for prompt, sample in zip(PROMPTS, samples, strict=True):
        ids = torch.tensor([[*prompt.ids, *sample.ids]], device=DEVICE)
        with torch.no_grad(), torch.autocast(DEVICE.type, torch.bfloat16):
            scores = model(input_ids=ids).logits[0].float().log_softmax(-1)
        places = torch.arange(len(prompt.ids) - 1, ids.shape[1] - 1)
        whole = scores[places, ids[0, len(prompt.ids) :]].tolist()
        assert sum(abs(a - b) for a, b in zip(whole, sample.logprobs, strict=True)) / len(whole) <= 0.05


@pytest.mark.slow
def test_a_training_is_the_same_to_the_bit_from_one_seed(
    tiny: Callable[..., Any], made_batch: Callable[..., Batch], trained: Callable[..., Any], parameters: Any,
    codec: ByteCodec, repeatable: None,
) -> None:  # fmt: skip
    ends = []
    for _ in range(2):
        model = tiny()
        trained(model, HERE.changed(precision="auto"), lambda tasks, step: made_batch(step))
        ends.append((parameters(model).cpu(), sampled(model, codec, "auto")))
    assert torch.equal(ends[0][0], ends[1][0])
    assert ends[0][1] == ends[1][1]


@needs_cuda
def test_sampling_leaves_nothing_on_the_device(tiny: Callable[..., Any], codec: ByteCodec) -> None:
    model = tiny().to(DEVICE)
    sampled(model, codec)
    before = torch.cuda.memory_allocated()
    sampled(model, codec, "bfloat16")
    assert torch.cuda.memory_allocated() == before


@needs_cuda
def test_reading_prompts_makes_no_logits_of_them(codec: ByteCodec) -> None:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    rows, wide, vocabulary = 8, 1024, 50_000
    config = Qwen3Config(
        vocab_size=vocabulary, hidden_size=64, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2,
        intermediate_size=64, head_dim=32, max_position_embeddings=2048,
    )  # fmt: skip
    model = Qwen3ForCausalLM(config).to(DEVICE)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    prompts = [Prompt(tuple(range(number, number + wide)), 4, seed=number) for number in range(1, rows + 1)]
    TransformersPolicy(model, codec).generate(prompts)
    assert torch.cuda.max_memory_allocated() - before < 4 * rows * wide * vocabulary / 4
