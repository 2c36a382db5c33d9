"""Running a declared agent: a recipe, as a file gives it, and the function that an `AgentSpec` calls.

Invariant: a recipe has been checked, so running it finds no unknown name in a prompt; what a caller or a model wrote
is put into prompts as it is and is not read again for places.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from concertino import Context, Sampling

from concertino_reasoning import prompts
from concertino_reasoning.methods.chosen import ChosenModel, choose, conversation, task_of
from concertino_reasoning.methods.reflexion import CriticLoop, reflect
from concertino_reasoning.methods.voting import poll
from concertino_reasoning.record import write_record
from concertino_reasoning.solutions import Solution

PLACE = re.compile(r"\{\{\s*(.*?)\s*\}\}")


@dataclass(frozen=True)
class RecipeStep:
    """One prompt.

    Attributes:
        name: under which later steps use its result; empty outside of pipelines.
        system: the instruction; empty for the one that asks for the form of `solutions`.
        model: role or name; empty for the caller's choice, else the default.
        temperature: None leaves it to the server.
    """

    name: str
    prompt: str
    system: str = ""
    model: str = ""
    temperature: float | None = None

    @property
    def sampling(self) -> Sampling:
        """How to sample it."""
        return Sampling(temperature=self.temperature)


@dataclass(frozen=True)
class Recipe:
    """A declared agent: its kind (`file.KINDS`) and the parameters of that kind; others are ignored."""

    kind: str
    steps: tuple[RecipeStep, ...]
    samples: int = 5
    rounds: int = 5
    critic: str = ""
    revise: str = ""
    critic_model: str = ""
    free: bool = False


def runner(recipe: Recipe, parameters: tuple[str, ...]) -> Callable[..., Coroutine[Any, Any, str]]:
    """The function of an agent: takes the checked arguments as a mapping, and the context."""

    async def run(arguments: Mapping[str, Any], *, ctx: Context) -> str:
        values = {
            "subtask": task_of(ctx, arguments.get("subtask", "")),
            "question": ctx.question,
            "record": write_record(ctx),
            **{name: arguments[name] for name in parameters},
        }
        model = arguments.get("model", "")
        method = {"single": _single, "samples": _samples, "critique": _critique, "pipeline": _pipeline}[recipe.kind]
        return str(await method(recipe, values, ctx, model))

    return run


async def _single(recipe: Recipe, values: dict[str, str], ctx: Context, model: str) -> Solution:
    """One request."""
    [step] = recipe.steps
    return await _solver(ctx, step, model).solve_once(_request(step, values), step.sampling, free=recipe.free)


async def _samples(recipe: Recipe, values: dict[str, str], ctx: Context, model: str) -> Solution:
    """`samples` requests at once and a vote."""
    [step] = recipe.steps
    requests = [_request(step, values)] * recipe.samples
    return (await poll(_solver(ctx, step, model), requests, step.sampling)).chosen()


async def _critique(recipe: Recipe, values: dict[str, str], ctx: Context, model: str) -> Solution:
    """A critic loop of at most `rounds` rounds."""
    [step] = recipe.steps
    solver = _solver(ctx, step, model)
    critic = choose(ctx, model or recipe.critic_model) if model or recipe.critic_model else solver
    loop = CriticLoop(_request(step, values), recipe.critic or prompts.CRITIC, recipe.revise or prompts.REVISE)
    return await reflect(solver, critic, values["subtask"], loop, recipe.rounds, step.sampling)


async def _pipeline(recipe: Recipe, values: dict[str, str], ctx: Context, model: str) -> Solution:
    """One request for each step, one after another; a step that fails ends it, since no draft is an answer."""
    solvers = [_solver(ctx, step, model) for step in recipe.steps]  # an unknown model is refused before the first step
    *drafts, last = zip(recipe.steps, solvers, strict=True)
    for step, solver in drafts:
        # Plain, since only the next step reads a draft, and needs no form of it.
        draft = await solver.solve_once(_request(step, values, plain=True), step.sampling, free=True)
        values = {**values, step.name: draft.written}
    step, solver = last
    return await solver.solve_once(_request(step, values), step.sampling, free=recipe.free)


def _solver(ctx: Context, step: RecipeStep, model: str) -> ChosenModel:
    return choose(ctx, model or step.model)


def _request(step: RecipeStep, values: Mapping[str, str], *, plain: bool = False) -> Any:
    """The messages of a step. Each place is filled once; what is filled in is not read for places."""
    system = step.system or ("" if plain else prompts.FORMAT)
    return conversation(_fill(system, values), _fill(step.prompt, values))


def _fill(text: str, values: Mapping[str, str]) -> str:
    return PLACE.sub(lambda match: values[match[1]], text)
