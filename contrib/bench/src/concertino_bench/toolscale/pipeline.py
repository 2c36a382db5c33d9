"""Synthesis of tool tasks: domain, schema, entries, tools, intents, tasks, harder tasks, three filters.

The steps are those of ToolScale (ToolOrchestra, arXiv 2511.21689, appendix "Data Synthesis"). Each is a request to the
pool's `writer`, whose JSON is checked, repaired and kept in a folder; the tools that it wrote run in the sandbox alone;
the pool's `solver` shows which tasks can be solved.

The invariants: the same folder continues where it was left, and asks nothing again; a task that is given has golden
calls that were carried out; and everything that was not taken over is in the report with its reason.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any, TypeVar

from concertino import AgentSpec, Budget, Call, CallFailed, Context, Executor, Pool, PoolError, ToolSpec, Usage
from concertino.schema import explain

from concertino_bench.tasks.task import DataError
from concertino_bench.toolkits.digests import digest
from concertino_bench.toolkits.replaying import GoldenCall, replay_async
from concertino_bench.toolkits.toolkit import Database, Toolkit

from . import prompts, schemas
from .asking import Checked, StepFailed, StepModel, StepProblem
from .filters import attempt, golden_error, same_task, without_action
from .folder import Folder
from .rows import TaskRow, question
from .sandboxed import SandboxedToolkit, SandboxRunner, ToolCode, pool_runner
from .schemas import Schema
from .settings import SynthesisProgress, SynthesisReport, SynthesisSettings
from .trying import try_tools

T = TypeVar("T")
SANDBOX = "code/python"


async def synthesise(
    pool: Pool,
    settings: SynthesisSettings,
    out: str | Path,
    *,
    budget: Budget | None = None,
    concurrency: int = 4,
    on_progress: Callable[[SynthesisProgress], None] | None = None,
) -> SynthesisReport:
    """Fill a folder with a domain and its tasks.

    Args:
        pool: binds the roles `writer` and `solver`, and has the tool `code/python`.
        settings: what is asked for; a folder keeps to those it was begun with.
        out: the folder. One that was begun is continued.
        budget: of all requests of this process together; attempts at once get equal parts of what is left.
        concurrency: tasks at once.
        on_progress: called after every step.

    Raises:
        DataError: the folder was begun with other settings, or cannot be written.
        PoolError: the pool lacks a role or the sandbox.
        StepFailed: a step failed without which it cannot continue; the folder keeps what there is.
        CallFailed: a model did not answer, or the budget is used up; the same call continues.
    """
    sandbox = pool[SANDBOX]
    if not isinstance(sandbox, ToolSpec):
        raise PoolError(f"{SANDBOX} is a {sandbox.kind} of the pool; expected a tool that runs Python")
    for role in ("writer", "solver"):
        pool.model(role)
    folder = _begin(Path(out), settings)
    run, result = pool_runner(sandbox, seconds=settings.seconds), list[SynthesisReport]()
    wrong: list[Exception] = []

    async def work(arguments: dict[str, Any], *, ctx: Context) -> str:
        try:
            places, purse = asyncio.Semaphore(concurrency), SpendingLimit(concurrency)
            job = _Synthesis(ctx, pool, settings, folder, run, places, purse, on_progress)
            result.append(await job.run_all())
        # Kept aside: the executor would make an observation of it, and its type would be lost.
        except Exception as error:
            wrong.append(error)
        return "done"

    # All of it is one agent's call, so that its requests share a budget, a deadline and a count.
    agent = AgentSpec.from_schema(
        "synthesise",
        "Fills a folder with tasks.",
        {"type": "object"},
        work,
        context="ctx",
        timeout=None,
        models=("writer", "solver"),
    )
    async with Executor() as executor:
        (seen,) = await executor.run([Call(agent.name, {})], pool.adding(agent), budget=budget)
    if wrong:
        raise wrong[0]
    if not result:
        raise CallFailed(seen)
    # Attempts are runs of their own, with budgets of their own: the call's usage does not hold theirs.
    report = replace(result[0], usage=seen.usage.plus(result[0].usage))
    folder.save("report", report.to_json())
    return report


def _begin(out: Path, settings: SynthesisSettings) -> Folder:
    """The folder, begun or continued.

    Raises:
        DataError: it was begun with other settings.
    """
    folder, wanted = Folder(out), asdict(settings)
    known = folder.load("settings")
    if known is None:
        # A folder of something else must not be filled with files that a next run takes for its own.
        if out.is_dir() and any(out.iterdir()):
            raise DataError(f"{out} is not empty and has no settings.json; give an empty folder, or one that was begun")
        folder.save("settings", wanted)
    elif known != wanted:
        other = sorted(name for name in {*known, *wanted} if known.get(name) != wanted.get(name))
        raise DataError(
            f"{out} was begun with {', '.join(f'{name}={known.get(name)!r}' for name in other)}; give the same, or "
            "another folder"
        )
    return folder


class SpendingLimit:
    """Shares what is left of a budget among attempts at once, so that all of them together keep to it.

    Args:
        places: attempts at once.

    Attributes:
        waiting: tasks that may still need an attempt, those under way included.
    """

    def __init__(self, places: int) -> None:
        self.waiting = self._places = places
        self._held: list[tuple[float, float]] = []

    def free(self, usd: float, tokens: float, seconds: float) -> tuple[float, float]:
        """The $ and tokens that no running attempt holds.

        Args:
            usd, tokens, seconds: what is left of the budget, including what is held; infinity where there is no limit.

        Raises:
            StepFailed: it is nothing.
        """
        usd, tokens = usd - sum(held[0] for held in self._held), tokens - sum(held[1] for held in self._held)
        limits = {"usd": usd, "tokens": tokens, "seconds": seconds}
        spent = [name for name, value in limits.items() if value <= 0]
        if spent:
            raise StepFailed(f"the budget is used up ({', '.join(spent)}); the same command continues from here")
        return usd, tokens

    @contextmanager
    def share(self, usd: float, tokens: float, seconds: float) -> Iterator[Budget | None]:
        """An equal part of what is free, held until the block ends; None where nothing is limited.

        Time runs for all at once, so it is not divided. The arguments are those of `free`.

        Raises:
            StepFailed: nothing is free.
        """
        usd, tokens = self.free(usd, tokens, seconds)
        # Those that run hold their part already; what is free is for those that may still begin beside them.
        parts = max(1, min(self._places, self.waiting) - len(self._held))
        usd, tokens = usd / parts, tokens if tokens == inf else max(1, tokens // parts)
        held = (0.0 if usd == inf else usd, 0.0 if tokens == inf else tokens)
        self._held.append(held)
        try:
            limits = {"usd": usd, "tokens": tokens if tokens == inf else int(tokens), "seconds": seconds}
            finite: dict[str, Any] = {name: value for name, value in limits.items() if value != inf}
            yield Budget(**finite) if finite else None
        finally:
            self._held.remove(held)


@dataclass
class _Synthesis:
    """One run over a folder. The methods are the steps, in their order."""

    ctx: Context
    pool: Pool
    settings: SynthesisSettings
    folder: Folder
    runner: SandboxRunner
    places: asyncio.Semaphore
    purse: SpendingLimit
    on_progress: Callable[[SynthesisProgress], None] | None
    started: float = field(default_factory=time.monotonic)
    spent: Usage = field(default_factory=Usage)
    kept: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.asker = StepModel(self.ctx, self.folder, self.settings.repairs, self._told)

    def _told(self, step: str) -> None:
        if self.on_progress is not None:
            self.on_progress(SynthesisProgress(step, self.asker.asked, self.asker.known, len(self.asker.rejected)))

    async def run_all(self) -> SynthesisReport:
        """Run all steps in their order."""
        written = await self._schema()
        schema = Schema.from_json(written)
        database = await self._entries(written, schema)
        tools = await self._tools(written, schema, database)
        toolkit = SandboxedToolkit(
            Database(database),
            [ToolCode.from_json(tool) for tool in tools],
            self.runner,
            instructions=schema.policy,
            schema=schema,
        )
        self.folder.save(
            "domain", {"name": self.settings.name, "schema": written, "tools": tools, "database": database}
        )
        intents = await self._intents(tools)
        made = await self._each(self._task(tools, toolkit, n, intent) for n, intent in enumerate(intents, 1))
        rows = self._unlike([row for chain in made for row in chain])
        # Only now is it known how many tasks share what is left.
        self.purse.waiting = len(rows)
        judged = await self._each(self._judged(row, toolkit) for row in rows)
        kept = [row for row in judged if row is not None]
        self.folder.write_rows("tasks.jsonl", kept)
        reasons = Counter(each["reason"] for each in self.asker.rejected)
        return SynthesisReport(
            str(self.folder.path),
            len(schema.tables),
            sum(map(len, database.values())),
            len(tools),
            len(intents),
            dict(Counter(row["level"] for row in kept)),
            dict(reasons),
            self.asker.rejected,
            self.asker.asked,
            self.asker.known,
            self.spent,
            time.monotonic() - self.started,
        )

    async def _each(self, work: Iterable[Awaitable[T]]) -> list[T]:
        """Several at once, but not too many; in order."""

        async def one(item: Awaitable[T]) -> T:
            async with self.places:
                return await item

        return await self.ctx.gather([one(item) for item in work])

    # -- the environment -----------------------------------------------------------------------------------------------

    async def _schema(self) -> Any:
        async def check(data: Any) -> Checked:
            found = [StepProblem("schema_invalid", text) for text in schemas.schema_problems(data)]
            return Checked(found, None if found else data)

        prompt = prompts.for_schema(self.settings.domain)
        return self._needed("schema", await self.asker.artefact("schema", prompt, schemas.SCHEMA_REPLY, check))

    async def _entries(self, written: Any, schema: Schema) -> dict[str, dict[str, Any]]:
        """The database: for each subject, some entries of each table, so that later ones can refer to earlier ones."""

        async def check_subjects(data: Any) -> Checked:
            return Checked(usable=list(dict.fromkeys(data["subjects"]))[: self.settings.subjects])

        prompt = prompts.for_subjects(self.settings.domain, self.settings.subjects)
        subjects = self._needed(
            "subjects", await self.asker.artefact("subjects", prompt, schemas.SUBJECTS_REPLY, check_subjects)
        )
        database: dict[str, dict[str, Any]] = {table: {} for table in schema.tables}
        for number, subject in enumerate(subjects, 1):
            for table in schema.tables.values():
                name = f"entries/{table.name}-{number}"
                found = await self._batch(name, written, schema, table.name, subject, database)
                # Table after table, not side by side: later tables refer to keys of earlier ones.
                database[table.name] |= {entry[table.key]: entry for entry in found}
        empty = [table for table, entries in database.items() if not entries]
        if empty:
            for name in empty:  # so that the next run asks again
                for file in (self.folder.path / "entries").glob(f"{name}-*.json"):
                    file.unlink()
            raise StepFailed(f"entries: no entry of {', '.join(empty)} could be used; see report.json")
        return database

    async def _batch(
        self, name: str, written: Any, schema: Schema, table: str, subject: str, database: dict[str, dict[str, Any]]
    ) -> list[Any]:
        key = schema.tables[table].key

        async def check(data: Any) -> Checked:
            entries = data["entries"]
            wrong = schemas.entries_problems(schema, table, entries, database)
            found = [
                StepProblem("entry_invalid", text, str(entries[place].get(key, f"entry {place + 1}")))
                for place, text in wrong.items()
            ]
            return Checked(found, [entry for place, entry in enumerate(entries) if place not in wrong])

        known = {each: list(rows) for each, rows in database.items()}
        prompt = prompts.for_entries(written, table, subject, self.settings.entries, known)
        entries = await self.asker.artefact(name, prompt, schemas.ENTRIES_REPLY, check) or []
        if not (entries and self.settings.review):
            return list(entries)

        async def check_review(data: Any) -> Checked:
            keys = {entry[key] for entry in entries}
            named = {each["key"]: each["problem"] for each in data["problems"] if each["key"] in keys}
            # They are not wrong replies, so the model is not asked again; what it named is left out below.
            return Checked(usable=[{"key": each, "problem": text} for each, text in named.items()])

        prompt = prompts.for_review(written, table, entries)
        named = await self.asker.artefact(f"{name}-review", prompt, schemas.REVIEW_REPLY, check_review) or []
        self._reject(StepProblem("entry_implausible", each["problem"], each["key"]).to_json(name) for each in named)
        refused = {each["key"] for each in named}
        return [entry for entry in entries if entry[key] not in refused]

    async def _tools(self, written: Any, schema: Schema, database: Mapping[str, Any]) -> Any:
        async def check(data: Any) -> Checked:
            wrong = {
                name: StepProblem("tool_invalid", text, name)
                for name, text in schemas.tools_problems(data["tools"]).items()
            }
            sound = [tool for tool in data["tools"] if tool["name"] not in wrong]
            broken = await try_tools([ToolCode.from_json(tool) for tool in sound], schema, database, self.runner)
            wrong |= {name: StepProblem("tool_broken", text, name) for name, text in broken.items()}
            usable = [tool for tool in data["tools"] if tool["name"] not in wrong]
            return Checked(list(wrong.values()), usable or None)

        # Three entries show the form; the whole database would cost tokens in every repair.
        sample = {name: dict(list(rows.items())[:3]) for name, rows in database.items()}
        prompt = prompts.for_tools(self.settings.domain, written, sample, self.settings.tools)
        return self._needed("tools", await self.asker.artefact("tools", prompt, schemas.TOOLS_REPLY, check))

    # -- the tasks -----------------------------------------------------------------------------------------------------

    async def _intents(self, tools: Any) -> list[str]:
        async def check(data: Any) -> Checked:
            return Checked(usable=list(dict.fromkeys(data["intents"]))[: self.settings.intents])

        prompt = prompts.for_intents(self.settings.domain, tools, self.settings.intents)
        found = await self.asker.artefact("intents", prompt, schemas.INTENTS_REPLY, check)
        return list(self._needed("intents", found))

    async def _task(self, tools: Any, toolkit: SandboxedToolkit, number: int, intent: str) -> list[dict[str, Any]]:
        """A task of an intent, and the harder ones made of it."""
        policy, database = toolkit.instructions, toolkit.database.data
        prompt = prompts.for_task(tools, database, policy, intent)
        first = TaskRow(f"{number:03}", "-", (), source={"intent": intent})
        row = await self._written("tasks", first, prompt, toolkit, None)
        chain = [] if row is None else [row]
        for level in range(1, self.settings.evolve + 1):
            if len(chain) < level:
                break
            old = chain[-1]
            next_row = TaskRow(f"{number:03}-{level}", "-", (), level=level, source={"evolved_from": old["id"]})
            prompt = prompts.for_evolved(tools, database, policy, old)
            row = await self._written("evolved", next_row, prompt, toolkit, old)
            chain += [] if row is None else [row]
        return chain

    async def _written(
        self, kind: str, blank: TaskRow, prompt: str, toolkit: SandboxedToolkit, old: Mapping[str, Any] | None
    ) -> dict[str, Any] | None:
        async def check(data: Any) -> Checked:
            golden = tuple(GoldenCall(call["name"], call["arguments"]) for call in data["calls"])
            row = TaskRow(blank.id, data["request"], golden, tuple(data["required"]), blank.level, "", blank.source)
            # Before anything is run: it costs nothing to see.
            if old is not None and same_task(row, old):
                return Checked([StepProblem("evolve_unchanged", "its calls and its facts are those of the old task")])
            invalid = _invalid_calls(golden, toolkit)
            if invalid:
                return Checked([StepProblem("task_invalid", text) for text in invalid])
            done = await replay_async(toolkit, golden)
            fault = golden_error(done)
            if fault:
                return Checked([StepProblem("golden_error", fault)])
            carried = {"digest": done.digest, "initial": done.initial, "operations": done.operated.to_json()}
            return Checked(usable={**row.to_json(), **carried})

        found: dict[str, Any] | None = await self.asker.artefact(
            f"{kind}/{blank.id}", prompt, schemas.TASK_REPLY, check
        )
        return found

    def _unlike(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The tasks without those that repeat one before them."""
        seen: set[str] = set()
        unlike = []
        for row in rows:
            keys = {row["request"].casefold(), digest([row["golden"], row["required"]]) if row["golden"] else row["id"]}
            if keys & seen:
                self._reject([StepProblem("duplicate", "it repeats a task before it").to_json(f"tasks/{row['id']}")])
            else:
                unlike.append(row)
            seen |= keys
        return unlike

    async def _judged(self, row: dict[str, Any], toolkit: Toolkit) -> dict[str, Any] | None:
        """Apply the second and the third filter; None for a task that they refuse."""
        name = f"judged/{row['id']}"
        known = self.folder.load(name)
        if known is None:
            known = await self._judge(TaskRow.from_json(row), toolkit)
            self.folder.save(name, known)
        else:
            self.asker.known += 1
        # Fewer tasks wait, so each of those to come gets a larger part.
        self.purse.waiting -= 1
        if known["reason"]:
            self._reject([StepProblem(known["reason"], known["detail"]).to_json(f"tasks/{row['id']}")])
        self._told(name)
        return None if known["reason"] else {**row, "attempts": known["attempts"]}

    async def _judge(self, row: TaskRow, toolkit: Toolkit) -> dict[str, Any]:
        done = await replay_async(toolkit, row.golden)
        if without_action(row, done):
            return _judgement("no_action_needed", "nothing has to be done, and nothing said", 0)
        # Where the state must change, doing nothing cannot solve it, and the request is saved.
        if not done.changed:
            said = await self._without_tools(row, toolkit)
            if said and without_action(row, done, said):
                return _judgement("no_action_needed", f"without any tool the solver said: {said[:200]}", 0)
        reasons: list[str] = []
        for number in range(1, self.settings.attempts + 1):
            with self.purse.share(*self._left()) as budget:
                tried = await attempt(row, done, toolkit, self.pool, strategy=self.settings.strategy, budget=budget)
                # Inside the block: the share is given back only when what it cost is counted.
                self.spent = self.spent.plus(tried.usage)
            self.asker.asked += 1
            if tried.verification.passed:
                return _judgement("", "", number)
            # Not a failed attempt: it says nothing about the task, so nothing is judged and the next run tries again.
            if budget is not None and tried.stop in ("budget", "deadline"):
                raise StepFailed(f"{row.id}: an attempt used up its share of the budget; the same command continues")
            reasons.append(tried.verification.reason)
        if reasons:
            return _judgement("unsolved", f"{len(reasons)} attempts; the last: {reasons[-1]}", len(reasons))
        return _judgement("", "", 0)

    async def _without_tools(self, row: TaskRow, toolkit: Toolkit) -> str:
        self.purse.free(*self._left())
        self.asker.asked += 1
        asked = f"{question(toolkit.instructions, row.request)}\n\nYou have no tools. Answer as well as you can."
        return (await self.ctx.model("solver").chat(asked)).text

    def _left(self) -> tuple[float, float, float]:
        """What is left of the budget, in $, tokens and seconds, with what running attempts may still use."""
        left = self.ctx.remaining
        return left.usd - self.spent.usd, left.tokens - self.spent.tokens, self.ctx.remaining_seconds()

    # -- what the steps share ------------------------------------------------------------------------------------------

    def _reject(self, rejections: Iterable[dict[str, str]]) -> None:
        self.asker.rejected += rejections

    def _needed(self, step: str, found: Any) -> Any:
        if not found:
            why = next((each["detail"] for each in reversed(self.asker.rejected)), "nothing was given")
            self.folder.save("report", {"failed": step, "rejected": self.asker.rejected})
            # The artefact says that nothing could be used; kept, it would fail every next run alike.
            (self.folder.path / f"{step}.json").unlink(missing_ok=True)
            raise StepFailed(f"{step}: nothing of it could be used: {why}; the same command asks again")
        return found


def _judgement(reason: str, detail: str, attempts: int) -> dict[str, Any]:
    return {"reason": reason, "detail": detail, "attempts": attempts}


def _invalid_calls(golden: Sequence[GoldenCall], toolkit: Toolkit) -> list[str]:
    """What is wrong with calls before they are tried."""
    functions, problems = toolkit.functions(), []
    for call in golden:
        function = functions.get(call.name)
        if function is None:
            problems.append(f"there is no tool {call.name!r}; there are {', '.join(functions)}")
        elif violations := function.spec.validator.check(dict(call.arguments)):
            problems.append(f"{call}: {explain(violations, function.spec.validator).partition(chr(10))[0]}")
    return problems
