"""Texts to token ids and back.

Special tokens that stand in what users, tools or models said are ordinary text: nobody's words can end a turn or begin
one. Only what the chat template itself writes is read as special tokens.

A `Vocabulary` may be used from several threads.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

from concertino.text import is_control_token

from .contract import Ids

MARK = "\ufdd0"
"""Cuts a special token in somebody's text into two ordinary ones. A noncharacter: it has no meaning in any text."""


class Vocabulary:
    """The tokens of one tokenizer.

    Attributes:
        encode: ids of a text; no special tokens are added.
        decode: the text of ids, special tokens shown.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        backend = getattr(tokenizer, "backend_tokenizer", None) or tokenizer
        lock = threading.Lock()
        self.encode: Callable[[str], list[int]]
        self.decode: Callable[[Sequence[int]], str]
        self._dump: Callable[[], str]
        if type(backend).__module__.partition(".")[0] == "tokenizers":
            # A tokenizer.json may switch both on, and prompts would be cut in silence.
            backend.no_truncation()
            backend.no_padding()
            self.encode = lambda text: list(backend.encode(text, add_special_tokens=False).ids)
            self.decode = lambda ids: str(backend.decode(list(ids), skip_special_tokens=False))
            self._dump = lambda: str(backend.to_str())
        else:  # a tokenizer in Python keeps state between calls

            def encode(text: str) -> list[int]:
                with lock:
                    return list(tokenizer.encode(text, add_special_tokens=False))

            def decode(ids: Sequence[int]) -> str:
                with lock:
                    return str(tokenizer.decode(list(ids), skip_special_tokens=False))

            self.encode, self.decode = encode, decode
            self._dump = lambda: json.dumps(tokenizer.get_vocab(), sort_keys=True)

    @classmethod
    def of_folder(cls, folder: Path) -> Vocabulary | None:
        """The vocabulary of a folder's `tokenizer.json`, which is quick to read; None without such a file."""
        file = folder / "tokenizer.json"
        if not file.is_file():
            return None
        from tokenizers import Tokenizer

        return cls(Tokenizer.from_file(str(file)))

    @property
    def identity(self) -> str:
        """A text that is equal exactly for vocabularies that encode alike."""
        return self._dump()

    @cached_property
    def special(self) -> dict[int, str]:
        """The text of each special token, by id."""
        ids = {int(i) for i, token in self._tokenizer.added_tokens_decoder.items() if token.special}
        ids |= {int(i) for i in self._tokenizer.all_special_ids}
        return {i: self.decode([i]) for i in sorted(ids)}

    @cached_property
    def size(self) -> int:
        """Ids are from 0 to `size` - 1."""
        return int(max(self._tokenizer.get_vocab().values())) + 1

    @cached_property
    def _to_cut(self) -> list[str]:
        # Some tokenizers have control tokens that they do not call special, such as those of fill-in-the-middle.
        added = (token.content for token in self._tokenizer.added_tokens_decoder.values())
        texts = {*self.special.values(), *filter(is_control_token, added)}
        # The longest first, as one may stand within another. One of a single letter cannot be cut in two.
        return sorted((text for text in texts if len(text) > 1), key=len, reverse=True)

    def encode_rendered(self, text: str) -> list[int]:
        """Ids of a rendered text; at a `MARK` two tokens meet."""
        if MARK not in text:
            return self.encode(text)
        return [i for part in text.split(MARK) if part for i in self.encode(part)]

    def encode_behind(self, token: int, text: str) -> list[int]:
        """Ids of a rendered text behind a special token, where some tokenizers encode it in another way."""
        ids = self.encode_rendered(self.special[token] + text)
        return ids[1:] if ids[:1] == [token] else self.encode_rendered(text)

    def words(self, ids: Sequence[int]) -> str:
        """The text of sampled ids without special tokens."""
        return self.decode([i for i in ids if i not in self.special])

    def marked(self, ids: Sequence[int], marks: Collection[str]) -> str:
        """The text of sampled ids with some special tokens in it; where ordinary tokens spell one, it is cut by `MARK`.

        Args:
            ids: sampled.
            marks: texts of special tokens that are shown; others are left out.
        """
        parts: list[str] = []
        for special, group in groupby(ids, key=lambda i: i in self.special):
            if special:
                parts += [text for i in group if (text := self.special[i]) in marks]
            else:
                parts.append(self.defuse(self.decode(list(group))))
        return "".join(parts)

    def defuse(self, value: Any) -> Any:
        """A text, or data with texts in it, in which special tokens are cut by `MARK`."""
        if isinstance(value, str):
            # Nobody's text may hold the mark, or it could join what was cut.
            text = clean(value).replace(MARK, "\ufffd")
            for token in self._to_cut:
                if token in text:
                    text = text.replace(token, f"{token[0]}{MARK}{token[1:]}")
            return text
        if isinstance(value, dict):
            return {self.defuse(key): self.defuse(each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.defuse(each) for each in value]
        return value


def clean(text: str) -> str:
    """The text without lone surrogates, which no tokenizer accepts."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def without_marks(text: str) -> str:
    """A rendered text as people read it."""
    return text.replace(MARK, "")


def end_of(ids: Sequence[int], vocabulary: Vocabulary) -> tuple[Ids, int | None]:
    """Ids before the first special token, and that token; None where there is none."""
    for place, token in enumerate(ids):
        if token in vocabulary.special:
            return tuple(ids[:place]), token
    return tuple(ids), None
