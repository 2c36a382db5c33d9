"""Reading what a language model wrote."""

from .json import Reading, ReadingError, read_json

__all__ = ["Reading", "ReadingError", "read_json"]
