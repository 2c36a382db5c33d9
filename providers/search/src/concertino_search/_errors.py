"""What a person has to repair: a corpus or an index that cannot be used."""

from __future__ import annotations

from concertino import UsageError


class CorpusError(UsageError):
    """A corpus cannot be read, or an option of it cannot be; says where, what was expected and the next step."""


class IndexDamaged(UsageError):
    """A folder holds no usable index; deleting it has it built again."""
