"""What a person sees while a training runs: a bar on a terminal, lines elsewhere, JSON for programs.

    step 12/50  reward 1.23  success 62%  format 98%  rounds 2.3  tokens 143  1,240 tok/s  03:21 left

The invariant: a reporter writes to the place that it is given and nowhere else; the default of library calls writes
nothing.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from concertino import UsageError
from concertino.core.display_text import clean, one_line
from tqdm import tqdm

Write = Callable[[str], None]

SHOWN: Mapping[str, str] = {
    "loss": "{:.4f}",
    "reward": "{:.3f}",
    "success": "{:.0%}",
    "eval/success": "{:.0%}",
    "format": "{:.0%}",
    "rounds": "{:.1f}",
    "tokens": "{:.0f}",
    "usd": "{:.4f}",
    "units": "{:.2f}",
    "tokens_per_second": "{:,.0f} tok/s",
}
"""Figures of a line, in their order, as far as they are known."""


class Reporter:
    """Takes what happens, and shows nothing."""

    def __init__(self) -> None:
        self.total = self.done = 0
        self._began = 0.0
        self._first = 0

    def begin(self, what: str, total: int, done: int = 0, elapsed: float = 0.0) -> None:
        """Work begins.

        Args:
            what: `rl`, `sft`, `eval`.
            total: steps.
            done: steps of earlier processes.
            elapsed: seconds since the work began.
        """
        self.total, self.done, self._first = total, done, done
        self._began = time.monotonic() - elapsed

    def step(self, step: int, figures: Mapping[str, Any], show: bool = True) -> None:
        """A step is finished.

        Args:
            step: from 1.
            figures: of the step.
            show: whether to show a line of it.
        """
        self.done = step

    def say(self, text: str, kind: str = "note") -> None:
        """Something happened: `note`, or `warning`."""

    def end(self) -> None:
        """The work is finished, or was stopped."""

    @property
    def seconds_left(self) -> float | None:
        """At the pace so far; None before the first step."""
        # Steps of earlier processes took none of this one's time.
        fresh = self.done - self._first
        return (time.monotonic() - self._began) / fresh * (self.total - self.done) if fresh > 0 else None


class LineReporter(Reporter):
    """A line for each step: text, or a JSON object.

        {"event": "step", "step", "total", "left", "figures"}    {"event": "note", "text"}

    Args:
        write: takes a line without its end.
        as_json: write JSON.
    """

    def __init__(self, write: Write, as_json: bool = False) -> None:
        super().__init__()
        self._write, self._as_json = write, as_json

    def step(self, step: int, figures: Mapping[str, Any], show: bool = True) -> None:
        """See `Reporter.step`."""
        super().step(step, figures, show)
        left = self.seconds_left
        if not show:
            return
        if self._as_json:
            rounded = left and round(left, 1)
            self._event(event="step", step=step, total=self.total, left=rounded, figures=dict(figures))
        else:
            parts = [f"step {step}/{self.total}", *shown(figures)]
            if left is not None and self.done < self.total:
                parts.append(f"{tqdm.format_interval(left)} left")
            self._write("  ".join(parts))

    def say(self, text: str, kind: str = "note") -> None:
        """See `Reporter.say`."""
        if self._as_json:
            self._event(event=kind, text=text)
        else:
            self._write(text if kind == "note" else f"{kind}: {text}")

    def _event(self, **data: Any) -> None:
        self._write(json.dumps(data, ensure_ascii=False))


class BarReporter(Reporter):
    """A bar at the bottom of a terminal, with the figures of the last step; messages appear above it."""

    _bar: tqdm[Any] | None = None

    def begin(self, what: str, total: int, done: int = 0, elapsed: float = 0.0) -> None:
        """See `Reporter.begin`."""
        super().begin(what, total, done, elapsed)
        self._bar = tqdm(total=total, initial=done, desc=one_line(what), dynamic_ncols=True)

    def step(self, step: int, figures: Mapping[str, Any], show: bool = True) -> None:
        """See `Reporter.step`."""
        if self._bar is not None:
            self._bar.set_postfix_str(one_line("  ".join(shown(figures))), refresh=False)
            # The bar counts differences; steps may be told more than once or left out.
            self._bar.update(step - self.done)
        super().step(step, figures, show)

    def say(self, text: str, kind: str = "note") -> None:
        """See `Reporter.say`."""
        tqdm.write(clean(text if kind == "note" else f"{kind}: {text}"), file=sys.stderr)

    def end(self) -> None:
        """See `Reporter.end`."""
        if self._bar is not None:
            self._bar.close()


def reporter(view: str, write: Write) -> Reporter:
    """A reporter.

    Args:
        view: `json`, `plain`, `bar`, `none`, or `auto`: `bar` where stderr is a terminal, else `plain`.
        write: takes lines, where there are any.

    Raises:
        UsageError: another view.
    """
    if view == "auto":
        view = "bar" if sys.stderr.isatty() else "plain"
    makers: dict[str, Callable[[], Reporter]] = {
        "bar": BarReporter,
        "plain": lambda: LineReporter(write),
        "json": lambda: LineReporter(write, as_json=True),
        "none": Reporter,
    }
    if view not in makers:
        raise UsageError(f"view={view!r}: expected auto, bar, plain, json or none")
    return makers[view]()


def shown(figures: Mapping[str, Any]) -> list[str]:
    """Figures in words, those of `SHOWN`; costs of 0 are left out."""
    parts = []
    for name, form in SHOWN.items():
        value = figures.get(name)
        if isinstance(value, (int, float)) and (value or name not in ("usd", "units")):
            text = form.format(value)
            parts.append(text if name == "tokens_per_second" else f"{name} {text}")
    return parts
