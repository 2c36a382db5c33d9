r"""The process that compares mathematical answers: a line of JSON in, a line of JSON out.

    {"golds": ["\\frac12"], "found": "0.5", "whole": true, "rounding": true, "seconds": 0.15}
    {"equal": true, "found": "0.5", "error": ""}

It is started by `comparing`, which kills it when a comparison takes too long. With `seconds` it gives a comparison up
before that by itself, and lives on, for its next start would take seconds. With `whole` the text is one answer in
LaTeX; without, math-verify looks for an answer in it.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import signal
import sys
from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from typing import Any

# 1 GiB of address space: one symbolic comparison can otherwise take all memory of the machine.
_MEMORY = 1 << 30
# Characters of an answer that go back: the written form of an expression may be far longer than its text.
_SHOWN = 4000
_DECIMAL = re.compile(r"-?(\d*)\.(\d{1,12})")


def main() -> None:
    """Compare until the input ends."""
    _bound_memory()
    # math-verify warns about every disabled timer and every text that it cannot read.
    logging.disable(logging.CRITICAL)
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is not an answer
    # Ready means that the slow import is over, and that the first comparison is not slower than the others.
    _compare(["\\frac12"], "x + 0.5", whole=True, rounding=True)
    print("{}", file=replies, flush=True)
    for line in sys.stdin.buffer:
        print(json.dumps(_answer(line)), file=replies, flush=True)


class _Late(BaseException):
    """The seconds of a comparison are over. Not an `Exception`, which sympy would catch and go on."""


def _answer(line: bytes) -> dict[str, Any]:
    request = json.loads(line)
    seconds = request.pop("seconds", None)
    try:
        with _within(seconds):
            return _compare(**request)
    except _Late:
        return {"equal": False, "found": None, "error": f"not compared within {seconds:g} s", "late": True}
    except Exception as error:  # whatever a library raises about a text is an answer, not an end
        return {"equal": False, "found": None, "error": f"{type(error).__name__}: {str(error)[:120]}"}


@contextlib.contextmanager
def _within(seconds: float | None) -> Iterator[None]:
    if seconds is None or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_: object) -> None:
        raise _Late

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _compare(golds: list[str], found: str, whole: bool, rounding: bool) -> dict[str, Any]:
    from math_verify import parse, verify

    # 0 switches math-verify's own timers off here and below: the parent keeps the time, and kills the process.
    ours = _read_latex(found) if whole else parse(found, parsing_timeout=0)
    if not ours:
        return {"equal": False, "found": None, "error": ""}
    shown = (ours[-1] if isinstance(ours[-1], str) else str(ours[0]))[:_SHOWN]
    error = ""
    # One gold text after the other: one that cannot be compared must not hide that another one is equal.
    for gold in golds:
        try:
            theirs = _read_latex(gold)
            options = {"allow_set_relation_comp": True, "timeout_seconds": 0, "raise_on_error": True}
            if verify(theirs, ours, **options) or (rounding and _rounds_to(ours, gold)):
                return {"equal": True, "found": shown, "error": ""}
        except Exception as trouble:
            error = f"{type(trouble).__name__}: {str(trouble)[:120]}"
    return {"equal": False, "found": shown, "error": error}


def _read_latex(latex: str) -> list[Any]:
    """The answer as math-verify reads it, and last its text; never a part of a text that it cannot read as a whole."""
    from math_verify import LatexExtractionConfig, parse

    read = parse(f"${latex}$", [LatexExtractionConfig()], parsing_timeout=0)
    # math-verify compares texts that it cannot read as texts, so equal ones stay equal.
    return read or [latex]


def _rounds_to(ours: list[Any], gold: str) -> bool:
    """Whether an exact answer is the decimal gold once it is rounded to the gold's own digits; three at least."""
    match = _DECIMAL.fullmatch(gold.strip())
    # With fewer digits a wrong answer rounds to the gold too easily: 1/3 to 0.33.
    if not match or len((match[1] + match[2]).lstrip("0")) < 3:
        return False
    import sympy

    value = ours[0]
    if not isinstance(value, sympy.Expr) or not value.is_number or not value.is_real:
        return False
    # 40 digits are far more than the 12 that a gold may have, so this first rounding cannot change the second.
    exact = Decimal(str(sympy.N(value, 40)))
    place = Decimal(1).scaleb(-len(match[2]))
    # Answer keys round halves in either way, and do not say in which.
    return any(exact.quantize(place, way) == Decimal(gold.strip()) for way in (ROUND_HALF_EVEN, ROUND_HALF_UP))


def _bound_memory() -> None:
    try:
        import resource
    except ImportError:  # not everywhere; there the time limit has to do
        return
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = _MEMORY if hard == resource.RLIM_INFINITY else min(_MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


if __name__ == "__main__":
    main()
