"""Every issue that a strategy's reader can find has a text that causes it, and causes nothing else."""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache

import pytest
from concertino.strategies.base.format_issues import report
from reference_issues import EXAMPLES, READERS, Example, examples, issues_page, members
from tree import ROOT

FOUND = examples()
STRATEGIES = ROOT / "sdk" / "concertino" / "strategies"
LONGEST = 1_000
"""Characters of an example as the page shows it."""


@lru_cache(maxsize=1)
def page() -> str:
    return issues_page()


@pytest.mark.parametrize("example", FOUND, ids=lambda example: f"{example.reader}.{example.code}")
def test_a_text_has_the_issue_that_it_is_an_example_of_and_no_other(example: Example) -> None:
    issues = example.issues()
    assert {issue.code for issue in issues} == {example.code, *example.also}
    for issue in issues:
        assert 0 <= issue.start <= issue.end <= len(example.text)
        assert issue.message.strip()


@pytest.mark.parametrize("reader", READERS)
def test_every_code_of_a_reader_has_an_example_and_no_example_is_for_an_unknown_code(reader: str) -> None:
    assert {example.code for example in FOUND if example.reader == reader} == set(READERS[reader].codes)


def test_no_example_is_for_an_unknown_reader() -> None:
    assert {example.reader for example in FOUND} == set(READERS)


def test_every_table_of_codes_in_the_strategies_has_its_reader() -> None:
    modules = [path for path in STRATEGIES.rglob("*.py") if re.search(r"^CODES\b.*= \{", path.read_text("utf-8"), re.M)]
    assert len(modules) == len(READERS), modules


@pytest.mark.parametrize("example", FOUND, ids=lambda example: f"{example.reader}.{example.code}")
def test_the_page_shows_a_short_text_and_the_message_that_its_reader_gives(example: Example) -> None:
    section = page().split(f"{{ #{example.reader}-{example.code} }}\n")[1].split(" { #")[0]
    assert f"text\n{example.shown}\n`" in section
    assert f"text\n{report(example.text, [example.issue()]).removeprefix('- ')}\n`" in section
    assert len(example.shown) <= LONGEST
    assert ("*Repaired.*" in section or "(repaired)" in section) == example.issue().repaired


def test_what_repeats_in_a_text_is_written_out_for_the_reader_and_shortened_on_the_page() -> None:
    [long] = [example for example in FOUND if (example.reader, example.code) == ("dependency-plan", "too_many_nodes")]
    assert long.text.count("<node ") == long.times == 65
    assert long.shown.count("<node ") == 2
    assert "…" in long.shown


def test_a_text_whose_issue_is_gone_is_an_error_that_names_it() -> None:
    sound = Example("serial-calls", "no_call", "<answer>12</answer>", "<answer>12</answer>")
    with pytest.raises(LookupError, match=r"issues\.toml: the text of \[serial-calls\.no_call\] has the issues \[\]"):
        sound.issue()


def test_the_texts_are_read_with_the_members_that_the_page_shows() -> None:
    table = tomllib.loads(EXAMPLES.read_text(encoding="utf-8"))["members"]
    assert [tool["function"]["name"] for tool in members()] == list(table)
    shown = EXAMPLES.read_text(encoding="utf-8").split("[start:members]")[1].split("# --8<-- [end:members]")[0]
    assert tomllib.loads(shown)["members"] == table
