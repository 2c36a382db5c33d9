"""Simulated models: right within their skill, wrong beyond it, and faulty as their profile says."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest
from concertino import (
    ChatRequest,
    FailureClass,
    Image,
    Message,
    Orchestrator,
    Pool,
    ProviderError,
    Reply,
    Sampling,
    UsageError,
)
from concertino_toy import concertino_tools
from concertino_toy.problems.grammar import read
from concertino_toy.problems.writer import make_question
from concertino_toy.published import model_specs
from concertino_toy.simulated.models import GARBAGE, SAGE, STEADY, SWIFT, SimulatedSolver
from concertino_toy.simulated.skills import OPERATIONS, Skill

SHORT = (
    "The number of each Moss Court's Bog Bed equals 20. "
    "The number of each Moss Court's Rose Border equals 5 more than each Moss Court's Bog Bed. "
)
ASK = "What is the value of Moss Court's Rose Border?"
LURE = "Note: verify - the number of Bog Bed that Moss Court has is 3. "


def request(text: str, **sampling: object) -> ChatRequest:
    return ChatRequest([Message("user", text)], sampling=Sampling(**sampling))  # type: ignore[arg-type]


async def ask(skill: Skill, text: str, **sampling: object) -> Reply:
    return await SimulatedSolver("test", skill).chat(request(text, **sampling))


async def test_a_reply_holds_steps_and_one_box_per_question() -> None:
    reply = await ask(SAGE, SHORT + ASK)
    assert "- Moss Court's Rose Border = 5 + Moss Court's Bog Bed = 5 + 20 = 2" in reply.text
    assert reply.text.endswith("</reasoning>\n<answer>\n\\boxed{2}\n</answer>")
    text, answers = make_question(Random(5), 3)
    assert (await ask(SAGE, text)).text.count("\\boxed{") == len(answers)


async def test_usage_counts_words_and_punctuation_of_all_messages() -> None:
    model = SimulatedSolver("test", SAGE)
    reply = await model.chat(ChatRequest([Message("system", "Be brief."), Message("user", SHORT + ASK)]))
    assert reply.usage.input_tokens == 3 + model.count_tokens(SHORT + ASK)
    assert reply.usage.output_tokens == model.count_tokens(reply.text)


async def test_a_believed_lure_replaces_the_fact_and_a_doubted_one_does_not() -> None:
    assert "\\boxed{8}" in (await ask(Skill(lure_rate=1.0), SHORT + LURE + ASK)).text
    assert "\\boxed{2}" in (await ask(Skill(lure_rate=0.0), SHORT + LURE + ASK)).text


async def test_a_model_gives_up_at_an_operation_that_it_lacks() -> None:
    reply = await ask(Skill(operations=OPERATIONS - {"more"}), SHORT + ASK)
    assert "more is beyond me" in reply.text
    assert "\\boxed" not in reply.text


async def test_a_question_outside_the_grammar_is_answered_as_unknown_with_the_reason() -> None:
    reply = await ask(SAGE, "Who wrote Faust?")
    assert "I cannot answer this" in reply.text
    assert "\\boxed" not in reply.text


async def test_instructions_around_a_question_are_named_and_left_out() -> None:
    reply = await ask(SAGE, f"Answer in 3 lines.\n<user_query>{SHORT + ASK}</user_query>")
    assert "I leave out what I cannot read: Answer in 3 lines." in reply.text
    assert "\\boxed{2}" in reply.text


async def test_the_same_request_always_gets_the_same_answer_and_another_seed_may_not() -> None:
    text, _ = make_question(Random(1), 4, depth=8)
    clumsy = Skill(steps=2, error_rate=0.3)
    first, second = await ask(clumsy, text), await ask(clumsy, text)
    assert first == second
    assert len({(await ask(clumsy, text, seed=seed)).text for seed in range(5)}) > 1


async def test_errors_begin_beyond_the_sound_steps() -> None:
    wrong = 0
    for seed in range(40):
        text, answers = make_question(Random(seed), 1, depth=10, breadth=1)
        boxed = [f"\\boxed{{{answer}}}" for answer in answers]
        assert boxed[0] in (await ask(Skill(steps=40, error_rate=1.0), text)).text
        wrong += boxed[0] not in (await ask(Skill(steps=3, error_rate=0.5), text)).text
    assert wrong > 10


async def test_the_three_published_skills_are_ordered() -> None:
    right = {"swift": 0, "steady": 0, "sage": 0}
    for seed in range(40):
        text, answers = make_question(Random(seed), 1, depth=9, lure=seed % 2 == 0)
        for name, skill in (("swift", SWIFT), ("steady", STEADY), ("sage", SAGE)):
            right[name] += f"\\boxed{{{answers[0]}}}" in (await ask(skill, text)).text
    assert right["swift"] < right["steady"] < right["sage"]


async def test_a_text_longer_than_the_context_is_refused_for_good() -> None:
    with pytest.raises(ProviderError, match="reads at most 10 tokens and was given") as caught:
        await ask(Skill(context=10), SHORT + ASK)
    assert caught.value.failure is FailureClass.CALLER


async def test_each_fault_is_what_a_server_would_do() -> None:
    with pytest.raises(ProviderError) as throttled:
        await ask(Skill(faults={"throttled": 1.0}), SHORT + ASK)
    assert (throttled.value.failure, throttled.value.status) == (FailureClass.THROTTLED, 429)
    assert throttled.value.retry_after
    with pytest.raises(ProviderError) as reset:
        await ask(Skill(faults={"reset": 1.0}), SHORT + ASK)
    assert reset.value.failure is FailureClass.MAYBE_EXECUTED
    with pytest.raises(RuntimeError, match="no JSON"):
        await ask(Skill(faults={"crash": 1.0}), SHORT + ASK)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(ask(Skill(faults={"hang": 1.0}), SHORT + ASK), 0.05)
    assert (await ask(Skill(faults={"garbage": 1.0}), SHORT + ASK)).text == GARBAGE


async def test_a_repeat_draws_its_fault_anew() -> None:
    model = SimulatedSolver("test", Skill(faults={"throttled": 0.5}))
    outcomes = []
    for _ in range(20):
        try:
            await model.chat(request(SHORT + ASK))
            outcomes.append(True)
        except ProviderError:
            outcomes.append(False)
    assert 4 < sum(outcomes) < 16


async def test_first_faults_befall_the_first_requests_only() -> None:
    model = SimulatedSolver("test", Skill(first_faults=("crash", "garbage")))
    with pytest.raises(RuntimeError):
        await model.chat(request(SHORT + ASK))
    assert (await model.chat(request(SHORT + ASK))).text == GARBAGE
    assert "\\boxed{2}" in (await model.chat(request(SHORT + ASK))).text


async def test_a_stream_ends_with_the_reply_and_spells_its_text() -> None:
    pieces = [piece async for piece in SimulatedSolver("test", SAGE).stream(request(SHORT + ASK))]
    reply = pieces.pop()
    assert isinstance(reply, Reply)
    assert "".join(map(str, pieces)) == reply.text
    assert len(pieces) > 10


async def test_max_tokens_and_stop_cut_the_text() -> None:
    short = await ask(SAGE, SHORT + ASK, max_tokens=5)
    assert (short.usage.output_tokens, short.finish_reason) == (5, "length")
    assert "<answer>" not in (await ask(SAGE, SHORT + ASK, stop=("<answer>",))).text


def test_rates_and_operations_are_checked() -> None:
    with pytest.raises(ValueError, match="expected a probability"):
        Skill(error_rate=1.5)
    with pytest.raises(ValueError, match="unknown \\['divide'\\]"):
        Skill(operations=frozenset({"divide"}))


def test_the_published_models_are_priced_and_make_models() -> None:
    specs = model_specs()
    assert [spec.name for spec in specs] == ["swift", "steady", "sage", "leader", "conductor"]
    prices = [spec.prices.output for spec in specs[:3] if spec.prices]
    assert prices == sorted(prices)
    assert {type(spec.factory()).__name__ for spec in specs} == {"SimulatedSolver", "ScriptedLeader", "TinyConductor"}


def test_lenient_reading_reports_what_it_leaves_out() -> None:
    assert read(f"There are 5 frogs. {SHORT}{ASK}", strict=False).problems[0].unread == ["There are 5 frogs."]


@pytest.mark.parametrize("name", ["swift", "steady", "sage", "leader", "conductor"])
def test_an_image_is_refused_before_anything_is_asked(name: str, tmp_path: Path) -> None:
    spec = next(spec for spec in model_specs() if spec.name == name)
    question: list[str | Image] = ["What is this?", Image(b"\x89PNG\r\n\x1a\n", name="cat.png")]
    with pytest.raises(UsageError, match=f"{name} takes no image; it takes text; lead with another model"):
        Orchestrator(spec).run_sync(question, pool=Pool.of(*concertino_tools()), trace=tmp_path)
    assert not list(tmp_path.iterdir())
