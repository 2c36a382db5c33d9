"""Tokenizers and models made from scratch: what survives, what is one token, and that a new model can copy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from concertino import UsageError
from concertino_toy.practice import practice_pool
from concertino_train.practice import tasks
from concertino_train.tiny import END, TAGS, begin_copying, find_phrases, new_model, new_tokenizer

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def texts() -> list[str]:
    pool = practice_pool()
    listed = "\n".join(f"{visible}(ask): {spec.description}" for visible, spec in pool.actions)
    return [*(task.question for task in tasks("mixed", 200, split="train")), *[listed] * 40]


@pytest.fixture(scope="module")
def tokenizer(texts: list[str]) -> Any:
    return new_tokenizer(texts, 640)


def pieces(tokenizer: Any, text: str) -> list[str]:
    return [tokenizer.decode([token]) for token in tokenizer.encode(text)]


def test_every_text_survives(tokenizer: Any, texts: list[str]) -> None:
    for text in (*texts[:20], "é世🎻 \t\n  <tool_call>\\boxed{7}</answer>", "", "1.2.3 007"):
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_tags_and_numbers_are_one_token_and_tags_are_not_special(tokenizer: Any) -> None:
    for text in (*TAGS, *map(str, range(100))):
        assert len(tokenizer.encode(text)) == 1
    assert tokenizer.decode(tokenizer.encode("<answer>7</answer>"), skip_special_tokens=True) == "<answer>7</answer>"


def test_frequent_words_are_one_token(tokenizer: Any) -> None:
    for word in ("toll", "tide", "crop", "bell", "twin"):
        assert f" {word}" in pieces(tokenizer, f"Give the {word} of Belmar.")


def test_what_never_comes_apart_is_one_token(texts: list[str]) -> None:
    told = ["Answer by calls, at most 4 a round.\nend"] * 30 + texts
    found = find_phrases(told, [str(number) for number in range(100)])
    assert "Answer by calls, at most " in found
    assert not any("\n" in phrase or "<" in phrase for phrase in found)


def test_a_vocabulary_without_room_is_refused(texts: list[str]) -> None:
    with pytest.raises(UsageError, match="at least"):
        new_tokenizer(texts, 300)


def test_the_template_marks_what_the_assistant_says(tokenizer: Any) -> None:
    talk = [{"role": "user", "content": "How far?"}, {"role": "assistant", "content": "7"}]
    made = tokenizer.apply_chat_template(talk, return_assistant_tokens_mask=True, return_dict=True)
    marked = [token for token, own in zip(made["input_ids"], made["assistant_masks"], strict=True) if own]
    assert tokenizer.decode(marked) == f"7{END}"


def test_a_saved_model_is_read_again_as_it_was(tokenizer: Any, tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = new_model(tokenizer, layers=2, hidden=64, heads=4, key_heads=2)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    again, words = AutoModelForCausalLM.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    ids = torch.tensor([words.encode("What is the toll of Belmar?")])
    assert ids.tolist() == [tokenizer.encode("What is the toll of Belmar?")]
    with torch.no_grad():
        assert torch.equal(model(ids).logits, again(ids).logits)
    assert words.chat_template == tokenizer.chat_template
    assert again.generation_config.eos_token_id == words.eos_token_id == words.convert_tokens_to_ids(END)


@pytest.mark.parametrize(("copying", "least", "most"), [(True, 0.5, 1.0), (False, 0.0, 0.05)])
def test_a_new_model_goes_on_with_what_it_read_before(tokenizer: Any, copying: bool, least: float, most: float) -> None:
    import torch

    torch.set_num_threads(1)
    model = new_model(tokenizer, layers=2, hidden=128, heads=4, copying=copying, seed=3)
    random = torch.Generator().manual_seed(1)
    once = torch.randint(3, len(tokenizer), (4, 40), generator=random)
    ids = torch.cat([once, torch.stack([row.roll(-shift) for row, shift in zip(once, (0, 7, 19, 31), strict=True)])], 1)
    with torch.no_grad():
        guessed = model(ids).logits[:, 41:-1].argmax(-1)
    right = (guessed == ids[:, 42:]).float().mean().item()
    assert least <= right <= most


def test_the_seed_decides_about_the_weights(tokenizer: Any) -> None:
    import torch

    sizes = {"layers": 2, "hidden": 64, "heads": 2}
    weights = [new_model(tokenizer, seed=seed, **sizes).model.layers[1].mlp.up_proj.weight for seed in (1, 1, 2)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


@pytest.mark.parametrize("sizes", [{"hidden": 50, "heads": 4}, {"hidden": 64, "heads": 4, "key_heads": 3}])
def test_sizes_that_do_not_go_together_are_refused(tokenizer: Any, sizes: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="multiple"):
        new_model(tokenizer, **sizes)


def test_a_model_too_small_to_copy_says_so(tokenizer: Any) -> None:
    with pytest.raises(UsageError, match="2 layers"):
        begin_copying(new_model(tokenizer, layers=1, hidden=64, heads=2))
