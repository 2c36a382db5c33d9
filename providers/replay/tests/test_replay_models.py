"""Recorded models answer what was recorded, with its usage, or say why they cannot."""

import asyncio
import json
from pathlib import Path
from typing import Any

import concertino as ct
import concertino_replay
import pytest
from concertino.testing import ModelConformance
from concertino_replay import EXAMPLE, models, read
from concertino_replay.model import ReplayModel

TRAYS = "A baker fills 6 trays with 14 rolls each and sells 59 of the rolls. How many rolls are left?"
READS = "Nadia reads 18 pages on each of 5 evenings. Her book has 240 pages. How many pages has she still to read?"


def small(**options: Any) -> ReplayModel:
    return ReplayModel(read(EXAMPLE), "example-small", **options)


def request(text: str, *before: ct.Message, key: str = "", **sampling: Any) -> ct.ChatRequest:
    return ct.ChatRequest([*before, ct.Message("user", text)], sampling=ct.Sampling(**sampling), idempotency_key=key)


class TestReplayModel(ModelConformance):
    make_model = staticmethod(small)
    prompt = TRAYS
    honours_max_tokens = True
    honours_stop = True


async def test_it_gives_the_recorded_text_with_the_recorded_usage() -> None:
    reply = await small().chat(request(f"Solve: {TRAYS}", ct.Message("system", "Be brief. " * 50)))
    assert reply.text.endswith("The answer is 25.")
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (30, 27)
    assert reply.usage.estimated == 0
    assert reply.finish_reason == "stop"


async def test_only_the_last_message_of_the_user_counts() -> None:
    reply = await small().chat(request(TRAYS, ct.Message("user", READS), ct.Message("assistant", "…")))
    assert "25" in reply.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "A baker fills 6 trays with 14 rolls each. How many rolls are there?",
            r"^no answer is recorded to 'A baker fills .*…'; the nearest question is 'r1' \(\d\d% of the words\), "
            r"'A baker .*…'; ask it word for word, or by a line 'id: r1'$",
        ),
        ("Xyzzy", r"^no answer is recorded to 'Xyzzy', and none of the 6 questions is like it"),
        (f"{TRAYS} {READS}", r"^the message holds 2 recorded questions, 'r1' and 'r2'; .* 'id: r1'$"),
    ],
)
async def test_what_was_not_recorded_is_refused_and_the_near_question_named(text: str, message: str) -> None:
    with pytest.raises(ct.ProviderError, match=message) as caught:
        await small().chat(request(text))
    assert caught.value.failure is ct.FailureClass.CALLER
    assert len(str(caught.value)) <= 200


async def test_a_question_that_only_other_models_answered_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    rows = [{"model": "a", "question": "Why?", "text": "So."}, {"model": "b", "question": "When?", "text": "Now."}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(ct.ProviderError, match="is recorded of 1 other models and not of this one"):
        await ReplayModel(read(path), "b").chat(request("Why?"))


async def test_the_seed_chooses_the_sample_and_without_one_it_is_the_first() -> None:
    model = small()
    texts = [(await model.chat(request(READS, seed=seed))).text for seed in (0, 1, 2, 3)]
    assert texts[0] == texts[2] != texts[1] == texts[3]
    assert {(await model.chat(request(READS, key=key))).text for key in map(str, range(20))} == {texts[0]}


async def test_drawn_samples_differ_by_request_and_a_repeated_request_gets_the_same() -> None:
    model = small(draw=True)
    by_key = {key: (await model.chat(request(READS, key=key))).text for key in map(str, range(20))}
    assert len(set(by_key.values())) == 2
    assert all([(await model.chat(request(READS, key=key))).text == text for key, text in by_key.items()])
    assert (await model.chat(request(READS, seed=1))).text == (await small().chat(request(READS, seed=1))).text


async def test_what_was_not_counted_is_estimated_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"model": "a", "question": "Why?", "text": "Because it is so.", "usd": 0.5}\n', encoding="utf-8")
    model = ReplayModel(read(path), "a")
    usage = (await model.chat(request("Why?"))).usage
    assert usage.estimated == 1
    assert usage.output_tokens == model.count_tokens("Because it is so.")
    assert usage.usd == 0.5


async def test_a_limit_cuts_text_and_tokens_alike() -> None:
    whole = await small().chat(request(TRAYS))
    cut = await small().chat(request(TRAYS, max_tokens=10))
    assert whole.text.startswith(cut.text)
    assert 0 < len(cut.text) < len(whole.text)
    assert (cut.usage.output_tokens, cut.finish_reason) == (10, "length")
    stopped = await small().chat(request(TRAYS, stop=("84 - 59",)))
    assert stopped.text == whole.text.partition("84 - 59")[0]
    assert 0 < stopped.usage.output_tokens < whole.usage.output_tokens


async def test_tokens_of_several_turns_do_not_cut_the_last_text(tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_text('{"task": "t", "task_id": "0", "prompt": "Why?"}\n', encoding="utf-8")
    tokens = {"prompt_tokens": 900, "completion_tokens": 800}
    result = {"task": "t", "task_id": "0", "final": "Because.", "tokens": tokens, "success": True}
    text = json.dumps({"model": "a", "results": [result]})
    (tmp_path / "pool.jsonl").write_text(text, encoding="utf-8")
    reply = await ReplayModel(read(tmp_path), "a").chat(request("Why?", max_tokens=50))
    assert (reply.text, reply.usage.output_tokens) == ("Because.", 800)


async def test_recorded_seconds_are_waited_only_when_asked_for() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await small().chat(request(TRAYS))
    at_once = loop.time() - began
    began = loop.time()
    pieces = [piece async for piece in small(latency=0.5).stream(request(TRAYS))]
    assert loop.time() - began >= 0.1 > at_once  # 0.262 s were recorded
    assert "".join(map(str, pieces[:-1])) == pieces[-1].text  # type: ignore[union-attr]


# -- names, descriptions, settings -----------------------------------------------------------------------------------


def record(path: Path, *names: str) -> Path:
    rows = [{"model": name, "question": "Why?", "text": "So.", "correct": True, "output_tokens": 2} for name in names]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_names_become_names_of_a_pool(tmp_path: Path) -> None:
    long = "x" * 80
    specs = models(record(tmp_path / "r.jsonl", "org/Model 7B (v1)", "plain_name-0.2", "_hidden", long))
    assert [spec.name for spec in specs] == ["Model-7B-v1", "plain_name-0.2", "hidden", "x" * 60]


def test_two_models_of_one_name_are_an_error_that_a_name_of_their_own_ends(tmp_path: Path) -> None:
    path = record(tmp_path / "r.jsonl", "org/a", "other/a")
    with pytest.raises(ct.UsageError, match=r"'org/a' and 'other/a' would both be called 'a'; .* names = "):
        models(path)
    assert [spec.name for spec in models(path, names={"other/a": "b"})] == ["a", "b"]
    with pytest.raises(ct.UsageError, match=r"no recorded model 'other/aa'; did you mean 'org/a'"):
        models(path, names={"other/aa": "b"})
    with pytest.raises(ct.UsageError, match="needs a name"):
        models(record(tmp_path / "s.jsonl", "org/–"))
    with pytest.raises(ct.UsageError, match="needs a name"):
        models(path, names={"other/a": "b c"})


def test_a_profile_is_described_only_if_it_was_asked_for() -> None:
    plain = {spec.name: spec for spec in models(EXAMPLE)}
    assert "%" not in plain["example-small"].description
    told = {spec.name: spec for spec in models(EXAMPLE, describe="profile")}
    assert "Right: 57% of 7, by correct. Median length" in told["example-small"].description
    assert plain["example-large"].prices == ct.Prices(2.5, 10.0)


def test_a_profile_without_verdicts_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"model": "a", "question": "Why?", "text": "So."}\n', encoding="utf-8")
    with pytest.raises(ct.UsageError, match="needs a verdict, and the answers of 'a' lack it; they have no verdicts"):
        models(path, describe="profile")
    assert models(path)[0].description == "Recorded answers of a to 1 question of r.jsonl."


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"describe": "full"}, "describe = 'full'; expected 'plain' or 'profile'"),
        ({"verdict": "corect"}, "verdict = 'corect'; did you mean 'correct'"),
        ({"draw": "yes"}, "draw = 'yes'; expected true or false"),
        ({"latency": -1}, "latency = -1; expected a number, 0 or more"),
        ({"prices": {"example-smal": ct.Prices(1, 1)}}, "no model 'example-smal'; did you mean 'example-small'"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ct.UsageError, match=message):
        models(EXAMPLE, **options)


def test_the_settings_name_files_from_their_folder(tmp_path: Path) -> None:
    record(tmp_path / "r.jsonl", "org/a")
    settings = ct.ProviderSettings({"files": ["r.jsonl"], "names": {"org/a": "mine"}}, folder=tmp_path)
    assert [spec.name for spec in concertino_replay.concertino_models(settings)] == ["mine"]
    assert list(concertino_replay.concertino_examples) == ["mine"]
    example = concertino_replay.concertino_models(ct.ProviderSettings({"files": ["example"]}))
    assert [spec.name for spec in example] == ["example-small", "example-large"]
    assert concertino_replay.concertino_models(ct.ProviderSettings()) == []
    for wrong, message in (
        ({"file": ["r.jsonl"]}, "unknown key 'file'; did you mean 'files'"),
        ({"files": "r.jsonl"}, r"files = 'r.jsonl'; expected a list of paths"),
        ({"names": ["a"]}, r"names = \['a'\]; expected pool names by recorded name"),
    ):
        with pytest.raises(ct.UsageError, match=message):
            concertino_replay.concertino_models(ct.ProviderSettings(wrong))


def test_a_pool_file_declares_a_recorded_model_under_its_own_name(tmp_path: Path) -> None:
    record(tmp_path / "r.jsonl", "org/a")
    file = (tmp_path / "r.jsonl").as_posix()
    (tmp_path / "pool.toml").write_text(
        f'members = ["replay/strong"]\noffer = ["replay/strong"]\n\n[models."replay/strong"]\nfile = "{file}"\n'
        'model = "org/a"\n\n[prices."replay/strong"]\ninput = 1\noutput = 2\n',
        encoding="utf-8",
    )
    pool = ct.Pool.load(tmp_path / "pool.toml")
    assert [member.name for member in pool.members] == ["replay/strong", "replay/ask_strong"]
    pool.save(tmp_path / "again.toml")
    assert ct.Pool.load(tmp_path / "again.toml") == pool


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"file": "r.jsonl", "modl": "a"}, "replay/x: unknown option 'modl'; did you mean 'model'"),
        ({"model": "a"}, "replay/x: file = None; expected a text"),
        ({"file": str(EXAMPLE), "model": "example"}, "has no model 'example'; did you mean 'example-"),
    ],
)
def test_a_wrong_declaration_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ct.UsageError, match=message):
        concertino_replay.concertino_declare_model("x", options)


async def test_a_pool_runs_with_prices_and_a_budget() -> None:
    pool = concertino_replay.pool(EXAMPLE)
    assert [visible for visible, _ in pool.actions] == ["ask_example-small", "ask_example-large"]
    calls = [ct.Call(visible, {"task": TRAYS}) for visible, _ in pool.actions]
    async with ct.Executor() as executor:
        seen = await executor.run(calls, pool, budget=ct.Budget(usd=0.1))
    assert [observation.status for observation in seen] == ["OK", "OK"]
    assert seen[0].usage.usd == pytest.approx((30 * 0.1 + 27 * 0.4) / 1e6)


async def test_a_question_that_is_not_recorded_is_an_observation_and_is_not_repeated() -> None:
    pool = concertino_replay.pool(EXAMPLE)
    async with ct.Executor() as executor:
        (seen,) = await executor.run([ct.Call("ask_example-small", {"task": "What is that?"})], pool)
    assert seen.status == "EXEC_ERR"
    assert seen.error is not None
    assert "no answer is recorded" in seen.error.message
    assert seen.attempts == 1


# -- the doctor ------------------------------------------------------------------------------------------------------


def findings(folder: Path, **settings: Any) -> list[ct.Finding]:
    return concertino_replay.concertino_doctor(ct.ProviderSettings(settings, folder=folder))


def test_the_doctor_says_what_recordings_lack(tmp_path: Path) -> None:
    assert [finding.level for finding in findings(tmp_path)] == ["ok"]
    (missing,) = findings(tmp_path, files=["nothing.jsonl"])
    assert (missing.level, "file not found" in missing.text) == ("error", True)
    rows = [
        {"model": "x/a", "id": "1", "question": "Why?", "text": "So."},
        {"model": "x/a", "id": "2", "question": "why ?", "text": "So.", "input_tokens": 1, "output_tokens": 1},
        {"model": "y/a", "id": "1", "question": "Why?", "text": "So.", "input_tokens": 1, "output_tokens": 1},
    ]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    texts = [f"{finding.level}: {finding.text}" for finding in findings(tmp_path, files=["r.jsonl"])]
    assert texts[0] == "ok: 2 models, 2 questions, 3 answers"
    assert texts[1].startswith("warning: 1 model lacks answers to some questions; y/a is one")
    assert texts[2].startswith("warning: 1 of 3 answers have no token counts")
    assert "'1' and '2' have one text" in texts[3]
    assert "would both be called 'a'" in texts[4]
