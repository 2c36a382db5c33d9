"""What settings are made of: a checked table, in Python and in a file, and the kinds of numbers in it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal, Self

from concertino import UsageError
from concertino.schema import suggestion
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    model_validator,
)

Count = Annotated[int, Field(ge=1)]
Number = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Above = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Schedule = Literal["constant", "linear", "cosine"]
Precision = Literal["auto", "float32", "bfloat16", "float16"]


def did_you_mean(given: str, known: Sequence[str]) -> str:
    """A hint on an unknown name: near names, or all that are known."""
    return suggestion(given, known)


def imported(module: str) -> ModuleType:
    """A module that settings name, also one of the working folder, which is looked through last.

    Raises:
        ImportError: there is none, or it cannot be imported.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        here = str(Path.cwd())
        if error.name is None or not f"{module}.".startswith(f"{error.name}.") or here in sys.path:
            raise
    # Last, so that no file beside it takes the place of a module of Python or of a package.
    sys.path.append(here)
    return importlib.import_module(module)


class Section(BaseModel):
    """A table of settings: nothing unknown, nothing of a wrong type, nothing that changes later.

    Raises:
        UsageError: a value cannot be; names the class, the field, the value and what is expected.
    """

    # Strict: YAML's `on`, or a number in quotes, is more often a mistake than meant.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    def check(self) -> None:
        """What fields say of each other.

        Raises:
            ValueError: they do not fit: `name=value: expected ...`.
        """

    def changed(self, **values: Any) -> Self:
        """A copy with other values, checked."""
        # Through the constructor, as `model_copy` would check nothing.
        return type(self)(**{**dict(self), **values})

    @model_validator(mode="wrap")
    @classmethod
    def _validated(cls, given: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        try:
            made = handler(given)
            made.check()
        except ValueError as error:  # pydantic's ValidationError is one
            # The reader of a file gives a context: pydantic then collects all errors with the places of their keys.
            if info.context is not None:
                raise
            raise UsageError(f"{cls.__name__}({_told(error)}") from None
        return made


def _told(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        name, _, expected = str(error).partition(": ")
        return f"{name}): {expected}"
    first = error.errors()[0]
    name = ".".join(map(str, first["loc"]))
    return f"{name}={first['input']!r}): expected {first['msg'].removeprefix('Input should be ')}"
