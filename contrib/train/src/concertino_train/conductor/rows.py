"""Rows to learn from: conversations of exercises as tokens, with the turns to learn marked.

Invariant: a token is learned exactly if its message is, the end of the turn included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from concertino_toy.exercises import Said, Writer, problem_writer
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class TokenRow:
    """One conversation as tokens.

    Attributes:
        ids: of all messages, in ChatML; shape (tokens,).
        learned: for each, whether it is learned; shape (tokens,).
    """

    ids: NDArray[np.int32]
    learned: NDArray[np.bool_]


def mixed_writer(rng: Random) -> Writer:
    """The writer of the problems of an exercise; MASBENCH in one of five, so that its words and lengths are known."""
    return _masbench_text if rng.random() < 0.2 else problem_writer(rng)


def _masbench_text(rng: Random) -> str:
    from concertino_bench.masbench import make_task

    level = rng.choice((2, 2, 3, 4, 6, 8))
    task = make_task("depth", level, rng.randrange(10_000), split="train", rules=False)
    return task.question.partition("\n\n")[0]


def to_row(said: Sequence[Said], tokenizer: Any) -> TokenRow:
    """A conversation as tokens: ChatML, as the template of `concertino_train.tiny` writes it."""
    backend = tokenizer.backend_tokenizer
    start, end = tokenizer.convert_tokens_to_ids("<|im_start|>"), tokenizer.eos_token_id
    ids: list[int] = []
    learned: list[bool] = []

    def add(tokens: Sequence[int], learn: bool) -> None:
        ids.extend(tokens)
        learned.extend([learn] * len(tokens))

    def encode(text: str) -> list[int]:
        return list(backend.encode(text, add_special_tokens=False).ids)

    for message, learn in said:
        add([start, *encode(f"{message.role}\n")], False)
        add([*encode(message.text), end], learn)
        add(encode("\n"), False)
    return TokenRow(np.asarray(ids, np.int32), np.asarray(learned, np.bool_))
