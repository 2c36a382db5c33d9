"""One turn of a model that plans by dependencies, in GAP's format: text read into calls, and calls written as text.

    <think> … </think><plan> … </plan><search>["one", "two"]</search>
    <think> … </think><graph><node id="s1">search("…")</node></graph>
    <think> … </think><answer> … </answer>

Rules
- A tag inside another element is text: a call that `<think>`, `<plan>` or `<reflection>` mentions is no call.
- Everything up to a `</think>` that nothing opened was thought.
- What follows an `<observation>` that the model wrote itself is dropped: it answers results that do not exist.
- An answer in a turn with calls is dropped: the results were not there.
- The last call of a text may lack its closing tag, unless the length limit ended the text: servers cut it off when it
  is a stop text.

Invariant: reading never raises, is linear in the length of the text, and gives calls, or an answer, or neither, never
both. A call that cannot be read is a call with an error; a fault of the plan or the graph leaves no call at all.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from concertino.core.format_issue import FormatIssue
from concertino.core.plan import Call, Plan
from concertino.strategies.base.format_issues import CallFormatIssues, shown
from concertino.strategies.base.members import Offers
from concertino.strategies.base.tags import MAX_TAGS

from .graph import read_nodes, write_nodes
from .queries import cut_parts, write_parts
from .tasks import PlanTask, read_tasks, write_tasks

CODES: dict[str, str] = {
    "answer_too_early": "A turn has calls and an answer; lenient readers drop the answer.",
    "bad_answer": "The answers are not a list of texts.",
    "bad_call": "The call of a node could not be read; its siblings are run.",
    "bad_id": "A node's id is missing, or is not a word that begins with a letter.",
    "bad_plan_line": "A line of the plan has unreadable dependencies, or none of a task.",
    "bad_queries": "The queries of a call are not a list of texts; its siblings are run.",
    "cycle": "The nodes of a graph have a cycle.",
    "duplicate_id": "Two nodes have the same id.",
    "duplicate_query": "A query is written twice; lenient readers ask it once.",
    "duplicate_task": "Two tasks have the same id.",
    "empty_graph": "A graph has no node.",
    "empty_plan": "A plan has no task.",
    "empty_query": "A query is empty; lenient readers drop it, and a call without any is not run.",
    "graph_not_allowed": "A `<graph>` where the strategy takes single calls only.",
    "nested_tag": "A call opens again before it is closed; it is not run.",
    "no_dependencies": "A task lists no dependencies; lenient readers take none.",
    "own_observation": "The model wrote results itself; lenient readers drop them and the text after them.",
    "plan_cycle": "The tasks of a plan have a cycle.",
    "plan_without_reflection": "A second plan without a `<reflection>`; lenient readers take it.",
    "reference_without_dependency": "A node uses a result that it does not depend on; lenient readers add it.",
    "several_answers": "There are two `<answer>` elements.",
    "several_graphs": "There are two `<graph>` elements.",
    "several_plans": "There are two plans in one turn; lenient readers take the last.",
    "stray_tag": "A closing tag closes nothing; lenient readers leave it out.",
    "stray_text": "Text between the elements; lenient readers leave it out.",
    "tag_case": "A tag has wrong letter case; lenient readers take it.",
    "too_many_calls": "A turn has more than 256 calls.",
    "too_many_nodes": "A graph has more than 64 nodes.",
    "too_many_references": "A node uses results more than 1,000 times.",
    "too_many_tags": "The text has more than 50,000 tags.",
    "too_many_tasks": "A plan has more than 64 tasks.",
    "unclosed_tag": "An element is not closed; lenient readers take the last call of a whole text.",
    "unknown_dependency": "A task or node depends on one that does not exist.",
    "unknown_reference": "A node uses the result of one that does not exist.",
}
"""What can be wrong with a turn, by code."""

_FRAME = ("think", "plan", "reflection", "observation", "answer", "graph")
MAX_CALLS = 256


class TurnText(NamedTuple):
    """What a turn says.

    Attributes:
        thinking: what was thought, reflections included.
        tasks: of a new plan, `None` if there is none.
        calls: to be run; those that cannot be read carry an error.
        graph: the calls include nodes of a graph.
        answers: `None` if there is no answer.
        reflected: there is a `<reflection>`.
        faults: because of which nothing is run.
        issues: all issues, in the order of the text.
    """

    thinking: str
    tasks: tuple[PlanTask, ...] | None
    calls: tuple[Call, ...]
    graph: bool
    answers: tuple[str, ...] | None
    reflected: bool
    faults: tuple[FormatIssue, ...]
    issues: tuple[FormatIssue, ...]


def read_turn(
    text: str,
    call_tags: Mapping[str, str],
    tools: Sequence[Mapping[str, Any]] = (),
    *,
    strict: bool = False,
    graph: bool = True,
    planned: bool = False,
    cut_off: bool = False,
) -> TurnText:
    """Read one turn. Never raises for any text.

    Args:
        text: what the model wrote.
        call_tags: visible names of the members by the tags that call them.
        tools: all members, as OpenAI-style function objects.
        strict: refuse what lenient reading repairs.
        graph: whether `<graph>` is allowed.
        planned: there is a plan already, so a new one needs a `<reflection>`.
        cut_off: the length limit ended the text.
    """
    issues = CallFormatIssues(strict)
    turn = _TurnReader(text, call_tags, Offers(tools), issues, cut_off)
    turn.read(graph)
    if turn.tasks is not None and planned and not turn.reflected:
        words = "a new <plan> without a <reflection> that says why"
        issues.mend("plan_without_reflection", words, *turn.plan_place)
    calls = turn.calls
    answers: tuple[str, ...] | None = turn.answers
    if calls and answers is not None:
        issues.mend("answer_too_early", "an <answer> in a turn with calls; wait for their results", *turn.answer_place)
        answers = None
    faults = tuple(issues.faults)
    return TurnText(
        "\n\n".join(filter(None, turn.thoughts)),
        turn.tasks,
        () if faults else tuple(calls),
        turn.graph,
        None if faults else answers,
        turn.reflected,
        faults,
        issues.all(),
    )


# The tags are the members' names, so each pool has its own pattern, and every turn of a run needs the same.
@lru_cache(maxsize=32)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"<(/?)({'|'.join(map(re.escape, names))})>", re.IGNORECASE)


def _number(place: int | None) -> float:
    return float("inf") if place is None else place


class _TurnReader:
    """One text being read."""

    def __init__(
        self, text: str, call_tags: Mapping[str, str], offers: Offers, issues: CallFormatIssues, cut_off: bool
    ) -> None:
        self.text = text
        self.call_tags = call_tags
        self.offers = offers
        self.issues = issues
        self.cut_off = cut_off
        self.thoughts: list[str] = []
        self.tasks: tuple[PlanTask, ...] | None = None
        self.plan_place = self.answer_place = (0, 0)
        self.calls: list[Call] = []
        self.asked: set[tuple[str, str]] = set()
        self.graph = self.reflected = False
        self.count = 0
        self.answers: tuple[str, ...] | None = None
        self.tags = list(islice(_pattern((*_FRAME, *call_tags)).finditer(text), MAX_TAGS + 1))
        if len(self.tags) > MAX_TAGS:
            words = f"the text holds more than {MAX_TAGS} tags; write a shorter one"
            issues.refuse("too_many_tags", words, 0, len(text))
            self.tags = []
        # Numbers of the tags by name: each search for a closing tag is a bisection, and reading stays linear.
        self.places: dict[tuple[str, bool], list[int]] = {}
        for place, tag in enumerate(self.tags):
            self.places.setdefault((tag.group(2).lower(), bool(tag.group(1))), []).append(place)

    def read(self, graph: bool) -> None:
        """All elements, in order."""
        if self.issues.faults:
            return
        place = behind = 0
        first = min((self._next("think", -1, closed=closed) for closed in (False, True)), key=_number)
        # Chat templates may open the thought in the prompt, so the reply only closes it.
        if first is not None and self.tags[first].group(1):
            self.thoughts.append(self.text[: self.tags[first].start()].strip())
            place, behind = first + 1, self.tags[first].end()
        while place < len(self.tags):
            tag = self.tags[place]
            self._stray(behind, tag.start())
            self._check_case(tag)
            name = tag.group(2).lower()
            behind = tag.end()
            if tag.group(1):
                words = f"</{name}> closes nothing; leave it out"
                self.issues.mend("stray_tag", words, tag.start(), tag.end())
                place += 1
                continue
            if name == "observation":
                words = "results come from the tools; stop after your calls"
                self.issues.mend("own_observation", words, tag.start(), len(self.text))
                return
            closing = self._next(name, place, closed=True)
            end = self.tags[closing].start() if closing is not None else len(self.text)
            if not self._take(name, place, closing, end, graph):
                return
            place = closing if closing is not None else place
            behind = self.tags[place].end() if closing is not None else self._start_of(place + 1)
            place += 1
        self._stray(behind, len(self.text))

    def _start_of(self, place: int) -> int:
        """Where a tag begins; the end of the text after the last."""
        return self.tags[place].start() if place < len(self.tags) else len(self.text)

    def _next(self, name: str, place: int, *, closed: bool) -> int | None:
        """The number of the next opening or closing tag of a name."""
        places = self.places.get((name, closed), [])
        found = bisect_left(places, place + 1)
        return places[found] if found < len(places) else None

    def _take(self, name: str, place: int, closing: int | None, end: int, graph: bool) -> bool:
        """Take one element; False if all after it belongs to it, unclosed."""
        tag = self.tags[place]
        inner, span = self.text[tag.end() : end], (tag.start(), end)
        if closing is None and not self._may_be_open(name, place):
            self._unclosed(name, tag, inner)
            # Behind an open `<think>` all is thought; after any other open element the tags that follow still count.
            return name != "think"
        if name in ("think", "reflection"):
            self.thoughts.append(inner.strip())
            self.reflected |= name == "reflection"
        elif name == "plan":
            if self.tasks is not None:
                self.issues.mend("several_plans", "a second <plan>; the last one counts", *span)
            self.tasks, self.plan_place = read_tasks(inner, tag.end(), self.issues), span
        elif name == "answer":
            self._answer(inner, span)
        elif name == "graph":
            self._graph(inner, tag, span, graph)
        else:
            self._queries(name, inner, place, closing, span)
        return True

    def _may_be_open(self, name: str, place: int) -> bool:
        """An unclosed last call or answer is taken: its closing tag was a stop text."""
        tag = self.tags[place]
        # Servers drop the stop text itself, here `</search>`; the length limit may have cut the query in two.
        if self.cut_off or place + 1 < len(self.tags) or (name not in self.call_tags and name != "answer"):
            return False
        words = f"<{name}> is not closed; write </{name}> after it"
        self.issues.mend("unclosed_tag", words, tag.start(), tag.end())
        return not self.issues.strict

    def _unclosed(self, name: str, tag: re.Match[str], inner: str) -> None:
        why = "the text ended (length limit) inside" if self.cut_off else "not closed:"
        words = f"{why} <{name}>; write </{name}> after its content"
        if name in self.call_tags:
            self.issues.broken("unclosed_tag", words, tag.start(), tag.end())
            self._add(Call(self.call_tags[name], error=("bad_format", words)))
        # A thought that the limit ended is not a format fault: the strategy tells the model to think more briefly.
        elif name in ("think", "reflection") and self.cut_off:
            self.thoughts.append(inner.strip())
        # An answer that was cut off counts as none; half a plan or graph would run the wrong calls.
        elif not self.cut_off or name in ("plan", "graph"):
            self.issues.refuse("unclosed_tag", words, tag.start(), tag.end())

    # -- calls -----------------------------------------------------------------------------------------------------

    def _queries(self, name: str, inner: str, place: int, closing: int | None, span: tuple[int, int]) -> None:
        """One call per query."""
        visible = self.call_tags[name]
        again = self._next(name, place, closed=False)
        if again is not None and closing is not None and again < closing:
            words = f"<{name}> opens again before it is closed; write one element per call"
            self.issues.broken("nested_tag", words, *span)
            self._add(Call(visible, error=("bad_format", words)))
            return
        cut = cut_parts(inner.strip())
        if cut.error or not cut.texts:
            code, words = (
                ("bad_queries", f"<{name}>: {cut.error}") if cut.error else ("empty_query", f"<{name}> is empty")
            )
            self.issues.broken(code, words, *span)
            self._add(Call(visible, error=("bad_format", words)))
            return
        if cut.empty:
            self.issues.mend("empty_query", f"{cut.empty} queries of <{name}> are empty; leave them out", *span)
        for query in cut.texts:
            if (visible, query) in self.asked:
                words = f"{shown(query)} is asked twice in one turn; ask it once"
                self.issues.mend("duplicate_query", words, *span)
                continue
            self.asked.add((visible, query))
            offer = self.offers.get(visible)
            self._add(Call(visible, offer.filled(query) if offer is not None else {"query": query}))

    def _add(self, call: Call) -> None:
        if self.count >= MAX_CALLS:
            # Told once, at the first call too many.
            if self.count == MAX_CALLS:
                words = f"more than {MAX_CALLS} calls in one turn; spread them over several"
                self.issues.refuse("too_many_calls", words, 0, len(self.text))
            self.count += 1
            return
        self.count += 1
        self.calls.append(Call(call.name, call.arguments, str(self.count), error=call.error))

    def _graph(self, inner: str, tag: re.Match[str], span: tuple[int, int], allowed: bool) -> None:
        if not allowed:
            self.issues.refuse("graph_not_allowed", "<graph> is not read here; write single calls", *span)
        elif self.graph:
            self.issues.refuse("several_graphs", "a second <graph>; write one with all nodes", *span)
        else:
            self.graph = True
            self.calls += read_nodes(inner, tag.end(), self.call_tags, self.offers, self.issues)

    def _answer(self, inner: str, span: tuple[int, int]) -> None:
        if self.answers is not None:
            self.issues.refuse("several_answers", "a second <answer>; write several answers as a list in one", *span)
            return
        cut = cut_parts(inner.strip())
        if cut.error or not cut.texts:
            self.issues.refuse("bad_answer", f"<answer>: {cut.error or 'it is empty'}", *span)
        self.answers, self.answer_place = cut.texts, span

    # -- repairs ---------------------------------------------------------------------------------------------------

    def _check_case(self, tag: re.Match[str]) -> None:
        if tag.group(2) != tag.group(2).lower():
            words = f"<{tag.group(2)}> is written <{tag.group(2).lower()}>"
            self.issues.mend("tag_case", words, tag.start(), tag.end())

    def _stray(self, start: int, end: int) -> None:
        piece = self.text[start:end]
        if piece and not piece.isspace():
            lead = len(piece) - len(piece.lstrip())
            words = f"{shown(piece)} stands between the elements and is not read; keep thoughts in <think>"
            self.issues.mend("stray_text", words, start + lead, start + len(piece.rstrip()))


# -- writing -----------------------------------------------------------------------------------------------------------


def write_turn(
    thinking: str,
    *,
    tasks: Sequence[PlanTask] = (),
    queries: Mapping[str, Sequence[str]] | None = None,
    graph: Plan | None = None,
    call_tags: Mapping[str, str] | None = None,
    answers: Sequence[str] = (),
) -> str:
    """A turn as text; `read_turn` reads the same from it.

    Args:
        thinking: what stands in front.
        tasks: of a plan.
        queries: by tag.
        graph: calls with dependencies.
        call_tags: visible names by tag, so that nodes are written with tags.
        answers: one or several.
    """
    # A closing tag in the thought would end it early.
    parts = [f"<think>{thinking.replace('</think', '</ think')}</think>"]
    if tasks:
        parts.append(f"<plan>\n{write_tasks(tasks)}\n</plan>")
    parts += [f"<{call_tag}>{write_parts(texts)}</{call_tag}>" for call_tag, texts in (queries or {}).items()]
    if graph is not None:
        parts.append(write_nodes(graph, call_tags))
    if answers:
        parts.append(f"<answer>{write_parts(answers)}</answer>")
    return "\n".join(parts)
