"""Who imports whom inside one distribution, read from the source: eager, lazy and typing imports alike.

An *entry* is a child of a package: a module or a subpackage, with everything below it. An *edge* is one import from one
entry to another entry of the same package. A *circle* is a set of entries that reach each other by edges. An import
inside a function or under `TYPE_CHECKING` is an edge like any other: a reader has to follow it too.

The layers of the SDK, and the imports that are still expected against them, stand in `tests/system/layers.toml`.
"""

from __future__ import annotations

import ast
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tree import ROOT, Member, members, sdk

LAYERS = ROOT / "tests" / "system" / "layers.toml"


class Edge(NamedTuple):
    """One import: the module that says it, at which line, and the module that it names."""

    source: str
    target: str
    file: Path
    line: int

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT).as_posix()}:{self.line} imports {self.target}"


class Circle(NamedTuple):
    """Entries of one package that reach each other, and the fewest imports found whose removal opens the circle."""

    package: str
    entries: tuple[str, ...]
    has_packages: bool
    edges: tuple[Edge, ...]


@dataclass(frozen=True)
class Imports:
    """The modules below one package's folder, and every import among them."""

    folder: Path

    @property
    def name(self) -> str:
        """The import name of the package."""
        return self.folder.name

    @cached_property
    def files(self) -> dict[str, Path]:
        """The file of each module, by dotted name; a package's name stands for its `__init__`."""
        found = {}
        for file in sorted(self.folder.rglob("*.py")):
            parts = file.relative_to(self.folder.parent).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
        return found

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """Every import of one module of the package by another one."""
        return tuple(edge for module, file in self.files.items() for edge in self._edges_of(module, file))

    @cached_property
    def packages(self) -> tuple[str, ...]:
        """Every package with an `__init__`, the root first."""
        return tuple(name for name, file in self.files.items() if file.name == "__init__.py")

    def entries(self, package: str) -> set[str]:
        """The children of a package; its own `__init__` is one of them where it imports or is imported."""
        depth = package.count(".") + 1
        return {self._entry(module, depth) for module in self.files if module.startswith(f"{package}.")}

    def between_entries(self, package: str) -> dict[tuple[str, str], list[Edge]]:
        """The edges between the entries of a package, by pair of entries."""
        depth = package.count(".") + 1
        inside = f"{package}."
        found = defaultdict(list)
        for edge in self.edges:
            if not (f"{edge.source}.".startswith(inside) and f"{edge.target}.".startswith(inside)):
                continue
            pair = self._entry(edge.source, depth), self._entry(edge.target, depth)
            if pair[0] != pair[1]:
                found[pair].append(edge)
        return dict(found)

    def circles(self) -> Iterator[Circle]:
        """Every circle, package by package."""
        for package in self.packages:
            pairs = self.between_entries(package)
            for entries in components(pairs):
                inner = {pair: edges for pair, edges in pairs.items() if set(pair) <= entries}
                back = [edge for pair in back_edges(inner) for edge in inner[pair]]
                has_packages = any(f"{package}.{entry}" in self.packages for entry in entries)
                yield Circle(package, tuple(sorted(entries)), has_packages, tuple(sorted(back)))

    @staticmethod
    def _entry(module: str, depth: int) -> str:
        parts = module.split(".")
        return parts[depth] if len(parts) > depth else "__init__"

    def _edges_of(self, module: str, file: Path) -> Iterator[Edge]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"), str(file))):
            for target in self._targets(module, file, node):
                if target != module:
                    yield Edge(module, target, file, getattr(node, "lineno", 0))

    def _targets(self, module: str, file: Path, node: ast.AST) -> set[str]:
        """The modules of this package that an import names."""
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = self._base(module, file, node)
            named = [f"{base}.{alias.name}" for alias in node.names]
        else:
            return set()
        return {found for name in named if (found := self._nearest(name))}

    @staticmethod
    def _base(module: str, file: Path, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = module.split(".")
        up = node.level - 1 if file.name == "__init__.py" else node.level
        return ".".join([*parts[: len(parts) - up], *([node.module] if node.module else [])])

    def _nearest(self, name: str) -> str:
        """The module that holds a dotted name; empty where that is another distribution's."""
        while name and name not in self.files:
            name = name.rpartition(".")[0]
        return name


def distributions() -> dict[str, Imports]:
    """The SDK and every member, by import name."""
    return {folder.name: Imports(folder) for folder in map(source_of, [sdk(), *members()])}


def source_of(member: Member) -> Path:
    """The folder of a distribution's one package."""
    return member.path / ("sdk" if member.path == ROOT else "src") / member.import_name


class Layers(NamedTuple):
    """The layers of one distribution, lowest first, and what is known not to hold yet."""

    order: tuple[str, ...]
    against: tuple[str, ...] = ()
    unplaced: tuple[str, ...] = ()

    def imports_against(self, imports: Imports) -> dict[str, list[Edge]]:
        """The imports that lead from a lower entry to a higher one, by pair, e.g. `core -> executor`."""
        height = {entry: number for number, entry in enumerate(self.order)}
        return {
            f"{low} -> {high}": edges
            for (low, high), edges in sorted(imports.between_entries(imports.name).items())
            if low in height and high in height and height[low] < height[high]
        }

    def entries_without_layer(self, imports: Imports) -> set[str]:
        """The entries that have no layer; the package's own `__init__` and `__main__` stand above all."""
        return imports.entries(imports.name) - set(self.order) - {"__init__", "__main__"}


def layers() -> dict[str, Layers]:
    """The table of layers, by import name."""
    table = tomllib.loads(LAYERS.read_text(encoding="utf-8"))["layers"]
    return {name: Layers(**{key: tuple(value) for key, value in each.items()}) for name, each in table.items()}


def expected_circles() -> set[str]:
    """The packages in which a circle of packages is known."""
    return set(tomllib.loads(LAYERS.read_text(encoding="utf-8"))["expected"]["circles"])


Pairs = Iterable[tuple[str, str]]


def components(pairs: Pairs) -> list[set[str]]:
    """The sets of two and more nodes that reach each other."""
    below = _successors(pairs)
    reach = {node: _reached(node, below) for node in below}
    found: list[set[str]] = []
    for node in sorted(below):
        circle = {other for other in reach[node] if node in reach[other]}
        if len(circle) > 1 and circle not in found:
            found.append(circle)
    return found


def levels(pairs: Pairs) -> int:
    """The number of nodes on the longest way down, where a circle counts as one node."""
    below = _successors(pairs)
    reach = {node: _reached(node, below) for node in below}
    depths: dict[str, int] = {}

    def depth(node: str) -> int:
        if node not in depths:
            lower = [other for other in reach[node] if node not in reach[other]]
            depths[node] = 1 + max(map(depth, lower), default=0)
        return depths[node]

    return max(map(depth, below), default=0)


def back_edges(weights: Mapping[tuple[str, str], list[Edge]]) -> list[tuple[str, str]]:
    """The pairs that go up in an order which has few of them: nodes with most ways out over ways in stand on top."""
    left = {node for pair in weights for node in pair}
    bottom: list[str] = []
    while left:  # take away what imports least of the rest: it belongs lowest
        score = dict.fromkeys(left, 0)
        for (high, low), edges in weights.items():
            if high in left and low in left:
                score[high] += len(edges)
                score[low] -= len(edges)
        sinks = [n for n in left if not any(h == n and low in left for h, low in weights)]
        bottom.append(min(sinks or left, key=lambda node: (score[node], node)))
        left.discard(bottom[-1])
    height = {node: number for number, node in enumerate(bottom)}
    return [(high, low) for high, low in weights if height[high] < height[low]]


def _successors(pairs: Pairs) -> dict[str, set[str]]:
    below: dict[str, set[str]] = defaultdict(set)
    for high, low in pairs:
        below[high].add(low)
        below[low]  # a node without a way out is a node
    return dict(below)


def _reached(start: str, below: Mapping[str, set[str]]) -> set[str]:
    seen, todo = set[str](), [start]
    while todo:
        for node in below[todo.pop()] - seen:
            seen.add(node)
            todo.append(node)
    return seen
