"""A run in the log: a few lines at INFO, every call at DEBUG, fields for machines, never a secret."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.testing import ScriptedModel
from concertino.testing.hostile_texts import HOSTILE_TEXTS

from .conftest import FINAL, round_of

Led = Callable[..., ct.Orchestrator]
ANSWER = "<answer>3</answer>"
ADD = round_of(("add", {"a": 1, "b": 2}))


class Log(logging.Handler):
    """Records of the package, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    @property
    def fields(self) -> list[dict[str, Any]]:
        return [vars(record)["concertino"] for record in self.records]

    def of(self, event: str) -> list[dict[str, Any]]:
        return [fields for fields in self.fields if fields["event"] == event]

    @property
    def texts(self) -> list[str]:
        return [record.getMessage() for record in self.records]

    @property
    def everything(self) -> str:
        """All that any formatter could write."""
        return "\n".join([*self.texts, json.dumps(self.fields, ensure_ascii=False)])


@pytest.fixture
def log() -> Iterator[Callable[[int], Log]]:
    """`log(level)`: what is logged from now on."""
    logger, handlers, before = logging.getLogger("concertino"), [], logging.getLogger("concertino").level

    def begin(level: int) -> Log:
        handler = Log()
        handlers.append(handler)
        logger.addHandler(handler)
        logger.setLevel(level)
        return handler

    yield begin
    for handler in handlers:
        logger.removeHandler(handler)
    logger.setLevel(before)


Listen = Callable[[int], Log]


async def test_at_info_a_run_is_told_in_three_lines(pool: ct.Pool, led_by: Led, log: Listen, tmp_path: Path) -> None:
    seen = log(logging.INFO)
    turns = round_of(("add", {"a": 1, "b": 2}), ("ad", {})), FINAL, ANSWER
    budget = ct.Budget(usd=0.5, calls=20)
    run = await led_by(*turns).run("What is\n1 + 2?", pool=pool, budget=budget, trace=tmp_path, run_id="r1")
    assert seen.texts[0] == (
        'r1 started: "What is 1 + 2?"; parallel-rounds led by m/lead, 5 members, budget: calls=20, usd=0.5'
    )
    assert seen.texts[1] == "r1 round 1: 2 calls: add, ad"
    assert seen.texts[2].startswith("r1 ended: answered after 0.")
    assert seen.texts[2].endswith("calls: 1 OK, 1 PARSE_ERR; 3 requests; $0.0106, 1 u, 300 + 30 tokens")
    assert {(record.name, record.levelname) for record in seen.records} == {("concertino.run", "INFO")}
    started, planned, ended = seen.fields
    assert started == {
        "event": "run.started",
        "run_id": "r1",
        "question": "What is 1 + 2?",
        "strategy": "parallel-rounds",
        "leader": "m/lead",
        "members": 5,
        "budget": {"calls": 20, "usd": 0.5},
        "trace": str(run.path),
    }
    assert planned["names"] == ["add", "ad"]
    assert (ended["stop"], ended["answer"], ended["statuses"]) == ("answered", "3", {"OK": 1, "PARSE_ERR": 1})
    assert (ended["calls"], ended["requests"]) == (2, 3)
    assert ended["usd"] == pytest.approx(run.usage.usd)
    assert ended["seconds"] == pytest.approx(run.seconds, abs=0.001)


async def test_at_debug_every_call_and_request_is_told(pool: ct.Pool, led_by: Led, log: Listen) -> None:
    seen = log(logging.DEBUG)
    turns = round_of(("add", {"a": 1, "b": 2}), ("ask_worker", {"question": "?"}), ("hang", {})), FINAL, ANSWER
    run = await led_by(*turns).run("q", pool=pool)
    assert {fields["run_id"] for fields in seen.fields} == {run.id}
    began = {fields["call_id"]: fields for fields in seen.of("call.started")}
    ended = {fields["call_id"]: fields for fields in seen.of("call.ended")}
    assert began.keys() == ended.keys() == {"1.1", "1.2", "1.3"}
    assert began["1.1"]["arguments"] == "a=1, b=2"
    assert (ended["1.1"]["status"], ended["1.1"]["units"], ended["1.1"]["attempts"]) == ("OK", 1, 1)
    assert (ended["1.3"]["status"], ended["1.3"]["code"]) == ("TIMEOUT", "deadline")
    asked = seen.of("model.asked")
    assert [fields["call_id"] for fields in asked] == ["ask.1", "1.2/1", "ask.2", "ask.3"]
    replied = {fields["call_id"]: fields for fields in seen.of("model.replied")}
    assert (replied["ask.1"]["role"], replied["ask.1"]["input_tokens"]) == ("orchestrator", 100)
    assert (replied["1.2/1"]["parent"], replied["1.2/1"]["model"]) == ("1.2", "m/worker")
    # What an agent's model does is not counted as a call of the run.
    assert seen.of("run.ended")[0]["statuses"] == {"OK": 2, "TIMEOUT": 1}
    assert seen.of("run.ended")[0]["requests"] == 4
    by_logger = {fields["event"]: record.name for record, fields in zip(seen.records, seen.fields, strict=True)}
    assert by_logger["call.ended"] == "concertino.call"
    assert by_logger["model.asked"] == "concertino.model"


async def test_repeated_attempts_are_told(log: Listen) -> None:
    class Flaky(ct.Model):
        asked = 0

        async def chat(self, request: ct.ChatRequest) -> ct.Reply:
            self.asked += 1
            if self.asked == 1:
                raise ct.ProviderError(
                    "busy, sk-abcdefghijklmnop", failure=ct.FailureClass.NOT_EXECUTED, retry_after=0.0
                )
            return ct.Reply(ANSWER if self.asked == 3 else FINAL)

    seen = log(logging.DEBUG)
    model = Flaky()
    await ct.Orchestrator(model).run("q", pool=ct.Pool.of(plain))
    (repeated,) = seen.of("model.retried")
    assert (repeated["attempt"], repeated["failure"]) == (1, "not_executed")
    assert repeated["message"] == "busy, [key]"
    assert seen.of("model.replied")[0]["attempts"] == 2


@ct.tool
async def plain(text: str = "", api_key: str = "") -> str:
    """Give a text back."""
    return f"{text} {api_key}"


PLANTED = "correct-horse-battery-staple"


async def test_a_planted_key_is_in_no_line_and_no_field(log: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", PLANTED)

    @ct.tool
    async def leaky(api_key: str, note: str, headers: dict[str, str]) -> str:
        """Fail with what it was given."""
        raise ct.CallFailed.because(f"refused {api_key} of {note}", code=f"code-{PLANTED}")

    other = "hunter2-of-nobody"
    arguments = {"api_key": other, "note": f"my key is {PLANTED}", "headers": {"Authorization": f"Bearer {other}"}}
    turns: list[tuple[str, dict[str, Any]]] = [
        ("leaky", arguments),
        (f"tool-{PLANTED}", {}),
        ("leaky", {"api_key": {"wrong": other}}),
    ]
    seen = log(logging.DEBUG)
    leader = ScriptedModel(turns, [("final_answer", {})], f"<answer>{PLANTED}</answer>")
    run = await ct.Orchestrator(leader).run(f"Use {PLANTED}!", pool=ct.Pool.of(leaky))
    assert PLANTED in str(run.to_json())  # the run itself keeps what it was given
    assert PLANTED not in seen.everything
    assert len(seen.of("call.ended")) == 3
    # The key under its name is hidden; in the message of a plugin it is a word like any other.
    assert other not in " ".join(fields["arguments"] for fields in seen.of("call.started"))


@pytest.mark.parametrize("hostile", HOSTILE_TEXTS, ids=range(len(HOSTILE_TEXTS)))
async def test_whatever_a_model_writes_a_line_is_one_short_line(hostile: str, log: Listen) -> None:
    seen = log(logging.DEBUG)
    leader = ScriptedModel(
        [("plain", {"text": hostile}), (hostile or "?", {})],
        [("final_answer", {})],
        f"<answer>{hostile}</answer>",
        strict=False,
    )
    await ct.Orchestrator(leader).run(hostile if hostile.strip() else "q", pool=ct.Pool.of(plain), run_id="r\n1")
    assert len(seen.texts) > 4
    for text in seen.texts:
        assert len(text.splitlines()) == 1
        assert len(text) < 800
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]", text)
        text.encode()
    json.dumps(seen.fields).encode()
    assert all(len(json.dumps(fields)) < 6_000 for fields in seen.fields)


async def test_a_suspended_run_is_told_so_and_resumed_with_what_was_decided(log: Listen, tmp_path: Path) -> None:
    @ct.tool(approval=True)
    async def pay(amount: float) -> str:
        """Pay an amount."""
        return f"paid {amount:g}"

    seen = log(logging.INFO)
    pool = ct.Pool.of(pay)
    path = tmp_path / "r.trace.jsonl"
    leader = ScriptedModel([("pay", {"amount": 5})], [("final_answer", {})], ANSWER, strict=False)
    run = await ct.Orchestrator(leader).run("Pay.", pool=pool, trace=path)
    assert run.stop == "suspended"
    assert [fields["event"] for fields in seen.fields] == [
        "run.started",
        "round.planned",
        "approval.asked",
        "run.suspended",
    ]
    assert "suspended (waits for approval of 1.1 pay)" in seen.texts[-1]
    seen.records.clear()
    leader = ScriptedModel([("final_answer", {})], ANSWER, strict=False)
    await ct.Orchestrator(leader).resume(path, pool=pool, decisions={"1.1": ct.Approve()})
    assert [fields["event"] for fields in seen.fields] == [
        "run.resumed",
        "round.planned",
        "approval.decided",
        "run.ended",
    ]
    assert seen.of("approval.decided")[0]["approved"] is True
    assert f"{run.id} 1.1 pay approved" in seen.texts
    assert seen.of("run.ended")[0]["stop"] == "answered"


async def test_a_run_that_crashed_or_was_cancelled_has_its_end_in_the_log(
    pool: ct.Pool, led_by: Led, log: Listen
) -> None:
    seen = log(logging.INFO)
    planned = asyncio.Event()

    def listen(event: object) -> None:
        if isinstance(event, ct.events.CallStarted):
            planned.set()

    handle = led_by(round_of(("hang", {})), FINAL, ANSWER).start("q", pool=pool, on_event=listen)
    await asyncio.wait_for(planned.wait(), 10)
    await handle.cancel()
    assert seen.of("run.ended")[0]["stop"] == "cancelled"


async def test_a_fork_is_told_as_one(pool: ct.Pool, led_by: Led, log: Listen) -> None:
    seen = log(logging.INFO)
    async with ct.Executor() as executor:
        run = led_by(executor=executor).stepped("q", pool=pool)
        twin = run.fork()
        assert [fields["event"] for fields in seen.fields] == ["run.started", "run.forked"]
        assert seen.fields[1]["run_id"] == twin.id != run.id
        await twin.close()
        await run.close()


async def test_checks_by_guards_are_told_and_are_no_calls(pool: ct.Pool, led_by: Led, log: Listen) -> None:
    @ct.guard("question")
    async def polite(question: str) -> ct.Deny | None:
        """Refuse shouting."""
        return ct.Deny("do not shout") if question.isupper() else None

    seen = log(logging.DEBUG)
    await led_by(ADD, FINAL, ANSWER, guards=[polite]).run("q", pool=pool)
    assert [fields["member"] for fields in seen.of("call.started") if fields["kind"] == "guard"] == ["polite"]
    assert seen.of("run.ended")[0]["statuses"] == {"OK": 1}


async def test_nothing_listens_to_a_run_unless_a_logger_is_enabled(
    pool: ct.Pool, led_by: Led, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []
    monkeypatch.setattr("concertino.runs.run_log.RunLog.__init__", lambda *given: made.append(given))
    logging.getLogger("concertino").setLevel(logging.WARNING)
    try:
        run = await led_by(ADD, FINAL, ANSWER).run("q", pool=pool)
    finally:
        logging.getLogger("concertino").setLevel(logging.NOTSET)
    assert run.answer == "3"
    assert made == []


async def test_one_logger_alone_can_be_enabled(pool: ct.Pool, led_by: Led, log: Listen) -> None:
    seen = log(logging.WARNING)
    logging.getLogger("concertino.call").setLevel(logging.DEBUG)
    try:
        await led_by(ADD, FINAL, ANSWER).run("q", pool=pool)
    finally:
        logging.getLogger("concertino.call").setLevel(logging.NOTSET)
    assert {record.name for record in seen.records} == {"concertino.call"}
    assert [fields["event"] for fields in seen.fields] == ["call.started", "call.ended"]


@pytest.mark.parametrize(
    ("first", "shown"),
    [
        ("", ["the pool is left out"]),
        ("logging.getLogger('concertino').addHandler(logging.NullHandler())", []),
        ("logging.basicConfig(format='%(name)s: %(message)s')", ["concertino.x: the pool is left out"]),
    ],
)
def test_a_warning_is_seen_once_where_a_program_has_not_set_logging_up(first: str, shown: list[str]) -> None:
    code = f"""
import asyncio, logging
{first}
import concertino as ct
from concertino.testing import ScriptedModel
logging.getLogger("concertino.x").info("nobody asked")
logging.getLogger("concertino.x").warning("the pool is left out")
asyncio.run(ct.Orchestrator(ScriptedModel("hi")).run("hi"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr.splitlines() == shown
