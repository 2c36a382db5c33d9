"""Training of a scorer: it learns, it can be interrupted, and it reads nothing that is held out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from concertino import UsageError
from concertino_scorer.scorer import Scorer
from concertino_train.cli.scorer import scorer_command
from concertino_train.scorer import DEVELOPMENT, HELD_OUT, Voice, load_topics, training
from concertino_train.scorer.evaluation import by_heuristic, reading_figures
from concertino_train.scorer.lexicon import LexiconSettings
from concertino_train.scorer.network import NetworkSettings
from concertino_train.scorer.training import ScorerSettings, ScorerTraining
from concertino_train.scorer.wordnet import WordNet

TINY = ScorerSettings(
    sentence_steps=4,
    cast_steps=4,
    matching_steps=2,
    sentence_batch=4,
    cast_batch=2,
    lexicon=LexiconSettings(most=100, size=4),
    network=NetworkSettings(width=8, layers=1, heads=2),
)


class Interrupted(Exception):
    pass


def begin(small: WordNet, state: Path, settings: ScorerSettings = TINY) -> ScorerTraining:
    return ScorerTraining(settings, state, lambda line: None, small.folder)


def stop_after(saves: int, monkeypatch: pytest.MonkeyPatch) -> None:
    once, done = ScorerTraining._save, []

    def save(self: ScorerTraining, *values: Any) -> None:
        once(self, *values)
        done.append(values)
        if len(done) == saves:
            raise Interrupted

    monkeypatch.setattr(ScorerTraining, "_save", save)


@pytest.mark.soak
def test_a_training_that_was_interrupted_ends_like_one_that_was_not(
    small: WordNet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "_SAVED_EVERY", -1.0)
    whole = begin(small, tmp_path / "whole.state").run()
    for saves in (2, 3):  # the second time from where the first one stopped
        interrupted = begin(small, tmp_path / "part.state")
        with monkeypatch.context() as patch:
            stop_after(saves, patch)
            with pytest.raises(Interrupted):
                interrupted.run()
    resumed = begin(small, tmp_path / "part.state").run()
    for name, array in whole.weights.arrays.items():
        assert np.allclose(array, resumed.weights.arrays[name], atol=1e-6), name


@pytest.mark.soak
def test_batches_that_other_processes_draw_give_the_same_scorer(small: WordNet, tmp_path: Path) -> None:
    alone = begin(small, tmp_path / "alone.state").run()
    beside = begin(small, tmp_path / "beside.state")
    beside.workers = 2
    for name, array in beside.run().weights.arrays.items():
        assert np.array_equal(array, alone.weights.arrays[name]), name


@pytest.mark.skipif(torch.cuda.is_available(), reason="torch sees a CUDA device here")
def test_a_device_that_is_not_there_is_refused_before_a_word_is_read(tmp_path: Path) -> None:
    result = CliRunner().invoke(scorer_command, [str(tmp_path / "of.npz"), "--device", "cuda"])
    assert isinstance(result.exception, UsageError)
    assert str(result.exception) == "device='cuda': torch sees no CUDA device here; take 'cpu'"


@pytest.mark.soak
def test_a_state_of_other_settings_is_not_continued(small: WordNet, tmp_path: Path) -> None:
    state = tmp_path / "of.state"
    begin(small, state).run()
    with pytest.raises(UsageError, match="other settings was interrupted here"):
        begin(small, state, replace(TINY, seed=1)).run()


@pytest.mark.soak
def test_what_is_held_out_is_not_read(small: WordNet, tmp_path: Path) -> None:
    begun = begin(small, tmp_path / "of.state")
    assert not set(begun.authors) & {*HELD_OUT, "figures"}
    assert not {topic.name for topic in begun.topics} & {topic.name for topic in load_topics("development")}


@pytest.mark.soak
def test_the_figures_of_a_scorer_that_knows_nothing_are_near_chance(small: WordNet, tmp_path: Path) -> None:
    scorer = Scorer(begin(small, tmp_path / "of.state").run())
    voices, topics = [Voice(name) for name in DEVELOPMENT], load_topics("development")
    figures = {figure.what: figure for figure in reading_figures(scorer, voices, topics, casts=30)}
    assert len(figures) == 17
    assert figures["order reversed: choice stays"].share > 0.9
    assert figures["best of 6 first: praise"].share < 0.5
    low, high = figures["best of 6 first: praise"].interval
    assert 0 <= low < figures["best of 6 first: praise"].share < high


def test_the_heuristic_reads_plain_words_and_percentages() -> None:
    assert by_heuristic("?", ["A poor solver.", "An excellent solver.", "A solver."]) == 1
    assert by_heuristic("?", ["Right in 40 %.", "Right in 83.5%.", "Right in 7 percent."]) == 1


@pytest.mark.soak
def test_the_command_trains_a_file_and_measures_it(small: WordNet, tmp_path: Path) -> None:
    file = tmp_path / "small.npz"
    options = ["--steps", "2", "--casts", "3", "--wordnet", str(small.folder)]
    done = CliRunner().invoke(scorer_command, [str(file), *options], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "best of 6 first: praise" in done.stdout
    again = CliRunner().invoke(scorer_command, [str(file), "--figures", "--casts", "3", "--json"])
    figures = json.loads(again.stdout)
    assert {figure["casts"] for figure in figures} <= {1, 2, 3}
    assert not list(tmp_path.glob("*.state"))


def test_a_folder_that_does_not_exist_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    done = CliRunner().invoke(scorer_command, [str(tmp_path / "none" / "small.npz")])
    assert isinstance(done.exception, UsageError)
    assert "create it first: mkdir -p" in str(done.exception)
