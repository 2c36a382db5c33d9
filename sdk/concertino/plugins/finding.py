"""A finding: one line of what `concertino doctor` saw, or what a plugin reports about itself."""

from __future__ import annotations

from typing import Literal, NamedTuple

Level = Literal["ok", "warning", "error"]


class Finding(NamedTuple):
    """One thing that the doctor saw, or that a plugin says of itself in `concertino_doctor`.

    Attributes:
        level: ok, warning or error.
        subject: what it is about: `python`, `plugin words`, `model toy/steady`.
        text: what was seen.
        step: what to do; empty where nothing is to be done.
    """

    level: Level
    subject: str
    text: str
    step: str = ""
