"""Texts to token ids and back, from the `tokenizer.json` of a byte-level BPE tokenizer, without its library.

The invariants: `text(ids(text)) == text` for every text; the ids are those that the library gives, where the tokenizer
is of the one form that is read here; and what stands in somebody's text is never taken for a mark of the template.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

START, END = "<|im_start|>", "<|im_end|>"
_WORDS = 50_000
"""Words whose tokens are remembered."""


def byte_letters() -> list[str]:
    """The letter that stands for each byte in the tokens of byte-level BPE."""
    # The table of GPT-2: bytes that can be shown stand for themselves, all others for letters behind them.
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [byte for byte in range(256) if byte not in plain]
    letters = {byte: chr(byte) for byte in plain} | {byte: chr(256 + place) for place, byte in enumerate(rest)}
    return [letters[byte] for byte in range(256)]


class BytePairTokenizer:
    """The tokens of one tokenizer.

    Raises:
        ValueError: it is a tokenizer of another form.
    """

    def __init__(self, path: Path) -> None:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        model = data["model"]
        self._ids: dict[str, int] = dict(model["vocab"])
        self._ranks = {tuple(pair): rank for rank, pair in enumerate(map(_pair, model["merges"]))}
        added = data["added_tokens"]
        self._special = {token["content"]: token["id"] for token in added if token["special"]}
        self._fixed = {token["content"]: token["id"] for token in added if not token["special"]}
        self._pattern = re.compile(_pattern(data, path))
        # The longest first, since one piece may begin with another.
        longest = sorted(self._fixed, key=len, reverse=True)
        self._pieces = re.compile("|".join(map(re.escape, longest))) if longest else None
        self._letters = byte_letters()
        bytes_of = {letter: byte for byte, letter in enumerate(self._letters)}
        self._bytes = {
            number: bytes(bytes_of[letter] for letter in token)
            for token, number in self._ids.items()
            if token not in self._special
        }
        self._bytes |= {number: text.encode() for text, number in self._fixed.items()}
        self.size = max(*self._bytes, *self._special.values()) + 1
        self.start, self.end = self._special[START], self._special[END]
        self._word = lru_cache(_WORDS)(self._merged)

    @cached_property
    def by_begin(self) -> dict[bytes, list[tuple[int, bytes]]]:
        """Tokens and their bytes, by the first byte; special ones have none."""
        found: dict[bytes, list[tuple[int, bytes]]] = {}
        for number, data in self._bytes.items():
            found.setdefault(data[:1], []).append((number, data))
        return found

    def ids(self, text: str) -> list[int]:
        """The tokens of a text; special ones in it are ordinary text."""
        found: list[int] = []
        begin = 0
        for piece in self._pieces.finditer(text) if self._pieces is not None else ():
            self._plain(text[begin : piece.start()], found)
            found.append(self._fixed[piece[0]])
            begin = piece.end()
        self._plain(text[begin:], found)
        return found

    def _plain(self, text: str, found: list[int]) -> None:
        for word in self._pattern.findall(text) if text else ():
            found.extend(self._word(word))

    def _merged(self, word: str) -> tuple[int, ...]:
        # Lone surrogates have no bytes.
        parts = [self._letters[byte] for byte in word.encode("utf-8", "replace")]
        while len(parts) > 1:
            ranked = [(self._ranks.get(pair, -1), place) for place, pair in enumerate(pairwise(parts))]
            known = [each for each in ranked if each[0] >= 0]
            if not known:
                break
            # The lowest rank was merged first in training, and the leftmost of equals comes first.
            first = min(known)[1]
            parts[first : first + 2] = [parts[first] + parts[first + 1]]
        return tuple(self._ids[part] for part in parts)

    def text(self, ids: Sequence[int]) -> str:
        """The text of tokens; special ones have none."""
        return self.raw(ids).decode("utf-8", "replace")

    def raw(self, ids: Sequence[int]) -> bytes:
        """The bytes of tokens, which need not be whole letters."""
        return b"".join(self._bytes.get(number, b"") for number in ids)


def _pair(merge: Any) -> list[str]:
    return merge.split(" ") if isinstance(merge, str) else list(merge)


def _pattern(data: dict[str, Any], path: Path) -> str:
    """The pattern that cuts texts into words."""
    steps = (data.get("pre_tokenizer") or {}).get("pretokenizers", [])
    # Any other form would give other tokens without an error.
    kinds = [step.get("type") for step in steps]
    if data["model"].get("type") != "BPE" or kinds != ["Split", "ByteLevel"] or data.get("normalizer"):
        raise ValueError(
            f"{path}: expected byte-level BPE that is split by one pattern, without a normalizer; got {kinds}"
        )
    return str(steps[0]["pattern"]["Regex"])
