"""What a model that plans by dependencies is shown: the tags, the tools, observations, its faults.

The words are concertino's own; the tags are those of GAP, so that a model trained on its traces reads what it knows.
A brief prompt leaves out what such a model knows: all but the numbers, the tags and the members.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from concertino.core.format_issue import FormatIssue
from concertino.core.observation import Observation
from concertino.strategies.base.brief_prompt import PromptForm, member_list
from concertino.strategies.base.format_issues import report
from concertino.strategies.base.members import Offers, types_of
from concertino.strategies.base.observations import render_each, render_remaining
from concertino.text.foreign_text import QUESTION_LINES, Quoting, quoting

_OWN = ("plan", "graph", "node")

_BRIEF = "Plan; call what is ready at once, up to {parallel} a turn, {rounds} turns; <answer> ends."

_SYSTEM = """You answer a question with tools. You plan which parts need which, and call what is independent together.

You write in these tags
<think>what you know and what you do next; first in every turn</think>
<plan>
T1: a sub-task
- Dependencies: none
T2: a sub-task that needs the result of T1
- Dependencies: T1
</plan>
{call_tags}
<reflection>what went wrong, and how the plan changes; write a new <plan> behind it</reflection>
<answer>the answer</answer>
{graph}
After your calls stop. Their results come back in <observation>, one line of JSON each, in the order of your calls. \
A result has a status. OK: use it. PARSE_ERR: the call was not run; correct it. EXEC_ERR, TIMEOUT: try another way.

Rules
- Tasks whose dependencies are done go out together, in one turn: at most {parallel} calls. You have {rounds} turns \
with calls.
- A query must stand alone: the tool sees nothing else.
- Several queries: a JSON list, ["one", "two"], or one | two. A | inside brackets, as in P(A|B), does not separate; \
elsewhere write \\| for the sign itself.
- Several answers are written like several queries. Write <answer> alone, when the results above support it.
- Never write <observation> yourself."""

_CALL_TAG = "<{call_tag}>a query</{call_tag}>: {description}"

_GRAPH = """
Instead of single calls you can hand over a graph of them, which runs without asking you in between:
<graph>
<node id="s1">{name}("a query")</node>
<node id="s2" depends="s1">{name}("a query with the result {{s1}} in it")</node>
</graph>
A node calls a tool with one text, or with its arguments as an object: {name}({{...}}). \
{{s1}} puts the whole result of s1 in its place, so use it where that is short. Tools for nodes:
{tools}
"""

_TAGS_SHOWN = 8
"""Tags that a fault names; the system message has all of them."""
GO_ON = "The plan is noted. Now make the calls of the tasks that depend on nothing, all in one turn."
NO_CALL = (
    "PARSE_ERR: your text holds neither a call nor an answer. Write <think>...</think>, then {call_tags}, or "
    "<answer>...</answer>."
)
LAST = "No more calls are possible. Write the answer now, from what is known, between <answer> and </answer>."
BRIEF_LAST = "No more calls: write the <answer>."
CUT_OFF = "PARSE_ERR: your text ended (length limit) before a call or an answer was complete. Think more briefly."
_FAULTY = """PARSE_ERR: nothing was run. Correct this, and write the turn again:
{faults}"""


def quoting_for(call_tags: Iterable[str]) -> Quoting:
    """How what others wrote is quoted: none of the format's tags, and none that calls a member."""
    return quoting((*_OWN, *call_tags), QUESTION_LINES)


def system_prompt(
    tools: Sequence[Mapping[str, Any]],
    call_tags: Sequence[tuple[str, str]],
    rounds: int,
    parallel: int,
    graph: bool,
    prompt: PromptForm = "full",
) -> str:
    """The system message.

    Args:
        tools: all members on offer.
        call_tags: tags and the visible names of the members that they call; of several tags of one member, the first is
            shown.
        rounds: turns with calls.
        parallel: calls in one turn.
        graph: whether `<graph>` is allowed.
        prompt: with `brief`, a member is shown under its tag; one without a tag only where a graph can call it.
    """
    offers = Offers(tools)
    quoted = quoting_for(call_tag for call_tag, _ in call_tags)
    # Reversed, so that the first tag of a member wins.
    shown = {name: call_tag for call_tag, name in reversed(call_tags)}
    if prompt == "brief":
        called = {name: f"<{call_tag}>" for name, call_tag in shown.items()}
        listed = [offer for offer in offers.values() if graph or offer.name in shown]
        return f"{_BRIEF.format(parallel=parallel, rounds=rounds)}\n{member_list(listed, called, quoting=quoted)}"
    lines = [
        _CALL_TAG.format(
            call_tag=call_tag, description=_about(offers[name].description if name in offers else "", quoted)
        )
        for call_tag, name in call_tags
        if shown[name] == call_tag
    ]
    drawn = _GRAPH.format(name=call_tags[0][0], tools=_tools(offers, shown, quoted)) if graph and call_tags else ""
    return _SYSTEM.format(call_tags="\n".join(lines), graph=drawn, parallel=parallel, rounds=rounds)


def _about(description: str, quoted: Quoting) -> str:
    return quoted.text(" ".join(description.split()))


def _tools(offers: Offers, tags: Mapping[str, str], quoted: Quoting) -> str:
    """What a node can call, with its arguments; under its tag, if it has one."""
    lines = []
    for offer in offers.values():
        arguments = ", ".join(
            f"{quoted.text(' '.join(name.split()))}: {' or '.join(sorted(types_of(schema) - {'null'}))}"
            + ("" if name in offer.required else " (optional)")
            for name, schema in offer.properties.items()
        )
        lines.append(f"{tags.get(offer.name, offer.name)}({{{arguments}}}): {_about(offer.description, quoted)}")
    return "\n".join(lines)


def render_observations(
    observations: Sequence[Observation],
    names: Sequence[str],
    remaining: Mapping[str, float] | None,
    prompt: PromptForm = "full",
    quoted: Quoting | None = None,
) -> str:
    """The results of a turn; no result can forge the frame around it.

    Args:
        names: visible names of the members, or in a brief prompt ids of the calls.
        quoted: how results are quoted, with the tags that call members; see `quoting_for`.
    """
    lines = render_each(observations, names, None, prompt, quoted or quoting_for(()))
    return "\n".join(["<observation>", *lines, "</observation>"]) + render_remaining(remaining)


def render_faults(text: str, faults: Iterable[FormatIssue]) -> str:
    """The faults of a turn, as its writer reads them."""
    return _FAULTY.format(faults=report(text, faults))


def render_no_call(call_tags: Iterable[str]) -> str:
    """A turn without a call and without an answer."""
    tags = list(islice(call_tags, _TAGS_SHOWN + 1))
    shown = [f"<{call_tag}>...</{call_tag}>" for call_tag in tags[:_TAGS_SHOWN]]
    return NO_CALL.format(call_tags=" or ".join([*shown, *(["another tag from above"] if tags[_TAGS_SHOWN:] else [])]))
