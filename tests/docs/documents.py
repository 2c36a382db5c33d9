"""The pages as tests read them: which fenced blocks a page holds, and what a reader who follows it does.

A block is a fence (three backticks) with a language and, maybe, a title. A reader follows a page from top to bottom: a
block with a title is a file that is saved under that title; a `console` block is a list of commands, each line
beginning with `$ `, with what each prints below it. In what is printed, `...` stands for anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tree import ROOT

DOCS = ROOT / "docs"
EXAMPLES = DOCS / "examples"
PAGES = sorted(path for path in DOCS.rglob("*.md") if EXAMPLES not in path.parents)

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)(?P<rest>[^\n]*)\n(?P<body>.*?)^(?P=indent)```$", re.M | re.S)
_TITLE = re.compile(r'title="([^"]+)"')
_SNIPPET = re.compile(r'^\s*--8<-- "([^":]+)(?::([\w-]+))?"$')


class Block(NamedTuple):
    """A fenced block. `body` has snippets put in, `raw` has not."""

    language: str
    title: str
    raw: str
    body: str


class Command(NamedTuple):
    """A command of a console block, and what it prints."""

    line: str
    prints: str


def page_id(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


def blocks_of(text: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    for fence in _FENCE.finditer(text):
        raw = "\n".join(line.removeprefix(fence["indent"]) for line in fence["body"].splitlines())
        title = _TITLE.search(fence["rest"])
        body = "\n".join(_with_snippets(raw))
        yield Block(fence["language"], title.group(1) if title else "", raw, body)


def included_files(text: str) -> set[Path]:
    """The files that a page shows, whole or in part."""
    lines = text.splitlines()
    return {ROOT / found.group(1) for line in lines if (found := _SNIPPET.match(line))}


def is_included(raw: str) -> bool:
    """Whether a block is nothing but included files."""
    lines = [line for line in raw.splitlines() if line.strip()]
    return bool(lines) and all(_SNIPPET.match(line) for line in lines)


def commands_of(body: str) -> list[Command]:
    """The commands of a console block."""
    commands: list[Command] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            commands.append(Command(line[2:], ""))
        elif commands:
            commands[-1] = commands[-1]._replace(prints=f"{commands[-1].prints}{line}\n")
        else:
            raise AssertionError(f"a console block begins with a command, `$ …`; this one with {line!r}")
    return commands


_PROGRESS = re.compile(r"\d+/\d+ +\d+% .* left")


def agrees(expected: str, printed: str) -> bool:
    """Whether a text is the expected one, where `...` stands for anything, and a line of it for any lines or none.

    Ends of lines do not count, nor the width of a gap in a table: it depends on what else is installed.
    """
    pattern = "".join(
        "(?:.*\n)?" if line == "..." else f"{'.*'.join(map(re.escape, line.split('...')))}\n"
        for line in _trimmed(expected).splitlines()
    )
    # Long work tells how far it is every few seconds; on a fast machine it is over before the first time.
    lines = [line for line in _trimmed(printed).splitlines() if not _PROGRESS.fullmatch(line)]
    seen = "".join(f"{line}\n" for line in lines)
    return re.fullmatch(pattern, seen, re.S) is not None


def _trimmed(text: str) -> str:
    return "\n".join(re.sub(r"(?<=\S)  +", "  ", line.rstrip()) for line in text.strip().splitlines())


def _with_snippets(raw: str) -> Iterator[str]:
    for line in raw.splitlines():
        snippet = _SNIPPET.match(line)
        if snippet:
            yield from _snippet(ROOT / snippet.group(1), snippet.group(2))
        else:
            yield line


def _snippet(file: Path, section: str | None) -> Iterator[str]:
    inside = section is None
    for line in file.read_text(encoding="utf-8").splitlines():
        if "--8<-- [" in line:
            if section and f"[start:{section}]" in line:
                inside = True
            elif section and f"[end:{section}]" in line:
                return
        elif inside:
            yield line
