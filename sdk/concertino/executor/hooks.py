"""The hooks around a call: who may answer or refuse it before it runs, and who looks at its observation afterwards.

A hook's fault is never the run's. Before a call, an exception is that call's failure (`PermissionError` a refusal).
After a call, it is noted and the result counts all the same, even if the hook was cancelled by the deadline.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from concertino.core.observation import Observation
from concertino.core.settings import always_loaded
from concertino.members.specs import ToolSpec

if TYPE_CHECKING:
    from concertino.pool.pool import Pool

Hooks = Sequence[Callable[..., Any]]


def plugin_hooks(pool: Pool) -> tuple[Hooks, Hooks]:
    """Those before and after a call of the plugins that the pool came from.

    A pool made by hand is under those of every run too.
    """
    manager = pool.manager
    if manager is None:
        # A pool made by hand has only the hooks of plugins that are always loaded, so mostly there is nothing to find.
        if not always_loaded():
            return (), ()
        from concertino.plugins import default_manager

        manager = default_manager()
    return manager.before_call_hooks(), manager.after_call_hooks()


async def before_call(hooks: Hooks, spec: ToolSpec, arguments: Any, call_id: str) -> Observation | None:
    """The first answer that a hook gives instead of the call, as an observation of its own; None to let it run.

    Raises:
        PermissionError: a hook refuses the call.
        TypeError: a hook returned something else.
    """
    for hook in hooks:
        answer = hook(spec=spec, arguments=arguments, call_id=call_id)
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, Observation):
            return replace(answer, call_id=call_id, replayed=True)
        if answer is not None:
            kind = type(answer).__name__
            raise TypeError(f"a concertino_before_call hook returned {kind}; expected an Observation or None")
    return None


async def after_call(hooks: Hooks, spec: ToolSpec, observation: Observation) -> Observation:
    """The observation that is left after every hook has seen it; a hook that fails changes nothing but the note."""
    for hook in hooks:
        try:
            answer = hook(spec=spec, observation=observation)
            if inspect.isawaitable(answer):
                answer = await answer
        except BaseException as error:  # cancelled in a hook, too: the call itself has ended, and counts
            observation.note += f"\nafter_call hook failed: {error!r}"
            continue
        if isinstance(answer, Observation):
            observation = replace(answer, call_id=observation.call_id)
    return observation
