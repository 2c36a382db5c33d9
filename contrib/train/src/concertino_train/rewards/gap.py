"""GAP (arXiv 2510.25320), Eq. 10: exact match, 0 or 1, and nothing for form or length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from concertino import UsageError
from concertino_bench.graders import normalise

from concertino_train.episodes import Episode

from .functions import indicator
from .term import Term

Reading = Literal["paper", "as_released", "as_evaluated"]


def exact_match(answer: str, gold: Sequence[str]) -> float:
    """Eq. 10: 1 if the answer is one of the gold answers after normalisation, else 0.

    Args:
        answer: one text.
        gold: texts that are all right; case, punctuation, articles and blanks do not count.

    Returns:
        0 or 1.
    """
    return indicator(normalise(answer) in {normalise(each) for each in gold})


def released_exact_match(answer: str, gold: Sequence[str]) -> float:
    """As the released training does it: the answer is split at `|`, and every part has to be a gold answer. 0 or 1."""
    return indicator(all(exact_match(part, gold) for part in answer.split("|")))


def evaluated_exact_match(answer: str, gold: Sequence[str]) -> float:
    """As the released evaluation does it: of the parts split at `|`, only the first is looked at. 0 or 1."""
    return exact_match(answer.split("|", 1)[0], gold)


@dataclass(frozen=True)
class GapExactMatch(Term):
    """Eq. 10."""

    variant: Reading = "paper"

    name = "gap/exact-match"
    formula = "score_answer, 1 if the final answer is right, else 0"
    source = "GAP Eq. 10"
    meaning = "The verdict of the grader; `exact-match` of concertino-bench is the paper's."
    parameters: ClassVar[Mapping[str, str]] = {
        "variant": "`paper`, `as_released` (its training) or `as_evaluated` (its evaluation)"
    }
    differences = (
        "The released code splits an answer at `|`. Its training wants every part among the gold answers, its "
        "evaluation looks at the first part only: `Paris|London` for the gold answer Paris is wrong in training and "
        "right in evaluation, so what is reported is not what was trained."
    )

    def __post_init__(self) -> None:
        self._one_of("variant", ("paper", "as_released", "as_evaluated"))

    def values(self, group: Sequence[Episode]) -> list[float]:
        """1 or 0 for each episode."""
        if self.variant == "paper":
            # The paper's grader has compared after normalisation already; the variants read the answer themselves.
            return [indicator(episode.right) for episode in group]
        match = released_exact_match if self.variant == "as_released" else evaluated_exact_match
        return [match(each.answer or "", self._gold(each)) for each in group]

    def _gold(self, episode: Episode) -> Sequence[str]:
        if not episode.expected:
            raise UsageError(
                f"{self.name}, variant {self.variant}: episode {episode.id!r} has no gold answers; its grader has to "
                "give Grade.expected, or use `variant: paper`, which takes the verdict"
            )
        return episode.expected
