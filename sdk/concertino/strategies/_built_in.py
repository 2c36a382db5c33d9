"""The strategies that come with the SDK: their names and where they live; each is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from ._machine import Strategy


class StrategyTable(Mapping[str, type[Strategy]]):
    """Strategy classes by name. Asking for names imports none of them."""

    def __init__(self, homes: Mapping[str, tuple[str, str]]) -> None:
        self._homes = dict(homes)

    def __getitem__(self, name: str) -> type[Strategy]:
        module, kind = self._homes[name]
        found: type[Strategy] = getattr(import_module(module, __package__), kind)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._homes

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)
