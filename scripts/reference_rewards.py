"""The page of the reference about rewards, made from the terms."""

from __future__ import annotations

import math
from dataclasses import MISSING, fields
from typing import Any

from concertino_train.audit.report import CODES
from concertino_train.rewards import PRESETS, TERMS, Term
from concertino_train.rewards.functions import SPENDING

_HEAD = """\
# Rewards

A reward is a weighted sum of *terms*. A term is a pure function: it takes the episodes of one group, that is rollouts
of one question, and gives each a number. This page is made from the terms of `concertino-train`; tests hold it against
them.

Where the code that was published with a paper computes something else than the paper says, both are there: `variant:
paper`, which is the default, and `variant: as_released`. Why that matters is told in
[what we do differently](../explanation/what-we-do-differently.md).

## An episode

An *episode* is all that terms read of a finished rollout, as plain data: what the grader said, every text of the policy
with its format verdict and its calls, and what was consumed. `Episode.of_run` makes one of a run and its grade.

```python title="episode.py"
--8<-- "docs/examples/train/episode.py"
```

```console
$ python episode.py
unread ['no_reasoning', 'stray_text', 'no_call'] []
calls [] [('add', 'OK', 1.0), ('add', 'PARSE_ERR', 0.0)]
final [] []
answer [] []
{'task': 1.0, 'format': 0.667, 'diversity': 0.0, 'efficiency': 1.0} True
```

## A reward as a file

```yaml title="frugal.yaml"
--8<-- "docs/examples/train/frugal.yaml"
```

`preset` begins with the terms of a reward of that name; an entry under `terms` changes one, or adds one. Each entry has
`term`, `weight` (0 or more, 1 by default; 0 leaves the term out), `when` and the parameters of the term. Unknown keys,
terms and parameters are errors that name near ones. JSON works, too.

`when: right` counts a term in right episodes alone. A reward whose thrift, form and variety together are worth more
than a right answer can rise while success falls; the audit names such a reward (`success-not-first`) and the terms to
constrain. `paramanager-success-first` is one that is constrained already.

```python title="score.py"
--8<-- "docs/examples/train/score.py"
```

```console
$ python score.py
frugal a 2.80 {'task': 1.0, 'format': 1.0, 'efficiency': 1.0, 'money': -0.4}
frugal b 1.96 {'task': 0.0, 'format': 1.0, 'efficiency': 1.0, 'money': -0.08}
terms.efficiency: unknown parameter 'cost_taget' of paramanager/efficiency; did you mean 'cost_target'?
shared/spending charges $, but episode 'b' has 3 requests of unknown price: ...
```

An unknown price is never 0: a term that charges $ refuses an episode whose $ are not known.

"""
_SPENDING_HEAD = """\
## What an episode spends

| `of` | Unit |
|---|---|
"""


_AUDIT_HEAD = """\
## What the audit finds

`audit(episodes_by_group, reward)` of `concertino_train.audit` looks for these. Each finding has a level (`fail`, `warn`
or `note`), what was seen, and what to change; `report.refuse()` raises where something failed, unless it is forced.

| Finding | Meaning |
|---|---|
"""


def reference_page() -> str:
    """The text of `docs/reference/rewards.md`, as Markdown."""
    lines = [_HEAD + _SPENDING_HEAD.rstrip()]
    lines += [f"| `{name}` | {unit.replace('|', chr(92) + '|')} |" for name, unit in SPENDING.items()]
    lines += ["", "## Rewards by name", "", "| Name | Terms | |", "|---|---|---|"]
    for reward in PRESETS.values():
        parts = ", ".join(
            f"{_weight(weight)}[`{term.name}`](#{_anchor(term)}){' of right ones' * (when == 'right')}"
            for term, weight, when in reward.terms.values()
        )
        lines.append(f"| `{reward.name}` | {parts} | {reward.summary} |")
    system = ""
    for term in TERMS.values():
        if (own := term.name.partition("/")[0]) != system:
            system = own
            lines += ["", f"## {system}"]
        lines += _section(term)
    lines += ["", _AUDIT_HEAD.rstrip(), *(f"| `{code}` | {meaning} |" for code, meaning in CODES.items())]
    return "\n".join(lines).rstrip() + "\n"


def _section(term: type[Term]) -> list[str]:
    least, most = term().bounds
    lines = ["", f"### `{term.name}` {{ #{_anchor(term)} }}", "", term.meaning, ""]
    lines += [f"- Formula: {_code(term.formula)}", f"- Source: {term.source}", f"- Range: {_range(least, most)}"]
    if term.charges:
        lines.append(f"- Charges: {', '.join(f'`{name}`' for name in SPENDING if name in term.charges)}")
    if term.differences:
        lines.append(f"- As released: {term.differences}")
    if fields(term):
        lines += ["", "| Parameter | Default | Meaning |", "|---|---|---|"]
        lines += [f"| `{each.name}` | {_default(each)} | {term.parameters[each.name]} |" for each in fields(term)]
    return lines


def _default(field: Any) -> str:
    if field.default is MISSING or field.default is None:
        return "none"
    return f"`{field.default}`" if field.default != "" else "empty"


def _range(least: float, most: float) -> str:
    if math.isinf(least):
        return "no bounds"
    return f"{least:g} or more" if math.isinf(most) else f"{least:g} to {most:g}"


def _weight(weight: float) -> str:
    return "" if weight == 1 else f"{weight:g} · "


def _code(formula: str) -> str:
    return f"`{formula}`"


def _anchor(term: Term | type[Term]) -> str:
    return term.name.replace("/", "-")
