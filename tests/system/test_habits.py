"""The habits of the tree: how often a file may overrule the formatter or the type checker.

The limits may only get smaller. `make house` lists the files.
"""

from __future__ import annotations

import re

from import_graph import distributions
from tree import ROOT, comments, tree_files

SOURCES = {file for imports in distributions().values() for file in imports.files.values()}

MOST_IN_SOURCE = {"fmt: skip": 2, "type: ignore": 5}
MOST_ELSEWHERE = {"fmt: skip": 24, "type: ignore": 193}


def places(mark: str, *, in_source: bool) -> list[str]:
    """Where a mark stands, once per comment that has it."""
    files = (file for file in tree_files() if file.suffix == ".py" and (file in SOURCES) == in_source)
    return [file.relative_to(ROOT).as_posix() for file in files for each in comments(file) if mark in each]


def test_source_overrules_formatter_and_type_checker_no_more_than_it_may() -> None:
    counts = {mark: len(places(mark, in_source=True)) for mark in MOST_IN_SOURCE}
    assert {mark: count for mark, count in counts.items() if count > MOST_IN_SOURCE[mark]} == {}


def test_tests_and_benchmarks_overrule_them_no_more_than_they_may() -> None:
    counts = {mark: len(places(mark, in_source=False)) for mark in MOST_ELSEWHERE}
    assert {mark: count for mark, count in counts.items() if count > MOST_ELSEWHERE[mark]} == {}


def test_an_ignored_error_of_the_type_checker_is_named() -> None:
    unnamed = [
        file.relative_to(ROOT).as_posix()
        for file in SOURCES
        for each in comments(file)
        if re.search(r"type: ignore(?!\[)", each)
    ]
    assert unnamed == []
