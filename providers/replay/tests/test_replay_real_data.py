"""Recordings of real models, kept beside the checkout: every question finds its own answer, with its own usage."""

import json
from pathlib import Path

import concertino as ct
import pytest
from concertino_replay import models, read
from concertino_replay.model import ReplayModel


@pytest.mark.slow
@pytest.mark.parametrize(("folder", "sizes"), [("replay_pool_gsm8k", (6, 400)), ("replay_pool_mint", (33, 452))])
def test_a_pool_of_real_models_is_read_whole(shared_data: Path, folder: str, sizes: tuple[int, int]) -> None:
    recording = read(shared_data / folder)
    assert (len(recording.models), len(recording.questions)) == sizes
    specs = models(shared_data / folder, describe="profile")
    assert len({spec.name for spec in specs}) == sizes[0]
    assert all("Right: " in spec.description for spec in specs)


async def test_each_model_of_gsm8k_gives_its_recorded_output_inside_a_prompt(shared_data: Path) -> None:
    rows = [json.loads(line) for line in (shared_data / "replay_pool_gsm8k" / "pool.jsonl").read_text().splitlines()]
    recording = read(shared_data / "replay_pool_gsm8k")
    for name in recording.models:
        model = ReplayModel(recording, name)
        for row in rows:
            asked = f"Solve the problem.\n\n{row['question'].replace('’', chr(39)).replace('  ', ' ')}\n\nBe brief."
            reply = await model.chat(ct.ChatRequest([ct.Message("user", asked)]))
            assert reply.text == row["models"][name]["output"]
            assert reply.usage.estimated == 1


@pytest.mark.slow
async def test_each_model_of_mint_gives_its_final_text_and_its_tokens(shared_data: Path) -> None:
    folder = shared_data / "replay_pool_mint"
    recording = read(folder)
    for line in (folder / "pool.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        model = ReplayModel(recording, row["model"])
        for result in row["results"]:
            question = recording.questions[f"{result['task']}/{result['task_id']}"]
            twin = question.id in ("mmlu/36", "mmlu/40")  # two tasks of one text
            asked = f"id: {question.id}\n{question.text}" if twin else question.text
            reply = await model.chat(ct.ChatRequest([ct.Message("user", asked)]))
            assert reply.text == (result["final"] or "")
            if result["tokens"]:
                tokens = result["tokens"]["prompt_tokens"], result["tokens"]["completion_tokens"]
                assert (reply.usage.input_tokens, reply.usage.output_tokens) == tokens
            assert reply.usage.estimated == int(not result["tokens"])
        with pytest.raises(ct.ProviderError, match="holds 2 recorded questions, 'mmlu/36'"):
            await model.chat(ct.ChatRequest([ct.Message("user", recording.questions["mmlu/40"].text)]))
