"""One implementation of each hook, as the reference shows them."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import concertino as ct

if TYPE_CHECKING:
    from concertino_train.episodes import Episode


# --8<-- [start:concertino_tools]
@ct.tool(timeout=5)
def shout(text: str) -> str:
    """Write a text in capital letters."""
    return text.upper()


@ct.hookimpl
def concertino_tools(settings: ct.ProviderSettings) -> list[ct.ToolSpec]:
    settings.check(["timeout"])
    return [shout.with_(timeout=settings.get("timeout", 5))]


# --8<-- [end:concertino_tools]
# --8<-- [start:concertino_agents]
@ct.agent(models=("worker",))
async def translate(text: str, language: str, *, ctx: ct.Context) -> str:
    """Translate a text with the worker model."""
    return (await ctx.model("worker").chat(f"Translate into {language}: {text}")).text


@ct.hookimpl
def concertino_agents() -> list[ct.AgentSpec]:
    return [translate]


# --8<-- [end:concertino_agents]
# --8<-- [start:concertino_models]
class Parrot(ct.Model):
    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        return ct.Reply(request.messages[-1].text)


@ct.hookimpl
def concertino_models() -> list[ct.ModelSpec]:
    return [ct.ModelSpec("parrot", Parrot, description="Repeats what it is told.", prices=ct.Prices(0, 0))]


# --8<-- [end:concertino_models]
# --8<-- [start:concertino_declare_model]
class LoudParrot(Parrot):
    def __init__(self, mark: str) -> None:
        self._mark = mark

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        return ct.Reply(request.messages[-1].text.upper() + self._mark)


@ct.hookimpl
def concertino_declare_model(name: str, options: dict[str, Any]) -> ct.ModelSpec:
    if unknown := options.keys() - {"mark"}:
        raise ct.SpecError(f"unknown option {unknown.pop()!r}; expected: mark")
    mark = options.get("mark", "!")
    return ct.ModelSpec(name, lambda: LoudParrot(mark), prices=ct.Prices(0, 0))


# --8<-- [end:concertino_declare_model]
# --8<-- [start:concertino_members_from]
def phrase(text: str) -> ct.ToolSpec:
    name = text.split(maxsplit=1)[0]
    return ct.ToolSpec.from_schema(name, f"Says: {text}", {"type": "object"}, lambda arguments: text)


@ct.hookimpl
def concertino_members_from(source: Any, settings: ct.ProviderSettings) -> list[ct.ToolSpec] | None:
    if not isinstance(source, Path) or source.suffix != ".phrases":
        return None
    if not (lines := source.read_text(encoding="utf-8").splitlines()):
        raise ct.UsageError(f"{source}: expected one phrase on each line")
    return [phrase(line) for line in lines]


# --8<-- [end:concertino_members_from]
# --8<-- [start:concertino_strategies]
class Quick(ct.ParallelRounds):
    """Two rounds at most."""

    name = "quick"

    def __init__(self, max_rounds: int = 2) -> None:
        super().__init__(max_rounds=max_rounds)


@ct.hookimpl
def concertino_strategies() -> list[type]:
    return [Quick]


# --8<-- [end:concertino_strategies]
# --8<-- [start:concertino_rankings]
class Shortest:
    """The models with the shortest description first."""

    name = "shortest"

    def order(self, question: str, entries: Sequence[ct.RankingEntry]) -> Sequence[str]:
        return [entry.name for entry in sorted(entries, key=lambda entry: len(entry.card))]


@ct.hookimpl
def concertino_rankings() -> list[ct.Ranking]:
    return [Shortest()]


# --8<-- [end:concertino_rankings]
# --8<-- [start:concertino_guards]
@ct.guard("answer")
def short(answer: str) -> ct.Deny | None:
    """An answer fits into one line of a screen."""
    return ct.Deny("at most 80 characters") if len(answer) > 80 else None


@ct.hookimpl
def concertino_guards() -> list[ct.Guard]:
    return [short]


# --8<-- [end:concertino_guards]
# --8<-- [start:concertino_before_run]
@ct.hookimpl
def concertino_before_run(run_id: str, trace: Path) -> dict[str, Any]:
    print(f"run {run_id} is recorded in {trace.name}")
    return {"host": platform.node()}


# --8<-- [end:concertino_before_run]
# --8<-- [start:concertino_before_call]
@ct.hookimpl
def concertino_before_call(spec: ct.ToolSpec, arguments: dict[str, Any], call_id: str) -> ct.Observation | None:
    if spec.writes:
        raise PermissionError("nothing may be changed in this demonstration")
    return None


# --8<-- [end:concertino_before_call]
# --8<-- [start:concertino_after_call]
@ct.hookimpl
def concertino_after_call(spec: ct.ToolSpec, observation: ct.Observation) -> ct.Observation | None:
    print(f"{observation.name} {observation.status} after {observation.attempts} attempts")
    return None


# --8<-- [end:concertino_after_call]
# --8<-- [start:concertino_describe]
@ct.hookimpl
def concertino_describe(spec: ct.ToolSpec | ct.ModelSpec) -> str | None:
    if spec.name.endswith("/parrot"):
        return "Repeats what it is told. Never ask it a question."
    return None


# --8<-- [end:concertino_describe]
# --8<-- [start:concertino_cli]
@ct.hookimpl
def concertino_cli() -> list[Any]:
    import click
    from concertino.cli.terminal import say

    @click.command("greet")
    @click.argument("name")
    def greet(name: str) -> None:
        """Greet somebody: `concertino greet Ada`."""
        say(f"Hello, {name}.")

    return [greet]


# --8<-- [end:concertino_cli]
# --8<-- [start:concertino_tasks]
@ct.hookimpl
def concertino_tasks() -> list[Any]:
    return [{"name": "sums", "tasks": [{"question": "1 + 2?", "answer": "3"}]}]


# --8<-- [end:concertino_tasks]
# --8<-- [start:concertino_graders]
def exact(answer: str, expected: str) -> float:
    """1 for the very same text, else 0."""
    return float(answer.strip() == expected.strip())


@ct.hookimpl
def concertino_graders() -> list[Any]:
    return [exact]


# --8<-- [end:concertino_graders]
# --8<-- [start:concertino_rewards]
def cheap(episode: Episode) -> float:
    """The fewer cost units, the better."""
    return 1 / (1 + episode.totals.units)


@ct.hookimpl
def concertino_rewards() -> list[Any]:
    return [cheap]


# --8<-- [end:concertino_rewards]
# --8<-- [start:concertino_doctor]
@ct.hookimpl
def concertino_doctor() -> list[ct.Finding]:
    if shutil.which("espeak"):
        return [ct.Finding("ok", "program espeak", "found")]
    return [ct.Finding("warning", "program espeak", "not found, so nothing is spoken", "install espeak")]


# --8<-- [end:concertino_doctor]
