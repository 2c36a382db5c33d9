"""`deep_research`: rounds that end for a stated reason, sources really read, citations really checked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from concertino import Budget, FailureClass, Model, Observation, Pool, ProviderError, Reply, ToolSpec, Usage
from concertino.testing import AgentConformance, ScriptedModel, make_pool, run_call
from concertino_search import AgentTools, ResearchLimits, corpus_tools, deep_research, fetch_page_tool
from concertino_search.agents.citations import Citation, Source, stands_in, why_dropped

FILMS = [
    {"id": "film", "title": "Night Train", "text": "Night Train is a film of 1959. It was directed by Jana Nowak."},
    {"id": "nowak", "title": "Jana Nowak", "text": "Jana Nowak was a Polish director. She was born in Łódź in 1921."},
    {"id": "lodz", "title": "Łódź", "text": "Łódź is a city in Poland with about 650,000 inhabitants."},
    {"id": "other", "title": "Night Train (song)", "text": "Night Train is a song of 1951 by Jimmy Forrest."},
]
TASK = {"subtask": "Where was the director of the film Night Train born?"}
BORN = "She was born in Łódź in 1921."
DIRECTED = "It was directed by Jana Nowak."
DOWN = ProviderError("the model is down", failure=FailureClass.CALLER)


def plan(*queries: str) -> str:
    return json.dumps({"queries": list(queries)})


def reflect(*findings: tuple[str, str, str], enough: bool = False, ask: tuple[str, ...] = ()) -> str:
    rows = [{"claim": claim, "source": source, "quote": quote} for claim, source, quote in findings]
    return json.dumps({"findings": rows, "enough": enough, "queries": list(ask)})


def report(answer: str, *statements: tuple[str, list[tuple[str, str]]]) -> str:
    rows = [
        {"text": text, "citations": [{"source": source, "quote": quote} for source, quote in citations]}
        for text, citations in statements
    ]
    return json.dumps({"answer": answer, "statements": rows})


@pytest.fixture
def tools(write_lines: Callable[..., Path], cache: Path) -> list[ToolSpec]:
    return corpus_tools(write_lines(FILMS), cache=cache, provider="search")


async def research(
    tools: list[ToolSpec],
    model: Model,
    *,
    limits: ResearchLimits | None = None,
    names: AgentTools | None = None,
    **options: Any,
) -> Observation:
    agent = deep_research(names or AgentTools(fetch=""), limits=limits)
    return await run_call(agent, TASK, pool=make_pool(*tools, agent, default=model), **options)


async def test_a_question_in_two_hops_is_answered_with_checked_citations(tools: list[ToolSpec]) -> None:
    with ScriptedModel(
        plan("the film of 1959"),
        reflect(("Nowak directed it.", "S1", DIRECTED), ask=("Jana Nowak born", "The film of  1959")),
        reflect(("Nowak was born in Łódź.", "S2", BORN), enough=True),
        report(
            "Łódź",
            ("Jana Nowak made it.", [("S1", DIRECTED)]),
            ("She is from Łódź.", [("S2", BORN), ("S1", DIRECTED)]),
        ),
    ) as model:
        seen = await research(tools, model)
    assert seen.ok, seen.error
    found = seen.content
    assert found["answer"] == "Łódź"
    assert found["report"] == "Jana Nowak made it. [1]\nShe is from Łódź. [2][1]"
    assert found["citations"] == [
        {"number": 1, "source": "film", "quote": DIRECTED, "title": "Night Train"},
        {"number": 2, "source": "nowak", "quote": BORN, "title": "Jana Nowak"},
    ]
    assert (found["stopped"], found["rounds"]) == ("enough", 2)
    assert found["queries"] == ["the film of 1959", "Jana Nowak born"]
    assert found["read"] == ["film", "nowak"]
    assert not {"dropped", "unsupported", "notes"} & set(found)
    assert seen.usage.calls == 5  # its own, and in each round one search and one reading


async def test_a_citation_that_does_not_hold_is_dropped_and_said(tools: list[ToolSpec]) -> None:
    with ScriptedModel(
        plan("Night Train film"),
        reflect(
            ("Nowak directed it.", "S1", DIRECTED),
            ("It won a prize.", "S1", "It won the Golden Bear in Berlin."),
            ("Nowak was born in Łódź.", "nowak", BORN),
            ("A year.", "S1", "1959"),
            enough=True,
        ),
        report(
            "Łódź",
            ("Nowak made it.", [("S1", DIRECTED), ("S1", "It was directed by Jan Kowalski.")]),
            ("She is from Łódź.", [("S9", BORN)]),
        ),
    ) as model:
        seen = await research(tools, model)
    found = seen.content
    assert found["report"] == "Nowak made it. [1]\nShe is from Łódź. [unsupported]"
    assert found["unsupported"] == ["She is from Łódź."]
    assert [(row["source"], row["why"]) for row in found["dropped"]] == [
        ("film", "the quote does not occur in what was read of it"),
        ("nowak", "this source was not read"),
        ("film", "the quote is shorter than 12 characters"),
        ("film", "the quote does not occur in what was read of it"),
        ("S9", "this source was not read"),
    ]
    assert "Golden Bear" not in model.requests[-1].messages[-1].text


async def test_searches_and_readings_of_a_round_run_side_by_side(write_lines: Callable[..., Path], cache: Path) -> None:
    import asyncio

    under_way, most = 0, 0

    async def counted() -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.05)
        under_way -= 1

    def searching(site: str) -> ToolSpec:
        async def search(arguments: dict[str, Any]) -> dict[str, Any]:
            await counted()
            hit = {"id": f"https://{site}.example/", "title": site, "text": "part"}
            return {"results": [{"query": query, "passages": [hit]} for query in arguments["queries"]]}

        return ToolSpec.from_schema(f"{site}/search", "Searches a site.", {"type": "object"}, search)

    async def fetch(arguments: dict[str, Any]) -> dict[str, Any]:
        await counted()
        return {"url": "https://moved.example/", "title": "T", "text": f"The page {arguments['url']} says much."}

    pages = ToolSpec.from_schema("web/fetch", "Fetches a page.", {"type": "object"}, fetch)
    sites = [searching(site) for site in ("one", "two", "three")]
    names = AgentTools(tuple(site.name for site in sites), "", "web/fetch")
    quote = "The page https://two.example/ says much."
    with ScriptedModel(
        plan("a", "b"),
        reflect(("It says much.", "S2", quote), enough=True),
        report("much", ("It says much.", [("https://two.example/", quote)])),
    ) as model:
        seen = await research([*sites, pages], model, names=names)
    assert seen.content["citations"][0]["source"] == "https://two.example/"
    assert seen.usage.calls == 1 + 3 + 3
    assert most == 3


async def test_many_findings_are_chosen_from_by_the_model(write_lines: Callable[..., Path], cache: Path) -> None:
    rows = [{"id": f"n{n}", "text": f"The bird number {n} is a bird of its own."} for n in range(8)]
    tools = corpus_tools(write_lines(rows), cache=cache, provider="search")
    quote = "The bird number 5 is a bird"
    with ScriptedModel(
        plan("bird"),
        json.dumps({"read": ["S99", "S6"]}),
        reflect(("Five.", "S6", quote), enough=True),
        report("5", ("Five.", [("S6", quote)])),
    ) as model:
        seen = await research(tools, model, limits=ResearchLimits(reads=2, top_k=8))
    assert seen.content["read"] == ["n5"]


async def test_it_ends_when_nothing_new_turns_up(tools: list[ToolSpec]) -> None:
    with ScriptedModel(
        plan("Night Train film"),
        reflect(("Nowak directed it.", "S1", DIRECTED), ask=("night train FILM",)),
        report("", ("Nowak directed it; her birth is open.", [("S1", DIRECTED)])),
    ) as model:
        seen = await research(tools, model)
    assert (seen.content["stopped"], seen.content["rounds"]) == ("nothing_new", 1)


async def test_it_ends_after_its_rounds(tools: list[ToolSpec]) -> None:
    with ScriptedModel(
        plan("Night Train film"),
        reflect(("Nowak directed it.", "S1", DIRECTED), ask=("Jana Nowak",)),
        report("", ("Nowak directed it.", [("S1", DIRECTED)])),
    ) as model:
        seen = await research(tools, model, limits=ResearchLimits(rounds=1))
    assert (seen.content["stopped"], seen.content["rounds"]) == ("rounds", 1)


async def test_it_does_not_believe_that_it_is_enough_without_a_finding(tools: list[ToolSpec]) -> None:
    with ScriptedModel(
        plan("Night Train film"), reflect(enough=True, ask=("Jana Nowak",)), reflect(enough=True)
    ) as model:
        seen = await research(tools, model)
    assert seen.content["stopped"] == "nothing_new"
    assert seen.content["answer"] == ""
    assert "nothing that was read answers the question" in seen.content["notes"]


async def test_what_cannot_be_read_is_not_cited_and_not_tried_again(tools: list[ToolSpec]) -> None:
    tried: list[list[str]] = []

    async def read(arguments: dict[str, Any]) -> dict[str, Any]:
        tried.append(arguments["ids"])
        kept = [row for row in FILMS if row["id"] in arguments["ids"] and row["id"] != "nowak"]
        return {"passages": kept, "unknown": ["nowak"]}

    failing = ToolSpec.from_schema("search/failing", "Reads all but one.", {"type": "object"}, read)
    with ScriptedModel(
        plan("film of 1959", "Polish director"),
        reflect(("Nowak directed it.", "film", DIRECTED), ask=("Jana Nowak", "song of 1951")),
        reflect(enough=True),
        report("", ("Nowak directed it.", [("film", DIRECTED), ("nowak", BORN)])),
    ) as model:
        seen = await research([*tools, failing], model, names=AgentTools(read="search/failing", fetch=""))
    assert tried == [["film", "nowak"], ["other"]]
    assert seen.content["read"] == ["film", "other"]
    assert [row["source"] for row in seen.content["citations"]] == ["film"]
    assert seen.content["dropped"][0]["why"] == "this source was not read"


async def test_a_reading_tool_that_is_not_there_is_said(tools: list[ToolSpec]) -> None:
    with ScriptedModel(plan("Night Train film")) as model:
        seen = await research(tools, model, names=AgentTools(("search/search",), "search/gone", ""))
    assert seen.content["read"] == []
    assert "search/gone" in seen.content["notes"][0]


async def test_without_a_reading_tool_what_was_shown_is_what_was_read(tools: list[ToolSpec]) -> None:
    with ScriptedModel(
        plan("Night Train film"),
        reflect(("Nowak directed it.", "S1", DIRECTED), enough=True),
        report("", ("Nowak directed it.", [("S1", DIRECTED)])),
    ) as model:
        seen = await research(tools, model, names=AgentTools(read="", fetch=""))
    assert seen.content["citations"][0]["source"] == "film"
    assert seen.usage.calls == 2


# -- budgets and failures ----------------------------------------------------------------------------------------------


async def test_a_part_of_the_budget_is_kept_for_writing(tools: list[ToolSpec]) -> None:
    turns: list[Any] = [
        plan("Night Train film"),
        reflect(("Nowak directed it.", "S1", DIRECTED), ask=("Jana Nowak born",)),
        report("", ("Nowak directed it.", [("S1", DIRECTED)])),
    ]
    with ScriptedModel(*turns) as model:
        seen = await research(tools, model, budget=Budget(calls=4), limits=ResearchLimits(reserve=0.5))
    assert (seen.content["stopped"], seen.content["rounds"]) == ("budget: calls", 1)
    assert seen.content["citations"]


async def test_when_the_budget_ends_while_reflecting_the_findings_so_far_are_given(tools: list[ToolSpec]) -> None:
    def spend(request: Any) -> Reply:
        text = reflect(("Nowak directed it.", "S1", DIRECTED), ask=("Jana Nowak born",))
        return Reply(text, usage=Usage(input_tokens=100_000, output_tokens=10))

    model = ScriptedModel(plan("Night Train film"), spend, strict=False)
    seen = await research(tools, model, budget=Budget(tokens=20_000))
    assert seen.ok, seen.error
    assert seen.content["report"] == "Nowak directed it. [1]"
    assert seen.content["stopped"] == "budget: tokens"
    assert "no report was written, these are the findings" in seen.content["notes"][0]
    assert len(model.requests) == 2


@pytest.mark.slow
async def test_little_time_left_ends_the_rounds(tools: list[ToolSpec]) -> None:
    import asyncio

    async def slowly(request: Any) -> str:
        await asyncio.sleep(1.6)
        return reflect(("Nowak directed it.", "S1", DIRECTED), ask=("Jana Nowak born",))

    with ScriptedModel(
        plan("Night Train film"), slowly, report("", ("Nowak directed it.", [("S1", DIRECTED)]))
    ) as model:
        seen = await research(tools, model, budget=Budget(seconds=8.0), limits=ResearchLimits(reserve=0.9))
    assert seen.content["stopped"] == "time"


async def test_a_planner_that_fails_leaves_the_question_to_search_for(tools: list[ToolSpec]) -> None:
    with ScriptedModel(
        DOWN,
        reflect(("Nowak directed it.", "film", DIRECTED), enough=True),
        report("", ("Nowak directed it.", [("film", DIRECTED)])),
    ) as model:
        seen = await research(tools, model)
    assert seen.content["queries"] == [TASK["subtask"]]
    assert "searched for the question as it stands" in seen.content["notes"][0]


async def test_a_reflection_that_fails_ends_with_what_is_known(tools: list[ToolSpec]) -> None:
    with ScriptedModel(
        plan("Night Train film"),
        reflect(("Nowak directed it.", "S1", DIRECTED), ask=("Jana Nowak born",)),
        DOWN,
        report("", ("Nowak directed it.", [("S1", DIRECTED)])),
    ) as model:
        seen = await research(tools, model)
    assert seen.content["stopped"] == "model_failed"
    assert seen.content["citations"]


async def test_without_a_search_tool_it_fails_with_that_reason() -> None:
    seen = await research([], ScriptedModel(plan("a")))
    assert "search/search" in seen.error.message  # type: ignore[union-attr]


async def test_the_writer_may_be_another_model(tools: list[ToolSpec]) -> None:
    with (
        ScriptedModel(plan("Night Train film"), reflect(("Nowak directed it.", "S1", DIRECTED), enough=True)) as model,
        ScriptedModel(report("", ("Nowak directed it.", [("S1", DIRECTED)]))) as writer,
    ):
        agent = deep_research(AgentTools(fetch=""))
        seen = await run_call(agent, TASK, pool=make_pool(*tools, agent, default=model, writer=writer))
    assert seen.ok


async def test_it_reads_pages_of_the_web_through_fetch_page(file_server: str) -> None:
    page = f"{file_server}/page.html"

    async def search(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"results": [{"query": "q", "passages": [{"id": page, "title": "A page", "text": "Some"}]}]}

    found = ToolSpec.from_schema("search/web_search", "Searches the web.", {"type": "object"}, search)
    fetch = fetch_page_tool(provider="search", allowed=["127.0.0.1/32"])
    with ScriptedModel(
        plan("page"),
        reflect(("There is text.", "S1", "Some text."), enough=True),
        reflect(("There is text.", "S1", "Some text."), enough=True),
        strict=False,
    ) as model:
        seen = await research([found, fetch], model, names=AgentTools(("search/web_search",), "", "search/fetch_page"))
    assert seen.content["read"] == [page]
    assert seen.content["citations"] == [{"number": 1, "source": page, "quote": "Some text.", "title": "A page"}]


# -- citations ---------------------------------------------------------------------------------------------------------

TEXT = "The “great” owl —\n  a night bird — hunts mice. It is *not* seen by day."


@pytest.mark.parametrize(
    ("quote", "stands"),
    [
        ('The "great" owl - a night bird', True),
        ("THE GREAT OWL", False),
        ("the “great” owl", True),
        ("it is not seen by day", True),
        ("It is seen by day", False),
        ("The “great” owl … hunts mice.", True),
        ("hunts mice ... The “great” owl", False),
        ("a night bird [...] not seen", True),
        ("…", False),
        ("", False),
        ("hunts mice.”", True),
        ("owl hunts mice", False),
    ],
)
def test_a_quote_stands_where_its_words_stand(quote: str, stands: bool) -> None:
    assert stands_in(quote, TEXT) is stands


def test_a_source_that_is_shorter_than_a_quote_must_be_is_quoted_whole() -> None:
    read = {"s": Source("s", "", "Yes, 1921.")}
    assert why_dropped(Citation("s", "Yes, 1921."), read) == ""
    assert "shorter" in why_dropped(Citation("s", "1921"), read)
    assert "not read" in why_dropped(Citation("t", "Yes, 1921."), read)


# -- conformance -------------------------------------------------------------------------------------------------------


class Reporting(Model):
    """Answers the example, whatever it is asked."""

    async def chat(self, request: Any) -> Reply:
        asked = set(request.schema["properties"])
        if asked == {"queries"}:
            text = plan("Night Train film")
        elif "enough" in asked:
            text = reflect(("Nowak directed it.", "S1", DIRECTED), enough=True)
        else:
            text = report("Nowak", ("Nowak directed it.", [("S1", DIRECTED)]))
        return Reply(text, usage=Usage(input_tokens=1, output_tokens=1))


class TestDeepResearch(AgentConformance):
    """The agent does what every agent owes."""

    spec = deep_research(AgentTools(fetch=""))
    rejected = ({"subtask": 3}, {"depth": 2})
    failing = ({},)
    examples = ((TASK, lambda found: found["answer"] == "Nowak"),)

    @pytest.fixture(autouse=True)
    def _pool(self, tools: list[ToolSpec]) -> None:
        self._tools = tools

    def make_pool(self) -> Pool:
        return make_pool(*self._tools, default=Reporting(), writer=Reporting())
