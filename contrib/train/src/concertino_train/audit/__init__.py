"""The audit: what is wrong with a reward, or with a batch, before anything is trained on it.

    report = audit(episodes_by_group, reward)
    report.refuse()                          # AuditFailed says what to change; refuse(force=True) only reports

checks  what is examined, in order
probes  what a reward does when one property of an episode is changed
pairs   what it does to pairs of recorded episodes
batch   groups, rows and masks, filters
report  findings, as text and as JSON
"""

from .checks import audit, read_episodes
from .report import AuditFailed, AuditReport

__all__ = [
    "AuditFailed",
    "AuditReport",
    "audit",
    "read_episodes",
]
