"""Where graders get what they need: models and tools of the pool, on an account of their own.

The invariant: what grading spends is never counted as a system's spending.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from concertino import Call, ChatRequest, Executor, Observation, Plan, Pool, PoolError, Reply, Usage, UsageError
from concertino.executor import Scope
from concertino.schema import suggestion

from concertino_bench.tasks.grade import Grader
from concertino_bench.tasks.task import Task


class PoolServices:
    """One grading: what a grader asks and calls, and what that costs. Used as `async with`.

    Args:
        run_id: of the grading; requests of two gradings are never taken for one.
    """

    def __init__(self, executor: Executor, pool: Pool, run_id: str) -> None:
        self._executor, self._pool, self._run_id = executor, pool, run_id
        self._scope: Scope | None = None
        self._rounds = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        # A grader that asks and calls nothing never opens a scope.
        if self._scope is not None:
            await self._executor.release(self._scope)

    @property
    def usage(self) -> Usage:
        """What this grading has spent so far."""
        return self._scope.ledger.usage if self._scope is not None else Usage()

    async def ask(self, role: str, request: ChatRequest) -> Reply:
        """Ask a model, by role or name in the pool."""
        return await self._executor.ask(role, request, self._open())

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Observation:
        """Call a member of the pool."""
        # Call ids have to differ within a scope, and every plan numbers its calls from 1.
        self._rounds += 1
        # The executor carries out plans only, so one call is a plan of one.
        plan = Plan([Call(name, dict(arguments))])
        (seen,) = await self._executor.run_plan(plan, self._open(), prefix=f"{self._rounds}.")
        return seen

    def _open(self) -> Scope:
        if self._scope is None:
            self._scope = self._executor.open(self._pool, run_id=self._run_id)
        return self._scope


def grading_pool(pool: Pool, graders: Sequence[Grader]) -> Pool:
    """The pool that graders use: with the tools that they need, from what is installed.

    Raises:
        UsageError: something that a grader needs is not there.
    """
    for grader in graders:
        for need in grader.needs:
            kind, _, name = need.partition(":")
            if kind == "model":
                try:
                    pool.model(name)
                except PoolError as error:
                    raise UsageError(
                        f"the grader {grader.name} asks the model {name!r}: bind one in the pool, [roles] {name} = …"
                    ) from error
            elif name not in pool:
                pool = pool.adding(*_installed(name, grader.name))
    return pool


def _installed(name: str, grader: str) -> Sequence[Any]:
    try:
        return Pool.installed(name).members
    except PoolError as error:
        package = f"concertino-{name.partition('/')[0]}"
        raise UsageError(f"the grader {grader} calls {name}, which is not installed: pip install {package}") from error


def choose_graders(tasks: Sequence[Task], graders: Sequence[Grader], name: str = "") -> dict[str, Grader]:
    """By task id, who grades it: the grader asked for, else the one that the task names, else that of its kind.

    Raises:
        UsageError: an unknown grader, none for a kind, or two; or a task lacks what its grader needs.
    """
    by_name = {grader.name: grader for grader in graders}
    by_kind: dict[str, Grader] = {}
    chosen: dict[str, Grader] = {}
    for task in tasks:
        if wanted := name or str(task.metadata.get("grader", "")):
            chosen[task.id] = _named(wanted, by_name)
        else:
            if task.kind not in by_kind:
                by_kind[task.kind] = _for_kind(task.kind, graders)
            chosen[task.id] = by_kind[task.kind]
        try:
            chosen[task.id].check(task)
        except ValueError as error:
            raise UsageError(f"the grader {chosen[task.id].name} cannot grade {task.id}: {error}") from error
    return chosen


def _named(name: str, graders: Mapping[str, Grader]) -> Grader:
    if name in graders:
        return graders[name]
    hint = suggestion(name, graders, "concertino bench graders lists them")
    raise UsageError(f"no grader {name!r}; {hint}")


def _for_kind(kind: str, graders: Sequence[Grader]) -> Grader:
    fitting = [grader for grader in graders if kind in grader.kinds]
    if len(fitting) == 1:
        return fitting[0]
    found = " and ".join(grader.name for grader in fitting) or "none"
    raise UsageError(f"tasks of the kind {kind!r} need one grader, and there is {found}; name one with --grader")
