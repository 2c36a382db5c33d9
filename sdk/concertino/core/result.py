"""A result with a bill, or with attachments in its text: what a tool or agent returns where a plain value does not do.

The bill is for a call that knows better than its spec what it cost. It counts against the budget; one above the spec's
`Cost.max_usd` is recorded as an overrun.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .attachment import Attachment


@dataclass(frozen=True, slots=True)
class Result:
    """Content, and what this call consumed beyond its spec's `Cost`.

    Attributes:
        content: plain JSON data.
        usd: $ that the provider billed.
        units: cost units beyond the spec's.
        input_tokens, output_tokens: tokens of models that the plugin called without concertino.
        attachments: images, audio and files. A text holds their marks (`Attachment.mark`); data that holds none gets
            them under the key `attachments`, after it was checked against the output schema.
    """

    content: Any
    usd: float = 0.0
    units: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    attachments: tuple[Attachment, ...] = ()
