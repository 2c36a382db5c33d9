"""Extracting: one value out of a text, with the passage that states it.

The model answers in JSON; whether its passage really occurs in the text is checked. Where no model
can say, an answer that the text marks itself (a box, an answer block, an answer line) is taken by rule.

Invariant: what is given is in the text word for word, or a note says that it is not.
"""

from __future__ import annotations

from typing import Any

from concertino import CallFailed, Sampling

from concertino_reasoning import prompts
from concertino_reasoning.answers import find_answer
from concertino_reasoning.prompts import block
from concertino_reasoning.solutions import Solution, shorten

from .chosen import ChosenModel, code_of, conversation

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"found": {"type": "boolean"}, "value": {"type": "string"}, "quote": {"type": "string"}},
    "required": ["found", "value", "quote"],
    "additionalProperties": False,
}
NOT_STATED = "not stated in the text"
_MOST_TEXT = 60_000


async def extract_from(solver: ChosenModel, text: str, wanted: str) -> Solution:
    """Ask a model for a value of a text. One request.

    Raises:
        CallFailed: the model did not answer in the form asked for, and the text marks no answer itself.
    """
    shown = shorten(text, _MOST_TEXT)
    messages = conversation(prompts.EXTRACT, f"{block('text', shown)}\n{block('wanted', wanted)}")
    try:
        model = solver.context.model(solver.name)
        data = (await model.chat(messages, sampling=Sampling(temperature=0), schema=SCHEMA)).data
    except CallFailed as failed:
        # Not bare: a short text is no answer merely because it is short.
        found = find_answer(text, bare=False)
        if found is None:
            raise
        note = f"the answer that the text marks, by rule; no model was of use ({code_of(failed)})"
        return Solution(found.answer, found.written, notes=(note,))
    cut = f"only {_MOST_TEXT:,} of the text's {len(text):,} characters were shown" if shown != text else ""
    value = data["value"].strip()
    if not data["found"] or not value:
        return Solution(NOT_STATED, NOT_STATED, marked=False).noting(cut)
    quote = data["quote"].strip()
    solution = Solution(value, value, f"The text says: {quote}" if quote else "")
    return solution.noting(cut, "" if _stands(quote, text) else "the passage does not occur in the text word for word")


def _stands(quote: str, text: str) -> bool:
    return bool(quote) and " ".join(quote.split()).casefold() in " ".join(text.split()).casefold()
