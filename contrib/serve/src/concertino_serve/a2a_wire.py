"""What an A2A client reads: the card of the agent, a run as a task, and a task as a stream.

Invariant: a task is a fold over the moments of its run, and its id is the run's. The pieces of a stream add up to the
artifact of the task.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

from .api_error import ApiError
from .run_moments import Moment
from .run_story import RunStory, Step
from .serve_settings import ServeSettings
from .served_run import ServedRun

PROTOCOL = "1.0"
CONTEXT = "a2a.context"
"""The key of a record's metadata for the context that the client gave."""
MESSAGE = "a2a.message"
"""The same for the id of its message."""
_NAMES = ("SUBMITTED", "WORKING", "COMPLETED", "FAILED", "CANCELED", "INPUT_REQUIRED", "REJECTED", "AUTH_REQUIRED")
STATES = tuple(f"TASK_STATE_{name}" for name in _NAMES)
"""Of a task."""
_STATES = {"cancelled": "CANCELED", "suspended": "AUTH_REQUIRED", "guard": "REJECTED"}
_ARTIFACT = "answer"
_TEXT = "text/plain"


def card(settings: ServeSettings, base: str) -> dict[str, Any]:
    """The card: an interface and a skill for each preset.

    Args:
        base: the address of the server, as it was asked.
    """
    keyed: dict[str, Any] = {
        "securitySchemes": {"key": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
        "securityRequirements": [{"schemes": {"key": {}}}],
    }
    return {
        "name": "concertino",
        "description": "Answers questions with pools of agents, tools and models.",
        "version": version("concertino-serve"),
        "supportedInterfaces": [
            {"url": f"{base}/a2a", "protocolBinding": "JSONRPC", "protocolVersion": PROTOCOL, "tenant": name}
            for name in settings.presets
        ],
        "capabilities": {"streaming": True, "pushNotifications": False},
        "defaultInputModes": [_TEXT, "application/json", "image/*"],
        "defaultOutputModes": [_TEXT],
        "skills": [
            {
                "id": name,
                "name": name,
                "description": f"Answers a question with {len(preset.pool.actions)} tools and agents.",
                "tags": ["questions"],
            }
            for name, preset in settings.presets.items()
        ],
        **(keyed if settings.keys else {}),
    }


def task_now(run: ServedRun, history: int = 0) -> dict[str, Any]:
    """A run as a task, as it is now.

    Args:
        history: as for `task_of`.
    """
    over = run.over  # asked before reading: what was written by then is still told
    return task_of(run, run.so_far(), over=over, history=history)


def updated_at(run: ServedRun) -> float:
    """When something happened last in a task, seconds since 1970."""
    return run.trace.stat().st_mtime


def task_of(run: ServedRun, moments: list[Moment], *, over: bool, history: int = 0) -> dict[str, Any]:
    """A run as a task.

    Args:
        over: it is no longer under way.
        history: how many messages to tell at most; a task has one, its question.
    """
    story = RunStory.of(run.request)
    for moment in moments:
        for _ in story.take(moment):
            pass
    found: dict[str, Any] = {"id": run.id, "contextId": context_of(run), "status": _status(run, story, over=over)}
    if over and story.answer is not None:
        found["artifacts"] = [_artifact(story.answer)]
    if history:
        found["history"] = [_asked(run)]
    return found


class TaskStream:
    """The events of one task, as results of a request.

    Args:
        request_id: of JSON-RPC.
    """

    def __init__(self, run: ServedRun, request_id: Any) -> None:
        self._run = run
        self._id = request_id
        self._story = RunStory.of(run.request)
        self._begun = self._told = False

    def frames(self, moments: list[Moment]) -> bytes:
        """What the moments add to the stream."""
        steps = [step for moment in moments for step in self._story.take(moment)]
        return "".join(
            [*self._begin(), *(self._frame(event) for step in steps for event in self._events(step))]
        ).encode()

    def last_frames(self) -> bytes:
        """The end of the stream."""
        events = [event for step in self._story.close() for event in self._events(step)]
        events.append(self._of_status(_status(self._run, self._story, over=True)))
        return "".join([*self._begin(), *map(self._frame, events)]).encode()

    def _begin(self) -> Iterator[str]:
        if not self._begun:
            self._begun = True
            yield self._frame({"task": task_of(self._run, [], over=False)})

    def _events(self, step: Step) -> Iterator[dict[str, Any]]:
        about = {"taskId": self._run.id, "contextId": context_of(self._run)}
        if step.call is not None:
            said = "began" if step.kind == "opened" else "done" if step.call.error is None else "failed"
            yield self._of_status(_working(self._run, f"{step.call.name} {said}"))
        else:
            append = self._told and step.kind == "text"
            self._told = True
            yield {"artifactUpdate": {**about, "artifact": _artifact(step.text), "append": append}}

    def _of_status(self, status: dict[str, Any]) -> dict[str, Any]:
        about = {"taskId": self._run.id, "contextId": context_of(self._run)}
        return {"statusUpdate": {**about, "status": status}}

    def _frame(self, result: dict[str, Any]) -> str:
        return f"data: {json.dumps({'jsonrpc': '2.0', 'id': self._id, 'result': result})}\n\n"


def context_of(run: ServedRun) -> str:
    """The context of a task: the client's own, or one for itself."""
    return run.request.metadata.get(CONTEXT) or run.id


def _status(run: ServedRun, story: RunStory, *, over: bool) -> dict[str, Any]:
    if not over:
        return _working(run, "")
    when = {"timestamp": _iso(updated_at(run))}
    if story.answer is not None:
        return {"state": "TASK_STATE_COMPLETED", **when}
    if run.request.closed:
        return {"state": "TASK_STATE_CANCELED", **when}
    state = f"TASK_STATE_{_STATES.get(story.stop, 'FAILED')}"
    return {"state": state, **when, "message": _message(run, str(ApiError.of_run(story.stop)))}


def _working(run: ServedRun, text: str) -> dict[str, Any]:
    said = {"message": _message(run, text)} if text else {}
    return {"state": "TASK_STATE_WORKING", "timestamp": _iso(updated_at(run)), **said}


def _message(run: ServedRun, text: str) -> dict[str, Any]:
    about = {"messageId": f"{run.id}.{time.monotonic_ns()}", "taskId": run.id, "contextId": context_of(run)}
    return {**about, "role": "ROLE_AGENT", "parts": [{"text": text}]}


def _asked(run: ServedRun) -> dict[str, Any]:
    about = {"messageId": run.request.metadata.get(MESSAGE) or run.id, "taskId": run.id, "contextId": context_of(run)}
    return {**about, "role": "ROLE_USER", "parts": [{"text": str(run.request.input[0]["content"])}]}


def _artifact(text: str) -> dict[str, Any]:
    return {"artifactId": _ARTIFACT, "name": _ARTIFACT, "parts": [{"text": text, "mediaType": _TEXT}]}


def _iso(seconds: float) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds % 1 * 1000):03d}Z"
