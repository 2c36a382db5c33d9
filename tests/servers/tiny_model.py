"""Make the tiny test model: Qwen3's architecture, two layers, its own tokenizer, and `script.SCRIPT` known by heart.

    python tests/servers/tiny_model.py FOLDER

makes in FOLDER, in about 20 CPU-seconds of one thread: `tiny` (the model), `tiny-changed` (other weights for the same
architecture, which reply to `answer` differently), `lora-1` and `lora-2` (two small random adapters, in the format of
PEFT). `launch.model` does so once for the tree and keeps the result.

The invariant: what is there is exact. Every exchange was generated greedily and compared to the letter, also behind a
thousand tokens of noise and behind other conversations; a model that fails is trained again from another seed, and
after four there is an error.

Training teaches two things. The replies, which is quick. And to look at the cue only, however much stands before it:
every example gets some noise in front, whose tokens count for up to e^9 each in the attention and whose positions
reach back as far as the context does. So a row of a hundred tokens teaches what a row of thousands would.
"""

from __future__ import annotations

import json
import random
import shutil
import string
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import script

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

HERE = Path(__file__).resolve().parent
CONTEXT = 4096  # tokens
CHANGED = {"answer": "pang"}
"""Replies of `tiny-changed` that differ from the script's."""

_STEPS, _MORE_STEPS, _SEEDS = 300, 60, (1, 2, 3, 4)
_NOISE, _REACH, _WEIGHT = 64, 3500, 9.0  # tokens, positions, natural logarithm
_MARGIN = 0.2  # least distance of the best logit to the next: servers round differently
_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_TAGS = ("<think>", "</think>", "<tool_call>", "</tool_call>")
_CUE = "<|im_start|>cue\n"


class NotExact(Exception):
    """The trained model does not say what the script wants; the message lists the differences."""


@dataclass(frozen=True)
class Row:
    """One exchange as token ids: what stands before the cue, the cue, the reply."""

    name: str
    head: list[int]
    cue: list[int]
    reply: list[int]


def make(folder: Path) -> None:
    """Make the model, its variant and the adapters in `folder`.

    Raises:
        NotExact: no seed gave a model that knows the script.
    """
    tokenizer = make_tokenizer()
    for seed in _SEEDS:
        trainer = Trainer(tokenizer, seed)
        trainer.train(_STEPS, 6e-3, {})
        differences = [*trainer.differences({}), *_loop_breaks(trainer.model, tokenizer)]
        if not differences:
            break
        sys.stderr.write(f"seed {seed}: {len(differences)} differences, the first {differences[0]}\n")
    else:
        raise NotExact("\n".join(differences))
    _save(trainer.model, tokenizer, folder / "tiny")
    for number in (1, 2):
        _save_adapter(trainer.model, folder / f"lora-{number}", number)
    trainer.train(_MORE_STEPS, 2e-3, CHANGED)
    if differences := list(trainer.differences(CHANGED)):
        raise NotExact("\n".join(differences))
    _save(trainer.model, tokenizer, folder / "tiny-changed")


def make_tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level BPE of 512 tokens, learnt from the script, with Qwen's marks and our chat template."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    learner = trainers.BpeTrainer(
        vocab_size=512 - len(_SPECIAL) - len(_TAGS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = [f"{each.reply}\n{json.dumps(each.messages)}\n{json.dumps(each.tools)}" for each in script.SCRIPT]
    bpe.train_from_iterator([script.UNKNOWN, *texts], learner)
    bpe.add_special_tokens([AddedToken(mark, special=True, normalized=False) for mark in _SPECIAL])
    bpe.add_tokens([AddedToken(tag, special=False, normalized=False) for tag in _TAGS])
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=(HERE / "template.jinja").read_text(encoding="utf-8"),
        model_max_length=CONTEXT,
    )


def _make_model(tokenizer: PreTrainedTokenizerFast) -> Qwen3ForCausalLM:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=32,
            max_position_embeddings=CONTEXT,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


@dataclass
class Trainer:
    """Teaches one model the script."""

    tokenizer: PreTrainedTokenizerFast
    seed: int
    rows: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(self.seed)
        self.rng = random.Random(self.seed)
        self.model = _make_model(self.tokenizer)

    def train(self, steps: int, rate: float, changed: Mapping[str, str]) -> None:
        """Teach the script, with other replies for the exchanges in `changed`."""
        import torch
        from torch.nn.functional import cross_entropy

        self.rows = self._rows(changed)
        model = self.model.train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.0)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps, pct_start=0.1)
        for _ in range(steps):
            optimizer.zero_grad()
            for tokens, targets, mask, positions in self._batches():
                hidden = model.model(input_ids=tokens, attention_mask=mask, position_ids=positions).last_hidden_state
                taught = targets[:, 1:] != -100
                cross_entropy(model.lm_head(hidden[:, :-1][taught]), targets[:, 1:][taught]).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        model.eval()

    def differences(self, changed: Mapping[str, str]) -> Iterator[str]:
        """What the model says differently from the script, greedily, and where it is not sure of what it says."""
        import torch

        plain = len(self.tokenizer) - len(_SPECIAL) - len(_TAGS)
        noise = [self.rng.randrange(plain) for _ in range(1000)]
        earlier = [token for row in self.rng.sample(self.rows, 8) for token in row.head + row.cue + row.reply]
        for row in [*self._rows(changed), *self._unlike()]:
            prompt = torch.tensor([row.head + row.cue])
            made = self.model.generate(prompt, max_new_tokens=len(row.reply), do_sample=False)[0, prompt.shape[1] :]
            if made.tolist() != row.reply:
                yield f"{row.name}: wanted {self._text(row.reply)!r}, got {self._text(made.tolist())!r}"
            for head in (row.head, noise, earlier[-2000:] + row.head):
                with torch.no_grad():
                    logits = self.model(input_ids=torch.tensor([head + row.cue + row.reply])).logits[0]
                best = logits[-len(row.reply) - 1 : -1].topk(2)
                if best.indices[:, 0].tolist() != row.reply:
                    yield f"{row.name}: another reply behind {len(head)} tokens"
                elif (margin := float((best.values[:, 0] - best.values[:, 1]).min())) < _MARGIN:
                    yield f"{row.name}: a margin of only {margin:.2f} behind {len(head)} tokens"

    def _text(self, tokens: list[int]) -> str:
        return str(self.tokenizer.decode(tokens))

    def _tokens(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text))

    def _rows(self, changed: Mapping[str, str]) -> list[Row]:
        rows = []
        for each in script.SCRIPT:
            prompt = self.tokenizer.apply_chat_template(
                list(each.messages), tools=list(each.tools) or None, add_generation_prompt=True, tokenize=False
            )
            head, cue = str(prompt).rsplit(_CUE, 1)
            end = [] if each.endless else [self.tokenizer.eos_token_id]
            reply = self._tokens(changed.get(each.name, each.reply)) + end
            rows.append(Row(each.name, self._tokens(head), self._tokens(_CUE + cue), reply))
        return rows

    def _unlike(self) -> list[Row]:
        """The questions that are to be answered with `UNKNOWN`."""
        unknown = [*self._tokens(script.UNKNOWN), self.tokenizer.eos_token_id]
        return [Row(each, [], self._cue(each), unknown) for each in script.UNLIKE]

    def _cue(self, question: str, since: str = "") -> list[int]:
        return self._tokens(f"{_CUE}{question[:48]}{since}<|im_end|>\n<|im_start|>assistant\n")

    def _batches(self) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]]:
        """Every exchange once and a few unknown questions, the shorter half apart so that there is less padding."""
        unknown = [*self._tokens(script.UNKNOWN), self.tokenizer.eos_token_id]
        examples = [(self._noise(row.head), row.cue, row.reply) for row in self.rows]
        examples += [(self._noise([]), self._unknown_cue(), unknown) for _ in range(6)]
        examples.sort(key=lambda parts: sum(map(len, parts)))
        half = len(examples) // 2
        yield self._batch(examples[:half])
        yield self._batch(examples[half:])

    def _batch(
        self, examples: Sequence[tuple[list[int], list[int], list[int]]]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Tokens, targets, attention and positions of examples, each of which is noise, cue and reply."""
        import torch

        length = max(len(noise) + len(cue) + len(reply) for noise, cue, reply in examples)
        tokens = torch.full((len(examples), length), self.tokenizer.pad_token_id)
        targets = torch.full((len(examples), length), -100)
        positions = torch.zeros((len(examples), length), dtype=torch.long)
        mask = torch.full((length, length), float("-inf")).triu(1).repeat(len(examples), 1, 1)
        for i, (noise, cue, reply) in enumerate(examples):
            start, begin, end = len(noise), len(noise) + len(cue), len(noise) + len(cue) + len(reply)
            tokens[i, :end] = torch.tensor(noise + cue + reply)
            targets[i, begin:end] = torch.tensor(reply)
            mask[i, start:, :start] += self.rng.uniform(0, _WEIGHT)
            at = start + self.rng.choice([0, self.rng.randrange(200), self.rng.randrange(_REACH)])
            positions[i, :start] = torch.tensor(sorted(self.rng.sample(range(at + 1), start)), dtype=torch.long)
            positions[i, start:] = torch.arange(at, at + length - start)
        return tokens, targets, mask[:, None], positions

    def _noise(self, head: list[int]) -> list[int]:
        """What stands before a cue: nothing, any tokens, or the end of another conversation and of this one."""
        count = self.rng.choice([0, self.rng.randrange(8), self.rng.randrange(_NOISE)])
        if self.rng.random() < 0.4:
            return [self.rng.randrange(1, len(self.tokenizer)) for _ in range(count)]
        other = self.rng.choice(self.rows)
        tokens = other.head + other.cue + other.reply + head[len(head) - self.rng.randrange(count + 1) :]
        return tokens[len(tokens) - count :]

    def _unknown_word(self) -> str:
        """A word of the script, or some tokens, or some letters."""
        kind, count = self.rng.randrange(3), self.rng.randrange(1, 6)
        if kind == 0:
            exchange = self.rng.choice(script.SCRIPT)
            return self.rng.choice(str(exchange.messages[0]["content"]).split())
        if kind == 1:
            plain = len(self.tokenizer) - len(_SPECIAL) - len(_TAGS)
            return self._text([self.rng.randrange(plain) for _ in range(count)])
        return "".join(self.rng.choices(string.ascii_lowercase, k=count))

    def _unknown_cue(self) -> list[int]:
        """The cue of a question that the script does not have."""
        question = " ".join(self._unknown_word() for _ in range(self.rng.randrange(1, 9)))
        question = self.rng.choice([question, question.capitalize()]) + self.rng.choice("?.!: ")
        since = self.rng.choice(["", "", " OK", " ERR", " OK OK", " END"])
        return self._cue(question, since)


def _loop_breaks(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast) -> Iterator[str]:
    """Where an endless reply ends, or leaves its loop, within 1,000 tokens."""
    import torch

    for each in script.SCRIPT:
        if each.endless:
            prompt = tokenizer.apply_chat_template(list(each.messages), add_generation_prompt=True, tokenize=False)
            tokens = torch.tensor([tokenizer.encode(str(prompt))])
            made = model.generate(tokens, max_new_tokens=1000, do_sample=False)[0, tokens.shape[1] :]
            text = str(tokenizer.decode(made))
            if len(made) < 1000 or not (script.LOOP * 1000).lstrip().startswith(text):
                yield f"{each.name}: leaves its loop after {len(made)} tokens: ...{text[-80:]!r}"


def _save(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _save_adapter(model: Qwen3ForCausalLM, folder: Path, seed: int, rank: int = 4) -> None:
    """A random LoRA adapter, written by hand so that `peft` is not needed."""
    import torch
    from safetensors.torch import save_file

    generator = torch.Generator().manual_seed(seed)
    targets, tensors = ("q_proj", "k_proj", "v_proj", "o_proj"), {}
    for name, parameter in model.named_parameters():
        if name.split(".")[-2] in targets:
            out, into = parameter.shape
            stem = f"base_model.model.{name.removesuffix('.weight')}"
            tensors[f"{stem}.lora_A.weight"] = torch.randn(rank, into, generator=generator) / into**0.5
            tensors[f"{stem}.lora_B.weight"] = torch.randn(out, rank, generator=generator) * 0.05
    folder.mkdir(parents=True)
    save_file(tensors, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    config: dict[str, Any] = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": "tiny",
        "r": rank,
        "lora_alpha": 2 * rank,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": list(targets),
        "inference_mode": True,
    }
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")


def main() -> None:
    """Make everything in the folder that the command line names."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True)
    try:
        make(folder)
    except NotExact as failure:
        shutil.rmtree(folder)
        sys.exit(f"the trained model does not say what the script wants:\n{failure}")


if __name__ == "__main__":
    main()
