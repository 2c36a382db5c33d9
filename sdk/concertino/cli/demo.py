"""`concertino demo`: one run with simulated models, on any machine, checked against its known answers.

The models come from the distribution concertino-toy, on which the SDK does not depend, so it is looked up by name; so is
concertino-view, which makes a page of the run, if it is there.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from concertino.core.errors import UsageError

from .failures import Failed
from .launch import fresh
from .log import log_option
from .options import common_options, view_options
from .show import Display, show_run
from .terminal import say

if TYPE_CHECKING:
    from concertino.runs.orchestrator import Orchestrator

_MODULE = "concertino_toy"
_PAGES = "concertino_view"
_BOXED = re.compile(r"\\boxed\{([^{}]*)\}")


@click.command("demo")
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed is another question.")
@click.option(
    "--leader",
    type=click.Choice(["conductor", "scripted"]),
    default="conductor",
    show_default=True,
    help="The orchestrator: a tiny trained model, or a policy written by hand.",
)
@click.option("--trace", "folder", type=click.Path(path_type=Path), metavar="FOLDER", help="Where to record the run.")
@click.option("--no-trace", is_flag=True, help="Do not record the run.")
@view_options
@log_option
@common_options
def demo(seed: int, leader: str, folder: Path | None, no_trace: bool, live: bool | None, as_json: bool) -> None:
    """Watch one run with simulated models: no key, no network, about five seconds.

    The models crash, hang and err on purpose; the orchestrator reads what happened and repairs it. The orchestrator is
    a tiny trained model, or a policy written by hand, which also misspells on purpose. Where concertino-view is
    installed, the last line names a page of the run for a browser, one file that needs nothing else.
    Exit code: 0 if the answers are the known ones, 1 if not.

    JSON: as `concertino run --json`.
    """
    from concertino.core.budget import Budget
    from concertino.pool.pool import Pool

    # By name: the rules of the tree count imports inside functions too, and the SDK imports no provider.
    if importlib.util.find_spec(_MODULE) is None:
        raise UsageError("the demo needs simulated models: pip install concertino-toy")
    toy = importlib.import_module(f"{_MODULE}.demo")
    question, expected = toy.demo_question(seed)
    budget = Budget(rounds=8, calls=40, usd=0.5, seconds=60)
    pool = Pool(toy.demo_members(seed))
    begin, path = fresh(_orchestrator(leader), question, pool, budget, folder, keep=not no_trace)
    done = show_run(begin, path, Display(live, as_json))
    given = _BOXED.findall(done.answer or "")
    if given != [str(answer) for answer in expected]:
        right, wrong = ", ".join(map(str, expected)), ", ".join(given) or "none"
        raise Failed(f"the answers are {right}; the run gave {wrong}")
    if not as_json:
        # After `make demo` the command lies in an environment that nobody has activated.
        command = "concertino" if shutil.which("concertino") else f"{sys.executable} -m concertino"
        again = f" See it again: {command} traces show {path}" if path else ""
        say(f"\nAll {len(expected)} answers are right.{again}")
        if path and importlib.util.find_spec(_PAGES) is not None:
            page = path.with_name(f"{path.name.partition('.')[0]}.html")
            importlib.import_module(_PAGES).write_page(path, page)
            say(f"Look at it in a browser: {page}")


def _orchestrator(leader: str) -> Orchestrator:
    """The orchestrator that was chosen."""
    from concertino.runs.orchestrator import Orchestrator

    if leader == "scripted":
        return Orchestrator("toy/leader")
    return Orchestrator("toy/conductor", importlib.import_module(f"{_MODULE}.conductor").strategy())
