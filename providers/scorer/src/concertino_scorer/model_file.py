"""A trained scorer in one file: words, their vectors, the weights of both networks, and where all this comes from.

The file is numpy's `.npz`, read without pickle, so that opening one runs no code.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile, ZipFile

import numpy as np
from concertino import UsageError

from .matching import Matching
from .network import NetworkWeights
from .reading import UNKNOWN, Floats
from .words import WordNumbers

FORMAT = 2
_MOST = 1 << 30
"""Bytes of a scorer that is unpacked."""
_UNREADABLE: tuple[type[Exception], ...] = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, EOFError),
    *(NotImplementedError, MemoryError, BadZipFile, zlib.error),
)
_STEPS = 127
"""Of an 8-bit number, on each side of 0."""


@dataclass(frozen=True)
class ScorerModel:
    """What a scorer needs to read cards.

    Attributes:
        vocabulary: words, numbered after `UNKNOWN`.
        vectors: of words by id, shape (words, size); those of numbers and unknown words are 0.
        own_rows: for each word the row of its own vector, 0 for none; shape (words,).
        matching: fits cards to questions.
        weights: of the network.
        about: where it comes from: data, seeds, licences, figures.
    """

    vocabulary: WordNumbers
    vectors: Floats
    own_rows: np.ndarray
    matching: Matching
    weights: NetworkWeights
    about: dict[str, Any]

    @cached_property
    def placed(self) -> Floats:
        """Words by id, as `match_features` needs them."""
        return self.matching.placed(self.vectors, self.own_rows)

    def save(self, path: Path) -> None:
        """Write it. Numbers are kept with 16 bits, those of words with 8 bits and a scale for each word."""
        irregular = [f"{form} {base}" for form, base in self.vocabulary.irregular.items()]
        largest = np.abs(self.vectors).max(1)
        scale = np.where(largest > 0, largest / _STEPS, 1).astype(np.float32)
        head = {"format": FORMAT, "heads": self.weights.heads, "bias": self.matching.bias, "about": self.about}
        arrays: dict[str, Any] = {
            "head": _bytes(json.dumps(head)),
            "words": _bytes("\n".join(self.vocabulary.words)),
            "irregular": _bytes("\n".join(irregular)),
            "vectors": np.rint(self.vectors / scale[:, None]).astype(np.int8),
            "scale": scale,
            "own_rows": self.own_rows.astype(np.uint16),
            "projection": self.matching.projection.astype(np.float16),
            "gate": self.matching.gate.astype(np.float16),
            "own": self.matching.own.astype(np.float16),
            "own_gate": self.matching.own_gate.astype(np.float16),
            **{f"weights/{name}": array.astype(np.float16) for name, array in self.weights.arrays.items()},
        }
        with path.open("wb") as file:
            np.savez_compressed(file, **arrays)

    @classmethod
    def load(cls, source: Path | BinaryIO) -> ScorerModel:
        """Read it.

        Raises:
            UsageError: the file is missing, or not a scorer; says what was found.
        """
        try:
            _check_size(source)
            with np.load(source, allow_pickle=False) as arrays:
                return cls._of({name: arrays[name] for name in arrays.files})
        except FileNotFoundError as error:
            raise UsageError(f"{source}: file not found; `concertino train scorer FILE` writes one") from error
        # Arrays of a stranger may have any names, types and shapes.
        except _UNREADABLE as error:
            # numpy takes any other file for a pickle, and advises to read it unsafely.
            found = "not an .npz file" if "pickle" in str(error) else error
            raise UsageError(
                f"{source}: cannot be read as a scorer ({found}); `concertino train scorer FILE` writes one"
            ) from error

    @classmethod
    def _of(cls, arrays: dict[str, np.ndarray]) -> ScorerModel:
        head = json.loads(_text(arrays["head"]))
        if head["format"] != FORMAT:
            raise ValueError(f"format {head['format']}, expected {FORMAT}")
        irregular = dict(line.split() for line in _text(arrays["irregular"]).splitlines())
        vocabulary = WordNumbers(_text(arrays["words"]).split("\n"), UNKNOWN + 1, irregular)
        projection, gate, own, own_gate = (_floats(arrays[name]) for name in ("projection", "gate", "own", "own_gate"))
        matching = Matching(projection, gate, head["bias"], own, own_gate)
        prefix = "weights/"
        weights = {
            name.removeprefix(prefix): _floats(array) for name, array in arrays.items() if name.startswith(prefix)
        }
        vectors, own_rows = _floats(arrays["vectors"]) * arrays["scale"][:, None], arrays["own_rows"].astype(np.int64)
        return cls(vocabulary, vectors, own_rows, matching, NetworkWeights(weights, head["heads"]), head["about"])


def _check_size(source: Path | BinaryIO) -> None:
    """ValueError for a file that would be larger than any scorer once it is unpacked; numpy unpacks it unasked."""
    if isinstance(source, Path) and not source.is_file() and source.exists():
        raise ValueError("it is not a file")
    with ZipFile(source) as packed:
        unpacked = sum(entry.file_size for entry in packed.infolist())
    if unpacked > _MOST:
        raise ValueError(f"it holds {unpacked:,} bytes, and a scorer at most {_MOST:,}")
    if not isinstance(source, Path):
        source.seek(0)


def _bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)


def _text(array: np.ndarray) -> str:
    return array.tobytes().decode()


def _floats(array: np.ndarray) -> Floats:
    found: Floats = array.astype(np.float32)
    return found
