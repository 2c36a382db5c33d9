"""What `make house` counts: entries, circles, levels, layers, and places that repeat each other."""

from __future__ import annotations

from pathlib import Path

import pytest
from import_graph import Imports, Layers, levels
from repeats import RUN, repeats

FILES = {
    "__init__.py": "",
    "high.py": "def late():\n    from .low.one import x\n    return x\n",
    "low/__init__.py": "from .one import x\n",
    "low/one.py": "from typing import TYPE_CHECKING\nx = 1\nif TYPE_CHECKING:\n    from house import middle\n",
    "middle.py": "import house.low.one\n",
}


@pytest.fixture
def house(tmp_path: Path) -> Imports:
    """A package in which an import for types closes a circle of `low` and `middle`."""
    for name, text in FILES.items():
        file = tmp_path / "house" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return Imports(tmp_path / "house")


def test_imports_in_functions_and_for_types_are_edges_between_entries(house: Imports) -> None:
    assert set(house.between_entries("house")) == {("high", "low"), ("low", "middle"), ("middle", "low")}
    assert house.entries("house") == {"high", "low", "middle"}


def test_a_circle_names_its_entries_and_one_import_that_opens_it(house: Imports) -> None:
    (circle,) = house.circles()
    assert (circle.package, circle.entries, circle.has_packages) == ("house", ("low", "middle"), True)
    assert len(circle.edges) == 1


def test_a_circle_is_one_level(house: Imports) -> None:
    assert levels(house.between_entries("house")) == 2
    assert levels([("a", "b"), ("b", "c"), ("a", "c")]) == 3


def test_an_import_that_leads_up_is_found_with_its_line(house: Imports) -> None:
    against = Layers(("middle", "low", "high")).imports_against(house)
    assert {pair: [(edge.file.name, edge.line) for edge in edges] for pair, edges in against.items()} == {
        "middle -> low": [("middle.py", 1)]
    }
    assert Layers(("low", "high")).entries_without_layer(house) == {"middle"}


def written(folder: Path, name: str, lines: list[str]) -> Path:
    file = folder / name
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def test_equal_code_is_a_repeat_whatever_comments_gaps_and_imports_stand_between(tmp_path: Path) -> None:
    code = [f"value_{number} = {number}" for number in range(RUN)]
    one = written(tmp_path, "one.py", ["a = 1", *code, "b = 2"])
    spaced = [line for each in code for line in ("# why", "", f"{each.replace(' = ', '  =  ')}  # what")]
    other = written(tmp_path, "other.py", ["import os", *spaced, "import sys", "c = 3"])
    (found,) = repeats([one, other])
    assert (found.lines, found.first.number, found.second.number) == (RUN, 2, 4)


def test_fewer_equal_lines_are_no_repeat_and_three_places_are_three(tmp_path: Path) -> None:
    code = [f"value_{number} = {number}" for number in range(RUN)]
    assert repeats([written(tmp_path, f"{name}.py", code[1:]) for name in "ab"]) == []
    assert len(repeats([written(tmp_path, f"{name}.py", code) for name in "abc"])) == 3
