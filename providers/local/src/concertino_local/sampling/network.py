"""A causal language model as the sampler sees it: it reads tokens into a cache, and gives the logits of the next."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch

_ATTENTION = frozenset(("full_attention", "sliding_attention", "chunked_attention"))


class Network:
    """A model that is sampled from.

    Args:
        module: a model of transformers, or one of PEFT around it, in evaluation mode.

    Attributes:
        config: of the text model.
        device: where its inputs go.
        vocabulary: token ids that it knows.
        name: of its class.
        other_state: what it keeps from step to step that is not keys and values, and so cannot be batched here; empty
            if nothing.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        base: Any = base_model(module)
        self.name = type(base).__name__
        self.other_state = other_state(base)
        self._module = module
        self.config = base.config.get_text_config()
        self.model_config = base.config
        accepted = frozenset(inspect.signature(base.forward).parameters)
        self._positions = "position_ids" in accepted
        self._short = "logits_to_keep" in accepted
        window = getattr(self.config, "sliding_window", None) or "sliding_attention" in layer_kinds(base)
        # Scaled-dot-product attention takes a mask as it is; other implementations want transformers to make theirs.
        self._direct = self.config._attn_implementation == "sdpa" and not window and self._positions
        self.device: torch.device = next(base.parameters()).device
        self.vocabulary = int(base.get_input_embeddings().weight.shape[0])

    @property
    def context(self) -> int | None:
        """Tokens that it can read."""
        return getattr(self.config, "max_position_embeddings", None)

    def read(self, ids: Sequence[Sequence[int]], begin: int, cache: Any, starts: Sequence[int] = ()) -> None:
        """Read tokens of prompts into a cache.

        Args:
            ids: of equal lengths.
            begin: column of the first.
            cache: of the rows.
            starts: the column in which each row begins; the first one of all by default.
        """
        tokens = torch.tensor(ids, device=self.device)
        columns = torch.arange(begin, begin + tokens.shape[1], device=self.device)
        if not any(starts):
            self._forward(tokens, columns.expand(len(ids), -1), None, cache)
            return
        first = torch.tensor(starts, device=self.device)[:, None]
        seen = torch.arange(begin + tokens.shape[1], device=self.device)
        mask = seen >= first
        if self._direct:  # the mask is taken as it is, so it has to be causal, too
            mask = mask[:, None, None] & (seen <= columns[:, None])
        self._forward(tokens, columns - first, mask if self._direct else mask.long(), cache)

    def step(
        self, tokens: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor | None, cache: Any
    ) -> torch.Tensor:
        """Read one token of each row.

        Args:
            tokens, positions: shape (rows,).
            mask: which columns each row may look at, shape (rows, columns), the new one included; None for all.
            cache: of the rows.

        Returns:
            Logits of the next token, shape (rows, vocabulary), in float32.
        """
        if mask is not None:
            mask = mask[:, None, None] if self._direct else mask.long()
        return self._forward(tokens[:, None], positions[:, None], mask, cache)

    def _forward(
        self, tokens: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor | None, cache: Any
    ) -> torch.Tensor:
        options: dict[str, Any] = {"position_ids": positions} if self._positions else {}
        # Logits of a whole prompt over the vocabulary would take more memory than its keys and values.
        if self._short:
            options["logits_to_keep"] = 1
        out = self._module(
            input_ids=tokens, attention_mask=mask, past_key_values=cache, use_cache=True, return_dict=True, **options
        )
        logits: torch.Tensor = out.logits[:, -1]
        # In half precision, rare tokens would be rounded to one probability or to none.
        return logits.float()


def base_model(module: Any) -> Any:
    """The model of transformers, without PEFT around it."""
    return module.get_base_model() if hasattr(module, "get_base_model") else module


def layer_kinds(base: Any) -> frozenset[str]:
    """What kinds of layers a model of transformers has, as its config names them."""
    return frozenset(getattr(base.config.get_text_config(), "layer_types", None) or ())


def other_state(base: Any) -> str:
    """What a model keeps from step to step that is not keys and values, and so cannot be batched; empty if nothing."""
    others = layer_kinds(base) - _ATTENTION
    if others:
        return ", ".join(sorted(others))
    return "a state that is not keys and values" if getattr(base, "_is_stateful", False) else ""
