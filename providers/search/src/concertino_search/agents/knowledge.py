"""The agent `knowledge_searcher`: a question of fact in, a short answer with its evidence out.

    queries ─► search ─► answer, or more queries, or texts to be read whole ─► … ─► answer

Invariant: what is given as evidence was found; an answer without evidence says that it has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from concertino import AgentSpec, CallFailed, Cost

from concertino_search.snippets import ELLIPSIS

from .gathered import DATA_RULE, AgentTools, GatheredSources, ask, object_schema, quoted, texts_schema

if TYPE_CHECKING:
    from concertino import Context

MAX_QUERIES = 4
MAX_READS = 4
_SHOWN_CHARS = 16_000
"""Characters of sources in one prompt."""
_EVIDENCE_CHARS = 1_200
_EVIDENCE = 5

QUERY_PROMPT = f"""You find facts. For the task that you are given, write the search queries that would turn up what is
needed: one fact per query, with the names and dates that make it precise. A question in several steps gets a query for
each step that can be asked already. At most {MAX_QUERIES} queries."""

ANSWER_PROMPT = f"""You find facts. You are given a task and what searches have found for it.

- If the sources settle the task, put a short answer into `answer` (a name, a date, a number, a sentence) and the ids of
  the sources that it rests on into `sources`. Check that they speak of the right person, place and time.
- If they do not, leave `answer` empty and give `queries` that look for what is missing, or in `read` the ids of sources
  that break off ({ELLIPSIS}) and should be read whole.
- Never answer from memory. If nothing more can be found, leave all of them empty.

{DATA_RULE}"""

_QUERIES = object_schema(queries=texts_schema(MAX_QUERIES, "what to search for"))
_TURN = object_schema(
    answer={"type": "string", "description": "the short answer, or empty"},
    sources=texts_schema(20, "ids of the sources that the answer rests on"),
    queries=texts_schema(MAX_QUERIES, "what to search for next"),
    read=texts_schema(MAX_READS, "ids of sources to read whole"),
)
TASK_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "subtask": {
            "type": "string",
            "description": "What to find out, with all that is needed to understand it. Left out: the run's question.",
        },
        "model": {
            "type": "string",
            "description": "Role or name of the model that works. Left out: the pool's default.",
        },
    },
    "additionalProperties": False,
}


def knowledge_searcher(
    names: AgentTools | None = None, *, provider: str = "", max_searches: int = 3, top_k: int = 5
) -> AgentSpec:
    """The agent `knowledge_searcher`.

    Args:
        names: the members of the pool that it works with.
        provider: is put before the name.
        max_searches: searches (of several queries each) in one call; a call asks its model once more than that.
        top_k: passages per query.
    """
    return AgentSpec.from_schema(
        f"{provider}/knowledge_searcher" if provider else "knowledge_searcher",
        "Finds facts: writes search queries for a subtask, searches, and returns a short answer with the passages that "
        "it rests on. Use it for knowledge and for checking claims, not for reasoning or arithmetic.",
        TASK_SCHEMA,
        _KnowledgeSearcher(names or AgentTools(), max_searches, top_k),
        cost=Cost(units=1),
        timeout=180.0,
        retry_safe=True,
        models=("default",),
        context="context",
    )


class _KnowledgeSearcher:
    """The function of the agent."""

    def __init__(self, names: AgentTools, max_searches: int, top_k: int) -> None:
        self._names, self._max_searches, self._top_k = names, max_searches, top_k

    async def __call__(self, arguments: Mapping[str, Any], *, context: Context) -> dict[str, Any]:
        task = (arguments.get("subtask") or context.question).strip()
        if not task:
            raise ValueError("there is nothing to find out: give a subtask")
        model = arguments.get("model", "")
        gathered = GatheredSources(context, self._names, self._top_k)
        queries = await self._queries(gathered, task, model)
        await gathered.search(queries)
        turn: dict[str, Any] = {}
        for searches in range(1, self._max_searches + 1):
            try:
                turn = await self._turn(gathered, task, model, last=searches == self._max_searches)
            except CallFailed as failed:
                # What was found is of use without an answer too.
                gathered.notes.append(f"no answer was written: {failed}")
                turn = {}
                break
            queries = gathered.fresh(turn["queries"], MAX_QUERIES)
            wanted = [source_id for name in turn["read"] if (source_id := gathered.meant(name)) in gathered.found]
            if turn["answer"].strip() or not (queries or wanted) or searches == self._max_searches:
                break
            if wanted:
                await gathered.open(wanted[:MAX_READS], _SHOWN_CHARS // 2)
            if queries:
                await gathered.search(queries)
        return self._result(gathered, turn)

    async def _queries(self, gathered: GatheredSources, task: str, model: str) -> list[str]:
        """The first queries; the task itself where the model gives none."""
        try:
            given = await ask(gathered.context, model, "default", QUERY_PROMPT, f"Task: {quoted(task)}", _QUERIES)
        except CallFailed as failed:
            gathered.notes.append(f"searched for the task as it stands: {failed}")
            given = {"queries": []}
        return gathered.fresh(given["queries"], MAX_QUERIES) or gathered.fresh([task], 1)

    async def _turn(self, gathered: GatheredSources, task: str, model: str, *, last: bool) -> dict[str, Any]:
        asked = "\n".join(f"- {quoted(query)}" for query in gathered.queries)
        sources = gathered.shown(gathered.found, _SHOWN_CHARS) or "(nothing was found)"
        limit = "\n\nThis is the last turn: answer from these sources, or leave everything empty." if last else ""
        user = f"Task: {quoted(task)}\n\nSearched for:\n{asked}\n\n{sources}{limit}"
        turn: dict[str, Any] = await ask(gathered.context, model, "default", ANSWER_PROMPT, user, _TURN)
        return turn

    def _result(self, gathered: GatheredSources, turn: Mapping[str, Any]) -> dict[str, Any]:
        answer = turn.get("answer", "").strip()
        cited = list(dict.fromkeys(gathered.meant(name) for name in turn.get("sources", ())))
        strangers = [name for name in cited if name not in gathered.found]
        if strangers:
            gathered.notes.append(f"dropped sources that were not found: {', '.join(strangers)}"[:300])
        kept = [name for name in cited if name in gathered.found]
        if answer and not kept:
            gathered.notes.append("the answer names no source that was found; the evidence is what was found first")
        evidence = []
        for source_id in (kept or list(gathered.found))[:_EVIDENCE]:
            source = gathered.read.get(source_id) or gathered.found[source_id]
            evidence.append({"id": source.id, "title": source.title, "text": source.text[:_EVIDENCE_CHARS]})
        result = {
            "answer": answer,
            "evidence": evidence,
            "supported": bool(answer and kept),
            "queries": gathered.queries,
        }
        return {**result, "notes": gathered.notes} if gathered.notes else result
