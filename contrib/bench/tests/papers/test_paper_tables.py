"""`concertino bench paper`: every recipe over small files and scripted models, beside the published numbers."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from click.testing import CliRunner, Result
from concertino_bench import installed_graders, installed_task_sets
from concertino_bench.cli import bench
from concertino_bench.papers.recipe import Recipe, find_recipe, left_out_tables, recipes
from concertino_bench.papers.repeating import Choices, Wanted, repeat, results_file, wanted
from concertino_bench.papers.table import PaperTable, table_of

REPOSITORY = Path(__file__).parents[4]
SHARED = Path(os.environ.get("CONCERTINO_TEST_DATA", REPOSITORY.parent / "shared" / "data"))
QUESTION = "What is 1 + 2?"
NUMBER = [{"id": f"n{place}", "problem": f"{QUESTION} ({place})", "answer": "3"} for place in range(2)]
FACT = [{"id": f"f{place}", "question": f"{QUESTION} ({place})", "answer": "3"} for place in range(2)]
MANY = [
    {"id": f"m{place}", "question": f"{QUESTION} ({place})", "golden_answers": ["3", "three"]} for place in range(2)
]
ROWS: dict[str, list[dict[str, Any]]] = {
    **dict.fromkeys(("aime24", "aime25", "amc", "hmmt25"), NUMBER),
    **dict.fromkeys(("hotpotqa", "2wiki", "musique", "bamboogle"), FACT),
    **dict.fromkeys(("nq", "triviaqa", "popqa"), MANY),
    "gpqa": [
        {
            "Record ID": "g1",
            "Question": QUESTION,
            "Correct Answer": "3",
            **{f"Incorrect Answer {place}": str(3 + place) for place in (1, 2, 3)},
        }
    ],
    "mmlu-pro": [{"question_id": 1, "question": QUESTION, "options": ["2", "3"], "answer": "B", "answer_index": 1}],
    "hle": [{"id": "h1", "question": QUESTION, "answer": "3", "answer_type": "exactMatch", "image": ""}],
    "frames": [{"Prompt": QUESTION, "Answer": "3"}],
    "browsecomp-plus": [{"query_id": "1", "query": QUESTION, "answer": "3", "gold_docs": [{"docid": "d"}]}],
    "olympiadbench": [{"id": 1, "question": QUESTION, "final_answer": ["$3$"], "is_multiple_answer": False}],
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one small file for each task set that reads one."""
    home = tmp_path_factory.mktemp("data")
    for name, rows in ROWS.items():
        (home / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return home


class Three(ct.Model):
    """Says 3; as a judge, that it is right."""

    asked = 0

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        """The answer."""
        Three.asked += 1
        usage = ct.Usage(input_tokens=10, output_tokens=5)
        if request.schema is not None:
            return ct.Reply(json.dumps({"reason": "equal", "verdict": "right", "confidence": 90}), usage=usage)
        return ct.Reply("<reasoning>Easy.</reasoning>\n<answer>\\boxed{3}</answer>", usage=usage)


@ct.tool
def python(code: str) -> str:
    """Run a script; this one runs nothing."""
    return ""


def make_pool() -> ct.Pool:
    """A leader, a helper and a judge that all know the answer, and one tool."""
    models = [ct.ModelSpec(name, Three, f"The model {name}.", ct.Prices(1.0, 2.0)) for name in ("big", "small")]
    return ct.Pool.of(python, *models, orchestrator="big", judge="small")


def repeated(
    recipe: Recipe, data: Path, out: Path, choices: Choices | None = None, pool: ct.Pool | None = None
) -> tuple[PaperTable, list[Wanted]]:
    pool = pool or make_pool()
    wants = wanted(recipe, pool, data, installed_task_sets(), choices or Choices(limit=2, samples=1))
    asyncio.run(repeat(wants, pool, out, graders=installed_graders()))
    return table_of(recipe, wants, out), wants


def run(*arguments: object) -> Result:
    return CliRunner().invoke(bench, ["paper", *map(str, arguments)])


# -- every recipe ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", recipes())
def test_a_recipe_runs_end_to_end_and_is_printed_beside_the_published_rows(
    name: str, data: Path, tmp_path: Path
) -> None:
    recipe = find_recipe(name)
    table, wants = repeated(recipe, data, tmp_path)
    assert {each.data.name for each in wants if each.evaluation is not None} == set(table.tasks)
    for row in table.ours:
        for column, value in zip(recipe.columns, row.values, strict=True):
            at_hand = set(column.of) <= set(table.tasks)
            acts = "workflow" not in next(each for each in recipe.systems if each.name == row.system).given
            environments = all(
                each.data.set.startswith("environments/") for each in wants if each.data.name in column.of
            )
            assert (value is not None) == (at_hand and (acts or environments)), (row.system, column.name)
    text = "\n".join(table.lines())
    for published in recipe.rows:
        assert published.name in text
    assert all(each in text for each in (*recipe.same, *recipe.differs))
    if name == "paramanager/table-3":
        # Everything is at hand, and whoever is asked knows the answer.
        assert {row.system: row.values[-1] for row in table.ours} == dict.fromkeys(
            (each.name for each in recipe.systems), 100.0
        )


def test_the_same_command_continues_and_asks_for_nothing_twice(data: Path, tmp_path: Path) -> None:
    recipe = find_recipe("paramanager/table-2")
    first, _ = repeated(recipe, data, tmp_path)
    file = results_file(tmp_path, "AIME24")
    lines = file.read_bytes().splitlines(keepends=True)
    asked = Three.asked
    again, _ = repeated(recipe, data, tmp_path)
    assert (again, Three.asked) == (first, asked)
    file.write_bytes(b"".join(lines[:-1]) + lines[-1][:30])
    wants = wanted(recipe, make_pool(), data, installed_task_sets(), Choices(limit=2, samples=1))
    half = table_of(recipe, wants, tmp_path)
    assert any("has 1 of 2 runs" in note for note in half.notes)
    assert any(row.values[0] is None for row in half.ours)
    whole, _ = repeated(recipe, data, tmp_path)
    assert [row.values[0] for row in whole.ours] == [100.0, 100.0]
    # The run whose line was torn had ended, so it is read from its trace.
    assert Three.asked == asked


# -- the command -------------------------------------------------------------------------------------------------------


POOL = """
members = ["toy/*"]

[roles]
orchestrator = "toy/leader"
judge = "toy/steady"
"""


def test_the_command_prints_ours_beside_the_published_row(data: Path, tmp_path: Path) -> None:
    (tmp_path / "pool.toml").write_text(POOL)
    out = tmp_path / "out"
    given = ("--pool", tmp_path / "pool.toml", "--data", data, "--limit", 1, "--samples", 1, "--out", out)
    done = run("paramanager/table-2", *given)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith("ParaManager (arXiv 2604.17009), Table 2: ")
    assert any(re.match(r"ParaManager +82\.34 +55,063\.00 +528\.84", line) for line in lines)
    assert any(re.match(r"ours: parallel rounds +\d", line) for line in lines)
    assert any(re.match(r"  ours - published +[-+]\d.* ParaManager$", line) for line in lines)
    told = json.loads(run("paramanager/table-2", *given, "--json").stdout)
    assert told["published"]["ParaManager"] == {"ACC": 82.34, "Token": 55063.0, "Latency": 528.84}
    assert told["ours"]["parallel rounds"]["beside"] == "ParaManager"
    assert told["tasks"] == {"AIME24": 1, "AIME25": 1, "AMC": 1, "HMMT25": 1}


def test_alone_the_command_lists_recipes_and_what_cannot_be_repeated_with_the_reason() -> None:
    text = run().stdout
    assert all(name in text for name in recipes())
    assert all(each.name in text and each.reason in text for each in left_out_tables())
    told = json.loads(run("--json").stdout)
    assert [each["name"] for each in told["recipes"]] == list(recipes())
    assert len(told["left_out"]) == len(left_out_tables())


def test_without_a_pool_it_says_which_files_a_table_wants() -> None:
    text = run("gap/table-1").stdout
    assert "NQ: nq.* or nq/test.*" in text
    assert (
        "HotpotQA: hotpotqa.* or hotpot_dev_distractor*.json (hotpot_dev_distractor_v1.json, hotpotqa.github.io, CC"
        in text
    )
    assert "Sudoku: none, its tasks are generated" in run("at-grpo/table-1").stdout


WRONG: dict[str, tuple[Callable[[Path], object], tuple[str, ...], str]] = {
    "an unknown table": (lambda _: None, ("gap/table-9",), "of this paper there are: gap/"),
    "a table that cannot be repeated": (lambda _: None, ("at-grpo/table-3",), "each row is a training of its own"),
    "a folder without the files": (lambda _: None, ("gap/table-2",), "HotpotQA needs "),
    "two files for one": (
        lambda home: [(home / f"hotpotqa.{end}").write_text("[]") for end in ("json", "tsv")],
        ("gap/table-2",),
        "HotpotQA: 2 files are ",
    ),
    "a row of a wrong type": (
        lambda home: (home / "hotpotqa.jsonl").write_text('{"question": ["?"], "answer": "3"}\n'),
        ("gap/table-2",),
        "hotpotqa.jsonl:1: column 'question' is a list",
    ),
    "no model that leads": (
        lambda home: (home / "hotpotqa.jsonl").write_text('{"question": "?", "answer": "3"}\n'),
        ("gap/table-2", "--alone", "nobody"),
        "nobody",
    ),
    "a judge that nobody plays": (
        lambda home: (home / "hle.jsonl").write_text(json.dumps(ROWS["hle"][0]) + "\n"),
        ("toolorchestra/table-1",),
        "the grader llm-judge asks the model 'judge': bind one in the pool, [roles] judge",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told_before_anybody_is_asked(case: str, tmp_path: Path) -> None:
    prepare, arguments, said = WRONG[case]
    home = tmp_path / "data"
    home.mkdir()
    prepare(home)
    (tmp_path / "pool.toml").write_text(POOL.replace('judge = "toy/steady"', ""))
    done = run(*arguments, "--pool", tmp_path / "pool.toml", "--data", home, "--out", tmp_path / "out")
    assert done.exit_code != 0
    assert said in done.stderr
    assert not list(tmp_path.glob("out/*.jsonl"))


def test_a_pool_without_members_is_refused_before_anybody_is_asked(data: Path, tmp_path: Path) -> None:
    alone = ct.Pool([ct.ModelSpec("big", Three, "", ct.Prices(1.0, 2.0))], roles={"orchestrator": "big"})
    asked = Three.asked
    with pytest.raises(ct.UsageError, match="the pool holds no tool and no agent"):
        repeated(find_recipe("gap/table-2"), data, tmp_path, pool=alone)
    assert Three.asked == asked
    assert not list(tmp_path.iterdir())


def test_a_system_that_the_pool_cannot_make_is_told_and_the_others_are_run(data: Path, tmp_path: Path) -> None:
    models = [ct.ModelSpec(name, Three, "", ct.Prices(1.0, 2.0)) for name in ("big", "small")]
    table, _ = repeated(
        find_recipe("paramanager/table-3"), data, tmp_path / "3", pool=ct.Pool(models, roles={"orchestrator": "big"})
    )
    assert not any("pool holds no tool" in note for note in table.notes)
    table, _ = repeated(
        find_recipe("paramanager/table-8"), data, tmp_path / "8", pool=ct.Pool(models, roles={"orchestrator": "big"})
    )
    assert "one model with tools: baseline 'single-with-tools': the pool holds no tool" in table.notes
    assert [row.values[0] for row in table.ours] == [100.0, None]


def test_what_is_wrong_with_the_last_data_set_is_told_before_the_first_is_asked(data: Path, tmp_path: Path) -> None:
    recipe = find_recipe("paramanager/table-2")
    judged = replace(recipe, data=(*recipe.data[:-1], replace(recipe.data[-1], grader="llm-judge")))
    models = [ct.ModelSpec(name, Three, "", ct.Prices(1.0, 2.0)) for name in ("big", "small")]
    asked = Three.asked
    with pytest.raises(ct.UsageError, match="the grader llm-judge asks the model 'judge'"):
        repeated(judged, data, tmp_path, pool=ct.Pool(models, roles={"orchestrator": "big"}))
    assert Three.asked == asked
    assert not list(tmp_path.iterdir())


def test_a_file_may_have_the_name_that_its_owners_gave_it(data: Path, tmp_path: Path) -> None:
    home = tmp_path / "data"
    (home / "2wiki").mkdir(parents=True)
    (home / "hotpot_dev_distractor_v1.json").write_text(json.dumps(FACT))
    (home / "2wiki" / "dev.json").write_text(json.dumps(FACT))
    table, _ = repeated(find_recipe("gap/table-2"), home, tmp_path / "out")
    assert table.tasks == {"HotpotQA": 2, "2wiki": 2}


def test_an_optional_option_is_given_only_where_the_set_has_it(data: Path, tmp_path: Path) -> None:
    recipe = find_recipe("gap/table-2")
    first, second = recipe.data
    both = (replace(first, optional={"user": "big"}), replace(second, optional={"paragraphs": False}))
    wants = wanted(replace(recipe, data=both), make_pool(), data, installed_task_sets())
    given = [set(each.evaluation.selections[0].options) for each in wants if each.evaluation is not None]
    assert given == [{"path"}, {"path", "paragraphs"}]


def test_requests_are_those_to_all_models(data: Path, tmp_path: Path) -> None:
    table, _ = repeated(find_recipe("mas-orchestra/table-d2"), data, tmp_path)
    row = next(row for row in table.ours if row.system == "one model")
    assert row.values[0] == 30.0  # one request for each of 30 tasks
    assert row.values[1] == pytest.approx(30 * 15 / 1e6)


# -- recipes as data ---------------------------------------------------------------------------------------------------


SMALL = """
paper = "P"
arxiv = "0"
table = "Table 1"
title = "t"
same = ["s"]
differs = ["d"]
data = [{ name = "A", set = "aime", files = { path = "a.*" } }]
columns = [{ name = "A", of = ["A"] }]
rows = [{ name = "r", values = [1.5] }]
systems = [{ name = "one", baseline = "single-model", beside = "r" }]
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('of = ["A"]', 'of = ["B"]', "column A: there is no data 'B'"),
        ("[1.5]", "[1.5, 2]", "row r: 2 values; expected 1"),
        ("[1.5]", '["?"]', "'?': expected a number, or '-'"),
        ('beside = "r"', 'beside = "q"', "there is no published row 'q'"),
        ('baseline = "single-model"', 'strategie = "x"', "did you mean 'strategy'"),
        ('baseline = "single-model", ', "", "expected one of baseline, strategy, workflow"),
        ('title = "t"', "title = 3", "/title: expected string"),
        ('title = "t"', "title = ", "invalid TOML"),
    ],
)
def test_a_wrong_recipe_is_refused_with_what_is_wrong(old: str, new: str, said: str) -> None:
    assert Recipe.from_toml(SMALL, "p/table-1").rows[0].values == (1.5,)
    assert old in SMALL
    with pytest.raises(ct.UsageError) as error:
        Recipe.from_toml(SMALL.replace(old, new, 1), "p/table-1")
    assert said in str(error.value)


PAPERS = {
    "ParaManager": "paramanager-2604.17009.txt",
    "ToolOrchestra": "toolorchestra-2511.21689.txt",
    "MAS-Orchestra": "mas-orchestra-masbench.txt",
    "GAP": "gap-2510.25320.txt",
    "AT-GRPO": "at-grpo-2510.11062.txt",
}


@pytest.mark.parametrize("name", recipes())
def test_every_published_row_stands_so_in_the_text_of_its_paper(name: str) -> None:
    recipe = find_recipe(name)
    text = SHARED.parent / "papers" / PAPERS[recipe.paper]
    if not text.is_file():
        pytest.skip(f"{text} is not there: the text of the paper")
    lines = [re.sub(r"\([-+]+[\d.]+\)|(?<=\d),(?=\d)", "", line) for line in text.read_text("utf-8").splitlines()]
    numbers = [[float(each) for each in re.findall(r"(?<![\w.-])\d+(?:\.\d+)?(?![\w.])", line)] for line in lines]
    for row in recipe.rows:
        known = [value for value in row.values if value is not None]
        # One table prints its two halves below each other; less than three numbers may stand anywhere.
        halves = [known[: len(known) // 2], known[len(known) // 2 :]] if len(known) > 5 else [known]
        assert any(_holds(found, known) for found in numbers) or all(
            any(_holds(found, half) for found in numbers) for half in halves
        ), (row.name, known)


def _holds(found: list[float], wanted: list[float]) -> bool:
    """Whether numbers stand in a line one after the other, other numbers between them allowed."""
    rest = iter(found)
    return all(value in rest for value in wanted)


def test_a_task_set_that_is_not_installed_is_told_and_the_rest_is_run(data: Path, tmp_path: Path) -> None:
    recipe = find_recipe("paramanager/table-2")
    first = replace(recipe.data[0], set="gone")
    table, _ = repeated(replace(recipe, data=(first, *recipe.data[1:])), data, tmp_path)
    assert any("AIME24 needs the task set gone, which is not installed" in note for note in table.notes)
    assert table.tasks.keys() == {"AIME25", "AMC", "HMMT25"}
    assert all(value is None for row in table.ours for value in row.values)
