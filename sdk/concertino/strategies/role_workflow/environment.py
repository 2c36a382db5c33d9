"""Environments: worlds that a workflow acts in, and the tool through which a run reaches one.

A run's machine is pure data: it is forked, written down and replayed. So an environment is never an object that a run
holds. Its state travels: the tool takes a snapshot and an action, and returns the next snapshot with what is to be
seen; the machine keeps the snapshot among its own data. Two branches of a search then cannot disturb each other, a
reward is always computed on the state on which its action ran, and a trace replays without the environment.

Any object with the four methods of `Environment` works; it needs no base class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

from concertino.members.specs import ToolSpec

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "task": {"type": "string", "description": "the task; starts from the beginning"},
        "state": {"description": "the state to act on, as the last call returned it"},
        "action": {"description": "what to do"},
    },
    "additionalProperties": False,
}
# The content holds the state, and a state that was cut to an ordinary observation's size cannot be restored.
_MOST_CHARS = 1_000_000


class Stepped(NamedTuple):
    """What an action led to.

    Attributes:
        observation: what is to be seen now, in words.
        done: the goal is reached, or nothing more can be done.
        reward: of this action.
    """

    observation: str
    done: bool = False
    reward: float = 0.0


@runtime_checkable
class Environment(Protocol):
    """A world with a state."""

    def reset(self, task: str) -> str:
        """Begin the task; returns what is to be seen."""

    def step(self, action: Any) -> Stepped:
        """Act.

        Raises:
            ValueError: the action cannot be read. It is observed as EXEC_ERR, and the state stays as it was.
        """

    def snapshot(self) -> Any:
        """The whole state as plain JSON data."""

    def restore(self, snapshot: Any) -> None:
        """Take up a state that `snapshot` gave, of this object or another one."""


def environment_tool(make: Callable[[], Environment], name: str, description: str = "", **options: Any) -> ToolSpec:
    """The pool member through which runs act in an environment.

    A call with `state` and `action` acts, one without them begins the task. The content is
    `{"observation", "done", "reward", "state"}`.

    Args:
        make: makes an environment; called once per call, so nothing is shared between calls.
        options: further fields of `ToolSpec`.
    """

    def act(arguments: Mapping[str, Any]) -> dict[str, Any]:
        environment = make()
        if "action" not in arguments:
            stepped = Stepped(environment.reset(str(arguments.get("task", ""))))
        else:
            if "state" not in arguments:
                raise ValueError("an action needs the state to act on: give the `state` that the last call returned")
            environment.restore(arguments["state"])
            stepped = Stepped(*environment.step(arguments["action"]))
        return {
            "observation": stepped.observation,
            "done": bool(stepped.done),
            "reward": float(stepped.reward),
            "state": environment.snapshot(),
        }

    text = description or f"Act in the environment {name}."
    # `retry_safe`: the state comes with the call, so a repeat acts on the same state again.
    given: dict[str, Any] = {"max_chars": _MOST_CHARS, "retry_safe": True, **options}
    return ToolSpec.from_schema(name, text, _SCHEMA, act, **given)
