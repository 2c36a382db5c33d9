"""What is easily mistaken is refused where it is given, with what was expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import concertino as ct
import pytest
from concertino.testing import fake_tool

POOL = ct.Pool.of(fake_tool("look", returns="here"))
ANY: Any = ct
"""The SDK, for programs without types."""


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        pytest.param(lambda: ANY.Runs(3), "folder=3: expected the path of a folder of traces", id="runs"),
        pytest.param(lambda: ANY.Session.all(3), "folder=3: expected the path", id="sessions"),
        pytest.param(lambda: ANY.Session("s", 3), "folder=3: expected the path", id="session"),
        pytest.param(lambda: ANY.Approve("x"), "expected other arguments as a dict", id="approve"),
        pytest.param(lambda: ANY.Deny(3), "expected the reason as a text", id="deny"),
        pytest.param(lambda: ANY.as_function(3, "look"), "pool=3: expected a Pool", id="function"),
        pytest.param(lambda: POOL.alias(ANY.__all__[:1]), "expected a dict by the names of members", id="alias"),
        pytest.param(lambda: ANY.Pool.describe(POOL, "look"), "describe.'look'.: expected a dict", id="describe"),
        pytest.param(lambda: ANY.Pool.price(POOL, 3), "price.3.: expected a dict", id="price"),
    ],
)
def test_a_wrong_argument_is_refused_with_what_was_expected(wrong: Callable[[], Any], expected: str) -> None:
    with pytest.raises((ct.UsageError, ct.PoolError), match=expected):
        wrong()
