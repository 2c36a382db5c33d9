"""Advantages of a batch in which one group is mixed, one all right, and one alone."""

import numpy as np
from concertino_train.groups import AdvantageSettings, Filters, GroupKey, Groups, compute_advantages, pack

keys = [GroupKey(name) for name in ("mixed", "mixed", "mixed", "easy", "easy", "alone")]
rewards = [0.0, 1.0, 1.0, 1.0, 1.0, 1.0]
groups = Groups.of(keys)

for std in ("none", "group", "batch"):
    made = compute_advantages(rewards, groups, AdvantageSettings(std=std))
    print(f"{std:<6}", [round(float(value), 2) for value in made.values], "counted:", int(made.counted.sum()))

kept = Filters(homogeneity=0.1).apply(rewards, groups)
print(kept.counts())

packing = pack(np.flatnonzero(kept.keep), steps=2, multiple=2)
print(packing.rows.tolist(), packing.real.astype(int).tolist())
