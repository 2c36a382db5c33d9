"""How a recorded run would have ended under another strategy or other settings, for the form on its page.

Nothing is asked, called, spent or written: the strategy is driven from the trace alone. Invariant: a name is one of an
installed strategy, never of a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from concertino.core.errors import TraceError, UsageError
from concertino.core.events import STOP_REASONS
from concertino.runs.setup import recorded_strategy
from concertino.runs.trace_replay import replay_file
from concertino.strategies import Strategy, installed_strategy
from concertino.strategies.built_in import BUILT_IN

from .run_file import RunFile


def known_strategies() -> list[str]:
    """The names that the form offers."""
    return sorted(BUILT_IN)


def replayed_end(run: RunFile, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The end of a run as another strategy, or the recorded one with other settings, reaches it.

    Args:
        name: of the strategy; empty for the recorded one, with its recorded settings.
        settings: that are to be other ones.

    Returns:
        `answer`, `stop`, `meaning`, `detail`, and whether it is the `same` end; plain JSON data, as it is shown.

    Raises:
        UsageError: no such strategy or setting.
        TraceError: the strategy wants something that the trace does not have; says what.
    """
    head = run.patch()["head"]
    if not head["over"]:
        raise TraceError("the run is not over, so there is no end to compare with")
    setup = run.fold.board.setup
    recorded = setup.get("strategy")
    said = {} if name or not isinstance(recorded, dict) else recorded
    name = name or str(said.get("name", ""))
    _check(name, settings)
    strategy: Strategy = recorded_strategy(head["run"], {**setup, "strategy": {**said, "name": name, **settings}})
    done = replay_file(run.path, strategy)[1]
    texts = run.fold.texts
    answer = None if done.answer is None else texts.text(done.answer)
    return {
        "answer": answer,
        "stop": texts.line(done.stop),
        "meaning": STOP_REASONS.get(done.stop, ""),
        "detail": texts.text(done.detail),
        "same": (answer, done.stop) == (head["answer"], head["stop"]),
    }


def _check(name: str, settings: Mapping[str, Any]) -> None:
    kind = installed_strategy(name)
    try:
        known = kind().to_json().keys() - {"name"}
    except TypeError:  # it has settings without defaults, and says itself what it does not know
        return
    for each in settings:
        if each not in known:
            raise UsageError(f"the strategy {name!r} has no setting {each!r}; it has {', '.join(sorted(known))}")
