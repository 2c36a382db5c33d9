"""Describing a pool: who is asked, what is kept, what is not asked again, and what stands in the pool afterwards."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.executor import RetryPolicy
from concertino_bench.model_cards import Described, describe, make_task
from concertino_bench.model_cards.answers import _HOW_TO_END
from concertino_bench.model_cards.cache import Cache
from concertino_bench.model_cards.description import DescriptionProgress

from .answering import PER_ANSWER, PRICES, TASKS, Answering, Rule, Writing, knows, spec, text_of

Describe = Callable[..., Awaitable[Described]]


@pytest.fixture
def run(tmp_path: Path) -> Describe:
    """`run(pool, …)`: describe it on ten tasks, with a folder of this test."""

    async def run(pool: ct.Pool, tasks: Any = TASKS, **options: Any) -> Described:
        return await describe(pool, tasks, **{"cache": tmp_path / "cache", **options})

    return run


class Troubled(ct.Model):
    """Fails on words as it is told to, and knows sums."""

    def __init__(self, *failures: BaseException, rule: Rule | None = None) -> None:
        self.failures = list(failures)
        self.inner = Answering(rule or knows("sums", "words"))

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        if "backwards" in request.messages[-1].text and self.failures:
            raise self.failures[0] if len(self.failures) == 1 else self.failures.pop(0)
        return await self.inner.chat(request)


def five() -> tuple[ct.Pool, list[Answering]]:
    """A pool of five models, and the models."""
    kinds: list[tuple[str, ...]] = [("sums", "words"), ("sums",), ("words",), (), ("sums", "words")]
    models = [Answering(knows(*known)) for known in kinds]
    return ct.Pool(spec(f"acme/m{number}", model) for number, model in enumerate(models)), models


# -- what comes of it --------------------------------------------------------------------------------------------------


async def test_the_described_pool_holds_what_was_measured_and_the_old_one_is_as_it_was(run: Describe) -> None:
    pool, _ = five()
    before = pool.id
    found = await run(pool)
    assert text_of(found.pool, "acme/m1").startswith("Measured on 10 tasks: 50 % correct (95 % interval 24 to 76 %).")
    assert "Reliable: sums (100 % of 5). Unreliable: words (0 % of 5)." in text_of(found.pool, "acme/m1")
    assert (pool.id, text_of(pool, "acme/m1")) == (before, "acme/m1 as published.")
    assert [d.text for d in found.descriptions] == [text_of(found.pool, d.model) for d in found.descriptions]
    assert [d.profile.overall.accuracy for d in found.descriptions] == [1, 0.5, 0.5, 0, 1]
    assert found.descriptions[0].profile.usd_per_task == pytest.approx(PER_ANSWER)
    assert found.usage.usd == pytest.approx(50 * PER_ANSWER)


async def test_tools_agents_roles_and_aliases_are_as_they_were(run: Describe) -> None:
    @ct.tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    pool = five()[0].adding(add).bind(worker="acme/m1").alias({"add": "plus"})
    found = await run(pool)
    assert pool.diff(found.pool).changed == tuple(f"acme/m{n}" for n in range(5))
    assert (found.pool.roles, found.pool.aliases) == (pool.roles, pool.aliases)


async def test_only_the_models_that_a_pattern_names_are_asked_and_described(run: Describe) -> None:
    pool, models = five()
    found = await run(pool, models=["acme/m1", "m3"])
    assert [model.asked for model in models] == [0, 10, 0, 10, 0]
    assert pool.diff(found.pool).changed == ("acme/m1", "acme/m3")


async def test_a_task_is_asked_as_it_stands_with_how_to_end(run: Describe) -> None:
    pool, models = five()
    await run(pool, models=["m0"])
    (message,) = models[0].requests[0].messages
    assert (message.role, message.text.split("\n\n")[0]) == ("user", TASKS[0].question)
    assert not any(TASKS[0].answer in request.messages[0].text for request in models[0].requests)


async def test_a_sample_asks_only_its_tasks(run: Describe) -> None:
    pool, models = five()
    found = await run(pool, sample=4)
    assert [model.asked for model in models] == [4] * 5
    assert found.descriptions[0].profile.overall.tasks == 4


async def test_without_tasks_those_that_come_along_are_asked(run: Describe) -> None:
    model = Answering(lambda question: "Answer: unknown")
    found = await run(ct.Pool.of(spec("acme/one", model)), None)
    assert model.asked == 40
    assert found.descriptions[0].profile.overall.accuracy == 0


async def test_an_answer_may_stand_behind_reasoning(run: Describe) -> None:
    def thinks(question: str) -> ct.Reply:
        return ct.Reply(knows("sums", "words")(question), reasoning="Answer: no idea")  # type: ignore[arg-type]

    found = await run(ct.Pool.of(spec("acme/one", Answering(thinks))))
    assert found.descriptions[0].profile.overall.accuracy == 1


async def test_progress_is_told_after_each_answer(run: Describe) -> None:
    pool, _ = five()
    await run(pool, models=["m0"])
    told: list[DescriptionProgress] = []
    await run(pool, on_progress=told.append)
    assert [(p.done, p.total, p.known) for p in told] == [(n, 50, 10) for n in range(11, 51)]
    assert told[-1].seconds_left == 0
    assert told[0].model in pool


async def test_who_looks_on_and_fails_does_not_stop_the_work(run: Describe, caplog: pytest.LogCaptureFixture) -> None:
    def fails(progress: DescriptionProgress) -> None:
        raise ValueError("no screen")

    assert len((await run(five()[0], on_progress=fails)).descriptions) == 5
    assert caplog.text.count("on_progress failed") == 1


# -- what is not asked again -------------------------------------------------------------------------------------------


async def test_adding_a_model_to_a_described_pool_of_five_asks_that_model_only(run: Describe) -> None:
    pool, models = five()
    await run(pool)
    new = Answering(knows("words"))
    found = await run(pool.adding(spec("acme/new", new)))
    assert [model.asked for model in models] == [10] * 5
    assert new.asked == 10
    assert (found.asked, found.known["acme/m0"], len(found.descriptions)) == ({"acme/new": 10}, 10, 6)


async def test_the_same_again_asks_nobody_and_gives_an_equal_pool(run: Describe) -> None:
    pool, models = five()
    first, again = await run(pool), await run(pool)
    assert [model.asked for model in models] == [10] * 5
    assert (first.pool, again.usage, again.asked) == (again.pool, ct.Usage(), {})


UNIMPORTANT: dict[str, dict[str, Any]] = {
    "description": {"description": "Another text."},
    "prices": {"prices": ct.Prices(input=7.0, output=9.0)},
    "context": {"context": 999},
    "concurrency": {"concurrency": 1},
    "timeout": {"timeout": 5.0},
}
IMPORTANT: dict[str, dict[str, Any]] = {
    "name": {"name": "acme/renamed"},
    "options": {"options": {"quantisation": "4 bits"}},
    "max_tokens": {"max_tokens": 99},
}


@pytest.mark.parametrize("change", UNIMPORTANT.values(), ids=UNIMPORTANT)
async def test_what_cannot_change_an_answer_asks_nobody(run: Describe, change: dict[str, Any]) -> None:
    pool, models = five()
    await run(pool)
    await run(pool.replace("acme/m2", pool.models[2].with_(**change)))
    assert [model.asked for model in models] == [10] * 5


@pytest.mark.parametrize("change", IMPORTANT.values(), ids=IMPORTANT)
async def test_what_can_change_an_answer_asks_that_model_again(run: Describe, change: dict[str, Any]) -> None:
    pool, models = five()
    await run(pool)
    await run(pool.replace("acme/m2", pool.models[2].with_(**change)))
    assert [model.asked for model in models] == [10, 10, 20, 10, 10]


async def test_another_price_changes_only_the_money(run: Describe) -> None:
    pool, _ = five()
    first = await run(pool)
    again = await run(pool.price({"acme/m0": ct.Prices(input=10.0, output=20.0)}))
    (was, now) = (found.descriptions[0] for found in (first, again))
    assert now.profile.usd_per_task == pytest.approx(10 * PER_ANSWER)
    assert was.text.replace("$0.000030", "$0.00030") == now.text != was.text
    assert (now.profile.evidence, now.at) == (was.profile.evidence, was.at)


async def test_another_sampling_asks_again_and_a_repeat_asks_once_more(run: Describe) -> None:
    pool, models = five()
    await run(pool, models=["m0"])
    await run(pool, models=["m0"], sampling=ct.Sampling(temperature=0.7))
    assert models[0].asked == 20
    found = await run(pool, models=["m0"], repeats=3)
    assert models[0].asked == 40
    assert (found.descriptions[0].profile.overall.tasks, found.descriptions[0].profile.overall.answers) == (10, 30)


async def test_another_known_answer_grades_anew_and_asks_nobody(run: Describe) -> None:
    pool, models = five()
    await run(pool, models=["m0"])
    corrected = [make_task(TASKS[0].question, "23", "sums", "number"), *TASKS[1:]]
    found = await run(pool, corrected, models=["m0"])
    assert (models[0].asked, found.descriptions[0].profile.overall.accuracy) == (10, 0.9)


async def test_another_task_asks_that_task_only(run: Describe) -> None:
    pool, models = five()
    await run(pool)
    await run(pool, [*TASKS, make_task("What is 1 plus 1?", "2", "sums", "number")], models=["m3"])
    assert [model.asked for model in models] == [10, 10, 10, 11, 10]


async def test_a_refresh_asks_again_and_only_the_models_it_is_about(run: Describe) -> None:
    pool, models = five()
    await run(pool)
    models[1].rule = knows("sums", "words")
    found = await run(pool, models=["m1"], refresh=True)
    assert [model.asked for model in models] == [10, 20, 10, 10, 10]
    assert found.descriptions[0].profile.overall.accuracy == 1
    assert (await run(pool)).descriptions[1].profile.overall.accuracy == 1


async def test_a_damaged_answer_is_named_and_asked_again(run: Describe, tmp_path: Path) -> None:
    pool, models = five()
    first = await run(pool, models=["m0"])
    damaged = sorted((tmp_path / "cache").rglob("*.json"))[:3]
    for file in damaged:
        file.write_text(file.read_text()[:-20])
    found = await run(pool, models=["m0"])
    assert models[0].asked == 13
    assert sorted(problem.split(":")[0] for problem in found.problems) == sorted(map(str, damaged))
    assert found.pool[first.descriptions[0].model].description.startswith("Measured on 10 tasks: 100 %")
    assert (await run(pool, models=["m0"])).problems == ()


async def test_an_entry_that_is_sound_and_no_answer_is_asked_again(run: Describe, tmp_path: Path) -> None:
    pool, models = five()
    await run(pool, models=["m0"])
    file = next((tmp_path / "cache" / "answers").rglob("*.json"))
    Cache(tmp_path / "cache").write("answers", file.stem, {"colour": "red"})
    found = await run(pool, models=["m0"])
    assert models[0].asked == 11
    assert "it is not an answer" in found.problems[0]


# -- interruptions -----------------------------------------------------------------------------------------------------


class Slow(Answering):
    """Answers quickly so many times, then thinks for ever, until `patience` is raised."""

    def __init__(self, rule: Rule, patience: int) -> None:
        super().__init__(rule)
        self.patience = patience
        self.finished: list[str] = []
        self.out_of_patience = asyncio.Event()

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        reply = await super().chat(request)
        if len(self.finished) >= self.patience:
            self.out_of_patience.set()
            await asyncio.Event().wait()
        self.finished.append(request.messages[-1].text)
        return reply


async def test_what_was_answered_before_an_interruption_is_not_asked_again(run: Describe) -> None:
    model = Slow(knows("sums", "words"), patience=6)
    pool = ct.Pool.of(spec("acme/slow", model))
    task = asyncio.ensure_future(run(pool, concurrency=2))
    await model.out_of_patience.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    model.patience = 100
    found = await run(pool)
    assert sorted(model.finished) == sorted({request.messages[-1].text for request in model.requests})
    assert (len(model.finished), found.known, found.asked) == (10, {"acme/slow": 6}, {"acme/slow": 4})


async def test_an_answer_is_on_disk_when_progress_is_told(run: Describe, tmp_path: Path) -> None:
    counted: list[tuple[int, int]] = []

    def look(progress: DescriptionProgress) -> None:
        counted.append((progress.done, len(list((tmp_path / "cache").rglob("*.json")))))

    await run(five()[0], models=["m0"], on_progress=look)
    assert counted == [(n, n) for n in range(1, 11)]


async def test_nothing_is_left_running_after_an_interruption(run: Describe) -> None:
    before = asyncio.all_tasks()
    model = Slow(knows(), patience=0)
    task = asyncio.ensure_future(run(ct.Pool.of(spec("acme/slow", model))))
    await model.out_of_patience.wait()
    task.cancel()
    await asyncio.wait({task})
    assert asyncio.all_tasks() == before


# -- failures and limits -----------------------------------------------------------------------------------------------

OF_THE_MODEL: dict[str, tuple[BaseException, str]] = {
    "refused": (ct.ProviderError.from_http(413, "too long"), "EXEC_ERR"),
    "cut off": (ct.ProviderError("broke off", failure=ct.FailureClass.CUT_OFF), "EXEC_ERR"),
    "a fault of its client": (ValueError("no JSON"), "EXEC_ERR"),
}


@pytest.mark.parametrize(("failure", "status"), OF_THE_MODEL.values(), ids=OF_THE_MODEL)
async def test_a_failure_of_the_model_counts_as_no_answer(run: Describe, failure: BaseException, status: str) -> None:
    found = await run(ct.Pool.of(spec("acme/one", Troubled(failure))))
    (described,) = found.descriptions
    assert described.profile.overall.accuracy == 0.5
    assert described.profile.failures == {status: 5}
    assert f"No answer came to 5 of 10 requests (5 {status})." in described.text


async def test_an_answer_that_takes_too_long_counts_as_no_answer_until_there_is_more_time(run: Describe) -> None:
    model = Slow(knows("sums", "words"), patience=7)
    pool = ct.Pool.of(spec("acme/slow", model, timeout=0.5))
    found = await run(pool, concurrency=10)
    assert found.descriptions[0].profile.failures == {"TIMEOUT": 3}
    model.patience = 100
    assert (await run(pool)).asked == {}
    more_time = pool.adjust("acme/slow", timeout=9.0)
    found = await run(more_time)
    assert (found.asked, found.descriptions[0].profile.overall.accuracy) == ({"acme/slow": 3}, 1)


async def test_a_refused_request_is_made_again_by_the_next_run(run: Describe) -> None:
    model = Troubled(ct.ProviderError.from_http(404, "no such model"))
    pool = ct.Pool.of(spec("acme/one", model))
    await run(pool)
    model.failures = []
    found = await run(pool)
    assert (found.asked, found.descriptions[0].profile.overall.accuracy) == ({"acme/one": 5}, 1)


CIRCUMSTANCES = {
    "a refused key": (ct.ProviderError.from_http(401, "no key"), "rejected: no key"),
    "no connection": (ConnectionRefusedError("refused"), "unavailable: ConnectionRefusedError"),
}


@pytest.mark.parametrize(("failure", "reason"), CIRCUMSTANCES.values(), ids=CIRCUMSTANCES)
async def test_a_circumstance_leaves_the_model_undescribed_and_keeps_what_was_answered(
    run: Describe, failure: BaseException, reason: str
) -> None:
    model = Troubled(failure)
    pool = ct.Pool.of(spec("acme/one", model), spec("other/two", Answering(knows("sums"))))
    executor = ct.Executor(retries=RetryPolicy(base=0.001))
    async with executor:
        found = await run(pool, executor=executor)
    assert reason in found.unfinished["acme/one"]
    assert found.unfinished["acme/one"].startswith("5 of 10 answers are there, then ")
    assert text_of(found.pool, "acme/one") == "acme/one as published."
    assert [described.model for described in found.descriptions] == ["other/two"]
    model.failures = []
    again = await run(pool)
    assert (again.asked, again.unfinished) == ({"acme/one": 5}, {})


async def test_a_server_that_cannot_be_reached_is_not_asked_for_ever(run: Describe) -> None:
    attempts = 0

    class Down(ct.Model):
        async def chat(self, request: ct.ChatRequest) -> ct.Reply:
            nonlocal attempts
            attempts += 1
            raise ConnectionRefusedError("refused")

    executor = ct.Executor(retries=RetryPolicy(attempts=1))
    async with executor:
        found = await run(ct.Pool.of(spec("acme/one", Down())), executor=executor, concurrency=1)
    assert attempts == 3
    assert "0 of 10 answers are there, then unavailable" in found.unfinished["acme/one"]


async def test_a_throttled_request_is_repeated_and_counts_once(run: Describe) -> None:
    class Busy(Answering):
        async def chat(self, request: ct.ChatRequest) -> ct.Reply:
            if not self.requests:
                self.requests.append(request)
                raise ct.ProviderError.from_http(429, "busy", retry_after=0.01)
            return await super().chat(request)

    busy = Busy(knows("sums", "words"))
    found = await run(ct.Pool.of(spec("acme/busy", busy)), concurrency=1)
    assert found.descriptions[0].profile.overall.accuracy == 1
    assert (busy.asked, found.asked) == (11, {"acme/busy": 10})


async def test_a_model_that_never_answers_is_not_described(run: Describe) -> None:
    class Mute(ct.Model):
        async def chat(self, request: ct.ChatRequest) -> ct.Reply:
            raise ValueError("nothing")

    found = await run(ct.Pool.of(spec("acme/mute", Mute())))
    assert found.unfinished == {"acme/mute": "none of 10 requests was answered (raised)"}
    assert text_of(found.pool, "acme/mute") == "acme/mute as published."


async def test_a_budget_is_not_overshot_and_the_next_run_goes_on(run: Describe) -> None:
    model = Answering(knows("sums"))
    pool = ct.Pool.of(spec("acme/one", model, max_tokens=10))
    found = await run(pool, budget=ct.Budget(tokens=200))
    assert found.usage.tokens <= 200
    assert 0 < model.asked < 10
    assert "budget_exhausted" in found.unfinished["acme/one"]
    asked = model.asked
    again = await run(pool)
    assert (again.asked["acme/one"], model.asked) == (10 - asked, 10)
    assert again.unfinished == {}


async def test_a_reply_that_the_budget_cut_short_is_no_evidence(run: Describe) -> None:
    class Wordy(Answering):
        async def chat(self, request: ct.ChatRequest) -> ct.Reply:
            self.requests.append(request)
            room = request.sampling.max_tokens or 1000
            finish = "stop" if room >= 50 else "length"
            used = ct.Usage(input_tokens=20, output_tokens=min(room, 50))
            said = self.rule(request.messages[-1].text.partition("\n\n")[0])
            return ct.Reply(str(said) if finish == "stop" else "Well, let me", usage=used, finish_reason=finish)

    model = Wordy(knows("sums", "words"))
    pool = ct.Pool.of(spec("acme/wordy", model, max_tokens=60))
    prompt = model.count_tokens("What is 11 plus 11?\n\n" + _HOW_TO_END) + 4
    found = await run(pool, budget=ct.Budget(tokens=3 * 70 + prompt + 30), concurrency=1)
    assert [request.sampling.max_tokens for request in model.requests][:4] == [60, 60, 60, 30]
    assert found.unfinished["acme/wordy"].startswith(
        "3 of 10 answers are there, then cut_short: the budget left no room"
    )
    again = await run(pool)
    assert again.descriptions[0].profile.overall.accuracy == 1


async def test_a_long_reply_that_ends_at_the_model_s_own_limit_is_evidence(run: Describe) -> None:
    def rambles(question: str) -> ct.Reply:
        return ct.Reply("Well", finish_reason="length", usage=ct.Usage(input_tokens=20, output_tokens=60))

    pool = ct.Pool.of(spec("acme/one", Answering(rambles), max_tokens=60))
    found = await run(pool, budget=ct.Budget(tokens=100_000))
    assert found.descriptions[0].profile.overall.accuracy == 0


async def test_the_deadline_of_the_run_is_not_held_against_a_model(run: Describe) -> None:
    pool = ct.Pool.of(spec("acme/slow", Slow(knows("sums"), patience=4)))
    found = await run(pool, budget=ct.Budget(seconds=0.6), concurrency=2)
    assert found.unfinished["acme/slow"].startswith("4 of 10 answers are there, then ")
    assert "deadline" in found.unfinished["acme/slow"]


async def test_requests_to_one_model_run_side_by_side_up_to_the_limit(run: Describe) -> None:
    under_way = most = 0

    class Busy(Answering):
        async def chat(self, request: ct.ChatRequest) -> ct.Reply:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.01)
            under_way -= 1
            return await super().chat(request)

    await run(ct.Pool.of(spec("acme/busy", Busy(knows()))), concurrency=3)
    assert most == 3


async def test_an_answer_that_cannot_be_kept_ends_the_work(
    run: Describe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, models = five()

    def full(self: Path, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(ct.RunError, match="No space left on device"):
        await run(pool, concurrency=1)
    assert sum(model.asked for model in models) <= 10


# -- wrong usage: nothing is asked -------------------------------------------------------------------------------------

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no tasks": ({"tasks": []}, "there are no tasks"),
    "no task": ({"tasks": ["What is 1 + 1?"]}, "expected a Task"),
    "a question twice": ({"tasks": [TASKS[0], TASKS[0]]}, "occurs twice"),
    "no file": ({"tasks": "nowhere.jsonl"}, "nowhere.jsonl: cannot be read"),
    "an unknown model": ({"models": ["acme/mm1"]}, "no model of the pool matches 'acme/mm1'; did you mean"),
    "an unknown writer": ({"writer": "acme/m44"}, "no model or role 'acme/m44' to write; did you mean"),
    "too large a sample": ({"sample": 11}, "expected 1 to 10"),
    "no repeats": ({"repeats": 0}, "repeats=0"),
    "no concurrency": ({"concurrency": 0}, "concurrency=0"),
}


@pytest.mark.parametrize(("options", "message"), WRONG.values(), ids=WRONG)
async def test_wrong_usage_is_said_before_anybody_is_asked(
    run: Describe, options: dict[str, Any], message: str
) -> None:
    pool, models = five()
    with pytest.raises(ct.UsageError, match=message):
        await run(pool, **options)
    assert sum(model.asked for model in models) == 0


async def test_a_pool_without_models_is_refused(run: Describe) -> None:
    with pytest.raises(ct.PoolError, match="no models to describe"):
        await run(ct.Pool())


async def test_a_budget_in_money_needs_the_prices_of_those_who_are_asked(run: Describe) -> None:
    unpriced = Answering(knows())
    pool = ct.Pool.of(spec("acme/one", Answering(knows())), spec("acme/two", unpriced, prices=None))
    with pytest.raises(ct.BudgetError, match="the price of acme/two is unknown"):
        await run(pool, budget=ct.Budget(usd=1))
    assert unpriced.asked == 0
    assert (await run(pool, models=["acme/one"], budget=ct.Budget(usd=1))).unfinished == {}
    await run(pool)
    assert (await run(pool, budget=ct.Budget(usd=1))).asked == {}


async def test_a_refused_budget_forgets_nothing(run: Describe) -> None:
    pool = ct.Pool.of(spec("acme/one", Answering(knows()), prices=None))
    await run(pool)
    with pytest.raises(ct.BudgetError):
        await run(pool, budget=ct.Budget(usd=1), refresh=True)
    assert (await run(pool)).asked == {}


# -- traces ------------------------------------------------------------------------------------------------------------


async def test_a_trace_holds_every_request_with_its_answer(run: Describe, tmp_path: Path) -> None:
    pool, _ = five()
    writer = spec("acme/author", Writing(["It is steady in adding."]))
    await run(pool, models=["m0", "m1"], writer=writer, trace=tmp_path / "traces")
    (path,) = (tmp_path / "traces").iterdir()
    trace = ct.Trace.load(path)
    assert (trace.finished, trace.question) == (True, "describe acme/m0, acme/m1")
    assert (
        sorted(seen.name for seen in trace.observations()) == ["acme/author"] * 2 + ["acme/m0"] * 10 + ["acme/m1"] * 10
    )
    assert [len(record["calls"]) for record in trace.of_kind("plan")] == [10, 10]
    assert trace.summary().usd > 0


async def test_a_trace_of_an_interrupted_description_says_so(run: Describe, tmp_path: Path) -> None:
    model = Slow(knows(), patience=2)
    task = asyncio.ensure_future(run(ct.Pool.of(spec("acme/slow", model)), trace=tmp_path / "traces"))
    await model.out_of_patience.wait()
    task.cancel()
    await asyncio.wait({task})
    (path,) = (tmp_path / "traces").iterdir()
    assert ct.Trace.load(path).summary().stop == "cancelled"


async def test_the_result_is_plain_json(run: Describe) -> None:
    found = await run(five()[0])
    data = json.loads(json.dumps(found.to_json()))
    assert data["pool"] == found.pool.id
    assert data["descriptions"][0]["text"] == found.descriptions[0].text
    assert set(data["descriptions"][0]) == {"model", "text", "written_by", "at", "evidence", "notes", "profile"}


async def test_the_default_folder_is_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    await describe(ct.Pool.of(spec("acme/one", Answering(knows()), prices=PRICES)), TASKS[:2])
    assert len(list((tmp_path / ".concertino" / "descriptions" / "answers").glob("*/*.json"))) == 2
