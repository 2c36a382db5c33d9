"""The results of an evaluation: what a results file holds, and several of them as one.

The invariant: no two items have the same key. Where two files name a system alike, it is renamed in both, after its
file.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from concertino import UsageError

from concertino_bench.tasks.item import Item, Key


@dataclass(frozen=True)
class Results:
    """What was run, and its results.

    Attributes:
        header: what was run, the first line of a results file: title, sets, systems, samples, seed, budget, pools,
            versions. A report shows what is there.
        items: in the order of the file.
        notes: what a reader should know, such as a line that was left out.
        files: names of the files that they come from.
        headers: of several files, one each; empty for one.
    """

    header: Mapping[str, Any]
    items: list[Item]
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    headers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def systems(self) -> list[str]:
        """Names of systems that have items, in the order of the header."""
        there = dict.fromkeys(item.key.system for item in self.items)
        said = [str(each.get("name")) for each in self.header.get("systems", ()) if isinstance(each, Mapping)]
        return [name for name in dict.fromkeys([*said, *there]) if name in there]


def read_results(path: str | Path, *, lenient: bool = False) -> Results:
    """Read a results file.

    Args:
        path: the file.
        lenient: leave damaged lines out, with a note, instead of raising.

    Raises:
        UsageError: the file cannot be read, is not a results file, or a line of it is damaged. A torn last line is what
            a crash leaves: it is left out, with a note.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
    lines = data.split(b"\n")
    # A whole file ends with a newline, so the last part is empty unless a crash cut it.
    torn = lines.pop()
    header = _header(path, lines[0] if lines else torn)
    items: dict[Key, Item] = {}
    notes: list[str] = []
    for number, line in enumerate(lines[1:], 2):
        try:
            item = _item(line)
            if item.key in items:
                raise ValueError(f"a second item with the key {tuple(item.key)}")
            items[item.key] = item
        except ValueError as error:
            if not lenient:
                raise UsageError(
                    f"{path}, line {number}: {error}; remove the line and run the same command again to have its item "
                    "done again, or read it leniently"
                ) from error
            notes.append(f"{path.name}, line {number} was left out: {error}")
    if torn.strip() and lines:
        notes.append(f"{path.name}: the last line is torn and was left out; its run was interrupted")
    return Results(header, list(items.values()), tuple(notes), (path.name,))


def combine(results: Mapping[str, Results]) -> Results:
    """Several results as one, to compare their systems.

    Args:
        results: by the name of each file. A system that two of them name becomes "NAME (FILE)" in each.

    Raises:
        ValueError: there are none.
    """
    if not results:
        raise ValueError("combine() of no results: expected at least one")
    counts = Counter(name for each in results.values() for name in each.systems)
    taken = {name for name, count in counts.items() if count == 1}
    items: list[Item] = []
    systems: list[dict[str, Any]] = []
    notes: list[str] = []
    for file, each in results.items():
        names = {name: _fresh(name, file, taken) if counts[name] > 1 else name for name in each.systems}
        items += [replace(item, key=item.key._replace(system=names[item.key.system])) for item in each.items]
        said = {s.get("name"): s for s in each.header.get("systems", ()) if isinstance(s, Mapping)}
        systems += [{**said.get(name, {}), "name": names[name], "file": file} for name in each.systems]
        notes += each.notes
        notes += [f"{name!r} of {file} is called {new!r} here" for name, new in names.items() if name != new]
    header = {"title": " against ".join(results), "systems": systems}
    headers = {file: each.header for file, each in results.items()}
    return Results(header, items, tuple(notes), tuple(results), headers)


def read_all(paths: Sequence[str | Path], *, lenient: bool = False) -> Results:
    """Read one results file, or several as one.

    Raises:
        UsageError: as `read_results`, or a file is named twice.
    """
    if len(paths) == 1:
        return read_results(paths[0], lenient=lenient)
    names = _short([Path(path) for path in paths])
    return combine({name: read_results(path, lenient=lenient) for name, path in zip(names, paths, strict=True)})


def _short(paths: Sequence[Path]) -> list[str]:
    """The shortest ends of paths that tell them apart, without file extensions."""
    whole = [path.resolve().with_suffix("").parts for path in paths]
    if len(set(whole)) < len(whole):
        twice = next(path for path, parts in zip(paths, whole, strict=True) if whole.count(parts) > 1)
        raise UsageError(f"{twice} is named twice; expected different files")
    # `results.jsonl` is a common name, so folders are added until the names differ.
    names: list[str] = []
    for length in range(1, max(map(len, whole)) + 1):
        names = ["/".join(parts[-length:]) for parts in whole]
        if len(set(names)) == len(names):
            break
    return names


def _fresh(name: str, file: str, taken: set[str]) -> str:
    # A system of another file may already be called so.
    new, number = f"{name} ({file})", 1
    while new in taken:
        number += 1
        new = f"{name} ({file}, {number})"
    taken.add(new)
    return new


def _header(path: Path, line: bytes) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except ValueError:
        data = None
    if not isinstance(data, dict) or data.get("t") != "bench":
        raise UsageError(
            f'{path}, line 1: expected the header of a results file, {{"t": "bench", …}}; is it another file?'
        )
    return {key: value for key, value in data.items() if key != "t"}


def _item(line: bytes) -> Item:
    try:
        data = json.loads(line)
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from error
    if not isinstance(data, dict) or data.get("t") != "item":
        raise ValueError('expected {"t": "item", …}')
    return Item.from_json(data)
