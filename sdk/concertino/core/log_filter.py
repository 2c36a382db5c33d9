"""What every record of a log passes before any handler writes it: no known secret, no control character, one line.

Invariant: whichever handler writes a record, it shows no secret that the process knows, and no stranger commands a
terminal; every record passes.
"""

from __future__ import annotations

import logging

from .display_text import clean, one_line
from .known_secrets import without_secrets

_WATCHED = frozenset(
    ["concertino", "aiohttp", "anthropic", "httpcore", "httpcore2", "httpx", "httpx2", "mcp", "openai"]
)
"""First parts of the names of loggers that may be told a key."""
_LATE = tuple(f"httpcore{n}.{part}" for n in ("", "2") for part in ("connection", "http11", "http2", "proxy"))
"""Loggers that are made with the first request, which is later than the key is read."""


class _SafeRecords(logging.Filter):
    """Makes the message of a record, and its traceback, safe to show."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Clean it; every record passes."""
        record.msg, record.args = one_line(without_secrets(record.getMessage())), None
        if record.exc_info and not record.exc_text:
            # Formatters take this text where it is there, and make none of their own.
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = clean(without_secrets(record.exc_text))
        return True


SAFE_RECORDS = _SafeRecords()
"""Added to a logger a second time, it does nothing."""


def watch_loggers() -> None:
    """Filter the loggers of concertino, its plugins, and the clients that carry keys; later ones with their key."""
    for late in _LATE:
        logging.getLogger(late)
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if name.partition(".")[0] in _WATCHED and isinstance(logger, logging.Logger):
            logger.addFilter(SAFE_RECORDS)
