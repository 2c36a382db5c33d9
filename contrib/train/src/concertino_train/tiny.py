"""Tiny models from scratch: a tokenizer trained on a few texts, and a transformer of the Qwen3 architecture.

Both are saved as any other model of Hugging Face, and read by whatever reads those. The invariants: texts survive the
tokenizer byte for byte; the tags of the strategies' formats are one token each and no *special* ones, so they are not
lost when a text is decoded; numbers up to 99 are one token each, so a value is copied in one step.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from concertino import UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

PAD, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
"""The special tokens: padding, the begin and the end of a turn."""
TAGS = tuple(
    mark.format(name)
    for name in (
        "reasoning",
        "think",
        "thinking",
        "tool_call",
        "tool_response",
        "answer",
        "observation",
        "graph",
        "plan",
        "agent",
        "agent_id",
        "agent_name",
        "agent_description",
        "required_arguments",
        "agent_input",
        "edge",
        "from",
        "to",
    )
    for mark in ("<{}>", "</{}>")
)
"""Marks of the formats, one token each."""
SCAFFOLD = (
    '{"name": "',
    '</reasoning>\n<tool_call>{"name": "',
    '</tool_call>\n<tool_call>{"name": "',
    '\n</think>\n<tool_call>\n{"name": "',
    '", "arguments": {"',
    '", "arguments": {}}</tool_call>',
    '}"}}</tool_call>\n<tool_call>{"name": "',
    '": "${question.',
    '": "${',
    '}"}}',
    '}"}}</tool_call>',
    '"}}',
    "${",
    '<node id="s',
    '" depends="s',
    '")</node>',
    '("',
    '">',
    "\\boxed{",
    "} \\boxed{",
    "\\\\boxed{",
    "} \\\\boxed{",
    "<agent>\n  <agent_id>A",
    "</agent_id>\n  <agent_name>",
    "</agent_name>\n  <agent_description>",
    "</agent_description>\n  <required_arguments>\n    <agent_input>",
    "</agent_input>\n  </required_arguments>\n</agent>",
    "  <from>A",
    "</from><to>A",
    "</to>\n",
    "<tool_response>\n",
    "\n</tool_response>",
)
"""Pieces between the words of calls, one token each: a call of a short name is then some six tokens."""
TEMPLATE = """{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\\n' -}}
{%- if message.role == 'assistant' -%}
{%- generation -%}{{- message.content + '<|im_end|>' -}}{%- endgeneration -%}{{- '\\n' -}}
{%- else -%}
{{- message.content + '<|im_end|>\\n' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"""
"""ChatML, with marks around what the assistant says. Tools and native calls are not written: strategies write them."""
ROLES = ("system\n", "user\n", "assistant\n")
_TOGETHER = 0.98
"""Share of the rarer word's occurrences that two words of a phrase have together."""
_MARKS = re.compile(r"""[<>{}"$\\\n]""")
"""Signs of the formats, and line breaks; no phrase holds one, so that none swallows the begin of a tag."""
_PATTERN = r" ?[A-Za-z]+|[0-9]{1,2}| ?[^ \t\r\nA-Za-z0-9]+|[ \t\r\n]+"
"""Words, short numbers, signs, blanks: no merge crosses them. ASCII alone, so that any reader of it cuts alike."""


def new_tokenizer(
    texts: Iterable[str],
    size: int = 1024,
    *,
    tags: Sequence[str] = (*TAGS, *SCAFFOLD),
    phrases: Sequence[str] | None = None,
    context: int = 4096,
) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer.

    Args:
        texts: to train on; words that are frequent in them become one token.
        size: tokens at most, all kinds together.
        tags: texts that are one token each wherever they stand.
        phrases: further ones; by default what never comes apart in the texts (`find_phrases`).
        context: tokens that a model is meant to read at most.

    Raises:
        UsageError: `size` has no room for bytes, tags and numbers.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    texts = list(texts)
    base = list(dict.fromkeys([*tags, *ROLES, *map(str, range(100))]))
    fixed = [*base, *(find_phrases(texts, base) if phrases is None else phrases)]
    room = size - len(fixed)
    # Every byte, and three special tokens.
    if room < 256 + 3:
        raise UsageError(
            f"new_tokenizer(size={size}): expected at least {len(fixed) + 259} for bytes, tags and numbers"
        )
    backend = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(_PATTERN), "isolated")
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=room,
        special_tokens=[PAD, START, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(_between(texts, fixed), trainer)
    # Special tokens are dropped when a text is decoded, and a reward would not see the tags.
    backend.add_tokens([AddedToken(text, normalized=False, special=False) for text in fixed])
    make: Any = PreTrainedTokenizerFast  # its constructor has no annotations
    tokenizer: PreTrainedTokenizerFast = make(
        tokenizer_object=backend,
        eos_token=END,
        pad_token=PAD,
        padding_side="left",
        model_max_length=context,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def _between(texts: Iterable[str], fixed: Sequence[str]) -> Iterator[str]:
    """What stands between the fixed pieces: nothing else is left to be merged."""
    pieces = re.compile("|".join(map(re.escape, sorted(fixed, key=len, reverse=True))))
    return (part for text in texts for part in pieces.split(text) if part)


def find_phrases(texts: Sequence[str], fixed: Sequence[str], share: float = 0.05) -> list[str]:
    """Runs of words that never come apart: lines of a prompt that is always the same, and the like.

    Two neighbours are joined where one of them nearly always stands beside the other, over and over.

    Args:
        texts: to look in.
        fixed: pieces that are tokens already, and end a run.
        share: how often a run must occur, for each text; 20 times at least.
    """
    least = max(20, int(share * len(texts)))
    words = re.compile(_PATTERN)
    lines = [words.findall(part) for part in _between(texts, fixed)]
    while True:
        alone = Counter(word for line in lines for word in line)
        pairs = Counter(pair for line in lines for pair in pairwise(line))
        joined = {
            pair
            for pair, count in pairs.items()
            if count >= least
            and count >= _TOGETHER * min(alone[pair[0]], alone[pair[1]])
            and not _MARKS.search(pair[0] + pair[1])
            and f" {pair[0]}" not in alone
        }
        if not joined:
            return sorted({word for word in alone if alone[word] >= least and len(words.findall(word)) > 1})
        lines = [_join(line, joined) for line in lines]


def _join(line: Sequence[str], joined: Collection[tuple[str, str]]) -> list[str]:
    """A line with its pairs joined, each word once."""
    found: list[str] = []
    last = ""
    for word in line:
        if found and (last, word) in joined:
            found[-1], last = found[-1] + word, ""
        else:
            found.append(word)
            last = word
    return found


def new_model(
    tokenizer: Any,
    *,
    layers: int = 4,
    hidden: int = 128,
    heads: int = 4,
    key_heads: int | None = None,
    feed_forward: int | None = None,
    context: int | None = None,
    theta: float = 1_000_000.0,
    copying: bool | None = None,
    seed: int = 0,
) -> Qwen3ForCausalLM:
    """Make a model of the Qwen3 architecture with new weights.

    Args:
        tokenizer: whose tokens it reads and writes.
        layers, hidden, heads: its size; `hidden` is a multiple of `heads`.
        key_heads: heads of keys and values; as many as `heads` by default.
        feed_forward: width inside a layer; three times `hidden` by default.
        context: tokens that it can read; the tokenizer's by default.
        theta: base of the rotary positions.
        copying: let it begin with a circuit that copies (`begin_copying`); by default where its size allows that.
        seed: of the weights.

    Raises:
        UsageError: the sizes do not go together.
    """
    import torch
    from transformers import GenerationConfig, Qwen3Config, Qwen3ForCausalLM

    shared = key_heads or heads
    if hidden % heads or (hidden // heads) % 2 or heads % shared:
        raise UsageError(
            f"new_model(hidden={hidden}, heads={heads}, key_heads={shared}): expected hidden / heads to be even, and "
            "heads to be a multiple of key_heads"
        )
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=feed_forward or 3 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=shared,
        head_dim=hidden // heads,
        max_position_embeddings=context or tokenizer.model_max_length,
        tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": theta},
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        attention_dropout=0.0,
        dtype="float32",
        initializer_range=0.6 * hidden**-0.5,
    )
    # The caller's random numbers continue as if nothing had been drawn.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen3ForCausalLM(config)
    ends: Any = GenerationConfig  # its constructor has no annotations
    model.generation_config = ends(eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id)
    if copying or (copying is None and _has_room(config)):
        begin_copying(model, seed)
    return model


def begin_copying(model: Qwen3ForCausalLM, seed: int = 0) -> None:
    """Set the first two layers so that the model continues what it read before: `a b … a` continues with `b`.

    Language models find this circuit by themselves, after millions of tokens; a tiny one begins with it. Layer 0 gets a
    head that looks at the token before, by the rotary positions alone, and notes it beside each token; layer 1 gets one
    that looks for a place whose note is the token at hand, and says what stands there. Everything else stays random,
    and all of it is trained on.

    Args:
        model: with two layers or more, in place.
        seed: of the directions.

    Raises:
        UsageError: it has one layer, or heads of less than 16.
    """
    import torch

    config = model.config
    size, width = config.hidden_size, config.head_dim
    if not _has_room(config):
        raise UsageError(
            f"begin_copying: {config.num_hidden_layers} layers of size {size} with heads of {width}; expected 2 layers "
            "or more, heads of 16 or more, and three times as much size as a head has"
        )
    random = torch.Generator().manual_seed(seed)
    first, second = model.model.layers[0].self_attn, model.model.layers[1].self_attn
    pairs, near = width // 2, max(2, width // 8)
    turns = _theta(config) ** (-torch.arange(pairs) / pairs)
    slow = torch.nonzero(turns < _SLOW).flatten()
    dims = torch.cat([slow, slow + pairs])
    basis = torch.linalg.qr(torch.randn(size - 1, size - 1, generator=random)).Q
    basis = torch.cat([torch.zeros(size - 1, 1), basis], 1)  # rows; dimension 0 is kept for what all tokens share
    notes, content = basis[:width], basis[width : 2 * width]
    with torch.no_grad():
        table = model.model.embed_tokens.weight
        scale = config.initializer_range
        table -= table @ notes.T @ notes  # the notes have their own directions
        table[:, 0] = scale * size**0.5
        _soften(first, torch.cat([torch.arange(near), torch.arange(near) + pairs]))
        angle = turns[:near]
        _set(first.q_proj, {place: torch.eye(size)[0] for place in range(near)}, width)
        before = {place: torch.eye(size)[0] * angle[place].cos() for place in range(near)}
        before |= {place + pairs: torch.eye(size)[0] * angle[place].sin() for place in range(near)}
        _set(first.k_proj, before, width)
        _set(first.v_proj, dict(enumerate(content)), width)
        for layer in model.model.layers:  # what is random speaks low at first, or it drowns the rest
            layer.mlp.down_proj.weight *= 0.1
            layer.self_attn.o_proj.weight *= 0.1
        first.o_proj.weight[:, :width] = 0.3 * notes.T
        _soften(second, dims)
        _set(second.q_proj, {int(dim): content[row] for row, dim in enumerate(dims)}, width)
        _set(second.k_proj, {int(dim): notes[row] for row, dim in enumerate(dims)}, width)
        _set(second.v_proj, dict(enumerate(content)), width)
        second.o_proj.weight[:, :width] = 1.5 * content.T
        model.model.norm.weight.fill_(2.0)


def _has_room(config: Any) -> bool:
    deep, wide = config.num_hidden_layers > 1, config.head_dim >= 16
    return bool(deep and wide and config.hidden_size > 3 * config.head_dim)


def _theta(config: Any) -> float:
    return float(config.rope_parameters["rope_theta"])


_SLOW = 0.004
"""Radians for each token: pairs that turn less hold still over a prompt, so contents can be compared in them."""
_SHARP = 3.0
"""Weight of the dimensions in which a head of `begin_copying` looks."""


def _soften(attention: Any, dims: Any) -> None:
    """Make some dimensions sharper, and what other heads have there smaller, so that only the first head looks hard."""
    width = attention.head_dim
    for norm, project in ((attention.q_norm, attention.q_proj), (attention.k_norm, attention.k_proj)):
        norm.weight[dims] = _SHARP
        rows = project.weight.view(-1, width, project.weight.shape[1])
        rows[:, dims] /= _SHARP


def _set(project: Any, rows: dict[int, Any], width: int) -> None:
    """Rows of the first head's projection; its other rows are almost nothing."""
    project.weight[:width] *= 0.02
    for place, row in rows.items():
        project.weight[place] = row
