"""One skill: the folder of a `SKILL.md`, read in three steps as its format means it.

The front matter (name, description) is read when the pool is made, the instructions below it when the skill is called,
and its other files when they are asked for.

Invariant: no path that somebody names leads out of the folder, through links neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from concertino import UsageError

MANIFEST = "SKILL.md"
MOST_FILES = 2000
"""Files of a skill that are looked at."""
_MOST_BYTES = 1 << 20
"""Bytes of a `SKILL.md`."""
_UNFIT = re.compile(r"[^A-Za-z0-9_.-]+")
_SKIPPED = ("node_modules", "__pycache__")
_KEY = re.compile(r"([A-Za-z][\w-]*): +(.*)")
_RUNS = (".py", ".sh", ".bash", ".js", ".mjs")
"""Suffixes of scripts that can be run; others need a first line with `#!`."""


@dataclass(frozen=True)
class Skill:
    """A skill, without its instructions.

    Attributes:
        name: as its front matter says it, or else its folder's name.
        description: what it is for and when to use it.
        folder: where it lies.
        compatibility: what it needs of its surroundings, in its own words.
        hidden: it is for people to call, not for models.
        faults: what differs from the format and does not matter here.
    """

    name: str
    description: str
    folder: Path
    compatibility: str = ""
    hidden: bool = False
    faults: tuple[str, ...] = ()

    @property
    def member_name(self) -> str:
        """Its name in a pool."""
        return _UNFIT.sub("-", self.name).strip("-_.")[:64] or "skill"

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Its other files by relative path, in order; as they were when they were first asked for."""
        found = []
        for path in _walk(self.folder):
            name = path.relative_to(self.folder).as_posix()
            if name != MANIFEST and self.find(name) is not None:
                found.append(name)
            if len(found) == MOST_FILES:
                break
        return tuple(sorted(found))

    @cached_property
    def scripts(self) -> tuple[str, ...]:
        """Those of its files that can be run."""
        return tuple(name for name in self.files if self._runs(name))

    def _runs(self, name: str) -> bool:
        if name.endswith(_RUNS):
            return True
        with (self.folder / name).open("rb") as file:
            return file.read(2) == b"#!"

    def find(self, name: str) -> Path | None:
        """The file of a relative path; None where there is none, or it lies outside the folder."""
        try:
            path = (self.folder / name).resolve()
            inside = path.is_relative_to(self.folder.resolve())
            return path if inside and path.is_file() else None
        except (OSError, ValueError, RuntimeError):  # a loop of links; a name with a zero byte
            return None

    def instructions(self) -> str:
        """What stands below the front matter, as it is now.

        Raises:
            UsageError: the file is gone or cannot be read.
        """
        return _split(self.folder / MANIFEST)[1]


def read_skill(folder: Path) -> Skill:
    """The skill of a folder.

    Raises:
        UsageError: it has no front matter that can be read, or no description.
    """
    file = folder / MANIFEST
    data, faults = _front_matter(file, _split(file)[0])
    description = data.get("description")
    if not isinstance(description, str) or not description.strip():
        raise UsageError(
            f"{file}: description is {_kind(description)}; expected a text that says what it does and when"
        )
    own = folder.absolute().name
    name = data.get("name")
    if not isinstance(name, str) or not name.strip():
        faults.append(f"name is {_kind(name)}; expected a text, so it is called {own!r} like its folder")
        name = own
    elif name != own:
        faults.append(f"its name is {name!r} and its folder's {own!r}; they should be the same")
    compatibility = data.get("compatibility")
    return Skill(
        name.strip(),
        description.strip(),
        folder,
        compatibility.strip() if isinstance(compatibility, str) else "",
        data.get("disable-model-invocation") is True,
        tuple(faults),
    )


def _split(file: Path) -> tuple[str, str]:
    """Front matter and instructions."""
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise UsageError(f"{file} has {file.stat().st_size:,} bytes; at most {_MOST_BYTES:,}")
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    lines = text.splitlines()
    ends = [number for number, line in enumerate(lines) if line.rstrip() == "---"]
    if len(ends) < 2 or ends[0] != 0:
        raise UsageError(f"{file}: expected front matter first: a line `---`, name and description, a line `---`")
    return "\n".join(lines[1 : ends[1]]), "\n".join(lines[ends[1] + 1 :]).strip()


def _front_matter(file: Path, text: str) -> tuple[dict[str, Any], list[str]]:
    """The table in the front matter, and what was wrong with it."""
    import yaml

    faults: list[str] = []
    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        # `description: Use when: ...` is no YAML, and other clients take it.
        data = _line_by_line(text)
        if not data:
            raise UsageError(f"{file}: its front matter is invalid YAML: {' '.join(str(error).split())}") from error
        faults.append("its front matter is invalid YAML and was read line by line; quote texts with a colon in them")
    if not isinstance(data, dict):
        raise UsageError(f"{file}: expected `key: value` lines in its front matter, got {_kind(data)}")
    return data, faults


def _kind(value: Any) -> str:
    """A value in a message. Not as it is: YAML can repeat a part a million times in a few lines."""
    return "missing" if value is None else "empty" if value == "" else f"a {type(value).__name__}"


def _line_by_line(text: str) -> dict[str, Any]:
    found = (_KEY.fullmatch(line) for line in text.splitlines())
    return {match[1]: match[2].strip().strip("\"'") for match in found if match is not None}


def _walk(folder: Path) -> Iterator[Path]:
    """Files below a folder, without hidden ones and what tools leave behind; nothing through linked folders."""
    try:
        places = sorted(folder.iterdir())
    except OSError:  # a folder that may not be read has nothing for anybody
        return
    for place in places:
        if place.name.startswith(".") or place.name in _SKIPPED:
            continue
        if place.is_dir() and not place.is_symlink():
            yield from _walk(place)
        elif place.is_file():
            yield place
