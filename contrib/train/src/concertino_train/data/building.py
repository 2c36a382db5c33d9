"""Making a set: trajectories are selected, rewritten, filtered, and written with a data card.

    results and traces -> choose -> rewrite, if asked -> GAP's filters, if asked
                       -> conversations.jsonl, left_out.jsonl, card.json, README.md

The invariant: the same files and settings make the same set, byte by byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from concertino import Pool, Trace, TraceError, UsageError
from concertino_bench import Item, Key
from concertino_bench.reports import read_results
from concertino_local.codec import Codec

from .card import card_of, write_card
from .conversations import OTHERS, conversations_of
from .examples import Example, conversations_in
from .files import NAME, encoded_line, write_conversations
from .gap import GapSettings, gap_filter
from .rewriting import NotParallel, Rewritten, parallelised
from .selecting import SelectionSettings, select
from .trajectories import LeftOutTrajectory, PoolOf, Trajectory, read_trajectories, tools_of


@dataclass(frozen=True)
class SetSettings:
    """How a set is made.

    Attributes:
        selection: which trajectories are taken.
        exclude: ids of tasks and questions that are kept for something else, such as the set for RL.
        seed: of chance.
        systems: of the results files; all by default.
        others: roles that are not played by the policy.
        roles: only conversations of these roles or parts; all by default.
        exact: teach only texts without any issue, those that had one plain reading included.
        rewrite: serial trajectories become parallel ones of this strategy, whose turns hold several calls.
        keep_serial: what cannot be rewritten stays as it is; else it is left out.
        gap: GAP's filters.
        title: of the card.
    """

    selection: SelectionSettings = field(default_factory=SelectionSettings)
    exclude: Collection[str] = ()
    seed: int = 0
    systems: tuple[str, ...] = ()
    others: tuple[str, ...] = OTHERS
    roles: tuple[str, ...] = ()
    exact: bool = False
    rewrite: str | None = None
    keep_serial: bool = True
    gap: GapSettings | None = None
    title: str = "Conversations to learn from"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data, as the card shows it."""
        return {
            **self.selection.model_dump(),
            "exclude": len(self.exclude),
            "seed": self.seed,
            "systems": list(self.systems),
            "others": list(self.others),
            "roles": list(self.roles),
            "exact": self.exact,
            "rewrite": self.rewrite or "no",
            "keep_serial": self.keep_serial,
            "gap": {**self.gap.model_dump(), "seed": self.seed} if self.gap is not None else "no",
        }


@dataclass(frozen=True)
class DataSet:
    """A set that was made.

    Attributes:
        folder: where it is.
        examples: what is in it.
        left_out: what is not, with why.
        card: its figures.
    """

    folder: Path
    examples: tuple[Example, ...]
    left_out: tuple[LeftOutTrajectory, ...]
    card: Mapping[str, Any]


def make_set(
    results: str | Path | Sequence[str | Path],
    folder: str | Path,
    settings: SetSettings | None = None,
    *,
    pool: Pool | PoolOf | None = None,
    codec: Codec | None = None,
) -> DataSet:
    """Make a set of conversations from results files and their traces.

    Args:
        results: one or several; traces are found beside them.
        folder: for the set.
        settings: how.
        pool: what the runs had; needed for native calls, stateless prompts, and rewriting for another strategy. A
            function gives the pool of an item.
        codec: counts tokens.

    Raises:
        UsageError: nothing is left, a file cannot be read, or a pool is needed.
    """
    made = settings or SetSettings()
    paths = [Path(results)] if isinstance(results, str | Path) else [Path(path) for path in results]
    # One file named twice would teach each of its runs twice.
    if not paths or len({path.resolve() for path in paths}) < len(paths):
        raise UsageError(f"results={', '.join(map(str, paths)) or 'none'}: expected different results files")
    names = _short(paths)
    found = chain.from_iterable(
        read_trajectories(
            path,
            pool=pool,
            others=made.others,
            exact=made.exact,
            right_only=made.selection.answers == "right",
            systems=made.systems,
            source=names[path],
        )
        for path in paths
    )
    selected = select(found, made.selection, exclude=made.exclude, seed=made.seed)
    left = list(selected.left_out)
    items = _items(names) if pool is not None and not isinstance(pool, Pool) else {}
    examples = list(_examples(selected.trajectories, made, _Pools(pool, items), left))
    if made.gap is not None:
        examples, more = gap_filter(examples, made.gap, codec, made.seed)
        left += more
    if not examples:
        reasons = Counter(f"{each.reason}{each.detail and f' ({each.detail})'}" for each in left)
        told = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common(4)) or "no trajectories"
        raise UsageError(
            f"nothing is left to learn from: {told}. Check data.roles and data.gap, or set data.keep_serial=true to "
            "keep what cannot be rewritten"
        )
    target = Path(folder)
    digest = write_conversations(conversations_in(examples), target / NAME)
    (target / "left_out.jsonl").write_bytes(b"".join(encoded_line(each.to_json()) for each in left))
    notes = [*selected.notes, *_other_pools(examples, pool)]
    card = card_of(
        examples, sources=paths, left_out=left, notes=notes, settings=made.to_json(), codec=codec, sha256=digest
    )
    write_card(card, target, made.title)
    return DataSet(target, tuple(examples), tuple(left), card)


def _other_pools(examples: Sequence[Example], pool: Pool | PoolOf | None) -> Iterator[str]:
    """A note where conversations show tools of a pool that their runs did not have."""
    if isinstance(pool, Pool):
        shown = [each for each in examples if any(one.tools for one in each.conversations)]
        other = [each for each in shown if each.trajectory.pool != pool.id]
        if other:
            yield (
                f"{len(other)} trajectories ran with another pool ({other[0].trajectory.pool}) than the one whose "
                f"tools their conversations show ({pool.id})"
            )


def _short(paths: Sequence[Path]) -> dict[Path, str]:
    """The shortest ends of paths that tell them apart."""
    parts = {path: path.resolve().parts for path in paths}
    for length in range(1, max(map(len, parts.values())) + 1):
        names = {path: "/".join(each[-length:]) for path, each in parts.items()}
        if len(set(names.values())) == len(names):
            return names
    raise UsageError(f"{', '.join(map(str, paths))}: a results file is named twice")


def _items(names: Mapping[Path, str]) -> dict[tuple[str, Key], Item]:
    return {(name, item.key): item for path, name in names.items() for item in read_results(path).items}


@dataclass(frozen=True)
class _Pools:
    """The pool of a trajectory."""

    pool: Pool | PoolOf | None
    items: Mapping[tuple[str, Key], Item]

    def tools(self, one: Trajectory) -> list[dict[str, Any]]:
        if self.pool is None or isinstance(self.pool, Pool):
            return self.pool.to_openai() if self.pool is not None else []
        return tools_of(self.items[one.source, one.key], self.pool)

    def writes(self, one: Trajectory) -> frozenset[str]:
        """Visible names of members that change something."""
        if self.pool is None:
            return frozenset()
        pool = self.pool if isinstance(self.pool, Pool) else self.pool(self.items[one.source, one.key])
        return frozenset(visible for visible, spec in pool.actions if getattr(spec, "writes", False))


def _examples(
    chosen: Sequence[Trajectory], settings: SetSettings, pools: _Pools, left: list[LeftOutTrajectory]
) -> Iterator[Example]:
    for one in chosen:
        trace = Trace.load(one.trace)
        if settings.rewrite is not None:
            try:
                yield _rewritten(one, trace, settings.rewrite, pools, settings.exact)
                continue
            except (NotParallel, TraceError) as error:
                if not settings.keep_serial:
                    left.append(LeftOutTrajectory(one.key, one.source, "not rewritten", str(error)))
                    continue
        found = conversations_of(
            trace, task=one.key.task, tools=pools.tools(one), others=settings.others, exact=settings.exact
        )
        roles = settings.roles
        kept = [each for each in found if each.train and (not roles or each.role in roles or each.part in roles)]
        if kept:
            yield Example(one, tuple(kept))
        else:
            left.append(
                LeftOutTrajectory(one.key, one.source, "nothing to learn", "of the roles asked for" if roles else "")
            )


def _rewritten(one: Trajectory, trace: Trace, target: str, pools: _Pools, exact: bool) -> Example:
    new: Rewritten = parallelised(
        trace, target, tools=pools.tools(one), writes=pools.writes(one), task=one.key.task, exact=exact
    )
    widths = tuple({name: names.count(name) for name in sorted(set(names))} for names in new.calls)
    changed = replace(one, rounds=len(new.rounds), widths=widths, strategy=target, taught=len(new.conversation.train))
    return Example(changed, (new.conversation,))
