"""What schemas cost: microseconds to admit, validate, explain and guard a standard tool call.

    python benchmarks/schema.py [--json] [--repeat N]

Each figure is the best of N timings (calm-machine cost). The last column is the bar the figure must stay under.
"""

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from timeit import Timer
from typing import Any, Literal

from concertino.schema import admit, compile_schema, explain, guard_instance, near_names
from concertino.schema.errors import BackendMissing

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "units": {"enum": ["celsius", "fahrenheit"]},
    },
    "required": ["city"],
    "additionalProperties": False,
}
BACKENDS: dict[Literal["rust", "python"], float] = {"rust": 1.5, "python": 300.0}
GOOD = {"city": "Oslo", "days": 3, "units": "celsius"}
BAD = {"citty": "Oslo", "days": "many"}
NAMES = [f"provider{number % 7}/tool_name_{number}" for number in range(1000)]


def best(action: Callable[[], Any], repeat: int) -> float:
    """Microseconds of one call, the best of `repeat` timings."""
    timer = Timer(action)
    number, seconds = timer.autorange()
    number = max(1, int(number * 0.1 / seconds))
    return min(timer.repeat(repeat, number)) / number * 1e6


def rows(repeat: int) -> list[tuple[str, float, float | None]]:
    """(what, microseconds, bar or None) for everything measured."""
    found: list[tuple[str, float, float | None]] = []

    def measure(what: str, action: Callable[[], Any], bar: float | None = None) -> None:
        found.append((what, best(action, repeat), bar))

    measure("admit", lambda: admit(SCHEMA), 8000.0)
    for backend, bar in BACKENDS.items():
        try:
            validator = compile_schema(SCHEMA, backend=backend)
        except BackendMissing:
            continue
        measure(f"admit and compile, {backend}", partial(compile_schema, SCHEMA, backend=backend), 8000.0)
        measure(f"is_valid, {backend}", partial(validator.is_valid, GOOD), bar)
        measure(f"check of a wrong call, {backend}", partial(validator.check, BAD))
    validator = compile_schema(SCHEMA)
    violations = validator.check(BAD)
    measure("explain", lambda: explain(violations, validator))
    measure("coerce", lambda: validator.coerce(GOOD))
    measure("guard_instance, flat object of 3", lambda: guard_instance(GOOD), 2.0)
    measure("near_names among 1,000", lambda: near_names("tool_nam_77", NAMES), 2000.0)
    return found


def main() -> int:
    """Print the table; exit 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--repeat", type=int, default=5, help="timings per figure, the best counts")
    options = parser.parse_args()
    found = rows(options.repeat)
    if options.json:
        print(json.dumps([{"what": what, "us": round(us, 3), "bar_us": bar} for what, us, bar in found], indent=2))
    else:
        print(f"{'what':36} {'us':>10} {'bar':>8}")
        for what, us, bar in found:
            print(f"{what:36} {us:10.2f} {'' if bar is None else f'{bar:g}':>8}")
    return int(any(bar is not None and us > bar for _, us, bar in found))


if __name__ == "__main__":
    sys.exit(main())
