"""Studies: what is shared between arms, what is run once, and what tables say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from concertino import UsageError
from concertino_train.config import load_config
from concertino_train.studies import STUDIES, Arm, Expected, Study, run_study
from concertino_train.studies import runs as running
from concertino_train.studies.comparison import IntervalEstimate, findings, students_t, table
from concertino_train.studies.drawing import draw
from concertino_train.studies.runs import StudyFailed, TrainedArm

TWO = Study(
    "two",
    "Which?",
    "paramanager/toy",
    (Arm("a"), Arm("b", learn=("rollout.group_size=4",)), Arm("c", learn=None)),
    ("accuracy", "reward"),
    expects=(Expected("b", "accuracy", least=0.1),),
)


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Instead of trainings: what would be run, with the files that it would leave."""
    ran: list[tuple[str, str]] = []

    def run(self: Any, command: str, home: Path, given: Any, what: str) -> dict[str, Any]:
        ran.append((command, home.name))
        if command in ("sft", "rl"):
            (home / command / "model").mkdir(parents=True)
            (home / command / "model" / "training.yaml").touch()
        if command == "rl":
            lines = [json.dumps({"step": step, "sampled": 100.0, "cpu_seconds": 3.75}) for step in (1, 2)]
            (home / "rl" / "metrics.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
            return {}
        if command == "eval" and home.name == "c" and "name=fail" in given:
            raise StudyFailed("c failed")
        seed = next(int(word.split("=")[1]) for word in given if word.startswith("trainer.seed="))
        sampled = 0.1 * ("trainer.eval.temperature=1" in given)
        accuracy = 0.5 + 0.2 * (home.name == "b") + 0.01 * seed - sampled
        return {"metrics": {"accuracy": {"value": accuracy}}, "reward": 1.0}

    monkeypatch.setattr(running._StudyRunner, "_run", run)
    return ran


def test_arms_are_taught_once_and_what_is_measured_is_not_done_again(
    commands: list[tuple[str, str]], tmp_path: Path
) -> None:
    run_study(TWO, tmp_path, seeds=(0, 1))
    names = [command for command, _ in commands]
    assert {name: names.count(name) for name in set(names)} == {"collect": 2, "sft": 2, "rl": 4, "eval": 6}
    commands.clear()
    again = run_study(TWO, tmp_path, seeds=(0, 1))
    assert commands == []
    assert again[0].value("accuracy") == 0.5


def test_a_study_that_asks_for_it_measures_each_arm_sampled_as_well(
    commands: list[tuple[str, str]], tmp_path: Path
) -> None:
    study = replace(TWO, measures=("accuracy", "sampled/accuracy", "sampled/reward"))
    first, *_ = run_study(study, tmp_path, seeds=(0,))
    assert [name for name, _ in commands].count("eval") == 6
    assert [first.value(measure) for measure in study.measures] == [0.5, 0.4, 1.0]
    assert first.value("sampled/calls") is None
    with pytest.raises(StudyFailed, match="made with other settings"):
        run_study(replace(TWO, measures=("accuracy",), expects=()), tmp_path, seeds=(0,))


def test_processor_time_is_summed_over_sittings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begins_and_ends = iter([10.0, 12.5, 50.0, 54.0])
    monkeypatch.setattr(running, "_seconds_of_children", lambda: next(begins_and_ends))
    monkeypatch.setattr(running._StudyRunner, "train", lambda self, arm, seed: TrainedArm(arm.name, seed, {}))
    for _ in range(2):
        run_study(TWO, tmp_path, seeds=(0,))
    assert running.spent_seconds(TWO, tmp_path) == 6.5


def test_what_was_measured_with_other_settings_is_no_result_of_these(
    commands: list[tuple[str, str]], tmp_path: Path
) -> None:
    run_study(TWO, tmp_path, seeds=(0,))
    commands.clear()
    with pytest.raises(StudyFailed, match=r"made with other settings.*remove .*seed-0"):
        run_study(TWO, tmp_path, seeds=(0,), settings=("trainer.rl.steps=7",))
    assert commands == []


def test_studies_that_teach_alike_teach_once(commands: list[tuple[str, str]], tmp_path: Path) -> None:
    run_study(TWO, tmp_path, seeds=(0,))
    commands.clear()
    run_study(replace(TWO, name="three"), tmp_path, seeds=(0,))
    assert sorted(command for command, _ in commands) == ["eval", "eval", "eval", "rl", "rl"]
    commands.clear()
    run_study(replace(TWO, name="five", settings=("trainer.rl.steps=7",)), tmp_path, seeds=(0,))
    assert [command for command, _ in commands].count("sft") == 0
    run_study(replace(TWO, name="four", settings=("trainer.sft.steps=7",)), tmp_path, seeds=(0,))
    assert [command for command, _ in commands].count("sft") == 1


def test_arms_that_differ_in_what_they_are_measured_on_share_a_training(
    commands: list[tuple[str, str]], tmp_path: Path
) -> None:
    hard = Arm("hard", learn=("algorithm.kl=0",), measure=("trainer.eval.samples=2",))
    study = replace(TWO, arms=(replace(hard, name="easy", measure=()), hard), expects=())
    run_study(study, tmp_path, seeds=(0, 1), jobs=2)
    names = [command for command, _ in commands]
    assert {name: names.count(name) for name in set(names)} == {"collect": 2, "sft": 2, "rl": 2, "eval": 4}


def test_what_a_training_took_stands_beside_what_came_of_it(commands: list[tuple[str, str]], tmp_path: Path) -> None:
    trained = {each.arm: each for each in run_study(TWO, tmp_path, seeds=(0,))}
    assert (trained["a"].value("sampled_tokens"), trained["a"].value("learning_cpu_seconds")) == (200.0, 7.5)
    assert trained["c"].value("sampled_tokens") is None


@pytest.mark.parametrize(
    ("expected", "difference", "held", "text"),
    [
        (Expected("b", "accuracy", least=-0.03), -0.02, True, ">= -0.03"),
        (Expected("b", "accuracy", least=-0.03), -0.04, False, ">= -0.03"),
        (Expected("b", "accuracy", most=0.0), -0.1, True, "<= 0"),
        (Expected("b", "accuracy", least=-0.02, most=0.02), 0.03, False, "-0.02 to 0.02"),
    ],
)
def test_an_expectation_bounds_a_difference(expected: Expected, difference: float, held: bool, text: str) -> None:
    assert (expected.held(difference), expected.text()) == (held, text)


@pytest.mark.parametrize(("freedom", "value"), [(2, 4.303), (9, 2.262), (10, 2.228), (20, 2.086), (120, 1.980)])
def test_intervals_are_students_t_for_any_number_of_seeds(freedom: int, value: float) -> None:
    assert students_t(freedom) == pytest.approx(value, abs=6e-4)


def test_an_expectation_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="give a bound"):
        replace(TWO, expects=(Expected("b", "accuracy"),))


def test_a_failure_of_one_arm_ends_the_study_and_keeps_what_was_measured(
    commands: list[tuple[str, str]], tmp_path: Path
) -> None:
    with pytest.raises(StudyFailed, match="c failed"):
        run_study(TWO, tmp_path, seeds=(0,), settings=["name=fail"])
    assert sorted(path.parent.name for path in tmp_path.rglob("eval.json")) == ["a", "b"]


def test_differences_are_paired_by_seed(commands: list[tuple[str, str]], tmp_path: Path) -> None:
    found = findings(TWO, run_study(TWO, tmp_path, seeds=(0, 1, 2)))
    (b,) = [each for each in found if (each.arm, each.measure) == ("b", "accuracy")]
    assert b.difference is not None
    assert b.difference.mean == pytest.approx(0.2)
    assert b.difference.error == pytest.approx(0.0, abs=1e-12)
    assert b.value.error is not None
    assert b.value.error > 0.005
    assert b.held
    assert json.loads(json.dumps(b.to_json()))["held"] is True
    assert "| b | accuracy | 0.710 [0.685, 0.735] | 0.200 [0.200, 0.200] | >= 0.1 | yes |" in table(TWO, found, 3)


def test_one_seed_has_no_interval_and_what_cannot_be_worked_out_is_left_out() -> None:
    assert IntervalEstimate.of([0.5]).text() == "0.500"
    trained = [TrainedArm("a", 0, {"metrics": {"accuracy": {"value": None}}}), TrainedArm("b", 0, {"reward": 2.0})]
    assert [(each.arm, each.measure) for each in findings(TWO, trained)] == [("b", "reward")]


def test_a_study_that_compares_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="two or more"):
        Study("s", "?", "gap/toy", (Arm("a"),), ("accuracy",))
    with pytest.raises(UsageError, match="no such arm"):
        Study("s", "?", "gap/toy", (Arm("a"), Arm("b")), ("accuracy",), expects=(Expected("a", "accuracy", least=0.1),))
    with pytest.raises(UsageError, match="expected one or more"):
        run_study(TWO, Path("nowhere"), seeds=())


@pytest.mark.parametrize("name", STUDIES)
def test_the_arms_of_every_study_are_trainings_that_can_be(name: str) -> None:
    study = STUDIES[name]
    ids = set()
    for arm in study.arms:
        given = [*study.settings, *arm.teach, *(arm.learn or ())]
        # Arms may share a training and differ in what they are measured on.
        ids.add((load_config(study.recipe, given).id, arm.learn is None, arm.measure))
    assert len(ids) == len(study.arms)


def test_a_picture_has_a_panel_for_each_measure_and_is_the_same_again(
    commands: list[tuple[str, str]], tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib, which draws, is absent")
    found = findings(TWO, run_study(TWO, tmp_path, seeds=(0, 1)))
    path = draw(TWO, found, tmp_path / "study.svg")
    assert path is not None
    text = path.read_text(encoding="utf-8")
    assert "accuracy" in text
    assert "reward" in text
    assert draw(TWO, found, tmp_path / "again.svg").read_text(encoding="utf-8") == text  # type: ignore[union-attr]
    assert draw(TWO, [], tmp_path / "none.svg") is None
