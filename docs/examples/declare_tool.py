"""A tool is a typed function with a docstring."""

import json
from typing import Annotated, Literal

import concertino as ct
from pydantic import Field


@ct.tool(timeout=2, retry_safe=True)
def convert(
    amount: Annotated[float, Field(ge=0)],
    unit: Literal["km", "mi"],
) -> float:
    """Convert a distance between kilometres and miles.

    Args:
        amount: the distance.
        unit: the unit that it is given in.
    """
    return amount / 1.609344 if unit == "km" else amount * 1.609344


print(json.dumps(convert.input_schema, indent=2))
print(round(convert(42.195, "km"), 2))
