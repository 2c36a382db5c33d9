"""What a language model wrote, read: JSON, tool calls in the dialects of models, and answers that mean the same."""

from .answers import answer_key, boxed, same_answer
from .foreign_text import (
    Quoting,
    ToolQuoting,
    break_control_tokens,
    is_control_token,
    quote_data,
    quote_foreign,
    quoting,
)
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
    "Quoting",
    "ReadingError",
    "TextCall",
    "TooManyValues",
    "ToolQuoting",
    "answer_key",
    "boxed",
    "break_control_tokens",
    "check_values",
    "counted_values",
    "cut_blocks",
    "is_control_token",
    "quote_data",
    "quote_foreign",
    "quoting",
    "read_json",
    "read_stranger_json",
    "read_tool_call",
    "read_tool_calls",
    "same_answer",
    "write_tool_call",
    "written_arguments",
]
