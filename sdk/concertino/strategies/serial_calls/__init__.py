"""SerialCalls: the paradigm of ToolOrchestra, one call per turn, in a chat or in its released stateless prompts.

_strategy          its settings, and a run of it
_format            the text of a turn, read and written
_prompts           what the model of a chat is shown
_choices           models that a tool offers under aliases, with prices and latencies
_notebook          documents, code and attempts: what a stateless prompt is made of
_released_prompts  the bytes that Orchestrator-8B was trained on
_released_rows     the rows that were published
"""

from ._choices import Choice, choices_of, read_choices, write_choice
from ._notebook import Notebook
from ._released_prompts import EVALUATION_SAMPLING, released_prompt, token_cutter
from ._released_rows import ReleasedRecord, ReleasedTask, read_record, read_rows, read_task
from ._strategy import SerialCalls

__all__ = [
    "EVALUATION_SAMPLING",
    "Choice",
    "Notebook",
    "ReleasedRecord",
    "ReleasedTask",
    "SerialCalls",
    "choices_of",
    "read_choices",
    "read_record",
    "read_rows",
    "read_task",
    "released_prompt",
    "token_cutter",
    "write_choice",
]  # fmt: skip
