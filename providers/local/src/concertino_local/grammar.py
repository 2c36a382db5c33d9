"""Constrained decoding with llguidance, where it is installed: a reply must satisfy its JSON schema.

Without llguidance, and for what its grammars cannot say of a schema, the instruction in the prompt is all there is; the
reply is checked by the executor in any case.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Mapping
from typing import Any

import torch

from .codec import TemplateCodec

WHITESPACE = r"[ \n]{0,8}"
"""Between JSON tokens; without a bound, a weak model may never come to the point."""


class Grammar:
    """Where a reply stands in the grammar of its schema."""

    def __init__(self, matcher: Any, size: int) -> None:
        self._matcher = matcher
        self._size = size

    def allowed(self) -> torch.Tensor:
        """Which tokens may come next: (vocabulary,) of bool, on the CPU."""
        packed = torch.frombuffer(bytearray(self._matcher.compute_bitmask()), dtype=torch.uint8)
        # One bit for each token, the lowest first.
        bits = (packed[:, None] >> torch.arange(8, dtype=torch.uint8)) & 1
        mask = torch.zeros(self._size, dtype=torch.bool)
        flat = bits.flatten()[: self._size].bool()
        # A network may have more rows than the tokenizer has tokens; those stay forbidden.
        mask[: len(flat)] = flat
        return mask

    def take(self, token: int) -> None:
        """A token was chosen."""
        self._matcher.consume_token(token)


class Grammars:
    """Grammars over one vocabulary."""

    def __init__(self, codec: TemplateCodec, size: int) -> None:
        self._codec = codec
        self._size = size
        self._tokens: Any = None

    def for_schema(self, schema: Mapping[str, Any]) -> Grammar | None:
        """The grammar of a JSON schema, None where it cannot be enforced."""
        if importlib.util.find_spec("llguidance") is None:
            return None
        llguidance: Any = importlib.import_module("llguidance")  # an extra that type checkers need not have

        if self._tokens is None:
            try:
                ends = sorted(self._codec.end_ids)
                self._tokens = llguidance.LLTokenizer(
                    self._codec.vocabulary.identity, n_vocab=self._size, eos_token=ends
                )
            except ValueError:
                return None  # a tokenizer that llguidance cannot read
        text = llguidance.LLMatcher.grammar_from_json_schema(
            json.dumps(schema), defaults={"whitespace_pattern": WHITESPACE}
        )
        matcher = llguidance.LLMatcher(self._tokens, text, log_level=0)
        return None if matcher.is_error() else Grammar(matcher, self._size)
