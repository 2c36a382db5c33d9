"""Models made on the spot: one that has learned a script by heart, and random ones of several architectures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from concertino import ChatRequest, Message, Sampling

NUMBERS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
COUNT = "Count from one to thirty in English words."
ADD = "Call the tool add with a=2 and b=3. Do not answer yourself."
ADD_TOOL = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add two integers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
            "additionalProperties": False,
        },
    },
}
GOOD_CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 2, "b": 3}}\n</tool_call>'
SPACED_CALL = '<tool_call>\n{"name":"add",  "arguments":{"a":7,"b":8}}\n</tool_call>'
UNICODE = "Grüße, 世界! 🎻 é ﷽"

SCRIPT: list[tuple[list[dict[str, Any]], bool, str]] = [
    ([{"role": "user", "content": COUNT}], False, NUMBERS),
    ([{"role": "user", "content": ADD}], True, GOOD_CALL),
    ([{"role": "user", "content": "Add twice."}], True, f"Both at once.\n{GOOD_CALL}\n{SPACED_CALL}"),
    (
        [{"role": "user", "content": "Break it."}],
        True,
        '<tool_call>{"name": "add", "arguments": {"a": 2, "b": </tool_call>',
    ),
    ([{"role": "user", "content": "Think."}], False, "<think>\nThree and two.\n</think>\n\nfive"),
    ([{"role": "user", "content": "Write signs."}], False, UNICODE),
    ([{"role": "user", "content": "Colour as JSON."}], False, '{"colour": "blue"}'),
    (
        [
            {"role": "user", "content": ADD},
            {"role": "assistant", "content": GOOD_CALL},
            {"role": "tool", "content": "5"},
        ],
        True,
        "The sum is 5.",
    ),
    (
        [
            {"role": "user", "content": "Write signs."},
            {"role": "assistant", "content": UNICODE},
            {"role": "user", "content": "Again."},
        ],
        False,
        "No more signs.",
    ),
]

TEMPLATE = """{%- if tools %}{{ '<|im_start|>system\\nTools: ' }}
{%- for tool in tools %}{{ tool | tojson }}{% endfor %}{{ '<|im_end|>\\n' }}{% endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}{{ '<|im_start|>user\\nResult: ' + message.content + '<|im_end|>\\n' }}
{%- else %}{{ '<|im_start|>' + message.role + '\\n' }}
{%- if message.reasoning_content %}{{ '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}{% endif %}
{{- message.content }}
{%- for call in message.tool_calls or [] %}
{{- '\\n' if message.content or not loop.first else '' }}
{{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) }}
{{- '}\\n</tool_call>' }}{% endfor %}{{ '<|im_end|>\\n' }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""


def make_tokenizer(*, ends: bool = True) -> Any:
    """A byte-level BPE of some hundred tokens that knows the script; without `ends`, no reply ends by itself."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = [text for turns, _, reply in SCRIPT for text in (*(turn["content"] for turn in turns), reply)]
    backend.train_from_iterator(texts, trainer)
    backend.add_tokens(
        [AddedToken(t, normalized=False) for t in ("<think>", "</think>", "<tool_call>", "</tool_call>")]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token="<|im_end|>" if ends else None,
        pad_token="<|endoftext|>",
        additional_special_tokens=special[1:2],
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def make_network(tokenizer: Any, *, seed: int = 0, **changes: Any) -> Any:
    """A Qwen3 of a hundred thousand parameters, random."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    size = {
        "vocab_size": len(tokenizer),
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": 1024,
        "tie_word_embeddings": True,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "initializer_range": 0.1,
    }
    return Qwen3ForCausalLM(Qwen3Config(**{**size, **changes}))


def teach(network: Any, tokenizer: Any, steps: int = 110) -> float:
    """Learn the script by heart; gives the last loss."""
    import torch

    rows = []
    for turns, tools, reply in SCRIPT:
        prompt = tokenizer.apply_chat_template(
            turns, tools=[ADD_TOOL] if tools else None, add_generation_prompt=True, tokenize=False
        )
        shown = tokenizer(prompt, add_special_tokens=False).input_ids
        said = [*tokenizer(reply, add_special_tokens=False).input_ids, tokenizer.eos_token_id]
        rows.append(([*shown, *said], [*([-100] * len(shown)), *said]))
    longest = max(len(ids) for ids, _ in rows)
    ids = torch.tensor([[*ids, *([0] * (longest - len(ids)))] for ids, _ in rows])
    labels = torch.tensor([[*labels, *([-100] * (longest - len(labels)))] for _, labels in rows])
    optimizer = torch.optim.AdamW(network.parameters(), lr=5e-3, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=steps)
    network.train()
    for _ in range(steps):
        loss = network(input_ids=ids, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    network.eval()
    return float(loss.detach())


def save(folder: Path, network: Any, tokenizer: Any) -> Path:
    """Write a model as its makers do."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    network.save_pretrained(folder)
    logging.enable_progress_bar()
    tokenizer.save_pretrained(folder)
    return folder


def ask(text: str, *, tools: bool = False, **sampling: Any) -> ChatRequest:
    """A request of one user message, greedy unless it says otherwise."""
    return ChatRequest(
        [Message("user", text)], [ADD_TOOL] if tools else [], Sampling(**{"temperature": 0.0, **sampling})
    )


async def until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait until something holds of what another thread does."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - a thread tells no event
            await asyncio.sleep(0.001)
