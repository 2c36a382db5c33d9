"""The skills below a folder: each folder with a `SKILL.md`, not looked into any further.

Invariant: a folder of skills costs bounded time, and a skill that cannot be read costs itself: it is left out with a
warning, unless it is the only one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from concertino import UsageError
from concertino.core.logs import logger_of

from .skill import MANIFEST, Skill, read_skill

logger = logger_of("code")

DEPTH = 4
"""Folders below the one that is given."""
MOST_FOLDERS = 2000


def find_skills(source: Path) -> list[Skill] | None:
    """The skills of a folder, or of a `SKILL.md`; None where there are none.

    Raises:
        UsageError: none of those that there are can be used, or two have one name; says which and why.
    """
    source = source.absolute()
    if source.name == MANIFEST and source.is_file():
        source = source.parent
    folders = list(_folders(source)) if source.is_dir() else []
    if not folders:
        return None
    found: list[Skill] = []
    faults: list[str] = []
    for folder in folders:
        try:
            found.append(read_skill(folder))
        except UsageError as error:
            faults.append(str(error))
    if not found:
        raise UsageError("; ".join(faults[:3]))
    for fault in faults:
        logger.warning("a skill is left out: %s", fault)
    for skill in found:
        for fault in skill.faults:
            logger.warning("%s: %s", skill.folder / MANIFEST, fault)
    _refuse_equal_names(found)
    return [skill for skill in found if not skill.hidden]


def _folders(source: Path) -> Iterator[Path]:
    """Folders with a manifest, in order of their paths, level by level."""
    level, seen = [source], 0
    for _ in range(DEPTH + 1):
        below: list[Path] = []
        for folder in level:
            if (folder / MANIFEST).is_file():
                yield folder
                continue
            below += _subfolders(folder)
            seen += 1
            if seen >= MOST_FOLDERS:
                logger.warning("%s: only its first %d folders were searched for skills", source, MOST_FOLDERS)
                return
        level = below


def _subfolders(folder: Path) -> list[Path]:
    try:
        return sorted(place for place in folder.iterdir() if place.name[0] != "." and place.is_dir())
    except OSError:
        return []


def _refuse_equal_names(skills: list[Skill]) -> None:
    seen: dict[str, Skill] = {}
    for skill in skills:
        other = seen.setdefault(skill.member_name, skill)
        if other is not skill:
            raise UsageError(f"two skills are called {skill.member_name!r}: {other.folder} and {skill.folder}")
