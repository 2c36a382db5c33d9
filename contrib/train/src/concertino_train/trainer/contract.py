"""What is relied on in the installed TRL, checked when training begins, so that it does not fail or drift later.

What the replaced `_generate_and_score_completions` returns is read by TRL's `_compute_loss`. Neither is public, so
this looks at both: their parameters, and which keys the loss reads. A key that is read without a default and is not
known here means another loss than the one that was tested.
"""

from __future__ import annotations

import inspect
import re
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from concertino import UsageError

TESTED = "1.16.0"
# TRL announces removals for 2.0, so it is refused until it has been tried.
LEAST, BELOW = (1, 9), (2, 0)
METHODS = {
    "_generate_and_score_completions": ("self", "inputs"),
    "_prepare_inputs": ("self", "generation_batch"),
    "_compute_loss": ("self", "model", "inputs"),
    "_save_checkpoint": ("self", "model", "trial"),
}
# Its other parameters differ between releases, so only those that are passed are checked.
SCORING = {"model", "input_ids", "attention_mask", "logits_to_keep"}
GIVEN = {"prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "advantages", "num_items_in_batch"}
SOMETIMES = {"tool_mask", "old_per_token_logps", "ref_per_token_logps"}
# Attributes of TRL that are read or set; a renamed one would fail in the middle of a training, or silently.
STATE = ("_step", "_buffered_inputs", "_metrics", "beta", "temperature", "epsilon_low", "epsilon_high")
ELSEWHERE = {"importance_sampling_ratio"}
"""Read only where TRL itself runs vLLM."""


def check_trl(trainer: type[Any] | None = None) -> None:
    """Check that the installed TRL is one that this works with.

    Args:
        trainer: the class that is looked at; `trl.GRPOTrainer` by default.

    Raises:
        UsageError: it is not; says what differs, which version is installed and which was tested.
    """
    if trainer is None:
        from trl.trainer.grpo_trainer import GRPOTrainer

        trainer = GRPOTrainer
    wrong = [*_version_faults(), *_method_faults(trainer)]
    # Source is read as text only where the methods are right. Decorators of TRL are taken off, which hide the source.
    wrong += [] if wrong else _key_faults(inspect.getsource(inspect.unwrap(trainer._compute_loss)))
    if wrong:
        raise UsageError(f"this trl does not fit: {'; '.join(wrong)}. {versions()}")


def check_state(trainer: Any) -> None:
    """Check that a trainer has the state of its own that is read and set here.

    Raises:
        UsageError: it has not.
    """
    lacking = [name for name in STATE if not hasattr(trainer, name)]
    if lacking:
        raise UsageError(f"this trl does not fit: its trainer has no {', '.join(lacking)}. {versions()}")


def versions() -> str:
    """The installed and the tested version in a sentence, and how to install the tested one."""
    try:
        installed = version("trl")
    except PackageNotFoundError:
        installed = "none"
    return f"Installed is trl {installed}, tested trl {TESTED}; `pip install trl=={TESTED}` brings it"


def _version_faults() -> list[str]:
    try:
        installed = version("trl")
    except PackageNotFoundError:
        return ["it is not installed"]
    numbers = tuple(int(part) for part in re.findall(r"\d+", installed)[:2])
    if LEAST <= numbers < BELOW:
        return []
    return [f"expected a version from {'.'.join(map(str, LEAST))} and below {'.'.join(map(str, BELOW))}"]


def _method_faults(trainer: type[Any]) -> list[str]:
    faults = []
    for name, expected in METHODS.items():
        method = getattr(trainer, name, None)
        got = tuple(inspect.signature(method).parameters) if method else None
        if got != expected:
            faults.append(f"{name} takes {got}, expected {expected}" if got else f"there is no {name}")
    scoring = getattr(trainer, "_get_per_token_logps_and_entropies", None)
    lacking = SCORING - set(inspect.signature(scoring).parameters) if scoring else SCORING
    if lacking:
        faults.append(f"_get_per_token_logps_and_entropies takes no {', '.join(sorted(lacking))}")
    return faults


def _key_faults(source: str) -> list[str]:
    """Faults in the keys that the source of the loss reads."""
    read = set(re.findall(r"inputs(?:\[|\.get\()\s*[\"'](\w+)[\"']", source))
    # A key without a default is one that the loss cannot do without; `get` says that it can.
    needed = set(re.findall(r"inputs\[\s*[\"'](\w+)[\"']", source))
    unread, unknown = (GIVEN | SOMETIMES) - read, needed - GIVEN - SOMETIMES - ELSEWHERE
    faults = [f"its loss does not read {', '.join(sorted(unread))}"] if unread else []
    return [*faults, f"its loss needs {', '.join(sorted(unknown))}, which is not known here"] if unknown else faults
