"""What reads hostile text takes time that grows with its length, and a test can say so on any machine.

The measure is a plain pass of Python over as many signs, taken right after the work, not seconds: machines differ, and
some stand still for a second, which their clocks of CPU time count too. So the work has three tries. Only the thread
that calls is measured: what hands its work to another one is to be called where the work is done. The invariant, for
a megabyte: a reader that looks at every sign a few times passes everywhere, and one that is quadratic passes nowhere;
the shorter the text, the cheaper a quadratic search has to be to pass.
"""

from __future__ import annotations

import time
from collections.abc import Callable

PASSES = 1_200
"""Twice what the slowest reader takes on the slowest machine seen. A quadratic reader of a megabyte takes thousands, even where it compares bytes
as fast as memory hands them over."""


def assert_linear(work: Callable[[], object], size: int) -> None:
    """Fail where `work`, which reads `size` signs, takes longer than `PASSES` plain passes over them."""
    passes = []
    for _ in range(3):
        passes.append(_seconds(work) / _seconds(lambda: _pass_over("x" * size)))
        if passes[-1] <= PASSES:
            return
    raise AssertionError(f"{size} signs took {[round(each) for each in passes]} plain passes, more than {PASSES}")


def _pass_over(text: str) -> None:
    for _ in text:
        pass


def _seconds(work: Callable[[], object]) -> float:
    started = time.thread_time()
    work()
    return time.thread_time() - started
