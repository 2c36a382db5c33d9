"""Ten families of models in small: the architecture, the tokenizer and the way to write conversations of each.

    family("gemma-3").tokenizer()      a tokenizer that is made on the spot, of the same make
    family("gemma-3").model(tokenizer) a model of the same architecture, with some thousand random weights

The templates are our own, of the same structure as the published ones: roles that alternate, channels, a system prompt
within a question, roles of tools, thoughts that are dropped from earlier turns. Published ones are read from elsewhere,
where they are (`published`).
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TEMPLATES = "CONCERTINO_CHAT_TEMPLATES"
"""Names a folder of published templates, `NAME.jinja` each; by default that of the installed TRL."""
TAGS = tuple(f"<{slash}{name}>" for name in ("think", "reasoning", "tool_call", "answer") for slash in ("", "/"))
_SIZE = 800
"""Tokens of a vocabulary, without special ones."""
_TEXT = "How far is it to the next town? Ten miles and back the same way. assistant user system tool name arguments"

# -- templates of our own ----------------------------------------------------------------------------------------------

_QWEN3 = """{%- set last = namespace(user=-1) %}{%- for m in messages %}{%- if m.role == 'user' %}
{%- set last.user = loop.index0 %}{%- endif %}{%- endfor %}
{%- for t in tools or [] %}{{ '<tools>' + (t | tojson) + '</tools>\\n' }}{% endfor %}
{%- for m in messages %}{{ '<|im_start|>' + m.role + '\\n' }}
{%- if m.role == 'assistant' %}{%- set parts = m.content.split('</think>') %}
{%- if loop.last or loop.index0 > last.user %}
{{- '<think>\\n' + (m.reasoning_content or '') + (parts[0].replace('<think>', '') if parts[1:] else '') }}
{{- '\\n</think>\\n\\n' }}
{%- endif %}{{ parts[-1].lstrip('\\n') }}
{%- for c in m.tool_calls or [] %}{{ '<tool_call>' + (c.function | tojson) + '</tool_call>' }}{% endfor %}
{%- else %}{{ m.content }}{% endif %}{{ '<|im_end|>\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
"""An empty thought in the last turn, and none in earlier ones."""
_QWEN25 = """{%- if messages[0].role != 'system' %}{{ '<|im_start|>system\\nYou help.<|im_end|>\\n' }}{% endif %}
{%- for t in tools or [] %}{{ '<tools>' + (t | tojson) + '</tools>\\n' }}{% endfor %}
{%- for m in messages %}{%- if m.role == 'tool' %}
{%- if loop.first or loop.previtem.role != 'tool' %}{{ '<|im_start|>user' }}{% endif %}
{{- '\\n<tool_response>\\n' + m.content + '\\n</tool_response>' }}
{%- if loop.last or loop.nextitem.role != 'tool' %}{{ '<|im_end|>\\n' }}{% endif %}
{%- else %}{{ '<|im_start|>' + m.role + '\\n' + m.content }}
{%- for c in m.tool_calls or [] %}{{ '\\n<tool_call>\\n' + (c.function | tojson) + '\\n</tool_call>' }}{% endfor %}
{{- '<|im_end|>\\n' }}{% endif %}{% endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
"""A system prompt where none is given; results of tools share a turn of the user."""
_LLAMA = """{{- bos_token }}{%- if messages[0].role == 'system' %}{%- set told = messages[0].content | trim %}
{%- set messages = messages[1:] %}{%- else %}{%- set told = '' %}{%- endif %}
{{- '<|start_header_id|>system<|end_header_id|>\\n\\nToday: a day.\\n\\n' + told + '<|eot_id|>' }}
{%- for m in messages %}{%- if m.tool_calls and m.tool_calls | length > 1 %}{{ raise_exception('one call') }}{% endif %}
{{- '<|start_header_id|>' + ('ipython' if m.role == 'tool' else m.role) + '<|end_header_id|>\\n\\n' }}
{{- m.content | trim + '<|eot_id|>' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"""
"""A system prompt around the one that is given; texts without blanks at their ends."""
_GEMMA = """{{- bos_token }}{%- if messages[0].role == 'system' %}{%- set told = messages[0].content + '\\n\\n' %}
{%- set messages = messages[1:] %}{%- else %}{%- set told = '' %}{%- endif %}
{%- for m in messages %}
{%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('alternate') }}{% endif %}
{{- '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\\n' }}
{{- (told if loop.first else '') + m.content | trim + '<end_of_turn>\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"""
"""User and assistant alternate; the system prompt stands in the first question."""
_GPT_OSS = """{{- '<|start|>system<|message|>Speak in channels.<|end|>' }}
{%- for m in messages %}{%- if m.role == 'assistant' %}{%- if m.thinking and loop.last %}
{{- '<|start|>assistant<|channel|>analysis<|message|>' + m.thinking + '<|end|>' }}{% endif %}
{{- '<|start|>assistant<|channel|>final<|message|>' + m.content + ('<|return|>' if loop.last else '<|end|>') }}
{%- else %}{{ '<|start|>' + ('developer' if m.role == 'system' else m.role) + '<|message|>' + m.content + '<|end|>' }}
{%- endif %}{% endfor %}
{%- if add_generation_prompt %}{{ '<|start|>assistant' }}{% endif %}"""
"""Channels; the last turn has another end, and earlier thoughts are dropped."""
_MISTRAL = """{{- bos_token }}{%- if messages[0].role == 'system' %}{%- set told = messages[0].content + '\\n\\n' %}
{%- set messages = messages[1:] %}{%- else %}{%- set told = '' %}{%- endif %}
{%- set last = namespace(user=-1) %}{%- for m in messages %}{%- if m.role == 'user' %}
{%- set last.user = loop.index0 %}{%- endif %}{%- endfor %}
{%- for m in messages %}
{%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('alternate') }}{% endif %}
{%- if m.role == 'user' %}{{ '[INST] ' + (told if loop.index0 == last.user else '') + m.content + '[/INST]' }}
{%- else %}{{ ' ' + m.content + eos_token }}{% endif %}{% endfor %}"""
"""User and assistant alternate; the system prompt stands in the last question."""
_GLM = """{{- '[gMASK]<sop>' }}{%- for m in messages %}{%- if m.role == 'assistant' %}{{ '<|assistant|>\\n' }}
{{- '<think></think>\\n' if not loop.last and '</think>' in m.content else '' }}
{{- m.content if loop.last else m.content.split('</think>')[-1] }}
{%- elif m.role == 'tool' %}{{ '<|observation|>\\n' + m.content }}
{%- else %}{{ '<|' + m.role + '|>\\n' + m.content }}{% endif %}{% endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}"""
"""Turns without an end: the mark of whoever speaks next is it."""
_PHI = """{%- for m in messages %}{{ '<|' + m.role + '|>\\n' + m.content + '<|end|>\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}"""
"""A text that is over has an end of its own."""
_DEEPSEEK = """{{- bos_token }}{%- for m in messages %}
{%- if m.role == 'system' %}{{ m.content }}{% elif m.role == 'assistant' %}
{{- '<｜Assistant｜>' + m.content.split('</think>')[-1] + '<｜end▁of▁sentence｜>' }}
{%- else %}{{ '<｜User｜>' + m.content }}{% endif %}{% endfor %}
{%- if add_generation_prompt %}{{ '<｜Assistant｜><think>\\n' }}{% endif %}"""
"""It opens a thought, and drops it from what is over."""

# -- tokenizers --------------------------------------------------------------------------------------------------------


def _bytes(texts: Sequence[str]) -> Any:
    """Byte-level BPE, of about so many tokens as these texts need."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=_SIZE, initial_alphabet=alphabet, show_progress=False)
    )
    return made


def _pieces(texts: Sequence[str], begin: bool) -> Any:
    """BPE of SentencePiece: a blank is a sign, other signs fall back to bytes.

    Args:
        texts: to train on.
        begin: every text begins with a blank.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, trainers

    raw = Tokenizer(models.BPE())
    blank = normalizers.Replace(" ", "▁")
    raw.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), blank]) if begin else blank
    words = [f" {word}" for text in texts for word in text.split()]
    raw.train_from_iterator(words, trainers.BpeTrainer(vocab_size=_SIZE - 256, show_progress=False))
    learnt = json.loads(raw.to_str())["model"]
    names = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), *learnt["vocab"]]
    merges = [tuple(pair) for pair in learnt["merges"]]
    vocabulary = {name: place for place, name in enumerate(dict.fromkeys(names))}
    made = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.normalizer = raw.normalizer
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    made.decoder = decoders.Sequence([*steps, *([decoders.Strip(" ", 1, 0)] if begin else [])])
    return made


# -- families ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Family:
    """One family.

    Attributes:
        name: of the family.
        kind: architecture, as transformers names its classes.
        shape: values of its configuration, beside those that all have.
        make: the tokenizer without special tokens.
        marks: special tokens.
        eos, bos, pad: which of them; nothing for none.
        own: a template of ours, of the same structure as the published one.
        template: with which it can be trained; nothing for its own.
        published: names of published templates.
        greedy: marks that swallow the blanks behind them.
    """

    name: str
    kind: str
    marks: tuple[str, ...]
    eos: str
    own: str
    bos: str | None = None
    pad: str | None = None
    template: str | None = None
    published: tuple[str, ...] = ()
    shape: dict[str, Any] = field(default_factory=dict)
    make: Callable[[Sequence[str]], Any] = _bytes
    greedy: tuple[str, ...] = ()

    def tokenizer(self, template: str | None = "", texts: Sequence[str] = (_TEXT,)) -> Any:
        """A new one, trained on texts; with another template where one is given, None for none."""
        from tokenizers import AddedToken
        from transformers import PreTrainedTokenizerFast

        made = self.make(texts)
        made.add_special_tokens(
            [AddedToken(m, special=True, normalized=False, rstrip=m in self.greedy) for m in self.marks]
        )
        if self.make is _bytes:  # those of SentencePiece have no tags
            made.add_tokens([AddedToken(tag, special=False, normalized=False) for tag in TAGS])
        names = {"eos_token": self.eos, "bos_token": self.bos, "pad_token": self.pad}
        written = self.own if template == "" else template
        return PreTrainedTokenizerFast(tokenizer_object=made, chat_template=written, **names)

    def model(self, tokenizer: Any, seed: int = 0, **changes: Any) -> Any:
        """A random model, so sure of some tokens and unsure of others."""
        import torch
        import transformers as hf

        values = {
            "vocab_size": len(tokenizer),
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 4096,
            "initializer_range": 0.2,
            "bos_token_id": tokenizer.bos_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "pad_token_id": tokenizer.pad_token_id,
            **self.shape,
            **changes,
        }
        settings = "Gemma3Text" if self.kind == "Gemma3" else self.kind
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            made = getattr(hf, f"{self.kind}ForCausalLM")(getattr(hf, f"{settings}Config")(**values))
        return made.eval()

    def codec(self, texts: Sequence[str] = (_TEXT,)) -> Any:
        """With a template that can be trained with."""
        from concertino_local.codec import ChatCodec

        return ChatCodec.load(self.tokenizer(texts=texts), self.template)


_CHATML = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_LLAMA_MARKS = (
    "<|begin_of_text|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
    "<|finetune_right_pad_id|>",
)
_GPT_MARKS = ("<|startoftext|>", "<|endoftext|>", "<|return|>", "<|constrain|>", "<|channel|>", "<|start|>", "<|end|>")
_GLM_MARKS = (
    "<|endoftext|>",
    "[MASK]",
    "[gMASK]",
    "<sop>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|observation|>",
)
_PHI_MARKS = ("<unk>", "<s>", "<|endoftext|>", "<|assistant|>", "<|system|>", "<|end|>", "<|user|>")
_DEEPSEEK_MARKS = ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>", "<｜User｜>", "<｜Assistant｜>")
_EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 16}
_ROUTED = {**_EXPERTS, "n_routed_experts": 4, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1}
_WINDOW = {"sliding_window": 64, "head_dim": 8}
_MIXED = {**_WINDOW, "layer_types": ["sliding_attention", "full_attention"]}

FAMILIES: tuple[Family, ...] = (
    Family(
        *("qwen-3", "Qwen3", _CHATML, "<|im_end|>", _QWEN3, None, "<|endoftext|>", "family"),
        published=("qwen3", "qwen3_5_think", "qwen3_6", "qwen3_8"),
        shape={"head_dim": 8},
    ),
    Family(
        *("qwen-3-moe", "Qwen3Moe", _CHATML, "<|im_end|>", _QWEN25, None, "<|endoftext|>"),
        published=("qwen3_instruct_2507",),
        shape={**_EXPERTS, "num_experts": 4, "head_dim": 8},
    ),
    Family(
        *("qwen-2.5", "Qwen2", _CHATML, "<|im_end|>", _QWEN25, None, "<|endoftext|>"),
        published=("qwen2_5",),
    ),
    Family(
        *("llama-3", "Llama", _LLAMA_MARKS, "<|eot_id|>", _LLAMA, "<|begin_of_text|>"),
        published=("llama3", "llama3_1", "llama3_2"),
    ),
    Family(
        *("gemma-3", "Gemma3", ("<pad>", "<eos>", "<bos>", "<start_of_turn>", "<end_of_turn>"), "<eos>", _GEMMA),
        *("<bos>", "<pad>"),
        published=("gemma", "gemma3"),
        shape={**_MIXED, "query_pre_attn_scalar": 8},
        make=lambda texts: _pieces(texts, begin=False),
    ),
    Family(
        *("gpt-oss", "GptOss", (*_GPT_MARKS, "<|message|>", "<|call|>"), "<|return|>", _GPT_OSS),
        *("<|startoftext|>", "<|endoftext|>", "family"),
        published=("gptoss",),
        shape={**_MIXED, "num_local_experts": 4, "num_experts_per_tok": 2},
    ),
    Family(
        *("mistral", "Mistral", ("<unk>", "<s>", "</s>", "[INST]", "[/INST]"), "</s>", _MISTRAL, "<s>", None, "family"),
        shape=_WINDOW,
        make=lambda texts: _pieces(texts, begin=True),
    ),
    Family(
        *("glm-4", "Glm4Moe", _GLM_MARKS, "<|endoftext|>", _GLM, None, "<|endoftext|>", "family"),
        published=("glm4moe",),
        shape={**_ROUTED, "n_shared_experts": 1, "head_dim": 8},
    ),
    Family(
        *("phi-3.5", "Phi3", _PHI_MARKS, "<|endoftext|>", _PHI, "<s>", "<|endoftext|>"),
        published=("phi3", "phi3_5"),
        make=lambda texts: _pieces(texts, begin=True),
        greedy=("<|assistant|>", "<|system|>", "<|end|>", "<|user|>"),
    ),
    Family(
        *("deepseek", "DeepseekV3", _DEEPSEEK_MARKS, "<｜end▁of▁sentence｜>", _DEEPSEEK),
        *("<｜begin▁of▁sentence｜>", "<｜▁pad▁｜>", "family"),
        published=("deepseekv3", "deepseek_r1_distill"),
        shape={
            **_ROUTED,
            "q_lora_rank": 8,
            "kv_lora_rank": 8,
            "qk_nope_head_dim": 8,
            "qk_rope_head_dim": 8,
            "v_head_dim": 8,
            "num_key_value_heads": 4,
        },
    ),
)


def family(name: str) -> Family:
    """One of the ten."""
    return next(each for each in FAMILIES if each.name == name)


def published(names: Sequence[str]) -> dict[str, str]:
    """Those published templates of these names that are on this machine."""
    folder = os.environ.get(TEMPLATES)
    if not folder:
        found = importlib.util.find_spec("trl")
        if found is None or found.origin is None:
            return {}
        folder = str(Path(found.origin).parent / "chat_templates")
    files = {name: Path(folder) / f"{name}.jinja" for name in names}
    return {name: file.read_text(encoding="utf-8") for name, file in files.items() if file.is_file()}
