"""Tools of DSPy."""

import concertino as ct
import dspy
from calls import show


def weather(city: str, unit: str = "C") -> str:
    """The weather of a city."""
    return f"10 {unit} in {city}"


async def later(number: int) -> int:
    """The next number."""
    return number + 1


show(
    ct.Pool.of(dspy.Tool(weather), dspy.Tool(later)),
    ("weather", {"city": "Bergen"}),
    ("later", {"number": 1}),
    ("weather", {"unit": "F"}),
    ("later", {"number": "one"}),
)
