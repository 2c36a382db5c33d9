"""Tools of DSPy: functions, one with a pydantic model among its arguments."""

import concertino as ct
import dspy
from calls import show
from pydantic import BaseModel


class Place(BaseModel):
    city: str
    country: str = "NO"


def weather(city: str, unit: str = "C") -> str:
    """The weather of a city."""
    return f"10 {unit} in {city}"


async def later(number: int) -> int:
    """The next number."""
    return number + 1


def where(place: Place) -> str:
    """Where a place is."""
    return f"{place.city}, {place.country}"


show(
    ct.Pool.of(dspy.Tool(weather), dspy.Tool(later), dspy.Tool(where)),
    ("weather", {"city": "Bergen"}, "OK"),
    ("later", {"number": 1}, "OK"),
    ("where", {"place": {"city": "Oslo"}}, "OK"),
    ("weather", {"unit": "F"}, "PARSE_ERR"),
    ("later", {"number": "one"}, "PARSE_ERR"),
    ("where", {"place": {"country": "NO"}}, "PARSE_ERR"),
)
