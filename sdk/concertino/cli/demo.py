"""`concertino demo`: one run with simulated models, on any machine, checked against its known answers.

The models come from the distribution concertino-sim, and a trained model that leads them from concertino-conductor. The
SDK depends on neither, so they are looked for by name.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from concertino.core.errors import UsageError

from .failures import Failed
from .options import common_options, view_options
from .run import Display, fresh, show_run

if TYPE_CHECKING:
    from concertino.pool.pool import Pool
    from concertino.runs.orchestrator import Orchestrator

_MODULE = "concertino_sim"
_TINY = "concertino_conductor"
_BOXED = re.compile(r"\\boxed\{([^{}]*)\}")


@click.command("demo")
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed is another question.")
@click.option(
    "--conductor",
    type=click.Choice(["tiny", "simulated"]),
    help="Who leads: a tiny trained model (concertino-conductor), or a policy written by hand; by default tiny, if it "
    "is installed.",
)
@click.option("--trace", "folder", type=click.Path(path_type=Path), metavar="FOLDER", help="Where to record the run.")
@view_options
@common_options
def demo(seed: int, conductor: str | None, folder: Path | None, live: bool | None, as_json: bool) -> None:
    """Watch one run with simulated models: no key, no network, about five seconds.

    The models crash, hang and err on purpose; the orchestrator reads what happened and repairs it. It is a real, tiny
    model with its weights, or a policy written by hand, which misspells on purpose, too.
    Exit code: 0 if the answers are the known ones, 1 if not.

    JSON: as `concertino run --json`.
    """
    from concertino.core.budget import Budget

    cast = _installed(_MODULE, "the demo needs simulated models: pip install concertino-sim", ".demo")
    question, expected = cast.demo_question(seed)
    leader, pool = _led(conductor or ("tiny" if importlib.util.find_spec(_TINY) else "simulated"), cast, seed)
    budget = Budget(rounds=8, calls=40, usd=0.5, seconds=60)
    begin, path = fresh(leader, question, pool, budget, folder)
    done = show_run(begin, path, Display(live, as_json))
    given = _BOXED.findall(done.answer or "")
    if given != [str(answer) for answer in expected]:
        right, wrong = ", ".join(map(str, expected)), ", ".join(given) or "none"
        raise Failed(f"the answers are {right}; the run gave {wrong}")
    if not as_json:
        click.echo(f"\nAll {len(expected)} answers are right. See it again: concertino traces show {path}")


def _led(conductor: str, cast: Any, seed: int) -> tuple[Orchestrator, Pool]:
    """Who leads, and the pool."""
    from concertino.pool.pool import Pool
    from concertino.runs.orchestrator import Orchestrator

    pool = Pool(cast.demo_members(seed))
    if conductor == "simulated":
        return Orchestrator("sim/conductor"), pool
    tiny = _installed(_TINY, "the tiny conductor is not installed: pip install concertino-conductor")
    models = [model.with_(name=f"conductor/{model.name}") for model in tiny.concertino_models()]
    return Orchestrator("conductor/tiny", tiny.strategy()), pool.without("sim/conductor").adding(*models)


def _installed(module: str, lacking: str, part: str = "") -> Any:
    """A distribution's module, or one of its parts."""
    if importlib.util.find_spec(module) is None:
        raise UsageError(lacking)
    return importlib.import_module(module + part)
