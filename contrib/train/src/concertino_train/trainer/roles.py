"""One LoRA adapter for each role over one shared model, all of them in one trainer and one optimiser.

The invariant: while a role is active, only its adapter is computed with, so rows of one role give no gradient to
another; and all adapters stay trainable all the time, because the optimiser holds them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concertino import UsageError
from torch import Tensor

if TYPE_CHECKING:
    from peft import PeftConfig, PeftModel
    from transformers import PreTrainedModel


def role_adapters(model: PreTrainedModel, roles: Sequence[str], config: PeftConfig) -> PeftModel:
    """Put one new adapter for each role over a model.

    Args:
        model: shared by all roles; it is not trained any more.
        roles: two or more names, which are names of folders too.
        config: of every adapter, `peft.LoraConfig(r=16, target_modules="all-linear")` for example.

    Raises:
        UsageError: there are less than two roles, or one has a name that cannot be a folder's.
    """
    from peft import get_peft_model

    if len(set(roles)) != len(roles) or len(roles) < 2:
        raise UsageError(f"role_adapters({list(roles)}): expected two different roles or more")
    # Weights of a role are found by `.role.` in their names, so no part may have its name; `default` is PEFT's own.
    taken = {word for name, _ in model.named_parameters() for word in name.split(".")} | {"default"}
    for role in roles:
        if not role.isidentifier() or role in taken:
            raise UsageError(
                f"role {role!r}: expected letters, digits and underscores, and neither 'default' nor the name of "
                "a part of the model"
            )
    made = get_peft_model(model, config, adapter_name=roles[0])
    for role in roles[1:]:
        # PEFT freezes what is not active, so `Adapters` makes all of them trainable again.
        made.add_adapter(role, config)
    adapters = Adapters(made, roles)
    adapters.activate(roles[0])
    return made


def save_adapters(model: PeftModel, folder: Path | str, roles: Sequence[str] | None = None) -> list[Path]:
    """Write the adapters of roles, one folder each, which `PeftModel.from_pretrained(model, folder)` reads.

    Args:
        model: with adapters.
        folder: in which the folders are made.
        roles: all of them by default.

    Returns:
        The folders.
    """
    chosen = list(model.peft_config) if roles is None else list(roles)
    model.save_pretrained(str(folder), selected_adapters=chosen)
    return [Path(folder) / role for role in chosen]


class Adapters:
    """The adapters of a model by role.

    Attributes:
        roles: their names.
    """

    def __init__(self, model: Any, roles: Sequence[str]) -> None:
        """Find the weights of each role.

        Raises:
            UsageError: the model has no adapter of a role.
        """
        present = list(getattr(model, "peft_config", {}))
        lacking = [role for role in roles if role not in present]
        if lacking:
            raise UsageError(
                f"the model has no adapter for {', '.join(lacking)} (it has {', '.join(present) or 'none'}); make them "
                "with role_adapters(model, roles, config)"
            )
        self.roles = tuple(roles)
        self._model = model
        # Held by identity: the optimiser has these tensors, and `set_adapter` exchanges none.
        self._weights: dict[str, list[Tensor]] = {
            role: [value for name, value in model.named_parameters() if f".{role}." in name] for role in roles
        }

    def activate(self, role: str) -> None:
        """Compute with the adapter of a role from now on."""
        if self._model.active_adapter != role:
            self._model.set_adapter(role)
        self.unfreeze()

    def unfreeze(self) -> None:
        """Keep all adapters trainable: making one active freezes the others."""
        for weights in self._weights.values():
            for weight in weights:
                weight.requires_grad_(True)

    def nothing(self, role: str) -> Tensor | float:
        """Return a zero made of all other roles' weights, so that DDP finds a gradient for each of them."""
        others = [weight for name in self.roles if name != role for weight in self._weights[name]]
        return sum((weight.sum() * 0.0 for weight in others), start=0.0)
