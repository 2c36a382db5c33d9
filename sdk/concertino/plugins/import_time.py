"""How long a module takes to import, measured in a fresh process, where nothing has imported its dependencies."""

from __future__ import annotations

from concertino.core.bounded_pipe import TooMuchOutput, run_bounded
from concertino.core.child_environment import child_environment
from concertino.core.child_python import code_command, safe_environment

HEAVY_IMPORT = 0.2
"""Seconds of import time, beyond concertino's own, from which a plugin is called heavy."""
IMPORT_LIMIT = 30.0
"""Seconds after which an import is given up."""
_PRINTED_BYTES = 2**20
_MEASURE = """
import json, time
def now():
    # Without the time in which other processes had the processor, where the system tells it.
    try:
        with open("/proc/self/schedstat") as file:
            return time.perf_counter() - int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return time.perf_counter()
import concertino, concertino.plugins.hookspecs
for name in concertino.__all__:  # what concertino itself costs is not the module's
    getattr(concertino, name)
started = now()
__import__(sys.argv[1])
print("seconds", now() - started)
"""


def import_seconds(module: str) -> float | None:
    """Seconds that importing a module takes in a fresh process beyond concertino; None where it cannot be imported."""
    command = code_command(_MEASURE, module)
    environment = safe_environment(child_environment(python=True, accelerators=True))
    try:
        done = run_bounded(command, env=environment, most=_PRINTED_BYTES, timeout=IMPORT_LIMIT)
        # A module may print while it is imported, and this line is the last.
        return float(done.output.decode(errors="replace").rpartition("seconds ")[2])
    except (TooMuchOutput, OSError, ValueError):
        return None
