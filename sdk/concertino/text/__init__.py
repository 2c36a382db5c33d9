"""Reading what a language model wrote: JSON, tool calls in the dialects of models, and answers that mean the same."""

from .answers import answer_key, boxed, same_answer
from .json import Reading, ReadingError, read_json
from .tool_calls import (
    NAMELESS,
    CallText,
    TextBlock,
    TextCall,
    cut_blocks,
    read_tool_call,
    read_tool_calls,
    write_tool_call,
    written_arguments,
)

__all__ = [
    "NAMELESS",
    "CallText",
    "Reading",
    "ReadingError",
    "TextBlock",
    "TextCall",
    "answer_key",
    "boxed",
    "cut_blocks",
    "read_json",
    "read_tool_call",
    "read_tool_calls",
    "same_answer",
    "write_tool_call",
    "written_arguments",
]
