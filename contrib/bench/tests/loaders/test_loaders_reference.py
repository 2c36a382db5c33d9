"""The table of task sets says what there is: every set, its options, and the metadata that its tasks have."""

from __future__ import annotations

import inspect
import re

import pytest
from concertino_bench.loaders import task_sets
from tree import ROOT

PAGE = ROOT / "docs" / "reference" / "task-sets.md"
LINES = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.read_text(encoding="utf-8").splitlines()]
TABLE = {cells[0].strip("`"): cells for cells in LINES if len(cells) == 6 and cells[0].startswith("`")}
SETS = {each.name: each for each in task_sets()}


def test_the_table_has_every_set_once_in_order() -> None:
    assert list(TABLE) == list(SETS) == sorted(SETS)


@pytest.mark.parametrize("name", SETS)
def test_the_options_of_a_set_are_those_of_its_loader(name: str) -> None:
    signature = inspect.signature(SETS[name].load)
    assert all(each.kind is inspect.Parameter.KEYWORD_ONLY for each in signature.parameters.values())
    options = [each for each in signature.parameters if each not in ("path", "split")]
    assert {"path", "split"} <= set(signature.parameters)
    assert re.findall(r"`(\w+)`", TABLE[name][3]) == options


def test_every_set_has_a_summary_of_one_line_and_those_of_calls_a_world() -> None:
    assert all(each.summary.endswith(".") and "\n" not in each.summary for each in SETS.values())
    worlds = ["acebench", "api-bank", "bfcl", "nestful", "seal-tools", "traject", "when2call"]
    assert [name for name, each in SETS.items() if each.world is not None] == worlds


def test_every_set_says_which_file_it_wants_and_where_its_owners_publish_it() -> None:
    assert [name for name, each in SETS.items() if not each.file] == []
    assert [name for name, each in SETS.items() if not each.source] == ["jsonl"]
