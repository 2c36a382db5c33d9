"""Templates of our own for families of models: the marks of a family around one way to write a conversation.

    Llama 3     <|start_header_id|>user<|end_header_id|>\\n\\nHow far?<|eot_id|>
    Gemma       <start_of_turn>user\\nHow far?<end_of_turn>\\n
    GPT-OSS     <|start|>user<|message|>How far?<|end|>

Many published templates cannot be trained with: they drop earlier thoughts, or end the last turn in another way than
those before. The templates here keep to the marks that a family has learnt. The invariant: a message is written the
same whatever the assistant says after it, and a turn ends with the token at which models of the family stop.
"""

from __future__ import annotations

import functools
import json
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

FAMILY = "family"
"""The name by which such a template is asked for."""
_CHATML = ("<|im_start|>", "<|im_end|>")
_HERE = Path(__file__)
_USUAL = {
    # In front of everything, and of a message of each role.
    "begin": "",
    "system": "",
    "user": "",
    "tool": "",
    "assistant": "",
    # Behind what others say; behind what the assistant says, which is trained; between that and what follows.
    "close": "",
    "end": "",
    "between": "",
    # Around what the assistant thinks, and in front of what it says.
    "thought": "<think>\n",
    "thought_end": "\n</think>\n\n",
    "text": "",
    # Whether messages of others that follow each other share one turn, an empty line between.
    "joins": False,
}


def family_of(tokens: Collection[str]) -> str:
    """The family whose marks a tokenizer has.

    Args:
        tokens: its special tokens.

    Returns:
        A name of `families.toml`, `chatml`, or nothing where the marks are of no family.
    """
    for name, marks in _families().items():
        if all(mark in tokens for mark in marks["needs"]):
            return name
    return "chatml" if all(mark in tokens for mark in _CHATML) else ""


def family_template(name: str) -> str:
    """The template of a family, as one text that needs nothing else."""
    if name == "chatml":
        return _read("chatml.jinja")
    marks = {key: value for key, value in _families()[name].items() if key != "needs"}
    # A literal of JSON is one of Jinja.
    return f"{{%- set marks = {json.dumps(_USUAL | marks, ensure_ascii=False)} -%}}\n{_read('family.jinja')}"


@functools.cache
def _families() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(_read("families.toml"))


def _read(name: str) -> str:
    return _HERE.with_name(name).read_text(encoding="utf-8").rstrip("\n")
