"""The built-in recording, and what `concertino check` asks: of each published model a question that it answered.

The recording was written for this package; no real model is in it, and its figures mean nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from concertino import ModelSpec

EXAMPLE = Path(__file__).with_name("example.jsonl")
"""Two invented models and six questions, in the own form."""

_published: list[ModelSpec] = []


def note_published(specs: list[ModelSpec]) -> list[ModelSpec]:
    """Remember what was published last, for the check."""
    _published[:] = specs
    return specs


class _Examples(Mapping[str, Any]):
    """For each published model, a recorded question with an answer of a dozen words."""

    def __getitem__(self, name: str) -> dict[str, Any]:
        spec = next((spec for spec in _published if spec.name.rpartition("/")[2] == name), None)
        if spec is None:
            raise KeyError(name)
        return {"prompt": spec.factory().sample_question(), "honours_max_tokens": True, "honours_stop": True}  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[str]:
        return iter([spec.name.rpartition("/")[2] for spec in _published])

    def __len__(self) -> int:
        return len(_published)


concertino_examples: Mapping[str, Any] = _Examples()
"""What `concertino check` may ask."""
