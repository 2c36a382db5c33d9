"""The hooks around a run and its calls: who is told that a run begins, who may answer or refuse a call before it runs,
and who looks at its observation afterwards.

Before a run, an exception refuses it. Around calls, a hook's fault is never the run's. Before a call, an exception is
that call's failure (`PermissionError` a refusal). After a call, it is noted and the result counts all the same, even if
the hook was cancelled by the deadline.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concertino.core.observation import Observation
from concertino.core.settings import always_loaded
from concertino.members.specs import ToolSpec

if TYPE_CHECKING:
    from concertino.plugins import PluginManager
    from concertino.pool.pool import Pool

Hooks = Sequence[Callable[..., Any]]


def plugin_hooks(pool: Pool) -> tuple[Hooks, Hooks]:
    """Those before and after a call of the plugins that the pool came from.

    A pool made by hand is under those of every run too.
    """
    manager = _manager(pool)
    if manager is None:
        return (), ()
    return manager.before_call_hooks(), manager.after_call_hooks()


def before_run(pool: Pool, run_id: str, trace: Path) -> dict[str, Any]:
    """Tell plugins that a run begins or goes on. Gives what they note about it, by provider.

    Raises:
        PluginError: a plugin refuses the run.
    """
    manager = _manager(pool)
    return manager.before_run(run_id, trace) if manager is not None else {}


def _manager(pool: Pool) -> PluginManager | None:
    """The plugins whose hooks a run of a pool calls; None if there are none."""
    # A pool made by hand has only the hooks of plugins that are always loaded, so mostly there is nothing to find.
    if pool.manager is not None or not always_loaded():
        return pool.manager
    from concertino.plugins import default_manager

    return default_manager()


async def before_call(hooks: Hooks, spec: ToolSpec, arguments: Any, call_id: str, run_id: str) -> Observation | None:
    """The first answer that a hook gives instead of the call, as an observation of its own; None to let it run.

    Raises:
        PermissionError: a hook refuses the call.
        TypeError: a hook returned something else.
    """
    for hook in hooks:
        # A plain function, given to `Executor.open`, has no `Hook` around it that leaves out what it does not take.
        more = {"run_id": run_id} if getattr(hook, "leaves_out", False) else {}
        answer = hook(spec=spec, arguments=arguments, call_id=call_id, **more)
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
