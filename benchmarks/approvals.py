"""S18: runs that wait for a person, killed with SIGKILL and resumed: what went wrong in 200 random plans.

    python benchmarks/approvals.py [--json] [--quick]

Each plan runs undisturbed with a handler, and then again in processes that are killed at random moments and at random
writes, with decisions (yes, no, or other arguments) given later, in portions, to another process. Every tenth run waits
longer than its whole budget of seconds, for a handler or between two processes. What must hold is said in
`tests/sdk/runs/approval_trials.py`. With `--quick`, 20 plans.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from measure import Row, script

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the trials

from tests.sdk.runs import approval_trials  # noqa: E402


def rows(quick: bool) -> list[Row]:
    """All figures."""
    count, found = 20 if quick else 200, []
    began = time.monotonic()
    with approval_trials.children() as work:
        for seed in range(count):
            found.append(approval_trials.trial(work, seed))
            print(f"\r{seed + 1}/{count} plans", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    for trial in found:
        for wrong in trial.wrong:
            print(wrong, file=sys.stderr)
    figures = {
        "processes killed": sum(trial.kills for trial in found),
        "paid calls, those of models included": sum(trial.calls for trial in found),
        "calls that a person decided about": sum(trial.decided for trial in found),
        "runs with a call in doubt that may not be repeated": sum(trial.in_doubt for trial in found),
    }
    return [
        Row("S18", f"{count} plans: promises broken", float(sum(len(trial.wrong) for trial in found)), "", 0.0),
        *(Row("S18", what, float(value), "") for what, value in figures.items()),
        Row("S18", "time of all", time.monotonic() - began, "s"),
    ]


if __name__ == "__main__":
    sys.exit(script(rows, __doc__))
