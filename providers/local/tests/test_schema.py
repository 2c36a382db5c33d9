"""Structured replies: enforced where llguidance is installed, asked for in words elsewhere."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from concertino import ChatRequest
from concertino_local import LocalModel
from local_models import ask, make_network, make_tokenizer, save

Open = Callable[..., LocalModel]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 5}, "size": {"enum": ["small", "large"]}},
    "required": ["city", "size"],
    "additionalProperties": False,
}


def structured(schema: Any = SCHEMA, **sampling: Any) -> ChatRequest:
    return replace(ask("Describe it.", **sampling), schema=schema)


@pytest.fixture
def untaught(tmp_path: Path) -> Path:
    """A random model, which left alone writes no JSON."""
    tokenizer = make_tokenizer()
    return save(tmp_path, make_network(tokenizer, seed=5), tokenizer)


async def test_even_a_random_model_satisfies_the_schema(open_model: Open, untaught: Path) -> None:
    pytest.importorskip("llguidance", reason="llguidance is not installed; `pip install -e providers/local[schema]`")
    model = open_model(untaught)
    for seed in range(8):
        request = structured(temperature=1.0, seed=seed, max_tokens=120, logprobs=True)
        reply = await model.chat(request)
        jsonschema.validate(json.loads(reply.text), SCHEMA)
        assert reply.finish_reason == "stop"
        pieces = [piece async for piece in model.stream(request)]
        assert "".join(map(str, pieces[:-1])) == reply.text
    free = await model.chat(ask("Describe it.", temperature=1.0, seed=0, max_tokens=120))
    with pytest.raises(ValueError):
        json.loads(free.text)


async def test_a_schema_binds_its_own_row_alone(open_model: Open, untaught: Path) -> None:
    pytest.importorskip("llguidance", reason="llguidance is not installed; `pip install -e providers/local[schema]`")
    import asyncio

    model = open_model(untaught, prefix_tokens=0)
    free = ask("b", temperature=1.0, seed=1, max_tokens=40)
    expected = (await model.chat(free)).text
    held, beside = await asyncio.gather(model.chat(structured(temperature=1.0, seed=2)), model.chat(free))
    jsonschema.validate(json.loads(held.text), SCHEMA)
    assert beside.text == expected


async def test_reasoning_before_the_value_is_free(open_model: Open, untaught: Path, tmp_path: Path) -> None:
    pytest.importorskip("llguidance", reason="llguidance is not installed; `pip install -e providers/local[schema]`")
    file = tmp_path / "thinking.jinja"
    file.write_text("{{ messages[-1].content }}<|im_start|>assistant\n<think>\n")
    model = open_model(untaught, template=str(file))
    for seed in range(40):
        reply = await model.chat(structured(temperature=2.0, seed=seed, max_tokens=900))
        if reply.finish_reason == "stop" and reply.text:
            jsonschema.validate(json.loads(reply.text), SCHEMA)
            assert reply.reasoning
            return
    pytest.fail("in 40 replies, the model never ended its reasoning")


async def test_a_schema_beyond_the_grammar_is_left_to_the_instruction(open_model: Open, scripted: Path) -> None:
    schema = {"not": {"type": "string"}, "patternProperties": {"(?=a)b": {}}}
    reply = await open_model(scripted).chat(replace(ask("Colour as JSON.", max_tokens=30), schema=schema))
    assert reply.text


async def test_without_llguidance_the_schema_is_asked_for_in_words(
    open_model: Open, untaught: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "llguidance" else find(name, *a))
    model = open_model(untaught)
    reply = await model.chat(structured(temperature=1.0, seed=0, max_tokens=30, logprobs=True))
    plain = await model.chat(ask("Describe it.", temperature=1.0, seed=0, max_tokens=30))
    assert reply.usage.input_tokens > plain.usage.input_tokens + 30
    with pytest.raises(ValueError):
        json.loads(reply.text)
