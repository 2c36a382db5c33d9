"""The network of a scorer: padding and order change nothing, it learns, and numpy reads cards as it does."""

from __future__ import annotations

import pytest
import torch
from concertino_scorer.features import FEATURES
from concertino_scorer.network import NetworkWeights, read_card
from concertino_train.scorer.network import BatchBelief, CardBatch, CardNetwork, NetworkSettings, loss_of

SMALL = NetworkSettings(width=16, layers=2, heads=2, forget=0.0)


def network() -> CardNetwork:
    torch.manual_seed(0)
    return CardNetwork(torch.randn(20, 12), torch.arange(20) % 5, SMALL).eval()


def batch(lengths: list[int], width: int) -> CardBatch:
    chance = torch.Generator().manual_seed(1)
    ids = torch.randint(2, 20, (len(lengths), width), generator=chance)
    mask = torch.arange(width) < torch.tensor(lengths).unsqueeze(1)
    return CardBatch(ids, mask, torch.randn(len(lengths), width, FEATURES, generator=chance))


def one_of(cards: CardBatch, number: int, length: int) -> CardBatch:
    return CardBatch(*(part[number : number + 1, :length] for part in cards))


def test_a_belief_depends_neither_on_padding_nor_on_other_cards() -> None:
    reads, cards = network(), batch([3, 6, 5], 6)
    together = reads(cards)
    for number, length in enumerate((3, 6, 5)):
        for alone, all_of_them in zip(reads(one_of(cards, number, length)), together, strict=True):
            assert alone.item() == pytest.approx(all_of_them[number].item(), abs=1e-5)


def test_numpy_reads_a_card_as_torch_does() -> None:
    reads = network()
    with torch.no_grad():
        for parameter in reads.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))  # no weight is 0 or 1, as many are at first
    weights = NetworkWeights({name: array.numpy() for name, array in reads.state_dict().items()}, SMALL.heads)
    cards = batch([7, 1, 4], 7)
    together = reads(cards)
    for number, length in enumerate((7, 1, 4)):
        ids, features = cards.ids[number, :length], cards.features[number, :length]
        found = read_card(weights, reads.vectors[ids].numpy(), reads.own_rows[ids].numpy(), features.numpy())
        for value, expected in zip((found.mean, found.precision, found.trust), together, strict=True):
            assert value == pytest.approx(expected[number].item(), abs=1e-4)
        assert found.expected == pytest.approx(together.expected[number].item(), abs=1e-4)


def test_a_network_learns_which_of_two_cards_is_better() -> None:
    reads, cards, shares = network(), batch([4, 4, 4, 4], 4), torch.tensor([0.9, 0.1, 0.2, 0.8])
    optimiser = torch.optim.AdamW(reads.parameters(), lr=1e-2)
    losses = []
    for _ in range(60):
        optimiser.zero_grad()
        loss = loss_of(reads(cards), shares, (2, 2))
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    found: BatchBelief = reads(cards)
    assert found.expected[0] > found.expected[1]
    assert found.expected[3] > found.expected[2]
