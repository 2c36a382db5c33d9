"""The page on logs lists every field that a record has, under the event that has it."""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.plugins.manager import PluginManager
from concertino.testing import ScriptedModel

from .documents import DOCS

ALWAYS = {"event", "run_id"}


def listed() -> dict[str, set[str]]:
    """The fields of each event, as the page lists them."""
    page = (DOCS / "how-to" / "log-a-run.md").read_text(encoding="utf-8")
    section = page.partition("## Fields")[2].partition("\n## ")[0]
    amounts = set(re.findall(r"`(\w+)`", section.partition("Amounts are")[2].partition(".")[0]))
    found: dict[str, set[str]] = {}
    for events, fields in re.findall(r"^\| (`\w+\..*?) \| (.*) \|$", section, re.M):
        names = set(re.findall(r"`([\w.]+)`", fields))
        if like := [name for name in names if "." in name]:
            names = (names | found[like[0]]) - {like[0], "member"}
        names |= amounts if "amounts" in fields else set()
        found |= dict.fromkeys(re.findall(r"`([\w.]+)`", events), names)
    return found


@ct.tool(approval=lambda arguments: arguments["amount"] > 100, cost=ct.Cost(units=1, usd=0.1))
async def pay(amount: float) -> ct.File:
    """Pay an amount."""
    return ct.File(f"paid {amount:g}".encode(), media_type="text/plain", name="receipt.txt")


@ct.agent
async def ask(ctx: ct.Context, text: str) -> str:
    """Ask a model."""
    await ctx.call("busy", {})
    await ctx.model("unpriced").chat(text)
    return (await ctx.model("helper").chat(text)).text


@ct.tool
async def busy() -> str:
    """Be busy at first."""
    busy_times.append(1)
    if len(busy_times) == 1:
        raise ct.ProviderError("busy", failure=ct.FailureClass.NOT_EXECUTED, retry_after=0.0)
    return "done"


busy_times: list[int] = []


class Helper(ct.Model):
    """Is busy at first."""

    asked = 0

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        self.asked += 1
        if self.asked == 1:
            raise ct.ProviderError("busy", failure=ct.FailureClass.NOT_EXECUTED, retry_after=0.0)
        return ct.Reply("hm", usage=ct.Usage(input_tokens=5, output_tokens=2, cached_tokens=1))


async def everything(folder: Path) -> None:
    """Runs in which all is logged that can be."""
    calls: list[tuple[str, dict[str, Any]]] = [
        ("pay", {"amount": 5}),
        ("pay", {"amount": 500}),
        ("pay", {}),
        ("ask", {"text": "?"}),
    ]
    helper = Helper()
    spec = ct.ModelSpec("m/helper", lambda: helper, prices=ct.Prices(1.0, 2.0))
    unpriced = ct.ModelSpec("m/unpriced", lambda: ScriptedModel("hm", strict=False))
    pool = ct.Pool.of(pay, ask, busy, spec, unpriced).bind(helper="m/helper", unpriced="m/unpriced")
    path = folder / "r.trace.jsonl"
    leader = ScriptedModel(calls, "no calls at all", [("final_answer", {})], "<answer>paid</answer>", strict=False)
    question: list[str | ct.Attachment] = ["Pay.", ct.File(b"%PDF-1.4", media_type="application/pdf", name="bill.pdf")]
    session = ct.Session("talk", folder)
    await ct.Orchestrator(leader).run(question, pool=pool, trace=path, budget=ct.Budget(units=9), history=session)
    leader = ScriptedModel("no calls at all", [("final_answer", {})], "<answer>paid</answer>", strict=False)
    decisions = {"1.2": ct.Deny("too much")}
    await ct.Orchestrator(leader).resume(path, pool=pool, decisions=decisions)
    await ct.Orchestrator(ScriptedModel()).resume(path, pool=pool, finished="recall")
    await ct.Orchestrator(ScriptedModel(strict=False)).run("q", pool=pool)  # a request that fails
    async with ct.Executor() as executor:
        run = ct.Orchestrator(ScriptedModel(), executor=executor).stepped("q", pool=pool)
        await run.fork().close()
        await run.close()


@pytest.fixture
async def logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> dict[str, set[str]]:
    """The fields of each event that were seen."""
    busy_times.clear()
    manager = PluginManager(installed=False)
    with caplog.at_level(logging.DEBUG, "concertino"):
        await everything(tmp_path)
        manager.register(type("Good", (), {}), "good")
        broken: Any = type("Broken", (), {"concertino_tools": ct.hookimpl(lambda self: 1)})
        manager.register(broken(), "broken")
        manager.specs()
    seen: dict[str, set[str]] = defaultdict(set)
    for record in caplog.records:
        if fields := vars(record).get("concertino"):
            seen[fields["event"]] |= fields.keys()
    return seen


async def test_the_page_lists_every_event_and_every_field_of_it(logged: dict[str, set[str]]) -> None:
    page = listed()
    assert logged.keys() == page.keys()
    of_plugins = {"plugin.loaded", "plugin.left_out"}
    for event, fields in logged.items():
        expected = page[event] | ALWAYS
        assert fields <= expected, event
        assert ALWAYS - ({"run_id"} if event in of_plugins else set()) <= fields, event


async def test_every_field_that_the_page_lists_is_there(logged: dict[str, set[str]]) -> None:
    """Under some event of its row: what there is none of is left out of a record."""
    alike = [("run.started", "run.resumed", "run.recalled", "run.forked"), ("run.ended", "run.suspended")]
    alike += [("plugin.loaded", "plugin.left_out")]
    for event, names in listed().items():
        group = next((each for each in alike if event in each), (event,))
        missing = names - set().union(*(logged[each] for each in group))
        # Requests have no units: only tools and agents do.
        assert missing == ({"units"} if event == "model.replied" else set()), event
