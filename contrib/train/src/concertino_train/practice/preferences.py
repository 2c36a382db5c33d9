"""What a user of the practice domain may prefer: a text that is asked with, and the weights that score it."""

from __future__ import annotations

from dataclasses import dataclass

from concertino_bench.metrics import Preference


@dataclass(frozen=True)
class Wish:
    """A preference in words and in weights.

    Attributes:
        text: what the user says; it follows the question.
        weights: of accuracy, money, time.
    """

    text: str
    weights: Preference

    def asked_with(self, question: str) -> str:
        """A question with this wish behind it."""
        return f"{question}\n\n{self.text}" if self.text else question


WISHES: dict[str, Wish] = {
    "none": Wish("", Preference(accuracy=1.0)),
    "cheap": Wish("Keep it cheap.", Preference(accuracy=1.0, usd=1.0)),
    "fast": Wish("Make it quick.", Preference(accuracy=1.0, seconds=1.0)),
    "sure": Wish("Be sure.", Preference(accuracy=1.0)),
}
"""By name."""
