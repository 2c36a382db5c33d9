"""A WordNet of six synsets, in WordNet's own format."""

from __future__ import annotations

from pathlib import Path

import pytest
from concertino_train.scorer.wordnet import PARTS, WordNet

# Offset, file number, kind, words, pointers, gloss.
ADJECTIVES = """\
  1 a line of the licence
00000001 00 a 01 skilful 0 003 & 00000002 a 0000 ! 00000003 a 0101 + 00000001 n 0101 | doing well what is hard to do
00000002 00 s 02 adept 0 expert 0 001 & 00000001 a 0000 | having skill; "an adept juggler"
00000003 00 a 01 clumsy 0 001 ! 00000001 a 0101 | doing badly what is hard to do
"""
NOUNS = """\
00000001 00 n 01 skill 0 001 + 00000001 a 0101 | an ability to do well
00000002 00 n 02 juggler 0 circus_juggler 0 001 @ 00000003 n 0000 | a performer who throws and catches objects
00000003 00 n 01 performer 0 001 ~ 00000002 n 0000 | one who performs before people
"""


@pytest.fixture
def small(tmp_path: Path) -> WordNet:
    for part in PARTS:
        (tmp_path / f"data.{part}").write_text({"adj": ADJECTIVES, "noun": NOUNS}.get(part, ""))
        (tmp_path / f"{part}.exc").write_text("jugglres juggler\n" if part == "noun" else "")
    return WordNet(tmp_path)
