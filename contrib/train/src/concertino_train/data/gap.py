"""GAP's filters: enough searches, parallel and serial trajectories in a fixed ratio, not too long.

Section 4.1 of its paper: what can be done with fewer than 3 searches is too simple, parallel and serial samples stand
6:4, and what has more than about 2,000 tokens is left out: it tells of missing documents, not of a hard question.
The paper does not say what is counted; here it is everything behind the prompt, what came back included.

The invariant: an example that passes alone may still be left out for the ratio, and for nothing else; which one goes is
chance of a seed.
"""

from __future__ import annotations

import fnmatch
import hashlib
from collections.abc import Sequence
from typing import Annotated, Any

from concertino import UsageError
from concertino_local.codec import Codec
from pydantic import Field

from concertino_train.settings import Count, Number, Section

from .examples import Example
from .trajectories import LeftOutTrajectory, Trajectory


class GapSettings(Section):
    """GAP's filters.

    Attributes:
        least_searches: calls of a search that an example makes at least.
        parallel_share: share of examples with searches side by side; None for any.
        most_tokens: behind the prompt; without a codec, as trainings make their sets, estimated as a third of the UTF-8
            bytes of every message.
        searches: patterns of members that search; all by default, for GAP has no other.
    """

    least_searches: Number = 3
    parallel_share: Annotated[float, Field(gt=0, lt=1)] | None = 0.6
    most_tokens: Count | None = 2000
    searches: list[str] = Field(default_factory=lambda: ["*"])


def gap_filter(
    examples: Sequence[Example], settings: GapSettings | None = None, codec: Codec | None = None, seed: int = 0
) -> tuple[list[Example], list[LeftOutTrajectory]]:
    """Those that pass, in order, and the others with why.

    Raises:
        UsageError: nothing passes, or there are only parallel or only serial examples, so that no ratio can be had.
    """
    chosen = settings or GapSettings()
    kept: list[Example] = []
    left: list[LeftOutTrajectory] = []
    for example in examples:
        key, source = example.trajectory.key, example.trajectory.source
        count = searches_in(example.trajectory, chosen.searches)
        tokens = example.tokens(codec) if chosen.most_tokens is not None else 0
        if count < chosen.least_searches:
            left.append(LeftOutTrajectory(key, source, "simple", f"{count} searches"))
        elif chosen.most_tokens is not None and tokens > chosen.most_tokens:
            left.append(LeftOutTrajectory(key, source, "long", f"{tokens} tokens"))
        else:
            kept.append(example)
    if not kept:
        simple = sum(each.reason == "simple" for each in left)
        raise UsageError(
            f"none of {len(examples)} examples passes: {simple} have fewer than {chosen.least_searches} searches, "
            f"{len(left) - simple} more than {chosen.most_tokens} tokens; take harder questions, or lower the bounds"
        )
    return _in_ratio(kept, chosen, seed, left), left


def searches_in(one: Trajectory, patterns: Sequence[str] = ("*",)) -> int:
    """How many searches a trajectory makes."""
    return sum(sum(_matching(level, patterns)) for level in one.widths)


def is_parallel(one: Trajectory, patterns: Sequence[str] = ("*",)) -> bool:
    """Whether searches ran side by side."""
    return any(sum(_matching(level, patterns)) > 1 for level in one.widths)


def _matching(level: Any, patterns: Sequence[str]) -> list[int]:
    return [count for name, count in level.items() if any(fnmatch.fnmatchcase(name, each) for each in patterns)]


def _in_ratio(kept: list[Example], settings: GapSettings, seed: int, left: list[LeftOutTrajectory]) -> list[Example]:
    """As many of both kinds as the ratio allows."""
    share = settings.parallel_share
    if share is None:
        return kept
    kinds: dict[bool, list[int]] = {True: [], False: []}
    for place, example in enumerate(kept):
        kinds[is_parallel(example.trajectory, settings.searches)].append(place)
    parallel, serial = len(kinds[True]), len(kinds[False])
    if not parallel or not serial:
        missing = "parallel" if not parallel else "serial"
        step = "rewrite serial ones as parallel" if not parallel else "collect some with one call per round"
        raise UsageError(
            f"all {len(kept)} examples are {'serial' if not parallel else 'parallel'}, so parallel_share={share:g} "
            f"cannot be had without a {missing} one; {step}, or write parallel_share=None"
        )
    odds = share / (1 - share)
    # At least one of each kind, or a small set could round one of them away.
    wanted = {True: min(parallel, max(1, round(serial * odds))), False: min(serial, max(1, round(parallel / odds)))}
    gone: set[int] = set()
    for kind, places in kinds.items():
        # By a hash of the example, so that the order of files decides nothing.
        order = sorted(places, key=lambda place: _chance(seed, kept[place]))
        gone |= set(order[wanted[kind] :])
    for place in sorted(gone):
        one = kept[place].trajectory
        kind_of = "parallel" if place in kinds[True] else "serial"
        left.append(LeftOutTrajectory(one.key, one.source, "ratio", kind_of))
    return [example for place, example in enumerate(kept) if place not in gone]


def _chance(seed: int, example: Example) -> str:
    parts = [str(seed), *map(str, example.trajectory.key), example.trajectory.source]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
