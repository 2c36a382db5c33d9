"""A skill as a tool. The orchestrator reads its description; the rest comes by calls.

| the call | gives |
|---|---|
| `{}` | the instructions, and the names of the other files |
| `{"read": "references/FORMS.md"}` | a file: text, or an image, a sound, a PDF as an attachment |
| `{"run": "scripts/fill.py", "arguments": […]}` | runs a script in the sandbox, with the skill's files beside it |

Invariant: nothing of a skill is executed outside the sandbox, and nothing outside its folder is read.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from concertino import Attachment, Audio, CallFailed, Context, File, Image, ToolSpec, UsageError
from concertino.schema import near_names

from concertino_code.backend import shared_backend
from concertino_code.settings import CodeSettings
from concertino_code.tool import START_SECONDS, observe, run_script

from .launch import FOLDER, launcher, placed
from .skill import MANIFEST, Skill

SHOWN = 65_536
"""Characters of instructions or of a file; what is longer is cut in the middle."""
_LISTED = 100
"""Files that are named with the instructions."""
_LONGEST = 200
"""Characters of a file's path in the sandbox."""
_SHARE = 2
"""A skill's files may take this part of the sandbox's disk: one in two bytes."""
_ATTACHED: dict[str, type[Attachment]] = {
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".gif", ".webp"), Image),
    **dict.fromkeys((".mp3", ".wav", ".ogg", ".flac"), Audio),
    ".pdf": File,
}
_TEXT = {"type": "string"}
_READ = {"read": {**_TEXT, "description": "path of a file of the skill, to read it"}}
_RUN = {
    "run": {**_TEXT, "description": "path of a script of the skill, to run it in its folder"},
    "arguments": {"type": "array", "items": _TEXT, "description": "command line of the script"},
    "stdin": {**_TEXT, "description": "standard input of the script"},
    "files": {
        "type": "object",
        "additionalProperties": _TEXT,
        "description": "further text files for the script, by name",
    },
    "artefacts": {"type": "array", "items": _TEXT, "description": "files that the script writes and you want back"},
}


def skill_tool(skill: Skill, settings: CodeSettings) -> ToolSpec:
    """The tool of a skill.

    Args:
        settings: of the sandbox for its scripts.
    """
    properties = {**(_READ if skill.files else {}), **(_RUN if skill.scripts else {})}
    return ToolSpec.from_schema(
        skill.member_name,
        f"{skill.description}\nA skill: call it without arguments for its instructions.",
        {"type": "object", "properties": properties, "additionalProperties": False},
        _SkillCalls(skill, settings),
        context="ctx",
        timeout=settings.limits.wall + START_SECONDS,
        concurrency=max(4, 2 * (os.cpu_count() or 1)),
        # With a network, a script may have acted outside.
        retry_safe=not (skill.scripts and settings.network),
        max_chars=SHOWN,
    )


class _SkillCalls:
    """The function of a skill's spec."""

    def __init__(self, skill: Skill, settings: CodeSettings) -> None:
        self.skill = skill
        self.limits = settings.limits
        # Chosen now, because its self-test blocks.
        self.backend = shared_backend(settings) if skill.scripts else None

    async def __call__(self, arguments: dict[str, Any], *, ctx: Context) -> Any:
        """One call."""
        if "run" in arguments:
            if "read" in arguments:
                self._fail("bad_call", "give either `read` or `run`")
            return await self._run(arguments, ctx)
        if "read" in arguments:
            return self._read(arguments["read"])
        if arguments:
            self._fail("bad_call", f"{', '.join(arguments)} without `run`; name the script")
        return self._instructions()

    def _fail(self, code: str, text: str) -> NoReturn:
        raise CallFailed.because(text, code=code)

    def _instructions(self) -> str:
        try:
            parts = [self.skill.instructions()]
        except UsageError as error:
            self._fail("no_file", str(error))
        if self.skill.compatibility:
            parts.append(f"It needs: {self.skill.compatibility}")
        if files := self.skill.files:
            more = f" and {len(files) - _LISTED} more" if len(files) > _LISTED else ""
            parts.append(f"Files of this skill: {', '.join(files[:_LISTED])}{more}.")
        return "\n\n".join(filter(None, parts))

    def _found(self, name: str, known: tuple[str, ...]) -> Path:
        path = self.skill.find(name)
        if path is None:
            near = near_names(name, known, limit=3)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known[:20]) or 'none'}"
            self._fail("no_file", f"the skill has no file {name!r}; {hint}")
        return path

    def _read(self, name: str) -> Any:
        path = self._found(name, self.skill.files)
        try:
            kind = _ATTACHED.get(path.suffix.lower())
            return kind(path) if kind is not None else path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            size = path.stat().st_size
            self._fail("binary_file", f"{name} is no text ({size:,} bytes); a script of the skill can read it")
        except (OSError, UsageError) as error:
            self._fail("no_file", str(error))

    async def _run(self, arguments: dict[str, Any], ctx: Context) -> dict[str, Any]:
        assert self.backend is not None  # without scripts the schema has no `run`
        name = arguments["run"]
        path = self._found(name, self.skill.scripts)
        with path.open("rb") as file:
            first = file.readline(200).decode("utf-8", "replace").strip()
        bundled, left_out = self._bundled()
        given = arguments.get("files", {})
        for each in given:
            if any(f"{each}/".startswith(f"{known}/") or known.startswith(f"{each}/") for known in bundled):
                self._fail("bad_call", f"the skill has {each!r} already; give your file another name")
        wanted = arguments.get("artefacts", [])
        try:
            done = await run_script(
                self.backend,
                launcher(name, first, arguments.get("arguments", [])),
                ctx,
                self.limits,
                stdin=arguments.get("stdin", ""),
                files=placed({**bundled, **given}),
                artefacts=[f"{FOLDER}/{each}" for each in wanted],
            )
        except ValueError as error:  # a name that leaves the folder
            self._fail("bad_call", str(error))
        artefacts = {each.removeprefix(f"{FOLDER}/"): found for each, found in done.artefacts.items()}
        content = observe(replace(done, artefacts=artefacts), ctx.call_id, self.skill.member_name)
        return {**content, "left_out": left_out} if left_out else content

    def _bundled(self) -> tuple[dict[str, bytes | str], list[str]]:
        """The skill's files for the sandbox, the smallest first, and the names of those that find no room."""
        limits = self.limits
        room, most = (limits.disk_mb << 20) // _SHARE, limits.file_mb << 20
        bundled: dict[str, bytes | str] = {}
        left_out: list[str] = []
        names = (MANIFEST, *self.skill.files)
        paths = [(name, path) for name in names if (path := self.skill.find(name)) is not None]
        for name, path in sorted(paths, key=lambda item: (item[1].stat().st_size, item[0])):
            size = path.stat().st_size
            if size > min(most, room) or len(bundled) >= limits.inodes // _SHARE or len(name) > _LONGEST:
                left_out.append(name)
                continue
            room -= size
            bundled[name] = path.read_bytes()
        return bundled, left_out
