"""Routers: which model of several is asked, and which next when it fails."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import concertino as ct
import pytest
from concertino.plugins import PluginManager
from concertino.testing import ScriptedModel

from .virtual_clock import run_virtually

OUT = RuntimeError("out of order")


class Server(ct.Model):
    """Answers with its name after some seconds, or fails while it is down."""

    def __init__(self, name: str, seconds: float = 0.0) -> None:
        self.name, self.seconds = name, seconds
        self.asked = 0
        self.down = False

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        self.asked += 1
        await asyncio.sleep(self.seconds)
        if self.down:
            raise OUT
        return ct.Reply(self.name, usage=ct.Usage(input_tokens=100, output_tokens=100))

    def spec(self, prices: ct.Prices | None = None) -> ct.ModelSpec:
        return ct.ModelSpec(f"{self.name}/model", lambda: self, prices=prices)


@ct.agent(timeout=None)
async def clerk(text: str, *, ctx: ct.Context) -> str:
    """Ask the default model."""
    return (await ctx.model("default").chat(text)).text


def pool_of(policy: str, *models: ct.ModelSpec, **options: float) -> ct.Pool:
    route = ct.router("route", *(model.name for model in models), policy=policy, **options)  # type: ignore[arg-type]
    return ct.Pool.of(clerk, *models, route, default="route")


def answers(pool: ct.Pool, *steps: Callable[[], object] | float | None) -> list[str]:
    """One question per step, in order; before it the step is called, or so many seconds pass."""

    async def run() -> list[str]:
        found = []
        async with ct.Executor() as executor:
            for number, step in enumerate(steps):
                if callable(step):
                    step()
                elif step:
                    await asyncio.sleep(step)
                (seen,) = await executor.run([ct.Call("clerk", {"text": f"question {number}"})], pool)
                found.append(str(seen.content) if seen.ok else f"{seen.status} {seen.error and seen.error.code}")
        return found

    return run_virtually(run())


def test_a_fallback_asks_the_first_and_the_next_only_when_it_fails() -> None:
    first, second = Server("first"), Server("second")
    pool = pool_of("fallback", first.spec(), second.spec(), cooldown=10)
    assert answers(pool, None, lambda: setattr(first, "down", True), None) == ["first", "second", "second"]
    assert (first.asked, second.asked) == (2, 2)  # while it cools down it is not asked at all


def test_a_model_that_cools_down_is_asked_again_afterwards() -> None:
    first, second = Server("first"), Server("second")
    first.down = True
    pool = pool_of("fallback", first.spec(), second.spec(), cooldown=10)

    async def repaired_after(seconds: float) -> list[str]:
        async with ct.Executor() as executor:
            found = []
            for wait in (0, seconds):
                await asyncio.sleep(wait)
                (seen,) = await executor.run([ct.Call("clerk", {"text": f"after {wait}"})], pool)
                found.append(str(seen.content))
                first.down = False
        return found

    assert run_virtually(repaired_after(9)) == ["second", "second"]
    first.down = True
    assert run_virtually(repaired_after(11)) == ["second", "first"]


def test_a_model_cools_down_after_as_many_failures_in_a_row_as_were_allowed() -> None:
    first, second = Server("first"), Server("second")
    first.down = True
    pool = pool_of("fallback", first.spec(), second.spec(), failures=3)
    assert answers(pool, *[None] * 5) == ["second"] * 5
    assert first.asked == 3


def test_when_all_cool_down_the_one_that_is_ready_first_is_asked() -> None:
    first, second = Server("first"), Server("second")
    first.down = second.down = True
    pool = pool_of("fallback", first.spec(), second.spec())
    assert answers(pool, None, None) == ["EXEC_ERR raised"] * 2
    assert (first.asked, second.asked) == (2, 2)


def test_the_cheapest_is_asked_and_an_unknown_price_comes_last() -> None:
    dear, cheap, unknown = Server("dear"), Server("cheap"), Server("unknown")
    models = [unknown.spec(), dear.spec(ct.Prices(5, 9)), cheap.spec(ct.Prices(1, 2))]
    pool = pool_of("lowest-cost", *models)
    assert answers(pool, None, lambda: setattr(cheap, "down", True), lambda: setattr(dear, "down", True)) == [
        "cheap",
        "dear",
        "unknown",
    ]


def test_the_quickest_is_asked_once_all_were_measured_and_measured_again_later() -> None:
    slow, quick = Server("slow", 2.0), Server("quick", 0.1)
    pool = pool_of("lowest-latency", slow.spec(), quick.spec())
    assert answers(pool, None, None, None, None, 400.0) == ["slow", "quick", "quick", "quick", "slow"]


def test_each_in_turn_is_asked_in_a_round_robin() -> None:
    servers = [Server(name) for name in ("a", "b", "c")]
    assert answers(pool_of("round-robin", *(s.spec() for s in servers)), *[None] * 7) == list("abcabca")


def conversations(pool: ct.Pool, count: int, turns: int = 3) -> dict[int, list[str]]:
    """By conversation, who answered each of its turns."""

    @ct.agent(timeout=None)
    async def talker(number: int, *, ctx: ct.Context) -> list[str]:
        """Have a conversation."""
        said, found = [ct.Message("system", "Be brief."), ct.Message("user", f"question {number}")], []
        for _ in range(turns):
            found.append((await ctx.model("default").chat(said)).text)
            said += [ct.Message("assistant", found[-1]), ct.Message("user", "and then?")]
        return found

    async def run() -> dict[int, list[str]]:
        async with ct.Executor() as executor:
            calls = [ct.Call("talker", {"number": number}) for number in range(count)]
            seen = await executor.run(calls, pool.adding(talker))
            assert all(each.ok for each in seen), seen[0].error
            return {number: list(each.content) for number, each in enumerate(seen)}

    return run_virtually(run())


def test_a_conversation_sticks_to_one_server_and_goes_on_elsewhere_while_that_one_is_down() -> None:
    servers = [Server(name) for name in ("a", "b", "c")]
    found = conversations(pool_of("sticky", *(each.spec() for each in servers)), 60)
    assert all(len(set(answered)) == 1 for answered in found.values())
    assert all(8 <= each.asked / 3 <= 32 for each in servers)  # evenly, about
    servers[0].down = True
    again = conversations(pool_of("sticky", *(each.spec() for each in servers)), 60)
    for number, answered in found.items():
        assert again[number] == answered or (answered[0] == "a" and "a" not in again[number])


def test_a_server_that_comes_takes_its_share_and_moves_nothing_else() -> None:
    servers = [Server(name) for name in ("a", "b", "c")]
    before = conversations(pool_of("sticky", *(each.spec() for each in servers[:2])), 40, turns=1)
    after = conversations(pool_of("sticky", *(each.spec() for each in reversed(servers))), 40, turns=1)
    assert {who for number, (who,) in after.items() if [who] != before[number]} == {"c"}


class LastFirst:
    """Puts what was given last first; named strangers or raises where it is told to."""

    name = "last"

    def __init__(self) -> None:
        self.seen: list[tuple[str, tuple[ct.RankingEntry, ...]]] = []
        self.broken = False

    def order(self, question: str, entries: Sequence[ct.RankingEntry]) -> list[str]:
        self.seen.append((question, tuple(entries)))
        return ["nobody"] if self.broken else [entries[-1].name]


class WithRanking:
    """A plugin with one ranking."""

    def __init__(self, ranking: object) -> None:
        self.ranking = ranking

    @ct.hookimpl
    def concertino_rankings(self) -> list[object]:
        return [self.ranking]


def ranked_pool(ranking: object, monkeypatch: pytest.MonkeyPatch, policy: str = "mine/last") -> ct.Pool:
    manager = PluginManager(installed=False)
    manager.register(WithRanking(ranking), "mine")
    monkeypatch.setattr("concertino.plugins.manager.default_manager", lambda: manager)
    models = [Server(name).spec(prices) for name, prices in (("a", ct.Prices(1, 1)), ("b", None), ("c", None))]
    return pool_of(policy, *models)


def test_a_ranking_of_a_plugin_says_whom_a_router_asks_first(monkeypatch: pytest.MonkeyPatch) -> None:
    ranking = LastFirst()
    assert answers(ranked_pool(ranking, monkeypatch), None) == ["c"]
    ((question, entries),) = ranking.seen
    assert question == "question 0"
    assert [entry.name for entry in entries] == ["a/model", "b/model", "c/model"]
    assert [entry.usd is None for entry in entries] == [False, True, True]


def test_models_are_asked_in_the_order_given_if_a_ranking_fails(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ranking = LastFirst()
    ranking.broken = True
    assert answers(ranked_pool(ranking, monkeypatch), None) == ["a"]
    assert "its ranking failed; asking in the order given" in caplog.text


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("mine/lats", "provider 'mine' offers no ranking 'lats'; did you mean 'last'?"),
        ("miny/last", "no installed provider is called 'miny'"),
    ],
)
def test_a_ranking_that_is_not_installed_is_refused_when_the_pool_is_made(
    policy: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ct.PoolError, match=re.escape(message)):
        ranked_pool(LastFirst(), monkeypatch, policy)


def test_an_object_that_cannot_order_is_a_fault_of_its_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ct.PluginError, match="expected an object with a `name` and a method"):
        ranked_pool("last", monkeypatch)


def test_a_model_that_hangs_has_so_many_seconds_and_then_the_next_is_asked() -> None:
    hanging, second = Server("hanging", 10**6), Server("second")
    assert answers(pool_of("fallback", hanging.spec(), second.spec(), per_model=1.5), None) == ["second"]


def test_a_server_that_is_down_does_not_shut_out_another_endpoint_of_the_same_provider() -> None:
    far = Server("far")

    def fail(request: ct.ChatRequest) -> ct.Reply:
        raise ct.ProviderError("down", failure=ct.FailureClass.NOT_EXECUTED)

    broken = ScriptedModel(fail, strict=False)
    models = [
        ct.ModelSpec("acme/near", lambda: broken, endpoint="http://near"),
        ct.ModelSpec("acme/far", lambda: far, endpoint="http://far"),
    ]
    pool = pool_of("fallback", *models, cooldown=0)
    assert answers(pool, *[None] * 8) == ["far"] * 8
    assert len(broken.requests) < 8 * 3  # its own breaker has opened


def test_the_caller_s_deadline_bounds_all_tries_together() -> None:
    servers = [Server(name, 10**6) for name in "abcd"]
    pool = pool_of("fallback", *(server.spec() for server in servers), per_model=2.0)

    async def run() -> tuple[ct.Observation, float]:
        async with ct.Executor() as executor:
            (seen,) = await executor.run([ct.Call("clerk", {"text": "?"})], pool, budget=ct.Budget(seconds=5))
            return seen, asyncio.get_running_loop().time()

    seen, ended = run_virtually(run())
    assert seen.status == "TIMEOUT"
    assert ended <= 5.0
    assert [server.asked for server in servers] == [1, 1, 1, 0]


def test_each_try_is_a_request_of_its_own_with_its_own_price_and_record(tmp_path: Path) -> None:
    first, second = Server("first"), Server("second")
    first.down = True
    leader = ScriptedModel([("clerk", {"text": "Who?"})], [("final_answer", {})], "second it is")
    pool = pool_of("fallback", first.spec(ct.Prices(1, 1)), second.spec(ct.Prices(2, 2)))
    run = ct.Orchestrator(leader).run_sync("Who answers?", pool=pool, trace=tmp_path / "run.trace")
    requests = [(r["id"], r["name"]) for r in run.trace.of_kind("intent") if r["kind"] == "model"]
    assert requests == [("1.1/1", "first/model"), ("1.1/1~2", "second/model")]
    assert run.observations[0].usage.usd == pytest.approx(400e-6)


def test_a_leader_may_be_a_router_too() -> None:
    broken, steady = Server("broken"), ScriptedModel([("clerk", {"text": "x"})], [("final_answer", {})], "done")
    broken.down = True
    worker = Server("worker")
    pool = ct.Pool.of(
        clerk,
        broken.spec(),
        ct.ModelSpec("steady", lambda: steady),
        worker.spec(),
        ct.router("lead", "broken/model", "steady"),
        orchestrator="lead",
        default="worker/model",
    )
    run = ct.Orchestrator().run_sync("Go.", pool=pool)
    assert (run.answer, run.stop) == ("done", "answered")
    assert broken.asked == 1


def test_a_resumed_run_asks_the_models_that_it_asked_before_and_pays_for_none_again(tmp_path: Path) -> None:
    path = tmp_path / "run.trace"
    servers = [Server("first"), Server("second")]
    servers[0].down = True

    def leader(crash: bool) -> ScriptedModel:
        def die(request: ct.ChatRequest) -> str:
            if crash:
                raise KeyboardInterrupt
            return "the end"

        return ScriptedModel([("clerk", {"text": "Who?"})], [("final_answer", {})], die, strict=False)

    pool = pool_of("round-robin", *(server.spec() for server in servers))
    begun = ct.Orchestrator(leader(crash=True)).run_sync("Who?", pool=pool, trace=path)
    assert begun.stop == "model"
    lines = path.read_text().splitlines(keepends=True)
    kept = next(i for i, line in enumerate(lines) if '"ask.3"' in line)
    path.write_text("".join(lines[:kept]))
    before = [server.asked for server in servers]

    async def go_on() -> ct.Run:
        resumed = ScriptedModel("the end")
        return await ct.Orchestrator(resumed).resume(path, pool=pool)

    run = asyncio.run(go_on())
    assert (run.answer, run.stop) == ("the end", "answered")
    assert [server.asked for server in servers] == before


def test_a_budget_in_money_needs_the_price_of_every_model_behind_a_router() -> None:
    pool = pool_of("fallback", Server("priced").spec(ct.Prices(1, 1)), Server("unknown").spec())
    with pytest.raises(ct.BudgetError, match="unknown/model"):
        ct.Orchestrator("default").run_sync("?", pool=pool, budget=ct.Budget(usd=1))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ct.router("r"), "expected names of other models"),
        (lambda: ct.router("r", "a", "a"), "each once"),
        (lambda: ct.router("r", ["a", "b"]), "is not a name; write router"),  # type: ignore[arg-type]
        (lambda: ct.router("r", "r"), "expected names of other models"),
        (lambda: ct.router("r", "a", policy="best"), "lowest-cost"),  # type: ignore[arg-type]
        (lambda: ct.router("r", "a", cooldown=-1), "cooldown=-1"),
        (lambda: ct.router("r", "a", patience=3), "unknown option 'patience'"),
        (lambda: ct.Pool.of(ct.router("r", "a/model")), "router 'r' needs a model"),
        (lambda: ct.Pool.of(ct.router("r", "s"), ct.router("s", "r")), "lead to themselves"),
    ],
)
def test_a_router_that_cannot_work_is_refused_with_the_reason(make: Callable[[], object], said: str) -> None:
    with pytest.raises(ct.UsageError, match=said):
        make()
