"""The page of the reference about settings: bounds, what a file takes, and nothing behind the attributes."""

from __future__ import annotations

import re
from typing import Annotated, Literal

import pytest
from concertino_train.config.sections import BudgetSection
from concertino_train.settings import Section
from pydantic import Field
from reference_training_settings import _doc, _section, reference_page


class Bounded(Section):
    """Numbers with bounds."""

    wide: Annotated[float, Field(ge=0, le=2)] = 1
    above: Annotated[float, Field(gt=0)] = 1
    up_to: Annotated[float, Field(gt=0, le=1)] = 1
    inside: Annotated[float, Field(gt=0, lt=1)] = 0.5
    below: Annotated[int, Field(ge=0, lt=8)] = 1
    most: Annotated[int, Field(le=9)] = 1
    free: float = 1
    maybe: Annotated[float, Field(gt=0, le=1)] | None = None


class Told(Section):
    """When it looks; None switches it off.

    Attributes:
        maybe: greatest one; None for no bound. With
            0 nothing is: None says so, not `None`, NoneType or None_.
        always: where it goes. None by default.
        either: one of them.

    Raises:
        UsageError: it cannot be.

    A remark at the end.
    """

    maybe: float | None = None
    always: list[str] = Field(default_factory=list)
    either: Literal["off", 1, True, None] = None


def rows_of(text: str) -> dict[str, list[str]]:
    """The cells behind the name of each key."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    return {cells[0].strip("`"): cells[1:] for cells in rows}


def part_of_the_page(path: str) -> dict[str, list[str]]:
    return rows_of(reference_page().partition(f"## `{path}`\n")[2].partition("\n## ")[0])


def test_every_bound_of_a_number_is_written() -> None:
    values = {name: cells[0] for name, cells in rows_of(_section(Bounded, "bounded")).items()}
    assert values == {
        "wide": "number from 0 to 2",
        "above": "number > 0",
        "up_to": "number > 0 and ≤ 1",
        "inside": "number > 0 and < 1",
        "below": "whole number ≥ 0 and < 8",
        "most": "whole number ≤ 9",
        "free": "number",
        "maybe": "number > 0 and ≤ 1 or `null`",
    }


@pytest.mark.parametrize(
    ("path", "key", "value"),
    [("rollout", "top_p", "number > 0 and ≤ 1"), ("algorithm", "clip_low", "number > 0 and < 1")],
)
def test_settings_with_two_bounds_show_both(path: str, key: str, value: str) -> None:
    assert part_of_the_page(path)[key][0] == value


def test_what_stands_behind_the_attributes_belongs_to_none_of_them() -> None:
    assert _doc(BudgetSection)[1]["seconds"] == "wall time of the run."
    assert part_of_the_page("rollout.budget")["seconds"][2] == "wall time of the run."
    assert _doc(Told)[1]["either"] == "one of them."
    assert not re.search(r"\b(Raises|Returns|Args):", reference_page())


def test_nothing_is_null_where_a_file_says_so_and_none_where_words_do() -> None:
    text = _section(Told, "told")
    rows = rows_of(text)
    assert "When it looks; `null` switches it off." in text
    assert rows["maybe"][2] == (
        "greatest one; `null` for no bound. With 0 nothing is: `null` says so, not `None`, NoneType or None_."
    )
    assert rows["maybe"][:2] == ["number or `null`", "`null`"]
    assert rows["always"][2] == "where it goes. None by default."
    assert rows["either"][:2] == ["`off`, `1`, `true`, `null`", "`null`"]


def test_the_page_has_no_none_of_python_for_a_key_that_takes_null() -> None:
    left = [line for line in reference_page().splitlines() if re.search(r"\bNone\b", line)]
    assert [line.split(" | ")[0] for line in left] == ["| `trackers`"]
    assert part_of_the_page("algorithm.advantages")["clip"][2].startswith("greatest absolute advantage; `null` for no")
