"""The agent `deep_research`: a question that takes several steps, answered with citations that were checked.

    plan ─► search ─► choose ─► read ─► reflect ─┬─► write ─► check every citation
              ▲                                  │
              └──────── queries, not enough ─────┘

Rounds end when the model says that it is enough, when nothing new turns up, when the rounds are over, or when less than
a part of the budget or time is left; then the rest goes to writing. Each reason is reported.

Invariant: a citation in the result names a source that this call has read, and its quote stands there. What fails this
is dropped and listed, and a statement that loses all its citations is marked as unsupported.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from concertino import AgentSpec, CallFailed, Cost

from .citations import Citation, why_dropped
from .gathered import DATA_RULE, AgentTools, GatheredSources, ask, object_schema, quoted, texts_schema
from .knowledge import TASK_SCHEMA

if TYPE_CHECKING:
    from concertino import Context

PLAN_PROMPT = """You plan a piece of research. Split the question into the facts that have to be known to answer it, and
write for each a search query that stands on its own: precise names, places and dates, no pronouns. Facts that depend on
a result come later and need no query yet."""

CHOOSE_PROMPT = f"""You choose what to read for a piece of research. From what searches have found, give the ids of the
sources that most likely hold what is still missing, best first. Leave out what only repeats what is known.

{DATA_RULE}"""

REFLECT_PROMPT = f"""You do a piece of research step by step. You are given the question, what is known so far, and
sources that were just read.

- `findings`: each fact in the new sources that helps to answer the question: the claim in your words, the id of its
  source, and a quote of that source, copied exactly, that proves the claim.
- `enough`: true if the findings, old and new, answer the whole question and agree with one another.
- `queries`: if not, what to search for next, now that more is known. Look for a second source where findings disagree.

{DATA_RULE}"""

WRITE_PROMPT = f"""You write the result of a piece of research from its findings alone.

- `answer`: the answer to the question, as short as it can be; empty if the findings do not give it.
- `statements`: the report, one or two sentences each, in reading order. Every statement has citations: the id of a
  source and a quote of it, copied exactly from the findings. Say what the findings leave open.

{DATA_RULE}"""

_TEXT = {"type": "string"}
_CITATIONS = {"type": "array", "items": object_schema(source=_TEXT, quote=_TEXT), "maxItems": 10}
_STATEMENT = object_schema(text=_TEXT, citations=_CITATIONS)
_REPORT_SCHEMA = object_schema(answer=_TEXT, statements={"type": "array", "items": _STATEMENT, "maxItems": 40})


@dataclass(frozen=True)
class ResearchLimits:
    """How far one call goes.

    Attributes:
        rounds: of searching and reading.
        queries: in a round.
        reads: sources read in a round.
        top_k: passages per query.
        source_chars: characters of a page that are read.
        prompt_chars: characters of sources in one prompt.
        reserve: part of the budget and of the time (0 to 1) that is kept for writing.
    """

    rounds: int = 4
    queries: int = 5
    reads: int = 5
    top_k: int = 5
    source_chars: int = 6_000
    prompt_chars: int = 24_000
    reserve: float = 0.3


@dataclass
class _Notebook:
    """What is known so far."""

    findings: list[tuple[str, Citation]] = field(default_factory=list)
    dropped: list[dict[str, Any]] = field(default_factory=list)
    rounds: int = 0
    stopped: str = ""


def deep_research(
    names: AgentTools | None = None, *, provider: str = "", limits: ResearchLimits | None = None
) -> AgentSpec:
    """The agent `deep_research`.

    Args:
        names: the members of the pool that it works with.
        provider: is put before the name.
        limits: how far one call goes.
    """
    return AgentSpec.from_schema(
        f"{provider}/deep_research" if provider else "deep_research",
        "Researches a question that takes several steps: plans, searches in parallel, reads sources, searches again "
        "for what is missing, and writes a short report in which every citation was checked against the source. Slow "
        "and expensive; for a single fact use knowledge_searcher.",
        TASK_SCHEMA,
        _DeepResearch(names or AgentTools(), limits or ResearchLimits()),
        cost=Cost(units=1),
        timeout=600.0,
        retry_safe=True,
        models=("default", "writer"),
        context="context",
    )


class _DeepResearch:
    """The function of the agent."""

    def __init__(self, names: AgentTools, limits: ResearchLimits) -> None:
        self._names, self._limits = names, limits
        most = limits.queries
        finding = object_schema(claim=_TEXT, source=_TEXT, quote=_TEXT)
        self._plan_schema = object_schema(queries=texts_schema(most, "what to search for first"))
        self._choice_schema = object_schema(read=texts_schema(limits.reads, "ids of sources, best first"))
        self._reflection_schema = object_schema(
            findings={"type": "array", "items": finding, "maxItems": 30},
            enough={"type": "boolean"},
            queries=texts_schema(most, "what to search for next"),
        )

    async def __call__(self, arguments: Mapping[str, Any], *, context: Context) -> dict[str, Any]:
        task = (arguments.get("subtask") or context.question).strip()
        if not task:
            raise ValueError("there is nothing to research: give a subtask")
        return await _Research(self, context, task, arguments.get("model", "")).run()


class _Research:
    """One call: the question, what was gathered, and the notebook."""

    def __init__(self, agent: _DeepResearch, context: Context, task: str, model: str) -> None:
        self._agent, self._limits = agent, agent._limits
        self._context, self._task, self._model = context, task, model
        self._gathered = GatheredSources(context, agent._names, self._limits.top_k)
        self._notes = _Notebook()
        self._at_start = self._left()

    async def run(self) -> dict[str, Any]:
        queries = await self._plan()
        while queries and not self._notes.stopped:
            if self._notes.rounds >= self._limits.rounds:
                self._notes.stopped = "rounds"
            elif short := self._running_short():
                self._notes.stopped = short
            else:
                self._notes.rounds += 1
                queries = await self._round(queries)
        self._notes.stopped = self._notes.stopped or "nothing_new"
        return await self._write()

    async def _plan(self) -> list[str]:
        try:
            plan = await self._ask("default", PLAN_PROMPT, f"Question: {quoted(self._task)}", self._agent._plan_schema)
        except CallFailed as failed:
            self._gathered.notes.append(f"searched for the question as it stands: {failed}")
            plan = {"queries": []}
        return self._fresh(plan["queries"]) or self._fresh([self._task])

    async def _round(self, queries: list[str]) -> list[str]:
        """Search, choose, read, reflect.

        Returns:
            What to search for next; empty if it is enough or nothing new turned up.
        """
        await self._gathered.search(queries)
        unread = [source_id for source_id in self._gathered.found if source_id not in self._gathered.read]
        chosen = await self._choose(unread)
        read = await self._gathered.open(chosen, self._limits.source_chars, forget=True)
        return await self._reflect(read) if read else []

    async def _choose(self, unread: list[str]) -> list[str]:
        if len(unread) <= self._limits.reads:
            return unread
        shown = self._gathered.shown(unread, self._limits.prompt_chars)
        user = f"Question: {quoted(self._task)}\n\nKnown so far:\n{quoted(self._known())}\n\n{shown}"
        try:
            choice = await self._ask("default", CHOOSE_PROMPT, user, self._agent._choice_schema)
        except CallFailed as failed:
            self._gathered.notes.append(f"read what was found first: {failed}")
            return unread[: self._limits.reads]
        wanted = dict.fromkeys(self._gathered.meant(name) for name in choice["read"])
        return [source_id for source_id in wanted if source_id in unread][: self._limits.reads]

    async def _reflect(self, read: list[str]) -> list[str]:
        shown = self._gathered.shown(read, self._limits.prompt_chars)
        asked = "; ".join(self._gathered.queries)
        known = quoted(self._known())
        user = f"Question: {quoted(self._task)}\n\nSearched for: {quoted(asked)}\n\nKnown so far:\n{known}\n\n{shown}"
        try:
            seen = await self._ask("default", REFLECT_PROMPT, user, self._agent._reflection_schema)
        except CallFailed as failed:
            self._gathered.notes.append(f"stopped after reading: {failed}")
            self._notes.stopped = _reason(failed)
            return []
        for finding in seen["findings"]:
            citation = self._checked(finding["source"], finding["quote"], finding["claim"])
            if citation is not None and (finding["claim"], citation) not in self._notes.findings:
                self._notes.findings.append((finding["claim"], citation))
        # Without a finding, a model's word that it is enough proves nothing.
        if seen["enough"] and self._notes.findings:
            self._notes.stopped = "enough"
            return []
        return self._fresh(seen["queries"])

    # -- writing ---------------------------------------------------------------------------------------------------

    async def _write(self) -> dict[str, Any]:
        if not self._notes.findings:
            self._gathered.notes.append("nothing that was read answers the question")
            return self._result("", [])
        user = f"Question: {quoted(self._task)}\n\nFindings:\n{quoted(self._known())}"
        try:
            report = await self._ask("writer", WRITE_PROMPT, user, _REPORT_SCHEMA)
        except CallFailed as failed:
            self._gathered.notes.append(f"no report was written, these are the findings: {failed}")
            return self._result("", [(claim, [citation]) for claim, citation in self._notes.findings])
        statements = []
        for statement in report["statements"]:
            checked = [self._checked(one["source"], one["quote"], statement["text"]) for one in statement["citations"]]
            statements.append((statement["text"], [citation for citation in checked if citation is not None]))
        return self._result(report["answer"].strip(), statements)

    def _result(self, answer: str, statements: list[tuple[str, list[Citation]]]) -> dict[str, Any]:
        numbers: dict[Citation, int] = {}
        lines, unsupported = [], []
        for text, citations in statements:
            marks = [f"[{numbers.setdefault(citation, len(numbers) + 1)}]" for citation in dict.fromkeys(citations)]
            lines.append(f"{text.strip()} {''.join(marks)}" if marks else f"{text.strip()} [unsupported]")
            if not marks:
                unsupported.append(text.strip())
        gathered, notes = self._gathered, self._notes
        cited = [
            {"number": number, **citation.to_json(), "title": gathered.read[citation.source].title}
            for citation, number in numbers.items()
        ]
        result = {
            "answer": answer,
            "report": "\n".join(lines),
            "citations": cited,
            "stopped": notes.stopped,
            "rounds": notes.rounds,
            "queries": gathered.queries,
            "read": list(gathered.read),
        }
        more = {"unsupported": unsupported, "dropped": notes.dropped, "notes": gathered.notes}
        return result | {key: value for key, value in more.items() if value}

    # -- small things ----------------------------------------------------------------------------------------------

    def _checked(self, source: str, quote: str, claim: str) -> Citation | None:
        """A citation if it holds; else it is listed as dropped."""
        citation = Citation(self._gathered.meant(source), quote.strip())
        why = why_dropped(citation, self._gathered.read)
        if not why:
            return citation
        self._notes.dropped.append({**citation.to_json(), "claim": claim, "why": why})
        return None

    def _known(self) -> str:
        lines = [
            f'- {claim} (source {self._gathered.label(citation.source)}: "{citation.quote}")'
            for claim, citation in self._notes.findings
        ]
        return "\n".join(lines) or "(nothing yet)"

    def _fresh(self, queries: list[str]) -> list[str]:
        return self._gathered.fresh(queries, self._limits.queries)

    async def _ask(self, role: str, system: str, user: str, schema: Mapping[str, Any]) -> Any:
        return await ask(self._context, self._model, role, system, user, schema)

    def _left(self) -> dict[str, float]:
        left = {**self._context.remaining._asdict(), "seconds": self._context.remaining_seconds()}
        return {name: value for name, value in left.items() if math.isfinite(value)}

    def _running_short(self) -> str:
        """What is nearly used up, empty if nothing is."""
        for name, value in self._left().items():
            # One round always runs, or there would be nothing to write from.
            if self._notes.rounds and value < self._limits.reserve * self._at_start.get(name, 0.0):
                return "time" if name == "seconds" else f"budget: {name}"
        return ""


def _reason(failed: CallFailed) -> str:
    error = failed.observation.error
    code = error.code if error is not None else ""
    return {"budget_exhausted": "budget", "deadline": "time", "queue_deadline": "time"}.get(code, "model_failed")
