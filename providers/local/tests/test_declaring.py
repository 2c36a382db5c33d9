"""Declaring and loading: what a wrong option or a wrong folder says, and that nothing is loaded before it is asked."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import concertino_local
import pytest
from concertino import FailureClass, Image, Model, Orchestrator, Pool, ProviderError, SpecError, UsageError, tool
from concertino.plugins import default_manager
from concertino_local import LocalModel
from concertino_local.folder import context_limit
from local_models import ask, make_network, make_tokenizer, save, until

Open = Callable[..., LocalModel]


def test_a_declared_model_says_what_its_folder_says(scripted: Path) -> None:
    spec = concertino_local.model("tiny", path=str(scripted), max_batch=3, max_tokens=99)
    assert (spec.name, spec.context, spec.concurrency, spec.max_tokens) == ("tiny", 1024, 3, 99)
    assert spec.prices is not None
    assert (spec.prices.input, spec.prices.output) == (0.0, 0.0)
    assert spec.options == {"path": str(scripted), "max_batch": 3, "max_tokens": 99}
    assert json.dumps(spec.to_json())
    assert "qwen3 model" in spec.description
    assert isinstance(spec.factory(), Model)
    assert concertino_local.model("tiny", path=str(scripted), context=100).context == 100
    assert not [thread for thread in threading.enumerate() if thread.name == "concertino-local"]


async def test_an_image_is_refused_before_anything_is_loaded(scripted: Path) -> None:
    @tool
    def look() -> str:
        """Look."""
        return ""

    spec = concertino_local.model("tiny", path=str(scripted))
    with pytest.raises(UsageError, match="tiny takes no image; it takes text"):
        await Orchestrator(spec).run(["What is this?", Image(b"x", media_type="image/png")], pool=Pool.of(look))
    assert not [thread for thread in threading.enumerate() if thread.name == "concertino-local"]


def test_a_pool_file_declares_a_model_by_the_hook(scripted: Path, tmp_path: Path) -> None:
    file = tmp_path / "pool.toml"
    file.write_text(
        f'members = []\n[roles]\nworker = "local/tiny"\n[models."local/tiny"]\npath = "{scripted}"\nmax_batch = 2\n'
    )
    pool = Pool.load(file)
    assert pool.model("worker").options == {"path": str(scripted), "max_batch": 2}
    direct = concertino_local.concertino_declare_model("tiny", {"path": str(scripted)})
    assert direct.options == {"path": str(scripted)}


def test_nothing_is_published_without_a_declaration() -> None:
    assert default_manager().load("local").members == ()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "option 'path' is missing"),
        ({"max_bach": 3}, "unknown option 'max_bach'; did you mean 'max_batch'?"),
        ({"api_key": "x"}, "unknown option 'api_key'; there are path, device"),
        ({"max_batch": 0}, "max_batch=0; expected a whole number >= 1"),
        ({"max_batch": True}, "max_batch=True; expected a whole number"),
        ({"threads": "four"}, "threads='four'; expected a whole number >= 1"),
        ({"device": "gpu"}, "device='gpu'; expected 'auto', 'cpu', 'cuda'"),
        ({"dtype": "int8"}, "dtype='int8'; expected one of 'auto', 'float32'"),
        ({"top_p": 0}, "top_p=0; expected a number > 0 and <= 1"),
        ({"temperature": float("inf")}, "temperature=inf; expected a number >= 0"),
        ({"reply_format": "xml"}, "reply_format='xml'; expected one of"),
        ({"template_options": "x"}, "template_options='x'; expected a table"),
        ({"path": "./nowhere"}, "path='./nowhere'; folder not found"),
        ({"path": "a/b/c"}, "path='a/b/c'; folder not found"),
        ({"template": "nowhere.jinja"}, "template='nowhere.jinja'; file or folder not found"),
        ({"adapter": "nowhere"}, "adapter='nowhere'; file or folder not found"),
    ],
)
def test_a_wrong_option_is_named_with_what_is_expected(options: dict[str, Any], reason: str, scripted: Path) -> None:
    given = options if "path" in options or not options else {"path": str(scripted), **options}
    with pytest.raises(SpecError, match=r"^model 'tiny': ") as caught:
        concertino_local.model("tiny", **given)
    assert reason in str(caught.value)


def test_a_folder_that_holds_no_model_is_refused_when_it_is_declared(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"has no config.json, so it holds no model .* adapter"):
        concertino_local.model("tiny", path=str(tmp_path))
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(SpecError, match=r"its config.json is not valid JSON"):
        concertino_local.model("tiny", path=str(tmp_path))


def test_options_that_say_nothing_are_the_defaults(scripted: Path) -> None:
    spec = concertino_local.model("tiny", path=str(scripted), threads=None, temperature=None, context=None)
    assert spec.context == 1024


@pytest.mark.parametrize(
    ("config", "context"),
    [
        ({"max_position_embeddings": 512}, 512),
        ({"text_config": {"max_position_embeddings": 256}}, 256),
        ({"n_positions": 128}, 128),
        (
            {
                "max_position_embeddings": 8192,
                "original_max_position_embeddings": 1024,
                "rope_scaling": {"type": "longrope"},
            },
            1024,
        ),
        ({"max_position_embeddings": 8192, "rope_scaling": None}, 8192),
        ({}, None),
    ],
)
def test_the_context_is_read_from_the_config(config: dict[str, Any], context: int | None) -> None:
    assert context_limit(config) == context


async def refusal(model: LocalModel) -> str:
    """What a model that cannot be loaded says, again and again, without a thread left behind."""
    texts = set()
    for _ in range(2):
        with pytest.raises(ProviderError) as caught:
            await asyncio.wait_for(model.chat(ask("a")), 30)
        assert caught.value.failure is FailureClass.CALLER
        texts.add(str(caught.value))
    await until(lambda: "concertino-local" not in {thread.name for thread in threading.enumerate()})
    (text,) = texts
    return text


async def test_a_hub_name_that_is_not_cached_is_not_downloaded(open_model: Open) -> None:
    text = await refusal(open_model(Path("somebody/some-model")))
    assert "neither a folder nor a model in the local Hugging Face cache" in text
    assert "`hf download somebody/some-model`" in text


async def test_a_cached_hub_name_is_found(
    open_model: Open, rambler: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    repository = tmp_path / "models--somebody--tiny"
    snapshot = repository / "snapshots" / ("a" * 40)
    snapshot.parent.mkdir(parents=True)
    snapshot.symlink_to(rambler)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("a" * 40)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    reply = await open_model(Path("somebody/tiny")).chat(ask("a", max_tokens=3))
    assert reply.usage.output_tokens == 3


async def test_a_folder_without_weights_or_tokenizer_says_so(open_model: Open, rambler: Path, tmp_path: Path) -> None:
    for name in ("model.safetensors", "tokenizer.json"):
        folder = tmp_path / name
        folder.mkdir()
        left_out = (name, "tokenizer_config.json" if name == "tokenizer.json" else "")
        for file in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
            if file not in left_out:
                (folder / file).symlink_to(rambler / file)
        text = await refusal(open_model(folder))
        assert (
            "cannot load it as a causal LM" if name == "model.safetensors" else "tokenizer cannot be loaded"
        ) in text


async def test_a_missing_torch_is_named_with_the_command_that_adds_it(
    open_model: Open, rambler: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "torch" else find(name, *a))
    assert "local models need torch, which this Python does not have; `pip install torch`" in await refusal(
        open_model(rambler)
    )


async def test_a_device_that_is_not_there_is_named(open_model: Open, rambler: Path) -> None:
    import torch

    if torch.cuda.device_count() > 63:
        pytest.skip("this machine has 64 GPUs")
    assert "device='cuda:63' cannot be used here" in await refusal(open_model(rambler, device="cuda:63"))


async def test_too_little_memory_to_load_is_said_with_what_to_do(
    open_model: Open, rambler: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    def full(*_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError("tried to allocate 14 GiB")

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", full)
    text = await refusal(open_model(rambler))
    assert "not enough memory on cpu to load it (tried to allocate 14 GiB)" in text
    assert "dtype='bfloat16'" in text


async def test_a_model_that_could_not_be_loaded_is_tried_again(
    open_model: Open, rambler: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from concertino_local import loading

    model = open_model(rambler)
    with monkeypatch.context() as patch:
        patch.setattr(loading, "load_network", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await model.chat(ask("a"))
    assert (await model.chat(ask("a", max_tokens=2))).usage.output_tokens == 2


async def test_the_generation_config_gives_the_defaults_of_sampling(open_model: Open, tmp_path: Path) -> None:
    tokenizer = make_tokenizer(ends=False)
    network = make_network(tokenizer, seed=7)
    network.generation_config.do_sample = True
    network.generation_config.temperature = 0.9
    network.generation_config.top_k = 1
    folder = save(tmp_path, network, tokenizer)
    request = ask("a", temperature=None, max_tokens=12)
    greedy = (await open_model(folder).chat(ask("a", max_tokens=12))).text
    assert (await open_model(folder).chat(request)).text == greedy
    assert (await open_model(folder, top_k=0).chat(request)).text != greedy
