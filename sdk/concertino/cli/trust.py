"""`concertino trust`: which files that could do harm are obeyed; and the question that a command asks on a terminal.

Invariant: nothing is trusted before a person has seen what it would do, and nothing that is asked about has run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import click

from concertino.core import trust as trusting
from concertino.core.display_text import one_line
from concertino.core.document_dangers import Danger, Kind, dangers_of, kind_of
from concertino.core.documents import read_document
from concertino.core.errors import UsageError

from .options import common_options
from .output import write_json, write_table
from .terminal import confirm, say


@click.command("trust")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@click.option(
    "--as",
    "kind",
    type=click.Choice(get_args(Kind)),
    help="How FILE is read; by default as its name and its keys look.",
)
@click.option("--list", "listing", is_flag=True, help="List what is trusted.")
@click.option(
    "--forget",
    "forgotten",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Trust FILE no longer.",
)
@common_options
def trust(
    files: tuple[Path, ...], kind: Kind | None, listing: bool, forgotten: tuple[Path, ...], as_json: bool
) -> None:
    """Trust settings files, pool files and recipes that could do harm, as they are now. Read them first.

    A file is remembered with what it names: scripts, sources, modules. When one of them changes, it is asked about
    again. Files on which it builds (its pool, its base) are trusted with it. Without FILE: concertino.toml.

    JSON: a list of {"file", "trusted", "changed", "at", "dangers": [{"key", "text"}]}
    """
    if listing and (files or forgotten):
        raise UsageError("--list shows all that is trusted; leave out the files")
    if listing:
        rows = [_listed(entry) for entry in trusting.remembered()]
    elif forgotten:
        rows = [_forget(file) for file in forgotten]
    else:
        rows = []
    if not listing and (files or not forgotten):
        for file in files or (Path("concertino.toml"),):
            rows += [trust_file(file, kind), *map(trust_file, _below(file))]
    if as_json:
        write_json(rows)
    elif listing:
        lines = [(row["file"], "changed" if row["changed"] else "trusted", row["at"]) for row in rows]
        write_table(("file", "state", "since"), lines)
    else:
        for row in rows:
            say(_line(row))


def allowed(found: trusting.UntrustedFile, arguments: Sequence[str]) -> bool:
    """Ask whether to trust the file that was refused, and remember a yes.

    Returns:
        False where nobody can be asked, or the answer is no.
    """
    before_dashes = list(arguments[: list(arguments).index("--")] if "--" in arguments else arguments)
    if "--json" in before_dashes or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    state = "changed since you trusted it" if found.changed else "is not trusted"
    say(f"{one_line(found.file)} {state}. {trusting.shown(found.dangers)}", error=True)
    if not confirm("Trust it as it is now?"):
        return False
    trusting.remember(found.file, found.dangers, found.kind)
    return True


def refusal(error: BaseException | None) -> trusting.UntrustedFile | None:
    """The refusal that an error is, or that was told in other words."""
    for _ in range(20):
        if error is None or isinstance(error, trusting.UntrustedFile):
            return error
        error = error.__cause__ or error.__context__
    return None


def trust_file(file: Path, kind: Kind | None = None) -> dict[str, Any]:
    """Trust a file as it is now; what there is to say of it, as JSON data.

    Raises:
        UsageError: it is no document, or cannot be remembered.
    """
    kind, dangers = _read(file, kind)
    return _row(file, trusting.remember(file, dangers, kind), dangers)


def _read(file: Path, kind: Kind | None) -> tuple[Kind, list[Danger]]:
    data = _data(file)
    kind = kind or kind_of(data, file.name)
    return kind, dangers_of(kind, data, file.parent)


def _below(file: Path) -> list[Path]:
    """The documents on which a document builds, as far as they are there: its pool, its base, and theirs."""
    found: dict[Path, None] = {}
    left = [file]
    while left:
        top = left.pop()
        data = _data(top)
        pool = data.get("pool")
        named = (data.get("base"), pool.get("file") if isinstance(pool, dict) else pool)
        texts = [name for name in named if isinstance(name, str) and len(name) < 1024 and "\0" not in name]
        # The pool of a recipe is looked for from the working folder.
        for below in dict.fromkeys(path for name in texts for path in (top.parent / name, Path(name))):
            if below not in found and below != file and below.is_file():
                found[below] = None
                left.append(below)
    return list(found)


def _data(file: Path) -> dict[str, Any]:
    # Rewards are JSON, which YAML reads, and training settings may have any ending.
    return read_document(file, suffix=None if file.suffix == ".toml" else ".yaml", error=UsageError)


def _forget(file: Path) -> dict[str, Any]:
    if not trusting.forget(file):
        raise UsageError(f"{file} is not trusted; `concertino trust --list` shows what is")
    return _row(file, None, [])


def _listed(entry: trusting.Trusted) -> dict[str, Any]:
    file = Path(entry.path)
    try:
        kind, dangers = _read(file, entry.kind)
        same = trusting.digest_of(file, dangers, kind) == entry.digest
    except UsageError:
        dangers, same = [], False
    return {**_row(file, entry, dangers), "trusted": same, "changed": not same}


def _row(file: Path, entry: trusting.Trusted | None, dangers: list[Danger]) -> dict[str, Any]:
    return {
        "file": str(file),
        "trusted": entry is not None,
        "changed": False,
        "at": entry.at if entry else None,
        "dangers": [{"key": each.key, "text": each.text} for each in dangers],
    }


def _line(row: dict[str, Any]) -> str:
    # Line ends in what a stranger wrote stay visible, so that no line looks like one of ours.
    file = one_line(row["file"])
    if not row["trusted"]:
        return f"forgotten: {file}"
    if not row["dangers"]:
        return f"trusted: {file} (it needs no trust: nothing in it could do harm)"
    _, _, lines = trusting.shown([Danger(each["key"], each["text"]) for each in row["dangers"]]).partition("\n")
    return f"trusted: {file}\n{lines}"
