"""A toolkit whose functions are code that a model wrote: they run in a sandbox, and nowhere else.

Each call is a script of its own: the state goes in, and what the function gave back comes out with the records that it
changed. The state itself never leaves this process.

The invariants: no line of the code is executed or imported here; a call that fails, is stopped, or changes what it may
not, leaves the state as it was; and what comes back is checked before it counts.
"""

from __future__ import annotations

import asyncio
import base64
import json
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeAlias, cast

from concertino import Call, Executor, Observation, Pool, Status, ToolSpec

from concertino_bench.toolkits.toolkit import CallOutcome, Database, Function, Toolkit

from .schemas import Schema, entry_problems
from .settings import SECONDS

SandboxRunner: TypeAlias = Callable[[str], Awaitable[Observation]]
"""Runs a Python script in a sandbox; its observation is that of the tool `code/python`."""

# Before the result: whatever else is on the output stands ahead of it.
_MARK = "--- result of the call ---"
_SCRIPT = Path(__file__).with_name("sandbox_program.py")


@dataclass(frozen=True)
class ToolCode:
    """A function as a model wrote it.

    Attributes:
        name: of the function.
        description: what it does, for the one who calls it.
        writes: whether it may change the state.
        parameters: JSON schema of its arguments.
        code: Python; defines a function of that name with `db` as its first parameter.
    """

    name: str
    description: str
    writes: bool
    parameters: Mapping[str, Any]
    code: str

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ToolCode:
        """A function from a reply of the model."""
        return cls(data["name"], data["description"], bool(data["writes"]), data["parameters"], data["code"])


def pool_runner(spec: ToolSpec, *, seconds: float = SECONDS) -> SandboxRunner:
    """Runs scripts with a tool such as `code/python`, each with an executor of its own.

    Args:
        spec: the tool.
        seconds: for one script. The first one may take as long as the tool allows, for the sandbox has to be started.
    """
    bounded, begun = Pool.of(spec.with_(timeout=seconds)), Pool.of(spec)
    started = False

    async def run(script: str) -> Observation:
        nonlocal started
        async with Executor() as executor:
            if not started:
                # An empty script starts the sandbox, which may take longer than one call is allowed to.
                await executor.run([Call(spec.name, {"code": "pass"})], begun)
                started = True
            return (await executor.run([Call(spec.name, {"code": script})], bounded))[0]

    return run


def installed_runner(*, seconds: float = SECONDS) -> SandboxRunner:
    """Runs scripts with the installed tool `code/python`.

    Raises:
        PoolError: it is not installed.
    """
    return pool_runner(cast(ToolSpec, Pool.installed("code/python")["code/python"]), seconds=seconds)


class SandboxedToolkit(Toolkit):
    """A toolkit over code that is not trusted.

    Args:
        database: what it starts from.
        tools: the functions.
        run: runs a script in a sandbox.
        instructions: the policy.
        schema: what entries must look like; without one, they are not checked.
    """

    name = "synthesised"

    def __init__(
        self,
        database: Database | Mapping[str, Any],
        tools: Sequence[ToolCode],
        run: SandboxRunner,
        *,
        instructions: str = "",
        schema: Schema | None = None,
    ) -> None:
        super().__init__(database)
        self.instructions = instructions
        self.code = {tool.name: tool for tool in tools}
        self._functions = {tool.name: _function(tool) for tool in tools}
        self._run, self._schema, self._lock = run, schema, asyncio.Lock()

    def functions(self) -> Mapping[str, Function]:
        """Its functions by name."""
        return self._functions

    def call(self, name: str, arguments: Mapping[str, Any], *, checked: bool = True) -> CallOutcome:
        """Not for this toolkit: await `use`.

        Raises:
            TypeError: always.
        """
        raise TypeError(f"{name} runs in a sandbox, elsewhere: write `await toolkit.use(...)` or `replay_async(...)`")

    def fresh(self) -> Self:
        """Another one of the same database, in its first state."""
        other = super().fresh()
        # Not shared: runs on copies of one database need not wait for each other.
        other._lock = asyncio.Lock()
        return other

    async def use(self, name: str, arguments: Mapping[str, Any], *, checked: bool = True) -> CallOutcome:
        """Call a function in the sandbox."""
        function, refusal = self._admit(name, arguments, checked)
        if function is None:
            return CallOutcome(error=refusal)
        if not function.writes:
            return await self._in_sandbox(function, arguments)
        async with self._lock:  # a write begins with what the one before it has left
            return await self._in_sandbox(function, arguments)

    async def _in_sandbox(self, function: Function, arguments: Mapping[str, Any]) -> CallOutcome:
        # Taken before the wait: a reading call shows one state, also if a write ends meanwhile.
        state = self._state
        seen = await self._run(_script(state, self.code[function.name], arguments))
        answer = _answer(seen)
        if isinstance(answer, str):
            return CallOutcome(error=answer, broken=True)
        if answer.get("error"):
            return CallOutcome(error=str(answer["error"]), broken=bool(answer.get("broken")))
        try:
            changes = [(str(table), str(key), record) for table, key, record in answer["changes"]]
            read = frozenset((str(table), str(key)) for table, key in answer["read"])
        except (KeyError, TypeError, ValueError):
            return CallOutcome(error="what came back from the sandbox is not what its script writes", broken=True)
        # What comes back was made in a process with the model's code, so it is checked like any input.
        problem = self._refused(function, changes)
        if problem:
            return CallOutcome(error=problem, broken=True)
        if changes:
            self._state = _applied(state, changes)
        written = frozenset((table, key) for table, key, _ in changes)
        return CallOutcome(answer.get("content"), read=read, written=written)

    def _refused(self, function: Function, changes: Sequence[tuple[str, str, Any]]) -> str:
        """Why changes are not taken over; empty if they are."""
        if changes and not function.writes:
            return f"{function.name} is declared as reading, but it changed {'/'.join(changes[0][:2])}"
        for table, key, record in changes:
            # The script checks too, but it runs beside the model's code, which could have changed it.
            if table not in self.database.data:
                return f"it wrote to a table {table!r} that the database has not"
            if record is not None and self._schema is not None:
                problems = entry_problems(self._schema, table, record, key)
                if problems:
                    return f"it left {table}/{key} in a form that breaks the schema: {problems[0]}"
        return ""


def _function(tool: ToolCode) -> Function:
    def nowhere(**arguments: Any) -> Any:
        raise TypeError(f"{tool.name} runs in a sandbox only")

    spec = ToolSpec.from_schema(tool.name, tool.description, dict(tool.parameters), nowhere, writes=tool.writes)
    return Function(spec, tool.writes, False, nowhere)


def _script(state: Mapping[str, Any], tool: ToolCode, arguments: Mapping[str, Any]) -> str:
    given = {"state": state, "name": tool.name, "arguments": dict(arguments), "code": tool.code, "mark": _MARK}
    # Compressed, since the state goes along with every call; as ASCII, since it stands in source code.
    packed = base64.b85encode(zlib.compress(json.dumps(given).encode())).decode()
    return f"{_SCRIPT.read_text(encoding='utf-8')}\n\nmain({packed!r})\n"


def _answer(seen: Observation) -> dict[str, Any] | str:
    """What the script wrote last, or why there is nothing."""
    if seen.status is Status.TIMEOUT:
        return f"it did not end: {seen.error.message if seen.error else 'the time was over'}"
    content = seen.content if isinstance(seen.content, dict) else {}
    _, found, packed = str(content.get("stdout", "")).rpartition(_MARK)
    if not seen.ok or not found:
        why = seen.error.message if seen.error else "its result is too large, or it ended before it was done"
        return f"the call broke off: {why}"
    try:
        data = json.loads(zlib.decompress(base64.b85decode(packed.strip())))
    # The sandbox cuts long output off, which leaves half a text.
    except (ValueError, zlib.error):
        return "its result is too large to come back from the sandbox; give back less"
    return data if isinstance(data, dict) else "what came back from the sandbox is not an object"


def _applied(state: Mapping[str, Any], changes: Sequence[tuple[str, str, Any]]) -> dict[str, Any]:
    """A new state; it shares with the old one what did not change."""
    tables: dict[str, dict[str, Any]] = {}
    for table, key, record in changes:
        own = tables.setdefault(table, dict(state[table]))
        if record is None:
            own.pop(key, None)
        else:
            own[key] = record
    return {**state, **tables}
