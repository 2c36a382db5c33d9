"""The layers of the tree: who may import whom inside a distribution, and that no packages form a circle of imports.

The table is `layers.toml`; a failure prints each offending import with its file and line.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from import_graph import Circle, Imports, distributions, expected_circles, layers

ROOT = Path(__file__).parents[2]
DISTRIBUTIONS = distributions()
LAYERS = layers()
EACH = pytest.mark.parametrize("imports", DISTRIBUTIONS.values(), ids=DISTRIBUTIONS)
EACH_WITH_LAYERS = pytest.mark.parametrize("name", LAYERS)


@EACH_WITH_LAYERS
def test_an_entry_imports_only_entries_below_it(name: str) -> None:
    against = LAYERS[name].imports_against(DISTRIBUTIONS[name])
    wrong = [
        f"{edge} ({pair})" for pair, edges in against.items() if pair not in LAYERS[name].against for edge in edges
    ]
    assert wrong == []
    assert [pair for pair in LAYERS[name].against if pair not in against] == [], "these hold by now: take them out"


@EACH_WITH_LAYERS
def test_every_entry_has_a_layer(name: str) -> None:
    assert LAYERS[name].entries_without_layer(DISTRIBUTIONS[name]) == set(LAYERS[name].unplaced)


def test_distributions_import_each_other_only_as_the_architecture_page_says() -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(?:contrib|providers)/(\w+)` \| ((?:`\w+`(?:, )?)+) \|$", page, re.MULTILINE)
    told = {(name, other) for name, others in rows for other in re.findall(r"\w+", others)}
    found = {
        (source.name, other)
        for source in (*ROOT.glob("contrib/*"), *ROOT.glob("providers/*"))
        for file in source.glob("src/**/*.py")
        for other in re.findall(r"^\s*(?:from|import) concertino_(\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
        if other != source.name
    }
    assert found == told


@EACH
def test_no_packages_import_each_other_in_a_circle(imports: Imports) -> None:
    found = {circle.package: _shown(circle) for circle in imports.circles() if circle.has_packages}
    expected = {name for name in expected_circles() if name.split(".")[0] == imports.name}
    assert {name: shown for name, shown in found.items() if name not in expected} == {}
    assert expected - found.keys() == set(), "these hold by now: take them out"


def _shown(circle: Circle) -> list[str]:
    return [" ".join(circle.entries), "can be opened by cutting:", *map(str, circle.edges)]
