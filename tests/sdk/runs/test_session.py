"""Sessions: conversations that are kept, continued, forked and deleted."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.testing import ScriptedModel

PNG = b"\x89PNG\r\n\x1a\n" + b"cat"


@ct.tool(cost=ct.Cost(usd=0.25))
def look(what: str) -> str:
    """Look at something."""
    return f"{what} is fine"


POOL = ct.Pool.of(look)
FINAL = [("final_answer", {})]


def leading(*turns: Any, slow: float = 0) -> tuple[ct.Orchestrator, ScriptedModel]:
    async def wait(request: ct.ChatRequest) -> Any:
        await asyncio.sleep(slow)
        return turns[0]

    model = ScriptedModel(*([wait, *turns[1:]] if slow else turns))
    return ct.Orchestrator(model), model


async def ask(session: ct.Session, question: str, answer: str, **options: Any) -> ct.Run:
    leader, _ = leading(f"<answer>{answer}</answer>")
    return await leader.run(question, pool=POOL, history=session, **options)


async def test_a_conversation_goes_on_in_another_process(tmp_path: Path) -> None:
    leader, _ = leading([("look", {"what": "the sea"})], FINAL, "<answer>calm</answer>")
    first = await leader.run("How is the sea?", pool=POOL, history=ct.Session("ada", tmp_path))
    again = ct.Session("ada", tmp_path)  # as another process would open it
    leader, model = leading("<answer>calm too</answer>")
    await leader.run("And tomorrow?", pool=POOL, history=again)
    told = [message.text for message in model.requests[0].messages[1:]]
    assert told[0] == ('How is the sea?\n\nWhat calls returned:\n1.1 look {"what": "the sea"} OK: "the sea is fine"')
    assert "calm" in told[1]
    assert told[2].startswith("And tomorrow?")
    assert [(turn.question, turn.answer) for turn in again.turns] == [
        ("How is the sea?", "calm"),
        ("And tomorrow?", "calm too"),
    ]
    assert ct.TraceStore(tmp_path).load(first.id).setup["session"] == "ada"
    assert again.usage.usd == 0.25


async def test_two_runs_at_once_take_turns_or_the_second_is_refused(tmp_path: Path) -> None:
    session = ct.Session("ada", tmp_path)
    leader, _ = leading("<answer>one</answer>", slow=0.3)
    slow = asyncio.create_task(leader.run("first", pool=POOL, history=session))
    await asyncio.sleep(0.1)
    with pytest.raises(ct.SessionBusy, match="session 'ada': another run works on it; wait for it, or fork"):
        await ask(ct.Session("ada", tmp_path, busy="refuse"), "q", "x")
    with pytest.raises(ct.SessionBusy):
        ct.Orchestrator(ScriptedModel()).start("q", pool=POOL, history=session)
    leader, model = leading("<answer>two</answer>")
    await leader.run("second", pool=POOL, history=ct.Session("ada", tmp_path))
    await slow
    assert [turn.question for turn in session.turns] == ["first", "second"]
    assert "first" in model.requests[0].messages[1].text, "the second knows the first"


async def test_a_run_that_is_refused_gives_the_session_back(tmp_path: Path) -> None:
    session = ct.Session("ada", tmp_path)
    with pytest.raises(ct.UsageError):
        await ask(session, "", "x")
    await asyncio.wait_for(ask(session, "q", "x"), 5)
    assert len(session.turns) == 1


async def test_forks_go_on_independently(tmp_path: Path) -> None:
    session = ct.Session("ada", tmp_path)
    await ask(session, "one", "1")
    twin = session.fork("ada-2")
    await ask(twin, "two", "2")
    assert [turn.question for turn in session.turns] == ["one"]
    assert [turn.question for turn in twin.turns] == ["one", "two"]
    assert {found.name for found in ct.Session.all(tmp_path)} == {"ada", "ada-2"}
    with pytest.raises(ct.UsageError, match="a session 'ada-2' exists"):
        session.fork("ada-2")


async def test_deleting_keeps_the_traces_that_a_fork_holds(tmp_path: Path) -> None:
    session = ct.Session("ada", tmp_path)
    shared = await ask(session, "one", "1")
    session.fork("ada-2")
    own = await ask(session, "two", "2")
    session.delete(traces=True)
    assert session.turns == []
    store = ct.TraceStore(tmp_path)
    assert store.path_for(shared.id).is_file()
    assert not store.path_for(own.id).exists()


async def test_the_budget_of_a_session_adds_up_over_its_turns(tmp_path: Path) -> None:
    session = ct.Session("ada", tmp_path, budget=ct.Budget(calls=2))
    for expected in (["OK"], ["OK"]):
        leader, _ = leading([("look", {"what": "x"})], FINAL, "<answer>a</answer>")
        run = await leader.run("q", pool=POOL, history=session)
        assert [seen.status.value for seen in run.observations] == expected
    with pytest.raises(ct.BudgetError, match="session 'ada': its budget of 2 calls is used up"):
        await ask(session, "q", "x")


async def test_a_suspended_run_adds_its_turn_when_it_has_been_resumed(tmp_path: Path) -> None:
    pool = POOL.adjust("look", approval=True)
    session = ct.Session("ada", tmp_path)
    leader, _ = leading([("look", {"what": "x"})])
    run = await leader.run("q", pool=pool, history=session)
    assert run.stop == "suspended"
    assert session.turns == []
    leader, _ = leading(FINAL, "<answer>done</answer>")
    assert run.path is not None
    await leader.resume(run.path, pool=pool, decisions={"1.1": True})
    assert [turn.answer for turn in session.turns] == ["done"]


async def test_an_image_of_an_earlier_turn_is_shown_again(tmp_path: Path) -> None:
    session = ct.Session("ada", tmp_path)
    leader, _ = leading("<answer>a cat</answer>")
    await leader.run(["What?", ct.Image(PNG, name="cat.png")], pool=POOL, history=session)
    leader, model = leading("<answer>grey</answer>")
    await leader.run("Its colour?", pool=POOL, history=ct.Session("ada", tmp_path))
    assert [attachment.data for attachment in model.requests[0].messages[1].attachments] == [PNG]


async def test_a_torn_line_is_cut_away_and_damage_says_where(tmp_path: Path) -> None:
    session = ct.Session("ada", tmp_path)
    await ask(session, "one", "1")
    with session.path.open("ab") as file:
        file.write(b'{"run_id": "half')
    assert len(session.turns) == 1
    await ask(session, "two", "2")
    assert [turn.question for turn in session.turns] == ["one", "two"]
    lines = session.path.read_bytes().splitlines(keepends=True)
    session.path.write_bytes(lines[0] + b"nonsense\n" + lines[2])
    with pytest.raises(ct.TraceError, match=r"ada\.session\.jsonl: record 1 and all after it lost"):
        _ = session.turns


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", 3])
def test_a_name_that_is_no_file_name_is_refused(name: Any) -> None:
    with pytest.raises(ct.UsageError, match="session name"):
        ct.Session(name)
