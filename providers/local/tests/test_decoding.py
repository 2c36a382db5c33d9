"""Decoding: a row of a batch gets what it would get alone, with the log-probabilities of a plain forward pass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from concertino import ChatRequest, FailureClass, Message, ProviderError, Sampling
from concertino_local import LocalModel
from local_models import ask, make_network, make_tokenizer, save, until

Open = Callable[..., LocalModel]
LENGTHS = (3, 17, 40, 5, 90, 1, 26, 11)
GREEDY = Sampling(temperature=0.0, max_tokens=24)


def architectures(vocabulary: int) -> dict[str, tuple[str, dict[str, Any]]]:
    """Small random models: full and sliding attention, sinks, experts, absolute positions, ALiBi, linear attention."""
    size = {
        "vocab_size": vocabulary,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "initializer_range": 0.2,
        "eos_token_id": 2,
        "pad_token_id": 0,
    }
    heads = {**size, "head_dim": 16}
    mixed = {"sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"]}
    old = {"vocab_size": vocabulary, "n_layer": 2, "n_head": 4, "initializer_range": 0.2, "eos_token_id": 2}
    return {
        "qwen3": ("Qwen3Config", heads),
        "llama": ("LlamaConfig", size),
        "mistral": ("MistralConfig", {**size, "sliding_window": 8}),
        "gemma3": ("Gemma3TextConfig", {**heads, **mixed}),
        "gpt-oss": ("GptOssConfig", {**heads, **mixed, "num_local_experts": 4, "num_experts_per_tok": 2}),
        "gpt2": ("GPT2Config", {**old, "n_positions": 512, "n_embd": 64, "bos_token_id": 0}),
        "bloom": ("BloomConfig", {**old, "hidden_size": 64, "pad_token_id": 0}),
        "lfm2": ("Lfm2Config", {**size, "layer_types": ["conv", "full_attention"]}),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(architectures(0)))
async def test_a_ragged_batch_equals_single_replies_and_generate(name: str, open_model: Open, tmp_path: Path) -> None:
    import torch
    import transformers

    tokenizer = make_tokenizer()
    config, options = architectures(len(tokenizer))[name]
    torch.manual_seed(1)
    network = transformers.AutoModelForCausalLM.from_config(getattr(transformers, config)(**options)).eval()
    folder = save(tmp_path / name, network, tokenizer)
    random = Random(0)
    prompts = [[random.randrange(10, len(tokenizer)) for _ in range(length)] for length in LENGTHS]
    model, single = open_model(folder, max_batch=4, prefill_tokens=64), open_model(folder, max_batch=1, prefix_tokens=0)
    if name == "lfm2" and transformers.__version__ < "5":
        with pytest.raises(ProviderError, match="keeps a state other than keys and values, which transformers 4"):
            await model.generate_ids(prompts[0], GREEDY)
        return

    async def later(number: int, prompt: list[int]) -> Any:
        await asyncio.sleep(0.005 * number)
        return await model.generate_ids(prompt, GREEDY)

    samples = await asyncio.gather(*(later(number, prompt) for number, prompt in enumerate(prompts)))
    for prompt, sample in zip(prompts, samples, strict=True):
        assert sample.token_ids == (await single.generate_ids(prompt, GREEDY)).token_ids
        ids = torch.tensor([prompt])
        with torch.no_grad():
            generated = network.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=24, do_sample=False)
            whole = torch.tensor([[*prompt, *sample.token_ids]])
            plain = network(whole).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
        assert list(sample.token_ids) == generated[0, len(prompt) :].tolist()
        expected = plain.gather(-1, whole[0, len(prompt) :, None])[:, 0].tolist()
        assert sample.logprobs == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow
async def test_a_seed_gives_the_same_tokens_in_any_company(open_model: Open, rambler: Path) -> None:
    model = open_model(rambler, max_batch=16, prefix_tokens=0)
    random = Random(3)
    asked = [
        ask(
            "x" * random.randrange(1, 60),
            temperature=random.choice([0.5, 1.0, 1.7]),
            top_p=random.choice([1.0, 0.8]),
            seed=seed,
            max_tokens=random.randrange(5, 40),
        )
        for seed in range(16)
    ]
    single = [(await model.chat(request)).extra["token_ids"] for request in asked]
    for _ in range(3):
        order = random.sample(range(16), 16)
        together = await asyncio.gather(*(model.chat(asked[i]) for i in order))
        assert {i: reply.extra["token_ids"] for i, reply in zip(order, together, strict=True)} == dict(
            enumerate(single)
        )


async def test_another_seed_gives_other_tokens_and_no_seed_a_new_one_each_time(open_model: Open, rambler: Path) -> None:
    model = open_model(rambler)
    texts = {(await model.chat(ask("a", temperature=1.0, seed=seed, max_tokens=20))).text for seed in range(4)}
    assert len(texts) == 4
    free = [await model.chat(ask("a", temperature=1.0, max_tokens=20)) for _ in range(3)]
    assert len({reply.text for reply in free}) == 3
    again = await model.chat(ask("a", temperature=1.0, max_tokens=20, seed=free[0].extra["seed"]))
    assert again.text == free[0].text


async def test_generate_ids_ignores_the_models_defaults(open_model: Open, rambler: Path) -> None:
    cautious = open_model(rambler, temperature=0.0, top_k=1, top_p=0.1)
    free = open_model(rambler)
    sampling = Sampling(seed=5, max_tokens=20)
    assert (await cautious.generate_ids([20, 30], sampling)).token_ids == (
        await free.generate_ids([20, 30], sampling.with_(temperature=1.0))
    ).token_ids
    greedy = await cautious.chat(ask("a", temperature=None, max_tokens=10))
    assert greedy.text == (await free.chat(ask("a", max_tokens=10))).text


async def test_generate_ids_honours_stop_texts_and_refuses_what_is_no_prompt(open_model: Open, scripted: Path) -> None:
    model = open_model(scripted)
    codec_ids = (await model.chat(ask("Count from one to thirty in English words.", logprobs=True))).prompt_token_ids
    assert codec_ids is not None
    sample = await model.generate_ids(codec_ids, Sampling(temperature=0.0, stop=("three",)))
    assert sample.finish_reason == "stop"
    assert len(sample.token_ids) == len(sample.logprobs) < 20
    assert sample.prompt_ids == codec_ids
    with pytest.raises(ProviderError, match="the prompt is empty"):
        await model.generate_ids([])
    with pytest.raises(ProviderError, match="has the token id 9999; expected ids from 0 to 423"):
        await model.generate_ids([3, 9999])


async def test_of_a_batch_without_memory_the_youngest_row_leaves_and_the_others_go_on(
    open_model: Open, rambler: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from concertino_local.sampling import Network

    step = Network.step
    failing = True

    def crowded(self: Network, tokens: Any, *others: Any) -> Any:
        nonlocal failing
        logits = step(self, tokens, *others)
        if failing and len(tokens) > 2:  # after the cache was written, as in real life
            failing = False
            raise torch.OutOfMemoryError("no room")
        return logits

    model = open_model(rambler, prefix_tokens=0)
    expected = [(await model.chat(ask(text, max_tokens=40))).extra["token_ids"] for text in "ab"]
    monkeypatch.setattr(Network, "step", crowded)
    older = [asyncio.ensure_future(model.chat(ask(text, max_tokens=40))) for text in "ab"]
    await until(lambda: model.stats.running == 2)
    with pytest.raises(ProviderError, match=r"out of memory with 3 requests under way .* lower max_batch") as caught:
        await model.chat(ask("c", max_tokens=40))
    assert caught.value.failure is FailureClass.THROTTLED
    assert [reply.extra["token_ids"] for reply in await asyncio.gather(*older)] == expected


async def test_a_request_that_is_too_large_even_alone_is_never_repeated(
    open_model: Open, rambler: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from concertino_local.sampling import Network

    def full(self: Network, *_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError("no room")

    model = open_model(rambler)
    with monkeypatch.context() as patch:
        patch.setattr(Network, "_forward", full)
        with pytest.raises(ProviderError, match="out of memory") as caught:
            await model.chat(ask("a", max_tokens=5))
    assert caught.value.failure is FailureClass.CALLER
    assert (await model.chat(ask("a", max_tokens=5))).usage.output_tokens == 5


async def test_a_bug_of_the_network_fails_its_batch_and_nothing_after_it(
    open_model: Open, rambler: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from concertino_local.sampling import Network

    def broken(self: Network, *_: Any) -> Any:
        raise IndexError("off by one")

    model = open_model(rambler)
    with monkeypatch.context() as patch:
        patch.setattr(Network, "step", broken)
        asked = [ask(text, max_tokens=5) for text in "abc"]
        failed = await asyncio.gather(*map(model.chat, asked), return_exceptions=True)
    assert [type(error) for error in failed] == [IndexError] * 3
    assert (await model.chat(ask("a", max_tokens=5))).usage.output_tokens == 5
    assert model.stats.failed == 3


async def test_weights_that_are_not_finite_are_said_to_be(open_model: Open, tmp_path: Path) -> None:
    import torch

    tokenizer = make_tokenizer()
    network = make_network(tokenizer)
    with torch.no_grad():
        network.model.norm.weight.fill_(float("nan"))
    model = open_model(save(tmp_path, network, tokenizer))
    with pytest.raises(FloatingPointError, match="logits are not finite"):
        await model.chat(ask("a"))


async def test_half_precision_generates_too(open_model: Open, rambler: Path) -> None:
    model = open_model(rambler, dtype="bfloat16")
    replies = await asyncio.gather(*(model.chat(ask(text, max_tokens=8, logprobs=True)) for text in ("a", "bcd efg")))
    assert [reply.usage.output_tokens for reply in replies] == [8, 8]
    assert all(value <= 0 for reply in replies for value in reply.logprobs or ())


async def test_a_sampled_turn_stands_in_the_next_prompt_token_by_token(open_model: Open, scripted: Path) -> None:
    from local_models import ADD_TOOL

    model = open_model(scripted)
    for text, tools in (("Add twice.", True), ("Think.", False), ("Write signs.", False), ("Break it.", True)):
        first = await model.chat(ask(text, tools=tools, logprobs=True))
        results = [Message("tool", "5", call_id=call.id) for call in first.tool_calls] or [Message("user", "Again.")]
        turns = [Message("user", text), Message.of(first), *results]
        second = await model.chat(ChatRequest(turns, [ADD_TOOL] if tools else [], Sampling(0.0, logprobs=True)))
        read = (*(first.prompt_token_ids or ()), *(first.token_ids or ()))
        assert (second.prompt_token_ids or ())[: len(read)] == read


async def test_tokens_that_no_tokenizer_would_choose_are_kept_in_the_next_prompt(
    open_model: Open, rambler: Path
) -> None:
    model, naive = open_model(rambler), open_model(rambler, history="template")
    drifted = 0
    for seed in range(30):
        first = await model.chat(ask("Say.", temperature=1.0, seed=seed, max_tokens=12, logprobs=True))
        turns = [Message("user", "Say."), Message.of(first), Message("user", "More.")]
        request = ChatRequest(turns, sampling=Sampling(0.0, max_tokens=1, logprobs=True))
        read = (*(first.prompt_token_ids or ()), *(first.token_ids or ()))
        second, third = await model.chat(request), await naive.chat(request)
        assert (second.prompt_token_ids or ())[: len(read)] == read
        drifted += (third.prompt_token_ids or ())[: len(read)] != read
    assert drifted > 20
