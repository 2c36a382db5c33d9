"""Audit two rewards on the same rollouts: does spending ever pay?"""

from concertino_train.audit import AuditFailed, audit
from concertino_train.episodes import Episode, Totals
from concertino_train.rewards import PRESETS

rollouts = {
    question: [
        Episode(
            f"{question}-{n}",
            question,
            n,
            float(n > 0),
            "right" if n else "wrong",
            totals=Totals(units=n, usd=n / 100, seconds=float(n)),
        )
        for n in range(4)
    ]
    for question in ("q1", "q2")
}

print(audit(rollouts, PRESETS["toolorchestra"]).text())
print()
try:
    audit(rollouts, PRESETS["toolorchestra-as-released"]).refuse()
except AuditFailed as failed:
    print(failed)
