"""Loops of one leader: the SDK's own strategies with other settings and a name of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from concertino.strategies.parallel_rounds import ParallelRounds
from concertino.strategies.serial_calls import SerialCalls

if TYPE_CHECKING:
    from concertino.strategies import Machine


@dataclass(frozen=True)
class SingleWithTools(SerialCalls):
    """One model with tools, one call per turn (`SerialCalls` in a chat, at most 12 turns).

    It is meant for a pool of tools without agents, so that the model cannot delegate.
    """

    max_rounds: int = 12

    name = "single-with-tools"

    def restore(self, dumped: Mapping[str, Any]) -> Any:
        """A machine from `dump`, with this strategy's cutter."""
        machine = super().restore(dumped)
        machine.settings = replace(SingleWithTools.from_json(dumped["settings"]), cutter=self.cutter)
        return machine


@dataclass(frozen=True)
class Serial(ParallelRounds):
    """Serial orchestration: `ParallelRounds` with one call in a round (n_max = 1)."""

    max_parallel: int = 1

    name = "serial"

    def restore(self, dumped: Mapping[str, Any]) -> Any:
        """A machine from `dump`."""
        return _own(self, super().restore(dumped), dumped)


@dataclass(frozen=True)
class Prompted(ParallelRounds):
    """A prompted orchestrator: `ParallelRounds` as it is, led by any model that was not trained for it."""

    name = "prompted"

    def restore(self, dumped: Mapping[str, Any]) -> Any:
        """A machine from `dump`."""
        return _own(self, super().restore(dumped), dumped)


def _own(strategy: ParallelRounds, machine: Any, dumped: Mapping[str, Any]) -> Machine:
    """A restored machine with settings of the strategy's own class, so that its dumps keep the same name."""
    # The base class restores its own settings, whose name would be another strategy's in the next dump.
    machine.settings = type(strategy).from_json(dumped["settings"])
    found: Machine = machine
    return found
