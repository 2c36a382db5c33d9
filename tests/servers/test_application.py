"""The few lines of the application page on real servers, as written; and values for which the server holds the schema.

Each server has a tiny model that knows the conversation by heart (`application_model`). It is a model of text, so the
image and the file of the lines are left out here; what a server says to them is a test of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import application_model
import concertino as ct
import launch
import pytest
from concertino_openai import model
from pydantic import BaseModel
from servers import Absent

pytestmark = pytest.mark.server

Start = Callable[[Path], launch.Server]
STARTS: dict[str, Start] = {"transformers": launch.transformers, "llama": launch.llama}
PRESETS = {"transformers": "transformers", "vllm": "vllm", "llama": "llama-cpp-python"}


class Answer(BaseModel):
    city: str
    celsius: float


class Bank:
    city = "Oslo"
    balance = 100.0


@ct.tool
def place(ctx: ct.Context[Bank]) -> str:
    """The city of the bank."""
    return ctx.deps.city


@ct.tool
def thermometer(city: str, day: str = "today") -> float:
    """The temperature in a city, in degrees Celsius."""
    return {"today": 4.5, "tomorrow": 2.0}[day]


@ct.tool(approval=True)
async def pay(ctx: ct.Context[Bank], amount: float) -> str:
    """Pay an amount."""
    ctx.deps.balance -= amount
    return f"{ctx.deps.balance:g} is left"


@pytest.fixture(scope="session")
def vllm_of_the_application() -> Iterator[launch.Starting | Absent]:
    """vLLM, or why it is not there; it comes up while tests of other servers run."""
    try:
        starting = launch.begin_vllm(application_model.model())
    except Absent as absent:
        yield absent
    else:
        yield starting
        starting.stop()


def _ready(begun: launch.Starting | Absent | None) -> launch.Server:
    assert begun is not None
    if isinstance(begun, Absent):
        raise begun
    return begun.ready()


@pytest.fixture(scope="module", params=[*STARTS, "vllm"])
def server(request: pytest.FixtureRequest) -> Iterator[launch.Server]:
    of_vllm = [item for item in request.session.items if item.path == request.path and item.name.endswith("[vllm]")]
    begun: launch.Starting | Absent | None = request.getfixturevalue("vllm_of_the_application") if of_vllm else None
    try:
        started = _ready(begun) if request.param == "vllm" else STARTS[request.param](application_model.model())
    except Absent as absent:
        pytest.skip(str(absent))
    with started:
        yield started


@pytest.fixture
def lines(server: launch.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the environment of the lines holds: the address, and a key that no server here looks at."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "of-a-local-server")


POOL = ct.Pool.of(place, thermometer)


def spec_of(server: launch.Server) -> ct.ModelSpec:
    """The server's model, declared with what is known of servers of its kind."""
    return model("m", server=PRESETS[server.kind], model=server.model, base_url=server.base_url, timeout=60)


@pytest.mark.usefixtures("lines")
async def test_the_lines_run_as_written() -> None:
    leader = ct.Orchestrator("openai/gpt-5.4-mini", instructions="Answer in French.", answer_type=Answer)
    run = await leader.run("How warm is it there?", pool=POOL, deps=Bank())
    assert run.output == Answer(city="Oslo", celsius=4.5), run.detail
    assert [str(seen.status) for seen in run.observations] == ["OK", "OK"]

    more = await leader.run("And tomorrow?", pool=POOL, history=run)
    assert more.output == Answer(city="Oslo", celsius=2.0), more.detail

    events = [event async for event in leader.stream("What is this?", pool=POOL)]
    pieces = [event.text for event in events if isinstance(event, ct.events.TextDelta) and event.kind == "answer"]
    assert "".join(pieces) == '{"city": "a cat", "celsius": 38.5}'


async def requests_of_an_answer_for_tomorrow(leader: ct.Orchestrator) -> list[str]:
    """Ask what the model first answers with a wrong type; the requests for another answer."""
    run = await leader.run("And tomorrow?", pool=POOL)
    assert run.output == Answer(city="Oslo", celsius=2.0), run.detail
    asked = [event.call_id for event in run.events if isinstance(event, ct.events.Asked)]
    return [each for each in asked if each.startswith("answer")]


@pytest.mark.usefixtures("lines")
async def test_an_answer_of_a_wrong_type_is_asked_for_again_and_never_given_out(server: launch.Server) -> None:
    """The lines name no kind of server, so one may refuse the form in which OpenAI takes a schema; then it has none."""
    leader = ct.Orchestrator("openai/gpt-5.4-mini", answer_type=Answer)
    again = ["answer.1", "answer.1.unheld"] if server.kind == "llama" else ["answer.1"]
    assert await requests_of_an_answer_for_tomorrow(leader) == again


async def test_a_server_that_is_known_gets_the_schema_of_an_answer_in_its_own_form(server: launch.Server) -> None:
    leader = ct.Orchestrator(spec_of(server), answer_type=Answer)
    assert await requests_of_an_answer_for_tomorrow(leader) == ["answer.1"]


@pytest.mark.usefixtures("lines")
async def test_a_person_approves_one_call_and_denies_the_other() -> None:
    bank = Bank()
    cashier = ct.Orchestrator("openai/gpt-5.4-mini", approve=lambda request: request.arguments["amount"] < 50)
    paid = await cashier.run("Pay 30, then 300.", pool=ct.Pool.of(pay), deps=bank)
    assert [str(seen.status) for seen in paid.observations] == ["OK", "EXEC_ERR"]
    assert (bank.balance, paid.answer) == (70, "30 is paid, 300 is not.")


@pytest.mark.usefixtures("lines")
async def test_a_suspended_run_goes_on_with_its_decisions(tmp_path: Path) -> None:
    bank, trace = Bank(), tmp_path / "bills.jsonl"
    leader = ct.Orchestrator("openai/gpt-5.4-mini")
    held = await leader.run("Pay 30, then 300.", pool=ct.Pool.of(pay), deps=bank, trace=trace)
    assert (held.stop, bank.balance) == ("suspended", 100)
    decisions = {call.call_id: call.arguments["amount"] < 50 for call in held.pending}
    done = await leader.resume(trace, pool=ct.Pool.of(pay), deps=bank, decisions=decisions)
    assert (done.answer, bank.balance) == ("30 is paid, 300 is not.", 70)


@pytest.mark.usefixtures("lines")
async def test_an_image_for_a_model_of_text_ends_the_run_with_the_reason() -> None:
    leader = ct.Orchestrator("openai/gpt-5.4-mini", answer_type=Answer)
    picture = ct.Image(b"\x89PNG\r\n\x1a\n...", name="cat.png")
    run = await leader.run(["What is this?", picture], pool=POOL, budget=ct.Budget(seconds=60))
    assert run.output is None or isinstance(run.output, Answer)
    assert run.ok or run.detail


def asking(kind: Any, question: str) -> ct.AgentSpec:
    """An agent that asks its model for a value of a type; the request holds the schema."""

    @ct.agent(models=("worker",))
    async def ask(ctx: ct.Context[Any]) -> Any:
        """Ask for data."""
        reply = await ctx.model("worker").chat(question, schema=kind, sampling=ct.Sampling(max_tokens=60))
        return reply.data

    return ask


async def asked(server: launch.Server, agent: ct.AgentSpec) -> ct.Observation:
    async with ct.Executor() as executor:
        (seen,) = await executor.run([ct.Call("ask", {})], ct.Pool.of(agent, spec_of(server), worker="m"))
    return seen


@pytest.mark.parametrize(
    ("kind", "question", "value"),
    [
        (Answer, "Give the weather as data.", {"city": "Oslo", "celsius": 4.5}),
        (list[str], "Give two cities.", ["Oslo", "Rome"]),
        (dict[str, str | float], "Give the weather as data.", {"city": "Oslo", "celsius": 4.5}),
        (
            {"type": "object", "properties": {"city": {"const": "Oslo"}}, "required": ["city"]},
            "Give it without the degrees.",
            {"city": "Oslo"},
        ),
    ],
    ids=["model", "list", "dict", "schema"],
)
async def test_a_value_of_a_type_is_asked_for_with_a_schema(
    server: launch.Server, kind: Any, question: str, value: Any
) -> None:
    seen = await asked(server, asking(kind, question))
    assert (seen.content, seen.error) == (value, None)


async def test_a_reply_that_breaks_the_schema_is_no_value_whatever_the_server_promised(server: launch.Server) -> None:
    """The model leaves a field out. A server that enforces the schema makes it write one; the others let it pass."""
    seen = await asked(server, asking(Answer, "Give it without the degrees."))
    if seen.ok:
        assert isinstance(Answer.model_validate(seen.content), Answer)
        assert server.kind != "transformers"
    else:
        assert seen.error is not None
        assert seen.error.code in ("bad_reply", "truncated")
