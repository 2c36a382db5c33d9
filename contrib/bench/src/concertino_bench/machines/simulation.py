"""The programs of one task together: its calls find theirs by name.

    a task's initial_config --> Machines --call(name, arguments)--> answer; state() at any time

The invariant: a call that does not fit is answered with an error, and never raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from concertino_bench.tasks.task import Task

from . import brokerage, calculator, desk, shell, travel, vehicle
from .machine import Machine, error
from .published import LONG, NOTHING, TRAVEL, WHERE, Published


class Machines:
    """The programs of one task.

    Args:
        classes: names of the published classes.
        config: the first state of each, by class.
        published: what is read from the published programs.

    Raises:
        ValueError: a class has no program here; `missing` names them beforehand.
    """

    def __init__(self, classes: Iterable[str], config: Mapping[str, Any], published: Published = NOTHING) -> None:
        kinds, classes = programs(), list(classes)
        if lacking := missing(classes):
            raise ValueError(f"no simulated program for {', '.join(lacking)}; there are {', '.join(kinds)}")
        self._machines = {name: kinds[name](config.get(name) or {}, published) for name in classes}

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """The answer of a function, as JSON."""
        method = f"on_{_snake(name)}"
        found = [getattr(each, method) for each in self._machines.values() if hasattr(each, method)]
        if not found:
            return _json(error(f"There is no function {name!r}."))
        return _json(_answer(found[0], arguments))

    def state(self) -> dict[str, Any]:
        """The state of each program, by class."""
        return {name: each.state() for name, each in self._machines.items()}


def programs() -> dict[str, type[Machine]]:
    """The simulated programs by the names of the published classes."""
    return {
        "GorillaFileSystem": shell.Files,
        "MathAPI": calculator.Maths,
        "MessageAPI": desk.Messages,
        "TicketAPI": desk.Tickets,
        "TradingBot": brokerage.Trading,
        "TravelAPI": travel.Travel,
        "TwitterAPI": desk.Posts,
        "VehicleControlAPI": vehicle.Vehicle,
    }


def missing(classes: Iterable[str]) -> list[str]:
    """Those of the classes that have no program here."""
    known = programs()
    return [name for name in classes if name not in known]


def not_simulated(task: Task) -> str:
    """Why the programs of a task cannot be simulated; empty if they can."""
    meta = task.metadata
    if not isinstance(meta.get("involved_classes"), (list, tuple)) or "turn_calls" not in meta:
        return "it has no calls by turn; expected a task of a multi-turn category, with `involved_classes`"
    if lacking := missing(meta["involved_classes"]):
        return f"there is no simulated program for {', '.join(lacking)}"
    published = _published(task)
    if "TravelAPI" in meta["involved_classes"] and not published.has(TRAVEL):
        return f"the fares of TravelAPI are in the published {TRAVEL}; give programs=… the folder {WHERE}"
    if published.long and not published.has(LONG):
        return f"the long texts are in the published {LONG}; give programs=… the folder {WHERE}"
    return ""


def machines_of(task: Task) -> Machines:
    """The programs of a task, in its first state.

    Raises:
        ValueError: one is not simulated.
    """
    config = task.metadata.get("initial_config") or {}
    return Machines(task.metadata["involved_classes"], config, _published(task))


def _published(task: Task) -> Published:
    long = "long_context" in str(task.metadata.get("category") or "")
    return Published(str(task.metadata.get("programs") or ""), long)


def _answer(method: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    try:
        return method(**arguments)
    # Arguments that the schema let through, such as a text for a number.
    except (TypeError, AttributeError, LookupError, ValueError, ArithmeticError) as fault:
        return error(f"The call does not fit: {fault}")


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
