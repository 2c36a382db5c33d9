"""Models that are served alone, and the one that answers what chat pages ask beside the conversation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.core.errors import UsageError
from concertino_serve.serve_settings import Preset, ServeSettings, read_serve_settings
from concertino_serve.side_prompts import is_side_prompt

from .serving_here import Counter, Scripted, calls_then, pool_of, served

TITLE = """### Task:
Name this talk in a few words.

### Output:
JSON format: { "title": "..." }

### Chat History:
<chat_history>
USER: What does a kilo of kiwis cost?
ASSISTANT: $4
</chat_history>"""
REAL_QUESTIONS: list[Any] = [
    [{"role": "user", "content": "Write a title for this talk."}],
    [{"role": "user", "content": "### Task:\nAnswer with the context.\n<context>x</context>\n\nWhat is x?"}],
    [{"role": "user", "content": f"What does this prompt do?\n\n{TITLE}"}],
    [{"role": "user", "content": f"{TITLE}\n\nWhat does this prompt do?"}],
    [{"role": "user", "content": "### Task:\nfix my code\n</chat_history>"}],
    [{"role": "system", "content": "Be kind."}, {"role": "user", "content": TITLE}],
    [{"role": "user", "content": [{"type": "text", "text": TITLE}]}],
    [{"role": "assistant", "content": "x"}, {"role": "user", "content": TITLE}],
    [{"role": "user", "content": TITLE}, {"role": "assistant", "content": "x"}, {"role": "user", "content": "Why?"}],
]


def test_a_side_prompt_is_known_by_its_whole_form_or_by_its_name() -> None:
    assert is_side_prompt({"messages": [{"role": "user", "content": TITLE}]})
    assert is_side_prompt({"messages": REAL_QUESTIONS[0], "metadata": {"task": "title_generation"}})


@pytest.mark.parametrize("messages", REAL_QUESTIONS)
def test_no_question_of_a_user_is_taken_for_a_side_prompt(messages: Any) -> None:
    assert not is_side_prompt({"messages": messages, "metadata": {"task": "homework"}})
    assert not is_side_prompt({"messages": [{"role": "user", "content": TITLE}], "tools": [{"type": "function"}]})


def two_models(folder: Path, counter: Counter) -> tuple[ServeSettings, Scripted, Scripted]:
    lead, small = Scripted(calls_then("A kilo costs $4.")), Scripted(lambda _: '{"title": "Kiwis"}')
    pool = pool_of(lead, counter).adding(ct.ModelSpec("m/small", lambda: small, prices=ct.Prices(0.1, 1.0)))
    helper = Preset("helper", pool, strategy=ct.ParallelRounds(), instructions="Speak like a gardener.")
    helper = replace(helper, side=helper.alone("m/small"))
    return ServeSettings({"helper": helper, "m/small": helper.alone("m/small")}, traces=folder), lead, small


async def test_a_title_costs_one_request_to_the_side_model(tmp_path: Path) -> None:
    counter = Counter()
    settings, lead, small = two_models(tmp_path, counter)
    async with served(settings) as here, here.client() as client:
        asked: Any = [{"role": "user", "content": TITLE}]
        got = await client.chat.completions.create(model="helper", messages=asked)
        named = await client.chat.completions.create(
            model="helper", messages=REAL_QUESTIONS[0], metadata={"task": "tags_generation"}
        )
        assert (lead.asked, small.asked, counter.calls) == (0, 2, 0)
        whole = await client.chat.completions.create(model="helper", messages=REAL_QUESTIONS[0])
    assert got.choices[0].message.content == named.choices[0].message.content == '{"title": "Kiwis"}'
    assert got.model == "helper"
    assert whole.choices[0].message.content == "A kilo costs $4."
    assert (lead.asked, small.asked, counter.calls) == (2, 2, 1)


async def test_without_a_side_model_a_title_is_a_question_like_any_other(tmp_path: Path) -> None:
    counter = Counter()
    settings, lead, small = two_models(tmp_path, counter)
    helper = replace(settings.presets["helper"], side=None)
    async with served(replace(settings, presets={"helper": helper})) as here, here.client() as client:
        await client.chat.completions.create(model="helper", messages=[{"role": "user", "content": TITLE}])
    assert (lead.asked, small.asked) == (2, 0)


async def test_a_model_that_is_served_alone_answers_without_calls(tmp_path: Path) -> None:
    settings, lead, small = two_models(tmp_path, Counter())
    async with served(settings) as here, here.client() as client:
        assert [model.id async for model in await client.models.list()] == ["helper", "m/small"]
        got = await client.responses.create(model="m/small", input="Name this.")
        stream = await client.chat.completions.create(
            model="m/small", messages=[{"role": "user", "content": "Name this."}], stream=True
        )
        pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
    assert got.output_text == "".join(pieces) == '{"title": "Kiwis"}'
    assert len([piece for piece in pieces if piece]) > 1
    assert [item.type for item in got.output] == ["message"]
    assert (lead.asked, small.asked) == (0, 2)


POOL = 'members = ["toy/*"]\n[roles]\norchestrator = "toy/leader"\n'


def settings_of_text(folder: Path, text: str) -> ServeSettings:
    (folder / "pool.toml").write_text(POOL)
    (folder / "serve.toml").write_text(f'[presets.helper]\npool = "pool.toml"\nbudget = "usd=0.5"\n{text}')
    return read_serve_settings(folder / "serve.toml")


def test_settings_name_models_that_are_served_alone_and_the_side_model(tmp_path: Path) -> None:
    read = settings_of_text(tmp_path, 'members = ["toy/leader"]\nside_model = "toy/leader"\n')
    assert list(read.presets) == ["helper", "toy/leader"]
    alone = read.presets["toy/leader"]
    assert (alone.budget, alone.pool.actions) == (ct.Budget(usd=0.5), ())
    assert read.presets["helper"].side == replace(alone, side=None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('members = ["none/such"]\n', "presets.helper: members"),
        ('members = ["toy/leader", "toy/leader"]\n', "'toy/leader' is served already"),
        ("members = 3\n", "expected a list of texts"),
        ('side_model = "none/such"\n', "presets.helper: side_model"),
    ],
)
def test_models_that_are_not_there_are_refused_with_their_place(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises((UsageError, ct.PoolError), match=said):
        settings_of_text(tmp_path, text)
