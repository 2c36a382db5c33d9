"""Silence of libraries: their progress bars would mix with our lines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from logging import LogRecord, getLogger
from typing import Any

QUIET = {
    "HF_HUB_OFFLINE": "1",
    # TRL reports every trainer that is made.
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TRL_EXPERIMENTAL_SILENCE": "1",
    # The tokenizers library warns at each fork of a process that has encoded anything.
    "TOKENIZERS_PARALLELISM": "false",
}
"""Environment of a training: nothing is sent or downloaded, and no expected warning is shown."""


def set_quiet_environment() -> None:
    """Set what `QUIET` says, unless the environment says otherwise."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)


@contextmanager
def quietly() -> Iterator[None]:
    """Without progress bars of transformers, even where a trainer was not told so."""
    from transformers.utils import logging

    bars: Any = logging  # its functions have no annotations
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    told = getLogger("transformers.trainer")
    told.addFilter(_is_news)
    try:
        yield
    finally:
        told.removeFilter(_is_news)
        if shown:
            bars.enable_progress_bar()


def _is_news(record: LogRecord) -> bool:
    """Whether a warning says anything: tied weights are in no checkpoint, and nothing is lost by that."""
    return not record.getMessage().endswith("missing keys in the checkpoint model loaded: ['lm_head.weight'].")
