"""What a person sees while a training goes on: a bar on a terminal, lines elsewhere, JSON for programs.

    step 12/50  reward 1.23  success 62%  format 98%  rounds 2.3  tokens 143  1,240 tok/s  3:21 left

The invariant: a reporter writes through the function that it is given and nowhere else; the one that a library caller
gets unasked writes nothing.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from concertino import UsageError

if TYPE_CHECKING:
    from rich.progress import Progress

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
"""Figures of a line, in their order, as far as they are there."""


class Reporter:
    """Takes what is to be told, and tells nothing."""

    def __init__(self) -> None:
        self.total = self.done = 0
        self._began = self._from = 0.0
        self._first = 0

    def begin(self, what: str, total: int, done: int = 0, elapsed: float = 0.0) -> None:
        """A piece of work begins.

        Args:
            what: `rl`, `sft`, `eval`.
            total: steps.
            done: of earlier processes.
            elapsed: seconds since the work began.
        """
        self.what, self.total, self.done, self._first = what, total, done, done
        self._began = time.monotonic() - elapsed

    def step(self, step: int, figures: Mapping[str, Any], show: bool = True) -> None:
        """A step is over.

        Args:
            step: from 1.
            figures: of it.
            show: whether it is worth a line.
        """
        self.done = step

    def say(self, text: str, kind: str = "note") -> None:
        """Something happened: `note`, or `warning`."""

    def end(self) -> None:
        """The work is over, or was stopped."""

    @property
    def seconds_left(self) -> float | None:
        """At the pace so far; None before the first step."""
        fresh = self.done - self._first
        return (time.monotonic() - self._began) / fresh * (self.total - self.done) if fresh > 0 else None

    def line(self, step: int, figures: Mapping[str, Any]) -> str:
        """A line of a step."""
        parts = [f"step {step}/{self.total}"]
        for name, form in SHOWN.items():
            value = figures.get(name)
            if isinstance(value, (int, float)) and (value or name not in ("usd", "units")):
                text = form.format(value)
                parts.append(text if name == "tokens_per_second" else f"{name} {text}")
        if (left := self.seconds_left) is not None and self.done < self.total:
            parts.append(f"{clock(left)} left")
        return "  ".join(parts)


class PlainReporter(Reporter):
    """Lines of text.

    Args:
        write: takes a line without its end.
    """

    def __init__(self, write: Write) -> None:
        super().__init__()
        self._write = write

    def step(self, step: int, figures: Mapping[str, Any], show: bool = True) -> None:
        """See `Reporter.step`."""
        super().step(step, figures, show)
        if show:
            self._write(self.line(step, figures))

    def say(self, text: str, kind: str = "note") -> None:
        """See `Reporter.say`."""
        self._write(f"{kind}: {text}" if kind != "note" else text)


class JsonReporter(Reporter):
    """A JSON object a line: `{"event": "step", "step", "total", "left", "figures"}`, `{"event": "note", "text"}`.

    Args:
        write: takes a line without its end.
    """

    def __init__(self, write: Write) -> None:
        super().__init__()
        self._write = write

    def step(self, step: int, figures: Mapping[str, Any], show: bool = True) -> None:
        """See `Reporter.step`."""
        super().step(step, figures, show)
        if show:
            left = self.seconds_left
            data = {"event": "step", "step": step, "total": self.total, "left": left and round(left, 1)}
            self._write(json.dumps({**data, "figures": dict(figures)}, ensure_ascii=False))

    def say(self, text: str, kind: str = "note") -> None:
        """See `Reporter.say`."""
        self._write(json.dumps({"event": kind, "text": text}, ensure_ascii=False))


class RichReporter(Reporter):
    """A bar at the bottom of a terminal, with the figures of the last step; what is said stands above it."""

    def __init__(self) -> None:
        super().__init__()
        self._bar: Progress | None = None

    def begin(self, what: str, total: int, done: int = 0, elapsed: float = 0.0) -> None:
        """See `Reporter.begin`."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        super().begin(what, total, done, elapsed)
        columns = (
            TextColumn("{task.fields[what]}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[figures]}"),
        )
        self._bar = Progress(*columns, console=Console(stderr=True, highlight=False), transient=False)
        self._task = self._bar.add_task(what, total=total, completed=done, what=what, figures="")
        self._bar.start()

    def step(self, step: int, figures: Mapping[str, Any], show: bool = True) -> None:
        """See `Reporter.step`."""
        super().step(step, figures, show)
        if self._bar is not None:
            text = self.line(step, figures).partition("  ")[2]
            self._bar.update(self._task, completed=step, figures=text)

    def say(self, text: str, kind: str = "note") -> None:
        """See `Reporter.say`."""
        from rich.console import Console
        from rich.text import Text

        console = self._bar.console if self._bar is not None else Console(stderr=True)
        console.print(Text(text, style="yellow" if kind == "warning" else ""))

    def end(self) -> None:
        """See `Reporter.end`."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def reporter(view: str, write: Write) -> Reporter:
    """A reporter.

    Args:
        view: `json`, `plain`, `rich`, `none`, or `auto`: `rich` where stderr is a terminal, else `plain`.
        write: takes lines, where there are any.

    Raises:
        UsageError: another view.
    """
    if view == "auto":
        view = "rich" if sys.stderr.isatty() else "plain"
    if view == "rich":
        return RichReporter()
    if view == "none":
        return Reporter()
    kinds: dict[str, type[PlainReporter] | type[JsonReporter]] = {"plain": PlainReporter, "json": JsonReporter}
    if view not in kinds:
        raise UsageError(f"view={view!r}: expected auto, rich, plain, json or none")
    return kinds[view](write)


def clock(seconds: float) -> str:
    """`3:21`, `1:02:05`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
