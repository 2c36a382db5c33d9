"""The built-in recording, and what `concertino check` asks: of each published model a question that it answered.

The recording was written for this package; no real model is in it, and its figures mean nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from concertino import ModelSpec

from .model import ReplayModel

EXAMPLE = Path(__file__).with_name("example.jsonl")
"""Two invented models and six questions, in the package's own format."""


class PublishedExamples(Mapping[str, Any]):
    """For each published model, a recorded question with an answer of a dozen words."""

    def __init__(self) -> None:
        self.published: Sequence[ModelSpec] = ()

    def __getitem__(self, name: str) -> dict[str, Any]:
        for spec in self.published:
            if spec.name.rpartition("/")[2] == name:
                model = spec.factory()
                assert isinstance(model, ReplayModel)
                return {"prompt": model.sample_question(), "honours_max_tokens": True, "honours_stop": True}
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter([spec.name.rpartition("/")[2] for spec in self.published])

    def __len__(self) -> int:
        return len(self.published)
