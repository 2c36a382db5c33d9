r"""Right answers of the shared test data, changed so that they are wrong, and written as models write answers.

Each change is wrong by construction: a number that becomes another one, a list with a value more or less, a tuple in
another order, an interval with another end, a matrix with two entries exchanged. Golds whose parts may change without
another value (`\pm`, names with numbers, chains of equations) are left as they are.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

_NUMBER = re.compile(r"(?<![_\d.])\d+(?:\.\d+)?")
_LEFT_OUT = re.compile(r"[_:~]|\\pm|=.*=|\\approx|\\text|[A-Za-z]{4,}\s|\\mod|\\in\b|\\cup|\bor\b|\band\b")
_FORMS = (
    "So we get\n\\boxed{{{}}}",
    "Adding both sides, the answer is ${}$.",
    "${}$",
    "<answer>{}</answer>",
    "The final answer is $\\boxed{{{}}}$. I hope it is correct.",
    "Hence \\[ \\boxed{{{}}} \\]",
)


def golds(data: Path) -> list[str]:
    """The short right answers of the mathematics in the test data, without dollar signs around them."""
    found = [row["gold"] for row in _rows(data / "math_equivalence" / "pairs.jsonl") if row["firm"]]
    found += [row["answer"] for row in _rows(data / "math500" / "math_250.jsonl")]
    found += [row["gt"] for row in _rows(data / "math_samples_8" / "part_a.jsonl")]
    found += [row["gold"] for row in _rows(data / "gsm8k" / "model_solutions.jsonl")]
    bare = (text.strip().strip("$").strip() for text in found)
    return [
        *dict.fromkeys(text for text in bare if text and len(text) < 120 and not re.search(r"(?<!\\)\$|boxed", text))
    ]


def wrong_answers(data: Path, at_least: int, seed: int = 3) -> list[tuple[str, str]]:
    """Pairs of a gold and a text whose answer is wrong; the same ones for the same seed.

    Raises:
        ValueError: the data gives fewer.
    """
    chance = random.Random(seed)
    pairs = [(gold, other) for gold in golds(data) for other in changed(gold, chance)]
    chance.shuffle(pairs)
    texts = [(gold, _FORMS[n % len(_FORMS)].format(other)) for n, (gold, other) in enumerate(pairs)]
    if len(texts) < at_least:
        raise ValueError(f"{len(texts)} changed golds, expected at least {at_least}: is {data} whole?")
    return texts


def right_answers(data: Path) -> list[tuple[str, str]]:
    """Pairs of a gold and a text that gives it, in one of the forms."""
    return [(gold, _FORMS[n % len(_FORMS)].format(gold)) for n, gold in enumerate(golds(data))]


def changed(gold: str, chance: random.Random) -> Iterator[str]:
    """Wrong answers near a right one."""
    if _LEFT_OUT.search(gold) or not any(mark.isdigit() for mark in gold):
        return
    yield from _other_numbers(gold, chance)
    yield from _other_values(gold)
    if "," not in gold and "\\begin" not in gold and "=" not in gold and not re.search(r"[<>%]|\\[lg]e", gold):
        yield f"{gold}, 987"
        yield f"{gold} + 3"
        if gold not in ("0", "0.0"):
            yield from (f"({gold}) \\cdot 7", f"-({gold})", f"\\frac{{{gold}}}{{2}}")


def _other_numbers(gold: str, chance: random.Random) -> Iterator[str]:
    begins = gold.rfind("=") + 1  # what names a value may change without it
    for match in _NUMBER.finditer(gold, begins):
        number, before = match[0], gold[: match.start()]
        if (
            before.endswith("^{\\circ")
            or re.search(r"\\sqrt\[$|,\s?\\?!?\s?$", before)
            or gold[match.end() :].startswith(",")
        ):
            continue  # a group of thousands, maybe
        whole, _, part = number.partition(".")
        others = {
            f"{int(whole) + step}{'.' if part else ''}{part}"
            for step in (1, 2, chance.randint(3, 90), chance.randint(91, 900))
        }
        if part:
            others.add(f"{whole}.{part[:-1]}{(int(part[-1]) + chance.randint(1, 8)) % 10}")
        if len(whole) > 1 and whole[0] != whole[1] and not part:
            others.add(f"{whole[1]}{whole[0]}{whole[2:]}")
        if int(whole) > 1 and before[-1:] not in ("^", "{"):
            others.add(f"{whole}7.{part}" if part else f"{number}0")  # further decimals would round to the gold
        for other in others:
            # `\frac12` takes one digit for each place.
            if len(other) == len(number) or not re.search(r"(?:frac|sqrt|\^)\s?\d?$", before):
                yield f"{before}{other}{gold[match.end() :]}"


def _other_values(gold: str) -> Iterator[str]:
    pair = re.fullmatch(r"(\\left)?([(\[])([^()\[\],{}]{1,20}),([^()\[\],{}]{1,20})(\\right)?([)\]])", gold)
    if pair and pair[3].strip() != pair[4].strip():
        yield f"{pair[2]}{pair[4]},{pair[3]}{pair[6]}"
        yield f"{'[' if pair[2] == '(' and 'infty' not in pair[3] else '('}{pair[3]},{pair[4]}{pair[6]}"
    fraction = re.fullmatch(r"(-?)\\[dt]?frac\{(\d+)\}\{(\d+)\}", gold)
    if fraction:
        yield f"{fraction[1]}\\frac{{{fraction[3]}}}{{{fraction[2]}}}" if fraction[2] != fraction[3] else "2"
        yield f"{'' if fraction[1] else '-'}\\frac{{{fraction[2]}}}{{{fraction[3]}}}"
    if re.fullmatch(r"-?[1-9]\d{0,20}", gold):
        yield gold[1:] if gold.startswith("-") else f"-{gold}"
        yield f"{gold}.5"
        yield f"\\frac{{1}}{{{gold}}}" if gold.lstrip("-") != "1" else "\\frac{1}{2}"
        yield f"\\sqrt{{{gold.lstrip('-')}}}" if gold.lstrip("-") != "1" else "\\sqrt{2}"
        yield f"\\begin{{pmatrix}} {gold} & 0 \\\\ 0 & 2 \\end{{pmatrix}}"
        yield f"{gold}x"


def _rows(file: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
