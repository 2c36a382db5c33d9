"""Whether systems know what they know: how sure answers say they are, against how often they are right.

The idea: answers are sorted by confidence and put into bins of a hundred; the error is the root of the mean square of
the gap between the mean confidence of a bin and its share of right answers. This is the measure of HLE.

The invariant: which bin an answer is in is decided on all answers, so the interval draws tasks and not other bins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from concertino_bench.tasks.item import Item

from .metric import Metric, TermColumns, Terms, define

if TYPE_CHECKING:
    import numpy as np

_BIN = 100
CONFIDENCE, ATTEMPTED = "confidence", "attempted"
"""Values of graders that these measures need."""


@dataclass(frozen=True)
class CalibrationError(Metric):
    """Not a ratio: it adds up three columns per bin, the answers, their confidence, and the right ones."""

    def columns(self, groups: Sequence[Sequence[Item]]) -> TermColumns:
        """Per task the answers, the confidence and the right answers of each bin."""
        told = [
            (item.values[CONFIDENCE], item.key, place, item.right)
            for place, group in enumerate(groups)
            for item in group
            if CONFIDENCE in item.values
        ]
        bins = max(1, len(told) // _BIN)
        rows = [[0.0] * (3 * bins) for _ in groups]
        for number, (confidence, _, place, right) in enumerate(sorted(told)):
            # The last bin takes what is left over.
            first = 3 * min(number // _BIN, bins - 1)
            for offset, value in enumerate((1.0, confidence, float(right))):
                rows[place][first + offset] += value
        used = len({place for _, _, place, _ in told})
        return TermColumns(rows, used, sum(map(len, groups)) - len(told))

    def one(self, sums: Sequence[float]) -> float | None:
        """The error; None without an answer that says how sure it is."""
        import numpy as np

        value = self.many(np.asarray([sums], dtype=float)) if sums else None
        return None if value is None or np.isnan(value[0]) else float(value[0])

    def many(self, sums: np.ndarray) -> np.ndarray:
        """The errors of many draws."""
        import numpy as np

        answers, confidence, right = (sums[:, start::3] for start in range(3))
        with np.errstate(divide="ignore", invalid="ignore"):
            gaps = np.where(answers > 0, (confidence - right) ** 2 / answers, 0.0)
            values: np.ndarray = np.sqrt(gaps.sum(axis=1) / answers.sum(axis=1))
        return values


CALIBRATION_ERROR = CalibrationError(
    "calibration_error",
    "calibration error",
    "share",
    "lower",
    "0 to 1",
    "√(Σ over bins of n (mean confidence - share of right answers)² / Σ n), with bins of 100 answers by confidence; "
    "the last bin takes the rest",
    "Phan et al. 2025, Humanity's Last Exam (arXiv 2501.14249), RMS calibration error; bins of Hendrycks et al. "
    "2019. The published script leaves the last bin out, which is counted here",
    "How far what answers say of their confidence is from how often they are right. Only graders that read a "
    "confidence give it, such as judge-hle; answers without one are missing.",
    'METRICS["calibration_error"](items)',
    needs=CONFIDENCE,
)


@define(
    unit="share",
    better="higher",
    within="0 to 1",
    formula="Σ right / Σ attempted, each a mean over the samples of a task",
    source="Wei et al. 2024, Measuring short-form factuality in large language models (arXiv 2411.04368), correct "
    "given attempted",
    title="right given attempted",
    needs=ATTEMPTED,
)
def accuracy_attempted(items: Sequence[Item]) -> Terms:
    """How often an answer is right where one was attempted. An answer that was not there was not attempted."""
    return Terms(sum(item.right for item in items) / len(items), _attempted(items))


@define(
    unit="share",
    better="higher",
    within="0 to 1",
    formula="2 Σ right / (Σ attempted + tasks): the harmonic mean of accuracy and right given attempted",
    source="Wei et al. 2024 (arXiv 2411.04368), F-score",
    title="F of attempts",
    needs=ATTEMPTED,
)
def attempts_f1(items: Sequence[Item]) -> Terms:
    """One figure that neither guessing nor silence can raise: answering more and being right more count the same."""
    return Terms(2 * sum(item.right for item in items) / len(items), 1.0 + _attempted(items))


def _attempted(items: Sequence[Item]) -> float:
    return sum(item.values.get(ATTEMPTED, 0.0) for item in items) / len(items)
