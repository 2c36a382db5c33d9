"""The generator: the sizes that were asked for, the same questions everywhere, no template on both sides."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import islice

import pytest
from concertino_bench.masbench import check, generate, make_task, measure, task_sets
from concertino_bench.masbench.generator import AXES, SPLITS, Axis, Split, split_of
from concertino_bench.masbench.graph import MODULUS
from concertino_bench.masbench.wording import RULES
from concertino_bench.masbench.worlds import WORLDS
from concertino_toy.problems.grammar import Problem, Quantity, read
from concertino_toy.problems.ontology import WORLDS as SIM_WORLDS
from concertino_toy.problems.ontology import Ontology

EACH_AXIS = pytest.mark.parametrize("axis", AXES)


@pytest.mark.parametrize("level", [2, 3])
def test_no_quantity_rests_on_more_than_the_breadth_even_where_totals_abound(level: int) -> None:
    for task in generate("breadth", level, 300, rules=False):
        seen = measure(task.question)
        assert (seen.breadth, seen.breadth_needed) == (level, level), task.question


@pytest.mark.parametrize("axis", ["horizon", "parallel"])
def test_the_problems_of_a_question_have_no_owner_in_common(axis: Axis) -> None:
    for task in generate(axis, 12, 20):
        owners = [{q.owner for q in problem.facts if q.owner} for problem in read(task.question).problems]
        assert sum(map(len, owners)) == len(set().union(*owners))


@EACH_AXIS
def test_what_is_not_varied_stays_small(axis: Axis) -> None:
    for task in generate(axis, 12, 10):
        seen = measure(task.question)
        assert axis == "depth" or seen.depth <= 7
        assert axis == "breadth" or seen.breadth <= 4
        assert axis in ("horizon", "parallel") or seen.problems == 1


@EACH_AXIS
def test_there_are_as_many_answers_as_the_axis_says(axis: Axis) -> None:
    task = make_task(axis, 5, 0)
    assert len(task.answers) == (1 if axis in ("depth", "breadth") else 5)


@pytest.mark.slow
def test_all_values_of_the_modulus_are_answers_and_none_is_much_more_frequent() -> None:
    found = [int(task.answer) for task in generate("depth", 4, 1150)]
    counts = [found.count(value) for value in range(MODULUS)]
    assert sum(counts) == 1150
    assert min(counts) > 15
    assert max(counts) < 110


@pytest.mark.slow
@EACH_AXIS
def test_no_question_occurs_twice_in_a_thousand(axis: Axis) -> None:
    questions = [task.question for task in generate(axis, 2, 1000, rules=False)]
    assert len(set(questions)) == 1000


def test_a_question_that_comes_up_twice_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "concertino_bench.masbench.generator.make_task",
        lambda axis, level, index, **options: make_task(axis, level, index // 3),
    )
    assert list(generate("depth", 4, 5)) == [make_task("depth", 4, index) for index in range(5)]


def shape(problem: Problem, asked: Quantity) -> object:
    """The way to an answer without names and numbers, made of what concertino-toy reads in the text."""
    if asked not in problem.facts:
        counted = [need for fact in problem.facts.values() for need in fact.needs]
        total = Ontology(problem.facts, [*counted, *(ask for ask in problem.asks if isinstance(ask, Quantity))]).total(
            asked
        )
        parts = [[repr(shape(problem, factor)) for factor in part] for part in total.parts] if total else []
        return ("total", *sorted(map(str, parts))) if parts else "nothing"
    relation = problem.facts[asked]
    scale = "times" if relation.factor != 1 else "" if not relation.terms or not relation.shift else "shift"
    if relation.shift < 0:
        scale = "less"
    parts = [repr(shape(problem, term[0])) for term in relation.terms]
    return (scale, relation.difference, *(parts if relation.difference else sorted(parts)))


def shapes(split: Split) -> set[str]:
    found = set()
    for level in (2, 3, 4):
        for task in generate("depth", level, 400, split=split):
            (problem,) = read(task.question).problems
            (asked,) = problem.asks
            assert isinstance(asked, Quantity)
            found.add(repr(shape(problem, asked)))
    return found


@pytest.mark.slow
def test_training_and_tests_share_no_template_measured_on_the_texts() -> None:
    train, test = shapes("train"), shapes("test")
    assert len(train) > 100
    assert len(test) > 50
    assert train & test == set()


@EACH_AXIS
def test_every_problem_of_a_question_is_on_the_side_of_its_split(axis: Axis) -> None:
    for split in SPLITS:
        templates = [name for task in generate(axis, 6, 20, split=split) for name in task.metadata["templates"]]
        assert {split_of(template) for template in templates} == {split}


PROGRAM = """
import hashlib
from concertino_bench.masbench.generator import AXES, generate
texts = [task.question + str(task.answers) for axis in AXES for task in generate(axis, 7, 5, seed=3)]
print(hashlib.sha256("".join(texts).encode()).hexdigest())
"""


def test_another_process_generates_the_same_questions() -> None:
    seen = set()
    for hash_seed in ("0", "1", "4711"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
        )
        seen.add(done.stdout)
    assert len(seen) == 1


def test_a_stream_is_gone_on_with_where_it_ended() -> None:
    whole = list(generate("horizon", 3, 10, seed=5))
    assert [*generate("horizon", 3, 4, seed=5), *generate("horizon", 3, 6, seed=5, start=4)] == whole
    assert make_task("horizon", 3, 7, seed=5) == whole[7]


def test_a_stream_without_a_count_has_no_end_and_makes_only_what_is_asked_for() -> None:
    assert len(list(islice(generate("robustness", 12), 3))) == 3


def test_another_seed_split_or_level_gives_other_questions() -> None:
    first = make_task("depth", 4, 0, seed=1)
    for other in (
        make_task("depth", 4, 0, seed=2),
        make_task("depth", 4, 0, seed=1, split="train"),
        make_task("depth", 5, 0, seed=1),
    ):
        assert other.question != first.question
        assert other.id != first.id


def test_the_rules_open_a_question_unless_they_are_left_out() -> None:
    told, bare = make_task("parallel", 3, 0), make_task("parallel", 3, 0, rules=False)
    assert told.question == f"{RULES}\n\n{bare.question}"
    assert check([told, bare]).agreed == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"axis": "width", "level": 4}, "axis='width': expected one of depth, "),
        ({"axis": "depth", "level": 1}, "level=1: expected a whole number from 2 to 12"),
        ({"axis": "depth", "level": 13}, "level=13"),
        ({"axis": "depth", "level": 4, "split": "dev"}, "split='dev': expected one of train, test"),
        ({"axis": "depth", "level": 4, "count": -1}, "count=-1: expected 0 or more"),
    ],
)
def test_an_option_out_of_range_is_refused_before_anything_is_generated(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        generate(**options)


def test_the_graph_in_the_metadata_leads_to_the_answers() -> None:
    task = make_task("horizon", 4, 0)
    for graph, answer in zip(task.metadata["graphs"], task.answers, strict=True):
        values = {node["quantity"]: node["value"] for node in graph["nodes"]}
        assert str(values[graph["asked"]]) == answer


def test_there_is_a_task_set_for_each_axis() -> None:
    sets = {each.name: each for each in task_sets()}
    assert set(sets) == {f"masbench/{axis}" for axis in AXES}
    assert next(sets["masbench/breadth"].load(level=3)) == make_task("breadth", 3, 0)
    assert len(list(sets["masbench/depth"].load())) == 100


def test_no_name_of_a_world_can_be_misread() -> None:
    names = [name for world in WORLDS for category, items in world.layers.items() for name in (category, *items)]
    items = [item for world in WORLDS for layer in range(1, 4) for item in world.items(layer)]
    assert len(set(names)) == len(names)
    assert not any(set(name) & set(".?!,:[]<>0123456789") for name in names)
    assert not any(name.split()[0] in ("A", "An", "The") for name in names)
    assert not any("'" in item for item in items)
    elsewhere = {name for world in SIM_WORLDS for category, own in world.layers.items() for name in (category, *own)}
    assert elsewhere & set(names) == set(), "a known name would be read by another rule"
