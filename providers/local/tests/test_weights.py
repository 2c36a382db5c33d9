"""New weights in memory: all or nothing, between batches, and nothing of the old ones is left."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from concertino import ProviderError
from concertino_local import LocalModel
from concertino_local.sampling.prefixes import PrefixCache
from local_models import ask, make_network, save, until

Open = Callable[..., LocalModel]
LONG = ask("word " * 40, max_tokens=12, logprobs=True)


@pytest.fixture
def other(tmp_path: Path) -> tuple[Path, Any]:
    """Other weights of the rambler's shape: a folder and the network."""
    from local_models import make_tokenizer

    tokenizer = make_tokenizer(ends=False)
    network = make_network(tokenizer, seed=8)
    return save(tmp_path / "other", network, tokenizer), network


@pytest.mark.parametrize("given_as", ["folder", "state dict"])
async def test_replaced_weights_answer_like_a_cold_load_of_them(
    given_as: str, open_model: Open, rambler: Path, other: tuple[Path, Any]
) -> None:
    folder, network = other
    model, cold = open_model(rambler), open_model(folder)
    before = await model.chat(LONG)
    assert len(before.prompt_token_ids or ()) > 64
    version = await model.load_weights(folder if given_as == "folder" else network.state_dict(), version="step-10")
    after, truth = await model.chat(LONG), await cold.chat(LONG)
    assert after.text == truth.text != before.text
    assert sum(after.logprobs or ()) == pytest.approx(sum(truth.logprobs or ()), abs=1e-6)
    assert after.usage.cached_tokens == 0
    assert (before.extra["weights"], after.extra["weights"], version) == ("0", "step-10", "step-10")
    assert model.stats.weights == "step-10"
    warm = await model.chat(LONG)
    assert warm.usage.cached_tokens > 64
    assert sum(warm.logprobs or ()) == pytest.approx(sum(truth.logprobs or ()), abs=1e-4)


async def test_without_dropping_the_cache_the_old_weights_would_speak_on(
    open_model: Open, rambler: Path, other: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check above can fail: it does when the cache is kept."""
    folder, network = other
    model, cold = open_model(rambler), open_model(folder)
    await model.chat(LONG)
    monkeypatch.setattr(PrefixCache, "clear", lambda self: None)
    await model.load_weights(network.state_dict())
    after, truth = await model.chat(LONG), await cold.chat(LONG)
    assert after.usage.cached_tokens > 64
    assert abs(sum(after.logprobs or ()) - sum(truth.logprobs or ())) > 1e-3


async def test_what_is_under_way_ends_with_the_old_weights_and_what_comes_later_has_the_new(
    open_model: Open, rambler: Path, other: tuple[Path, Any]
) -> None:
    folder, network = other
    model, cold = open_model(rambler, max_batch=2), open_model(folder)
    request = ask("a", max_tokens=80, logprobs=True)
    old = await model.chat(request)
    early = [asyncio.ensure_future(model.chat(request)) for _ in range(3)]
    await until(lambda: model.stats.running == 2)
    swap = asyncio.ensure_future(model.load_weights(network.state_dict()))
    await asyncio.sleep(0)
    late = [asyncio.ensure_future(model.chat(request)) for _ in range(3)]
    assert await swap == "1"
    new = await cold.chat(request)
    assert [(r.extra["weights"], r.token_ids) for r in await asyncio.gather(*early)] == [("0", old.token_ids)] * 3
    assert [(r.extra["weights"], r.token_ids) for r in await asyncio.gather(*late)] == [("1", new.token_ids)] * 3
    assert await model.load_weights(network.state_dict()) == "2"


async def test_a_later_change_of_the_given_tensors_does_not_reach_the_model(
    open_model: Open, rambler: Path, other: tuple[Path, Any]
) -> None:
    import torch

    _, network = other
    model = open_model(rambler)
    await model.load_weights(network.state_dict())
    before = await model.chat(LONG)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
    assert (await model.chat(LONG)).token_ids == before.token_ids


async def test_weights_that_do_not_fit_change_nothing(
    open_model: Open, rambler: Path, other: tuple[Path, Any], tmp_path: Path
) -> None:
    _, network = other
    model = open_model(rambler)
    before = await model.chat(LONG)
    state = network.state_dict()
    norm = "model.norm.weight"
    wrong: list[tuple[Any, str]] = [
        ({**state, "model.norms.weight": state[norm]}, f"'model.norms.weight', which the model lacks; .* '{norm}'"),
        ({**state, norm: state[norm][:5]}, rf"'{norm}' in the shape \(5,\); expected \(64,\)"),
        ({name: tensor for name, tensor in state.items() if name != norm}, f"lacks 1 of 25 tensors, '{norm}' among"),
        (tmp_path / "nowhere", "folder not found"),
    ]
    for weights, reason in wrong:
        with pytest.raises(ProviderError, match=reason):
            await model.load_weights(weights)
    after = await model.chat(LONG)
    assert (after.token_ids, after.extra["weights"]) == (before.token_ids, "0")


async def test_tied_weights_may_be_given_once(open_model: Open, rambler: Path, other: tuple[Path, Any]) -> None:
    folder, network = other
    state = {name: tensor for name, tensor in network.state_dict().items() if name != "lm_head.weight"}
    model, cold = open_model(rambler), open_model(folder)
    await model.load_weights(state)
    assert (await model.chat(LONG)).text == (await cold.chat(LONG)).text


async def test_a_model_of_another_shape_is_refused(open_model: Open, rambler: Path, tmp_path: Path) -> None:
    from local_models import make_tokenizer

    tokenizer = make_tokenizer(ends=False)
    wider = save(tmp_path / "wider", make_network(tokenizer, intermediate_size=256), tokenizer)
    with pytest.raises(ProviderError, match=r"in the shape .* expected"):
        await open_model(rambler).load_weights(wider)


async def test_without_peft_an_adapter_is_refused_with_the_way_to_get_it(
    open_model: Open, rambler: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "peft" else find(name, *a))
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(ProviderError, match=r"needs peft; `pip install concertino-local\[lora\]` adds it"):
        await open_model(rambler, adapter=str(tmp_path)).chat(LONG)
    with pytest.raises(ProviderError, match="needs peft"):
        await open_model(rambler).load_weights(tmp_path)


def make_adapter(base: Path, folder: Path, seed: int) -> tuple[Path, Any]:
    """A random LoRA adapter: its folder, and the base with the adapter merged into it."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(seed)
    network = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    wrapped = get_peft_model(network, LoraConfig(r=4, target_modules=["q_proj", "v_proj", "down_proj"]))
    with torch.no_grad():
        for name, parameter in wrapped.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.3)
    wrapped.save_pretrained(folder)
    return folder, wrapped.merge_and_unload()


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")
async def test_adapters_come_and_go_and_equal_merged_weights(open_model: Open, rambler: Path, tmp_path: Path) -> None:
    pytest.importorskip("peft", reason="peft is not installed; `pip install -e providers/local[lora]` adds it")
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(rambler)
    adapters = [make_adapter(rambler, tmp_path / f"lora{seed}", seed) for seed in (1, 2)]
    truths = []
    for number, (_, merged) in enumerate(adapters):
        cold = open_model(save(tmp_path / f"merged{number}", merged, tokenizer))
        truths.append(await cold.chat(LONG))
    model = open_model(rambler, adapter=str(adapters[0][0]))
    plain = await open_model(rambler).chat(LONG)
    replies = [await model.chat(LONG)]
    await model.load_weights(adapters[1][0])
    replies.append(await model.chat(LONG))
    for reply, truth in zip(replies, truths, strict=True):
        assert reply.token_ids == truth.token_ids
        assert reply.logprobs == pytest.approx(truth.logprobs, abs=1e-4)
    assert len({plain.text, *(truth.text for truth in truths)}) == 3
    await model.load_weights(rambler)
    assert (await model.chat(LONG)).token_ids == plain.token_ids
    await model.load_weights(adapters[1][0])
    await model.load_weights(adapters[0][1].state_dict())
    assert (await model.chat(LONG)).token_ids == truths[0].token_ids
