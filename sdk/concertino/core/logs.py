"""The loggers of the package: standard ones below `concertino`. Until logging is set up, only warnings show.

    concertino           warnings about the process: a plugin that blocked the event loop, a listener that failed
    concertino.run       a run in a few lines (INFO)
    concertino.call      every call of a tool or agent (DEBUG)
    concertino.model     every request to a model (DEBUG)
    concertino.plugins   every plugin that is imported (DEBUG), and those that are left out (INFO)

A record of the last four has its fields in `record.concertino`, a dictionary of plain JSON data, which any formatter
can write. `docs/how-to/log-a-run.md` lists them.

Invariant: nothing below a warning is written anywhere unless somebody asks for it; a message is one line without
control characters, and so is every line of a traceback: whichever handler writes it, no stranger commands a terminal.
"""

from __future__ import annotations

import logging
from typing import Any

from .log_filter import SAFE_RECORDS

# Without a handler of ours, not even a `NullHandler`: where no logging is set up, Python's handler of last resort then
# prints warnings to stderr, which the logging how-to of the standard library calls the best default of a library. A
# server that is left out, or a damaged trace, would pass unseen otherwise.
logger = logging.getLogger("concertino")
logger.addFilter(SAFE_RECORDS)


def logger_of(name: str) -> logging.Logger:
    """The logger `concertino.NAME` of a plugin of ours, whose messages quote strangers."""
    found = logging.getLogger(f"concertino.{name}")
    found.addFilter(SAFE_RECORDS)
    return found


run_logger = logging.getLogger("concertino.run")
call_logger = logging.getLogger("concertino.call")
model_logger = logging.getLogger("concertino.model")
plugins_logger = logging.getLogger("concertino.plugins")


def any_listens() -> bool:
    """Whether somebody wants to be told of a run that begins now."""
    if run_logger.isEnabledFor(logging.INFO):
        return True
    return call_logger.isEnabledFor(logging.DEBUG) or model_logger.isEnabledFor(logging.DEBUG)


def write(logger: logging.Logger, level: int, text: str, **fields: Any) -> None:
    """Log one line and its fields, those left out that are None."""
    told = {name: value for name, value in fields.items() if value is not None}
    # As an argument: a `%` in a text of a model is no format.
    logger.log(level, "%s", text, extra={"concertino": told}, stacklevel=3)
