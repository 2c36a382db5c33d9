"""What sampling costs: weights are made 16-bit once, later turns read new tokens alone, and memory may be too small."""

from __future__ import annotations

from typing import Any

import pytest
from concertino import UsageError
from concertino_local.codec import Ids

torch = pytest.importorskip("torch")

from concertino_local.sampling import lockstep  # noqa: E402
from concertino_train.policies import Prompt, Sample, TransformersPolicy  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from .conftest import Codec, forward, furthest, network, numbers  # noqa: E402

# -- what it computes in -------------------------------------------------------------------------------------------


class Casts(TorchDispatchMode):
    """Counts how often a weight of 32 bits is made one of 16."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten._to_copy.default and args[0].requires_grad:
            self.count += 1
        return func(*args, **(kwargs or {}))


def test_weights_are_made_16_bit_once_however_many_tokens_are_sampled() -> None:
    trained = network()
    trained.forward = torch.autocast("cpu", torch.bfloat16)(trained.forward)  # as a trainer does
    matrices = sum(isinstance(module, torch.nn.Linear) for module in trained.modules())
    counts = {}
    for most in (3, 30):
        policy = TransformersPolicy(trained, Codec(), temperature=0.0, precision="bfloat16")
        with Casts() as casts:
            policy.generate([Prompt(numbers(20), most)])
        counts[most] = casts.count
    assert counts == {3: matrices, 30: matrices}


def test_sampling_in_16_bits_is_close_to_that_in_32_and_changes_no_weight(model: Any) -> None:
    before = {name: value.clone() for name, value in model.state_dict().items()}
    prompt = Prompt(numbers(20), 12)
    (sample,) = TransformersPolicy(model, Codec(), temperature=0.0, precision="bfloat16").generate([prompt])
    assert 0 < furthest(sample, forward(model, prompt.ids, sample.ids)) < 0.5
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


# -- too little memory ---------------------------------------------------------------------------------------------


def full_above(rows: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A device whose memory is full where more rows than these are read or sampled at once; the batches that it got."""
    seen: list[int] = []
    whole = lockstep.complete_batch

    def complete(network: Any, batch: Any, *more: Any) -> Any:
        seen.append(len(batch))
        if len(batch) > rows:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return whole(network, batch, *more)

    monkeypatch.setattr("concertino_local.sampling.complete_batch", complete)
    return seen


def test_a_batch_that_the_memory_cannot_hold_is_halved_and_told(
    model: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    prompts = [Prompt(numbers(9 + seed), 6, seed=seed) for seed in range(8)]
    expected = TransformersPolicy(model, Codec()).generate(prompts)
    seen = full_above(3, monkeypatch)
    policy = TransformersPolicy(model, Codec())
    assert [each.ids for each in policy.generate(prompts)] == [each.ids for each in expected]
    assert seen == [8, 4, 2, 2, 2, 2]
    assert "rollout.batch=2" in caplog.text
    seen.clear()
    policy.generate(prompts)
    assert seen == [2, 2, 2, 2], "the next call does not try again what was too much"


def test_one_text_that_the_memory_cannot_hold_is_refused_with_what_to_do(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    full_above(0, monkeypatch)
    with pytest.raises(UsageError, match=r"one text of 9 tokens and up to 6 more; take a smaller rollout\.context"):
        TransformersPolicy(model, Codec()).generate([Prompt(numbers(9), 6)])


# -- turns of a conversation ---------------------------------------------------------------------------------------


def turns(policy: TransformersPolicy, first: list[Ids], rounds: int = 3) -> tuple[list[list[Sample]], list[int]]:
    """Samples of conversations that go on, each with results of its own; tokens that each round read."""
    contexts, samples, read = list(first), [], []
    for number in range(rounds):
        before = policy.work.read_tokens
        prompts = [Prompt(ids, 12, seed=100 * number + place) for place, ids in enumerate(contexts)]
        samples.append(policy.generate(prompts))
        read.append(policy.work.read_tokens - before)
        contexts = [
            (*ids, *sample.ids, *numbers(5 + 4 * place, number))
            for place, (ids, sample) in enumerate(zip(contexts, samples[-1], strict=True))
        ]
    return samples, read


@pytest.mark.parametrize("kind", ["qwen3", "gpt2", "mistral", "gemma3"])
def test_the_next_turn_of_conversations_reads_their_new_tokens_alone(kind: str) -> None:
    system = numbers(60, 7)
    first = [(*system, *numbers(10 + 9 * place, place)) for place in range(6)]
    anew, whole = turns(TransformersPolicy(network(kind), Codec(5)), first)
    policy = TransformersPolicy(network(kind), Codec(5), tokens=4096, kept=None)
    samples, read = turns(policy, first)
    assert [[each.ids for each in turn] for turn in samples] == [[each.ids for each in turn] for turn in anew]
    for turn, other in zip(samples, anew, strict=True):
        assert max(furthest(one, list(two.logprobs)) for one, two in zip(turn, other, strict=True)) < 1e-4
    # The token that was sampled last, and the results: five to 25 of them, padded to the longest.
    assert all(0 < each <= 6 * (1 + 25 + 1) for each in read[1:])
    assert all(each > 6 * 70 for each in whole[1:])


def test_turns_are_read_in_few_passes_and_not_one_by_one(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[int] = []
    read = lockstep.Network.read

    def counted(self: Any, ids: Any, *more: Any) -> None:
        passes.append(len(ids))
        read(self, ids, *more)

    monkeypatch.setattr(lockstep.Network, "read", counted)
    turns(
        TransformersPolicy(model, Codec(), tokens=4096, kept=None),
        [numbers(40 + place, place) for place in range(6)],
        rounds=2,
    )
    assert passes[-1] == 6


@pytest.mark.parametrize("how", ["step", "data", "version", "rest"])
def test_keys_and_values_of_other_weights_are_forgotten(how: str) -> None:
    changing = network()
    policy = TransformersPolicy(changing, Codec(), temperature=0.0, tokens=4096, kept=None)
    (first,) = policy.generate([Prompt(numbers(40), 12)])
    weight = changing.model.layers[0].self_attn.v_proj.weight
    if how == "step":
        with torch.no_grad():
            weight.mul_(-1)
    elif how == "data":
        weight.data.mul_(-1)
    elif how == "version":
        policy.version += 1
    else:
        policy.rest()
    prompt = Prompt((*numbers(40), *first.ids, *numbers(5)), 12)
    before = policy.work.read_tokens
    (second,) = policy.generate([prompt])
    assert policy.work.read_tokens - before >= 50
    (alone,) = TransformersPolicy(changing, Codec(), temperature=0.0).generate([prompt])
    assert second == alone


def test_no_more_tokens_are_kept_than_fit(model: Any) -> None:
    policy = TransformersPolicy(model, Codec(), kept=100)
    policy.generate([Prompt(numbers(40, place), 12) for place in range(6)])
    assert policy._kept is not None
    assert 0 < policy._kept[1].tokens <= 100
