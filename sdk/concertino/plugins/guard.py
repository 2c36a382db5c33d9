"""The guard: the one way in which code of a plugin is run while plugins are loaded.

It runs in a daemon thread with a time limit, so a plugin that loops or blocks costs its time limit and
nothing else, and whatever it raises, `SystemExit` and `KeyboardInterrupt` included, is a `PluginFault` with
the plugin's own file and line. The user's own Ctrl-C arrives in the waiting thread and passes. A thread
cannot be ended from outside: one that ran out of time is left behind, and the fault says so.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from .plugin_prints import prints_apart

T = TypeVar("T")

_LONGEST = 400
"""Characters of an error in a message."""
# Frames of these packages only load the plugin; its author looks for a line of their own.
_NOT_THE_PLUGIN = frozenset({"concertino", "importlib", "threading", "pluggy"})
_guarding = threading.local()


class PluginFault(Exception):
    """A plugin did what a plugin may not do; the text is the reason that its row shows."""


def guarded(function: Callable[[], T], doing: str, package: str, seconds: float) -> T:
    """The result of `function`, which runs code of a plugin.

    Args:
        function: called once, in its own thread.
        doing: what it does, for the message: `import`, `concertino_tools()`.
        package: the plugin's top-level package, whose lines the message points to.
        seconds: how long it may take.

    Raises:
        PluginFault: it raised anything, or took longer.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        _guarding.active = True
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work, name=f"concertino {doing} of {package}", daemon=True)
    with prints_apart(inside_guard):
        thread.start()
        thread.join(seconds)
    if results:
        return results[0]
    if not errors:
        raise PluginFault(f"{doing} took longer than {seconds:g} s; its thread is left behind")
    if isinstance(errors[0], PluginFault):
        raise errors[0]
    raise PluginFault(describe_error(errors[0], package)) from errors[0]


def inside_guard() -> bool:
    """Whether the caller is a plugin that is just being loaded."""
    return getattr(_guarding, "active", False)


def describe_error(error: BaseException, package: str) -> str:
    """`type: message (file:line)`, where the line is the plugin's own as far as there is one."""
    try:
        text = " ".join(str(error).split())
    except BaseException:
        text = "its text cannot be shown"
    kind = type(error).__name__
    place = _place(error, package)
    shown = f"{kind}: {text}" if text else kind
    return _cut(shown) + (f" ({place})" if place else "")


def show(value: object) -> str:
    """What a plugin returned, for a message: its type and the beginning of its repr."""
    try:
        text = repr(value)
    except BaseException:
        text = "its repr fails"
    return f"{type(value).__name__} {_cut(text, 80)}"


def _cut(text: str, longest: int = _LONGEST) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _place(error: BaseException, package: str) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    lines = _lines(error.__traceback__)
    own = [place for module, place in lines if module == package]
    foreign = [place for module, place in lines if module not in _NOT_THE_PLUGIN]
    return (own or foreign or [""])[-1]


def _lines(trace: TracebackType | None) -> list[tuple[str, str]]:
    return [
        (str(frame.f_globals.get("__name__", "")).split(".")[0], f"{frame.f_code.co_filename}:{line}")
        for frame, line in traceback.walk_tb(trace)
    ]
