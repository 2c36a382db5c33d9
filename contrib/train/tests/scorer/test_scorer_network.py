"""The network of a scorer: padding and order change nothing, evidence moves beliefs as Bayes' rule says, it learns."""

from __future__ import annotations

import pytest
import torch
from concertino_train.scorer.network import Belief, CardBatch, CardNetwork, NetworkSettings, loss_of, posterior
from concertino_train.scorer.reading import FEATURES

SMALL = NetworkSettings(width=16, layers=1, heads=2, match=8, forget=0.0)


def network() -> CardNetwork:
    torch.manual_seed(0)
    return CardNetwork(torch.randn(20, 12), torch.arange(20) % 5, SMALL).eval()


def batch(lengths: list[int], width: int) -> CardBatch:
    chance = torch.Generator().manual_seed(1)
    ids = torch.randint(2, 20, (len(lengths), width), generator=chance)
    mask = torch.arange(width) < torch.tensor(lengths).unsqueeze(1)
    features = torch.randn(len(lengths), width, FEATURES, generator=chance)
    question = torch.randint(2, 20, (1, 4), generator=chance).expand(len(lengths), 4)
    return CardBatch(ids, mask, features, question, torch.ones(len(lengths), 4, dtype=torch.bool))


def test_a_belief_depends_neither_on_padding_nor_on_other_cards() -> None:
    reads, cards = network(), batch([3, 6, 5], 6)
    together = reads(cards)
    for number, length in enumerate((3, 6, 5)):
        row = slice(number, number + 1)
        short = CardBatch(
            cards.ids[row, :length],
            cards.mask[row, :length],
            cards.features[row, :length],
            *(x[row] for x in cards[3:]),
        )
        for one, all_of_them in zip(reads(short), together, strict=True):
            assert one.item() == pytest.approx(all_of_them[number].item(), abs=1e-5)


def test_evidence_moves_a_belief_as_bayes_rule_says() -> None:
    belief = Belief(torch.tensor([0.9, 0.9]), torch.tensor([10.0, 10.0]), torch.tensor([0.9, 0.9]))
    right, wrong = torch.tensor([0.0, 2.0]), torch.tensor([3.0, 1.0])
    shares = torch.linspace(0.0005, 0.9995, 1000, dtype=torch.float64)
    for number, found in enumerate(posterior(belief, right, wrong)):
        prior = 0.9 * torch.distributions.Beta(9.0, 1.0).log_prob(shares).exp() + 0.1
        weight = prior * shares ** right[number].item() * (1 - shares) ** wrong[number].item()
        assert found.item() == pytest.approx(((weight * shares).sum() / weight.sum()).item(), abs=2e-3)
    assert posterior(belief, right, wrong)[0] < 0.5  # a card that praises is found out by three wrong answers


def test_without_evidence_the_posterior_is_what_was_expected() -> None:
    belief = network()(batch([4, 4], 4))
    nothing = torch.zeros(2)
    assert torch.allclose(posterior(belief, nothing, nothing), belief.expected, atol=1e-5)


def test_a_network_learns_which_of_two_cards_is_better() -> None:
    reads, cards, shares = network(), batch([4, 4, 4, 4], 4), torch.tensor([0.9, 0.1, 0.2, 0.8])
    optimiser = torch.optim.AdamW([each for each in reads.parameters() if each.requires_grad], lr=1e-2)
    losses = []
    for _ in range(60):
        optimiser.zero_grad()
        loss = loss_of(reads(cards), shares, (2, 2))
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    found = reads(cards).expected
    assert found[0] > found[1]
    assert found[3] > found[2]
