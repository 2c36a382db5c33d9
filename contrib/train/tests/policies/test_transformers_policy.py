"""Sampling from a model in this process: the numbers of a forward pass, whoever is beside, and nothing is changed."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from concertino import UsageError
from concertino_local.codec import ByteCodec, Ids

os.environ.setdefault("HF_HUB_OFFLINE", "1")
torch = pytest.importorskip("torch")

from concertino_local.sampling import lockstep, sampler  # noqa: E402
from concertino_local.sampling.choice import row_random  # noqa: E402
from concertino_train.policies import Prompt, Sample, TransformersPolicy  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

# PEFT asks transformers by a name that is going away.
pytestmark = pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")

VOCABULARY = 259


class Codec(ByteCodec):
    """Bytes, with ends of one's own."""

    def __init__(self, *ends: int) -> None:
        self.end_ids = ends or ByteCodec.end_ids


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def network(kind: str = "qwen3", **changes: Any) -> Any:
    """A random model of two layers; its numbers are so large that it is sure of some tokens and not of others."""
    import transformers as hf

    torch.manual_seed(0)
    size = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2}
    shared = {**size, "num_key_value_heads": 2, "intermediate_size": 64, "max_position_embeddings": 512}
    wide = {"initializer_range": 0.3, "eos_token_id": None, "pad_token_id": 258, "bos_token_id": None}
    window = {"sliding_window": 8, "head_dim": 8}
    made = {
        "qwen3": lambda: hf.Qwen3ForCausalLM(hf.Qwen3Config(**{**shared, "head_dim": 8, **wide, **changes})),
        "gpt2": lambda: hf.GPT2LMHeadModel(
            hf.GPT2Config(vocab_size=VOCABULARY, n_embd=32, n_head=4, n_layer=2, n_positions=512, **wide)
        ),
        "mistral": lambda: hf.MistralForCausalLM(hf.MistralConfig(**{**shared, **wide, **window})),
        "gemma3": lambda: hf.Gemma3ForCausalLM(
            hf.Gemma3TextConfig(
                **{**shared, **wide, **window, "layer_types": ["sliding_attention", "full_attention"]},
                query_pre_attn_scalar=8,
            )
        ),
    }[kind]()
    return made.eval()


@pytest.fixture(scope="module")
def model() -> Any:
    return network()


def numbers(count: int, seed: int = 0) -> Ids:
    draw = random.Random(seed)
    return tuple(draw.randrange(256) for _ in range(count))


def mixed(most: int = 24) -> list[Prompt]:
    """Prompts of many lengths, some equal, some with the same beginning."""
    system = numbers(40, 7)
    ids = [numbers(n, n) for n in (1, 2, 17, 60)] + [(*system, *numbers(n, n)) for n in (3, 9, 9, 30)]
    return [Prompt(each, most, seed=place) for place, each in enumerate([*ids, ids[3], system])]


def forward(model: Any, prompt: Ids, sampled: Ids, temperature: float = 1.0) -> list[float]:
    """Log-probabilities of sampled tokens in one pass over everything."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[*prompt, *sampled]])).logits[0].float() / temperature
    at = torch.arange(len(prompt) - 1, len(prompt) + len(sampled) - 1)
    found: list[float] = logits.log_softmax(-1)[at, torch.tensor(sampled)].tolist()
    return found


def furthest(one: Sample, numbers: list[float]) -> float:
    return max(abs(a - b) for a, b in zip(one.logprobs, numbers, strict=True))


# -- the numbers of a forward pass ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["qwen3", "gpt2", "mistral", "gemma3"])
def test_greedy_sampling_is_what_generate_of_transformers_gives_with_the_numbers_of_a_forward_pass(kind: str) -> None:
    model = network(kind)
    prompts = mixed()
    samples = TransformersPolicy(model, Codec(5), temperature=0.0).generate(prompts)
    for prompt, sample in zip(prompts, samples, strict=True):
        with torch.no_grad():
            ids = torch.tensor([prompt.ids])
            options = {"eos_token_id": 5, "pad_token_id": 0, "max_new_tokens": prompt.most, "do_sample": False}
            whole = model.generate(ids, attention_mask=torch.ones_like(ids), **options)
        assert sample.ids == tuple(whole[0, len(prompt.ids) :].tolist())
        assert furthest(sample, forward(model, prompt.ids, sample.ids)) < 1e-4


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.6, 1.0), (1.7, 0.8)])
def test_log_probabilities_are_those_of_a_forward_pass_at_the_temperature_of_sampling(
    model: Any, temperature: float, top_p: float
) -> None:
    prompts = mixed()
    samples = TransformersPolicy(model, Codec(), temperature=temperature, top_p=top_p).generate(prompts)
    for prompt, sample in zip(prompts, samples, strict=True):
        assert furthest(sample, forward(model, prompt.ids, sample.ids, temperature)) < 1e-4


def test_tokens_come_as_often_as_they_are_probable(model: Any) -> None:
    ids, count = numbers(9), 4000
    policy = TransformersPolicy(model, Codec(), temperature=2.0, batch=count)
    drawn = Counter(sample.ids[0] for sample in policy.generate([Prompt(ids, 1, seed=seed) for seed in range(count)]))
    with torch.no_grad():
        probable = (model(input_ids=torch.tensor([ids])).logits[0, -1] / 2).softmax(-1).tolist()
    for token, probability in enumerate(probable):
        spread = (probability * (1 - probability) / count) ** 0.5
        assert abs(drawn[token] / count - probability) < 5 * spread + 1e-3
    policy.top_p = 0.5
    kept = {sample.ids[0] for sample in policy.generate([Prompt(ids, 1, seed=seed) for seed in range(count)])}
    ordered = sorted(range(VOCABULARY), key=lambda token: -probable[token])
    total, nucleus = 0.0, set()
    for token in ordered:
        nucleus.add(token)
        total += probable[token]
        if total >= 0.5:
            break
    assert kept == nucleus


# -- alone or in a batch -------------------------------------------------------------------------------------------


def test_a_sample_depends_on_its_prompt_and_seed_and_not_on_its_neighbours(model: Any) -> None:
    prompts = mixed()
    policy = TransformersPolicy(model, Codec(7))
    together = policy.generate(prompts)
    assert policy.generate(prompts[::-1])[::-1] == together
    for prompt, sample in zip(prompts, together, strict=True):
        alone = policy.generate([prompt])[0]
        assert alone.ids == sample.ids
        assert furthest(alone, list(sample.logprobs)) < 1e-5
    policy.batch = 3
    assert [sample.ids for sample in policy.generate(prompts)] == [sample.ids for sample in together]


def test_another_seed_or_another_prompt_draws_other_numbers_and_more_tokens_go_on_behind_fewer(model: Any) -> None:
    policy = TransformersPolicy(model, Codec(), temperature=3.0)
    ids = numbers(20)
    first, again, other, longer = policy.generate(
        [Prompt(ids, 12, seed=1), Prompt(ids, 12, seed=1), Prompt(ids, 12, seed=2), Prompt(ids, 30, seed=1)]
    )
    assert first.ids == again.ids == longer.ids[:12]
    assert first.ids != other.ids
    assert list(row_random(1, ids).random(3)) != list(row_random(1, ids[1:]).random(3))
    assert list(row_random(-1, ids).random(3)) == list(row_random(2**64 - 1, ids).random(9))[:3]


def test_rows_that_leave_early_and_rows_that_go_on_for_long_do_not_disturb_each_other(model: Any) -> None:
    draw = random.Random(5)
    ends = tuple(draw.sample(range(256), 8))
    prompts = [
        Prompt(numbers(draw.randrange(1, 70), place), draw.choice((1, 2, 9, 40, 150)), seed=place)
        for place in range(40)
    ]
    policy = TransformersPolicy(model, Codec(*ends), temperature=1.5)
    samples = policy.generate(prompts)
    assert len({len(sample.ids) for sample in samples}) > 10
    for prompt, sample in zip(prompts, samples, strict=True):
        assert furthest(sample, forward(model, prompt.ids, sample.ids, 1.5)) < 1e-4
        ended = sample.ids[-1] in ends
        assert sample.finish == ("stop" if ended else "length")
        assert not set(sample.ids[:-1]) & set(ends)
        assert ended or len(sample.ids) == prompt.most
    assert {sample.finish for sample in samples} == {"stop", "length"}
    assert policy.work.sampled_tokens == sum(len(sample.ids) for sample in samples)


def test_what_prompts_have_in_common_is_read_once_and_changes_no_number(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = numbers(50, 3)
    prompts = [Prompt((*system, *numbers(4 + row // 4, row // 4)), 8, seed=row) for row in range(16)]
    policy = TransformersPolicy(model, Codec())
    shared = policy.generate(prompts)
    # the last token of a prompt is read with the first step; the fourth question is the longest, of 7 tokens
    assert policy.work.read_tokens == len(system) + 4 * (7 - 1)
    monkeypatch.setattr(sampler, "LEAST", 10_000)
    apart = policy.generate(prompts)
    for one, other in zip(shared, apart, strict=True):
        assert one.ids == other.ids
        assert furthest(one, list(other.logprobs)) < 1e-5
    monkeypatch.setattr(lockstep, "BUDGET", 60)
    assert [sample.ids for sample in policy.generate(prompts)] == [sample.ids for sample in shared]


def test_a_prompt_that_others_begin_with_is_sampled_like_any(model: Any) -> None:
    ids = numbers(40)
    prompts = [Prompt(ids[:n], 6, seed=n) for n in (17, 18, 39, 40)]
    for prompt, sample in zip(prompts, TransformersPolicy(model, Codec()).generate(prompts), strict=True):
        assert furthest(sample, forward(model, prompt.ids, sample.ids)) < 1e-4


def test_the_context_is_respected_and_a_prompt_that_fills_it_gets_nothing() -> None:
    policy = TransformersPolicy(network(max_position_embeddings=32), Codec(), temperature=0.0)
    prompts = [Prompt(numbers(n), 10, seed=n) for n in (10, 30, 32, 40)]
    samples = policy.generate(prompts)
    assert [len(sample.ids) for sample in samples] == [10, 2, 0, 0]
    assert [sample.finish for sample in samples] == ["length"] * 4
    narrow = TransformersPolicy(policy.model, Codec(), temperature=0.0, context=12)
    assert [len(sample.ids) for sample in narrow.generate(prompts)] == [2, 0, 0, 0]
    assert policy.generate([]) == []
    wide = TransformersPolicy(policy.model, Codec(), temperature=0.0, context=999)
    assert wide.generate(prompts) == samples


# -- nothing is changed --------------------------------------------------------------------------------------------


def test_a_model_in_training_is_left_as_it_was_and_sampled_without_dropout() -> None:
    model = network(attention_dropout=0.5).train()
    model.model.layers[0].eval()
    modes = [module.training for module in model.modules()]
    model(input_ids=torch.tensor([numbers(8)]), labels=torch.tensor([numbers(8)])).loss.backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    state = torch.random.get_rng_state()
    policy = TransformersPolicy(model, Codec())
    first = policy.generate(mixed())
    assert policy.generate(mixed()) == first
    assert [module.training for module in model.modules()] == modes
    assert torch.equal(torch.random.get_rng_state(), state)
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        assert parameter.requires_grad
        assert torch.equal(parameter.grad, gradient)


def test_samples_come_from_the_weights_as_they_are_now() -> None:
    model = network()
    policy = TransformersPolicy(lambda: model, Codec(), temperature=0.0)
    prompts = [Prompt(numbers(30, 3), 12), Prompt(numbers(30, 4), 12)]
    before = policy.generate(prompts)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    after = policy.generate(prompts)
    assert [one.ids for one in before] != [one.ids for one in after]
    for prompt, sample in zip(prompts, after, strict=True):
        assert furthest(sample, forward(model, prompt.ids, sample.ids)) < 1e-4


def test_wrappers_of_parallel_training_and_of_compiling_are_taken_off(model: Any) -> None:
    expected = TransformersPolicy(model, Codec()).generate(mixed(4))
    compiled = torch.compile(model, backend="eager")
    for wrapped in (torch.nn.DataParallel(model), compiled, torch.nn.DataParallel(compiled)):
        assert TransformersPolicy(wrapped, Codec()).model is model
        assert TransformersPolicy(lambda wrapped=wrapped: wrapped, Codec()).generate(mixed(4)) == expected


# -- adapters ------------------------------------------------------------------------------------------------------


def with_adapters() -> Any:
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=2, target_modules=["q_proj", "v_proj"], init_lora_weights=False, task_type="CAUSAL_LM")
    torch.manual_seed(1)
    model = get_peft_model(network(), config, adapter_name="planner")
    model.add_adapter("critic", config)
    return model


def test_each_role_is_sampled_with_its_adapter_and_what_is_trained_stays_trained() -> None:
    model = with_adapters()
    model.train()
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("lora" in name)
    trained = [parameter.requires_grad for parameter in model.parameters()]
    roles = {"planner": "planner", "critic": "critic", "plain": ""}
    policy = TransformersPolicy(model, Codec(), adapters=roles)
    prompts = [Prompt(numbers(20, 2), 10, role, seed=1) for role in ("planner", "plain", "critic", "planner")]
    samples = policy.generate(prompts)
    assert list(model.base_model.active_adapters) == ["planner"]
    assert model.base_model.model.model.layers[0].self_attn.q_proj.active_adapters == ["planner"]
    assert [parameter.requires_grad for parameter in model.parameters()] == trained
    assert samples[0].ids == samples[3].ids
    assert len({sample.ids for sample in samples}) == 3
    model.eval()
    for prompt, sample in zip(prompts, samples, strict=True):
        with model.disable_adapter() if prompt.role == "plain" else _nothing():
            if prompt.role != "plain":
                model.set_adapter(prompt.role)
            assert furthest(sample, forward(model, prompt.ids, sample.ids)) < 1e-4


def _nothing() -> Any:
    import contextlib

    return contextlib.nullcontext()


def test_roles_and_adapters_that_do_not_exist_are_named(model: Any) -> None:
    prompts = [Prompt((1, 2), 2, "critic")]
    with pytest.raises(UsageError, match=r"no adapter speaks for role 'critic'; adapters= names planner"):
        TransformersPolicy(with_adapters(), Codec(), adapters={"planner": "planner"}).generate(prompts)
    with pytest.raises(UsageError, match=r"the model has no adapter 'x': it has planner, critic"):
        TransformersPolicy(with_adapters(), Codec(), adapters={"critic": "x"}).generate(prompts)
    with pytest.raises(UsageError, match=r"no adapter 'x': Qwen3ForCausalLM has none; expected a model of PEFT"):
        TransformersPolicy(model, Codec(), adapters={"critic": "x"}).generate(prompts)


# -- what cannot be sampled ----------------------------------------------------------------------------------------


def test_logits_that_are_no_numbers_are_said_to_be_none() -> None:
    model = network()
    with torch.no_grad():
        model.model.norm.weight.fill_(float("nan"))
    with pytest.raises(UsageError, match="not finite numbers: training has diverged"):
        TransformersPolicy(model, Codec()).generate(mixed())
    assert not model.training


def test_a_codec_with_more_tokens_than_the_model_is_refused() -> None:
    with pytest.raises(UsageError, match=r"259 tokens and the model 100.*resize_token_embeddings"):
        TransformersPolicy(network(vocab_size=100, pad_token_id=0), Codec()).generate(mixed())


def test_a_model_whose_state_is_no_keys_and_values_is_refused_before_anything_is_sampled() -> None:
    from transformers import MambaConfig, MambaForCausalLM

    mamba = MambaForCausalLM(MambaConfig(vocab_size=VOCABULARY, hidden_size=16, state_size=4, num_hidden_layers=1))
    with pytest.raises(UsageError, match=r"cannot be sampled in a batch here.*VLLMPolicy"):
        TransformersPolicy(mamba, Codec())


def test_parameters_that_are_spread_over_processes_are_refused(model: Any) -> None:
    spread = type("FullyShardedDataParallel", (torch.nn.Sequential,), {})(model)
    with pytest.raises(UsageError, match=r"spread over processes \(FSDP or ZeRO-3\).*VLLMPolicy"):
        TransformersPolicy(spread, Codec()).generate(mixed())


@pytest.mark.parametrize("prompt", [Prompt((), 3), Prompt((1,), 0)])
def test_a_prompt_of_nothing_or_for_nothing_is_refused(model: Any, prompt: Prompt) -> None:
    with pytest.raises(UsageError, match="expected one of each or more"):
        TransformersPolicy(model, Codec()).generate([prompt])


@pytest.mark.parametrize("settings", [{"temperature": -1}, {"top_p": 0}, {"top_p": 1.5}, {"batch": 0}])
def test_settings_that_mean_nothing_are_refused(model: Any, settings: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="expected 0 or more"):
        TransformersPolicy(model, Codec(), **settings)  # type: ignore[arg-type]


# -- batches that fit ----------------------------------------------------------------------------------------------


def test_rows_sampled_together_have_no_more_tokens_than_the_memory_takes_and_the_samples_are_the_same(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[list[Prompt]] = []
    sample = TransformersPolicy._sample

    def noting(policy: TransformersPolicy, prompts: Any, network: Any) -> list[Sample]:
        batches.append(list(prompts))
        return sample(policy, prompts, network)

    monkeypatch.setattr(TransformersPolicy, "_sample", noting)
    prompts = mixed()
    whole = TransformersPolicy(model, Codec(5)).generate(prompts)
    assert len(batches) == 1
    batches.clear()
    small = TransformersPolicy(model, Codec(5), tokens=200).generate(prompts)
    wide = [len(batch) * (max(len(row.ids) for row in batch) + max(row.most for row in batch)) for batch in batches]
    assert all(width <= 200 for width in wide)
    assert 1 < len(batches) < len(prompts)
    assert [each.ids for each in small] == [each.ids for each in whole]


def test_a_prompt_that_alone_has_more_tokens_than_the_memory_takes_is_sampled_alone(model: Any) -> None:
    prompts = mixed()
    assert len(TransformersPolicy(model, Codec(5), tokens=1).generate(prompts)) == len(prompts)


def test_tokens_that_fit_follow_from_the_size_of_keys_and_values(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from concertino_train.policies import transformers as policies

    pages = {"SC_AVPHYS_PAGES": 3 * 1024, "SC_PAGE_SIZE": 1024}
    monkeypatch.setattr(policies.os, "sysconf", pages.__getitem__)
    monkeypatch.setattr(policies.os, "sysconf_names", pages)
    # 2 layers of keys and values, 2 heads of 8 numbers, 4 bytes each: 256 bytes a token, and 1.5 MiB to use.
    assert policies.tokens_that_fit(model, torch.device("cpu")) == 4096
    assert policies.tokens_that_fit(torch.nn.Linear(2, 2), torch.device("cpu")) is None


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
