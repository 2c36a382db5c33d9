"""Baselines as runs of the orchestrator: what is asked, what is answered, what it costs, and what a pool must have."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino import plan_to_json
from concertino.strategies import Act, TaskContext
from concertino.testing import ScriptedModel
from concertino_bench import Grade, Item, Key, Task, Verdict
from concertino_bench.baselines import (
    Cascade,
    KnnRouter,
    MajorityVote,
    Prompted,
    RouterProfile,
    SelfRefine,
    Serial,
    SingleModel,
    SingleWithTools,
    StaticWorkflow,
    strategies,
    systems,
)

QUESTION = "How many rolls are left?"


class Says(ct.Model):
    """Answers from a table by a word of the message; remembers what it was asked."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.asked = answers, []

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        self.asked.append(request)
        if not self.answers:
            raise ct.ProviderError("it is closed today", failure=ct.FailureClass.CALLER)
        text = self.answers[(len(self.asked) - 1) % len(self.answers)]
        return ct.Reply(text, usage=ct.Usage(input_tokens=10, output_tokens=5))


def make_pool(**models: Says) -> ct.Pool:
    """Models that are offered as agents; the price rises with the order."""
    specs = [
        ct.ModelSpec(name, lambda model=model: model, f"The model {name}.", ct.Prices(10.0**place, 10.0**place))
        for place, (name, model) in enumerate(models.items())
    ]
    return ct.Pool(specs, roles={"orchestrator": specs[-1].name}).offering("*")


async def run(strategy: ct.Strategy, pool: ct.Pool, **options: Any) -> ct.Run:
    return await ct.Orchestrator("orchestrator", strategy).run(QUESTION, pool=pool, **options)


async def test_a_single_model_is_asked_the_question_once() -> None:
    model = Says(" The answer is 25.\n")
    done = await run(SingleModel(instruction="Be brief."), make_pool(a=model))
    assert (done.answer, done.stop, len(model.asked)) == ("The answer is 25.", "answered", 1)
    assert model.asked[0].messages[-1].text == f"{QUESTION}\n\nBe brief."
    assert (await run(SingleModel(), make_pool(a=Says(" ")))).stop == "format"


async def test_a_majority_of_members_wins_with_the_whole_text_of_its_first_voter() -> None:
    pool = make_pool(a=Says("Mine is 24."), b=Says("The answer is 25."), c=Says("We get $25.00."))
    done = await run(MajorityVote(answers="number"), pool)
    assert done.answer == "The answer is 25."
    assert done.detail == "2 for 25, 1 for 24"
    assert [len(round_.plan) for round_ in done.rounds] == [3]
    assert done.usage.usd == pytest.approx(15 * (1 + 10 + 100) / 1e6)


async def test_a_tie_is_told_and_goes_to_the_first_member() -> None:
    pool = make_pool(a=Says("24"), b=Says("25"), c=Says("I do not know"))
    done = await run(MajorityVote(answers="number", members=("ask_b", "ask_a", "ask_c")), pool)
    assert done.answer == "25"
    assert done.detail == "1 for 25, 1 for 24, 1 without an answer; a tie of 2"


async def test_a_member_that_fails_does_not_vote_and_the_reason_is_told() -> None:
    pool = make_pool(a=Says(), b=Says("25"))
    done = await run(MajorityVote(answers="number"), pool)
    assert done.answer == "25"
    assert "1 of 2 calls failed, the first: ask_a EXEC_ERR: " in done.detail
    nobody = await run(MajorityVote(), make_pool(a=Says()))
    assert (nobody.answer, nobody.stop) == (None, "model")
    silent = await run(MajorityVote(answers="number"), make_pool(a=Says("Well.")))
    assert (silent.answer, silent.stop) == (None, "format")


async def test_samples_of_the_leader_have_seeds_of_their_own() -> None:
    model = Says("24", "25", "25")
    done = await run(MajorityVote(voters="leader", samples=3, seed=7, temperature=0.5), make_pool(a=model))
    assert done.answer == "25"
    assert [(r.sampling.seed, r.sampling.temperature) for r in model.asked] == [(7, 0.5), (8, 0.5), (9, 0.5)]


async def test_runs_with_different_seeds_have_no_vote_in_common() -> None:
    asked: list[int | None] = []
    for sample in range(3):
        model = Says("24", "25", "25")
        sampling = ct.Sampling(seed=11 + sample, max_tokens=99, temperature=0.0)
        leader = ct.Orchestrator("a", MajorityVote(voters="leader", samples=3), sampling=sampling)
        await leader.run(QUESTION, pool=make_pool(a=model))
        asked += [request.sampling.seed for request in model.asked]
        assert {(r.sampling.max_tokens, r.sampling.temperature) for r in model.asked} == {(99, 0.7)}
    assert asked == list(range(33, 42))


async def test_a_vote_that_was_interrupted_goes_on_with_the_seeds_of_its_run(tmp_path: Path) -> None:
    path, strategy = tmp_path / "run.trace.jsonl", MajorityVote(voters="leader", samples=3)
    leader = ct.Orchestrator("a", strategy, sampling=ct.Sampling(seed=5, stop=("END",)))
    whole = Says("24", "25", "25")
    done = await leader.run(QUESTION, pool=make_pool(a=whole), trace=path)
    assert ct.replay(ct.Trace.load(path)).answer == done.answer == "25"
    lines = path.read_bytes().splitlines(keepends=True)
    replies = [at for at, line in enumerate(lines) if json.loads(line[9:])["t"] == "reply"]
    (tmp_path / "cut.trace.jsonl").write_bytes(b"".join(lines[: replies[0] + 1]))
    rest = Says("25")
    again = ct.Orchestrator("a", strategy)  # the sampling of the run is that of its trace
    assert (await again.resume(tmp_path / "cut.trace.jsonl", pool=make_pool(a=rest))).answer == "25"
    assert [request.sampling for request in rest.asked] == [request.sampling for request in whole.asked[1:]]


async def test_samples_of_members_are_calls_side_by_side() -> None:
    model = Says("24", "25", "25")
    done = await run(MajorityVote(samples=3), make_pool(a=model))
    assert (done.answer, len(done.rounds), len(model.asked)) == ("25", 1, 3)


async def test_a_limit_of_calls_at_once_makes_several_rounds() -> None:
    pool = make_pool(a=Says("1"), b=Says("2"), c=Says("2"))
    done = await run(MajorityVote(), pool, budget=ct.Budget(parallel=2))
    assert ([len(round_.plan) for round_ in done.rounds], done.answer) == ([2, 1], "2")


async def test_a_cascade_stops_as_soon_as_enough_agree() -> None:
    dear = Says("26")
    pool = make_pool(a=Says("The answer is 25."), b=Says("25"), c=dear)
    done = await run(Cascade(answers="number"), pool)
    assert (done.answer, len(dear.asked)) == ("The answer is 25.", 0)
    assert done.detail == "2 of 3 answers agreed: 2 for 25"


async def test_a_cascade_goes_on_while_they_differ_and_believes_the_last() -> None:
    pool = make_pool(a=Says("24"), b=Says("25"), c=Says("26"))
    done = await run(Cascade(answers="number"), pool)
    assert done.answer == "26"
    assert [len(round_.plan) for round_ in done.rounds] == [2, 1]
    assert done.detail == "no 2 agreed (1 for 24, 1 for 25, 1 for 26; a tie of 3); ask_c decided"
    silent = await run(Cascade(answers="number"), make_pool(a=Says("24"), b=Says("25"), c=Says("Hm")))
    assert silent.answer == "24"


async def test_a_cascade_of_samples_stops_at_a_model_that_agrees_with_itself() -> None:
    dear = Says("26")
    sure = await run(Cascade(first=1, samples=2), make_pool(a=Says("25"), b=dear))
    assert (sure.answer, dear.asked) == ("25", [])
    unsure = await run(Cascade(first=1, samples=2), make_pool(a=Says("24", "25"), b=dear))
    assert (unsure.answer, len(dear.asked)) == ("26", 2)


async def test_a_stage_that_a_limit_cuts_in_two_is_one_stage() -> None:
    last = Says("26")
    pool = make_pool(a=Says("25"), b=Says("25"), c=last, d=Says("27"))
    done = await run(Cascade(first=3), pool, budget=ct.Budget(parallel=2))
    assert ([len(round_.plan) for round_ in done.rounds], len(last.asked), done.answer) == ([2, 1], 1, "25")


async def test_self_refinement_ends_when_the_critic_approves() -> None:
    script = ScriptedModel("A draft: 24", "24 is wrong: 84 - 59 is 25", "Corrected: 25", "No faults.")
    with script:
        done = await run(SelfRefine(), ct.Pool([ct.ModelSpec("m", lambda: script)]).offering("m"))
    assert (done.answer, done.detail) == ("Corrected: 25", "the critic approved after 1 revisions")


async def test_self_refinement_ends_when_nothing_changes_or_the_revisions_are_over() -> None:
    with ScriptedModel("24", "Hm.", "24") as script:
        done = await run(SelfRefine(), ct.Pool([ct.ModelSpec("m", lambda: script)]).offering("m"))
    assert (done.answer, done.detail) == ("24", "revision 1 changed nothing")
    with ScriptedModel("24", "Hm.", "25") as script:
        done = await run(SelfRefine(revisions=1), ct.Pool([ct.ModelSpec("m", lambda: script)]).offering("m"))
    assert (done.answer, done.detail) == ("25", "after 1 revisions, the last one not reviewed")


async def test_a_critic_of_its_own_is_asked_where_the_pool_binds_one() -> None:
    critic = Says("NO FAULTS")
    done = await run(SelfRefine(), make_pool(c=critic, m=Says("25")).bind(critic="c"))
    assert (done.answer, len(critic.asked)) == ("25", 1)
    assert QUESTION in critic.asked[0].messages[-1].text


ROWS = [
    {"question": question, "model": model, "correct": (model == "large") == ("integral" in question), "usd": usd}
    for question in ("a sum of apples", "a sum of pears and apples", "an integral of waves", "the integral of a sine")
    for model, usd in (("small", 0.001), ("large", 0.1))
]


async def test_a_router_asks_the_best_model_of_the_nearest_questions() -> None:
    router = KnnRouter(fitted=RouterProfile.fit(ROWS), k=2)
    for question, answer in (("What is the integral of waves?", "L"), ("Now a sum of apples?", "S")):
        pool = make_pool(small=Says("S"), large=Says("L"))
        done = await ct.Orchestrator("large", router).run(question, pool=pool)
        assert (done.answer, len(done.observations)) == (answer, 1)
    assert done.detail == "ask_small: 1.00 right, $0.001000, over 2 neighbours"


def test_profiles_that_differ_are_written_down_as_two(tmp_path: Path) -> None:
    one, other = RouterProfile.fit(ROWS), RouterProfile.fit([{**row, "correct": True} for row in ROWS])
    written = [KnnRouter(fitted=each).to_json() for each in (one, other)]
    assert written[0] != written[1]
    assert written[0] == KnnRouter(fitted=RouterProfile.fit(ROWS)).to_json()
    one.save(tmp_path / "p.json")
    of_file = KnnRouter(profile=str(tmp_path / "p.json"))
    assert of_file.digest == written[0]["digest"] == RouterProfile.load(tmp_path / "p.json").digest
    other.save(tmp_path / "p.json")
    os.utime(tmp_path / "p.json", (1, 1))
    brief = TaskContext("a sum", make_pool(small=Says(), large=Says()).to_openai())
    with pytest.raises(ct.UsageError, match=r"the profile has the digest .* it has changed since"):
        of_file.begin(brief)
    KnnRouter(profile=str(tmp_path / "p.json")).begin(brief)


async def test_a_router_is_not_asked_what_its_profile_was_fitted_to() -> None:
    model, question = Says("S"), "An integral  of waves"
    pool = make_pool(small=model, large=model)
    router = KnnRouter(fitted=RouterProfile.fit(ROWS), k=2)
    with pytest.raises(ct.UsageError, match="fitted to this very question"):
        await ct.Orchestrator("large", router).run(question, pool=pool)
    assert model.asked == []
    seen = replace(router, allow_seen=True)
    assert (await ct.Orchestrator("large", seen).run(question, pool=pool)).answer == "S"
    (system,) = systems(pool, ["knn-router"], profile=RouterProfile.fit(ROWS), allow_seen=True)
    assert system.strategy == KnnRouter(fitted=RouterProfile.fit(ROWS), allow_seen=True)


async def test_a_model_of_unknown_price_is_never_the_cheapest(tmp_path: Path) -> None:
    rows = [{**row, "usd": None} if row["model"] == "small" else row for row in ROWS]
    profile = RouterProfile.fit(rows)
    assert [each.usd for each in profile.rank("waves", k=2)] == [0.1, None]
    with pytest.raises(ct.UsageError, match=r"is not known of small: fit the profile to rows with 'usd'"):
        profile.rank("waves", cost_weight=1.0)
    assert profile.rank("waves", cost_weight=1.0, among=["large"])[0].model == "large"
    tokens = [{**row, "input_tokens": 10, "output_tokens": 5} for row in rows]
    priced = RouterProfile.fit(tokens, {"small": ct.Prices(1, 1)})
    assert priced.rank("waves", cost_weight=99.0)[0].model == "small"
    profile.save(tmp_path / "p.json")
    assert RouterProfile.load(tmp_path / "p.json").overall["small"].usd is None
    done = await ct.Orchestrator("large", KnnRouter(fitted=profile, k=1)).run(
        "apples", pool=make_pool(small=Says("S"), large=Says("L"))
    )
    assert done.detail == "ask_small: 1.00 right, $ unknown, over 1 neighbours"


async def test_a_profile_of_results_does_not_know_what_an_unpriced_run_cost() -> None:
    model = ct.ModelSpec("m", lambda: Says("25"))
    task = Task("t1", QUESTION, ("25",), "number")
    done = await ct.Orchestrator("m", SingleModel()).run(QUESTION, pool=ct.Pool([model]))
    item = Item.of_run(Key("single-model:m", "t1"), task, Grade(Verdict.RIGHT, "equal"), done, ct.Pool([model]))
    assert RouterProfile.of_items([item], [task]).overall["m"].usd is None


async def test_a_router_goes_on_to_the_next_model_when_one_fails() -> None:
    router = KnnRouter(fitted=RouterProfile.fit(ROWS), k=2)
    done = await ct.Orchestrator("large", router).run(
        "one sum of apples", pool=make_pool(small=Says(), large=Says("L"))
    )
    assert (done.answer, len(done.rounds)) == ("L", 2)
    done = await ct.Orchestrator("large", router).run("a sum", pool=make_pool(small=Says(), large=Says(" ")))
    assert (done.answer, done.stop) == (None, "model")


def test_the_price_of_accuracy_moves_a_router() -> None:
    profile = RouterProfile.fit(ROWS)
    near = "the integral of waves"
    assert profile.rank(near, k=2)[0].model == "large"
    assert profile.rank(near, k=2, cost_weight=11.0)[0].model == "small"
    assert [each.neighbours for each in profile.rank("xyzzy", k=2)] == [0, 0]
    assert profile.rank("xyzzy")[0].score == 0.5
    assert [each.model for each in profile.rank(near, among=["small"])] == ["small"]


def test_a_profile_is_written_and_read_again(tmp_path: Path) -> None:
    profile = RouterProfile.fit(ROWS)
    profile.save(tmp_path / "p.json")
    again = RouterProfile.load(tmp_path / "p.json")
    assert (again.known, again.models) == (profile.known, profile.models)
    assert KnnRouter(profile=str(tmp_path / "p.json")).to_json()["profile"] == str(tmp_path / "p.json")


async def test_a_profile_is_made_of_a_results_file() -> None:
    pool, task = make_pool(small=Says("24"), large=Says("25")), Task("t1", QUESTION, ("25",), "number")
    items = []
    for system in systems(pool, ["single-model"]):
        done = await ct.Orchestrator(system.model, system.strategy).run(QUESTION, pool=system.pool(pool))
        verdict = Verdict.RIGHT if done.answer == "25" else Verdict.WRONG
        items.append(Item.of_run(Key(system.name, "t1"), task, Grade(verdict, "compared"), done, pool))
    items.append(Item.of_failure(Key("single-model:small", "t1"), task, "it broke"))
    profile = RouterProfile.of_items(items, [task])
    assert profile.known[0].outcomes["small"][:2] == (0.0, pytest.approx(15 / 1e6))
    assert profile.known[0].outcomes["large"][:2] == (1.0, pytest.approx(150 / 1e6))
    chosen = RouterProfile.of_items(items, [task], {"single-model:large": "org/big"})
    assert chosen.models == ("org/big",)
    with pytest.raises(ct.UsageError, match="there are none"):
        RouterProfile.of_items(items, [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read"),
        ("[]", "its format is 'list'; expected 'concertino-router-profile/1'"),
        ('{"format": "concertino-router-profile/1", "questions": [{}]}', "KeyError: 'question'; make it again"),
        ('{"format": "concertino-router-profile/1", "questions": []}', "there are none"),
    ],
)
def test_a_file_that_is_no_profile_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(ct.UsageError, match=message):
        RouterProfile.load(tmp_path / "p.json")


def test_a_profile_needs_graded_rows() -> None:
    with pytest.raises(ct.UsageError, match=r"row 1: .*expected texts, and 'correct' or a 'score'"):
        RouterProfile.fit([{"question": "x", "model": "a"}])
    with pytest.raises(ct.UsageError, match="there are none"):
        RouterProfile.fit([{"question": "x", "model": "a", "correct": None}])
    tokens = {"question": "x", "model": "a", "correct": True, "input_tokens": 100, "output_tokens": 10}
    assert RouterProfile.fit([tokens], {"a": ct.Prices(1, 2)}).overall["a"].usd == pytest.approx(120 / 1e6)
    assert RouterProfile.fit([tokens, {**tokens, "correct": False}]).overall["a"].score == 0.5


GRAPH = """
answer = "join"

[[agents]]
id = "left"
name = "ask_a"
arguments = { task = "{question} Think of ${x}." }

[[agents]]
id = "join"
name = "join"
arguments = { one = "${left}", other = "${right}" }

[[agents]]
id = "right"
name = "ask_b"
arguments = { task = "{question}" }
"""


@ct.tool
def join(one: str, other: str) -> str:
    """Join two texts into one text."""
    return f"{one} and {other}"


async def test_a_workflow_runs_its_graph_as_one_plan(tmp_path: Path) -> None:
    (tmp_path / "w.toml").write_text(GRAPH.replace("${x}", "$${x}"))
    strategy = StaticWorkflow(file=str(tmp_path / "w.toml"))
    first = Says("A")
    pool = make_pool(a=first, b=Says("B")).adding(join)
    done = await run(strategy, pool)
    assert done.answer == "A and B"
    assert first.asked[0].messages[-1].text == f"{QUESTION} Think of ${{x}}."
    assert [round_.plan.levels() for round_ in done.rounds] == [[["left", "right"], ["join"]]]
    assert StaticWorkflow.from_json(strategy.to_json()) == strategy
    failed = await run(strategy, make_pool(a=Says(), b=Says("B")).adding(join))
    assert (failed.answer, failed.stop) == (None, "model")
    assert "'join' gave no result: 2 of 3 calls failed, the first: ask_a" in failed.detail


def test_a_workflow_may_be_a_plan_that_was_exported() -> None:
    plan = ct.Plan.parse([ct.Call("ask_a", {"task": "{question}"}, "1"), ct.Call("ask_b", {"task": "${1}"}, "2")])
    step = StaticWorkflow(graph=plan_to_json(plan)).begin(TaskContext(QUESTION)).step()
    assert isinstance(step, Act)
    assert [call.id for call in step.plan.calls] == ["1", "2"]
    assert step.plan.edges == plan.edges


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ({"agents": []}, "/agents: expected at least 1 item"),
        ({"agents": [{"id": "a"}]}, "/agents/0: expected required property 'name'"),
        ({"agents": [{"id": "a", "name": "x", "argument": {}}]}, "'argument'"),
        ({"agents": [{"id": "a", "name": "x"}], "edges": [["a"]]}, "/edges/0"),
        ({"agents": [{"id": "a", "name": "x"}], "edges": [["a", "z"]]}, "an edge of 'z', and its agents are a"),
        (
            {"agents": [{"id": i, "name": "x"} for i in "ab"], "edges": [["a", "b"], {"from": "b", "to": "a"}]},
            "not a valid plan: the plan has a cycle",
        ),
        ({"agents": [{"id": "a", "name": "x"}, {"id": "a", "name": "x"}]}, "two calls have the id 'a'"),
        ({"agents": [{"id": "a", "name": "x"}], "answer": "b"}, "answer is 'b', and its agents are a"),
        ({"agents": [{"id": "a", "name": "x"}, {"id": "b", "name": "x"}]}, "ends in a, b; choose whose result counts"),
        ({"agents": [{"id": "a", "name": "x", "arguments": {"t": "${c}"}}]}, "c"),
    ],
)
def test_a_graph_that_cannot_be_is_refused(graph: dict[str, Any], message: str) -> None:
    with pytest.raises(ct.UsageError, match=message):
        StaticWorkflow(graph=graph)


def test_a_workflow_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ct.UsageError, match="file not found"):
        StaticWorkflow(file=str(tmp_path / "w.toml"))
    (tmp_path / "w.toml").write_text("[")
    with pytest.raises(ct.UsageError, match=r"w\.toml: cannot be read"):
        StaticWorkflow(file=str(tmp_path / "w.toml"))
    (tmp_path / "w.json").write_text("[]")
    with pytest.raises(ct.UsageError, match="it is list; expected an object"):
        StaticWorkflow(file=str(tmp_path / "w.json"))


@ct.tool
def rolls(trays: int) -> int:
    """Count the rolls of some trays."""
    return trays * 14


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (
            MajorityVote(),
            r"majority-vote: no model of the pool can be asked as an agent; offer some with pool\.offering",
        ),
        (Cascade(members=("ask_sma",)), "cascade: the pool has no member 'ask_sma'; there are rolls"),
        (MajorityVote(members=("rolls",)), "the member 'rolls' takes trays; expected a member that takes one text"),
        (KnnRouter(), "knn-router: no model of the pool"),
        (StaticWorkflow(), "static-workflow has no graph; give file="),
        (StaticWorkflow(graph={"agents": [{"id": "a", "name": "roll"}]}), "'a' calls 'roll'; did you mean 'rolls'"),
    ],
)
async def test_a_pool_that_lacks_something_is_refused_before_anything_runs(strategy: ct.Strategy, message: str) -> None:
    model = Says("x")
    pool = ct.Pool([rolls, ct.ModelSpec("m", lambda: model)])
    with pytest.raises(ct.UsageError, match=message):
        await run(strategy, pool)
    assert model.asked == []


async def test_a_router_needs_a_profile_of_these_models() -> None:
    pool = make_pool(other=Says("x"))
    with pytest.raises(ct.UsageError, match="no profile; give profile="):
        await run(KnnRouter(), pool)
    with pytest.raises(ct.UsageError, match="the profile knows small, large, and the members are ask_other"):
        await run(KnnRouter(fitted=RouterProfile.fit(ROWS)), pool)
    with pytest.raises(ct.UsageError, match="file not found"):
        await run(KnnRouter(profile="nothing.json"), pool)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MajorityVote(samples=0), r"MajorityVote\(samples=0\): expected a whole number, at least 1"),
        (lambda: MajorityVote(voters="all"), r"voters='all'\): expected members or leader"),  # type: ignore[arg-type]
        (lambda: MajorityVote(answers="int"), r"answers='int'\): expected auto or number or text"),  # type: ignore[arg-type]
        (lambda: Cascade(members="ask_a"), r"Cascade\(members='ask_a'\): expected names"),  # type: ignore[arg-type]
        (lambda: KnnRouter(cost_weight=-1), r"cost_weight=-1\): expected a number, 0 or more"),
        (lambda: KnnRouter(fitted="p.json"), r"expected a RouterProfile; the path of a file is `profile`"),  # type: ignore[arg-type]
        (lambda: SelfRefine(revisions=True), r"SelfRefine\(revisions=True\): expected a whole number"),
        (lambda: Serial(max_parallel=0), "expected at least 1"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ct.UsageError, match=message):
        make()


async def test_serial_orchestration_runs_one_call_of_a_round() -> None:
    calls = '<tool_call>{"name": "rolls", "arguments": {"trays": 6}}</tool_call>' * 2
    end = '<reasoning>done</reasoning><tool_call>{"name": "final_answer", "arguments": {}}</tool_call>'
    with ScriptedModel(f"<reasoning>r</reasoning>{calls}", end, "<answer>84</answer>") as script:
        done = await run(Serial(), ct.Pool([rolls, ct.ModelSpec("m", lambda: script)]))
    assert [seen.status for seen in done.observations] == ["OK", "PARSE_ERR"]
    assert done.answer == "84"


async def test_a_single_model_with_tools_calls_them_in_turn() -> None:
    first, second = '{"name": "rolls", "arguments": {"trays": 6}}', '{"name": "answer", "arguments": {"text": "84"}}'
    turns = [f"<tool_call>{call}</tool_call>" for call in (first, second)]
    with ScriptedModel(*turns) as script:
        done = await run(SingleWithTools(), ct.Pool([rolls, ct.ModelSpec("m", lambda: script)]))
    assert (done.answer, [seen.content for seen in done.observations]) == ("84", [84])


# -- traces ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", [MajorityVote(), Cascade(), SelfRefine(), SingleModel(), MajorityVote(samples=2)])
async def test_a_recorded_run_is_replayed_to_the_same_end(strategy: ct.Strategy, tmp_path: Path) -> None:
    pool = make_pool(a=Says("24"), b=Says("25"), c=Says("25"))
    done = await run(strategy, pool, trace=tmp_path / "run.trace.jsonl")
    again = ct.replay(ct.Trace.load(tmp_path / "run.trace.jsonl"), type(strategy).from_json(strategy.to_json()))
    assert (again.answer, again.stop, again.detail) == (done.answer, done.stop, done.detail)


async def test_an_interrupted_vote_is_resumed_and_asks_nobody_twice(tmp_path: Path) -> None:
    path = tmp_path / "run.trace.jsonl"
    strategy = MajorityVote(members=("ask_a", "ask_b"))
    await run(strategy, make_pool(a=Says("24"), b=Says("25")), trace=path, budget=ct.Budget(parallel=1))
    lines = path.read_bytes().splitlines(keepends=True)
    plans = [at for at, line in enumerate(lines) if json.loads(line[9:])["t"] == "plan"]
    assert len(plans) == 2
    (tmp_path / "cut.trace.jsonl").write_bytes(b"".join(lines[: plans[1]]))
    first, second = Says("24"), Says("25")
    leader = ct.Orchestrator("orchestrator", strategy)
    done = await leader.resume(tmp_path / "cut.trace.jsonl", pool=make_pool(a=first, b=second))
    assert (done.answer, len(first.asked), len(second.asked)) == ("24", 0, 1)


# -- systems -----------------------------------------------------------------------------------------------------------


async def test_the_systems_of_a_pool_share_its_models_and_each_works(tmp_path: Path) -> None:
    pool = make_pool(small=Says("24"), large=Says("25")).adding(rolls)
    (tmp_path / "w.toml").write_text('[[agents]]\nid = "a"\nname = "ask_small"\narguments = { task = "{question}" }\n')
    found = systems(pool, profile=RouterProfile.fit(ROWS), workflow=str(tmp_path / "w.toml"), answers="number")
    names = [system.name for system in found]
    assert names == [
        "single-model:small",
        "single-model:large",
        "single-with-tools",
        "majority-vote",
        "self-refine",
        "knn-router",
        "cascade",
        "static-workflow",
        "serial",
        "prompted",
    ]
    seen = {system.name: [visible for visible, _ in system.pool(pool).actions] for system in found}
    assert seen["single-model:small"] == ["ask_small"]
    assert seen["single-with-tools"] == ["rolls"]
    assert sorted(seen["majority-vote"]) == ["ask_large", "ask_small"]
    assert sorted(seen["prompted"]) == sorted(seen["serial"]) == ["ask_large", "ask_small", "rolls"]
    for system in found[:2] + found[3:8]:
        done = await ct.Orchestrator(system.model, system.strategy).run(QUESTION, pool=system.pool(pool))
        assert done.answer in ("24", "25"), system.name
        assert system.to_json()["strategy"]["name"] in system.name


def test_a_tool_in_the_pool_takes_no_model_from_a_loop() -> None:
    pool = ct.Pool([rolls, ct.ModelSpec("a", Says), ct.ModelSpec("b", Says)])
    for system in systems(pool, ["majority-vote", "cascade", "serial", "prompted"]):
        seen = {visible for visible, _ in system.pool(pool).actions} - {"rolls"}
        assert seen == {"ask_a", "ask_b"}, system.name


def test_systems_ask_the_cheap_first_and_let_the_dear_break_a_tie() -> None:
    pool = ct.Pool(
        [
            model.with_(prices=ct.Prices(price, price))
            for model, price in zip([ct.ModelSpec(name, Says) for name in "abc"], (2, 3, 1), strict=True)
        ]
    )
    vote, cascade = systems(pool, ["majority-vote", "cascade"])
    assert cascade.strategy.members == ("ask_c", "ask_a", "ask_b")  # type: ignore[union-attr]
    assert vote.strategy.members == ("ask_b", "ask_a", "ask_c")  # type: ignore[union-attr]
    assert {system.model for system in (vote, cascade)} == {"c"}


def test_what_a_baseline_lacks_is_said_where_it_was_asked_for() -> None:
    pool = make_pool(a=Says("x"))
    assert "knn-router" not in {system.name for system in systems(pool)}
    for name, message in (
        ("knn-router", "'knn-router': it needs profile="),
        ("static-workflow", "'static-workflow': it needs workflow="),
        ("single-with-tools", "'single-with-tools': the pool holds no tool"),
        ("majority-votes", "no baseline 'majority-votes'; did you mean 'majority-vote'"),
    ):
        with pytest.raises(ct.UsageError, match=message):
            systems(pool, [name])
    with pytest.raises(ct.UsageError, match="the pool holds no model"):
        systems(ct.Pool.of(rolls))


def test_the_hook_would_publish_each_baseline_under_its_name() -> None:
    assert [kind.name for kind in strategies()] == [
        "single-model",
        "single-with-tools",
        "majority-vote",
        "self-refine",
        "knn-router",
        "cascade",
        "static-workflow",
        "serial",
        "prompted",
    ]
    assert Prompted().max_parallel == 4
    assert Serial().max_parallel == 1
