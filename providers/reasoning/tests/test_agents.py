"""The agents: whom they ask, with what, how often, how many at once, and what they make of the replies."""

from __future__ import annotations

from typing import Any

import concertino as ct
import pytest
from concertino.testing import ScriptedModel, run_call
from concertino_reasoning import agents
from concertino_reasoning.prompts import APPROACHES

from .helpers import (
    EACH_AGENT,
    REQUESTS,
    ROLES,
    ROUND_TRIPS,
    TASK,
    Worker,
    answer_of,
    arguments_of,
    notes_of,
    pool_of,
    run_virtually,
    solution,
    well_formed,
)

QUESTION = "How many hours has a week, less 126?"
CERTAIN = "<feedback>It holds.</feedback><verdict>correct</verdict>"
DOUBT = "<feedback>Step 2 is wrong.</feedback><verdict>wrong</verdict>"


async def run(name: str, model: ct.Model, arguments: dict[str, Any] | None = None, **options: Any) -> ct.Observation:
    """One call of an agent, with one model in every role."""
    given = arguments_of(name) if arguments is None else arguments
    return await run_call(EACH_AGENT[name], given, pool=pool_of(model), question=QUESTION, **options)


def texts(request: ct.ChatRequest) -> str:
    return "\n".join(message.text for message in request.messages)


# -- all of them -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EACH_AGENT)
def test_requests_are_as_many_as_declared_and_a_rounds_are_made_at_once(name: str) -> None:
    worker = Worker()
    seen = run_virtually(run(name, worker))
    assert seen.ok, seen.error
    assert len(worker.requests) == REQUESTS[name]
    assert seen.ended - seen.started == pytest.approx(ROUND_TRIPS[name], abs=1e-3)
    assert worker.running == 0


@pytest.mark.parametrize("name", EACH_AGENT)
async def test_without_a_subtask_the_question_of_the_run_is_worked_on(name: str) -> None:
    worker = Worker(seconds=0)
    given = {key: value for key, value in arguments_of(name).items() if key in ("roles", "text")}
    assert (await run(name, worker, given)).ok
    assert all(QUESTION in texts(request) for request in worker.requests)


@pytest.mark.parametrize(
    "name", [name for name in EACH_AGENT if name not in ("ensemble_solver", "conclude", "extract")]
)
async def test_a_subtask_is_worked_on_alone(name: str) -> None:
    worker = Worker(seconds=0)
    await run(name, worker)
    assert all(TASK["subtask"] in texts(request) for request in worker.requests)
    assert not any(QUESTION in texts(request) for request in worker.requests)


@pytest.mark.parametrize("name", EACH_AGENT)
async def test_neither_task_nor_question_is_refused_with_a_direction(name: str) -> None:
    worker = Worker()
    given = {key: value for key, value in arguments_of(name).items() if key in ("roles", "text")}
    seen = await run_call(
        EACH_AGENT[name], {**given, **({"subtask": " "} if "roles" in given else {})}, pool=pool_of(worker)
    )
    assert seen.error is not None
    assert (seen.error.code, worker.requests) == ("rejected", [])
    argument = {"ensemble_solver": "question", "conclude": "question", "extract": "wanted"}.get(name, "subtask")
    assert seen.error.message.startswith(f"{argument}: ")
    assert ("put everything" if argument != "question" else "give a task to another agent") in seen.error.message


@pytest.mark.parametrize("name", EACH_AGENT)
async def test_every_request_goes_to_the_model_that_the_caller_names(name: str) -> None:
    worker, other = Worker(seconds=0), Worker(seconds=0)
    pool = pool_of(worker, coder=other)
    for given in ("coder", "model-coder"):
        other.requests.clear()
        seen = await run_call(EACH_AGENT[name], {**arguments_of(name), "model": given}, pool=pool, question=QUESTION)
        assert seen.ok
        assert (len(worker.requests), len(other.requests)) == (0, REQUESTS[name])


@pytest.mark.parametrize("name", EACH_AGENT)
async def test_an_unknown_model_is_refused_with_the_names_there_are(name: str) -> None:
    worker = Worker()
    pool = pool_of(worker, coder=worker)
    seen = await run_call(EACH_AGENT[name], {**arguments_of(name), "model": "coda"}, pool=pool, question=QUESTION)
    assert seen.error is not None
    assert (seen.error.code, worker.requests) == ("rejected", [])
    for part in (
        "model: the pool has no 'coda'",
        "did you mean coder? ",
        "there are coder, default, model-coder, worker",
    ):
        assert part in seen.error.message


async def test_a_pool_without_a_default_says_how_to_bind_one() -> None:
    pool = ct.Pool.of(*(ct.ModelSpec(f"m/{name}", Worker) for name in "ab"))
    seen = await run_call(agents.cot, TASK, pool=pool)
    assert seen.error is not None
    assert seen.error.code == "rejected"
    assert "bind it with pool.bind(default=" in seen.error.message


@pytest.mark.parametrize("name", EACH_AGENT)
async def test_a_failing_model_gives_its_own_cause(name: str) -> None:
    refusing = ScriptedModel(ct.ProviderError("no such key", failure=ct.FailureClass.CALLER), strict=False)
    seen = await run(name, refusing)
    assert seen.error is not None
    assert seen.error.code == "rejected"
    assert "no such key" in seen.error.message


@pytest.mark.parametrize("name", [name for name in EACH_AGENT if name != "extract"])
async def test_an_empty_reply_is_a_failure_that_may_be_repeated(name: str) -> None:
    seen = await run(name, ScriptedModel("<think>hm</think>", strict=False))
    assert seen.error is not None
    assert (seen.error.code, seen.error.retryable) == ("truncated", True)


@pytest.mark.parametrize("name", EACH_AGENT)
def test_costs_are_the_papers(name: str) -> None:
    units = {"self_consistency": 5, "debate": 7, "reflexion": 2, "ensemble_solver": 4}
    assert EACH_AGENT[name].cost == ct.Cost(units=units.get(name, 1))


@pytest.mark.parametrize("name", EACH_AGENT)
async def test_what_it_asks_is_charged_to_its_call_and_recorded_below_it(name: str) -> None:
    worker, events = Worker(seconds=0), []
    seen = await run(name, worker, after=[], listeners=[events.append])
    asked = [event for event in events if isinstance(event, ct.events.CallStarted) and event.kind == "model"]
    assert len(asked) == len(worker.requests) == REQUESTS[name]
    assert {event.parent for event in asked} == {seen.call_id}
    assert seen.usage.units == EACH_AGENT[name].cost.units
    assert seen.usage.tokens > 0


# -- one request -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "temperature"), [("cot", 0.5), ("standard_reasoner", None), ("conclude", None)])
async def test_a_single_request_holds_instruction_and_task(name: str, temperature: float | None) -> None:
    with ScriptedModel(solution("42")) as model:
        seen = await run(name, model)
    [request] = model.requests
    assert [message.role for message in request.messages] == ["system", "user"]
    assert "<answer>" in request.messages[0].text
    assert request.sampling == ct.Sampling(temperature=temperature)
    assert str(seen.content).startswith(solution("42"))


async def test_a_task_that_stands_alone_is_shown_unchanged() -> None:
    for name in ("cot", "standard_reasoner", "self_consistency", "reflexion"):
        worker = Worker(seconds=0)
        await run(name, worker, {"subtask": "Is <task> a < b?\n"})
        assert worker.requests[0].messages[-1].text == "Is <task> a < b?"


async def test_a_reply_without_a_marked_answer_is_given_whole() -> None:
    seen = await run("cot", ScriptedModel("First this.\nThen that."))
    assert answer_of(seen) == "First this.\nThen that."


# -- self-consistency --------------------------------------------------------------------------------------------------


async def test_the_answer_of_most_samples_wins_with_its_first_reasoning() -> None:
    replies = ["17", "0.5", "1/2", "17", "\\frac{1}{2}"]
    model = ScriptedModel(*(solution(answer, f"way {n}") for n, answer in enumerate(replies)))
    seen = await run("self_consistency", model)
    assert answer_of(seen) == "\\boxed{0.5}"
    assert "way 1" in str(seen.content)
    assert notes_of(seen) == "- 5 of 5 samples voted: 0.5 (3), 17 (2)"


async def test_samples_share_their_prompt_and_differ_in_their_seed() -> None:
    worker = Worker(seconds=0)
    await run("self_consistency", worker)
    assert len({texts(request) for request in worker.requests}) == 1
    assert [request.sampling.seed for request in worker.requests] == [None, 1, 2, 3, 4]
    assert {request.sampling.temperature for request in worker.requests} == {0.5}


async def test_a_tie_between_samples_is_stated() -> None:
    seen = await run("self_consistency", ScriptedModel(*map(solution, ["1", "2", "2", "1", "3"])))
    assert answer_of(seen) == "\\boxed{1}"
    assert "a tie of 2" in notes_of(seen)


async def test_failed_and_empty_samples_are_left_out_of_the_vote_and_counted() -> None:
    broken = ct.ProviderError("bad request", failure=ct.FailureClass.CALLER)
    seen = await run("self_consistency", ScriptedModel(solution("1"), broken, "", solution("2"), solution("2")))
    assert answer_of(seen) == "\\boxed{2}"
    assert "3 of 5 samples voted: 2 (2), 1 (1)" in notes_of(seen)
    assert "2 of 5 samples failed; the first: rejected" in notes_of(seen)


async def test_samples_without_any_mark_give_the_first_whole_and_say_so() -> None:
    seen = await run("self_consistency", ScriptedModel(*(f"essay {n}\nof two lines" for n in range(5))))
    assert answer_of(seen) == "essay 0\nof two lines"
    assert "0 of 5 samples voted" in notes_of(seen)
    assert "no sample marks an answer" in notes_of(seen)


async def test_other_numbers_of_samples_make_another_agent() -> None:
    spec = agents.self_consistency_agent(samples=3, temperature=1.0)
    worker = Worker(seconds=0)
    assert (await run_call(spec, TASK, pool=pool_of(worker))).usage.units == 3
    assert [request.sampling.temperature for request in worker.requests] == [1.0] * 3


# -- ensemble ----------------------------------------------------------------------------------------------------------


async def test_each_path_of_an_ensemble_has_an_approach_of_its_own() -> None:
    worker = Worker(seconds=0)
    await run("ensemble_solver", worker)
    systems = [request.messages[0].text for request in worker.requests]
    assert all(approach in system for approach, system in zip(APPROACHES, systems, strict=True))
    assert len(set(systems)) == 4


async def test_an_ensemble_that_agrees_enough_asks_nobody_else() -> None:
    with ScriptedModel(*map(solution, ["1", "2", "2", "3"])) as model:
        seen = await run("ensemble_solver", model)
    assert answer_of(seen) == "\\boxed{2}"


async def test_an_ensemble_that_is_tied_lets_one_request_weigh_all_paths() -> None:
    with ScriptedModel(*map(solution, ["1", "2", "2", "1"]), solution("2", "The first is wrong.")) as model:
        seen = await run("ensemble_solver", model)
    shown = texts(model.requests[-1])
    assert shown.count("<solution number=") == 4
    assert QUESTION in shown
    assert answer_of(seen) == "\\boxed{2}"
    assert notes_of(seen).startswith("- 4 of 4 samples voted: 1 (2), 2 (2); a tie of 2\n")
    assert "one more request weighed the solutions" in notes_of(seen)


async def test_an_ensemble_that_nobody_settles_gives_the_first_of_the_tied() -> None:
    refused = ct.ProviderError("bad request", failure=ct.FailureClass.CALLER)
    seen = await run("ensemble_solver", ScriptedModel(*map(solution, ["1", "2", "3", "4"]), refused))
    assert answer_of(seen) == "\\boxed{1}"
    assert "it was not settled: rejected" in notes_of(seen)


# -- debate ------------------------------------------------------------------------------------------------------------


async def test_a_first_turn_sees_the_task_and_later_ones_the_last_solutions_of_all() -> None:
    def say(request: ct.ChatRequest, number: int) -> str:
        return solution(str(number), f"thought {number}")

    worker = Worker(say, seconds=0)
    seen = await run("debate", worker)
    first, second, last = worker.requests[:3], worker.requests[3:6], worker.requests[-1]
    for at, request in enumerate(first):
        assert f"<role>\n{ROLES[at]}\n</role>" in texts(request)
        assert "solution>" not in request.messages[1].text
    for at, request in enumerate(second):
        own = request.messages[1].text.partition("<own_solution>")[2].partition("</own_solution>")[0]
        assert f"thought {at}" in own
        for other in {0, 1, 2} - {at}:
            assert f'<other_solution role="{ROLES[other]}">\n<reasoning>\nthought {other}\n' in request.messages[1].text
    for at in range(3):
        assert f'<solution role="{ROLES[at]}">\n<reasoning>\nthought {12 + at}\n' in last.messages[1].text
    assert "thought 3" not in texts(last)
    assert answer_of(seen) == "\\boxed{15}"
    assert "5 of 5 rounds with 3 roles; at the end optimist: 12; accountant: 13; sceptic: 14" in notes_of(seen)


async def test_the_moderator_has_a_role_of_its_own() -> None:
    worker, moderator = Worker(seconds=0), Worker(seconds=0)
    await run_call(agents.debate, arguments_of("debate"), pool=pool_of(worker, moderator=moderator))
    assert (len(worker.requests), len(moderator.requests)) == (15, 1)


async def test_a_role_that_fails_in_a_round_keeps_its_last_solution() -> None:
    broken = ct.ProviderError("bad request", failure=ct.FailureClass.CALLER)
    turns = [solution("1"), solution("2"), broken, solution("3"), solution("9")]
    spec = agents.debate_agent(rounds=2)
    with ScriptedModel(*turns) as model:
        seen = await run_call(spec, {**TASK, "roles": ROLES[:2]}, pool=pool_of(model))
    assert "at the end optimist: 1; accountant: 3" in notes_of(seen)
    assert "1 turns failed; the first: rejected" in notes_of(seen)


async def test_without_a_moderator_the_last_solutions_are_counted() -> None:
    refusing = ScriptedModel(ct.ProviderError("bad request", failure=ct.FailureClass.CALLER))
    worker = Worker(lambda request, number: solution("7" if number % 3 else "8"), seconds=0)
    seen = await run_call(agents.debate, arguments_of("debate"), pool=pool_of(worker, moderator=refusing))
    assert answer_of(seen) == "\\boxed{7}"
    assert "no moderator (rejected): the last solutions were counted instead" in notes_of(seen)


@pytest.mark.parametrize("roles", [None, [], ["one"], ["one", ""], "one, two", ["x"] * 7])
async def test_a_debate_needs_two_to_six_roles(roles: Any) -> None:
    seen = await run_call(
        agents.debate, {**TASK, **({} if roles is None else {"roles": roles})}, pool=pool_of(Worker())
    )
    assert seen.status is ct.Status.PARSE_ERR


# -- reflexion ---------------------------------------------------------------------------------------------------------


async def test_a_critic_that_is_certain_ends_the_loop() -> None:
    with ScriptedModel(solution("1"), DOUBT, solution("2"), CERTAIN) as model:
        seen = await run("reflexion", model)
    assert answer_of(seen) == "\\boxed{2}"
    assert notes_of(seen) == "- the critic is certain of attempt 2 of at most 6"
    assert "<solution>" in texts(model.requests[1])
    assert "Step 2 is wrong." in texts(model.requests[2])


async def test_each_revision_sees_every_attempt_with_its_feedback() -> None:
    doubts = [DOUBT.replace("Step 2", f"Step {n}") for n in range(1, 6)]
    script = [solution("0"), *(turn for n, doubt in enumerate(doubts, 1) for turn in (doubt, solution(str(n))))]
    with ScriptedModel(*script) as model:
        seen = await run("reflexion", model)
    shown = model.requests[-1].messages[1].text
    assert shown.count("<attempt number=") == shown.count("<feedback number=") == 5
    assert shown.index("Step 1 is wrong.") < shown.index("\\boxed{1}") < shown.index("Step 5 is wrong.")
    assert answer_of(seen) == "\\boxed{5}"
    assert "attempt 6 stands, not approved: the critic was never certain" in notes_of(seen)


@pytest.mark.parametrize(
    ("verdict", "certain"),
    [
        (CERTAIN, True),
        ("<verdict> Correct </verdict>", True),
        ("<verdict>correct</verdict>, no: <verdict>wrong</verdict>", False),
        ("It is correct.", False),
        ("<verdict>correctly solved? no</verdict>", False),
        ("", False),
    ],
)
async def test_only_a_plain_verdict_counts_as_certain(verdict: str, certain: bool) -> None:
    spec = agents.reflexion_agent(rounds=1)
    model = ScriptedModel(solution("1"), verdict, solution("2"), strict=False)
    seen = await run_call(spec, TASK, pool=pool_of(model))
    assert len(model.requests) == (2 if certain else 3)
    assert answer_of(seen) == ("\\boxed{1}" if certain else "\\boxed{2}")


async def test_the_last_attempt_stands_when_critic_or_revision_fail() -> None:
    broken = ct.ProviderError("bad request", failure=ct.FailureClass.CALLER)
    seen = await run("reflexion", ScriptedModel(solution("1"), broken))
    assert (answer_of(seen), "no critic (rejected)" in notes_of(seen)) == ("\\boxed{1}", True)
    seen = await run("reflexion", ScriptedModel(solution("1"), DOUBT, ""))
    assert (answer_of(seen), "no other came (truncated)" in notes_of(seen)) == ("\\boxed{1}", True)


async def test_the_critic_has_a_role_of_its_own() -> None:
    worker, critic = Worker(seconds=0), ScriptedModel(CERTAIN)
    await run_call(agents.reflexion, TASK, pool=pool_of(worker, critic=critic))
    assert (len(worker.requests), len(critic.requests)) == (1, 1)


# -- extract -----------------------------------------------------------------------------------------------------------


async def extracted(reply: str, text: str = "In 1648 they met.\nIt rained.") -> ct.Observation:
    return await run("extract", ScriptedModel(reply), {"text": text, "wanted": "the year"})


async def test_a_value_comes_with_the_passage_that_states_it() -> None:
    seen = await extracted('{"found": true, "value": "1648", "quote": "in 1648  they met"}')
    assert answer_of(seen) == "\\boxed{1648}"
    assert "The text says: in 1648  they met" in str(seen.content)
    assert notes_of(seen) == ""


async def test_a_passage_that_the_text_does_not_hold_is_told() -> None:
    seen = await extracted('{"found": true, "value": "1649", "quote": "In 1649 they met"}')
    assert "does not occur in the text word for word" in notes_of(seen)


@pytest.mark.parametrize(
    "reply", ['{"found": false, "value": "", "quote": ""}', '{"found": true, "value": " ", "quote": ""}']
)
async def test_what_a_text_does_not_state_is_said(reply: str) -> None:
    assert answer_of(await extracted(reply)) == "not stated in the text"


async def test_without_a_usable_model_only_a_marked_answer_is_taken() -> None:
    seen = await extracted("no JSON", "So it was.\nAnswer: 1648")
    assert answer_of(seen) == "\\boxed{1648}"
    assert "by rule; no model was of use (bad_reply)" in notes_of(seen)
    seen = await extracted("no JSON", "It was in 1648.")
    assert seen.error is not None
    assert seen.error.code == "bad_reply"


# -- declaring ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "wrong", "named"),
    [
        (agents.self_consistency_agent, {"samples": 1}, "samples=1"),
        (agents.self_consistency_agent, {"samples": True}, "samples=True"),
        (agents.debate_agent, {"rounds": 0}, "rounds=0"),
        (agents.reflexion_agent, {"rounds": 1.5}, "rounds=1.5"),
        (agents.ensemble_agent, {"paths": 1}, "paths=1"),
    ],
)
def test_a_parameter_out_of_range_is_refused(make: Any, wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(ct.SpecError, match=named):
        make(**wrong)


def test_every_observation_is_well_formed() -> None:
    assert all(well_formed(run_virtually(run(name, Worker()))) for name in EACH_AGENT)
