"""A probe: fewer than twenty tiny requests that find out what a server really does, whatever it promises.

Servers ignore fields that they do not know, and answer 200 all the same. So each feature is requested in a way that the
answer shows whether it was applied: a schema whose only value no model would write unasked, a limit that the reply
cannot miss, the same request twice. The findings become the options of a model.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from concertino import FailureClass, ProviderError

from .chat.sse import EventParser
from .client.http import ServerClient
from .client.listing import fetch_models
from .dialects import PRESETS
from .failures import from_response, shorten
from .options import OpenAISettings

Verdict = Literal["yes", "no", "ignored", "refused", "unsure"]


@dataclass(frozen=True, slots=True)
class FeatureFinding:
    """What was found about one feature.

    Attributes:
        feature: which.
        verdict: whether the server has it; `ignored`: requested, answered with 200, and without effect.
        detail: what was seen.
    """

    feature: str
    verdict: Verdict
    detail: str = ""


@dataclass
class ProbeReport:
    """What was found about a server.

    Attributes:
        base_url: where it is.
        model: which model was asked.
        findings: one per feature.
        options: what a model there should be declared with.
    """

    base_url: str
    model: str
    findings: list[FeatureFinding] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return asdict(self)

    def to_toml(self, name: str) -> str:
        """The table of a pool file that declares the model under this name."""
        lines = [f"[models.{json.dumps(f'openai/{name}')}]"]
        return "\n".join([*lines, *(f"{key} = {json.dumps(value)}" for key, value in self.options.items())])


_PING = [{"role": "user", "content": "Say the word ping and nothing else."}]
_COUNT = [{"role": "user", "content": "Count from one to fifty in English words."}]
_CALLING = [{"role": "user", "content": "What is 17 plus 25? Call the tool add, do not answer yourself."}]
_CALLING_TWICE = [{"role": "user", "content": "What are 2 plus 3 and 4 plus 5? Call the tool add twice, at once."}]
# No model writes this unasked, so a reply with it proves that the schema was enforced.
_ODD = "xyzzy"
_SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string", "enum": [_ODD]}},
    "required": ["word"],
    "additionalProperties": False,
}
_ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add two whole numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
}
_STYLES: Mapping[str, dict[str, Any]] = {
    "json_schema": {"response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": _SCHEMA}}},
    "structured_outputs": {"structured_outputs": {"json": _SCHEMA}},
    "json_object_schema": {"response_format": {"type": "json_object", "schema": _SCHEMA}},
    "format": {"format": _SCHEMA},
}


@dataclass(frozen=True)
class _Answer:
    """An answer: its status, its data where it is JSON, and its text."""

    status: int
    kind: str
    body: bytes

    @property
    def ok(self) -> bool:
        return self.status == 200 and bool(self.message)

    @property
    def data(self) -> dict[str, Any]:
        try:
            data = json.loads(self.body)
        except ValueError:
            return {}
        return data if isinstance(data, dict) else {}

    @property
    def choice(self) -> dict[str, Any]:
        choices = self.data.get("choices") or [{}]
        return choices[0] if isinstance(choices[0], dict) else {}

    @property
    def message(self) -> dict[str, Any]:
        return self.choice.get("message") or {}

    @property
    def text(self) -> str:
        return str(self.message.get("content") or "")

    @property
    def written(self) -> Any:
        return (self.data.get("usage") or {}).get("completion_tokens")

    @property
    def shown(self) -> str:
        """The status and the beginning of the body, for a finding."""
        return f"{self.status}: {shorten(self.body.decode('utf-8', 'replace'), 120)}"


class Probe:
    """Probes one server.

    Args:
        options: as for a model; `model` may be missing where the server lists its models.
    """

    def __init__(self, **options: Any) -> None:
        given = {name: value for name, value in options.items() if value is not None}
        self._given = given
        self._settings = OpenAISettings.of(given, "probe", "(any)")
        self._client = ServerClient(self._settings)
        self._base: dict[str, Any] = {}
        self._plain: _Answer
        self._probed = ProbeReport(self._settings.base_url, given.get("model", ""))
        self._changes: dict[str, Any] = {}

    async def run(self) -> ProbeReport:
        """Ask, and say what was found.

        Raises:
            ProviderError: the server cannot be reached, or answers nothing.
        """
        try:
            await self._listing()
            await self._first_answer()
            for look in self._looks():
                try:
                    await look()
                except ProviderError as error:
                    self._found(look.__name__.strip("_").replace("_", " "), "refused", str(error))
        finally:
            await self._client.close()
        self._probed.options = self._options()
        return self._probed

    def _looks(self) -> list[Callable[[], Awaitable[None]]]:
        fields = [self._logprobs, self._token_ids, self._seed]
        calls = [self._calling, self._calling_twice, self._after_a_call]
        unknown = [self._unknown_parameter, self._unknown_model]
        return [self._streaming, self._bound, self._stopping, *calls, self._structure, *fields, *unknown]

    def _found(self, feature: str, verdict: Verdict, detail: str = "") -> None:
        self._probed.findings.append(FeatureFinding(feature, verdict, detail))

    async def _ask(self, messages: Any = _PING, **fields: Any) -> _Answer:
        return await self._say({**self._base, "messages": messages, **fields})

    async def _say(self, body: dict[str, Any]) -> _Answer:
        return _Answer(*await self._client.exchange({"model": self._probed.model, **body}))

    def _options(self) -> dict[str, Any]:
        base = self._settings.dialect
        options: dict[str, Any] = {} if base.name == "openai" else {"server": base.name}
        options["model"] = self._probed.model
        if not self._settings.own_address:
            options["base_url"] = self._settings.base_url
        if self._given.get("key_env") is not None:
            options["key_env"] = self._given["key_env"]
        found = base.with_(**self._changes)
        return {**options, **found.options(PRESETS[base.name])}

    # -- what is there -------------------------------------------------------------------------------------------------

    async def _listing(self) -> None:
        try:
            models = await fetch_models(self._client)
        except ProviderError as error:
            if error.failure in (FailureClass.NOT_EXECUTED, FailureClass.AUTH):
                raise
            if not self._probed.model:  # then nothing more can be asked, and this is why
                raise ProviderError(f"{error}; or name a model with --model", failure=error.failure) from error
            models = ()
            self._found("models listed", "no", str(error))
        else:
            shown = ", ".join(model.id + (f" ({model.context:,})" if model.context else "") for model in models[:5])
            more = f" and {len(models) - 5} more" if len(models) > 5 else ""
            self._found("models listed", "yes" if models else "no", shown + more)
        if not self._probed.model:
            if not models:
                raise ProviderError(
                    f"{self._client.base_url} lists no models; name one with --model", failure=FailureClass.CALLER
                )
            self._probed.model = models[0].id

    async def _first_answer(self) -> None:
        """A plain answer, with the fields that the server takes."""
        answer = None
        # OpenAI's newer models refuse `max_tokens`, and any temperature but their own.
        for field_name in ("max_tokens", "max_completion_tokens"):
            for fixed in ({"temperature": 0}, {}):
                self._base = {field_name: 24, **fixed}
                answer = await self._ask()
                if answer.ok:
                    self._plain = answer
                    self._changes["max_tokens_field"] = field_name
                    self._first_findings(field_name, bool(fixed))
                    return
                if answer.status not in (400, 422):
                    raise from_response(answer.status, {}, answer.body, self._client.base_url)
        assert answer is not None
        raise from_response(answer.status, {}, answer.body, self._client.base_url)

    def _first_findings(self, field_name: str, temperature: bool) -> None:
        answer = self._plain
        answered_as = answer.data.get("model")
        self._found("plain answer", "yes", f"{shorten(answer.text, 40)!r} as {answered_as!r}")
        self._found("temperature", "yes" if temperature else "refused")
        usage = answer.data.get("usage") or {}
        details = [name for name in usage if isinstance(usage[name], dict)] + [n for n in usage if n == "cost"]
        self._found("usage", "yes" if usage else "no", ", ".join(details))
        named = [name for name in ("reasoning", "reasoning_content", "reasoning_details") if name in answer.message]
        in_text = answer.text.lstrip().startswith("<think>")
        self._found("reasoning", "yes" if named or in_text else "unsure", ", ".join(named) or "in the text" * in_text)
        self._changes["think"] = "tags" if in_text else self._settings.dialect.think

    async def _streaming(self) -> None:
        options = {"stream": True, "stream_options": {"include_usage": True}}
        answer = await self._ask(**options)
        if answer.status in (400, 422):
            self._changes["stream_usage"] = False
            answer = await self._ask(stream=True)
        streamed = "event-stream" in answer.kind
        self._changes["stream"] = streamed
        if not streamed:
            self._found("stream", "no" if answer.status == 200 else "refused", answer.shown)
            return
        parser = EventParser(self._settings.max_event_bytes)
        events = parser.feed(answer.body) + parser.finish()
        chunks = [chunk for chunk in map(_loaded, events) if chunk]
        alone = any(chunk.get("usage") and not chunk.get("choices") for chunk in chunks)
        last = any(chunk.get("usage") for chunk in chunks)
        self._found("stream", "yes", f"{len(chunks)} chunks")
        verdict: Verdict = "yes" if last else "refused" if "stream_usage" in self._changes else "ignored"
        self._found("usage in the stream", verdict, "a chunk of its own" if alone else "in the last chunk" * last)
        self._changes["stream_usage"] = alone
        self._found("[DONE]", "yes" if "[DONE]" in events else "no")

    async def _bound(self) -> None:
        name = str(self._changes["max_tokens_field"])
        answer = await self._ask(_COUNT, **{name: 3})
        kept = answer.choice.get("finish_reason") == "length" and (answer.written or 0) <= 3
        self._found("bound on tokens", "yes" if kept else "unsure", f"{name}, {answer.written} written")

    async def _stopping(self) -> None:
        words = (await self._ask(_COUNT)).text.split()
        stop = words[len(words) // 2] if len(words) > 3 else ""
        if not stop:
            self._found("stop", "unsure", "the model's answer is too short")
            return
        answer = await self._ask(_COUNT, stop=[stop])
        if stop not in answer.text:
            self._found("stop", "yes" if answer.ok else "refused", "" if answer.ok else answer.shown)
            return
        kept = answer.text.endswith(stop)
        self._changes["keeps_stop"] = kept
        self._found("stop", "yes" if kept else "ignored", "stays in the text" * kept)

    # -- calls ---------------------------------------------------------------------------------------------------------

    async def _calling(self) -> None:
        answer = await self._ask(_CALLING, tools=[_ADD])
        calls = answer.message.get("tool_calls") or []
        if calls:
            arguments = (calls[0].get("function") or {}).get("arguments")
            self._found("tools", "yes", f"arguments as {type(arguments).__name__}, finish {_finish(answer)}")
        elif "<tool_call>" in answer.text:
            self._found("tools", "yes", "left in the text; they are read here")
        elif answer.ok:
            self._found("tools", "unsure", f"the model answered {shorten(answer.text, 60)!r}")
        else:
            self._found("tools", "refused", answer.shown)

    async def _calling_twice(self) -> None:
        answer = await self._ask(_CALLING_TWICE, tools=[_ADD], **{str(self._changes["max_tokens_field"]): 80})
        calls = len(answer.message.get("tool_calls") or ()) or answer.text.count("<tool_call>")
        self._found("parallel calls", "yes" if calls > 1 else "unsure", f"{calls} of 2")

    async def _after_a_call(self) -> None:
        """A conversation that continues after a call, whose message has no content."""
        call = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 17, "b": 25}'}}
        result = {"role": "tool", "tool_call_id": "call_1", "content": "42"}
        for content, shown in ((None, "null"), ("", '""')):
            said = {"role": "assistant", "content": content, "tool_calls": [call]}
            answer = await self._ask([*_CALLING, said, result], tools=[_ADD])
            if answer.ok:
                self._changes["null_content"] = content is None
                self._found("results of calls", "yes", f"content {shown} beside calls")
                return
        self._found("results of calls", "refused", answer.shown)

    # -- what can be asked for -----------------------------------------------------------------------------------------

    async def _structure(self) -> None:
        seen: list[str] = []
        for style, fields in _STYLES.items():
            answer = await self._ask(**fields)
            if answer.ok and (_loaded(answer.text) or {}).get("word") == _ODD:
                self._changes["schema_style"] = style
                self._found("schema for the reply", "yes", f"enforced as {style}")
                return
            seen.append(f"{style} {'ignored' if answer.ok else 'refused'}")
        self._changes["schema_style"] = "instruction"
        self._found("schema for the reply", "no", f"{', '.join(seen)}; asked for in words")

    def _optional(self, feature: str, option: str, answer: _Answer, seen: str) -> None:
        """A field that a server may know: `seen` is what the answer shows of it, empty if nothing."""
        self._changes[option] = bool(seen)
        verdict: Verdict = "yes" if seen else "ignored" if answer.ok else "refused"
        self._found(feature, verdict, seen or ("" if answer.ok else answer.shown))

    async def _logprobs(self) -> None:
        answer = await self._ask(logprobs=True, top_logprobs=0)
        given = (answer.choice.get("logprobs") or {}).get("content")
        self._optional("logprobs", "logprobs", answer, f"{len(given)} tokens" if given else "")

    async def _token_ids(self) -> None:
        answer = await self._ask(return_token_ids=True)
        given = answer.choice.get("token_ids")
        self._optional("token ids", "token_ids", answer, f"{len(given)} ids" if given else "")

    async def _seed(self) -> None:
        fields = {**self._base, "messages": _COUNT, "seed": 7}
        if "temperature" in self._base:
            # Greedy replies are equal with or without a seed.
            fields["temperature"] = 1.5
        one, other = [await self._say(fields) for _ in range(2)]
        self._changes["seed"] = one.ok
        same = one.text == other.text
        verdict: Verdict = "refused" if not one.ok else "yes" if same else "ignored"
        self._found("seed", verdict, "the same text twice" if one.ok and same else "" if one.ok else one.shown)

    async def _unknown_parameter(self) -> None:
        answer = await self._ask(no_such_parameter=1)
        self._found("unknown parameter", "ignored" if answer.ok else "refused", "" if answer.ok else answer.shown)

    async def _unknown_model(self) -> None:
        answer = await self._say({**self._base, "messages": _PING, "model": "no-such-model"})
        if answer.ok:
            self._found("unknown model", "ignored", "answers to any name; set verify_model = true")
            self._found("error", "unsure", "none was seen")
            return
        self._found("unknown model", "refused", f"status {answer.status}")
        error = answer.data.get("error")
        shapes = ((isinstance(error, dict), "object"), (isinstance(error, str), "text under `error`"))
        shape = next((name for holds, name in shapes if holds), "detail" if "detail" in answer.data else "plain text")
        self._found("error", "yes", shape)


def _finish(answer: _Answer) -> str:
    return str(answer.choice.get("finish_reason"))


def _loaded(text: str) -> dict[str, Any] | None:
    try:
        data = json.loads(text)
    except ValueError:
        return None
    return data if isinstance(data, dict) else None
