"""A listener of text hears the reply, and the run's answer, however a stream is cut.

`CONCERTINO_FUZZ=5000` cuts ten thousand recorded streams, and runs of five thousand composed replies.
"""

from __future__ import annotations

import os

import pytest

from . import cut_trials
from .recordings import RECORDED, recordings

COUNT = int(os.environ.get("CONCERTINO_FUZZ", "250"))


@pytest.mark.slow
async def test_what_is_told_of_a_recorded_stream_adds_up_to_the_reply_however_it_is_cut() -> None:
    if not any(recording.is_stream for _, recording in recordings()):
        pytest.skip(f"no recordings of real servers in {RECORDED}")
    streams = cut_trials.recorded_streams()
    for seed in range(2 * COUNT):
        stream = streams[seed % len(streams)]
        assert await cut_trials.recorded_trial(stream, seed) == "", stream.name


@pytest.mark.slow
@pytest.mark.parametrize("name", cut_trials.STRATEGIES)
async def test_the_pieces_of_an_answer_add_up_to_the_answer_of_the_run_in_the_form_of_each_strategy(name: str) -> None:
    for seed in range(COUNT // 5):
        assert await cut_trials.composed_trial(name, typed=bool(seed % 2), seed=seed) == "", seed
