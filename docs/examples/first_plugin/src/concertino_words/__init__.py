"""concertino-words: one tool that counts the words of a text."""

import re
from collections import Counter
from typing import Annotated

import concertino as ct
from pydantic import Field


@ct.tool(timeout=5, retry_safe=True)
def count_words(text: str, at_least: Annotated[int, Field(ge=1)] = 1) -> dict[str, int]:
    """Count how often each word occurs in a text.

    Args:
        text: the text; upper and lower case count as the same word.
        at_least: leave out words that occur less often.
    """
    counts = Counter(re.findall(r"\w+", text.lower()))
    return {word: count for word, count in counts.most_common() if count >= at_least}


@ct.hookimpl
def concertino_tools() -> list[ct.ToolSpec]:
    return [count_words]


concertino_examples = {
    "count_words": {
        "examples": [({"text": "A rose is a rose."}, {"a": 2, "rose": 2, "is": 1})],
        "rejected": [{}, {"text": "a", "at_least": 0}],
        "without": {"failing": "every text can be counted", "slow": "it is done at once"},
    },
}
