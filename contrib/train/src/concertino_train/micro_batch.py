"""How many rows are computed at once: as many as the settings say, fewer where the memory is too small for them.

First comes an estimate by the shape of the model. Then what happens counts: a pass that runs out of memory is made
again with half as many rows, and that is told. The invariant: gradients are as if the first try had had room, because
they do not depend on micro-batches.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from concertino import UsageError

if TYPE_CHECKING:
    import torch

logger = logging.getLogger("concertino")
T = TypeVar("T")
_KEPT = 17
"""Numbers that a layer of a transformer keeps for its gradient, per token and width."""


def activation_bytes(layers: int, hidden: int, size: int, *, again: bool) -> int:
    """What is kept of one token until its gradient is made, in bytes.

    Log-probabilities are computed in tiles, so the vocabulary does not count.

    Args:
        layers, hidden: of the model.
        size: bytes of a number.
        again: activations are computed again (`trainer.gradient_checkpointing`): one number for each layer is kept,
            and all of the layer that is computed.
    """
    return hidden * size * (layers + _KEPT if again else layers * _KEPT)


class MicroBatch:
    """Rows that are computed at once.

    Attributes:
        rows: at most, from now on.
    """

    def __init__(self, rows: int, setting: str, *, model: Any, bfloat16: bool, again: bool, ranks: int = 1) -> None:
        """Begin with what was asked for.

        Args:
            rows: at most.
            setting: where that was said.
            model: the one that is trained.
            bfloat16: whether it computes in 16 bits.
            again: whether activations are computed again.
            ranks: processes that compute together.
        """
        self.rows = rows
        self._setting, self._ranks, self._told = setting, ranks, False
        shape = model.config.get_text_config()
        layers: int | None = getattr(shape, "num_hidden_layers", None)
        hidden: int | None = getattr(shape, "hidden_size", None)
        size = 2 if bfloat16 else 4
        self._each = activation_bytes(layers, hidden, size, again=again) if layers and hidden else None

    def estimated(self, tokens: int, device: torch.device) -> int:
        """Rows that have room by the estimate, one or more; `rows` where nobody knows.

        Args:
            tokens: of the longest row.
            device: on which they are computed.
        """
        free = free_bytes(device)
        if free is None or self._each is None:
            return self.rows
        fitting = max(1, min(self.rows, free // (self._each * tokens)))
        if fitting < self.rows and not self._told:
            self._told = True
            logger.warning(
                "%d rows of %d tokens take some %.1f GiB for their activations, and %.1f GiB are free: %d at once "
                "(%s=%d says so from the beginning)",
                *(self.rows, tokens, self.rows * tokens * self._each / 2**30, free / 2**30),
                *(fitting, self._setting, fitting),
            )
        return fitting

    def compute(self, work: Callable[[], T], undo: Callable[[], None]) -> T:
        """What `work` gives; with half of the rows at once, again and again, where the memory is too small.

        Args:
            work: reads `rows` each time.
            undo: forgets what a pass that broke off has left.

        Raises:
            UsageError: one row alone does not fit; or there are several processes, which could not go on together.
        """
        import torch

        while True:
            try:
                return work()
            except torch.OutOfMemoryError as error:
                if self.rows == 1 or self._ranks > 1:
                    raise self._full(error) from error
            # Outside of the handler: what it holds of the failed pass would keep that memory taken.
            undo()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            self.rows = max(1, self.rows // 2)
            logger.warning(
                "the memory is too small for an update with so many rows at once; from now on %d (%s=%d says so from "
                "the beginning)",
                *(self.rows, self._setting, self.rows),
            )

    def _full(self, error: BaseException) -> UsageError:
        told = " ".join(str(error).split())[:200]
        if self.rows > 1:
            return UsageError(
                f"the memory of a process is too small for {self.rows} rows at once ({told}); processes cannot go on "
                f"with fewer by themselves: give {self._setting}={self.rows // 2}"
            )
        return UsageError(
            f"the memory is too small for one row ({told}); try trainer.gradient_checkpointing=true, an adapter "
            "(model.adapter={rank: 16}), or shorter rows (rollout.context_tokens, trainer.sft.max_tokens)"
        )


def free_bytes(device: torch.device) -> int | None:
    """Memory of a device that a training may still take; None where nobody tells."""
    import torch

    if device.type != "cuda":
        return None
    # What torch has set aside and does not use is free, too.
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(torch.cuda.mem_get_info(device)[0]) + kept
