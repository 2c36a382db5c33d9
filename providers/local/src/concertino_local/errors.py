"""Failures of local models that a caller can do something about."""

from __future__ import annotations

from concertino import FailureClass, ProviderError


def caller_error(message: str) -> ProviderError:
    """An error of a request or a setting, which a retry does not cure."""
    return ProviderError(message, failure=FailureClass.CALLER)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on any device."""
    import torch

    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    text = str(error).lower()
    # The allocator of the CPU raises a plain RuntimeError.
    return isinstance(error, RuntimeError) and ("out of memory" in text or "can't allocate memory" in text)
