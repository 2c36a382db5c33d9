"""Settings of a local model: what a pool file, `concertino.toml` or a call of `concertino_local.model` may say.

Invariant: a `LocalSettings` that exists is valid as far as that can be known without opening the model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from concertino import SpecError
from concertino.schema import suggestion

DTYPES = ("auto", "float32", "bfloat16", "float16")
FORMATS = ("auto", "hermes", "harmony", "llama", "plain")
HISTORIES = ("sampled", "template")
_DEVICE = re.compile(r"auto|cpu|mps|(?:cuda|xpu)(?::\d+)?")


@dataclass(frozen=True)
class LocalSettings:
    """How a model is loaded and asked.

    Attributes:
        path: a folder with a causal LM as `save_pretrained` writes it, or a hub name that is in the local cache.
            Nothing is ever downloaded.
        device: "auto" (the first accelerator, else the CPU), "cpu", "cuda", "cuda:1", "mps" or "xpu".
        dtype: "auto" (as the checkpoint says), "float32", "bfloat16" or "float16".
        threads: CPU threads of one forward pass; None leaves torch's choice.
        max_batch: requests that generate at once; the others wait in the inbox.
        context: tokens of prompt and reply together; None takes the model's own limit.
        max_tokens: tokens of a reply whose request names no limit.
        temperature: of requests that name none; None takes the model's generation config.
        top_p: likewise.
        top_k: the most likely tokens that are sampled from; None takes the generation config, 0 means no limit.
        reply_format: how reasoning and tool calls stand in the text: "hermes" (also Qwen), "harmony" (GPT-OSS),
            "llama" (bare JSON), "plain" (nothing is read out of the text), "auto" decides by the chat template.
        template: file of a chat template in Jinja, instead of the model's own.
        template_options: variables for the chat template, e.g. {"enable_thinking": false}.
        history: "sampled" shows the model its own earlier turns token by token, "template" renders them again from
            their text.
        adapter: folder of a LoRA adapter (needs peft).
        attention: attention implementation of transformers, e.g. "sdpa" or "eager"; "auto" leaves it to transformers.
        prefill_tokens: prompt tokens of one forward pass; the others of the batch wait no longer than that.
        prefix_tokens: tokens of finished conversations whose keys and values are kept for prompts that begin alike.
    """

    path: str
    device: str = "auto"
    dtype: str = "auto"
    threads: int | None = None
    max_batch: int = 8
    context: int | None = None
    max_tokens: int = 1024
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    reply_format: str = "auto"
    template: str | None = None
    template_options: Mapping[str, Any] = field(default_factory=dict)
    history: str = "sampled"
    adapter: str | None = None
    attention: str = "auto"
    prefill_tokens: int = 512
    prefix_tokens: int = 4096


def read_settings(name: str, options: Mapping[str, Any]) -> LocalSettings:
    """LocalSettings from the options of a declaration.

    Raises:
        SpecError: names the option, what was given and what is expected.
    """
    known = [f.name for f in fields(LocalSettings)]
    for key in options:
        if key not in known:
            hint = suggestion(str(key), known)
            raise SpecError(f"model {name!r}: unknown option {key!r}; {hint}")
    if "path" not in options:
        raise SpecError(f"model {name!r}: option 'path' is missing; give the model's folder, or its name in the cache")
    for key, value in options.items():
        if value is None and key in _OPTIONAL:
            continue
        expected, fits = _RULES[key]
        # True is a whole number to Python, and no setting is meant by it.
        if isinstance(value, bool) or not fits(value):
            raise SpecError(f"model {name!r}: {key}={value!r}; expected {expected}")
    return LocalSettings(**{**options, "template_options": dict(options.get("template_options") or {})})


_OPTIONAL = ("threads", "context", "temperature", "top_p", "top_k", "template", "adapter")
_Rule = tuple[str, Callable[[Any], bool]]


def _whole(least: int) -> _Rule:
    return f"a whole number >= {least}", lambda value: isinstance(value, int) and value >= least


def _one_of(words: tuple[str, ...]) -> _Rule:
    return "one of " + ", ".join(map(repr, words)), lambda value: value in words


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


_TEXT: _Rule = ("a text that is not empty", lambda value: isinstance(value, str) and bool(value.strip()))
_RULES: dict[str, _Rule] = {
    "path": _TEXT,
    "device": (
        "'auto', 'cpu', 'cuda', 'cuda:<number>', 'mps' or 'xpu'",
        lambda value: isinstance(value, str) and bool(_DEVICE.fullmatch(value)),
    ),
    "dtype": _one_of(DTYPES),
    "threads": _whole(1),
    "max_batch": _whole(1),
    "context": _whole(2),
    "max_tokens": _whole(1),
    "temperature": ("a number >= 0", lambda value: _is_number(value) and 0 <= value < float("inf")),
    "top_p": ("a number > 0 and <= 1", lambda value: _is_number(value) and 0 < value <= 1),
    "top_k": _whole(0),
    "reply_format": _one_of(FORMATS),
    "template": _TEXT,
    "template_options": ("a table", lambda value: isinstance(value, Mapping)),
    "history": _one_of(HISTORIES),
    "adapter": _TEXT,
    "attention": _TEXT,
    "prefill_tokens": _whole(16),
    "prefix_tokens": _whole(0),
}
