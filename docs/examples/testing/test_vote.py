"""The agent, tested without a model, a key or a network."""

import concertino as ct
from concertino.testing import AgentConformance, Recorder, ScriptedModel, call, fake_tool, make_pool
from vote import vote

QUESTION = {"question": "Capital of Norway?"}


def test_the_majority_wins():
    look_up = fake_tool("look_up")
    with ScriptedModel("Oslo", "Bergen", "Oslo") as worker:
        seen = call(vote, QUESTION, pool=make_pool(look_up, worker=worker))
    assert seen.content == "Oslo"
    assert look_up.calls == []


def test_without_a_majority_the_fact_is_looked_up():
    look_up = fake_tool("look_up", returns="Oslo")
    with ScriptedModel("Bergen", "Narvik", "Tromsø") as worker:
        seen = call(vote, QUESTION, pool=make_pool(look_up, worker=worker))
    assert seen.content == "Oslo"
    assert look_up.calls == [QUESTION]


def test_a_model_that_fails_is_the_calls_failure():
    with ScriptedModel(*[ct.ProviderError.from_http(401, "no key")] * 3, strict=False) as worker:
        seen = call(vote, QUESTION, pool=make_pool(worker=worker))
    assert seen.status == "EXEC_ERR"
    assert seen.error.code == "rejected"


def test_a_recording_answers_instead_of_the_model(tmp_path):
    for mode in ("record", "replay"):
        with Recorder(tmp_path / "vote.jsonl", mode) as recording:
            worker = ScriptedModel("Oslo", strict=False) if mode == "record" else ScriptedModel()
            pool = make_pool(worker=recording.model(worker))
            assert call(vote, QUESTION, pool=pool, **recording.hooks).content == "Oslo"


class TestVote(AgentConformance):
    spec = vote
    examples = ((QUESTION, "Oslo"),)
    rejected = ({"question": 1},)

    def make_pool(self):
        return make_pool(worker=ScriptedModel("Oslo", strict=False))
