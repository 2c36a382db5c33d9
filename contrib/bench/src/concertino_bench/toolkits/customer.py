"""A simulated user: a model of the pool that is told what a customer wants, and talks with whoever is tested.

    the tested side --talk_to_user(message)--> the model, with the user's tools --> what the user says

The invariants: the tested side sees what the user says, and nothing of what the user was told or calls; the user sees
what was said, and nothing of the tested side's calls; and once the user has ended the conversation, or was handed over,
no tool of the domain can be called any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from concertino import AgentSpec, CallFailed, Context, Message, Sampling, ToolSpec

from concertino_bench.tasks.task import Task

from .toolkit import Toolkit
from .world import ToolkitWorld, Turn

TALK = "talk_to_user"
STOP, TRANSFERRED, NO_SCOPE = "###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###"
"""What the user writes to end the conversation: all is done, a person takes over, the scenario does not say enough."""
# Rounds of calls that the user may make before a reply; the published runner stops a user who only calls, too.
_MOST_ROUNDS = 20
_OVER = "The conversation is over. Nothing more can be said or done: give your final answer."
_INSTRUCTIONS = """\
You play a customer who talks with a service agent. You are not the agent, and you never do the agent's work.

How to play:
- Write one short message at a time, as a person would. Begin with what you want; tell the rest when you are asked.
- Keep to the scenario. What it does not say, you do not know: never make up numbers, names or facts.
- Do not read the scenario out. Use your own words.
- If you have tools, they are your own device and papers. Use one when the agent asks you to look or to change
  something, and report what it showed. Never claim a result that no tool showed.
- When all that you want is done, or can clearly not be done, write {stop} and nothing else.
- When the agent hands you over to a person, write {transfer} and nothing else.
- When the scenario does not say enough to go on, write {scope} and nothing else.

The scenario:

{scenario}"""


class DialogueWorld(ToolkitWorld):
    """A toolkit and a simulated user as the world of a run.

    Args:
        toolkit: in the state that the run begins with; it belongs to the world from here on.
        assertions: what is to be the case in the end.
        task: whose `metadata` say which model plays the user (`user`), what it is told (`scenario`), and how often it
            speaks at most (`turns`).
    """

    def __init__(self, toolkit: Toolkit, assertions: Sequence[Mapping[str, Any]], task: Task) -> None:
        super().__init__(toolkit, assertions)
        meta = task.metadata
        self._model, self._turns = str(meta["user"]), int(meta.get("turns", 30))
        told = _INSTRUCTIONS.format(
            stop=STOP, transfer=TRANSFERRED, scope=NO_SCOPE, scenario=meta.get("scenario", "") or meta["request"]
        )
        self._heard = [Message("system", told)]
        self._over = False

    def members(self) -> Sequence[ToolSpec]:
        """The agent's functions as tools, and the way to the user."""
        schema = {
            "type": "object",
            "properties": {"message": {"type": "string", "minLength": 1, "description": "what you say"}},
            "required": ["message"],
            "additionalProperties": False,
        }
        text = (
            "Say something to the customer and read the reply. It is the only way to ask or tell the customer anything."
        )
        talk = AgentSpec(
            TALK,
            text,
            schema,
            self._talk,
            takes_mapping=True,
            context="ctx",
            # Two messages of one round are said one after the other.
            writes=True,
            models=(self._model,),
            toolbox=tuple(self.toolkit.tools("user")),
        )
        return [*super().members(), talk]

    async def _talk(self, arguments: Mapping[str, Any], *, ctx: Context) -> str:
        # A hand-over ends the toolkit, and the user hears of it in this last message.
        if self._over:
            return _OVER
        message = str(arguments["message"])
        self.said.append(Turn("agent", message))
        self._heard.append(Message("user", message))
        said = await self._reply(ctx)
        text, over = _read(said)
        turns = sum(turn.who == "user" for turn in self.said) + 1
        if text:
            self.said.append(Turn("user", text))
        if not over and turns < self._turns:
            return text
        self._over = True
        self.toolkit.end("the end of the conversation")
        why = "" if over else f"The customer leaves after {turns} messages. "
        return f"{text}\n\n{why}{_OVER}".strip()

    async def _reply(self, ctx: Context) -> str:
        """What the user says next, after the calls that the user makes first.

        Raises:
            CallFailed: the model did not answer, said nothing, or only called.
        """
        model = ctx.model(self._model)
        for _ in range(_MOST_ROUNDS):
            reply = await model.chat([*self._heard], tools=ctx.toolbox, sampling=Sampling(temperature=0.0))
            self._heard.append(Message.of(reply))
            if not reply.tool_calls:
                if reply.text.strip():
                    return reply.text
                self._heard[-1:] = [Message("user", "(Say something, or end the conversation.)")]
                continue
            for call in reply.tool_calls:
                seen = await ctx.call(call.name, call.arguments)
                shown = seen.content if seen.content is not None else (seen.error.message if seen.error else "")
                self._heard.append(Message("tool", str(shown), call_id=call.id))
        raise CallFailed.because(
            f"the simulated user said nothing in {_MOST_ROUNDS} replies; take another model as user", code="silent_user"
        )


def _read(said: str) -> tuple[str, bool]:
    """What a user's message says without the tokens that end the conversation, and whether it has one."""
    text = said
    for token in (STOP, TRANSFERRED, NO_SCOPE):
        text = text.replace(token, "")
    return text.strip(), text != said
