"""What a language model wrote, read: JSON, tool calls in the dialects of models, and answers that mean the same.

Each name is imported at its first use: messages need only what quotes foreign text, and no reader of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .answers import answer_key as answer_key
    from .answers import boxed as boxed
    from .answers import same_answer as same_answer
    from .foreign_text import Quoting as Quoting
    from .foreign_text import ToolQuoting as ToolQuoting
    from .foreign_text import break_control_tokens as break_control_tokens
    from .foreign_text import is_control_token as is_control_token
    from .foreign_text import quote_data as quote_data
    from .foreign_text import quote_foreign as quote_foreign
    from .foreign_text import quoting as quoting
    from .json import ReadingError as ReadingError
    from .json import read_json as read_json
    from .stranger_json import JSON_VALUES as JSON_VALUES
    from .stranger_json import QUICK_VALUES as QUICK_VALUES
    from .stranger_json import TooManyValues as TooManyValues
    from .stranger_json import check_values as check_values
    from .stranger_json import counted_values as counted_values
    from .stranger_json import read_stranger_json as read_stranger_json
    from .tool_calls import NAMELESS as NAMELESS
    from .tool_calls import TextCall as TextCall
    from .tool_calls import cut_blocks as cut_blocks
    from .tool_calls import read_tool_call as read_tool_call
    from .tool_calls import read_tool_calls as read_tool_calls
    from .tool_calls import write_tool_call as write_tool_call
    from .tool_calls import written_arguments as written_arguments

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

_NAMES = {
    "answers": "answer_key boxed same_answer",
    "foreign_text": "Quoting ToolQuoting break_control_tokens is_control_token quote_data quote_foreign quoting",
    "json": "ReadingError read_json",
    "stranger_json": "JSON_VALUES QUICK_VALUES TooManyValues check_values counted_values read_stranger_json",
    "tool_calls": "NAMELESS TextCall cut_blocks read_tool_call read_tool_calls write_tool_call written_arguments",
}
_HOME_OF = {name: home for home, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Import a name's module at its first use."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_HOME_OF[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
