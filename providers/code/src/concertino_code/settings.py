"""The settings of the published tool: the table `[providers.code]`, and `CONCERTINO_CODE_<NAME>` in the environment.

A variable wins over the table, key by key, so that one run can differ from what a project has written down. A program
makes a tool of its own with `python_tool(...)`.

Invariant: a key means the same in both places, and an error names the place in which the wrong value stands.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from concertino import ProviderSettings, UsageError
from concertino.schema import near_names

from .sandbox.limits import ScriptLimits

PREFIX = "CONCERTINO_CODE_"
WHERE = f"[providers.code] or {PREFIX}..."
"""Where settings are made, as errors name it."""
LEVELS = ("auto", "namespaces", "bubblewrap", "landlock", "limits", "docker")
_WORDS = ("image",)
_PATHS = ("python", "bwrap")
_FLAGS = ("allow_unsafe", "network")
_KINDS: dict[str, type[float]] = {limit.name: float if limit.type == "float" else int for limit in fields(ScriptLimits)}
KEYS = ("level", *_FLAGS, *_WORDS, *_PATHS, *_KINDS)
"""All settings, as the table names them."""
_YES = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False, "": False}


@dataclass(frozen=True)
class CodeSettings:
    """What a person can set; see `KEYS`.

    Attributes:
        level: which sandbox; `auto` takes the strongest local one that passes its self-test.
        allow_unsafe: whether `limits`, which is not a sandbox, may be used.
        network: whether scripts may use the network.
        limits: what each script may use.
        python: the interpreter of local scripts; empty for this one.
        bwrap: path of the `bwrap` program; empty to look for it.
        image: the docker image, with a Python in it.
    """

    level: str = "auto"
    allow_unsafe: bool = False
    network: bool = False
    limits: ScriptLimits = field(default_factory=ScriptLimits)
    python: str = ""
    bwrap: str = ""
    image: str = ""


def read_settings(table: ProviderSettings | None = None, environ: Mapping[str, str] | None = None) -> CodeSettings:
    """The settings in force.

    Args:
        table: `[providers.code]`; relative paths count from its folder.
        environ: by default that of this process.

    Raises:
        UsageError: a key is unknown, or has a value that it cannot have.
    """
    table = ProviderSettings() if table is None else table
    table.check(KEYS)
    given: dict[str, _Value] = {key: _Value(f"{table.where}: {key}", value) for key, value in table.items()}
    for key in _PATHS:
        if (path := table.path(key)) is not None:
            given[key] = given[key]._replace(value=str(path))
    given |= _from_environment(os.environ if environ is None else environ)
    level = given["level"].text().lower() if "level" in given else "auto"
    if level not in LEVELS:
        raise UsageError(f"{given['level'].where} = {level!r}; expected one of {', '.join(LEVELS)}")
    flags: dict[str, Any] = {key: given[key].flag() for key in _FLAGS if key in given}
    words: dict[str, Any] = {key: given[key].text() for key in (*_WORDS, *_PATHS) if key in given}
    return CodeSettings(level, limits=_limits(given), **flags, **words)


class _Value(NamedTuple):
    """What was given, and where."""

    where: str
    value: Any

    def text(self) -> str:
        """A text."""
        if not isinstance(self.value, str):
            raise UsageError(f"{self.where} = {self.value!r}; expected text in quotes")
        return self.value

    def flag(self) -> bool:
        """Yes or no; in the environment 1 or 0."""
        found = self.value if isinstance(self.value, bool) else _YES.get(str(self.value).lower())
        if found is None:
            raise UsageError(f"{self.where} = {self.value!r}; expected 1 or 0, in a file true or false")
        return found

    def number(self, kind: type[float]) -> float:
        """A number; in the environment as text."""
        if not isinstance(self.value, bool):
            with contextlib.suppress(ValueError, TypeError):
                number = kind(self.value)
                if isinstance(self.value, str) or number == self.value:
                    return number
        raise UsageError(f"{self.where} = {self.value!r}; expected a {'whole ' if kind is int else ''}number")


def _from_environment(environ: Mapping[str, str]) -> dict[str, _Value]:
    given = {name[len(PREFIX) :].lower(): value for name, value in environ.items() if name.startswith(PREFIX)}
    for key in given:
        if key not in KEYS:
            near = near_names(key, KEYS, limit=1)
            hint = f"did you mean {PREFIX}{near[0].upper()}?" if near else f"there are {', '.join(KEYS).upper()}"
            raise UsageError(f"{PREFIX}{key.upper()} is not a setting; {hint}")
    return {key: _Value(PREFIX + key.upper(), value) for key, value in given.items() if value}


def _limits(given: Mapping[str, _Value]) -> ScriptLimits:
    bounds = ScriptLimits()
    for key in (key for key in _KINDS if key in given):
        try:
            bounds = bounds.with_(**{key: given[key].number(_KINDS[key])})
        except ValueError as error:
            raise UsageError(f"{given[key].where} = {given[key].value!r}: {error}") from None
    return bounds
