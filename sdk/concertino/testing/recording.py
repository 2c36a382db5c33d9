"""Record and replay at the call boundary: what tools, agents and models answered once, they answer again.

    with Recorder("tests/weather.jsonl") as recording:                        # mode "auto"
        run = Orchestrator(recording.model(model), **recording.hooks).run_sync("Rain in Oslo?", pool=pool)

A recording is a file of JSON lines, one per request, meant to be read and committed. A request is known by the hash of
what was really asked: a member's name and validated arguments, or a model's messages, sampling and tools. Equal
requests are told apart by their order. No transport takes part, so neither headers nor keys can be recorded; what a
text of a request must not hold, and what differs from run to run, is masked.

Modes: `record` replaces the file, `replay` only answers from it, `auto` does whichever the file allows for each
request, `off` does neither. Invariant: in `replay` nothing real is ever asked. A request without a recording is a
*miss*: the call or request fails, and so does the end of the `with` block, showing the nearest recording and where it
differs.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self, get_args

from concertino.core.errors import UsageError
from concertino.core.model import ChatRequest, Model, Reply
from concertino.core.observation import ErrorInfo, Observation, Status
from concertino.core.provider_error import FailureClass, ProviderError
from concertino.members.specs import ToolSpec
from concertino.plugins.hookspecs import hookimpl

from .recording_file import Record, RecordingFile, key_of
from .recording_miss import explain_miss

Mode = Literal["record", "replay", "auto", "off"]


class RecordingMiss(ProviderError, AssertionError):
    """A request that a recording in mode `replay` does not hold. The text shows the nearest one."""

    def __init__(self, message: str) -> None:
        # `CALLER`: a miss stays a miss, so the executor must not repeat the request.
        super().__init__(message, failure=FailureClass.CALLER)


class _Asked(NamedTuple):
    """A request that went through, whose answer is to be recorded."""

    key: str
    number: int
    request: dict[str, Any]


class Recorder:
    """A file of requests and answers. For one run after the other, or several at once on one event loop.

    Args:
        path: the file; its folder is made when the first answer is recorded.
        mode: `record`, `replay`, `auto` or `off`.
        mask: regular expressions; what they match in the texts of a request is recorded and compared as `***`. A
            budget in seconds shows the model what is left, so its requests need `mask=[r'"seconds": [0-9.]+']`.

    Attributes:
        misses: the texts of all misses so far.

    Raises:
        UsageError: the mode is unknown, the file of a replay is missing, or a line of it cannot be read.
    """

    def __init__(self, path: str | Path, mode: Mode = "auto", *, mask: Sequence[str] = ()) -> None:
        if mode not in get_args(Mode):
            raise UsageError(f"Recorder(mode={mode!r}): expected one of {', '.join(get_args(Mode))}")
        self.path = Path(path)
        self.mode = mode
        self.misses: list[str] = []
        if mode == "replay" and not self.path.is_file():
            raise UsageError(
                f"{path}: recording not found; run once with mode='record' (on the command line --record) to make it"
            )
        self._mask = [re.compile(pattern) for pattern in mask]
        self._file = RecordingFile(self.path)
        if mode in ("replay", "auto"):
            self._file.read()
        self._seen: Counter[str] = Counter()
        self._under_way: dict[Any, _Asked] = {}

    # -- calls ---------------------------------------------------------------------------------------------------

    @property
    def hooks(self) -> dict[str, list[Callable[..., Any]]]:
        """The pair of hooks, as `Orchestrator` and `Executor.run` take them: `**recording.hooks`."""
        return {"before": [self.concertino_before_call], "after": [self.concertino_after_call]}

    @hookimpl
    def concertino_before_call(self, spec: ToolSpec, arguments: dict[str, Any], call_id: str) -> Observation | None:
        """Answer a call that is recorded; `not_recorded` for a miss; None to let it run."""
        if self.mode == "off":
            return None
        asked = self._ask({"kind": spec.kind, "name": spec.name, "arguments": arguments})
        known = self._file.find(asked.key, asked.number)
        if known is not None:
            return Observation.from_json({**known.answer, "id": call_id, "name": spec.name})
        if self.mode == "replay":
            return Observation(
                call_id, spec.name, Status.EXEC_ERR, None, ErrorInfo("not_recorded", self._miss(asked.request))
            )
        self._under_way[_place(call_id)] = asked
        return None

    @hookimpl
    def concertino_after_call(self, spec: ToolSpec, observation: Observation) -> None:
        """Record what a call gave. A cancelled one gave nothing."""
        asked = self._under_way.pop(_place(observation.call_id), None)
        if asked is None or (observation.error is not None and observation.error.code == "cancelled"):
            return
        answer = observation.to_json()
        # These differ from run to run, and a recording is committed: its diff should show what changed.
        for name in ("id", "name", "started", "ended", "note"):
            answer.pop(name, None)
        self._file.add(Record(asked.key, asked.number, asked.request, answer))

    # -- models --------------------------------------------------------------------------------------------------

    def model(self, model: Model, name: str = "model") -> Model:
        """A model whose requests are recorded and replayed.

        Args:
            model: the real one; in a replay it is never asked.
            name: distinguishes the requests of several models.
        """
        return _RecordedModel(self, model, name)

    async def _chat(self, model: Model, name: str, request: ChatRequest) -> Reply:
        if self.mode == "off":
            return await model.chat(request)
        asked = self._ask(_of_model(name, request))
        known = self._file.find(asked.key, asked.number)
        if known is not None:
            return Reply.from_json(known.answer)
        if self.mode == "replay":
            raise RecordingMiss(self._miss(asked.request))
        reply = await model.chat(request)
        self._file.add(Record(asked.key, asked.number, asked.request, reply.to_json()))
        return reply

    # -- both ----------------------------------------------------------------------------------------------------

    def _ask(self, request: dict[str, Any]) -> _Asked:
        request = self._masked(request)
        key = key_of(request)
        number = self._seen[key]
        self._seen[key] += 1
        return _Asked(key, number, request)

    def _masked(self, value: Any) -> Any:
        if isinstance(value, str):
            for pattern in self._mask:
                value = pattern.sub("***", value)
            return value
        if isinstance(value, dict):
            return {key: self._masked(item) for key, item in value.items()}
        return [self._masked(item) for item in value] if isinstance(value, (list, tuple)) else value

    def _miss(self, request: Mapping[str, Any]) -> str:
        text = explain_miss(request, self._file.records, self.path)
        self.misses.append(text)
        return text

    def assert_complete(self) -> None:
        """Check that nothing was asked that the recording does not hold.

        Raises:
            RecordingMiss: shows each miss with its nearest recording.
        """
        if self.misses:
            raise RecordingMiss("\n".join(self.misses))

    @property
    def unused(self) -> list[Record]:
        """Records that were not asked for, in the order of the file."""
        return [record for record in self._file.records if record.number >= self._seen[record.key]]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # An error of the test itself tells more than the misses that may follow from it.
        if error is None:
            self.assert_complete()


class _RecordedModel(Model):
    """A model seen through a recording."""

    def __init__(self, recording: Recorder, model: Model, name: str) -> None:
        self._recording = recording
        self._model = model
        self._name = name

    async def chat(self, request: ChatRequest) -> Reply:
        return await self._recording._chat(self._model, self._name, request)

    def count_tokens(self, text: str) -> int:
        return self._model.count_tokens(text)

    async def close(self) -> None:
        await self._model.close()


def _of_model(name: str, request: ChatRequest) -> dict[str, Any]:
    """What identifies a request to a model: everything but its idempotency key, which differs from run to run."""
    sampling = request.sampling
    # Only what is set, so that a field that a later version adds leaves the keys of old recordings as they are.
    set_fields = {
        field: list(value) if isinstance(value, tuple) else value
        for field in ("temperature", "top_p", "max_tokens", "stop", "seed", "logprobs")
        # 0 is a value that somebody set: `in (None, (), False)` would take it for False.
        if (value := getattr(sampling, field)) is not None and value is not False and value != ()
    }
    return {
        "kind": "model",
        "name": name,
        "messages": [message.to_json() for message in request.messages],
        "sampling": set_fields,
        "tools": [dict(tool) for tool in request.tools],
    }


def _place(call_id: str) -> tuple[int, str]:
    """The key of a running call: its task, in which both hooks run, and its id, which several runs may share."""
    try:
        return id(asyncio.current_task()), call_id
    except RuntimeError:
        return 0, call_id
