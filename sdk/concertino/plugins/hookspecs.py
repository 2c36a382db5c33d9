"""The hooks: the only contract between concertino and an installed distribution.

A distribution declares one entry point in the group `concertino`, pointing to a module (or object) that holds
functions decorated with `concertino.hookimpl`. Each hook below says when it is called and what it returns. An
implementation may take fewer arguments than the specification, never others.

    [project.entry-points.concertino]
    words = "concertino_words"

`settings` is the distribution's own table: `[providers.words]` in a pool file, or else in `concertino.toml`. A hook
that raises `UsageError` or `ValueError` about it is answered with the file and the table.

`concertino_before_call` and `concertino_after_call` may return an awaitable. A plugin that only brings those two, or
`concertino_before_run`, is loaded in every run if `concertino.toml` has `always = ["its name"]`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from concertino.core.observation import Observation
    from concertino.core.provider_settings import ProviderSettings
    from concertino.members.guards import Guard
    from concertino.members.ranking import Ranking
    from concertino.members.specs import AgentSpec, ModelSpec, Spec, ToolSpec

    from .finding import Finding

hookspec = pluggy.HookspecMarker("concertino")
hookimpl = pluggy.HookimplMarker("concertino")


@hookspec
def concertino_tools(settings: ProviderSettings) -> list[ToolSpec]:
    """Tools that the distribution offers. Called once, when a pool first needs the distribution."""
    raise NotImplementedError


@hookspec
def concertino_agents(settings: ProviderSettings) -> list[AgentSpec]:
    """Agents that the distribution offers. Called once, when a pool first needs the distribution."""
    raise NotImplementedError


@hookspec
def concertino_models(settings: ProviderSettings) -> list[ModelSpec]:
    """Models that the distribution offers. Called once, when a pool first needs the distribution."""
    raise NotImplementedError


@hookspec(firstresult=True)
def concertino_declare_model(name: str, options: dict[str, Any]) -> ModelSpec:
    """Called for each model that a pool file or `concertino.toml` declares under the provider's name.

    `[models."vllm/coder"]` calls the hook of the provider `vllm` with the name `coder` and the table's keys. Return
    a `ModelSpec` of that name; raise `ValueError` or `SpecError` for an option that cannot be, naming it. Start and
    connect nothing: that is for the model's first request.
    """
    raise NotImplementedError


@hookspec(firstresult=True)
def concertino_members_from(source: Any, settings: ProviderSettings) -> list[ToolSpec] | None:
    """Called with what `Pool.of`, `Pool.adding` or `sources` of a pool file were given, and concertino does not know.

    That is a `Path`, or any object but a text. Return the tools and agents that it becomes, or None at once if it is
    nothing of yours; providers are asked by name, and the first that returns members counts. Raise `UsageError` if it
    is yours and wrong, with its name. A command that it names must not be started unless the user has allowed it.
    """


@hookspec
def concertino_strategies() -> list[type]:
    """Strategy classes that the distribution offers, chosen by their `name`. Called once."""
    raise NotImplementedError


@hookspec
def concertino_rankings(settings: ProviderSettings) -> list[Ranking]:
    """Rankings that the distribution offers: a router with `policy = "provider/name"` asks its models in their order.

    Called once, when a router first needs one.
    """
    raise NotImplementedError


@hookspec
def concertino_guards() -> list[Guard]:
    """Guards that the distribution offers: `Orchestrator(guards=["provider/name"])` asks them. Called once."""
    raise NotImplementedError


@hookspec
def concertino_before_run(run_id: str, trace: Path, settings: ProviderSettings) -> Mapping[str, Any] | None:
    """Called when a run that keeps a trace begins, and when it is resumed; before the first line is written.

    A returned table of plain JSON data is kept in the run's set-up, under the provider's name in `noted`; what is
    returned at a resume is not, for the set-up stays that of the beginning. A context variable that it sets holds in
    the run alone. Return at once: the event loop waits. What it raises refuses the run.
    """


@hookspec(firstresult=True)
def concertino_before_call(
    spec: ToolSpec, arguments: dict[str, Any], call_id: str, run_id: str
) -> Any | Awaitable[Any]:
    """Called before each call of a tool or agent, with validated arguments; the first result that is not None wins.

    Return None to let the call run, an `Observation` to answer it without running (a cache, a recording; its
    `usage` counts against the budget), or raise `PermissionError` to refuse it (a policy). A person is asked by the
    member's own `approval=`, which costs no time limit.
    """


@hookspec
def concertino_after_call(spec: ToolSpec, observation: Observation) -> Any | Awaitable[Any]:
    """Called after each call of a tool or agent that ran, not after one that was refused or answered by a hook.

    A returned `Observation` replaces the given one (redaction, say).
    """


@hookspec(firstresult=True)
def concertino_describe(spec: Spec) -> str | None:
    """Called when a pool is rendered: the text that the orchestrator reads about a member, or None for its own."""


@hookspec
def concertino_cli() -> list[Any]:
    """`click.Command`s to add to the `concertino` command line. Called for a command that is not built in."""
    raise NotImplementedError


@hookspec
def concertino_tasks(settings: ProviderSettings) -> list[Any]:
    """Task sets that the distribution offers to evaluation and training. Called once."""
    raise NotImplementedError


@hookspec
def concertino_graders(settings: ProviderSettings) -> list[Any]:
    """Graders that the distribution offers. Called once."""
    raise NotImplementedError


@hookspec
def concertino_rewards(settings: ProviderSettings) -> list[Any]:
    """Reward functions that the distribution offers. Called once."""
    raise NotImplementedError


@hookspec
def concertino_doctor(settings: ProviderSettings) -> list[Finding]:
    """Called by `concertino doctor`: what the distribution sees of itself: a missing program, a stale index."""
    raise NotImplementedError
