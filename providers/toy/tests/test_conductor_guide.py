"""Guided decoding: what may follow, and that nothing else is written."""

from __future__ import annotations

import asyncio
import re

import concertino as ct
import numpy as np
import pytest
from concertino.core.events import Replied
from concertino_toy.conductor import TINY, TinyConductor, strategy
from concertino_toy.conductor.guide import Guide, continuations, is_full, offers_in
from concertino_toy.conductor.tokenizer import BytePairTokenizer

PROMPT = """Answer by calls, at most 4 a round, 12 rounds; end with final_answer.
Arguments and answer can quote ${question}, its paragraph ${question.2}, result ${1.2}; $${ is a plain ${.
ask_tall-6b_old(task): Asks (somebody), at length. $2/$2 per M
ask_tall-70b_old(task): Asks somebody.
solve(subtask, model=small|large?, tags[], steps?): Solves.
today()"""
OFFERS = offers_in(PROMPT)
CALL = '<reasoning>ask 1</reasoning>\n<tool_call>{"name": "'


def test_members_are_read_from_the_lines_of_the_prompt_alone() -> None:
    assert list(OFFERS) == ["final_answer", "ask_tall-6b_old", "ask_tall-70b_old", "solve", "today"]
    assert dict(OFFERS["solve"].choices) == {"subtask": (), "model": ("small", "large"), "tags": (), "steps": ()}
    assert OFFERS["solve"].required == {"subtask", "tags"}
    assert OFFERS["today"].choices == {}


def test_a_round_ends_with_the_last_call_that_it_may_have() -> None:
    one = CALL + 'today", "arguments": {}}</tool_call>'
    assert [is_full(text, 2) for text in ("", one, one + "\n", one * 2, one * 2 + "\n", one * 2 + "<")] == [
        False,
        False,
        False,
        True,
        True,
        False,
    ]
    assert not is_full(one * 9, None)
    tokenizer = TinyConductor(TINY).tokenizer
    guide = Guide([ct.Message("system", PROMPT.replace("at most 4", "at most 1"))], tokenizer)
    assert guide.allowed(one) == [tokenizer.end]
    assert Guide([ct.Message("system", PROMPT)], tokenizer).allowed(one) == []


def test_no_more_problems_are_named_than_a_round_may_ask() -> None:
    tokenizer = TinyConductor(TINY).tokenizer
    guide = Guide([ct.Message("system", PROMPT.replace("at most 4", "at most 2"))], tokenizer)
    for begin in ("<reasoning>ask", "<reasoning>1: 14, 2: ?1; ask"):
        assert guide.allowed(f"{begin} 1") == []
        follows = [tokenizer.raw([token]) for token in guide.allowed(f"{begin} 1 2")]
        assert follows
        assert all(each.startswith(b"</reasoning>") or b"</reasoning>".startswith(each) for each in follows)


def test_a_token_that_ends_the_last_call_and_begins_another_one_only_ends_it() -> None:
    tokenizer = TinyConductor(TINY).tokenizer
    guide = Guide([ct.Message("system", PROMPT.replace("at most 4", "at most 1"))], tokenizer)
    begun = CALL + 'ask_tall-6b_old", "arguments": {"task": "${question.1'
    (both,) = tokenizer.ids('}"}}</tool_call>\n<tool_call>{"name": "')[:1]
    assert tokenizer.raw([both]).endswith(b'\n<tool_call>{"name": "')
    (ends,) = tokenizer.ids('}"}}</tool_call>')
    logits = np.zeros(len(tokenizer.ids("")) + 1 + max(both, ends), np.float32)
    logits[both] = 9.0
    steered = guide.steered(begun, logits)
    assert steered[both] == -np.inf
    assert steered[ends] == pytest.approx(np.logaddexp(9.0, 0.0))
    free = Guide([ct.Message("system", PROMPT)], tokenizer)
    assert free.steered(begun, logits) is logits


def followed(guide: Guide, tokenizer: BytePairTokenizer, text: str) -> set[str]:
    return {tokenizer.raw([token]).decode(errors="replace") for token in guide.allowed(text)}


def test_an_answer_is_a_number_that_a_reply_holds() -> None:
    tokenizer = TinyConductor(TINY).tokenizer
    told = ["1.1 OK 3.5 kg, so the answer is 399.", "1.2 OK 1,250 in all, not -7"]
    messages = [
        ct.Message("system", PROMPT),
        ct.Message("user", "Which of 81 is it?"),
        ct.Message("user", "\n".join(told)),
    ]
    guide = Guide(messages, tokenizer)
    for text in ("<reasoning>1: 39", "<reasoning>2: 7, 1: 39", "<answer>1: \\boxed{39"):
        assert all(each.startswith("9") for each in followed(guide, tokenizer, text)), text
    assert not any(each.startswith(".") for each in followed(guide, tokenizer, "<reasoning>1: 399"))
    begins = {each[:1] for each in followed(guide, tokenizer, "<reasoning>1: ")}
    assert {"3", "1", "-", "?"} <= begins
    assert "8" not in begins  # the number stands in the question, not in a reply
    assert guide.allowed("<reasoning>1: 399, 2: 1,250; ") == []


def test_before_any_reply_nothing_is_said_of_answers() -> None:
    tokenizer = TinyConductor(TINY).tokenizer
    guide = Guide([ct.Message("system", PROMPT), ct.Message("user", "Which?")], tokenizer)
    assert guide.allowed("<reasoning>1: ") == []


def test_a_turn_that_asks_calls_a_member_and_one_that_is_done_answers() -> None:
    tokenizer = TinyConductor(TINY).tokenizer
    guide = Guide([ct.Message("system", PROMPT)], tokenizer)
    asks, done = CALL, CALL.replace("ask 1", "1: 14; done")
    assert "final_answer" not in guide.names(asks)
    assert "ask_tall-6b_old" in guide.names(asks)
    assert guide.names(done) == []  # nothing to choose: only one name may follow
    assert all("final_answer".startswith(each[:1]) for each in followed(guide, tokenizer, done))


@pytest.mark.parametrize(
    ("text", "follows"),
    [
        ("", []),
        ("<reasoning>1: ?1; as", []),
        (CALL + "so", ['lve", "arguments": {"']),
        (CALL + "today", ['", "arguments": {}']),
        (CALL + "ask_tall-", ['6b_old", "arguments": {"', '70b_old", "arguments": {"']),
        (CALL + "nobody", []),
        (CALL + 'nobody", "arguments": {"', []),
        (CALL + 'solve"', [', "arguments": {"']),
        (CALL + 'solve", "arg', ['uments": {"']),
        (CALL + 'solve", "arguments": {"', ['subtask": "', 'model": "', 'tags": [', 'steps": "']),
        (CALL + 'solve", "arguments": {"subtask"', [': "']),
        (CALL + 'solve", "arguments": {"tags":', [" ["]),
        (CALL + 'solve", "arguments": {"subtask": ', ['"']),
        (CALL + 'solve", "arguments": {"su', ['btask": "']),
        (CALL + 'solve", "arguments": {"subtask": "${ques', []),
        (CALL + 'solve", "arguments": {"subtask": "a \\" b", "', ['model": "', 'tags": [', 'steps": "']),
        (CALL + 'solve", "arguments": {"subtask": "x", "model": "', ['small"', 'large"']),
        (CALL + 'solve", "arguments": {"subtask": "x", "model": "la', ['rge"']),
        (CALL + 'today", "arguments": {}}</tool_call>', []),
        (CALL + 'today", "arguments": {}}</tool_call>\n<tool_call>{"name": "t', ['oday", "arguments": {}']),
    ],
)
def test_what_may_follow(text: str, follows: list[str]) -> None:
    assert continuations(text, OFFERS) == follows


def test_choices_that_are_not_wholly_listed_are_free() -> None:
    offers = offers_in("ask(who=ash|birch|…, what): Asks.")
    assert continuations(CALL + 'ask", "arguments": {"who": "', offers) == []


def test_a_line_that_cannot_be_read_is_no_offer() -> None:
    assert list(offers_in("Note (see below): no member\nodd(a b): What is that?")) == ["final_answer"]


def test_a_token_may_reach_beyond_a_name() -> None:
    tokenizer = TinyConductor().tokenizer
    guide = Guide([ct.Message("system", PROMPT)], tokenizer)
    texts = [tokenizer.text([number]) for number in guide.allowed(CALL + "solve")]
    assert '", "arguments": {"' in texts
    assert all(text.startswith('"') for text in texts)
    assert guide.allowed(CALL[:12]) == []


NAMES = ("ask_velda-6b_thurn", "ask_velda-175b_thurn", "ask_velda-175b_orlo")


def named(*, guided: bool) -> set[str]:
    """The names that it writes in several runs at a temperature at which it errs."""
    schema = {"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"]}
    pool = ct.Pool(
        [ct.ToolSpec.from_schema(name, "Answers sums.", schema, lambda _: "Four or five.") for name in NAMES]
    )
    seen: set[str] = set()
    for seed in range(6):
        sampling = ct.Sampling(temperature=2.5, seed=seed, max_tokens=160)
        leader = ct.Orchestrator(TinyConductor(guided=guided), strategy(max_rounds=3), sampling=sampling)
        run = leader.run_sync("How many sails has the Aurora?", pool=pool)
        replies = [event.reply.text for event in run.events if isinstance(event, Replied)]
        seen |= set(re.findall(r'<tool_call>\{"name": "([^"]*)"', "\n".join(replies)))
    return seen


@pytest.mark.slow
def test_names_are_written_as_offered_even_at_a_temperature_at_which_it_errs() -> None:
    assert named(guided=True) & set(NAMES)
    assert named(guided=True) <= {*NAMES, "final_answer"}
    assert not named(guided=False) <= {*NAMES, "final_answer"}


def test_without_a_guide_the_same_weights_write_freely() -> None:
    messages = (ct.Message("system", PROMPT), ct.Message("user", "What is one and one?"))
    sampling = ct.Sampling(temperature=3.0, seed=3, max_tokens=60, logprobs=True)
    request = ct.ChatRequest(messages=messages, sampling=sampling)
    free = asyncio.run(TinyConductor(TINY, guided=False).chat(request))
    assert free.logprobs is not None
    assert len(free.logprobs) == len(free.token_ids or ())


@pytest.mark.parametrize("most", range(6, 44, 3))
def test_a_reply_may_be_cut_off_anywhere(most: int) -> None:
    prompt = PROMPT.replace("ask_tall-6b_old", "ask_tall-6b_old_and_very_much_longer_than_any_other_name_of_the_pool")
    messages = (ct.Message("system", prompt), ct.Message("user", "What is one and one?"))
    reply = asyncio.run(
        TinyConductor().chat(ct.ChatRequest(messages, sampling=ct.Sampling(max_tokens=most, logprobs=True)))
    )
    assert len(reply.token_ids or ()) <= most
    assert len(reply.logprobs or ()) == len(reply.token_ids or ())
    assert all(value <= 0 for value in reply.logprobs or ())
