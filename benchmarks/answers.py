"""S16: typed answers of 300 real schemas: how often a model that erred is right at its second try.

    python benchmarks/answers.py [--json] [--quick]

The model answers with one of ten faults: a value of another type, a property missing or too many, none of an enum,
beyond a limit, in another form, cut off, inside prose, nested wrongly, null. Then a program that sees the schema, its
own reply and the message that concertino wrote, and nothing else, answers again (`tests/sdk/runs/corrector.py`). It is
right if `jsonschema` takes the output and all that the fault left whole is kept. Each schema has every fault that it
can have (with `--quick` one), under the five strategies in turn. The control is the same program, which does not read
the message. The schemas are those of the shared test data: tools of MCP servers, configuration files, the benchmarks
ACEBench and BFCL, and the test suite of JSON Schema.
"""

from __future__ import annotations

import asyncio
import os
import sys
from itertools import cycle
from pathlib import Path

from measure import Row, script

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the trials

from tests.sdk.runs import answer_trials  # noqa: E402
from tests.sdk.runs.answer_trials import FAULTS, STRATEGIES, Subject, Trial  # noqa: E402


def subjects() -> list[Subject]:
    """The schemas of the shared test data."""
    data = Path(os.environ.get("CONCERTINO_TEST_DATA", ROOT.parent / "shared" / "data"))
    if not data.is_dir():
        raise SystemExit(f"{data} is not there; point CONCERTINO_TEST_DATA at the folder of data samples")
    return answer_trials.subjects(data)


async def trials(quick: bool, *, deaf: bool = False) -> list[Trial]:
    """All trials."""
    strategies = cycle(STRATEGIES)
    drawn = (answer_trials.one_each if quick else answer_trials.every)(subjects())
    return [await answer_trials.trial(*each, next(strategies), deaf=deaf) for each in drawn]


def right(found: list[Trial], tries: tuple[int, ...]) -> float:
    """Percentage that was right at one of these tries."""
    return 100 * sum(trial.tries in tries for trial in found) / len(found)


def rows(quick: bool) -> list[Row]:
    """All figures; of what has a least value, the share that fails has a bar."""
    found, deaf = asyncio.run(trials(quick)), asyncio.run(trials(quick=True, deaf=True))
    wrong = 100 - right(found, (1, 2))
    made = [
        Row("S16", f"{len(found):,} faulty answers, 300 schemas: wrong at the second try", wrong, "%", 5.0),
        Row("S16", "the same: accepted as it stands, since it has one meaning", right(found, (1,)), "%"),
        Row("S16", "control that does not read the message: wrong at the second try", 100 - right(deaf, (1, 2)), "%"),
        Row("S16", "outputs that break the schema", sum(trial.unvalidated for trial in found), "", 0.0),
    ]
    for kind in FAULTS:
        of_kind = [trial for trial in found if trial.kind == kind]
        what = f"{kind} ({len(of_kind)}): wrong at the second try"
        made.append(Row("S16", what, 100 - right(of_kind, (1, 2)), "%"))
    for name in STRATEGIES:
        under = [trial for trial in found if trial.strategy == name]
        made.append(Row("S16", f"{name} ({len(under)}): wrong at the second try", 100 - right(under, (1, 2)), "%"))
    return made


if __name__ == "__main__":
    sys.exit(script(rows, __doc__))
