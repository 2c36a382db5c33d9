"""One thread of BLAS for small matrices: on a busy machine, several wait for each other far longer than they compute.

The number of threads belongs to the whole process. So the invariants are that it is as before whenever nobody is
inside, and that one caller at a time is: others wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

import numpy  # noqa: F401  # its BLAS must be there before it is looked for
from threadpoolctl import ThreadpoolController

_LOCK = Lock()
_controller = cache(ThreadpoolController)


@contextmanager
def one_thread() -> Iterator[None]:
    """A context in which BLAS uses one thread."""
    # The limit is of the whole process: without the lock one caller would lift it while another computes.
    with _LOCK, _controller().limit(limits=1, user_api="blas"):
        yield
