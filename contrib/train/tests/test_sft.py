"""Supervised learning: what is taught is learnt, nothing is cut, and an interrupted training ends as a straight one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino import Message
from concertino_local.codec import ByteCodec
from concertino_train.data import RoleConversation, write_conversations
from concertino_train.data.encoding import IGNORED, LabelledConversation, encode

pytest.importorskip("trl", reason="trl, which trains, is absent")


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    import torch

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def model(hidden: int = 32, context: int = 256, seed: int = 0, tokens: int = ByteCodec.size) -> Any:
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=tokens,
            hidden_size=hidden,
            intermediate_size=2 * hidden,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            head_dim=hidden // 2,
            max_position_embeddings=context,
            tie_word_embeddings=True,
        )
    )


def conversation(number: int, question: str = "", answer: str = "", spoilt: str = "") -> RoleConversation:
    """One with a malformed text as context, which differs from all that is taught."""
    question = question or "abc"[number % 3]
    said = ("user", "assistant", "user", "assistant")
    words = (question, spoilt or "zz" * (number % 4 + 1), "no", answer or f"-> {question.upper()}")
    messages = tuple(Message(role, text) for role, text in zip(said, words, strict=True))  # type: ignore[arg-type]
    return RoleConversation(f"c{number}", messages, (1, 3), (3,), {1: ("unread",)})


CONVERSATIONS = [conversation(number) for number in range(25)]


def settings(out: Path, **more: Any) -> Any:
    from concertino_train.sft import SftSettings

    given = {"steps": 12, "batch": 8, "micro_batch": 4, "learning_rate": 1e-2, "log_every": 1, "device": "cpu"}
    return SftSettings(out=out, **{**given, **more})


def taught(out: Path, data: Any = CONVERSATIONS, student: Any = None, **more: Any) -> Any:
    from concertino_train.sft import fine_tune

    extra = {name: more.pop(name) for name in ("evaluate", "on_progress", "stop", "adapter", "files") if name in more}
    return fine_tune(settings(out, **more), student or model(), ByteCodec(), data, **extra)


def weights(out: Path) -> dict[str, Any]:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(out / "model").state_dict()


def written(student: Any, question: RoleConversation) -> str:
    """What the model writes next, greedily, before the taught text of a conversation."""
    import torch

    codec = ByteCodec()
    row = encode(question, codec)
    begin = next(place for place, label in enumerate(row.labels) if label != IGNORED)
    ids = list(row.ids[:begin])
    with torch.no_grad():
        for _ in range(12):
            ids.append(int(student(torch.tensor([ids])).logits[0, -1].argmax()))
            if ids[-1] in codec.end_ids:
                break
    return codec.decode(ids[begin:])


# -- learning ----------------------------------------------------------------------------------------------------------


def test_a_mixture_of_experts_can_be_sampled_after_it_was_taught_and_is_saved_as_it_was(tmp_path: Path) -> None:
    import torch
    from concertino_train.policies import Prompt, TransformersPolicy
    from transformers import AutoModelForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM

    torch.manual_seed(0)
    shape = model().config.to_dict() | {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
    experts = Qwen3MoeForCausalLM(Qwen3MoeConfig(**{k: v for k, v in shape.items() if k != "model_type"}))
    taught(tmp_path, student=experts, steps=2)
    for student in (experts, AutoModelForCausalLM.from_pretrained(tmp_path / "model")):
        assert (student.config.output_router_logits, student.config.use_cache) == (False, True)
        policy = TransformersPolicy(student, ByteCodec())
        sample = policy.generate([Prompt((1, 2, 3), 4, seed=0)])[0]
        assert 1 <= len(sample.ids) <= 4


def test_what_is_taught_is_learnt_and_what_is_context_is_not(tmp_path: Path) -> None:
    student = model()
    data = [conversation(number, answer="-> ok") for number in range(25)]
    result = taught(tmp_path, data, student, steps=30, log_every=5, schedule="constant")
    losses = list(result.losses.values())
    assert losses[-1] < 0.1 * losses[0]
    assert (result.step, result.rows, result.resumed, result.dropped) == (30, 25, 0, {})
    assert [written(student, each) for each in data[:3]] == ["-> ok<|end|>"] * 3
    assert "zz" not in written(student, replace(data[0], train=(1,)))


def test_the_loss_is_that_of_the_trained_tokens_alone(tmp_path: Path) -> None:
    import torch

    student = model()
    rows = [encode(each, ByteCodec()) for each in CONVERSATIONS[:8]]
    total = torch.zeros(())
    for row in rows:
        logits = student(torch.tensor([row.ids])).logits[0, :-1].log_softmax(-1)
        labels = torch.tensor(row.labels[1:])
        kept = labels != IGNORED
        total = total - logits[kept].gather(1, labels[kept][:, None]).sum()
    expected = float(total.detach()) / sum(row.trained for row in rows)
    assert taught(tmp_path, rows, student, steps=1).losses[1] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    "batch", [8, pytest.param(7, marks=pytest.mark.soak)], ids=["several passes", "one uneven pass"]
)
def test_packed_conversations_teach_what_padded_ones_do(tmp_path: Path, batch: int) -> None:
    plan = {"steps": 3, "batch": batch, "micro_batch": 4 if batch == 8 else 7, "max_grad_norm": 0.0}
    students = [model(), model()]
    norms: list[list[float]] = [[], []]
    apart, packed = (
        taught(
            tmp_path / str(number),
            student=students[number],
            packing=bool(number),
            on_progress=lambda told, found=norms[number]: found.append(told.grad_norm),
            **plan,
        )
        for number in range(2)
    )
    assert packed.padding == 0.0 < apart.padding
    assert list(packed.losses.values()) == pytest.approx(list(apart.losses.values()), abs=1e-5)
    assert norms[1] == pytest.approx(norms[0], abs=1e-5)
    for one, other in zip(students[0].parameters(), students[1].parameters(), strict=True):
        # In the mean: where a gradient is nearly 0, the optimiser makes a whole step of its last digit.
        assert float((one - other).detach().abs().mean()) <= 1e-5
    assert packed.losses[3] < packed.losses[1]


@pytest.mark.parametrize("packing", [pytest.param(False, marks=pytest.mark.soak), True], ids=["padded", "packed"])
def test_a_micro_batch_that_the_memory_cannot_hold_is_computed_in_parts(
    tmp_path: Path, packing: bool, caplog: pytest.LogCaptureFixture
) -> None:
    import torch
    from concertino_train.sft.accumulation import AccumulatedSteps

    plan = {"steps": 2, "batch": 8, "micro_batch": 4, "packing": packing, "max_grad_norm": 0.0}
    students, tried = [model(), model()], list[int]()
    seen: list[Any] = []
    plain = taught(tmp_path / "plain", student=students[0], on_progress=seen.append, **plan)
    whole = AccumulatedSteps.compute_loss

    def compute(self: Any, network: Any, inputs: Any, *more: Any, **named: Any) -> Any:
        tried.append(len(inputs["labels"]))
        found = whole(self, network, inputs, *more, **named)
        if tried[-1] > 2 and len(tried) == 2:  # in the second micro-batch: gradients of the first one are there
            found.backward()
            raise torch.OutOfMemoryError("CUDA out of memory")
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AccumulatedSteps, "compute_loss", compute)
        halved = taught(tmp_path / "halved", student=students[1], on_progress=seen.append, **plan)
    assert tried == [4, 4, *[2] * 4, *[2] * 4]
    assert "trainer.sft.micro_batch=2" in caplog.text
    # The optimiser would hide a gradient that was counted twice: its steps do not depend on the size.
    assert [each.grad_norm for each in seen[2:]] == pytest.approx([each.grad_norm for each in seen[:2]], abs=1e-5)
    assert list(halved.losses.values()) == pytest.approx(list(plain.losses.values()), abs=1e-5)
    for one, other in zip(students[0].parameters(), students[1].parameters(), strict=True):
        assert float((one - other).detach().abs().mean()) <= 1e-5


@pytest.mark.slow
def test_labels_of_context_change_nothing(tmp_path: Path) -> None:
    """Other ids at untrained places behind the last trained one would matter to nobody; labels are as they are."""
    one = taught(tmp_path / "a", steps=2)
    rows = [encode(each, ByteCodec()) for each in CONVERSATIONS]
    two = taught(tmp_path / "b", rows, steps=2)
    assert one.losses == two.losses


def test_a_set_on_disk_is_learnt_from_with_a_model_and_a_tokenizer_from_a_folder(tmp_path: Path) -> None:
    from concertino_local.codec import ChatCodec
    from concertino_train.sft import SftSettings, fine_tune
    from concertino_train.tiny import new_model, new_tokenizer

    tokenizer = new_tokenizer(["a -> A", "b -> B"], 480, tags=(), phrases=())
    codec = ChatCodec.load(tokenizer, "chatml")
    new_model(tokenizer, layers=1, hidden=16, heads=2, context=128).save_pretrained(tmp_path / "base")
    codec.save(tmp_path / "base")
    write_conversations(CONVERSATIONS, tmp_path / "set" / "conversations.jsonl")
    chosen = SftSettings(
        out=tmp_path / "out", data=tmp_path / "set", model=tmp_path / "base", epochs=1, batch=8, device="cpu"
    )
    result = fine_tune(chosen)
    assert (result.rows, result.step) == (25, 4)
    assert ChatCodec.load(result.model).fingerprint == codec.fingerprint
    assert json.loads(json.dumps(result.to_json()))["model"] == str(tmp_path / "out" / "model")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*deprecated")  # peft asks transformers by the old name
def test_an_adapter_is_trained_in_place_of_the_weights(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    adapter = peft.LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM")
    result = taught(tmp_path, student=model(), adapter=adapter, steps=8)
    assert (result.model / "adapter_config.json").is_file()
    assert not (result.model / "model.safetensors").exists()
    assert result.losses[8] < result.losses[1]


@pytest.mark.slow
def test_progress_and_evaluations_come_in_time_and_the_model_stands_still_meanwhile(tmp_path: Path) -> None:
    student, seen, modes = model(), [], []

    def evaluate(step: int) -> Any:
        modes.append((step, student.training))
        return {"clean": step / 10} if step < 12 else 0.5

    result = taught(
        tmp_path, student=student, evaluate=evaluate, evaluate_every=5, on_progress=seen.append, log_every=4
    )
    assert modes == [(5, False), (10, False), (12, False)]
    assert result.evaluations == {5: {"clean": 0.5}, 10: {"clean": 1.0}, 12: {"share": 0.5}}
    assert [each.step for each in seen] == [4, 8, 12]
    assert {each.steps for each in seen} == {12}
    assert [each.epoch for each in seen] == [1.28, 2.56, 3.84]
    assert all(each.loss == result.losses[each.step] for each in seen)
    assert seen[-1].tokens > seen[0].tokens > 0


@pytest.mark.slow
def test_a_library_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    taught(tmp_path, steps=4, save_every=2)
    said = capfd.readouterr()
    assert "loss" not in said.out + said.err
    assert "shards" not in said.out + said.err


# -- resuming ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_interrupted_training_ends_with_the_weights_of_a_straight_one(tmp_path: Path) -> None:
    straight = taught(tmp_path / "a", seed=3)
    asked: list[int] = []

    def stop() -> bool:
        asked.append(1)
        return len(asked) == 7

    first = taught(tmp_path / "b", seed=3, stop=stop, save_every=5)
    assert (first.step, first.steps, first.model) == (7, 12, None)
    assert not (tmp_path / "b" / "model").exists(), "half-taught weights look like taught ones"
    second = taught(tmp_path / "b", student=model(seed=9), seed=3, resume=True, save_every=5)
    assert (second.step, second.resumed) == (12, 7)
    assert second.losses == pytest.approx(straight.losses)
    one, two = weights(tmp_path / "a"), weights(tmp_path / "b")
    assert max(float((one[name] - two[name]).abs().max()) for name in one) <= 1e-6


@pytest.mark.slow
def test_a_checkpoint_that_a_crash_left_is_not_gone_on_from(tmp_path: Path) -> None:
    from concertino_train.running.checkpoints import FILE, latest_checkpoint

    taught(tmp_path, save_every=4, keep=5)
    chosen = tmp_path / "checkpoints"
    assert latest_checkpoint(chosen).name == "checkpoint-12"
    (tmp_path / "checkpoints" / "checkpoint-12" / FILE).unlink()
    assert latest_checkpoint(chosen).name == "checkpoint-8"
    assert taught(tmp_path, student=model(seed=5), save_every=4, keep=5, resume=True).resumed == 8
    assert latest_checkpoint(tmp_path / "other") is None


@pytest.mark.slow
def test_old_checkpoints_go_when_the_new_one_is_whole_and_torn_ones_with_them(tmp_path: Path) -> None:
    from concertino_train.running.checkpoints import FILE, prune

    taught(tmp_path, steps=6, save_every=2, keep=1)
    home = tmp_path / "checkpoints"
    assert [path.name for path in home.iterdir()] == ["checkpoint-6"]
    for torn in ("checkpoint-4", "checkpoint-8"):
        (home / torn).mkdir()
    (home / "checkpoint-best").mkdir()
    prune(home, 1)
    assert sorted(path.name for path in home.iterdir()) == ["checkpoint-6", "checkpoint-8", "checkpoint-best"]
    assert (home / "checkpoint-6" / FILE).is_file(), "a torn one is no reason to remove a whole one"


@pytest.mark.slow
def test_how_often_is_saved_and_told_may_change_when_a_training_goes_on(tmp_path: Path) -> None:
    seen: list[Any] = []
    taught(tmp_path, steps=4, save_every=4, keep=9, log_every=4)
    taught(
        tmp_path,
        student=model(seed=8),
        steps=9,
        save_every=2,
        keep=9,
        log_every=1,
        on_progress=seen.append,
        resume=True,
    )
    assert {path.name for path in (tmp_path / "checkpoints").iterdir()} >= {"checkpoint-6", "checkpoint-8"}
    assert [each.step for each in seen] == [5, 6, 7, 8, 9]


def test_who_stops_does_not_wait_for_another_evaluation(tmp_path: Path) -> None:
    asked: list[int] = []
    result = taught(tmp_path, evaluate=lambda step: asked.append(step) or 1.0, stop=lambda: True, save_every=5)
    assert (result.step, result.model, asked) == (1, None, [])


@pytest.mark.parametrize("change", [{"data": CONVERSATIONS[:20]}, {"learning_rate": 1e-3}, {"seed": 7}])
def test_a_training_goes_on_only_with_what_it_began_with(change: dict[str, Any], tmp_path: Path) -> None:
    taught(tmp_path, steps=2, save_every=2)
    with pytest.raises(ct.UsageError, match="was made with other data, another codec or other settings"):
        taught(tmp_path, **{"steps": 2, "resume": True, **change})


@pytest.mark.slow
def test_a_training_may_be_made_longer_and_force_goes_on_with_other_data(tmp_path: Path) -> None:
    taught(tmp_path, steps=2, save_every=2)
    longer = taught(tmp_path, student=model(seed=8), steps=4, save_every=2, resume=True)
    assert (longer.resumed, longer.step) == (2, 4)
    forced = taught(tmp_path, student=model(seed=8), steps=5, resume=True, force=True, data=CONVERSATIONS[:20])
    assert (forced.resumed, forced.step) == (4, 5)


@pytest.mark.slow
def test_a_finished_training_is_taken_up_without_another_step(tmp_path: Path) -> None:
    first = taught(tmp_path, steps=4, save_every=2)
    again = taught(tmp_path, student=model(seed=8), steps=4, save_every=2, resume=True)
    assert (again.resumed, again.step, again.losses) == (4, 4, first.losses)
    assert weights(tmp_path)


def test_checkpoints_of_an_earlier_training_are_not_written_over(tmp_path: Path) -> None:
    taught(tmp_path, steps=2, save_every=2)
    with pytest.raises(ct.UsageError, match=r"holds checkpoints of an earlier training; continue it \(--resume, "):
        taught(tmp_path, steps=2, save_every=2)


def test_without_a_checkpoint_resuming_begins(tmp_path: Path) -> None:
    assert taught(tmp_path, steps=2, resume=True).resumed == 0


# -- rows --------------------------------------------------------------------------------------------------------------


def row(name: str, length: int, trained: int = 1) -> LabelledConversation:
    return LabelledConversation(name, (1,) * length, (IGNORED,) * (length - trained) + (1,) * trained)


def test_a_conversation_that_is_too_long_is_refused_or_left_out_and_never_cut(tmp_path: Path) -> None:
    long = conversation(99, question="q" * 60)
    size = len(encode(long, ByteCodec()).ids)
    with pytest.raises(ct.UsageError, match=rf"1 of 26 .* max_tokens=64, the longest {size} \(c99\); nothing is cut"):
        taught(tmp_path, [*CONVERSATIONS, long], max_tokens=64)
    result = taught(tmp_path, [*CONVERSATIONS, long], max_tokens=64, too_long="drop", steps=2)
    assert (result.rows, result.dropped) == (25, {"too_long": 1})
    assert result.longest <= 64


def test_what_the_model_cannot_read_is_left_out_where_that_is_asked_for(tmp_path: Path) -> None:
    result = taught(tmp_path, [row("r", 300), row("s", 256)], too_long="drop", steps=1)
    assert (result.rows, result.dropped, result.longest) == (1, {"too_long": 1}, 256)


def test_texts_stand_beside_the_weights_as_soon_as_these_are_there(tmp_path: Path) -> None:
    assert taught(tmp_path, steps=1, files={"training.yaml": "name: x"}).model is not None
    assert (tmp_path / "model" / "training.yaml").read_text() == "name: x"
    assert not (tmp_path / "model.part").exists()


def test_every_row_of_the_trainer_is_a_whole_conversation() -> None:
    from concertino_train.sft.rows import table_of

    rows = [encode(each, ByteCodec()) for each in CONVERSATIONS]
    table = table_of(rows)
    assert table.column_names == ["input_ids", "labels"]
    assert [tuple(ids) for ids in table["input_ids"]] == [each.ids for each in rows]
    assert [tuple(labels) for labels in table["labels"]] == [each.labels for each in rows]


def test_what_teaches_nothing_is_counted_and_nothing_at_all_is_refused(tmp_path: Path) -> None:
    untaught = replace(CONVERSATIONS[0], id="u", train=())
    assert taught(tmp_path, [*CONVERSATIONS, untaught], steps=1).dropped == {"untaught": 1}
    with pytest.raises(ct.UsageError, match="no conversation to learn from: 1 untaught"):
        taught(tmp_path, [untaught])
    with pytest.raises(ct.UsageError, match="no conversation to learn from: there are none"):
        taught(tmp_path, [])


def test_a_row_that_the_model_cannot_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ct.UsageError, match=r"conversation r has 300 tokens, and the model reads 256; set max_tokens"):
        taught(tmp_path, [row("r", 300)])
    with pytest.raises(ct.UsageError, match="the codec gives the id 257, and the model has 200 tokens"):
        taught(tmp_path, student=model(tokens=200))


def test_every_pass_reads_every_row_once_in_another_order(tmp_path: Path) -> None:
    from concertino_train.sft.rows import order_of

    rows = [row(str(n), 5 + n % 90) for n in range(103)]
    for grouped in (True, False):
        chosen = settings(tmp_path, steps=None, epochs=2, group_by_length=grouped)
        order = order_of(rows, chosen)
        assert len(order) == 26 * 8
        first, second = order[:103], order[103:206]
        assert sorted(first) == sorted(second) == list(range(103))
        assert first != second
        assert order == order_of(rows, chosen)
        assert order != order_of(rows, chosen.changed(seed=1))


def test_rows_of_one_step_are_of_similar_length(tmp_path: Path) -> None:
    from concertino_train.sft.rows import order_of, padding_of

    rows = [row(str(n), 10 + (n * 37) % 200) for n in range(400)]
    chosen = settings(tmp_path, steps=None, epochs=1)
    grouped, plain = order_of(rows, chosen), order_of(rows, chosen.changed(group_by_length=False))
    assert padding_of(rows, grouped, 4) < 0.05
    assert padding_of(rows, plain, 4) > 0.25


# -- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch": 0},
        {"steps": 0},
        {"steps": None, "epochs": 0.0},
        {"too_long": "cut"},
        {"precision": "half"},
        {"schedule": "sqrt"},
        {"max_tokens": 0},
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(wrong: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ct.UsageError, match=rf"SftSettings\({list(wrong)[-1]}="):
        settings(tmp_path, **wrong)


def test_settings_become_trl_s_arguments(tmp_path: Path) -> None:
    from concertino_train.sft.arguments import sft_arguments

    found = sft_arguments(settings(tmp_path, warmup=3, schedule="constant", batch=12, micro_batch=4), 120)
    assert (found.max_steps, found.gradient_accumulation_steps, found.per_device_train_batch_size) == (10, 3, 4)
    assert (found.bf16, found.fp16, found.use_cpu, found.max_length, found.packing) == (False, False, True, None, False)
    assert (str(found.lr_scheduler_type.value), found.warmup_steps) == ("constant_with_warmup", 3)
    assert found.train_sampling_strategy == "sequential"
    with pytest.raises(ct.UsageError, match="batch=10 is not a multiple of micro_batch=4"):
        sft_arguments(settings(tmp_path, batch=10), 40)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    from concertino_train.sft import fine_tune

    with pytest.raises(ct.UsageError, match=r"model=''\): expected a folder of weights"):
        fine_tune(settings(tmp_path))
    with pytest.raises(ct.UsageError, match="a model and no codec; give the one of its tokenizer"):
        fine_tune(settings(tmp_path), model())
    with pytest.raises(ct.UsageError, match=r"data=''\): expected the folder of a set"):
        fine_tune(settings(tmp_path), model(), ByteCodec())
    with pytest.raises(ct.UsageError, match=r"no model .*; expected what save_pretrained writes"):
        fine_tune(settings(tmp_path, model=tmp_path / "nothing"))


def test_importing_imports_no_torch() -> None:
    program = "import sys, concertino_train.sft, concertino_train.data\n"
    program += "assert not {'torch', 'transformers', 'trl', 'datasets', 'matplotlib'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# -- from nothing to a policy that calls -------------------------------------------------------------------------------


@pytest.mark.soak
def test_a_tiny_policy_learns_to_route_in_the_exact_form_from_collected_trajectories(tmp_path: Path) -> None:
    """98 % of 200 held-out greedy rollouts in the exact form, within 200 CPU-seconds, from random weights."""
    import asyncio
    import time

    from concertino_bench import System, TaskSet
    from concertino_bench.graders import MultiAnswer
    from concertino_bench.runner import Selection
    from concertino_local.codec import ChatCodec
    from concertino_toy.practice import practice_pool
    from concertino_toy.practice.experts import Habits
    from concertino_toy.practice.experts.calls import RoundsExpert
    from concertino_train.data import make_set, read_conversations
    from concertino_train.data.collecting import collect
    from concertino_train.policies import TransformersPolicy
    from concertino_train.practice import tasks
    from concertino_train.rollouts import Assignment, RolloutEngine, TokenLimits
    from concertino_train.sft import SftSettings, fine_tune
    from concertino_train.tiny import new_model, new_tokenizer

    began, pool = time.process_time(), practice_pool()
    strategy = ct.ParallelRounds(prompt="brief", references=True, show_budget=False)
    asked = TaskSet("practice", "", lambda count=100: tasks("facts", count, split="train", level=1))
    expert = System("expert", strategy, RoundsExpert(pool, Habits(slips=0.1, serial=0.3)))
    done = asyncio.run(
        collect(expert, Selection(asked, limit=1000), pool, tmp_path, samples=2, graders=[MultiAnswer()])
    )
    made = make_set(done.results, tmp_path / "set")
    assert made.card["counts"]["recovered"] > 100
    assert made.card["counts"]["context"] > 100
    conversations = list(read_conversations(tmp_path / "set"))
    codec = ChatCodec.load(new_tokenizer([m.text for c in conversations[:300] for m in c.messages], 1024), "chatml")
    student = new_model(codec.tokenizer, layers=2, hidden=64, heads=4, context=2048)
    fine_tune(
        SftSettings(
            out=tmp_path / "out", steps=500, batch=16, micro_batch=16, learning_rate=3e-3, warmup=20, device="cpu"
        ),
        student,
        codec,
        conversations,
    )
    engine = RolloutEngine(
        TransformersPolicy(student, codec, temperature=0.0), limits=TokenLimits(160, 1200), graders=[MultiAnswer()]
    )
    try:
        held_out = [Assignment(task, pool, strategy) for task in tasks("facts", 200, split="test", level=1)]
        rollouts = engine.run_sync(held_out)
    finally:
        engine.close()
    exact = [all(text.exact for text in rollout.episode.policy_rounds) for rollout in rollouts]
    assert sum(exact) / len(exact) >= 0.98
    assert sum(rollout.grade.score for rollout in rollouts) / 200 >= 0.5
    assert time.process_time() - began <= 200
