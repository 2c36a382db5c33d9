"""The rules of the tree itself: who may import whom, what a member looks like, what no file may say.

Imports are read from the source with `ast`, inside functions too, so a lazy import does not slip past a
rule. *Private* is any dotted part that opens with one underscore. An *owner* is the import name of a member.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tree import ROOT, Member, members, tree_files

MEMBERS = members()
OWNERS = {member.import_name: member for member in MEMBERS}
EACH_MEMBER = pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.relative)

# Bracketed, so that this file does not contain what it looks for; `user` and `name` stand for anybody.
MACHINE_PATH = re.compile(r"(?<![\w.~$}-])/(?:[h]ome|[U]sers|[r]oot|[w]ork)/(?!user\b|name\b)[\w.-]+")


def imports_of(file: Path) -> Iterator[tuple[int, str]]:
    """Every absolute import of a file as (line, dotted name); `from a import b` is `a.b`."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"), str(file))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def imports_under(folder: Path) -> Iterator[tuple[str, str]]:
    """Every import of every file under a folder as (place, dotted name)."""
    for file in sorted(folder.rglob("*.py")):
        for line, name in imports_of(file):
            yield f"{file.relative_to(ROOT).as_posix()}:{line}", name


def is_private(name: str) -> bool:
    return any(re.match(r"_(?!_)", part) for part in name.split("."))


def canonical(distribution: str) -> str:
    """The import name of a requirement: `concertino-bench[fast]>=1` is `concertino_bench`."""
    return re.split(r"[^\w.-]", distribution, maxsplit=1)[0].replace("-", "_").lower()


def declared_by(member: Member) -> set[str]:
    project = member.pyproject["project"]
    groups = [project.get("dependencies", []), *project.get("optional-dependencies", {}).values()]
    return {canonical(requirement) for group in groups for requirement in group}


def test_the_sdk_imports_neither_a_member_nor_torch() -> None:
    forbidden = {*OWNERS, "torch"}
    wrong = [
        f"{place} imports {name}" for place, name in imports_under(ROOT / "sdk") if name.split(".")[0] in forbidden
    ]
    assert wrong == []


@EACH_MEMBER
def test_a_member_uses_only_public_names_of_other_distributions(member: Member) -> None:
    others = {"concertino", *OWNERS} - {member.import_name}
    wrong = [
        f"{place} imports {name}"
        for place, name in imports_under(member.path / "src")
        if name.split(".")[0] in others and is_private(name)
    ]
    assert wrong == []


@EACH_MEMBER
def test_a_member_declares_every_distribution_of_the_tree_that_it_imports(member: Member) -> None:
    others = {"concertino", *OWNERS} - {member.import_name}
    used = {name.split(".")[0] for _, name in imports_under(member.path / "src")} & others
    assert used - declared_by(member) == set()
    assert "concertino" in declared_by(member)


@EACH_MEMBER
def test_a_member_has_the_shape_of_a_member(member: Member) -> None:
    packages = [folder.name for folder in (member.path / "src").iterdir() if (folder / "__init__.py").is_file()]
    assert packages == [member.import_name], "one regular package under src/, named after the distribution"
    assert member.name == f"concertino-{member.path.name}"
    assert (member.path / "README.md").read_text(encoding="utf-8").startswith("# ")
    assert list((member.path / "tests").rglob("test_*.py")), "no test"
    assert member.pyproject["project"]["requires-python"] == ">=3.11"


def test_every_folder_of_providers_and_contrib_is_a_member() -> None:
    roots = {ROOT / "providers", ROOT / "contrib"}
    inside = (file for file in tree_files() if roots & set(file.parents))
    folders = {"/".join(file.relative_to(ROOT).parts[:2]) for file in inside if file.parent not in roots}
    assert folders == {member.relative for member in MEMBERS}


def test_no_file_names_a_place_on_somebodys_machine() -> None:
    wrong = []
    for file in tree_files():
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        name = file.relative_to(ROOT).as_posix()
        wrong += [f"{name}:{i}: {line.strip()}" for i, line in enumerate(lines, 1) if MACHINE_PATH.search(line)]
    assert wrong == []


def test_every_page_of_the_documentation_is_in_its_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    listed = re.findall(r"[\w/-]+\.md\b", navigation)
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")]
    assert sorted(listed) == sorted(page for page in pages if not page.startswith("examples/"))
