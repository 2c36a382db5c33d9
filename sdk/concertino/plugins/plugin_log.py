"""What the log says of plugins: which were imported, and which are left out."""

from __future__ import annotations

import logging

from concertino.core.display_text import one_line
from concertino.core.logs import plugins_logger, write

from .status import PluginRow

_TEXT = 400
"""Characters of a reason."""


def tell_loaded(plugin: PluginRow) -> None:
    """A plugin was imported."""
    if plugins_logger.isEnabledFor(logging.DEBUG):
        seconds = round(plugin.import_seconds or 0.0, 3)
        write(
            plugins_logger,
            logging.DEBUG,
            f"{plugin.name}: imported in {seconds:.3f} s; hooks: {', '.join(plugin.hooks) or 'none'}",
            event="plugin.loaded",
            plugin=plugin.name,
            seconds=seconds,
            hooks=list(plugin.hooks),
        )


def tell_left_out(plugin: PluginRow) -> None:
    """A plugin cannot be used."""
    if plugins_logger.isEnabledFor(logging.INFO):
        from concertino.core.redaction import Redactor

        reason = one_line(Redactor().short(plugin.reason, _TEXT), _TEXT)
        write(
            plugins_logger,
            logging.INFO,
            f"{plugin.name} is left out: {reason}",
            event="plugin.left_out",
            plugin=plugin.name,
            reason=reason,
        )
