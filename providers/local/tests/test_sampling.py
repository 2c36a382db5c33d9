"""Sampling: the right distribution, the right cuts, the model's own log-probabilities."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
import torch
from concertino_local.sampling import SamplingRule
from concertino_local.sampling.choice import Choices
from hypothesis import given, settings
from hypothesis import strategies as st

LOGITS = torch.tensor([2.0, 1.0, 0.0, -1.0, 1.5, -20.0])


def choose(
    logits: torch.Tensor, rules: list[SamplingRule], random: list[Random], masked: torch.Tensor | None = None
) -> tuple[list[int], list[float]]:
    choices = Choices(rules, logits.device)
    uniforms = torch.tensor([each.random() for each in random], dtype=torch.float64) if choices.samples else None
    tokens, logprobs = choices.choose(logits, uniforms, masked)
    return tokens.tolist(), logprobs.tolist()


def draw(times: int, temperature: float = 1.0, top_p: float = 1.0, top_k: int = 0) -> Counter[int]:
    rule, random = SamplingRule(temperature, top_p, top_k), Random(1)
    return Counter(choose(LOGITS[None], [rule], [random])[0][0] for _ in range(times))


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_tokens_are_drawn_by_their_probability(temperature: float) -> None:
    times = 4000
    expected = (LOGITS / temperature).softmax(-1)
    drawn = draw(times, temperature)
    for token, probability in enumerate(expected.tolist()):
        spread = (probability * (1 - probability) / times) ** 0.5
        assert drawn[token] / times == pytest.approx(probability, abs=5 * spread + 1e-3)


def test_top_k_and_top_p_leave_the_unlikely_out() -> None:
    assert set(draw(500, top_k=2)) == {0, 4}
    assert set(draw(500, top_p=0.5)) == {0, 4}  # 0.43 and 0.26
    assert set(draw(500, top_p=0.4)) == {0}
    assert set(draw(500, top_k=3, top_p=0.55)) == {0, 4}  # of the three most likely, 0.51 and 0.31
    assert set(draw(500, top_p=1e-9)) == {0}
    assert set(draw(50, temperature=0.0)) == set(draw(50, top_k=1)) == {0}


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.sampled_from([0.0, 0.7, 1.3]), st.sampled_from([0.3, 1.0])), min_size=2, max_size=6))
def test_a_row_chooses_alike_alone_and_in_a_batch(rows: list[tuple[float, float]]) -> None:
    generator = torch.Generator().manual_seed(len(rows))
    logits = torch.randn(len(rows), 50, generator=generator) * 3

    rules = [SamplingRule(temperature, top_p) for temperature, top_p in rows]
    together = choose(logits, rules, [Random(i) for i in range(len(rows))])
    alone = [choose(logits[i : i + 1], [rule], [Random(i)]) for i, rule in enumerate(rules)]
    assert together[0] == [tokens[0] for tokens, _ in alone]
    assert together[1] == pytest.approx([values[0] for _, values in alone], abs=1e-6)


def test_log_probabilities_are_those_of_the_model_before_any_cut() -> None:
    allowed = torch.tensor([[False, False, True, True, False, True]])
    masked = LOGITS[None].masked_fill(~allowed, float("-inf"))
    tokens, logprobs = choose(LOGITS[None], [SamplingRule(0.3, 0.2)], [Random(0)], masked)
    assert tokens == [2]
    assert logprobs == pytest.approx([LOGITS.log_softmax(-1)[2].item()], abs=1e-6)


def test_a_forbidden_token_is_never_drawn() -> None:
    masked = LOGITS[None].masked_fill(~torch.tensor([[False, True, False, False, False, True]]), float("-inf"))
    drawn = {choose(LOGITS[None], [SamplingRule(5.0)], [Random(i)], masked)[0][0] for i in range(200)}
    assert drawn == {1, 5}


def test_tempered_log_probabilities_are_those_at_the_temperature_of_sampling() -> None:
    uniforms = torch.tensor([0.1], dtype=torch.float64)
    tokens, logprobs = Choices([SamplingRule(0.3, 0.2)], LOGITS.device, tempered=True).choose(LOGITS[None], uniforms)
    assert logprobs.tolist() == pytest.approx([(LOGITS / 0.3).log_softmax(-1)[tokens[0]].item()], abs=1e-6)
