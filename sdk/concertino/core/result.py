"""A result with a bill: what a tool or agent returns when it knows better than its spec what the call cost.

A plain return value is enough for everything else. The bill counts against the budget; one above the spec's
`Cost.max_usd` is recorded as an overrun.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Result:
    """Content, and what this call consumed beyond its spec's `Cost`.

    Attributes:
        content: plain JSON data.
        usd: $ that the provider billed.
        units: cost units beyond the spec's.
        input_tokens, output_tokens: tokens of models that the plugin called without concertino.
    """

    content: Any
    usd: float = 0.0
    units: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
