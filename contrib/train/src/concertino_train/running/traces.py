"""Rollouts as trace files during a training, so that people see what the policy does.

    out/traces/step-000010/10-3-0.trace.jsonl    what `concertino traces show` takes
    out/traces/step-000010/episodes.jsonl        what `concertino train audit` takes
    out/traces/step-000010/rewards.jsonl         the reward of each, component by component; its group and advantages
    out/traces/step-000010/drift.jsonl           of each trace, how much likelier its tokens are where they are trained

The invariant: from the episodes of a step and the reward of the settings, the very rewards are computed again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .folder import clean_folder

if TYPE_CHECKING:
    from concertino_train.config.learning import TraceSection
    from concertino_train.rewards.reward import Scored
    from concertino_train.rollouts.batches import Batch
    from concertino_train.rollouts.rollout import Rollout
    from concertino_train.rollouts.sequences import TrainingRow


Rows = Mapping[str, Sequence[Mapping[str, Any]]]
"""Rows of a batch by the id of their rollout: role, numbers of the turns, advantage, and why it is left out."""


def rows_of_batch(batch: Batch, ids: Sequence[str]) -> Rows:
    """What was trained of each rollout.

    Args:
        batch: of the step, whose rows are whole rollouts.
        ids: of the rollouts that it is made of, in their order.
    """
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row, credit, why in zip(batch.rows, batch.credit, batch.reasons, strict=True):
        told = {"role": row.role, "turns": list(row.turns), "advantage": round(float(credit), 6), "left_out": why}
        found.setdefault(ids[row.rollout], []).append(told)
    return found


class TraceWriter:
    """Writes some rollouts of some steps.

    Args:
        folder: of the traces; each step gets a folder of its own.
        settings: which steps, and how many rollouts of each.
    """

    def __init__(self, folder: str | Path, settings: TraceSection) -> None:
        self.folder = Path(folder)
        self.settings = settings

    def due(self, step: int) -> bool:
        """Whether a step is written: the first one, and every n-th."""
        every = self.settings.every
        return every > 0 and (step == 1 or step % every == 0)

    def write(
        self, step: int, rollouts: Sequence[Rollout], scored: Sequence[Scored], rows: Rows | None = None
    ) -> list[Path]:
        """Write a step; what an interrupted training had written of it is replaced.

        Args:
            step: of the training, from 1.
            rollouts: of the step.
            scored: their rewards.
            rows: what was trained of each, where the batch of the step is known.

        Returns:
            The trace files.
        """
        home = clean_folder(self.folder / f"step-{step:06d}")
        chosen = choose(rollouts, scored, self.settings.keep)
        paths = [rollouts[place].write_trace(home / f"{rollouts[place].id}.trace.jsonl") for place in chosen]
        _write(home / "episodes.jsonl", [rollout.episode.to_json() for rollout in rollouts])
        told = rows or {}
        rewards = [
            {"id": rollout.id, "group": rollout.group, **reward.to_json(), "rows": told.get(rollout.id, [])}
            for rollout, reward in zip(rollouts, scored, strict=True)
        ]
        _write(home / "rewards.jsonl", rewards)
        return paths

    def write_drift(self, step: int, rows: Sequence[tuple[str, TrainingRow]], drift: Mapping[int, list[float]]) -> None:
        """Add to a step that was written: of its traces, by turn, the drift of each sampled token.

        Args:
            step: of the training, from 1.
            rows: of its batch, each with the id of its rollout.
            drift: by number of a row, of each of its trained tokens; rows of other roles may come later.
        """
        home = self.folder / f"step-{step:06d}"
        lines = []
        for number, values in sorted(drift.items()):
            name, row = rows[number]
            lengths = _turns_of(row.mask)
            # Turns without anything read between them would not be told apart.
            if len(lengths) == len(row.turns) and (home / f"{name}.trace.jsonl").is_file():
                given = iter(values)
                turns = {
                    turn: [round(next(given), 4) for _ in range(n)] for turn, n in zip(row.turns, lengths, strict=True)
                }
                lines.append({"id": name, "turns": turns})
        _add(home / "drift.jsonl", lines)


def _turns_of(mask: Sequence[int]) -> list[int]:
    """How many tokens each stretch of sampled tokens has."""
    return [sum(1 for _ in group) for sampled, group in groupby(mask) if sampled]


def choose(rollouts: Sequence[Rollout], scored: Sequence[Scored], count: int) -> list[int]:
    """Which rollouts show most, of the groups that differ most: the best of each, then the worst of each, and so on.

    Returns:
        Their places, at most `count`.
    """
    groups: dict[str, list[int]] = {}
    for place, rollout in enumerate(rollouts):
        groups.setdefault(rollout.group, []).append(place)
    ranked = [sorted(places, key=lambda place: -scored[place].total) for places in groups.values()]
    ranked.sort(key=lambda places: scored[places[-1]].total - scored[places[0]].total)
    found: list[int] = []
    for turn in range(len(rollouts)):
        found += [places.pop(0 if turn % 2 == 0 else -1) for places in ranked if places]
    return found[:count]


def _write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.write_text("", encoding="utf-8")
    _add(path, rows)


def _add(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
