"""Silence of libraries: their bars would stand between our lines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from logging import LogRecord, getLogger
from typing import Any


@contextmanager
def quietly() -> Iterator[None]:
    """No progress bars of transformers within; as it was afterwards."""
    from transformers.utils import logging

    bars: Any = logging
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
