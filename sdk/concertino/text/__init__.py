"""What a language model wrote, read: JSON, tool calls in the dialects of models, and answers that mean the same."""

from .answers import answer_key, boxed, same_answer
from .json import ReadingError, read_json
from .stranger_json import JSON_VALUES, QUICK_VALUES, TooManyValues, check_values, counted_values, read_stranger_json
from .tool_calls import (
    NAMELESS,
    TextCall,
    cut_blocks,
    read_tool_call,
    read_tool_calls,
    write_tool_call,
    written_arguments,
)

__all__ = [
    "JSON_VALUES",
    "NAMELESS",
    "QUICK_VALUES",
    "ReadingError",
    "TextCall",
    "TooManyValues",
    "answer_key",
    "boxed",
    "check_values",
    "counted_values",
    "cut_blocks",
    "read_json",
    "read_stranger_json",
    "read_tool_call",
    "read_tool_calls",
    "same_answer",
    "write_tool_call",
    "written_arguments",
]
