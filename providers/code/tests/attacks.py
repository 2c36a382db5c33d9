"""Attack scripts of our own, kept in `attacks.txt`: each with what must come of it.

A script reports what it should not have been able to do with a line that begins with `LEAK:`; the harness also looks
for the canary in its output, for files on the host and for processes that survived. `@@HOST@@`, `@@PPID@@`, `@@TCP@@`,
`@@ABS@@` and `@@UNIX@@` become the harness's folder, process id, loopback port and UNIX sockets.

Expectations: `noleak`; `timeout`; `bounded` (output cut, and it may never end);
`partial` (time-out with output kept); `prompt` (comes back in time);
`rc:N`; `out:TEXT` (ended OK with this output); `err:TEXT` (in stderr); `memory` (killed for memory, or MemoryError).
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple


class Attack(NamedTuple):
    """One script."""

    name: str
    expect: str
    code: str
    kind: str = "of another set"


_HELPERS = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def tried(name, work, *harmless):
    try:
        result = work()
    except BaseException as error:
        print(name, type(error).__name__, str(error)[:80])
        return None
    if result not in harmless:
        print('LEAK:', name, repr(result)[:200])
    return result
"""


def _read() -> list[Attack]:
    text = (Path(__file__).parent / "attacks.txt").read_text(encoding="utf-8")
    found = []
    for section in re.split(r"(?m)^## ", text)[1:]:
        kind, *parts = re.split(r"(?m)^### (\S+) \| (.+)\n", section)
        for name, expect, code in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            found.append(Attack(f"own_{name}", ast.literal_eval(expect), _complete(code), kind.strip()))
    return found


def _complete(code: str) -> str:
    return code.replace("@@HELPERS@@", _HELPERS).replace("@@NUL@@", "\0").rstrip("\n") + "\n"


ATTACKS = _read()
