"""Tools of smolagents: a function, a class, and two that it brings itself."""

import concertino as ct
from calls import show
from smolagents import FinalAnswerTool, PythonInterpreterTool, Tool, tool


@tool
def travel(start: str, hours: int, by_bike: bool = False) -> str:
    """Plan a journey.

    Args:
        start: where it begins
        hours: how long it may take
        by_bike: whether by bike
    """
    return f"{start}, {hours} h, {'bike' if by_bike else 'train'}"


class Shout(Tool):
    name = "shout"
    description = "Say it loud."
    inputs = {"text": {"type": "string", "description": "what to say"}}  # noqa: RUF012
    output_type = "string"

    def forward(self, text: str) -> str:
        return text.upper()


show(
    ct.Pool.of(travel, Shout(), PythonInterpreterTool(), FinalAnswerTool()),
    ("travel", {"start": "Oslo", "hours": 2}, "OK"),
    ("shout", {"text": "hei"}, "OK"),
    ("python_interpreter", {"code": "6 * 7"}, "OK"),
    ("final_answer", {"answer": {"n": 42}}, "OK"),
    ("travel", {"start": 1, "hours": 2}, "PARSE_ERR"),
    ("shout", {}, "PARSE_ERR"),
    ("python_interpreter", {"code": 42}, "PARSE_ERR"),
    ("python_interpreter", {"code": "1 / 0"}, "EXEC_ERR"),
)
