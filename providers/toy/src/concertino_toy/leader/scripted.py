"""The scripted leader: a fixed policy for any of the five strategies, which knows no answer itself.

It recognises the strategy by the marks of its format in the request, never by the words of the prompt:

    <agent_name> in the system message          agent graphs       agent_graph
    a <plan> with Dependencies in it            plans              dependency_plan
    a fence, <test> or one \\boxed, no tools    roles              roles
    one stateless prompt, tools beside it       the notebook       notebook
    one call per turn                           serial turns       rounds
    anything else                               parallel rounds    rounds

It keeps no state about a run: it reads the whole conversation, and can be asked about any prefix. The one exception is
the stateless prompt, which does not say what failed: there it counts how often it saw the same prompt.

In a workflow of roles nobody else is asked, so it speaks with a skill of its own, that of `sage`.

With `slip` it misspells one argument of its first round, so that a demonstration shows a repair.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from concertino import ChatRequest

from concertino_toy.simulated.models import SAGE, SimulatedModel, solve_prompt
from concertino_toy.simulated.roles import task_of, wanted_form
from concertino_toy.simulated.skills import INSTANT, Pace, Skill

from . import agent_graph, dependency_plan, notebook, rounds
from .conversation import ConversationState, WrittenCall, read_conversation, system_text
from .policy import NextCalls, read_parts

_MOST_PROMPTS = 10_000


class ScriptedLeader(SimulatedModel):
    """The policy as a model: messages in, one turn's text out."""

    def __init__(
        self,
        name: str = "toy/leader",
        *,
        pace: Pace = INSTANT,
        slip: bool = False,
        seed: int = 0,
        skill: Skill = SAGE,
    ) -> None:
        super().__init__(name, pace)
        self._slip, self._seed, self._skill = slip, seed, skill
        self._prompts: Counter[int] = Counter()

    async def compose(self, request: ChatRequest) -> str:
        """The next turn, in the format that the request asks for."""
        system = system_text(request)
        if agent_graph.is_graph(system):
            return agent_graph.write_graph(request)
        if dependency_plan.is_plan(system):
            return dependency_plan.write_turn(request)
        if notebook.is_notebook(request):
            return notebook.write_call(request, self._seen(request))
        conversation = read_conversation(request)
        form = wanted_form(request.messages) if not conversation.actions else None
        if form is not None:
            # As with the solvers, the key keeps the name with which the documented figures were measured.
            key = f"sim/conductor {request.messages[-1].text}"
            return solve_prompt(task_of(request.messages), key, self._skill, form)
        if rounds.is_serial(request):
            return rounds.write_serial_turn(request)
        if self._slip and not conversation.exchanges and not conversation.concluding:
            parts = read_parts(conversation)
            calls = self._misspell(NextCalls(conversation, parts).calls(), conversation)
            return rounds.round_text(parts, calls, conversation)
        return rounds.write_round(request)

    def _seen(self, request: ChatRequest) -> int:
        """How often this prompt was seen before."""
        # Bounded, as a leader that serves for long would remember every prompt.
        if len(self._prompts) >= _MOST_PROMPTS:
            self._prompts.clear()
        key = hash(tuple(message.text for message in request.messages))
        self._prompts[key] += 1
        return self._prompts[key] - 1

    def _misspell(self, calls: list[WrittenCall], conversation: ConversationState) -> list[WrittenCall]:
        """Swap two letters in one argument's name or in one model's name."""
        chance = Random(f"{self._seed} {conversation.question}")
        if conversation.solver is None or conversation.solver.models is None or not calls:
            return calls
        subtask, model, _ = conversation.solver.models
        at = chance.randrange(len(calls))
        arguments = dict(calls[at].arguments)
        if chance.random() < 0.5:
            arguments[_swapped(subtask)] = arguments.pop(subtask)
        else:
            arguments[model] = _swapped(str(arguments[model]))
        return [*calls[:at], WrittenCall(calls[at].name, arguments), *calls[at + 1 :]]


def _swapped(name: str) -> str:
    return name[:1] + name[2:3] + name[1:2] + name[3:]
