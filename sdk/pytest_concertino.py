"""The pytest plugin that comes with the install: three fixtures, used only by tests that name them.

pytest imports this module at every start, in projects that know nothing of concertino too; so it imports nothing but
pytest, and concertino inside the fixtures.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import asyncio

    from concertino.testing import ScriptedModel

_PATIENCE = 1.0
"""Seconds that a thread may take to end after its test."""


@pytest.fixture
def scripted_model() -> Iterator[Callable[..., ScriptedModel]]:
    """`scripted_model(*turns)` makes a `ScriptedModel`; when the test ends, each script must have been used up."""
    from concertino.testing import ScriptedModel

    made: list[ScriptedModel] = []

    def make(*turns: Any, **options: Any) -> ScriptedModel:
        made.append(ScriptedModel(*turns, **options))
        return made[-1]

    yield make
    for model in made:
        model.assert_done()


@pytest.fixture
def concertino_no_installed_plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No installed plugin is used, so that a test does not depend on what else is in the environment.

    Also in processes that the test starts. Plugins that the test registers by hand are used.
    """
    from concertino.plugins import default_manager

    monkeypatch.setenv("CONCERTINO_PLUGINS", "-")  # "-" can be no provider's name
    default_manager.cache_clear()
    yield
    default_manager.cache_clear()


@pytest.fixture
def concertino_nothing_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The test fails if a call of it could not be stopped, or if a thread of a call outlives it."""
    from concertino.executor.isolation.threads import abandoned
    from concertino.executor.runtime import Misbehaviour

    given_up: list[str] = []
    abandon = Misbehaviour.abandon

    def noting(misbehaviour: Misbehaviour, task: asyncio.Task[None], name: str, call_id: str) -> None:
        given_up.append(f"call {call_id} of {name}")
        abandon(misbehaviour, task, name, call_id)

    monkeypatch.setattr(Misbehaviour, "abandon", noting)
    before = set(abandoned())
    yield
    end = time.monotonic() + _PATIENCE
    while (threads := set(abandoned()) - before) and time.monotonic() < end:
        time.sleep(0.02)
    left = [*given_up, *(f"thread {name}" for name in sorted(threads))]
    if left:
        pytest.fail(f"left running by this test: {', '.join(left)}", pytrace=False)
