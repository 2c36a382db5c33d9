"""Errors: what a person has to repair, and what a call could not do."""

from __future__ import annotations

from concertino import FailureClass, ProviderError, UsageError


class CorpusError(UsageError):
    """A corpus cannot be read, or an option of it is invalid; says where, what was expected and the next step."""


class IndexDamaged(UsageError):
    """A folder holds no usable index. Delete the folder, and the index is built again."""


def call_failed(message: str) -> ProviderError:
    """A failed request: the fault of the page, the service or the caller, and never counted against this provider."""
    return ProviderError(message, failure=FailureClass.CALLER)
