"""The settings of the published tool, from the environment: `CONCERTINO_CODE_<NAME>`.

The tool that a pool finds by itself has no other way to be told. A program makes its own with `python_tool(...)`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from concertino import UsageError

from .limits import Limits

PREFIX = "CONCERTINO_CODE_"
LEVELS = ("auto", "namespaces", "bubblewrap", "landlock", "limits", "docker", "sandboxfusion", "e2b")
_WORDS = ("python", "bwrap", "url", "image")
_YES = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False, "": False}


@dataclass(frozen=True)
class Settings:
    """What a person can set.

    Attributes:
        level: which sandbox; `auto` takes the strongest local one that passes its self-test.
        allow_unsafe: whether `limits`, which is no sandbox, may be used.
        network: whether scripts may use the network.
        limits: what each script may use.
        python: the interpreter of local scripts; empty for this one.
        bwrap: path of the `bwrap` program; empty to look for it.
        url: address of the SandboxFusion server, or of another E2B domain's API.
        image: the docker image, with a Python in it.
    """

    level: str = "auto"
    allow_unsafe: bool = False
    network: bool = False
    limits: Limits = field(default_factory=Limits)
    python: str = ""
    bwrap: str = ""
    url: str = ""
    image: str = ""


def read_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """The settings in force.

    Raises:
        UsageError: a variable is unknown, or has a value that it cannot have.
    """
    environ = os.environ if environ is None else environ
    given = {name[len(PREFIX) :].lower(): value for name, value in environ.items() if name.startswith(PREFIX)}
    kinds = {limit.name: float if limit.type == "float" else int for limit in fields(Limits)}
    known = {"level", "allow_unsafe", "network", *_WORDS, *kinds}
    for name in given:
        if name not in known:
            raise UsageError(f"{PREFIX}{name.upper()} is no setting; there are {', '.join(sorted(known)).upper()}")
    level = given.get("level", "auto").lower() or "auto"
    if level not in LEVELS:
        raise UsageError(f"{PREFIX}LEVEL={level}; expected one of {', '.join(LEVELS)}")
    limits: dict[str, Any] = {}
    for name, kind in kinds.items():
        if name in given:
            try:
                limits[name] = kind(given[name])
            except ValueError:
                raise UsageError(f"{PREFIX}{name.upper()}={given[name]!r}; expected a number") from None
    try:
        bounds = Limits(**limits)
    except ValueError as error:
        raise UsageError(f"{PREFIX}...: {error}") from None
    words = {name: given.get(name, "") for name in _WORDS}
    return Settings(level, _flag(given, "allow_unsafe"), _flag(given, "network"), bounds, **words)


def _flag(given: Mapping[str, str], name: str) -> bool:
    value = given.get(name, "").lower()
    if value not in _YES:
        raise UsageError(f"{PREFIX}{name.upper()}={value!r}; expected 1 or 0")
    return _YES[value]
