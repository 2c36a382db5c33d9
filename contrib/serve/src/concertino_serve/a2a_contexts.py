"""Contexts of A2A: the tasks that belong together, and the list of all tasks of a client.

A context is a conversation of the server: its file lists the tasks, and what was said in them is read from their runs.
A task without a context begins one that has its own id.

Invariants: a client sees its own tasks and contexts alone. The next question of a context is asked with what was asked
and answered in its tasks that have ended, in their order.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from concertino.core.errors import TraceError
from concertino.traces.sink import SUFFIX
from concertino.traces.store import REQUEST

from .a2a_wire import STATES, context_of, task_now, updated_at
from .api_error import ApiError
from .request_digests import digest_of
from .request_record import RequestRecord
from .served_run import ServedRun
from .serving import Serving

_MOST_TURNS = 100
"""Earlier tasks that a question is asked with, the newest."""
_PAGE, _MOST_PAGE = 50, 100


def name_of(owner: str, context: str) -> str:
    """The conversation of a context."""
    return f"conv_{digest_of(owner, 'a2a', 'context', context)[:24]}"


def turns_before(serving: Serving, owner: str, context: str) -> list[dict[str, Any]]:
    """What was asked and answered in a context, as messages."""
    turns: list[dict[str, Any]] = []
    for run in _runs_of(serving, owner, context)[-_MOST_TURNS:]:
        answer = run.story().answer if run.over else None
        if answer is not None:
            turns += [{"role": "user", "content": run.request.input[0]["content"]}]
            turns += [{"role": "assistant", "content": answer}]
    return turns


def add_to_context(serving: Serving, run: ServedRun) -> None:
    """Make a task part of its context."""
    owner, context = run.request.owner, context_of(run)
    if context == run.id:
        return  # it stands for itself, until a message comes with its id
    store, name = serving.conversations, name_of(owner, context)
    with store.changing():
        if not store.has(name):
            first = _task(serving, owner, context)
            store.make(owner, {}, (first.answer_id,) if first is not None else (), name)
        store.add(name, owner, run.answer_id)


def _runs_of(serving: Serving, owner: str, context: str) -> list[ServedRun]:
    try:
        known: tuple[Any, ...] = serving.conversations.get(name_of(owner, context), owner).entries
    except ApiError:
        known = (context,)  # the task that stands for itself, if there is one
    found = [_task(serving, owner, entry) for entry in known if isinstance(entry, str)]
    return [run for run in found if run is not None]


def _task(serving: Serving, owner: str, run_id: str) -> ServedRun | None:
    try:
        run = serving.hub.get(run_id, owner)
    except ApiError:
        return None
    return run if run.request.protocol == "a2a" else None


# -- the list ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TaskQuery:
    """What a list is asked for.

    Attributes:
        after: only tasks that were updated at that moment or later, seconds since 1970.
        token: of the page before; empty for the first page.
    """

    context: str = ""
    tenant: str = ""
    status: str = ""
    after: float = 0.0
    artifacts: bool = False
    history: int = 0
    size: int = _PAGE
    token: str = ""

    @classmethod
    def read(cls, params: Mapping[str, Any]) -> TaskQuery:
        """From the parameters of a request.

        Raises:
            ApiError: one of them is wrong.
        """
        size, after = params.get("pageSize"), params.get("statusTimestampAfter")
        if size is not None and (type(size) is not int or not 1 <= size <= _MOST_PAGE):
            raise ApiError(400, f"pageSize: expected a whole number from 1 to {_MOST_PAGE}", param="pageSize")
        texts = {name: params.get(name) or "" for name in ("contextId", "tenant", "status", "pageToken")}
        for name, value in texts.items():
            if not isinstance(value, str):
                raise ApiError(400, f"{name}: expected a text", param=name)
        status = "" if texts["status"] == "TASK_STATE_UNSPECIFIED" else texts["status"]
        if status and status not in STATES:
            raise ApiError(400, f"status {status[:40]!r}; expected one of {', '.join(STATES)}", param="status")
        if texts["pageToken"] and _place(texts["pageToken"]) is None:
            raise ApiError(400, "pageToken: expected the nextPageToken of an earlier page", param="pageToken")
        return cls(
            texts["contextId"],
            texts["tenant"],
            status,
            _seconds(after),
            params.get("includeArtifacts") is True,
            read_history(params),
            size or _PAGE,
            texts["pageToken"],
        )


def read_history(params: Mapping[str, Any]) -> int:
    """How many messages of a task a client wants to read; by default none.

    Raises:
        ApiError: it is no count.
    """
    length = params.get("historyLength")
    if length is not None and (type(length) is not int or length < 0):
        raise ApiError(400, "historyLength: expected 0 or more", param="historyLength")
    return length or 0


async def list_tasks(serving: Serving, owner: str, query: TaskQuery) -> dict[str, Any]:
    """A page of the tasks of a client, the last updated first."""
    return await asyncio.to_thread(_listed, serving, owner, query)


def _listed(serving: Serving, owner: str, query: TaskQuery) -> dict[str, Any]:
    found = [(updated_at(run), run) for run in _tasks(serving, owner, query)]
    fitting = [
        (when, run)
        for when, run in sorted(found, key=lambda each: (each[0], each[1].id), reverse=True)
        if when >= query.after and (not query.status or task_now(run)["status"]["state"] == query.status)
    ]
    place = _place(query.token)
    rest = [each for each in fitting if place is None or (each[0], each[1].id) < place]
    page, more = rest[: query.size], rest[query.size :]
    tasks = [task_now(run, query.history) for _, run in page]
    if not query.artifacts:
        tasks = [{name: value for name, value in task.items() if name != "artifacts"} for task in tasks]
    else:
        tasks = [{"artifacts": [], **task} for task in tasks]
    token = f"{page[-1][0]!r}_{page[-1][1].id}" if more else ""
    return {"tasks": tasks, "nextPageToken": token, "pageSize": len(page), "totalSize": len(fitting)}


def _tasks(serving: Serving, owner: str, query: TaskQuery) -> Iterator[ServedRun]:
    if query.context:
        candidates = _runs_of(serving, owner, query.context)
    else:
        candidates = list(_all_tasks(serving, owner))
    yield from (run for run in candidates if not query.tenant or run.request.preset == query.tenant)


def _all_tasks(serving: Serving, owner: str) -> Iterator[ServedRun]:
    store = serving.hub.runs.store
    for path in store.folder.glob(f"*{SUFFIX}{REQUEST}"):
        run_id = path.name.removesuffix(f"{SUFFIX}{REQUEST}")
        try:
            record = RequestRecord.read(store.path_for(run_id))
        except (TraceError, OSError):
            continue
        if record.protocol == "a2a" and record.owner == owner and (run := _task(serving, owner, run_id)) is not None:
            yield run


def _place(token: str) -> tuple[float, str] | None:
    when, found, run_id = token.partition("_")
    try:
        return (float(when), run_id) if found else None
    except ValueError:
        return None


def _seconds(after: Any) -> float:
    if after is None or after == "":
        return 0.0
    try:
        moment = datetime.fromisoformat(after)
    except (TypeError, ValueError):
        moment = None
    if moment is None or moment.tzinfo is None:
        example = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(0))
        raise ApiError(400, f"statusTimestampAfter: expected a moment such as {example}", param="statusTimestampAfter")
    return moment.timestamp()
