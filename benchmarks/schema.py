"""What schemas cost: microseconds to admit, validate, explain and guard a standard tool call.

    python benchmarks/schema.py [--json] [--repeat N]

Each figure is the best of N timings (calm-machine cost). The last column is the bar the figure must stay under.
"""

import argparse
import json
import sys
from collections.abc import Callable
from timeit import Timer
from typing import Any

from concertino.schema import BackendMissing, admit, compile_schema, explain, guard_instance, near_names

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
    for backend, bar in (("rust", 1.5), ("python", 300.0)):
        try:
            validator = compile_schema(SCHEMA, backend=backend)  # type: ignore[arg-type]
        except BackendMissing:
            continue
        found.append((f"is_valid, {backend}", best(lambda v=validator: v.is_valid(GOOD), repeat), bar))  # type: ignore[misc]
        found.append(
            (f"check of a wrong call, {backend}", best(lambda v=validator: v.check(BAD), repeat), None)
        )  # type: ignore[misc]
        compiling = best(lambda name=backend: compile_schema(SCHEMA, backend=name), repeat)  # type: ignore[misc]
        found.append((f"admit and compile, {backend}", compiling, 8000.0))
    validator = compile_schema(SCHEMA)
    violations = validator.check(BAD)
    found.append(("admit", best(lambda: admit(SCHEMA), repeat), 8000.0))
    found.append(("explain", best(lambda: explain(violations, validator), repeat), None))
    found.append(("coerce", best(lambda: validator.coerce(GOOD), repeat), None))
    found.append(("guard_instance, flat object of 3", best(lambda: guard_instance(GOOD), repeat), 2.0))
    found.append(("near_names among 1,000", best(lambda: near_names("tool_nam_77", NAMES), repeat), 2000.0))
    return found


def main() -> int:
    """Print the table; exit 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--repeat", type=int, default=5, help="timings per figure, the best counts")
    options = parser.parse_args()
    found = rows(options.repeat)
    if options.json:
        print(
            json.dumps(
                [{"what": what, "us": round(us, 3), "bar_us": bar} for what, us, bar in found], indent=2
            )
        )
    else:
        print(f"{'what':36} {'us':>10} {'bar':>8}")
        for what, us, bar in found:
            print(f"{what:36} {us:10.2f} {'' if bar is None else f'{bar:g}':>8}")
    return int(any(bar is not None and us > bar for _, us, bar in found))


if __name__ == "__main__":
    sys.exit(main())
