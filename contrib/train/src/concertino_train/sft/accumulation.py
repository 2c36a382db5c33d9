"""The gradients of an optimiser step, summed over its micro-batches, each in as many parts as the memory needs.

Importing this module imports torch. The invariant: the sum is that of the rows, whatever the parts; where a part runs
out of memory, the whole step is made again, because nobody knows which gradients the part has left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from concertino import UsageError
from torch import Tensor, nn

from concertino_train.micro_batch import MicroBatch
from concertino_train.trainer.row_packing import packed

if TYPE_CHECKING:
    from trl.trainer.sft_trainer import SFTTrainer as _Base
else:
    # A mixin: the real base is the trainer that stands behind it.
    _Base = object


class AccumulatedSteps(_Base):
    """Goes before TRL's trainer.

    Attributes:
        micro: how many rows are computed at once.
        packing: whether they are one row.
    """

    micro: MicroBatch
    packing: bool = False
    _begun: Sequence[dict[str, Tensor]] = ()
    _step_of_begun = -1

    def training_step(self, model: nn.Module, inputs: dict[str, Any], num_items_in_batch: Any = None) -> Tensor:
        """Add the gradients of a micro-batch."""
        if self._step_of_begun != self.state.global_step:
            self._begun, self._step_of_begun = (), self.state.global_step
        self._begun = (*self._begun, inputs)
        due = [inputs]
        compute: Any = super().training_step  # it has no annotations

        def work() -> Tensor:
            for each in due:
                parts = list(self._parts(each))
                if len(parts) > 1 and num_items_in_batch is None:
                    raise UsageError(
                        "this transformers does not count the tokens of a step; take a smaller micro_batch"
                    )
                # Each is divided by the tokens of the whole step, so they add up.
                loss: Tensor = sum(compute(model, part, num_items_in_batch) for part in parts)
            return loss

        def undo() -> None:
            model.zero_grad()
            due[:] = self._begun

        return self.micro.compute(work, undo)

    def _parts(self, inputs: dict[str, Tensor]) -> Iterator[dict[str, Tensor]]:
        rows, width = inputs["input_ids"].shape
        most = min(self.micro.rows, self.micro.estimated(width, self.args.device))
        # On several processes all make as many passes; there, what does not fit is refused.
        most = most if self.args.world_size == 1 else rows
        for chosen in range(0, rows, most):
            yield {name: value[chosen : chosen + most] for name, value in inputs.items()}

    def compute_loss(self, model: nn.Module, inputs: dict[str, Any], *more: Any, **named: Any) -> Any:
        """As TRL's; with packing, of all rows as one."""
        if self.packing:
            inputs = {**packed(inputs["input_ids"], inputs["attention_mask"], inputs["labels"])}
        compute: Any = super().compute_loss
        return compute(model, inputs, *more, **named)
