"""Trust: which documents of a folder are obeyed although they could do harm, because their user has read them.

A document with dangers (`document_dangers`) that merely lies in the working folder is refused until its user trusts it:
`concertino trust FILE`. It is remembered by its path and a digest, in the user's own folder: CONCERTINO_HOME, else
`concertino` in XDG_CONFIG_HOME or `~/.config`. CONCERTINO_TRUST=all trusts everything, for continuous integration.

The digest covers the document, the files and folders that its dangers name, and what a named Python file may import
from beside it.
Invariant: what is covered cannot change without the document being refused again, and a document that was not
remembered is never obeyed.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .display_text import clean
from .errors import UsageError

if TYPE_CHECKING:
    from .document_dangers import Danger, Kind

MOST_FILES = 20_000
"""Files that one document may name, those in named folders counted."""
_WHOLE_BYTES = 8 << 20
"""A larger file is covered by its size, its number on the disk and the times of its last changes."""
_SHOWN = 12
"""Dangers that an error names; whoever is asked sees all."""
_guards: list[None] = []
"""As many as `guarding` is in force."""
_allowed: dict[str, tuple[tuple[int, ...], Kind, str]] = {}


class UntrustedFile(UsageError):
    """A document that could do harm, and that its user has not trusted.

    Attributes:
        file: the document.
        dangers: what it would do.
        kind: as what it was read.
        changed: whether it was trusted before it changed.
    """

    def __init__(self, file: Path, dangers: Sequence[Danger], kind: Kind, command: str, changed: bool) -> None:
        self.file, self.dangers, self.kind, self.changed = file, tuple(dangers), kind, changed
        why = "it changed since it was trusted" if changed else "nobody on this machine has trusted it"
        super().__init__(f"{file}: not used, because {why}. {shown(dangers, _SHOWN)}\nIf you trust it: {command}")


class Trusted(NamedTuple):
    """A document that is remembered.

    Attributes:
        path: absolute, without links.
        digest: of what was trusted.
        kind: as what it was trusted.
        at: when, in UTC.
    """

    path: str
    digest: str
    kind: Kind
    at: str


def command_for(file: Path, kind: Kind, data: Mapping[str, Any]) -> str:
    """The command that trusts a file."""
    import shlex  # here and below: every command begins with this module, and few need more of it than `guarding`

    from .document_dangers import kind_of

    name = str(file)
    more = "" if kind_of(data, file.name) == kind else f" --as {kind}"
    return f"concertino trust {shlex.quote(name if not name.startswith('-') else f'./{name}')}{more}"


def shown(dangers: Sequence[Danger], most: int | None = None) -> str:
    """What a document would do, a line for each; safe to print."""
    lines = [f"  {clean(each.key)}: {clean(each.text)}".replace("\n", "\\n") for each in dangers[:most]]
    more = len(dangers) - len(lines)
    return "\n".join(["It sets:", *lines, *([f"  and {more} more"] if more > 0 else [])])


@contextmanager
def guarding() -> Iterator[None]:
    """While it lasts, documents are refused also where a caller passes their path: so reads the command line."""
    _guards.append(None)
    try:
        yield
    finally:
        _guards.pop()


def require(file: Path, data: Mapping[str, Any], kind: Kind, *, trusted: bool | None = None) -> None:
    """Refuse a document with dangers that was not trusted.

    Args:
        file: the document.
        data: what is in it; without dangers it is obeyed.
        kind: as what it is read.
        trusted: True: the caller has chosen it; False: it was found; None: chosen by a program, found on the command
            line.

    Raises:
        UntrustedFile: nobody has trusted it as it is now; says the command that does.
        UsageError: the remembered files cannot be read, or CONCERTINO_TRUST has a wrong value.
    """
    if not (_guards if trusted is None else not trusted) or _all_trusted():
        return
    from .document_dangers import dangers_of

    if not (dangers := dangers_of(kind, data, file.parent)):
        return
    path, seen = str(file.resolve()), _signature(file)
    # A long-lived program asks for every run; what it was given once stays given while the file does not change.
    if _allowed.get(path) == (seen, kind, str(home())):
        return
    remembered = _read().get(path)
    if remembered is None or remembered.digest != digest_of(file, dangers, kind):
        raise UntrustedFile(file, dangers, kind, command_for(file, kind, data), changed=remembered is not None)
    _allowed[path] = seen, kind, str(home())


def remember(file: Path, dangers: Sequence[Danger], kind: Kind) -> Trusted:
    """Trust a document as it is now.

    Raises:
        UsageError: it names too many files, or nothing can be written.
    """
    import time

    entry = Trusted(
        str(file.resolve()), digest_of(file, dangers, kind), kind, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    )
    _write({**_read(), entry.path: entry})
    return entry


def forget(file: Path) -> bool:
    """Trust a document no longer; whether it was trusted."""
    entries = _read()
    path = str(file.resolve())
    found = entries.pop(path, None)
    _allowed.pop(path, None)
    if found is not None:
        _write(entries)
    return found is not None


def remembered() -> list[Trusted]:
    """What is trusted, by path."""
    return [entry for _, entry in sorted(_read().items())]


# -- the digest --------------------------------------------------------------------------------------------------------


def digest_of(file: Path, dangers: Sequence[Danger], kind: Kind) -> str:
    """SHA-256 of a document and of what it names, as hex digits.

    Raises:
        UsageError: it names too many files.
    """
    import hashlib

    found = hashlib.sha256(kind.encode())
    for number, path in enumerate(_covered(file, dangers)):
        if number >= MOST_FILES:
            raise UsageError(
                f"{file}: it names folders with more than {MOST_FILES:,} files, too many to notice a change; name a "
                "smaller folder, or set CONCERTINO_TRUST=all for this command"
            )
        found.update(f"{path}\0{_content(path)}\n".encode("utf-8", "surrogateescape"))
    return found.hexdigest()


def _covered(file: Path, dangers: Sequence[Danger]) -> Iterator[Path]:
    """The document, then the files that it names, from its folder and from the working folder."""
    yield file.resolve()
    seen: dict[Path, None] = {}
    folders = dict.fromkeys((file.parent.resolve(), Path.cwd()))
    words = dict.fromkeys(word for danger in dangers for text in danger.named for word in _words(text))
    for word in words:
        for folder in folders:
            seen.update(dict.fromkeys(_named(word, folder)))
    for path in seen:
        if path.is_dir():
            yield from _below(path, around=file.resolve().is_relative_to(path.resolve()))
        else:
            yield path


def _words(text: str) -> list[str]:
    """What of a text may be the name of a file: all of it, the words of a command, the value of `--option=value`."""
    import shlex

    if len(text) > 4096 or "\0" in text:
        return []
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return [text, *words, *(word.partition("=")[2] for word in words if "=" in word)]


def _named(word: str, folder: Path) -> Iterator[Path]:
    """The files that a word names from a folder: itself, a module, and what a Python file imports from beside it."""
    from .document_dangers import MODULE

    if not word or len(word) > 1024:
        return
    module = word.partition(":")[0].replace(".", "/") if MODULE.fullmatch(word) else ""
    for name in filter(None, (word, f"{module}.py" if module else "", module)):
        path = folder / Path(name).expanduser() if name.startswith("~/") else folder / name
        # Programs of the system are updated, and are not the document's.
        if Path(name).is_absolute() and not path.is_relative_to(folder) and not _is_script(path):
            continue
        with suppress(OSError, ValueError):
            if path.exists() or path.is_symlink():
                yield path
                yield from _neighbours(path) if path.suffix == ".py" else ()


def _neighbours(script: Path) -> Iterator[Path]:
    """What lies beside a Python file and is imported by it: what it mentions, and what hides a module from it."""
    there = {each.stem: each for each in sorted(script.parent.iterdir()) if each.suffix == ".py" or each.is_dir()}
    there.pop(script.stem, None)
    left = [script]
    while left:
        words = set(re.findall(r"[A-Za-z_]\w*", left.pop().read_bytes()[:_WHOLE_BYTES].decode("utf-8", "replace")))
        for stem in [stem for stem in there if stem in words or _hides(stem)]:
            found = there.pop(stem)
            files = [found] if found.is_file() else sorted(found.rglob("*.py"))
            yield from files
            left += files


def _hides(stem: str) -> bool:
    """Whether Python, or what is installed beside this package, has a module of this name."""
    import sysconfig

    installed = sysconfig.get_path("purelib")
    return stem in sys.stdlib_module_names or any(Path(installed, name).exists() for name in (stem, f"{stem}.py"))


def _is_script(path: Path) -> bool:
    try:
        if not path.is_file():  # to open a pipe would wait for ever
            return False
        with path.open("rb") as opened:
            return opened.read(2) == b"#!" or path.suffix in (".py", ".sh", ".js")
    except (OSError, ValueError):
        return False


def _below(folder: Path, *, around: bool) -> Iterator[Path]:
    """The files in a folder; of one that holds the document itself, not those in hidden folders, such as traces."""
    seen: set[str] = set()
    for top, folders, names in os.walk(folder, followlinks=True):
        if (real := os.path.realpath(top)) in seen:  # a link that leads back
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted(name for name in folders if name != "__pycache__" and not (around and name[0] == "."))
        yield from (Path(top, name) for name in sorted(names))


def _content(path: Path) -> str:
    import hashlib

    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            return f"no file, {stat.S_IFMT(about.st_mode)}"
        if about.st_size > _WHOLE_BYTES:
            return " ".join(map(str, _signature(path)))
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        return f"unreadable: {error.errno}"


def _signature(path: Path) -> tuple[int, ...]:
    about = path.stat()
    return about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


# -- what is remembered ------------------------------------------------------------------------------------------------


def home() -> Path:
    """The user's own folder of concertino.

    Raises:
        UsageError: CONCERTINO_HOME is relative, so that it would lie in any working folder.
    """
    if given := os.environ.get("CONCERTINO_HOME"):
        if not Path(given).is_absolute():
            raise UsageError(
                f"CONCERTINO_HOME={given}: expected an absolute path, such as {Path.home() / '.concertino'}"
            )
        return Path(given)
    base = os.environ.get("XDG_CONFIG_HOME", "")
    # The specification of XDG has relative paths ignored.
    return Path(base if Path(base).is_absolute() else Path.home() / ".config", "concertino")


def _all_trusted() -> bool:
    given = os.environ.get("CONCERTINO_TRUST", "")
    if given not in ("", "all"):
        raise UsageError(f"CONCERTINO_TRUST={given}: expected all, or no such variable")
    return given == "all"


def _file() -> Path:
    return home() / "trust.json"


def _read() -> dict[str, Trusted]:
    """What is remembered, by path."""
    import json

    file = _file()
    try:
        about = file.stat()
        if sys.platform != "win32" and (about.st_uid != os.getuid() or about.st_mode & 0o022):
            raise UsageError(f"{file}: others can write it; remove it, and trust your files again")
        data = json.loads(file.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{file}: cannot be read: {error}; remove it, and trust your files again") from None
    entries = data.get("trusted") if isinstance(data, Mapping) else None
    if not isinstance(entries, Mapping):
        raise UsageError(f'{file}: expected {{"trusted": {{...}}}}; remove it, and trust your files again')
    return {
        path: Trusted(path, str(entry.get("digest")), entry.get("kind", "document"), str(entry.get("at")))
        for path, entry in entries.items()
        if isinstance(entry, Mapping)
    }


def _write(entries: Mapping[str, Trusted]) -> None:
    """Replace the file in one step; nobody else may read or write it."""
    import json

    file = _file()
    data = {
        path: {"digest": entry.digest, "kind": entry.kind, "at": entry.at} for path, entry in sorted(entries.items())
    }
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        unfinished.unlink(missing_ok=True)
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
            json.dump({"trusted": data}, out, indent=1)
        unfinished.replace(file)
    except OSError as error:
        raise UsageError(
            f"{file}: cannot be written: {error.strerror}; set CONCERTINO_HOME to a folder of yours"
        ) from None
