"""The world of a task: one member of the pool through which a run acts, and the state that a grader looks at.

The member is called in two ways. With `state` and `action` it acts on a state that travels with the calls, as
`environment_tool` of role workflows does: `RoleWorkflow` keeps it among its own data, so branches of a search cannot
disturb each other. With `action` alone it acts on the state that this world keeps, so any other strategy can use it,
and what comes back is the observation alone.

The invariant: `reached` is never taken from a state that somebody passed in; it follows from an action that was judged
here. What would tell hidden tests or answers, the reward, is left out of what callers see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from concertino import AgentSpec, CallFailed, Context, Observation, ToolSpec
from concertino.strategies.role_workflow import Stepped

from .acting import ActingEnvironment, Ran, UnreadableAction

# Characters of a result, state included: far more than any state has.
_MOST_CHARS = 1_000_000


class EnvironmentWorld:
    """What one run of a task acts in.

    Args:
        make: makes the environment of the task.
        name: of the member.
        summary: what the member's description says that an action is.
        scripted: actions take scripts, so the member is an agent that calls the pool's Python tool.
        python: the member that runs scripts.
    """

    def __init__(
        self,
        make: Callable[[], ActingEnvironment],
        name: str,
        summary: str,
        *,
        scripted: bool = False,
        python: str = "python",
    ) -> None:
        self._make, self._name, self._summary = make, name, summary
        self._scripted, self._python = scripted, python
        self._environment = make()
        self._environment.reset()
        self._reached = self._environment.reached
        self._steps = self._illegal = self._unreadable = 0
        self._rewards: list[float] = []

    def members(self) -> Sequence[ToolSpec]:
        """The member through which this world is acted in."""
        kind = AgentSpec if self._scripted else ToolSpec
        text = f"Act in the task and see the result. {self._summary} Without an action: see how things stand."
        schema = {
            "type": "object",
            "properties": {
                "action": {"description": self._summary},
                "task": {"type": "string", "description": "for programs: begin again"},
                "state": {
                    "description": "for programs: the state to act on; leave it out to continue from where you are"
                },
            },
            "additionalProperties": False,
        }
        options: dict[str, Any] = {"context": "ctx"} if self._scripted else {}
        # The state travels in the result, and could not be restored if it were truncated; writing calls run one by one.
        options = {"takes_mapping": True, "writes": True, "max_chars": _MOST_CHARS, **options}
        return [kind(self._name, text, schema, self._act, **options)]

    def state(self) -> dict[str, Any]:
        """Whether the goal is reached, why not, and counts of what was done; plain JSON data."""
        environment = self._environment
        return {
            "reached": self._reached,
            # The grader takes rewards from 0 to 1; the domains' own may leave that range.
            "reward": min(1.0, max(0.0, self._rewards[-1])) if self._rewards else 0.0,
            "reason": "" if self._reached else environment.last.illegal or environment.observation.splitlines()[-1],
            "done": environment.done,
            "steps": self._steps,
            "illegal": self._illegal,
            "unreadable": self._unreadable,
            "rewards": list(self._rewards),
            "snapshot": environment.snapshot(),
        }

    # -- acting ----------------------------------------------------------------------------------------------------

    async def _act(self, arguments: Mapping[str, Any], *, ctx: Context | None = None) -> Any:
        # Acting on a copy: an action that cannot be read leaves the world's own environment as it was.
        environment = self._taken_up(arguments)
        if "action" not in arguments:
            return self._shown(environment, arguments)
        action = arguments["action"]
        try:
            scripts = environment.scripts(action) if ctx else ()
            ran = [_ran(await ctx.call(self._python, {"code": script})) for script in scripts] if ctx else []
            stepped = environment.judge(action, ran)
        except UnreadableAction:
            self._unreadable += 1
            raise
        self._environment, self._reached = environment, environment.reached
        self._steps += 1
        self._illegal += bool(environment.last.illegal)
        self._rewards.append(stepped.reward)
        return self._shown(environment, arguments, stepped)

    def _taken_up(self, arguments: Mapping[str, Any]) -> ActingEnvironment:
        """An environment in the state that is to be acted on; not shared."""
        environment = self._make()
        environment.reset()
        if "task" in arguments:
            self._environment, self._reached = environment, environment.reached
        elif "state" in arguments:
            environment.restore(arguments["state"])
        else:
            environment.restore(self._environment.snapshot())
        return environment

    def _shown(
        self, environment: ActingEnvironment, arguments: Mapping[str, Any], stepped: Stepped | None = None
    ) -> Any:
        stepped = stepped or Stepped(environment.observation, environment.done)
        # A model reads a sentence; a strategy that passes the state along needs it back as data.
        if "task" not in arguments and "state" not in arguments:
            return stepped.observation
        # The reward of code and maths would tell hidden tests and the right answer.
        reward = {"reward": stepped.reward} if environment.tells_reward else {}
        return {
            "observation": stepped.observation,
            "done": stepped.done,
            **reward,
            "state": environment.snapshot(),
        }


def _ran(seen: Observation) -> Ran:
    """The result of a script, from the observation of the Python tool.

    Raises:
        CallFailed: nothing was run: the tool does not exist, or the budget or the time was used up.
    """
    # A script that failed still has its output as content; without any, nothing was run.
    if not isinstance(seen.content, Mapping):
        raise CallFailed(seen)
    cause = seen.error.message if seen.error is not None else ""
    return Ran(seen.ok, str(seen.content.get("stdout", "")), cause)
