"""Documents: small TOML and YAML files that people write, read with errors that say where, written whole.

The suffix tells the format: `.toml`, `.yaml` or `.yml`. A document is always a table with names as keys.
Writing replaces the file in one step, so a crash leaves the old one or the new one, never a part.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from .errors import PoolError, UsageError
from .regular_file import read_regular

_NAMED = 6
_MOST_VALUES = 1_000_000
"""Values of a YAML file with all its aliases written out."""
_SUFFIXES = (".toml", ".yaml", ".yml")


def read_document(path: Path, *, suffix: str | None = None, error: type[UsageError] = PoolError) -> dict[str, Any]:
    """The table in a file.

    Args:
        path: the file.
        suffix: read it as if it had this suffix.
        error: the exception to raise.

    Raises:
        UsageError: the file is missing, not text, of an unknown format or malformed; names file and line.
    """
    if path.is_dir():
        raise error(f"{path}: it is a folder; expected a file{_near(path / 'x')}")
    kind = _format(path, suffix, error)
    try:
        # Some editors begin a file with a byte-order mark, which plain UTF-8 would leave in the first key.
        text = read_regular(path).decode("utf-8-sig")
    except FileNotFoundError:
        raise error(f"{path}: file not found{_near(path)}") from None
    except (OSError, UnicodeDecodeError) as cause:
        raise error(f"{path}: cannot be read: {why_unusable(cause)}") from cause
    data = _parse_toml(path, text, error) if kind == "toml" else _parse_yaml(path, text, error)
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise error(f"{path}: expected `key: value` lines with names as keys, got {_short(data)}")
    return data


def write_document(path: Path, data: Mapping[str, Any], *, suffix: str | None = None) -> None:
    """Write a table as TOML or YAML, by the suffix of the path.

    Raises:
        PoolError: the suffix is unknown, or the file cannot be written.
    """
    if _format(path, suffix, PoolError) == "toml":
        import tomli_w

        text = tomli_w.dumps(data)
    else:
        import yaml

        text = yaml.safe_dump(dict(data), sort_keys=False, allow_unicode=True)
    # In the same folder, since a rename is only atomic inside one file system.
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
    except OSError as cause:
        with suppress(OSError):  # on a read-only disk, even what is not there cannot be removed
            unfinished.unlink(missing_ok=True)
        step = "make its folder first" if not path.parent.is_dir() else "give another file"
        raise PoolError(f"{path}: cannot be written: {why_unusable(cause)}; {step}") from cause


def why_unusable(cause: OSError | UnicodeError) -> str:
    """Why a file cannot be read or written, in words alone."""
    if isinstance(cause, UnicodeDecodeError):
        return f"it is not UTF-8 text (byte {cause.start})"
    return getattr(cause, "strerror", None) or str(cause)


def _near(path: Path) -> str:
    """The documents beside a file that is not there, as the end of a message."""
    from concertino.schema import near_names

    try:
        names = (each.name for each in path.parent.iterdir() if each.suffix in _SUFFIXES)
        there = sorted(name for name in names if not name.startswith("."))
    except OSError:
        return ""
    # Without the suffix, which makes all of them alike.
    near = near_names(path.stem, [name.rpartition(".")[0] for name in there], limit=1)
    if near:
        return f"; did you mean {next(name for name in there if name.startswith(near[0]))!r}?"
    return f"; there are {', '.join(there[:_NAMED])}{', …' if len(there) > _NAMED else ''}" if there else ""


def check_keys(place: str, given: Iterable[str], known: Iterable[str], error: type[UsageError]) -> None:
    """Refuse unknown keys.

    Raises:
        UsageError: names the place, the key and the key that was probably meant.
    """
    from concertino.schema import suggestion

    known = list(known)
    for key in given:
        if key not in known:
            hint = suggestion(key, known)
            raise error(f"{place}: unknown key {key!r}; {hint}")


def _format(path: Path, suffix: str | None, error: type[UsageError]) -> str:
    suffix = path.suffix if suffix is None else suffix
    if suffix not in _SUFFIXES:
        raise error(f"{path}: unsupported extension {suffix!r}; expected .toml, .yaml or .yml")
    return "toml" if suffix == ".toml" else "yaml"


def _parse_toml(path: Path, text: str, error: type[UsageError]) -> Any:
    import tomllib

    try:
        return tomllib.loads(text)
    # A number of thousands of digits raises a plain ValueError.
    except (ValueError, RecursionError) as cause:
        raise error(f"{path}: invalid TOML: {cause}") from cause


def _parse_yaml(path: Path, text: str, error: type[UsageError]) -> Any:
    import yaml

    try:
        # An empty YAML file is None, and means a table without keys.
        data = yaml.safe_load(text) or {}
        if "*" in text and "&" in text:
            _refuse_bomb(data)
        return data
    except (yaml.YAMLError, ValueError, RecursionError) as cause:
        mark = getattr(cause, "problem_mark", None)
        where = f" (at line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise error(f"{path}: invalid YAML: {getattr(cause, 'problem', None) or cause}{where}") from cause


def _refuse_bomb(data: Any) -> None:
    """ValueError for aliases of aliases that stand for more than anybody wrote, or for a value that contains itself."""
    sizes: dict[int, int] = {}

    def size(value: Any) -> int:
        if not isinstance(value, (dict, list)):
            return 1
        if id(value) not in sizes:
            sizes[id(value)] = _MOST_VALUES + 1  # until it is known: whoever meets it again contains itself
            sizes[id(value)] = 1 + sum(map(size, value.values() if isinstance(value, dict) else value))
        return sizes[id(value)]

    if size(data) > _MOST_VALUES:
        raise ValueError(f"its aliases stand for more than {_MOST_VALUES:,} values, or one contains itself")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
