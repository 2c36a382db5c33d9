"""`concertino demo`: one run with simulated models, on any machine, checked against its known answers.

The models come from the distribution concertino-sim. The SDK does not depend on it, so it is looked for by name.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path
from typing import Any

import click

from concertino._errors import UsageError

from ._failures import Failed
from ._options import common_options, view_options
from ._run import Display, fresh, show_run

_MODULE = "concertino_sim"
_BOXED = re.compile(r"\\boxed\{([^{}]*)\}")


@click.command("demo")
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed is another question.")
@click.option("--trace", "folder", type=click.Path(path_type=Path), metavar="FOLDER", help="Where to record the run.")
@view_options
@common_options
def demo(seed: int, folder: Path | None, live: bool | None, as_json: bool) -> None:
    """Watch one run with simulated models: no key, no network, about five seconds.

    The models misspell, crash, hang and err on purpose; the orchestrator reads what happened and repairs it.
    Exit code: 0 if the answers are the known ones, 1 if not.

    JSON: as `concertino run --json`.
    """
    from concertino._budget import Budget
    from concertino._orchestrator import Orchestrator
    from concertino._pool import Pool

    cast = _cast()
    question, expected = cast.demo_question(seed)
    pool = Pool(cast.demo_members(seed))
    budget = Budget(rounds=8, calls=40, usd=0.1, seconds=60)
    begin, path = fresh(Orchestrator("sim/conductor"), question, pool, budget, folder)
    done = show_run(begin, path, Display(live, as_json))
    given = _BOXED.findall(done.answer or "")
    if given != [str(answer) for answer in expected]:
        right, wrong = ", ".join(map(str, expected)), ", ".join(given) or "none"
        raise Failed(f"the answers are {right}; the run gave {wrong}")
    if not as_json:
        click.echo(f"\nAll {len(expected)} answers are right. See it again: concertino traces show {path}")


def _cast() -> Any:
    if importlib.util.find_spec(_MODULE) is None:
        raise UsageError("the demo needs simulated models: pip install concertino-sim")
    return importlib.import_module(f"{_MODULE}.demo")
