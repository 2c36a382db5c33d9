"""Settings files: bases and overrides on top of each other, and errors that say where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from concertino import UsageError
from concertino_train.config import TrainConfig, load_config, recipe_names, recipe_text
from concertino_train.config.reading import read_settings


def write(folder: Path, text: str, name: str = "train.yaml") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def refused(source: Any, *overrides: str) -> str:
    with pytest.raises(UsageError) as caught:
        load_config(source, overrides)
    return str(caught.value)


def test_nothing_at_all_is_a_training_of_defaults() -> None:
    assert load_config() == TrainConfig()


def test_a_number_may_be_written_as_everybody_writes_it(tmp_path: Path) -> None:
    file = write(tmp_path, "trainer: {rl: {learning_rate: 1e-6, weight_decay: 1.0e-2, steps: 12}}")
    own = load_config(file).trainer.rl
    assert (own.learning_rate, own.weight_decay, own.steps) == (1e-6, 0.01, 12)


def test_an_override_wins_over_the_file_and_leaves_its_neighbours(tmp_path: Path) -> None:
    file = write(tmp_path, "trainer: {seed: 3, rl: {steps: 12, learning_rate: 1e-6}}")
    config = load_config(file, ["trainer.rl.steps=5", "rollout.group_size=4", "logging.trackers=[tensorboard]"])
    assert (config.trainer.rl.steps, config.trainer.rl.learning_rate, config.trainer.seed) == (5, 1e-6, 3)
    assert (config.rollout.group_size, config.logging.trackers) == (4, ["tensorboard"])


def test_an_override_reaches_into_a_list(tmp_path: Path) -> None:
    file = write(tmp_path, "tasks: {train: [{set: gsm8k, limit: 3}, {set: amc}]}")
    config = load_config(file, ["tasks.train.0.limit=10", "tasks.train.1={set: aime}"])
    assert [(each.set, each.limit) for each in config.tasks.train] == [("gsm8k", 10), ("aime", None)]
    assert "expected the number of an entry, 0 to 1" in refused(file, "tasks.train.2.limit=1")


def test_a_table_on_the_command_line_takes_the_place_of_what_is_there() -> None:
    config = load_config("paramanager", ["reward={terms: {correct: {term: shared/correct}}}", "trainer.rl={steps: 2}"])
    assert config.reward == {"terms": {"correct": {"term": "shared/correct"}}}
    assert (config.trainer.rl.steps, config.trainer.rl.learning_rate) == (2, TrainConfig().trainer.rl.learning_rate)


def test_overrides_do_not_change_the_table_that_they_were_given_with() -> None:
    given = {"tasks": {"train": [{"set": "gsm8k", "limit": 3}]}}
    load_config(given, ["tasks.train.0.limit=10"])
    assert given == {"tasks": {"train": [{"set": "gsm8k", "limit": 3}]}}


def test_a_base_is_changed_by_what_stands_on_top_of_it(tmp_path: Path) -> None:
    write(tmp_path, "trainer: {seed: 3, rl: {steps: 12}}\nreward: {preset: gap}", "low.yaml")
    middle = write(tmp_path, "base: low.yaml\ntrainer: {rl: {questions_per_step: 4}}", "middle.yaml")
    top = write(tmp_path, f"base: {middle.name}\ntrainer: {{rl: {{steps: 2}}}}", "top.yaml")
    config = load_config(top)
    assert (config.trainer.seed, config.trainer.rl.steps, config.trainer.rl.questions_per_step) == (3, 2, 4)
    assert config.reward == {"preset": "gap"}


def test_another_strategy_or_preset_replaces_the_settings_of_the_one_before(tmp_path: Path) -> None:
    low = "rollout: {strategy: {name: parallel-rounds, max_parallel: 2}}\n"
    write(tmp_path, low + "reward: {preset: paramanager, terms: {diversity: {weight: 0}}}", "low.yaml")
    top = write(tmp_path, "base: low.yaml\nrollout: {strategy: {name: serial-calls}}\nreward: {preset: gap}")
    config = load_config(top)
    assert config.rollout.strategy.settings == {}
    assert config.reward == {"preset": "gap"}
    same = load_config(tmp_path / "low.yaml", ["rollout.strategy.max_rounds=3"])
    assert same.rollout.strategy.settings == {"max_parallel": 2, "max_rounds": 3}


def test_bases_that_go_round_in_a_circle_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "base: two.yaml", "one.yaml")
    write(tmp_path, "base: one.yaml", "two.yaml")
    assert "circular `base`" in refused(tmp_path / "one.yaml")


def test_a_recipe_may_be_a_base(tmp_path: Path) -> None:
    file = write(tmp_path, "base: gap\ntrainer: {seed: 9}")
    assert load_config(file).trainer.seed == 9
    assert load_config(file).reward == load_config("gap").reward


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("trainer:\n  rl:\n    stps: 3\n", ":3: unknown key 'trainer.rl.stps'; did you mean 'steps'?"),
        ("trainer: {steps: 3}\n", "(there is trainer.sft.steps and trainer.rl.steps)"),
        ("trainer:\n  rl:\n    steps: many\n", ":3: trainer.rl.steps: got 'many'; expected"),
        ("rollout: {group_size: true}\n", "rollout.group_size: got True; expected"),
        ("rollout: {top_p: 1.5}\n", "rollout.top_p: got 1.5; expected"),
        ("tasks:\n  train:\n    - {limit: 3}\n", ":3: tasks.train.0: 'set' is missing"),
        ("reward:\n  preset: paramanger\n", "no reward 'paramanger' to begin with; did you mean 'paramanager'"),
        ("rollout:\n  strategy: {name: parallel-round}\n", "did you mean 'parallel-rounds'?"),
        ("rollout:\n  strategy: {max_round: 3}\n", ":2: rollout.strategy: the strategy 'parallel-rounds' has no"),
        ("algorithm: {grouping: agent_turn}\n", "give both or none of them"),
        (
            "rollout: {tree: {}}\nalgorithm: {grouping: agent_turn, filters: {invalid: true}}\n",
            "algorithm.filters.invalid with a tree",
        ),
        ("algorithm: {loss: dr_grpo}\n", ":1: algorithm.row_tokens=None: expected a number with loss=dr_grpo"),
        ("roles: {policies: lora}\n", "roles.policies=lora needs model.adapter"),
        ("model: {new: {hidden: 30, heads: 4}}\n", "has to be even"),
        ("- a list\n", "expected `key: value` lines"),
        ("trainer: {rl: [\n", ":2: invalid YAML"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    file = write(tmp_path, text)
    message = refused(file)
    assert told in message
    assert message.startswith(str(file))


def test_several_faults_are_told_at_once(tmp_path: Path) -> None:
    message = refused(write(tmp_path, "trainr: {}\nrollout: {group_sise: 2}\n"))
    assert "did you mean 'trainer'?" in message
    assert "did you mean 'group_size'?" in message


def test_a_wrong_override_says_that_it_was_one() -> None:
    assert refused(None, "trainer.rl.steps=0").startswith("command line: trainer.rl.steps: got 0")
    assert "expected KEY=VALUE" in refused(None, "trainer.rl.steps")
    assert "invalid YAML" in refused(None, "trainer.rl.steps=[")


def test_a_file_that_is_not_there_and_a_recipe_that_is_none_are_told_apart(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in refused(str(tmp_path / "none.yaml"))
    assert "did you mean 'paramanager/" in refused("paramanger")


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_is_a_training_that_loads(name: str) -> None:
    config = load_config(name)
    assert config.about
    assert config.name == name.partition("/")[0]


def test_there_is_a_paper_and_a_toy_of_each_of_the_five_systems() -> None:
    systems = ("at-grpo", "gap", "mas-orchestra", "paramanager", "toolorchestra")
    assert recipe_names() == [f"{system}/{kind}" for system in systems for kind in ("paper", "toy")]


@pytest.mark.parametrize("name", [name for name in recipe_names() if name.endswith("/paper")])
def test_every_number_of_a_papers_recipe_names_its_place_or_says_that_it_has_none(name: str) -> None:
    """Table, section, appendix, equation, figure, algorithm, the paper's own heading; or that it is not given."""
    words = ("Table", "§", "Appendix", "Eq.", "Figure", "Algorithm", "configuration", "not given", "likewise", "DAPO")
    for number, line in enumerate(recipe_text(name).splitlines(), 1):
        body, _, comment = line.partition("#")
        key, _, value = body.partition(":")
        if value.strip() and any(sign.isdigit() for sign in value) and key.strip() not in ("name", "path"):
            told = any(word in comment for word in words) or "roles ×" in comment
            assert told or "- {" in body or "set:" in body, f"{name}:{number}: {line}"


def test_a_training_resolves_to_data_that_makes_it_again(tmp_path: Path) -> None:
    config = load_config("toolorchestra", ["trainer.seed=4"])
    again = load_config(write(tmp_path, config.text()))
    assert again == config
    assert again.id == config.id
    assert load_config(config.resolved()) == config


def test_the_hash_changes_with_what_is_learnt_and_not_with_how_long_or_where() -> None:
    plain = load_config("gap")
    longer = load_config("gap", ["trainer.rl.steps=7", "trainer.output=elsewhere", "logging.every=3", "tasks.eval=[]"])
    other = load_config("gap", ["trainer.rl.learning_rate=1e-3"])
    assert plain.id == longer.id != other.id
    assert plain.changes(longer) == {}
    assert plain.changes(other) == {"trainer.rl.learning_rate": (1e-6, 1e-3)}


def test_places_are_kept_for_keys_within_lists(tmp_path: Path) -> None:
    given = read_settings(write(tmp_path, "tasks:\n  train:\n    - set: gsm8k\n      limit: 3\n"))
    assert given.where(["tasks", "train", "0", "limit"]).endswith(":4")
    assert given.where(["tasks", "train", "0", "unknown"]).endswith(":3")
    assert given.where(["nothing"]) == ""


@pytest.mark.parametrize("own", [{"file": "pool.toml"}, {"members": ["toy/*"]}, {"make": {"name": "practice"}}])
def test_a_pool_of_another_source_begins_anew_and_the_recipe_s_members_are_forgotten(own: dict[str, Any]) -> None:
    base = {"paramanager": "members", "toolorchestra/toy": "make"}
    for recipe, source in base.items():
        if source in own:
            continue
        pool = load_config({"base": recipe, "pool": own}).pool
        assert [name for name in ("make", "file", "members") if getattr(pool, name)] == list(own)
        assert not pool.variation.always
        (key,) = own
        word = load_config(recipe, [f"pool.{key}={json.dumps(own[key])}"]).pool
        assert word == pool


def test_a_pool_of_the_same_source_is_changed_key_by_key() -> None:
    pool = load_config({"base": "toolorchestra/toy", "pool": {"make": {"mix": "mono"}, "without": ["elm"]}}).pool
    assert pool.make is not None
    assert pool.make.settings["mix"] == "mono"
    assert pool.variation.always == ["juniper"]


def test_another_teacher_has_nothing_of_the_recipe_s() -> None:
    config = load_config({"base": "paramanager/toy", "data": {"collect": {"teacher": {"name": "shop:Teacher"}}}})
    assert config.data.collect.teacher.settings == {}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "meant"),
    [("paramanger/toy", "paramanager/toy"), ("gap/toys", "gap/paper' or 'gap/toy"), ("gab", "gap/paper")],
)
def test_a_recipe_that_is_misspelt_is_found_by_its_system(name: str, meant: str) -> None:
    with pytest.raises(UsageError, match=f"did you mean '{meant}'"):
        load_config(name)


def test_every_key_of_the_settings_has_a_meaning_on_the_page_of_the_reference() -> None:
    from reference_training_settings import reference_page

    rows = [line.split(" | ") for line in reference_page().splitlines() if line.startswith("| `")]
    assert len(rows) > 150
    assert [row[0] for row in rows if len(row[3].strip(" |")) < 3] == []
