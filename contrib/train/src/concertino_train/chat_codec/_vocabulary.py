"""Texts to token ids and back.

Special tokens that stand in what users, tools or models said are ordinary text: nobody's words can end a turn or begin
one. Only what the chat template itself writes is read as special tokens.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from concertino_train.codec import Ids

MARK = "\ufdd0"
"""Cuts a special token in somebody's text into two ordinary ones. A noncharacter: it has no meaning in any text."""


class Vocabulary:
    """The tokens of one tokenizer.

    Args:
        tokenizer: of transformers.

    Attributes:
        special: text of each special token, by id.
        size: ids are from 0 to `size` - 1.
    """

    def __init__(self, tokenizer: Any) -> None:
        backend: Any = getattr(tokenizer, "backend_tokenizer", None)
        self._encode: Callable[[str], list[int]]
        self.decode: Callable[[Sequence[int]], str]
        self._whole: Callable[[], str]
        if type(backend).__module__.partition(".")[0] == "tokenizers":
            backend.no_truncation()
            backend.no_padding()
            self._encode = lambda text: list(backend.encode(text, add_special_tokens=False).ids)
            self.decode = lambda ids: str(backend.decode(list(ids), skip_special_tokens=False))
            self._whole = lambda: str(backend.to_str())
        else:
            self._encode = lambda text: list(tokenizer.encode(text, add_special_tokens=False))
            self.decode = lambda ids: str(tokenizer.decode(list(ids), skip_special_tokens=False))
            self._whole = lambda: json.dumps(tokenizer.get_vocab(), sort_keys=True)
        ids = {int(i) for i, token in tokenizer.added_tokens_decoder.items() if token.special}
        ids |= {int(i) for i in tokenizer.all_special_ids}
        self.special = {i: self.decode([i]) for i in sorted(ids)}
        self.size = max(tokenizer.get_vocab().values()) + 1
        self._dangerous = sorted((text for text in self.special.values() if len(text) > 1), key=len, reverse=True)

    @property
    def identity(self) -> str:
        """A text that is equal exactly for vocabularies that encode alike."""
        return self._whole()

    def encode(self, text: str) -> list[int]:
        """Ids of a rendered text; at a `MARK` two tokens meet."""
        if MARK not in text:
            return self._encode(text)
        return [i for part in text.split(MARK) if part for i in self._encode(part)]

    def encode_behind(self, token: int, text: str) -> list[int]:
        """Ids of a text that stands behind a special token, which some tokenizers encode in another way."""
        ids = self.encode(self.special[token] + text)
        return ids[1:] if ids[:1] == [token] else self.encode(text)

    def words(self, ids: Sequence[int]) -> str:
        """Text of sampled ids without special tokens."""
        return self.decode([i for i in ids if i not in self.special])

    def defuse(self, value: Any) -> Any:
        """A text, or data with texts in it, in which special tokens are cut by `MARK`."""
        if isinstance(value, str):
            return self._defuse(value)
        if isinstance(value, dict):
            return {self.defuse(key): self.defuse(each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.defuse(each) for each in value]
        return value

    def _defuse(self, text: str) -> str:
        if not text.isascii():  # no tokenizer takes lone surrogates
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace(MARK, "\ufffd")
        for token in self._dangerous:
            if token in text:
                text = text.replace(token, f"{token[0]}{MARK}{token[1:]}")
        return text


def without_marks(text: str) -> str:
    """A rendered text as people read it."""
    return text.replace(MARK, "")


def end_of(ids: Sequence[int], vocabulary: Vocabulary) -> tuple[Ids, int | None]:
    """Ids before the first special token, and that token; None where there is none."""
    for place, token in enumerate(ids):
        if token in vocabulary.special:
            return tuple(ids[:place]), token
    return tuple(ids), None
