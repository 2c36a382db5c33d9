"""The audit: what is wrong with a reward, or with a batch, before anything is trained on it.

    report = audit(episodes_by_group, reward)
    report.refuse()                          # AuditFailed says what to change; refuse(force=True) only reports

_audit     what is looked at, in order
_probes    what a reward does when one thing of an episode is changed
_pairs     what it does to episodes that are there
_batch     groups, rows and masks, filters
_report    findings, as text and as JSON
_command   `concertino train audit`
"""

from typing import TYPE_CHECKING, Any

from ._audit import audit, read_episodes
from ._batch import AuditRow
from ._report import AuditFailed, AuditReport, Finding, Limits

if TYPE_CHECKING:
    from ._command import audit_command

__all__ = [
    "AuditFailed",
    "AuditReport",
    "AuditRow",
    "Finding",
    "Limits",
    "audit",
    "audit_command",
    "read_episodes",
]


def __getattr__(name: str) -> Any:
    """The command is made when it is asked for, so that nobody else needs click."""
    if name != "audit_command":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ._command import audit_command

    return audit_command
