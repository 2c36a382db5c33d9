"""Serial trajectories become parallel ones exactly where no call needs another's result."""

from __future__ import annotations

import json
from typing import Any

import concertino as ct
import pytest
from concertino import Observation, Status
from concertino.strategies.dependency_plan import DependencyPlan
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino.strategies.serial_calls import SerialCalls
from concertino.testing import ScriptedModel, make_pool
from concertino_train.data import RoleConversation, conversations_of
from concertino_train.data.dataflow import MadeValue, dependencies, rounds_of
from concertino_train.data.rewriting import NotParallel, parallelised
from hypothesis import given
from hypothesis import strategies as st

QUESTION = "Who is older, the director of Seconds or the author of Shrines of Gaiety?"
FINAL = [("final_answer", {})]
FACTS = {
    "director of Seconds": "John Frankenheimer directed Seconds in 1966.",
    "author of Shrines of Gaiety": "Kate Atkinson wrote it.",
    "Frankenheimer birth": "He was born on 19 February 1930.",
    "Atkinson birth": "She was born on 20 December 1951.",
}


@ct.tool
def search(query: str) -> str:
    """Search for something."""
    return FACTS[query]


@ct.tool(writes=True)
def write(text: str) -> str:
    """Write something down."""
    return "noted"


POOL = make_pool(search, write)
QUERIES = list(FACTS)


def made(name: str, arguments: Any, content: Any = "ok", *, ok: bool = True, thought: str = "") -> MadeValue:
    status = Status.OK if ok else Status.EXEC_ERR
    error = None if ok else ct.ErrorInfo("raised", "it broke")
    return MadeValue(name, arguments, Observation("1.1", name, status, content if ok else None, error), thought)


def needs(*calls: MadeValue, known: str = QUESTION, **options: Any) -> list[list[int]]:
    return [sorted(each) for each in dependencies(known, calls, **options)]


def searched(query: str, **options: Any) -> MadeValue:
    return made("search", {"query": query}, FACTS.get(query, options.pop("content", "ok")), **options)


def serial_run(*queries: str, strategy: ct.Strategy | None = None, answer: str = "Frankenheimer") -> ct.Trace:
    """One call in each round, then the answer."""
    chosen = strategy or ParallelRounds(max_parallel=1)
    with ScriptedModel(*_texts(chosen, queries, answer)) as model:
        orchestrator = ct.Orchestrator(model, chosen)
        budget = ct.Budget(rounds=10, units=20)
        return orchestrator.run_sync(QUESTION, pool=POOL, budget=budget).trace


def _texts(strategy: ct.Strategy, queries: tuple[str, ...], answer: str) -> list[str]:
    if isinstance(strategy, DependencyPlan):
        calls = [f'<think>I look for {q}.</think>\n<search>["{q}"]</search>' for q in queries]
        return [*calls, f'<think>Done.</think><answer>["{answer}"]</answer>']
    tag = "think" if isinstance(strategy, SerialCalls) else "reasoning"
    calls = [
        f"<{tag}>I look for {q}.</{tag}>\n<tool_call>{json.dumps({'name': 'search', 'arguments': {'query': q}})}"
        "</tool_call>"
        for q in queries
    ]
    if isinstance(strategy, SerialCalls):
        return [*calls, f'<tool_call>{{"name": "answer", "arguments": {{"text": "{answer}"}}}}</tool_call>']
    final = '<reasoning>Done.</reasoning>\n<tool_call>{"name": "final_answer", "arguments": {}}</tool_call>'
    return [*calls, final, f"<answer>{answer}</answer>"]


# -- what needs what ---------------------------------------------------------------------------------------------------


def test_a_call_needs_the_result_whose_words_it_holds() -> None:
    assert needs(*map(searched, QUERIES)) == [[], [], [0], [1]]


def test_words_of_the_question_and_of_earlier_own_texts_need_nothing() -> None:
    first = searched("director of Seconds", thought="Perhaps Frankenheimer.")
    assert needs(first, searched("Frankenheimer birth"))[1] == []
    assert (
        needs(made("search", {"query": "x"}, "the author of Shrines"), searched("author of Shrines of Gaiety"))[1] == []
    )


def test_a_number_of_a_result_is_needed_even_where_the_question_has_it_too() -> None:
    known = "Add 7 and 8, then double it. There are 7 of them in the red box and no more."
    assert needs(made("add", {"a": 7, "b": 8}, 7), made("double", {"a": 7}), known=known) == [[], [0]]
    copied = made("read", {"text": "There are 7 of them in the red box"})
    assert needs(made("add", {"a": 1}, 7), copied, known=known)[1] == []


def test_a_name_or_number_from_nowhere_may_rest_on_any_result() -> None:
    calls = [searched("director of Seconds"), searched("author of Shrines of Gaiety")]
    assert needs(*calls, made("search", {"query": "history of Finland"}))[2] == [0, 1]
    assert needs(*calls, made("add", {"a": 1930}))[2] == [0, 1]
    assert needs(*calls, made("search", {"query": "history of cinema"}))[2] == []


@pytest.mark.parametrize(
    ("known", "first", "result", "second"),
    [
        ("Where is the Eiffel tower, and how large is that city?", "Eiffel tower", "in France", "Paris size"),
        ("Where is the Eiffel tower, and how large is that city?", "Eiffel tower", "in France", "Paris"),
        ("How old is its author?", "its author", "Ang Li wrote it.", "Li age"),
        ("埃菲尔铁塔所在国家的首都有多少人口？", "埃菲尔铁塔", "法国", "巴黎人口"),
    ],
)
def test_a_name_needs_what_it_may_rest_on_wherever_it_stands_and_in_every_script(
    known: str, first: str, result: str, second: str
) -> None:
    calls = made("search", {"query": first}, result), made("search", {"query": second})
    assert needs(*calls, known=known)[1] == [0]


def test_a_capital_at_the_beginning_of_a_sentence_is_no_name() -> None:
    calls = made("search", {"query": "x"}, "done"), made("search", {"query": "Director of Seconds"})
    assert needs(*calls) == [[], []]
    assert needs(calls[0], made("search", {"query": "Is it Seconds"})) == [[], []]


def test_a_call_waits_for_one_that_failed_for_itself_and_for_what_writes() -> None:
    calls = [searched("director of Seconds", ok=False), searched("author of Shrines of Gaiety")]
    assert needs(*calls) == [[], [0]]
    same = searched("author of Shrines of Gaiety")
    assert needs(same, same) == [[], [0]]
    note = made("write", {"text": "older"})
    assert needs(calls[1], note, made("search", {"query": "the director"}), writes=["write"]) == [[], [0], [1]]


def test_data_is_looked_into_at_any_depth() -> None:
    first = made("find", {"q": "older"}, {"rows": [{"name": "Zyx", "ids": [4711, True, None]}]})
    assert needs(first, made("get", {"ids": [{"of": 4711}]}), made("get", {"of": {"who": ["zyx"]}})) == [[], [0], [0]]


@given(st.lists(st.lists(st.integers(0, 30), max_size=3), min_size=1, max_size=12), st.integers(1, 4))
def test_rounds_hold_every_call_once_behind_what_it_needs(drawn: list[list[int]], most: int) -> None:
    wanted = [{at % place for at in row} if place else set() for place, row in enumerate(drawn)]
    rounds = rounds_of(wanted, most)
    number = {place: at for at, row in enumerate(rounds) for place in row}
    assert sorted(number) == list(range(len(drawn)))
    assert all(len(row) <= most for row in rounds)
    assert all(number[other] < number[place] for place, others in enumerate(wanted) for other in others)


# -- rewritten ---------------------------------------------------------------------------------------------------------

SOURCES = {
    "rounds": ParallelRounds(max_parallel=1),
    "serial": SerialCalls(),
    "plan": DependencyPlan(max_parallel=1),
    "free rounds": ParallelRounds(),
}


def plans_of(found: RoleConversation, strategy: ct.Strategy) -> list[list[tuple[str, Any]]]:
    """The plans that a machine makes of the policy's texts."""
    from concertino.strategies import Act, Ask, TaskContext

    machine = strategy.begin(TaskContext(found.question, POOL.to_openai()))
    plans = []
    for place in found.own:
        assert isinstance(machine.step(), Ask)
        machine.on_reply(ct.Reply(found.messages[place].text))
        step = machine.step()
        if isinstance(step, Act):
            assert step.issues == ()
            plans.append([(call.name, call.arguments) for call in step.plan.calls])
            seen = [Observation(f"{step.round}.{call.id}", call.name, Status.OK, "x") for call in step.plan.calls]
            machine.observe(seen)
    return plans


@pytest.mark.parametrize("target", ["parallel-rounds", "dependency-plan"])
@pytest.mark.parametrize("source", SOURCES)
def test_independent_calls_go_out_together_and_the_machine_reads_the_plan_that_was_meant(
    source: str, target: Any
) -> None:
    new = parallelised(serial_run(*QUERIES, strategy=SOURCES[source]), target, tools=POOL.to_openai(), task="t")
    assert (new.rounds, new.before) == (((0, 1), (2, 3)), 4)
    strategy = ParallelRounds() if target == "parallel-rounds" else DependencyPlan()
    meant = [[("search", {"query": QUERIES[place]}) for place in row] for row in new.rounds]
    assert plans_of(new.conversation, strategy) == meant
    found = new.conversation
    assert found.own == found.train
    assert (found.strategy, found.rewritten, found.task) == (target, SOURCES[source].name, "t")
    assert new.calls == (("search", "search"), ("search", "search"))


@pytest.mark.parametrize("target", ["parallel-rounds", "dependency-plan"])
def test_observations_are_shown_together_each_once_with_new_numbers(target: Any) -> None:
    found = parallelised(serial_run(*QUERIES), target, tools=POOL.to_openai()).conversation
    shown = [message.text for message in found.messages if '"status"' in message.text and message.role == "user"]
    assert [text.count('"status": "OK"') for text in shown] == [2, 2]
    for text, facts in zip(shown, (list(FACTS.values())[:2], list(FACTS.values())[2:]), strict=True):
        assert all(fact in text for fact in facts)
    assert '"id": "1.1"' in shown[0]
    assert '"id": "2.2"' in shown[1]


def test_what_is_left_of_the_budget_is_told_for_the_new_rounds() -> None:
    trace = serial_run(*QUERIES)
    before = _budgets(conversations_of(trace)[0])
    after = _budgets(parallelised(trace, tools=POOL.to_openai()).conversation)
    assert [each["rounds"] for each in before] == [10, 9, 8, 7, 6]
    assert [each["rounds"] for each in after] == [10, 9, 8]
    assert [each["units"] for each in after] == [before[at]["units"] for at in (0, 2, 4)]


def _budgets(found: RoleConversation) -> list[dict[str, float]]:
    shown = [message.text.partition("<budget>")[2].partition("</budget>")[0] for message in found.messages]
    return [json.loads(text) for text in shown if text.startswith("{")]


def test_no_text_tells_what_is_not_known_yet() -> None:
    found = parallelised(serial_run(*QUERIES), "dependency-plan", tools=POOL.to_openai()).conversation
    first = found.messages[found.own[0]].text
    assert "Frankenheimer" not in first
    assert "T3: search: [result of T1] birth\n- Dependencies: T1" in first
    assert "T1: search: director of Seconds\n- Dependencies: none" in first
    assert "I look for director of Seconds." in first
    assert "I look for author" not in first, "this was thought when the first result was there"
    assert "I look for Frankenheimer birth." in found.messages[found.own[1]].text


def test_what_may_have_been_worked_out_is_not_told_by_the_plan_either() -> None:
    FACTS["films of 1932 and Finland"] = "none"
    queries = [*QUERIES[:2], "films of 1932 and Finland"]
    found = parallelised(serial_run(*queries), "dependency-plan", tools=POOL.to_openai()).conversation
    assert "T3: search: films of [result of T2] and [result of T2]\n- Dependencies: T1, T2" in found.texts[0]


def test_what_a_summariser_wrote_stays_out_of_the_rewritten_conversation() -> None:
    strategy = ParallelRounds(summariser="summariser")
    texts = _texts(strategy, tuple(QUERIES[:2]), "")[:-1]
    pool = POOL.adding(ct.ModelSpec("words", lambda: ScriptedModel("<answer>x</answer>"))).bind(summariser="words")
    with ScriptedModel(*texts) as model:
        trace = ct.Orchestrator(model, strategy).run_sync(QUESTION, pool=pool).trace
    new = parallelised(trace)
    assert (len(new.rounds), len(new.conversation.own)) == (1, 2)
    assert "final_answer" in new.conversation.texts[-1]


def test_an_unchanged_strategy_needs_no_tools_and_keeps_the_recorded_instructions() -> None:
    trace = serial_run(*QUERIES, strategy=ParallelRounds())
    found = parallelised(trace).conversation
    (before,) = conversations_of(trace)
    assert found.messages[:2] == before.messages[:2]
    assert found.texts[-2:] == before.texts[-2:], "the ending is as it was"


def test_other_instructions_need_the_tools_and_say_so() -> None:
    with pytest.raises(ct.UsageError, match=r"the instructions of parallel-rounds list the tools.*give the pool"):
        parallelised(serial_run(*QUERIES))


def test_a_limit_on_parallel_calls_is_kept() -> None:
    queries = [*QUERIES[:2], "director of Seconds ", "the author of Shrines of Gaiety"]
    FACTS.update(dict.fromkeys(queries[2:], "nothing new"))
    new = parallelised(serial_run(*queries), ParallelRounds(max_parallel=3), tools=POOL.to_openai())
    assert new.rounds == ((0, 1, 2), (3,))


def test_calls_with_tags_in_their_arguments_survive() -> None:
    queries = [f"older {tag}" for tag in ("</tool_call>", "<reasoning>", "</search>", "</node> {s1}", "</think>")]
    FACTS.update(dict.fromkeys(queries, "ok"))
    for strategy in (ParallelRounds(max_parallel=5), DependencyPlan()):
        new = parallelised(_with_arguments(queries), strategy, tools=POOL.to_openai())
        (one,) = plans_of(new.conversation, strategy)
        assert [arguments["query"] for _, arguments in one] == queries


def _with_arguments(queries: list[str]) -> ct.Trace:
    calls = [json.dumps({"name": "search", "arguments": {"query": query}}).replace("<", "\\u003c") for query in queries]
    turns = [f"<reasoning>Next.</reasoning><tool_call>{call}</tool_call>" for call in calls]
    with ScriptedModel(*turns, FINAL, "<answer>x</answer>") as model:
        return ct.Orchestrator(model, ParallelRounds(max_parallel=1)).run_sync(QUESTION, pool=POOL).trace


@pytest.mark.parametrize(
    ("queries", "said"),
    [
        (("director of Seconds", "Frankenheimer birth"), "its calls need each other's results; 2 rounds"),
        ((), "it called nobody"),
    ],
)
def test_what_cannot_become_parallel_is_refused_with_why(queries: tuple[str, ...], said: str) -> None:
    with pytest.raises(NotParallel, match=said):
        parallelised(serial_run(*queries), tools=POOL.to_openai())


def test_trajectories_with_malformed_texts_stay_as_they_are() -> None:
    with ScriptedModel("Hm.", [("search", {"query": QUERIES[0]})], FINAL, "<answer>x</answer>") as model:
        trace = ct.Orchestrator(model).run_sync(QUESTION, pool=POOL).trace
    with pytest.raises(NotParallel, match="a text was malformed"):
        parallelised(trace)


def test_parallel_trajectories_graphs_and_wrong_targets_are_refused(traces: dict[str, list[ct.Trace]]) -> None:
    with ScriptedModel([("search", {"query": q}) for q in QUERIES[:2]], FINAL, "<answer>x</answer>") as model:
        trace = ct.Orchestrator(model).run_sync(QUESTION, pool=POOL).trace
    with pytest.raises(NotParallel, match="its calls are parallel already"):
        parallelised(trace)
    with pytest.raises(NotParallel, match="a trajectory of agent-graph is not rewritten"):
        parallelised(traces["graph"][0])
    with pytest.raises(ct.UsageError, match="target='serial-calls'"):
        parallelised(trace, "serial-calls")
    with pytest.raises(ct.UsageError, match="target=serial-calls: its turns hold one call"):
        parallelised(trace, SerialCalls())


def test_a_chain_within_a_trajectory_stays_a_chain(traces: dict[str, list[ct.Trace]], sim_pool: ct.Pool) -> None:
    rewritten = [parallelised(trace, tools=sim_pool.to_openai()) for trace in traces["serial"]]
    for new in rewritten:
        number = {place: at for at, row in enumerate(new.rounds) for place in row}
        assert all(number[other] < number[place] for place, others in enumerate(new.needs) for other in others)
        assert len(new.rounds) < new.before


# -- references --------------------------------------------------------------------------------------------------------


def quoting_run(strategy: ct.Strategy, *arguments: str) -> ct.Trace:
    """One call per round, with arguments as they are written."""
    calls = [
        f'<reasoning>Call {n}.</reasoning><tool_call>{{"name": "write", "arguments": {{"text": "{text}"}}}}</tool_call>'
        for n, text in enumerate(arguments, 1)
    ]
    with ScriptedModel(*calls, FINAL, "<answer>x</answer>") as model:
        return ct.Orchestrator(model, strategy).run_sync("First part.\n\nSecond part.", pool=POOL).trace


def test_a_quoted_result_is_needed_and_is_quoted_from_its_new_place() -> None:
    strategy = ParallelRounds(prompt="brief", references=True)
    trace = quoting_run(strategy, "${question.1}", "read ${1.1}", "${question.2}", "both ${2.1} and ${3.1}, $${x}")
    new = parallelised(trace)
    assert new.rounds == ((0, 2), (1,), (3,))
    assert [sorted(each) for each in new.needs] == [[], [0], [], [1, 2]]
    texts = new.conversation.texts
    assert '{"text": "${question.1}"}' in texts[0]
    assert '{"text": "${question.2}"}' in texts[0]
    assert '{"text": "read ${1.1}"}' in texts[1]
    assert '{"text": "both ${2.1} and ${1.2}, $${x}"}' in texts[2]
    assert new.conversation.messages[3].text.startswith("<tool_response>\n1.1 OK noted\n1.2 OK noted")


def test_a_target_without_quotes_is_told_what_they_brought_in() -> None:
    trace = quoting_run(ParallelRounds(references=True, max_parallel=1), "${question.1}", "${question.2}")
    new = parallelised(trace, "dependency-plan", tools=POOL.to_openai())
    assert '"First part."' in new.conversation.texts[0]
    assert "${" not in new.conversation.texts[0]


def test_serial_calls_in_short_form_become_rounds_in_short_form() -> None:
    call = '<tool_call>{"name": "write", "arguments": {"text": "${question.N}"}}</tool_call>'
    turns = [call.replace("N", number) for number in "12"]
    end = '<tool_call>{"name": "answer", "arguments": {"text": "x"}}</tool_call>'
    with ScriptedModel(*turns, end) as model:
        orchestrator = ct.Orchestrator(model, SerialCalls(prompt="brief", references=True))
        trace = orchestrator.run_sync("First part.\n\nSecond part.", pool=POOL).trace
    new = parallelised(trace, tools=POOL.to_openai())
    assert new.rounds == ((0, 1),)
    assert new.conversation.texts[0].count("${question.") == 4, "in the reasoning and in the calls"
    assert "1.2 OK noted" in new.conversation.messages[3].text
