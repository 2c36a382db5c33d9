"""The action space as the model is shown it: OpenAI-style function objects, in order.

A pool has one such list for all of its runs. Texts that are made of the whole list, such as a system prompt, are made
once and kept beside it, so a run over ten thousand tools begins as fast as one over ten.

Invariant: nobody changes the objects.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar, cast

T = TypeVar("T")
FINDER = "concertino/find_tools"
"""The tool that searches a pool, by its name there."""
_KEPT = 8
"""Texts that are kept of one list; programs have few strategies, and a text may have millions of characters."""


class FunctionObjects(tuple[Mapping[str, Any], ...]):
    """Function objects, with what was made of them."""

    @classmethod
    def of(cls, tools: Sequence[Mapping[str, Any]]) -> FunctionObjects:
        """The list itself, if it is one already."""
        return tools if isinstance(tools, FunctionObjects) else cls(tools)

    @cached_property
    def names(self) -> frozenset[str]:
        """The visible names."""
        return frozenset(each["function"]["name"] for each in self)

    @cached_property
    def _made(self) -> dict[Hashable, Any]:
        return {}


def names_of(tools: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """The visible names of function objects."""
    return FunctionObjects.of(tools).names


def made_once(tools: Sequence[Mapping[str, Any]], make: Callable[..., T], *form: Hashable) -> T:
    """What `make(tools, *form)` gives; of a pool's list, it is made at the first use and given again."""
    if not isinstance(tools, FunctionObjects):
        return make(tools, *form)
    made, key = tools._made, (make, form)
    if key not in made:
        if len(made) >= _KEPT:
            del made[next(iter(made))]
        made[key] = make(tools, *form)
    return cast("T", made[key])


def functions_in(content: Any) -> list[Mapping[str, Any]]:
    """The function objects in the result of `FINDER`; none, if it holds something else."""
    tools = content.get("tools") if isinstance(content, Mapping) else None
    return [tool for tool in tools if _is_function(tool)] if isinstance(tools, list) else []


def _is_function(tool: Any) -> bool:
    function = tool.get("function") if isinstance(tool, Mapping) else None
    return isinstance(function, Mapping) and isinstance(function.get("name"), str)
