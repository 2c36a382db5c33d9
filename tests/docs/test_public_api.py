"""The Python API of every distribution has a page, and pages and examples use public names only.

*Public* is a name in the `__all__` of a module of which no part begins with an underscore. The lists are read from the
source, so a distribution need not be importable here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from tree import members

from .documents import DOCS, EXAMPLES, PAGES, page_id

API = DOCS / "reference" / "api"
MEMBERS = {member.import_name: member.path / "src" for member in members()}
NOT_FOR_PYTHON = {"concertino_bench.cli", "concertino_train.cli", "concertino_bench.examples"}
"""Modules with an `__all__` for the command line and for `concertino check`."""


@cache
def public_names(owner: str) -> dict[str, set[str]]:
    """The names that each module of a distribution lists in its `__all__`."""
    found = {}
    for file in sorted((MEMBERS[owner] / owner).rglob("*.py")):
        parts = file.relative_to(MEMBERS[owner]).with_suffix("").parts
        module = ".".join(part for part in parts if part != "__init__")
        if not any(part.startswith("_") for part in module.split(".")) and (names := _all_of(file)):
            found[module] = names
    return found


def _all_of(file: Path) -> set[str]:
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return {str(name) for name in ast.literal_eval(node.value)}
    return set()


@pytest.mark.parametrize("owner", sorted(MEMBERS))
def test_the_page_of_a_distribution_shows_every_public_module(owner: str) -> None:
    page = (API / f"{owner}.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^::: ([\w.]+)$", page, re.M))
    hooks_only = {m for m, names in public_names(owner).items() if all(n.startswith("concertino_") for n in names)}
    assert shown == set(public_names(owner)) - NOT_FOR_PYTHON - hooks_only


def test_the_page_of_the_sdk_opens_with_the_orchestrator() -> None:
    page = (API / "concertino.md").read_text(encoding="utf-8")
    assert "group_by_category: false" in page  # or constants come first
    assert re.findall(r"^        - (\w+)$", page, re.M)[0] == "Orchestrator"


def _imported(file: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in MEMBERS:
            yield from ((node.module, alias.name) for alias in node.names)


def test_examples_import_public_names_only() -> None:
    wrong = [
        f"{file.relative_to(EXAMPLES)}: from {module} import {name}"
        for file in sorted(EXAMPLES.rglob("*.py"))
        for module, name in _imported(file)
        if name not in public_names(module.split(".")[0]).get(module, set())
    ]
    assert wrong == []


@pytest.mark.parametrize("page", [page for page in PAGES if API not in page.parents], ids=page_id)
def test_a_page_names_public_modules_and_names_only(page: Path) -> None:
    """What stands in backticks as `concertino_bench.loaders.stream` is a public module or a name in one."""
    wrong = []
    for dotted in re.findall(r"`(concertino_\w+(?:\.\w+)+)", page.read_text(encoding="utf-8")):
        owner = dotted.split(".")[0]
        if owner in MEMBERS and not dotted.endswith((".py", ".md", ".toml")) and not _is_public(dotted, owner):
            wrong.append(dotted)
    assert wrong == []


def _is_public(dotted: str, owner: str) -> bool:
    public = public_names(owner)
    named = {f"{module}.{name}" for module, names in public.items() for name in names}
    return dotted in public or dotted in named or dotted.rpartition(".")[0] in named  # the last: a method
