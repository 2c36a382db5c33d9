"""Places of the tree that repeat each other, line by line.

Definition: a *code line* is what stands on one line without comments, docstrings, imports and the width of gaps; a line
without a letter (a closing bracket) does not count. A *repeat* is a pair of places, in two files or apart in one, with
six or more equal code lines in a row, as many as there are. Three equal places are three pairs.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

RUN = 6
"""How many equal code lines in a row make a repeat."""

_LAYOUT = {tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT, tokenize.ENDMARKER}


class Line(NamedTuple):
    """A code line, and where it stands."""

    text: str
    file: Path
    number: int


class Repeat(NamedTuple):
    """Two places with the same code lines: the first line of each, and how many there are."""

    lines: int
    first: Line
    second: Line


def code_lines(file: Path) -> list[Line]:
    """The code lines of a file, in order."""
    source = file.read_text(encoding="utf-8")
    left_out = set(_left_out(ast.parse(source, str(file))))
    words: dict[int, list[str]] = defaultdict(list)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _LAYOUT:
            for number, part in enumerate(token.string.splitlines(), token.start[0]):
                words[number].append(part.strip())
    texts = ((number, " ".join(each)) for number, each in sorted(words.items()) if number not in left_out)
    return [Line(text, file, number) for number, text in texts if any(map(str.isalpha, text))]


def _left_out(tree: ast.Module) -> Iterator[int]:
    """The lines of imports and docstrings."""
    for node in ast.walk(tree):
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_docstring or isinstance(node, ast.Import | ast.ImportFrom):
            assert isinstance(node, ast.stmt)
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def repeats(files: Iterable[Path]) -> list[Repeat]:
    """Every repeat among these files, the longest first."""
    all_lines = [code_lines(file) for file in files]
    places = defaultdict(list)
    for number, lines in enumerate(all_lines):
        for start in range(len(lines) - RUN + 1):
            places[tuple(line.text for line in lines[start : start + RUN])].append((number, start))
    found = []
    for same in places.values():
        for (one, i), (other, j) in combinations(same, 2):
            first, second = all_lines[one], all_lines[other]
            if i and j and first[i - 1].text == second[j - 1].text:
                continue  # not where this run begins
            length = _length(first, i, second, j)
            if one != other or j - i >= length:
                found.append(Repeat(length, first[i], second[j]))
    return sorted(found, key=lambda each: (-each.lines, each.first.file, each.first.number))


def _length(first: list[Line], i: int, second: list[Line], j: int) -> int:
    length = 0
    while i + length < len(first) and j + length < len(second) and first[i + length].text == second[j + length].text:
        length += 1
    return length
