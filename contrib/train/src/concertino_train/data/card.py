"""The data card of a set: what is in it, what it was made of, and what was left out; for people and for programs.

    README.md   for people          card.json   the same figures

The invariant: a card follows from the set and its sources alone, so one made again from the same files is the same,
byte by byte.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from concertino_bench.reports import read_results
from concertino_local.codec import Codec

from .encoding import encode, token_lengths
from .examples import Example, conversations_in
from .gap import is_parallel
from .trajectories import REASONS, LeftOutTrajectory

FORMAT = 1
"""Version of the files of a set."""


def card_of(
    examples: Sequence[Example],
    *,
    sources: Sequence[str | Path] = (),
    left_out: Sequence[LeftOutTrajectory] = (),
    notes: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    codec: Codec | None = None,
    sha256: str = "",
) -> dict[str, Any]:
    """The figures of a set.

    Args:
        sources: results files that it was made of.
        left_out: what was not taken.
        notes: what a reader should know.
        settings: how it was made.
        codec: counts tokens; without one there are none on the card.
        sha256: of the file of conversations.
    """
    conversations = conversations_in(examples)
    runs = [example.trajectory for example in examples]
    card: dict[str, Any] = {
        "format": FORMAT,
        "counts": {
            "trajectories": len(examples),
            "conversations": len(conversations),
            "messages": sum(len(each.messages) for each in conversations),
            "taught": sum(len(each.train) for each in conversations),
            "context": sum(len(each.own) - len(each.train) for each in conversations),
            "recovered": sum(run.recovered for run in runs),
            "repaired": sum(run.repaired for run in runs),
            "parallel": sum(is_parallel(run) for run in runs),
            "rewritten": sum(any(each.rewritten for each in example.conversations) for example in examples),
        },
        "statuses": _sums(run.statuses for run in runs),
        "tools": _sums(run.tools for run in runs),
        "models": _sums(run.models for run in runs),
        "strategies": _counts(each.strategy for each in conversations),
        "roles": _counts(each.part for each in conversations),
        "systems": _counts(run.key.system for run in runs),
        "pools": _counts(each.pool for each in conversations),
        "faults": _counts(code for each in conversations for codes in each.faults.values() for code in codes),
        "left_out": _counts(each.reason for each in left_out),
        "notes": list(notes),
        "settings": dict(settings or {}),
        "sources": [source_of(Path(path)) for path in sources],
        "sha256": sha256,
    }
    if codec is not None:
        encoded = [encode(each, codec) for each in conversations]
        card["tokens"] = {"codec": codec.fingerprint, **token_lengths(encoded)}
    return card


def _sums(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(sorted(total.items()))


def _counts(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(name for name in names if name).items()))


def source_of(path: Path) -> dict[str, Any]:
    """Name, digest and header of a results file, as a card shows them."""
    header = read_results(path).header
    known = {
        key: header[key] for key in ("fingerprint", "pool", "tasks", "samples", "seed", "versions") if key in header
    }
    return {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), **known}


def write_card(card: Mapping[str, Any], folder: str | Path, title: str = "Conversations to learn from") -> Path:
    """Write a card beside its set: `card.json` and `README.md`."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    (target / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (target / "README.md").write_text(markdown(card, title), encoding="utf-8")
    return target / "README.md"


_HEADS = {
    "counts": "What is in it",
    "outcomes": "Right samples of each question",
    "tokens": "Tokens",
    "statuses": "Statuses of the calls",
    "tools": "Calls by member",
    "models": "Replies by model",
    "strategies": "Conversations by strategy",
    "roles": "Conversations by role",
    "systems": "Trajectories by system",
    "pools": "Conversations by pool",
    "faults": "Why texts are context and not taught",
    "left_out": "What was left out, and why",
    "settings": "How it was made",
}


def markdown(card: Mapping[str, Any], title: str) -> str:
    """A card for people."""
    lines = [f"# {title}", "", f"SHA-256: `{card['sha256']}`", ""]
    if notes := card.get("notes"):
        lines += [*(f"- {note}" for note in notes), ""]
    for name, head in _HEADS.items():
        if rows := card.get(name):
            lines += [f"## {head}", "", "| | |", "|---|---|"]
            lines += [f"| {_cell(_told(name, key))} | {_cell(_shown(value))} |" for key, value in rows.items()]
            lines.append("")
    if card["sources"]:
        lines += ["## What it was made of", "", "| file | SHA-256 | pool | tasks | samples |", "|---|---|---|---|---|"]
        for source in card["sources"]:
            cells = [
                source["file"],
                source["sha256"][:16],
                *(source.get(key, "") for key in ("pool", "tasks", "samples")),
            ]
            lines.append(f"| {' | '.join(_cell(_shown(cell)) for cell in cells)} |")
        lines.append("")
    return "\n".join(lines)


def _told(table: str, key: str) -> str:
    return f"{key}: {REASONS[key]}" if table == "left_out" and key in REASONS else key


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
