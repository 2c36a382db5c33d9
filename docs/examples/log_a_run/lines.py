"""A run in the log, as lines of text."""

import logging

import concertino as ct
from concertino.testing import ScriptedModel


@ct.tool(cost=ct.Cost(units=1))
def look_up(word: str, api_key: str) -> str:
    """Look a word up in a dictionary that needs a key."""
    return f"{word}: a fruit"


# In place of "openai/gpt-5.4-mini", so that this program runs anywhere and always says the same.
MODEL = ScriptedModel(
    [("look_up", {"word": "kiwi", "api_key": "four plain words"}), ("look_down", {"word": "kiwi"})],
    "<answer>A fruit.</answer>",
)


def ask() -> None:
    ct.Orchestrator(MODEL).run_sync("What is a kiwi?", pool=ct.Pool.of(look_up), budget=ct.Budget(units=5))


if __name__ == "__main__":
    logging.basicConfig(format="%(levelname)s %(name)s %(message)s")
    logging.getLogger("concertino").setLevel(logging.DEBUG)  # INFO tells a run in three lines
    ask()
