"""The next token of each row of a batch.

The invariants: a row's choice depends on its own logits and its own random numbers, never on its neighbours, up to
rounding of the logits; and a log-probability is that of a plain forward pass over the whole vocabulary, before top_p,
top_k or a grammar leave tokens out. It is taken at temperature 1, or at the temperature of sampling if `tempered`.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy
import torch

GREEDY = 1e-5
"""Temperatures up to this take the most likely token."""


@dataclass(frozen=True)
class SamplingRule:
    """How a row chooses its tokens.

    Attributes:
        temperature: 0 takes the most likely token.
        top_p: sample from the most likely tokens that together have this probability.
        top_k: sample from so many of the most likely tokens; 0 is all of them.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0

    @property
    def greedy(self) -> bool:
        """Whether the most likely token is taken."""
        return self.temperature <= GREEDY or self.top_k == 1

    @property
    def cuts(self) -> bool:
        """Whether unlikely tokens are left out."""
        return self.top_p < 1.0 or self.top_k > 0


def row_random(seed: int, prompt: Sequence[int]) -> numpy.random.Generator:
    """The random numbers of one row: the same for the same seed and prompt, whoever samples beside it.

    The prompt counts, so that turns of one conversation with one seed do not draw alike.
    """
    ids = numpy.asarray(prompt, dtype=numpy.int64)
    # SeedSequence refuses negative numbers. The length counts, too: checksums of a few ids may be equal.
    state = numpy.random.SeedSequence((seed % 2**64, zlib.crc32(ids.tobytes()), len(ids)))
    return numpy.random.Generator(numpy.random.PCG64(state))


def wide_float(device: torch.device) -> torch.dtype:
    """For sums of very many small numbers; MPS has no float64."""
    return torch.float32 if device.type == "mps" else torch.float64


@dataclass(frozen=True)
class _Group:
    """Rows that choose in one way: their places, None for all, and their numbers, as a column where they differ."""

    places: torch.Tensor | None
    greedy: bool
    cuts: bool
    temperature: float | torch.Tensor
    top_p: float | torch.Tensor
    top_k: float | torch.Tensor


class Choices:
    """How the rows of a batch choose, prepared once for all steps until a row joins or leaves.

    Args:
        rules: one for each row.
        device: of the logits.
        tempered: log-probabilities are those at the temperature of sampling.
    """

    def __init__(self, rules: Sequence[SamplingRule], device: torch.device, *, tempered: bool = False) -> None:
        kind_of = {rule: (rule.greedy, rule.cuts and not rule.greedy) for rule in set(rules)}
        self.samples = not all(greedy for greedy, _ in kind_of.values())
        self._tempered = tempered
        self._groups: list[_Group] = []
        kinds = [kind_of[rule] for rule in rules]
        for kind in dict.fromkeys(kinds):
            places = [place for place, each in enumerate(kinds) if each == kind]
            index = None if len(places) == len(rules) else torch.tensor(places, device=device)
            own = [rules[place] for place in places]

            def column(values: Sequence[float]) -> float | torch.Tensor:
                if len(set(values)) == 1:
                    return values[0]
                return torch.tensor(values, device=device)[:, None]

            # More than any vocabulary has, so it leaves nothing out.
            top_k = column([rule.top_k or 2**31 for rule in own])
            temperature = 1.0 if kind[0] else column([rule.temperature for rule in own])
            self._groups.append(_Group(index, *kind, temperature, column([rule.top_p for rule in own]), top_k))

    def choose(
        self, logits: torch.Tensor, uniforms: torch.Tensor | None, masked: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The next token of each row, and its log-probability.

        Args:
            logits: shape (rows, vocabulary), in float32.
            uniforms: a random number from [0, 1) for each row, shape (rows,); None if no row samples.
            masked: the logits with forbidden tokens at minus infinity.

        Returns:
            Token ids and log-probabilities, each of shape (rows,); a log-probability that is not finite says that the
            logits are not.
        """
        if len(self._groups) == 1:
            return self._choose(self._groups[0], logits, uniforms, masked)
        tokens = torch.empty(len(logits), dtype=torch.long, device=logits.device)
        logprobs = torch.empty(len(logits), device=logits.device)
        for group in self._groups:
            drawn, allowed = (None if each is None else each[group.places] for each in (uniforms, masked))
            tokens[group.places], logprobs[group.places] = self._choose(group, logits[group.places], drawn, allowed)
        return tokens, logprobs

    def _choose(
        self, group: _Group, logits: torch.Tensor, uniforms: torch.Tensor | None, masked: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        as_is = isinstance(group.temperature, float) and group.temperature == 1.0
        scores = logits if as_is else logits / group.temperature
        # Over all tokens, before anything is forbidden: that is what log-probabilities are taken of.
        total = scores.logsumexp(-1)
        if group.greedy or uniforms is None:
            tokens = (logits if masked is None else masked).argmax(-1)
        else:
            if masked is None:
                probabilities = (scores - total[:, None]).exp_()
            else:
                probabilities = (masked / group.temperature).softmax(-1)
            tokens = _draw(probabilities, uniforms, group)
        if not (as_is or self._tempered):
            scores, total = logits, logits.logsumexp(-1)
        return tokens, scores.gather(-1, tokens[:, None])[:, 0] - total


def _draw(probabilities: torch.Tensor, uniforms: torch.Tensor, group: _Group) -> torch.Tensor:
    """The token at each row's random number, on the line where tokens lie side by side, each as long as probable."""
    # In float32 the rounding of a sum over a vocabulary is larger than the share of a rare token.
    wide = wide_float(probabilities.device)
    order = None
    if group.cuts:
        # Stable, so that tokens of equal probability stand in one order in every run.
        probabilities, order = probabilities.sort(dim=-1, descending=True, stable=True)
        ranks = torch.arange(probabilities.shape[-1], device=probabilities.device)
        probabilities = probabilities.masked_fill(ranks >= group.top_k, 0.0)
        before = probabilities.cumsum(-1, dtype=wide) - probabilities
        most = group.top_p * probabilities.sum(-1, keepdim=True, dtype=wide)
        probabilities = probabilities.masked_fill(before >= most, 0.0)
    line = probabilities.cumsum(-1, dtype=wide)
    places = torch.searchsorted(line, (uniforms.to(wide) * line[:, -1])[:, None], right=True)
    # Rounding may put a number behind the end of the line: the last token with a length is meant.
    last = probabilities.shape[-1] - 1 - (probabilities > 0).flip(-1).byte().argmax(-1, keepdim=True)
    places = torch.minimum(places, last)
    return (places if order is None else order.gather(-1, places))[:, 0]
