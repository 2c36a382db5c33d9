"""A tool that has no typed function: its schema is data, its function takes one dict."""

from typing import Any

import concertino as ct
from concertino.testing import call

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "minLength": 1, "description": "name of a city"}},
    "required": ["city"],
    "additionalProperties": False,
}
POPULATION = {"Lisbon": 545_796, "Oslo": 717_710}


def look_up(arguments: dict[str, Any]) -> int:
    return POPULATION[arguments["city"]]


population = ct.ToolSpec.from_schema("population", "Say how many people live in a city.", SCHEMA, look_up, timeout=2)

for arguments in ({"city": "Oslo"}, {"city": ""}, {"city": "Atlantis"}):
    seen = call(population, arguments)
    print(seen.status, seen.content if seen.ok else seen.error.message)
