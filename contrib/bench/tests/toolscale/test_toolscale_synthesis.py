"""The synthesis end to end, with a scripted writer and solver and the real sandbox; and every fault on the way."""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino_bench import DataError, Submission, Verdict
from concertino_bench.toolkits import digest
from concertino_bench.toolkits.replaying import Operated, ReplayedCalls
from concertino_bench.toolscale import SynthesisSettings, ToolscaleGrader, folder_tasks, synthesise, task_sets
from concertino_bench.toolscale.asking import REASONS, StepFailed
from concertino_bench.toolscale.filters import without_action
from concertino_bench.toolscale.pipeline import SpendingLimit
from concertino_bench.toolscale.rows import TaskRow
from concertino_bench.toolscale.settings import SynthesisProgress, SynthesisReport
from toolscale_script import (
    LEND,
    LEND_TWO,
    LOOK,
    MEMBERS,
    SCHEMA,
    TOOLS,
    Solver,
    Writer,
    call,
    library,
    solving,
    task,
    tool,
)

SMALL = SynthesisSettings(
    "a town library", subjects=1, intents=1, evolve=0, attempts=2, repairs=1, review=False, seconds=10.0
)


def settings(**changes: Any) -> SynthesisSettings:
    return SynthesisSettings(**{**SMALL.__dict__, **changes})


def made(
    folder: Path, writer: Writer, wanted: SynthesisSettings = SMALL, solver: Solver = solving, **options: Any
) -> SynthesisReport:
    return asyncio.run(synthesise(library(writer, solver), wanted, folder, concurrency=1, **options))


def details(report: SynthesisReport) -> dict[str, str]:
    return {each["id"]: f"{each['reason']}: {each['detail']}" for each in report.rejected}


# -- the whole -------------------------------------------------------------------------------------------------------


def test_a_small_domain_is_made_end_to_end(tmp_path: Path) -> None:
    writer = Writer(intents={"intents": ["borrow a book", "ask about a book"]}, task=[LEND, LOOK])
    seen: list[SynthesisProgress] = []
    report = made(tmp_path / "out", writer, settings(intents=2, evolve=1, review=True), on_progress=seen.append)
    assert writer.asked == [
        "schema",
        "subjects",
        "members",
        "review",
        "books",
        "review",
        "tools",
        "intents",
        "task",
        "evolve",
        "task",
        "evolve",
    ]
    assert (report.tables, report.entries, report.tools, report.intents) == (2, 5, 3, 2)
    assert report.tasks == {0: 2, 1: 1}
    assert report.reasons == {"duplicate": 1}  # both were made harder into the same task
    assert report.asked == 12 + 4  # of the writer, and the solver: without tools at the look-up, then one attempt each
    assert report.usage.input_tokens > 0
    assert [each.step for each in seen][:2] == ["schema", "subjects"]
    assert json.loads((tmp_path / "out" / "report.json").read_text()) == report.to_json()


def test_the_finished_folder_is_a_task_set_whose_golden_calls_are_graded_right(tmp_path: Path) -> None:
    made(tmp_path, Writer(), settings(evolve=1))
    (offered,) = [each for each in task_sets() if each.name == "toolscale/folder"]
    tasks = list(offered.load(path=str(tmp_path)))
    assert [(each.id, each.kind, each.level) for each in tasks] == [
        ("toolscale/a-town-library-001", "toolscale", 0),
        ("toolscale/a-town-library-001-1", "toolscale", 1),
    ]
    assert offered.world is not None
    bench: Any = None

    async def graded(each: Any, calls: list[Any], text: str) -> Any:
        world = offered.world(each)  # type: ignore[misc]
        for one in calls:
            await world.toolkit.use(one["name"], one["arguments"])
        submission = Submission(text, calls, world.state())
        return await ToolscaleGrader().grade(each, submission, bench)

    for each in tasks:
        golden = each.metadata["golden"]
        assert asyncio.run(graded(each, golden, "until 24 June")).verdict is Verdict.RIGHT
        assert asyncio.run(graded(each, [], "until 24 June")).marks == (False, True, False)


def test_a_folder_goes_on_where_it_was_left_and_asks_nothing_again(tmp_path: Path) -> None:
    gone = ct.ProviderError("the server is gone", failure=ct.FailureClass.CALLER)
    first, writer = Writer(), Writer(intents=gone)
    with pytest.raises(ct.CallFailed, match="gone"):
        made(tmp_path, writer)
    assert writer.asked == ["schema", "subjects", "members", "books", "tools", "intents"]
    assert not (tmp_path / "tasks.jsonl").exists()
    report = made(tmp_path, first)
    assert first.asked == ["intents", "task"]
    assert (report.known, report.tasks) == (5, {0: 1})
    again = Writer()
    assert made(tmp_path, again).to_json() | {"seconds": 0, "usage": 0} == report.to_json() | {
        "seconds": 0,
        "usage": 0,
        "asked": 0,
        "known": 8,
    }
    assert again.asked == []


def test_another_domain_or_a_strange_folder_is_refused(tmp_path: Path) -> None:
    made(tmp_path / "a", Writer())
    with pytest.raises(DataError, match="begun with attempts=2"):
        made(tmp_path / "a", Writer(), settings(attempts=3))
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.txt").write_text("x")
    with pytest.raises(DataError, match="not empty"):
        made(tmp_path / "b", Writer())
    with pytest.raises(DataError, match="no finished tasks"):
        next(folder_tasks(tmp_path / "b"))
    (tmp_path / "a" / "intents.json").write_text("{")
    with pytest.raises(DataError, match=r"intents\.json cannot be read"):
        made(tmp_path / "a", Writer())


def test_a_budget_that_is_used_up_stops_and_the_folder_goes_on(tmp_path: Path) -> None:
    with pytest.raises((ct.CallFailed, StepFailed), match=r"budget|tokens"):
        made(tmp_path, Writer(), budget=ct.Budget(tokens=2000))
    assert (tmp_path / "schema.json").exists()
    assert made(tmp_path, Writer()).tasks == {0: 1}


def test_a_pool_without_the_roles_or_the_sandbox_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    pool = library(Writer())
    for lacking in (pool.without("code/python"), ct.Pool.of(pool["code/python"])):  # type: ignore[arg-type]
        with pytest.raises(ct.PoolError):
            asyncio.run(synthesise(lacking, SMALL, tmp_path / "out"))
    assert not (tmp_path / "out").exists()


# -- faults of a reply -----------------------------------------------------------------------------------------------


def test_a_reply_that_is_no_json_is_asked_for_again_with_the_error(tmp_path: Path) -> None:
    writer = Writer(schema=["Sure! Here it is:", SCHEMA])
    assert made(tmp_path, writer).tasks == {0: 1}
    assert writer.asked[:2] == ["schema", "schema"]
    assert "That cannot be used" in writer.prompts[1]


def test_an_invalid_schema_is_repaired_and_one_that_stays_invalid_ends_the_synthesis(tmp_path: Path) -> None:
    tables = [SCHEMA["tables"][0], {**SCHEMA["tables"][1], "key": "isbn"}]
    wrong = {**SCHEMA, "tables": tables}
    writer = Writer(schema=[wrong, SCHEMA])
    assert made(tmp_path / "a", writer).tasks == {0: 1}
    assert "its key 'isbn' must be a required property" in writer.prompts[1]
    with pytest.raises(StepFailed, match="schema: nothing of it could be used: table 'books'"):
        made(tmp_path / "b", Writer(schema=wrong))
    assert made(tmp_path / "b", Writer()).tasks == {0: 1}  # it was not kept, so it is asked for again


def test_an_entry_that_breaks_the_schema_is_told_and_left_out_if_it_stays(tmp_path: Path) -> None:
    bad = {"entries": [*MEMBERS["entries"], {"member_id": "m3"}, {"member_id": "m1", "name": "Eve"}]}
    writer = Writer(members=bad)
    report = made(tmp_path, writer)
    assert report.entries == 5
    assert report.reasons == {"entry_invalid": 2}
    found = details(report)
    assert "'name'" in found["entries/members-1/m3"]
    assert "is taken" in found["entries/members-1/m1"]
    assert "m3: " in writer.prompts[3]


def test_an_entry_in_which_the_review_finds_a_contradiction_is_left_out(tmp_path: Path) -> None:
    named = {"problems": [{"key": "m2", "problem": "Ben cannot be his own guardian"}, {"key": "m8", "problem": "?"}]}
    report = made(tmp_path, Writer(review=[named, {"problems": []}]), settings(review=True))
    assert report.reasons == {"entry_implausible": 1}
    assert report.entries == 4
    assert "guardian" in details(report)["entries/members-1/m2"]


def test_a_table_that_stays_empty_ends_the_synthesis(tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match="no entry of books"):
        made(tmp_path, Writer(books={"entries": [{"book_id": 5}]}))
    assert made(tmp_path, Writer()).entries == 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "reason", "problem"),
    [
        ("import os\ndef f(db, book_id):\n    return os.getcwd()\n", "tool_invalid", "it imports 'os'"),
        ("def f(db, book_id):\n    return db['boks'][book_id]\n", "tool_broken", "KeyError: 'boks'"),
        ("def f(db, book_id):\n    while True:\n        pass\n", "tool_broken", "did not end"),
        ("def f(db, book_id):\n    db['books'].clear()\n", "tool_broken", "declared as reading"),
        ("def f(db, book_id):\n    return __builtins__['__import__']('os').getcwd() + 1\n", "tool_broken", "Error"),
    ],
    ids=["imports os", "raises", "loops", "writes though it reads", "reaches around the check"],
)
def test_a_tool_that_cannot_be_used_is_told_and_left_out_if_it_stays(
    tmp_path: Path, code: str, reason: str, problem: str
) -> None:
    bad = {"tools": [*TOOLS["tools"], tool("f", False, "book_id", code=code)]}
    writer = Writer(tools=bad)
    report = made(tmp_path, writer, settings(seconds=3.0))
    assert report.tools == 3
    assert report.reasons == {reason: 1}
    assert problem in details(report)["tools/f"]
    assert any(problem in prompt for prompt in writer.prompts)


def test_a_tool_that_was_repaired_is_taken(tmp_path: Path) -> None:
    bad = {
        "tools": [
            {**TOOLS["tools"][0], "code": "def get_book(db, book_id):\n    return db[book_id]\n"},
            *TOOLS["tools"][1:],
        ]
    }
    report = made(tmp_path, Writer(tools=[bad, TOOLS]))
    assert (report.tools, report.reasons) == (3, {})


# -- the filters -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("written", "reason", "problem"),
    [
        (task("x", call("lend", book_id="b3", member_id="m1")), "golden_error", "the book is lent"),
        (task("x", call("lend", book_id="b9", member_id="m1")), "golden_error", "no such book or member"),
        (task("x", call("steal", book_id="b1")), "task_invalid", "there is no tool 'steal'"),
        (task("x", call("lend", book_id=1, member_id="m1")), "task_invalid", "/book_id: expected string"),
    ],
)
def test_a_task_whose_golden_calls_fail_is_told_and_taken_out(
    tmp_path: Path, written: Any, reason: str, problem: str
) -> None:
    writer = Writer(task=written)
    report = made(tmp_path / "a", writer)
    assert (report.tasks, report.reasons) == ({}, {reason: 1})
    assert problem in details(report)["tasks/001"]
    assert writer.asked[-2:] == ["task", "task"]
    repaired = made(tmp_path / "b", Writer(task=[written, LEND]))
    assert (repaired.tasks, repaired.reasons) == ({0: 1}, {})


def test_a_task_that_no_attempt_solves_is_taken_out_after_all_of_them(tmp_path: Path) -> None:
    tried: list[int] = []

    def lazy(request: ct.ChatRequest) -> Any:
        tried.append(1)
        return "<answer>24 June, and that was all</answer>"

    report = made(tmp_path, Writer(), settings(attempts=3), lazy)
    assert (report.tasks, report.reasons, len(tried)) == ({}, {"unsolved": 1}, 3)
    assert "3 attempts; the last: execution: " in details(report)["tasks/001"]


def test_the_attempts_end_with_the_first_right_one(tmp_path: Path) -> None:
    answers = iter(
        ["<answer>no</answer>", [("lend", {"book_id": "b1", "member_id": "m1"})], "<answer>24 June</answer>"]
    )
    report = made(tmp_path, Writer(), settings(attempts=8), lambda request: next(answers))
    assert report.tasks == {0: 1}
    (row,) = [json.loads(line) for line in (tmp_path / "tasks.jsonl").read_text().splitlines()]
    assert row["attempts"] == 2


def test_a_task_that_needs_nothing_done_and_nothing_said_is_taken_out(tmp_path: Path) -> None:
    report = made(tmp_path, Writer(task=task("Thank you!")))
    assert (report.tasks, report.reasons) == ({}, {"no_action_needed": 1})


def test_a_look_up_that_the_solver_answers_without_tools_is_taken_out(tmp_path: Path) -> None:
    report = made(tmp_path, Writer(task=LOOK), solver=lambda request: "m2 has it, I would say")
    assert (report.tasks, report.reasons) == ({}, {"no_action_needed": 1})
    assert "m2 has it" in details(report)["tasks/001"]


def test_a_task_made_harder_that_is_the_old_one_is_told_and_taken_out(tmp_path: Path) -> None:
    same = {**LEND, "request": "Would you please lend b1 to me? I am m1."}
    writer = Writer(evolve=same)
    report = made(tmp_path, writer, settings(evolve=2))
    assert (report.tasks, report.reasons) == ({0: 1}, {"evolve_unchanged": 1})
    assert writer.asked.count("evolve") == 2  # once, and once repaired; no second step rests on it
    assert "those of the old task" in writer.prompts[-1]


def test_a_task_made_harder_rests_on_the_one_before_it(tmp_path: Path) -> None:
    third = task("Lend b1 and b2 to me, m1, and take b3 back.", *LEND_TWO["calls"], call("give_back", book_id="b3"))
    report = made(tmp_path, Writer(evolve=[LEND_TWO, third]), settings(evolve=2, attempts=0))
    assert report.tasks == {0: 1, 1: 1, 2: 1}
    rows = [json.loads(line) for line in (tmp_path / "tasks.jsonl").read_text().splitlines()]
    assert [row["source"] for row in rows] == [
        {"intent": "borrow a book"},
        {"evolved_from": "001"},
        {"evolved_from": "001-1"},
    ]


def test_doing_nothing_is_judged_by_the_three_criteria_and_a_text_by_the_first_two() -> None:
    same, other = digest({"a": 1}), digest({"a": 2})
    looked = ReplayedCalls((), same, same)
    row = TaskRow("1", "?", (), ("42",))
    assert not without_action(row, looked)
    assert without_action(row, looked, "It is 42.")
    assert not without_action(row, looked, "It is 43.")
    assert without_action(TaskRow("1", "?", ()), looked)
    assert not without_action(TaskRow("1", "?", ()), ReplayedCalls((), other, same))
    assert Operated() == looked.operated


def test_every_reason_has_a_meaning() -> None:
    source = Path(__file__).parents[2] / "src" / "concertino_bench" / "toolscale" / "pipeline.py"
    used = {reason for reason in REASONS if f'"{reason}"' in source.read_text()}
    assert {*REASONS} - used == {"bad_reply"}  # which `asking` gives


def test_ids_of_tables_that_a_writer_gives_never_leave_the_folder(tmp_path: Path) -> None:
    tables = [{**SCHEMA["tables"][0], "name": "../members"}, SCHEMA["tables"][1]]
    with pytest.raises(StepFailed, match="expected a name in small letters"):
        made(tmp_path / "out", Writer(schema={**SCHEMA, "tables": tables}))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_several_tasks_at_once_are_all_made_and_keep_their_order(tmp_path: Path) -> None:
    tasks = [
        task(f"Lend b1 to {who}, shelf {n}.", call("lend", book_id=book, member_id=who))
        for n, (book, who) in enumerate([("b1", "m1"), ("b1", "m2"), ("b2", "m1"), ("b2", "m2")])
    ]
    writer = Writer(intents={"intents": ["one", "two", "three", "four"]}, task=tasks)
    wanted = settings(intents=4, attempts=0)
    report = asyncio.run(synthesise(library(writer), wanted, tmp_path, concurrency=4))
    assert report.tasks == {0: 4}
    rows = [json.loads(line) for line in (tmp_path / "tasks.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == ["001", "002", "003", "004"]
    assert [row["source"]["intent"] for row in rows] == ["one", "two", "three", "four"]


def test_attempts_at_once_together_keep_to_what_is_left() -> None:
    purse = SpendingLimit(4)
    with ExitStack() as stack:
        parts = [stack.enter_context(purse.share(2.0, 1000.0, 60.0)) for _ in range(4)]
        assert [part.usd for part in parts if part] == pytest.approx([0.5] * 4)
        assert sum(part.tokens or 0 for part in parts if part) <= 1000
        assert [part.seconds for part in parts if part] == [60.0] * 4
        with pytest.raises(StepFailed, match="usd"):
            purse.free(2.0, 1000.0, 60.0)
    purse.waiting = 1
    with purse.share(1.2, float("inf"), float("inf")) as last:
        assert last == ct.Budget(usd=1.2)
    with purse.share(*[float("inf")] * 3) as unlimited:
        assert unlimited is None
