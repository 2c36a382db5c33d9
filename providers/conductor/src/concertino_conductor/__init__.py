"""concertino-conductor: a tiny trained orchestrator that runs anywhere, `conductor/tiny`.

A transformer trained from scratch, shipped with its weights; no key, no server, no torch. It leads
`ParallelRounds(prompt="brief", quotes=True)` over pools of solvers and of models; what it was trained on, how well it
does and what it cannot do stands in `MODEL_CARD.md`. Importing this module imports neither numpy nor the weights.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from concertino import hookimpl

if TYPE_CHECKING:
    from concertino import ModelSpec, ParallelRounds

    from .model import TINY, TinyConductor

__all__ = ["TINY", "TinyConductor", "concertino_examples", "concertino_models", "strategy"]
_HOMES = {"TINY": "model", "TinyConductor": "model"}


@hookimpl
def concertino_models() -> list[ModelSpec]:
    """The tiny conductor."""
    from concertino import ModelSpec, Prices

    def make() -> TinyConductor:
        from .model import TinyConductor

        return TinyConductor()

    text = 'Tiny trained orchestrator: leads parallel rounds with prompt="brief" and quotes; answers nothing by itself.'
    return [ModelSpec("tiny", make, description=text, prices=Prices(0.0, 0.0), context=4096, max_tokens=512)]


def strategy(**settings: Any) -> ParallelRounds:
    """The strategy that the tiny conductor leads best by: brief prompts, quotes, short observations, no budget shown.

    Args:
        settings: further settings of `ParallelRounds`, or other values of these.
    """
    from concertino import ParallelRounds

    chosen: dict[str, Any] = {"prompt": "brief", "quotes": True, "show_budget": False, "observation_tokens": 80}
    return ParallelRounds(**{**chosen, **settings})


concertino_examples = {
    "tiny": {"prompt": "Which part is next?", "honours_max_tokens": True, "honours_stop": True, "logprobs": True}
}
"""What `concertino check` may ask."""


def __getattr__(name: str) -> Any:
    """Import a name's module at its first use."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
