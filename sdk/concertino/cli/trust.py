"""`concertino trust`: which files that could do harm are obeyed; and the question that a command asks on a terminal.

Invariant: nothing is trusted before a person has seen what it would do, and nothing that is asked about has run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from concertino.core import trust as trusting
from concertino.core.display_text import clean
from concertino.core.document_dangers import Danger, dangers_of
from concertino.core.documents import read_document
from concertino.core.errors import UsageError

from .options import common_options
from .output import write_json, write_table


@click.command("trust")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@click.option("--list", "listing", is_flag=True, help="List what is trusted.")
@click.option("--forget", "forgotten", multiple=True, type=click.Path(path_type=Path), metavar="FILE", help="Trust FILE no longer.")
@common_options
def trust(files: tuple[Path, ...], listing: bool, forgotten: tuple[Path, ...], as_json: bool) -> None:
    """Trust settings files, pool files and recipes that could do harm, as they are now. Read them first.

    A file is remembered with what it names: scripts, sources, modules. When one of them changes, it is asked about
    again. Without FILE: concertino.toml.

    JSON: a list of {"file", "trusted", "changed", "at", "dangers": [{"key", "text"}]}
    """
    if listing and (files or forgotten):
        raise UsageError("--list shows all that is trusted; leave out the files")
    if listing:
        rows = [_row(Path(entry.path), entry) for entry in trusting.remembered()]
    elif forgotten:
        rows = [_forget(file) for file in forgotten]
    else:
        rows = []
    if not listing and (files or not forgotten):
        rows += [_trust(file) for file in files or (Path("concertino.toml"),)]
    if as_json:
        write_json(rows)
    elif listing:
        write_table(("file", "state", "since"), [(r["file"], _state(r), r["at"] or "") for r in rows], "nothing is trusted")
    else:
        for row in rows:
            click.echo(clean(_line(row)))


def allowed(error: BaseException, arguments: Sequence[str]) -> bool:
    """Ask whether to trust the file that an error is about, and remember a yes.

    Returns:
        False where it is about no such file, nobody can be asked, or the answer is no.
    """
    found = _untrusted(error)
    before_dashes = list(arguments[: list(arguments).index("--")] if "--" in arguments else arguments)
    if found is None or "--json" in before_dashes or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    state = "changed since you trusted it" if found.changed else "is not trusted"
    click.echo(f"{clean(found.file)} {state}. {trusting.shown(found.dangers)}", err=True)
    if not click.confirm("Trust it as it is now?", default=False, err=True):
        return False
    trusting.remember(found.file, found.dangers)
    return True


def _untrusted(error: BaseException | None) -> trusting.UntrustedFile | None:
    """The refusal that an error is, or that was told in other words."""
    for _ in range(20):
        if error is None or isinstance(error, trusting.UntrustedFile):
            return error
        error = error.__cause__ or error.__context__
    return None


def _trust(file: Path) -> dict[str, object]:
    dangers = _dangers(file)
    return _row(file, trusting.remember(file, dangers), dangers)


def _forget(file: Path) -> dict[str, object]:
    if not trusting.forget(file):
        raise UsageError(f"{file} is not trusted; `concertino trust --list` shows what is")
    return _row(file, None, [])


def _row(file: Path, entry: trusting.Trusted | None, dangers: list[Danger] | None = None) -> dict[str, object]:
    changed = False
    if dangers is None:
        dangers, changed = [], True
        if file.is_file():
            dangers = _dangers(file)
            changed = entry is not None and trusting.digest_of(file, dangers) != entry.digest
    return {
        "file": str(file),
        "trusted": entry is not None and not changed,
        "changed": changed,
        "at": entry.at if entry else None,
        "dangers": [{"key": each.key, "text": each.text} for each in dangers],
    }


def _dangers(file: Path) -> list[Danger]:
    return dangers_of(read_document(file, error=UsageError), file.parent, file.name)


def _state(row: dict[str, object]) -> str:
    return "changed" if row["changed"] else "trusted"


def _line(row: dict[str, object]) -> str:
    if not row["trusted"]:
        return f"forgotten: {row['file']}"
    dangers = row["dangers"]
    assert isinstance(dangers, list)
    if not dangers:
        return f"trusted: {row['file']} (it needs no trust: nothing in it could do harm)"
    return "\n".join([f"trusted: {row['file']}", *(f"  {each['key']}: {each['text']}" for each in dangers)])
