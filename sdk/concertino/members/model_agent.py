"""Models that the orchestrator may ask like any other agent: an expert under a name, with a description and a price.

ToolOrchestra's action space holds models and tools. Here a model becomes an agent of one argument that passes the
task on and returns the reply. What the orchestrator reads about it is the *model's* description and price in the pool
at hand, so describing, repricing or replacing the model changes what is read, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .specs import AgentSpec, ModelSpec

if TYPE_CHECKING:
    from concertino.members.context import Context

_SCHEMA = {
    "type": "object",
    "properties": {
        "task": {
            "type": "string",
            "minLength": 1,
            "description": "the whole task with everything it needs: the model sees nothing else",
        }
    },
    "required": ["task"],
    "additionalProperties": False,
}


@dataclass(frozen=True, eq=False)
class ModelAgent(AgentSpec):
    """An agent that asks one model of the pool.

    Attributes:
        model: the pool name of the model.
    """

    model: str = ""

    @property
    def needs(self) -> tuple[str, ...]:
        """Its model."""
        return (self.model,)

    def to_json(self) -> dict[str, Any]:
        """As for an agent, with the model."""
        return {**super().to_json(), "model": self.model}


def model_agent(model: ModelSpec) -> ModelAgent:
    """The agent `provider/ask_name` that passes a task on to a model."""
    provider = f"{model.provider}/" if model.provider else ""
    # A second more than the model has, so that the model's own TIMEOUT is what is seen.
    timeout = None if model.timeout is None or model.needs else model.timeout + 1.0  # a router tries several
    return answering_with(
        ModelAgent(
            # A short name has at most 64 characters, and "ask_" takes four.
            f"{provider}ask_{model.short_name[:60]}",
            f"Ask the language model {model.name}.",
            _SCHEMA,
            _unbound,
            takes_mapping=True,
            context="ctx",
            timeout=timeout,
            retry_safe=True,
        ),
        model.name,
    )


def answering_with(agent: ModelAgent, model: str) -> ModelAgent:
    """The same agent, with another model behind it."""

    async def ask(arguments: dict[str, Any], *, ctx: Context) -> str:
        return (await ctx.model(model).chat(arguments["task"])).text

    return agent.with_(model=model, function=ask)


def describe_expert(model: ModelSpec) -> str:
    """What the orchestrator reads about a model: its description, and its price where that is known."""
    text = model.description or f"Ask the language model {model.name}."
    if model.prices is None:
        return text
    return f"{text}\nPrice: ${model.prices.input:g} / ${model.prices.output:g} per million tokens read / written."


def _unbound(arguments: dict[str, Any]) -> str:
    raise NotImplementedError("made by answering_with")
