"""How a page's text is compared with what a command prints."""

from __future__ import annotations

import pytest

from .documents import agrees


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("48 of 48", "48 of 48  \n", True),
        ("...\n48 of 48", "48 of 48", True),
        ("...\n48 of 48", "12 of 48\n31 of 48\n48 of 48", True),
        ("...\n48 of 48", "148 of 48", False),
        ("a\n...", "a", True),
        ("a\n...", "a\nb\nc", True),
        ("a ... c", "a  b c", True),
        ("a...c", "a\nb\nc", True),
        ("", "", True),
        ("", "a", False),
        ("a\nb", "a", False),
    ],
)
def test_dots_stand_for_anything_and_a_line_of_dots_for_any_lines(shown: str, printed: str, same: bool) -> None:
    assert agrees(shown, printed) is same
