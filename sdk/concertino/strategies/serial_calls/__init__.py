"""SerialCalls: the paradigm of ToolOrchestra, one call per turn, in a chat or in its released stateless prompts.

strategy          its settings, and a run of it
format            the text of a turn, read and written
prompts           what the model of a chat is shown
choices           models that a tool offers under aliases, with prices and latencies
notebook          documents, code and attempts: what a stateless prompt is made of
released_prompts  the bytes that Orchestrator-8B was trained on
"""

from .choices import ModelChoice, choices_of, write_choice
from .notebook import Notebook
from .released_prompts import token_cutter
from .strategy import SerialCalls

__all__ = [
    "ModelChoice",
    "Notebook",
    "SerialCalls",
    "choices_of",
    "token_cutter",
    "write_choice",
]
