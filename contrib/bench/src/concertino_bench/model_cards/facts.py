"""The figures of a profile in words: the part of a description that no model has written.

A kind of task is called *reliable* where the whole 95 % interval of its accuracy lies above one half, *unreliable*
where it lies below, else *unclear*: mixed, or too few tasks to tell. The price is the last figure, so that a text
changes in one place when a price does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from .profile import Profile, Rate

_MOST_KINDS = 8
"""Kinds that are named in one group; further ones are counted."""


def write_facts(profile: Profile) -> str:
    """One paragraph that says on how many tasks it rests."""
    groups = [
        (title, {kind: rate for kind, rate in profile.by_kind.items() if _group(rate) == title})
        for title in ("Reliable", "Unreliable", "Unclear")
    ]
    overall = profile.overall
    tasks = "1 task" if overall.tasks == 1 else f"{overall.tasks} tasks"
    repeats = f", {overall.answers} answers" if overall.answers != overall.tasks else ""
    interval = f"95 % interval {100 * overall.low:.0f} to {100 * overall.high:.0f} %"
    sentences = [f"Measured on {tasks}{repeats}: {percent(overall.accuracy)} correct ({interval})."]
    sentences += [f"{title}: {_kinds(rates)}." for title, rates in groups if rates]
    failed = sum(profile.failures.values())
    if failed:
        listed = ", ".join(f"{count} {status}" for status, count in sorted(profile.failures.items()))
        sentences.append(f"No answer came to {failed} of {overall.answers} requests ({listed}).")
    median, most = show_seconds(profile.seconds_median), show_seconds(profile.seconds_p90)
    usd = profile.usd_per_task
    money = "price unknown" if usd is None else f"{show_usd(usd)} per task"
    seconds = f"{median} in the median (nine in ten at most {most})"
    sentences.append(f"An answer takes {seconds}, {_tokens(profile)}, {money}.")
    return " ".join(sentences)


def percent(share: float) -> str:
    """A share as whole per cent; 100 and 0 only where they are exact."""
    rounded = round(100 * share)
    # "100 %" of 300 tasks with one failure would be false in a text that others decide by.
    return f"{min(99, max(1, rounded)) if 0 < share < 1 else rounded} %"


def show_usd(usd: float) -> str:
    """`$0.0012`: four digits, or as many as it takes to see two of the figure."""
    if usd <= 0:
        return "$0"
    return f"${usd:.{max(4, 1 - math.floor(math.log10(usd)))}f}"


def _group(rate: Rate) -> str:
    return "Reliable" if rate.low > 0.5 else "Unreliable" if rate.high < 0.5 else "Unclear"


def _kinds(rates: Mapping[str, Rate]) -> str:
    ordered = sorted(rates.items(), key=lambda pair: (-pair[1].accuracy, pair[0]))
    named = [f"{kind} ({percent(rate.accuracy)} of {rate.tasks})" for kind, rate in ordered[:_MOST_KINDS]]
    more = len(ordered) - len(named)
    return ", ".join([*named, *([f"{more} more kinds"] if more else [])])


def show_seconds(seconds: float) -> str:
    """`1.2 s`, with two digits of the figure below one second."""
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds:.2g} s"


def _tokens(profile: Profile) -> str:
    if profile.input_tokens is None or profile.output_tokens is None:
        return "tokens unknown"
    about = "about " if profile.estimated else ""
    return f"{about}{profile.input_tokens:.0f} tokens in and {profile.output_tokens:.0f} out"
