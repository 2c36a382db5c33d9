"""Custom agents: agents that a person declares in a TOML file, without code.

    [agents.careful]                       # the agent `reasoning/careful`
    kind = "critique"                      # single (default), samples, critique or pipeline
    description = "Solve a task, with a second look by a critic."
    prompt = "Solve this for a reader in a hurry: {{subtask}}"

Invariant: a file is read whole or refused whole, before anything runs; a refusal names the file, the table, the key,
what was expected, what came, and names near an unknown one. `{{name}}` in a prompt is a parameter, the result of an
earlier step, or one of `subtask`, `question` and `record`; nothing else in a prompt has a meaning.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from concertino import AgentSpec, Cost, SpecError
from concertino.schema import near_names, suggestion

from concertino_reasoning.agents import AGENTS
from concertino_reasoning.parameters import MODEL, SUBTASK, arguments

from .recipe import PLACE, Recipe, RecipeStep, runner

KINDS = ("single", "samples", "critique", "pipeline")
_COMMON = ("kind", "description", "parameters", "units", "timeout", "output")
_STEP = ("prompt", "system", "model", "temperature")
_OF_KIND = {
    "single": _STEP,
    "samples": (*_STEP, "samples"),
    "critique": (*_STEP, "critic", "revise", "critic_model", "rounds"),
    "pipeline": ("steps",),
}
_ALWAYS = ("subtask", "question", "record")
_ARGUMENTS = ("subtask", "model")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_SAMPLES, _ROUNDS, _STEPS = range(2, 65), range(1, 21), range(1, 21)


def load_agents(path: str | os.PathLike[str]) -> list[AgentSpec]:
    """Read the agents of a TOML file, in its order.

    Args:
        path: the file; each table `[agents.NAME]` declares one.

    Raises:
        SpecError: the file cannot be read, or says what no agent can be.
    """
    file = Path(path)
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpecError(f"{file}: cannot be read: {error.strerror or error}; give the path of a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{file}: is not valid TOML: {error}") from None
    top = _Table(file, "", data)
    top.check_keys(("agents",))
    agents = top.table("agents")
    return [_agent(name, agents.table(name)) for name in agents.data]


@dataclass(frozen=True)
class _Table:
    """One table of the file: its place, for errors, and typed access to its keys."""

    file: Path
    place: str
    data: Mapping[str, Any]

    def refuse(self, message: str) -> NoReturn:
        raise SpecError(f"{self.file}: {f'[{self.place}] ' if self.place else ''}{message}")

    def check_keys(self, known: Sequence[str], why: str = "") -> None:
        for key in self.data:
            if key not in known:
                hint = suggestion(key, known)
                self.refuse(f"unknown key {key!r}{why}; {hint}")

    def take(self, key: str, kind: type | tuple[type, ...], expected: str, default: Any = None) -> Any:
        """The value of a key; without a default it must be there."""
        if key not in self.data:
            if default is None:
                self.refuse(f"{key} is missing; expected {expected}")
            return default
        value = self.data[key]
        # A bool is an int, but `true` is not a number of samples.
        if isinstance(value, bool) or not isinstance(value, kind):
            self.refuse(f"{key} = {value!r}; expected {expected}")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """A text, not empty unless that is the default."""
        text: str = self.take(key, str, "a text in quotes", default)
        if not text.strip() and default is None:
            self.refuse(f"{key} = {text!r}; expected a text that is not empty")
        return text

    def number(self, key: str, default: float, least: float = 0.0, above: str = ">= 0") -> float:
        """A number of at least `least`, and finite."""
        value: float = self.take(key, (int, float), f"a number {above}", default)
        if not least <= value < float("inf"):
            self.refuse(f"{key} = {value!r}; expected a number {above}")
        return value

    def count(self, key: str, default: int, within: range) -> int:
        """A whole number in a range."""
        expected = f"a whole number from {within.start} to {within.stop - 1}"
        value: int = self.take(key, int, expected, default)
        if value not in within:
            self.refuse(f"{key} = {value!r}; expected {expected}")
        return value

    def one_of(self, key: str, known: Sequence[str]) -> str:
        """One of several words, the first by default."""
        value = self.text(key, known[0])
        if value not in known:
            near = near_names(value, known)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            self.refuse(f"{key} = {value!r}; expected one of {', '.join(known)}{hint}")
        return value

    def table(self, key: str) -> _Table:
        """A table inside this one; it must be there."""
        place = f"{self.place}.{key}" if self.place else key
        value = self.take(key, dict, f"a table, [{place}]")
        return _Table(self.file, place, value)


def _agent(name: str, table: _Table) -> AgentSpec:
    if not _NAME.fullmatch(name):
        table.refuse(f"the name {name!r} cannot be used; expected a letter, then letters, digits or '_', at most 64")
    _check_clash(name, table)
    kind = table.one_of("kind", KINDS)
    table.check_keys((*_COMMON, *_OF_KIND[kind]), _belongs(table.data, kind))
    parameters = _parameters(table)
    steps = (
        _steps(table, (*_ALWAYS, *parameters)) if kind == "pipeline" else (_step("", table, (*_ALWAYS, *parameters)),)
    )
    recipe = Recipe(
        kind=kind,
        steps=steps,
        samples=table.count("samples", 5, _SAMPLES),
        rounds=table.count("rounds", 5, _ROUNDS),
        critic=table.text("critic", ""),
        revise=table.text("revise", ""),
        critic_model=table.text("critic_model", ""),
        free=table.one_of("output", ("answer", "text")) == "text",
    )
    if recipe.free and kind in ("samples", "critique"):
        table.refuse(f"output = 'text' does not go with kind = {kind!r}, which compares answers; leave it out")
    many = {"single": 1, "samples": recipe.samples, "critique": 2, "pipeline": len(steps)}[kind]
    asked = [step.model for step in steps] + ([recipe.critic_model] if kind == "critique" else [])
    return AgentSpec.from_schema(
        name,
        table.text("description"),
        _schema(parameters),
        runner(recipe, tuple(parameters)),
        context="ctx",
        cost=Cost(units=table.number("units", many)),
        timeout=table.number("timeout", 300.0 if kind in ("single", "samples") else 900.0, 0.001, "> 0"),
        retry_safe=True,
        models=tuple(dict.fromkeys(model or "default" for model in asked)),
    )


def _check_clash(name: str, table: _Table) -> None:
    if name in [agent.name for agent in AGENTS]:
        table.refuse(f"{name!r} is an agent of concertino-reasoning itself; choose another name")
    if name == "final_answer":
        table.refuse("'final_answer' is the call that ends a run in rounds; choose another name")


def _belongs(data: Mapping[str, Any], kind: str) -> str:
    """Which kinds know an unknown key, for the message."""
    for key in data:
        if key not in (*_COMMON, *_OF_KIND[kind]):
            others = [other for other in KINDS if key in _OF_KIND[other]]
            return f" for kind = {kind!r} (it belongs to {' or '.join(map(repr, others))})" if others else ""
    return ""


def _parameters(table: _Table) -> dict[str, str]:
    """Description by name of the texts that a caller must give beside the subtask."""
    if "parameters" not in table.data:
        return {}
    inner = table.table("parameters")
    for name in inner.data:
        if not _NAME.fullmatch(name) or name in (*_ALWAYS, *_ARGUMENTS):
            inner.refuse(
                f"{name!r} cannot be a parameter; expected a name of letters, digits and '_' that is not taken"
            )
    return {name: inner.text(name) for name in inner.data}


def _steps(table: _Table, known: tuple[str, ...]) -> tuple[RecipeStep, ...]:
    given = table.take("steps", list, f"one or more tables [[{table.place}.steps]]")
    if len(given) not in _STEPS or not all(isinstance(step, dict) for step in given):
        table.refuse(f"steps holds {len(given)} items; expected 1 to {_STEPS.stop - 1} tables [[{table.place}.steps]]")
    steps: list[RecipeStep] = []
    for number, data in enumerate(given, 1):
        inner = _Table(table.file, f"{table.place}.steps, step {number}", data)
        inner.check_keys(("name", *_STEP))
        name = inner.text("name", f"step{number}")
        taken = (*known, *(step.name for step in steps))
        if not _NAME.fullmatch(name) or name in (*taken, *_ARGUMENTS):
            inner.refuse(f"name = {name!r}; expected a name of letters, digits and '_' that is not taken")
        steps.append(_step(name, inner, taken))
    return tuple(steps)


def _step(name: str, table: _Table, known: tuple[str, ...]) -> RecipeStep:
    for key in ("prompt", "system", "critic", "revise"):
        if isinstance(table.data.get(key), str):
            _check_places(table, key, known if key in ("prompt", "system") else ())
    temperature = table.number("temperature", 0) if "temperature" in table.data else None
    return RecipeStep(
        name,
        table.text("prompt"),
        table.text("system", ""),
        table.text("model", "").strip(),
        temperature,
    )


def _check_places(table: _Table, key: str, known: tuple[str, ...]) -> None:
    for name in PLACE.findall(table.data[key]):
        if name not in known:
            near = near_names(name, known)
            there = ", ".join(known) or "none: the task and the solutions are shown by themselves"
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are {there}"
            table.refuse(f"{key} holds {{{{{name}}}}}, which is unknown here; {hint}")


def _schema(parameters: Mapping[str, str]) -> dict[str, Any]:
    given = {name: {"type": "string", "description": text, "minLength": 1} for name, text in parameters.items()}
    model = {**MODEL, "description": "Role or name of the model that works. Left out: the declared one."}
    return arguments(*given, subtask=SUBTASK, **given, model=model)
