"""The table of names: what our spans, metrics and events are called in each dialect of the GenAI conventions.

The conventions still change, and backends read older names than the newest ones. So the rest of this package speaks of
*fields*, such as `input_tokens`, and only this table knows what a field is called on the wire. The reference page of
spans is made from it.

Invariant: a field that is not in the table is never sent; a field of level `opt-in` is sent only where content is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

Dialect = Literal["1.41", "genai-0.1"]
"""`1.41` are the names that most backends read today; `genai-0.1` are those of the newer conventions of GenAI."""
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
DEFAULT_DIALECT: Dialect = "1.41"

SpanKind = Literal["run", "plan", "chat", "tool", "agent", "guard"]
SPAN_KINDS: tuple[SpanKind, ...] = get_args(SpanKind)
Level = Literal["required", "if known", "opt-in", "ours"]
ValueType = Literal["text", "int", "double", "bool", "texts"]

SCHEMA_URLS: dict[Dialect, str] = {"1.41": "https://opentelemetry.io/schemas/1.41.0", "genai-0.1": ""}
"""Of the conventions; the newer ones have published none yet."""


@dataclass(frozen=True)
class SpanForm:
    """How a kind of span is written.

    Attributes:
        operation: `gen_ai.operation.name`; the name of a span begins with it.
        client: whether the span is one of a client (CLIENT), or of this process (INTERNAL).
        about: what it stands for, in words.
    """

    operation: str
    client: bool
    about: str


SPANS: dict[SpanKind, SpanForm] = {
    "run": SpanForm("invoke_agent", False, "a run, from its question to its answer; the root of its tree"),
    "plan": SpanForm("plan", False, "a turn of the orchestrator that made a plan: from its request to the plan"),
    "chat": SpanForm("chat", True, "a request to a model, by the orchestrator or inside an agent"),
    "tool": SpanForm("execute_tool", False, "a call of a tool"),
    "agent": SpanForm("invoke_agent", False, "a call of an agent; what it calls is below it"),
    "guard": SpanForm("guard", False, "a check by a guard; the conventions have no name for it yet"),
}


@dataclass(frozen=True)
class Attribute:
    """A field, and what it is called.

    Attributes:
        field: what this package calls it.
        name: in both dialects, or in `1.41` where they differ.
        newer: in `genai-0.1`, where that is another name; `-` where there is none.
        spans: the kinds of span that have it.
    """

    field: str
    name: str
    type: ValueType
    spans: tuple[SpanKind, ...]
    level: Level
    about: str
    newer: str = ""

    def called(self, dialect: Dialect) -> str:
        """Its name in a dialect; empty where it has none."""
        return (self.newer or self.name).strip("-") if dialect == "genai-0.1" else self.name


_MODELS: tuple[SpanKind, ...] = ("chat",)
_CALLS: tuple[SpanKind, ...] = ("chat", "tool", "agent", "guard")
_USING: tuple[SpanKind, ...] = ("run", "chat", "agent")

ATTRIBUTES: tuple[Attribute, ...] = (
    Attribute("operation", "gen_ai.operation.name", "text", SPAN_KINDS, "required", "what is done"),
    Attribute("provider", "gen_ai.provider.name", "text", ("run", "chat", "agent"), "required", "first part of a name"),
    Attribute("model", "gen_ai.request.model", "text", _MODELS, "if known", "the model that is asked"),
    Attribute("agent", "gen_ai.agent.name", "text", ("run", "plan", "agent"), "if known", "`concertino` for a run"),
    Attribute("conversation", "gen_ai.conversation.id", "text", ("run",), "if known", "the session of the run"),
    Attribute("tool", "gen_ai.tool.name", "text", ("tool",), "required", "`unknown` where the pool has no such member"),
    Attribute("tool_type", "gen_ai.tool.type", "text", ("tool",), "if known", "always `function`"),
    Attribute("tool_call", "gen_ai.tool.call.id", "text", ("tool",), "if known", "id of the call in the run"),
    Attribute("error", "error.type", "text", SPAN_KINDS, "if known", "`TIMEOUT`, `EXEC_ERR.unavailable`, ..."),
    Attribute("temperature", "gen_ai.request.temperature", "double", ("run",), "if known", "of the orchestrator"),
    Attribute("top_p", "gen_ai.request.top_p", "double", ("run",), "if known", "of the orchestrator"),
    Attribute("max_tokens", "gen_ai.request.max_tokens", "int", ("run",), "if known", "of the orchestrator"),
    Attribute("seed", "gen_ai.request.seed", "int", ("run",), "if known", "of the orchestrator"),
    Attribute("finish", "gen_ai.response.finish_reasons", "texts", _MODELS, "if known", "why the model stopped"),
    Attribute("input_tokens", "gen_ai.usage.input_tokens", "int", _USING, "if known", "tokens read, cached ones too"),
    Attribute("output_tokens", "gen_ai.usage.output_tokens", "int", _USING, "if known", "tokens written"),
    Attribute(
        "cached_tokens", "gen_ai.usage.cache_read.input_tokens", "int", _USING, "if known", "tokens read from a cache"
    ),
    Attribute(
        "cache_write_tokens",
        "gen_ai.usage.cache_creation.input_tokens",
        "int",
        _USING,
        "if known",
        "tokens written to a cache",
        newer="gen_ai.usage.cache_write.input_tokens",
    ),
    Attribute(
        "reasoning_tokens", "gen_ai.usage.reasoning.output_tokens", "int", _USING, "if known", "tokens of reasoning"
    ),
    Attribute("instructions", "gen_ai.system_instructions", "text", _MODELS, "opt-in", "system messages, as JSON"),
    Attribute(
        "input", "gen_ai.input.messages", "text", ("run", "chat"), "opt-in", "messages that the model did not have yet"
    ),
    Attribute("output", "gen_ai.output.messages", "text", ("run", "chat"), "opt-in", "what the model wrote, as JSON"),
    Attribute("arguments", "gen_ai.tool.call.arguments", "text", ("tool", "agent"), "opt-in", "JSON"),
    Attribute("result", "gen_ai.tool.call.result", "text", ("tool", "agent"), "opt-in", "text or JSON"),
    Attribute("run", "concertino.run.id", "text", SPAN_KINDS, "ours", "the run, as its trace is called"),
    Attribute("call", "concertino.call.id", "text", _CALLS, "ours", "id in the trace: `1.2`, `1.2/1`, `ask.3`"),
    Attribute("member", "concertino.member", "text", _CALLS, "ours", "full name of the pool's member"),
    Attribute("role", "concertino.role", "text", _MODELS, "ours", "of the strategy: `orchestrator`, `summariser`"),
    Attribute("strategy", "concertino.strategy", "text", ("run",), "ours", "name of the strategy"),
    Attribute("pool", "concertino.pool.id", "text", ("run",), "ours", "id of the pool"),
    Attribute("stop", "concertino.stop", "text", ("run",), "ours", "why the run ended"),
    Attribute("unfinished", "concertino.unfinished", "bool", SPAN_KINDS, "ours", "no end is on record yet"),
    Attribute("status", "concertino.status", "text", _CALLS, "ours", "`OK`, `PARSE_ERR`, `EXEC_ERR` or `TIMEOUT`"),
    Attribute("attempts", "concertino.attempts", "int", _CALLS, "ours", "how often it was tried; 0: it was not run"),
    Attribute("replayed", "concertino.replayed", "bool", _CALLS, "ours", "from a cache, a recording or a trace"),
    Attribute("round", "concertino.round", "int", ("plan",), "ours", "number of the round"),
    Attribute("calls", "concertino.plan.calls", "int", ("plan",), "ours", "calls in the plan"),
    Attribute("issues", "concertino.plan.issues", "int", ("plan",), "ours", "format issues of the text"),
    Attribute(
        "usd", "concertino.cost.usd", "double", ("run", "chat", "tool", "agent"), "ours", "dollars, below it too"
    ),
    Attribute("units", "concertino.cost.units", "double", ("run", "tool", "agent"), "ours", "cost units, below it too"),
    Attribute("limit_usd", "concertino.budget.usd", "double", ("run",), "ours", "limit of the run"),
    Attribute("limit_units", "concertino.budget.units", "double", ("run",), "ours", "limit of the run"),
    Attribute("limit_seconds", "concertino.budget.seconds", "double", ("run",), "ours", "limit of the run"),
    Attribute("limit_rounds", "concertino.budget.rounds", "int", ("run",), "ours", "limit of the run"),
    Attribute("left_usd", "concertino.budget.remaining.usd", "double", ("plan",), "ours", "left before the round"),
    Attribute("left_units", "concertino.budget.remaining.units", "double", ("plan",), "ours", "left before the round"),
    Attribute("stage", "concertino.guard.stage", "text", ("guard",), "ours", "`question`, `call`, `result`, `answer`"),
    Attribute("about", "concertino.guard.about", "text", ("guard",), "ours", "the call, or a number"),
    Attribute("why", "concertino.message", "text", SPAN_KINDS, "opt-in", "the message of an error"),
)


@dataclass(frozen=True)
class Metric:
    """A histogram.

    Attributes:
        name: in `1.41`; empty where it has none.
        newer: in `genai-0.1`.
        spans: the kinds of span that it counts.
        field: whose value it takes; `seconds` is how long the span lasted.
        by: fields that tell its series apart.
        token_type: `gen_ai.token.type`, in `1.41`.
    """

    name: str
    newer: str
    unit: str
    spans: tuple[SpanKind, ...]
    field: str
    by: tuple[str, ...]
    about: str
    token_type: str = ""

    def called(self, dialect: Dialect) -> str:
        """Its name in a dialect; empty where it has none."""
        return self.newer if dialect == "genai-0.1" else self.name


_MODEL_KEYS = ("operation", "provider", "model")
METRICS: tuple[Metric, ...] = (
    Metric(
        "gen_ai.client.operation.duration",
        "gen_ai.client.inference.duration",
        "s",
        ("chat",),
        "seconds",
        (*_MODEL_KEYS, "error"),
        "how long a request to a model took",
    ),
    Metric(
        "gen_ai.client.token.usage",
        "gen_ai.client.inference.operation.input_tokens",
        "{token}",
        ("chat",),
        "input_tokens",
        _MODEL_KEYS,
        "tokens that a request read",
        "input",
    ),
    Metric(
        "gen_ai.client.token.usage",
        "gen_ai.client.inference.operation.output_tokens",
        "{token}",
        ("chat",),
        "output_tokens",
        _MODEL_KEYS,
        "tokens that a request wrote",
        "output",
    ),
    Metric(
        "",
        "gen_ai.execute_tool.duration",
        "s",
        ("tool",),
        "seconds",
        ("operation", "tool", "error"),
        "how long a call of a tool took",
    ),
    Metric(
        "",
        "gen_ai.invoke_agent.duration",
        "s",
        ("run", "agent"),
        "seconds",
        ("operation", "provider", "agent", "error"),
        "how long a run, or a call of an agent, took",
    ),
    Metric(
        "concertino.run.cost",
        "concertino.run.cost",
        "{usd}",
        ("run",),
        "usd",
        ("strategy", "stop"),
        "what a run cost, in dollars",
    ),
)

SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""Bounds of the buckets of seconds, as the conventions advise."""
TOKENS = tuple(float(4**power) for power in range(14))
"""Those of tokens."""
DOLLARS = tuple(10.0**power for power in range(-5, 3))
BOUNDS: dict[str, tuple[float, ...]] = {"s": SECONDS, "{token}": TOKENS, "{usd}": DOLLARS}

SPAN_EVENTS: dict[str, str] = {
    "concertino.retry": "an attempt failed and the call is repeated: attempt, failure class, delay in seconds",
    "concertino.stall": "the call blocked the event loop: seconds",
    "concertino.approval": "the call waits for a person",
    "concertino.decision": "a person has decided: approved, seconds waited",
}
"""Events inside a span, and what they say."""
DETAILS_EVENT = "gen_ai.client.inference.operation.details"
"""The log record that carries the content of a request, where content goes to events."""


@cache
def names(dialect: Dialect, *, content: bool) -> dict[str, tuple[str, ValueType]]:
    """The name and type of every field that may be sent in a dialect.

    Args:
        content: whether fields of level `opt-in` may.
    """
    return {
        each.field: (each.called(dialect), each.type)
        for each in ATTRIBUTES
        if each.called(dialect) and (content or each.level != "opt-in")
    }
