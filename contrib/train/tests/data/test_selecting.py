"""Which trajectories are taken: right ones, recovered first, one per question, no member over all; and why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.testing import ScriptedModel, make_pool
from concertino_bench import Key
from concertino_train.data import SelectionSettings
from concertino_train.data.collecting import Collection
from concertino_train.data.replaying import replayed
from concertino_train.data.selecting import select
from concertino_train.data.trajectories import LeftOutTrajectory, Trajectory, read_trajectories, repaired
from hypothesis import given
from hypothesis import strategies as st


def one(
    question: str = "q", sample: int = 0, verdict: str = "right", repaired: int = 0, taught: int = 2, **tools: int
) -> Trajectory:
    called = tools or {"search": 2}
    return Trajectory(
        Key("teacher", f"task-{question}", sample),
        "results.jsonl",
        Path("t"),
        verdict,
        question=question,
        tools=called,
        statuses={"OK": sum(called.values())},
        repaired=repaired,
        taught=taught,
    )


def taken(found: list[Any], **settings: Any) -> list[tuple[str, int]]:
    seed = settings.pop("seed", 0)
    chosen = select(found, SelectionSettings(**{"tool_share": None, **settings}), seed=seed)
    return [(each.question, each.key.sample) for each in chosen.trajectories]


def test_wrong_answers_are_left_out_with_their_verdict() -> None:
    chosen = select([one("a"), one("b", verdict="wrong"), one("c", verdict="unparsable")])
    assert [each.question for each in chosen.trajectories] == ["a"]
    assert chosen.reasons == {"wrong": 1, "unparsable": 1}


def test_of_a_question_the_one_that_recovered_is_taken() -> None:
    samples = [one("a", sample, repaired=int(sample == 5)) for sample in range(8)]
    for seed in range(5):
        assert taken(samples, seed=seed) == [("a", 5)]
    assert len({taken(samples, recovery="any", seed=seed)[0] for seed in range(20)}) > 1


def test_only_recovered_ones_are_taken_where_that_is_wanted() -> None:
    chosen = select([one("a"), one("b", repaired=1)], SelectionSettings(recovery="only", tool_share=None))
    assert [each.question for each in chosen.trajectories] == ["b"]
    assert chosen.reasons == {"no recovery": 1}


def test_one_question_in_two_writings_is_taken_once() -> None:
    assert len(taken([one("What  is it?"), one("What is\nit?")])) == 1
    assert len(taken([one("a", sample) for sample in range(4)], per_question=3)) == 3
    drawn = ["Push the box.\n# $ .#\n#@   #", "Push the box.\n#$  .#\n#@   #"]
    assert len(taken([one(question) for question in drawn])) == 2


def test_questions_of_the_set_for_rl_are_left_out_by_id_or_text() -> None:
    chosen = select([one("a"), one("b"), one("c")], SelectionSettings(tool_share=None), exclude={"task-a", "b"})
    assert [each.question for each in chosen.trajectories] == ["c"]
    assert chosen.reasons == {"excluded": 2}


def test_no_member_has_more_than_its_share_of_all_calls() -> None:
    found = [one(f"s{n}", search=4) for n in range(10)] + [one(f"c{n}", code=2, search=1) for n in range(6)]
    chosen = select(found, SelectionSettings(tool_share=0.6))
    calls = {name: sum(each.tools.get(name, 0) for each in chosen.trajectories) for name in ("search", "code")}
    assert calls["search"] <= 0.6 * sum(calls.values())
    assert chosen.reasons == {"balance": 7}
    assert {left.detail for left in chosen.left_out} == {"search"}
    assert sum(each.question.startswith("c") for each in chosen.trajectories) == 6
    assert not chosen.notes


def test_what_recovered_is_the_last_to_go_for_balance() -> None:
    found = [one(f"s{n}", search=2, repaired=int(n < 2)) for n in range(6)] + [one(f"c{n}", code=2) for n in range(2)]
    chosen = select(found, SelectionSettings(tool_share=0.5))
    assert {each.question for each in chosen.trajectories} == {"s0", "s1", "c0", "c1"}


def test_a_share_that_cannot_be_had_is_told_and_nothing_is_lost_for_it() -> None:
    chosen = select([one(f"q{n}", search=3) for n in range(4)], SelectionSettings(tool_share=0.5))
    assert len(chosen.trajectories) == 4
    assert "search has 100% of all calls, more than tool_share=0.5" in chosen.notes[0]


@pytest.mark.parametrize(("share", "calls", "others"), [(0.7, 63, 27), (0.35, 63, 117)])
def test_a_share_that_is_met_but_for_rounding_is_met(share: float, calls: int, others: int) -> None:
    found = [one("a", search=calls), one("b", **dict.fromkeys(("code", "read", "note"), others // 3))]
    assert len(select(found, SelectionSettings(tool_share=share)).trajectories) == 2


def test_among_equals_the_one_that_calls_what_is_rare_is_taken() -> None:
    found = [one(f"q{n}", 0, search=2) for n in range(4)] + [one("z", 0, search=2), one("z", 1, code=2)]
    hits = sum(("z", 1) in taken(found, seed=seed) for seed in range(12))
    assert hits >= 9, "unless z comes first, when nothing is rare yet"


def test_one_seed_takes_the_same_in_the_same_order_whatever_the_order_of_the_file() -> None:
    found = [one(f"q{n % 7}", n, repaired=n % 2, search=n % 3, code=1) for n in range(40)]
    first = taken(found, seed=3)
    assert taken(found[::-1], seed=3) == first
    assert taken(found, seed=4) != first


def test_a_limit_is_kept_and_told() -> None:
    chosen = select([one(f"q{n}") for n in range(9)], SelectionSettings(most=4, tool_share=None))
    assert (len(chosen.trajectories), chosen.reasons) == (4, {"enough": 5})


def test_wrong_answers_stay_where_the_form_alone_is_taught() -> None:
    found = [one("a"), one("b", verdict="wrong"), one("c", verdict="wrong", taught=0)]
    chosen = select(found, SelectionSettings(answers="any", tool_share=None))
    assert sorted(each.question for each in chosen.trajectories) == ["a", "b"]
    assert chosen.reasons == {"nothing to learn": 1}


def test_too_few_calls_or_nothing_to_teach_is_a_reason() -> None:
    chosen = select([one("a"), one("b", search=1), one("c", taught=0)], SelectionSettings(least_calls=2))
    assert chosen.reasons == {"few calls": 1, "nothing to learn": 1}


def test_nothing_left_is_told_reason_by_reason_with_the_next_step() -> None:
    with pytest.raises(
        ct.UsageError, match=r"no trajectory is left of 3: 2 wrong, 1 unparsable; take a better teacher"
    ):
        select([one("a", verdict="wrong"), one("b", verdict="wrong"), one("c", verdict="unparsable")])
    with pytest.raises(ct.UsageError, match="collect some with a teacher"):
        select([])


@pytest.mark.parametrize("wrong", [{"recovery": "last"}, {"tool_share": 0.0}, {"per_question": 0}, {"most": 0}])
def test_a_setting_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ct.UsageError, match=next(iter(wrong))):
        SelectionSettings(**wrong)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4), st.integers(0, 4), st.booleans()), min_size=1),
    st.floats(0.2, 0.9),
)
def test_every_trajectory_is_taken_or_told_and_shares_hold_or_are_noted(
    drawn: list[tuple[int, int, int, bool]], share: float
) -> None:
    found = [one(f"q{q}", n, repaired=int(r), search=a, code=b) for n, (q, a, b, r) in enumerate(drawn)]
    chosen = select(found, SelectionSettings(tool_share=share))
    keys = [each.key for each in (*chosen.trajectories, *chosen.left_out)]
    assert sorted(keys) == sorted(each.key for each in found)
    assert len({each.question for each in chosen.trajectories}) == len(chosen.trajectories)
    noted = " ".join(chosen.notes)
    total = sum(sum(each.tools.values()) for each in chosen.trajectories)
    for name in ("search", "code"):
        own = sum(each.tools.get(name, 0) for each in chosen.trajectories)
        assert own <= share * total + 1e-6 or f"{name} has" in noted


# -- what is made good -------------------------------------------------------------------------------------------------


@ct.tool
def solve(subtask: str, fail: bool = False) -> str:
    """Solve something."""
    if fail:
        raise ValueError("no")
    return "7"


@ct.tool
def review(subtask: str) -> str:
    """Review something."""
    return "ok"


TASK = "a long sub-task of its own"


@pytest.mark.parametrize(
    ("turns", "count"),
    [
        (["Hm.", [("solve", {"subtask": "x"})]], 1),
        ([[("solve", {"subtask": "x", "fail": True})], [("solve", {"subtask": "y"})]], 1),
        ([[("sovle", {"subtask": "x"})], [("solve", {"subtask": "y"})]], 1),
        ([[("solve", {"subtask": TASK, "fail": True})], [("review", {"subtask": TASK})]], 1),
        ([[("solve", {"subtask": "x", "fail": True})], [("review", {"subtask": "x"})]], 0),
        ([[("solve", {"subtask": "x"}), ("solve", {"subtask": "x", "fail": True})]], 0),
        ([[("solve", {"subtask": "x", "fail": True})] * 2, "Hm.", [("solve", {"subtask": "x"})]], 3),
    ],
    ids=["handed back", "same member", "near name", "other member", "another matter", "never again", "several"],
)
def test_a_failure_is_made_good_by_a_later_success(turns: list[Any], count: int) -> None:
    with ScriptedModel(*turns, [("final_answer", {})], "<answer>7</answer>") as model:
        run = ct.Orchestrator(model).run_sync("What is it?", pool=make_pool(solve, review))
    assert repaired(replayed(run.trace)) == count


# -- from files --------------------------------------------------------------------------------------------------------


def test_a_results_file_says_what_each_run_did(collected: Collection, sim_pool: ct.Pool) -> None:
    found = {each.key: each for each in read_trajectories(collected.results, pool=sim_pool, right_only=False)}
    assert len(found) == collected.outcome.total
    for item in collected.outcome.items:
        each = found[item.key]
        assert isinstance(each, Trajectory)
        assert (each.verdict, dict(each.statuses)) == (item.verdict.value, dict(item.statuses))
        assert (each.rounds, each.pool) == (item.rounds, item.pool)
        assert each.failed == sum(count for status, count in item.statuses.items() if status != "OK")
        assert sum(sum(level.values()) for level in each.widths) == sum(each.tools.values())
    slipped = [each for each in found.values() if isinstance(each, Trajectory) and each.key.system == "rounds"]
    assert all(each.recovered for each in slipped)


def test_wrong_answers_are_told_without_reading_their_traces(collected: Collection, sim_pool: ct.Pool) -> None:
    read = list(read_trajectories(collected.results, pool=sim_pool))
    left = [each for each in read if isinstance(each, LeftOutTrajectory)]
    assert len(read) == collected.outcome.total
    assert len(left) == collected.outcome.total - collected.right
    assert {each.reason for each in left} <= {"wrong", "unparsable"}


def test_a_missing_or_damaged_trace_is_told_and_the_others_are_read(
    collected: Collection, sim_pool: ct.Pool, tmp_path: Path
) -> None:
    import shutil

    shutil.copytree(collected.folder, tmp_path / "copy")
    traces = sorted((tmp_path / "copy" / "results.traces").glob("serial-*.jsonl"))
    traces[0].unlink()
    whole = traces[1].read_bytes().splitlines(keepends=True)
    traces[1].write_bytes(b"".join(whole[:-1]))
    read = list(read_trajectories(tmp_path / "copy" / "results.jsonl", pool=sim_pool, systems=["serial"]))
    assert sorted(each.reason for each in read if isinstance(each, LeftOutTrajectory)) == ["no trace", "unreadable"]
    assert sum(isinstance(each, Trajectory) for each in read) == 1


def test_a_system_that_is_not_there_is_refused_with_those_that_are(collected: Collection) -> None:
    with pytest.raises(ct.UsageError, match=r"has no system 'round'; there are .*rounds"):
        list(read_trajectories(collected.results, systems=["round"]))
