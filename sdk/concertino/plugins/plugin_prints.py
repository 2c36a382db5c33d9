"""What plugins print while they are loaded: apart from the output of the program, cleaned and bounded.

A `print` that somebody forgot would make the JSON of a command unreadable; an escape in it would reach the terminal.
Invariant: while a plugin is loaded, what its thread writes to stdout or stderr goes to stderr, without escapes; what
other threads write is passed on as it is. A plugin that writes around `sys` on purpose is not held back.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from concertino.core.display_text import clean

_MOST = 4_000
"""Characters that are shown of what one plugin prints in one go."""


class _Apart:
    """A stream of `sys` that tells the threads of plugins from all others."""

    def __init__(self, stream: Any, target: Any, is_plugin: Callable[[], bool]) -> None:
        self._stream, self._target, self._is_plugin = stream, target, is_plugin
        self._left = _MOST

    def write(self, text: str) -> int:
        # Bytes are refused as the stream itself refuses them: click asks so whether a stream takes texts.
        if not self._is_plugin() or not isinstance(text, str):
            return int(self._stream.write(text))
        shown = clean(text[: self._left])
        self._left -= len(shown)
        if shown:
            self._target.write(shown)
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def prints_apart(is_plugin: Callable[[], bool]) -> Iterator[None]:
    """Keep what plugins print apart.

    Args:
        is_plugin: whether the calling thread runs code of a plugin.
    """
    before = sys.stdout, sys.stderr
    if any(stream is None or isinstance(stream, _Apart) for stream in before):
        yield
        return
    made: Any = _Apart(before[0], before[1], is_plugin)
    other: Any = _Apart(before[1], before[1], is_plugin)
    sys.stdout, sys.stderr = made, other
    try:
        yield
    finally:
        # Whoever has put another stream there meanwhile keeps it.
        if sys.stdout is made:
            sys.stdout, sys.stderr = before
