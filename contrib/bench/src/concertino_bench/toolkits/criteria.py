"""When a trajectory solves a task: three criteria, each a pure function with a reason, and their verdict.

They are those of ToolScale (ToolOrchestra, arXiv 2511.21689, appendix "Data Synthesis"): execution correctness, process
fidelity, operation completeness; a trajectory solves a task if it satisfies all three.

The invariant: no criterion looks at what another one measures. So the part that failed says what went wrong: the
database is wrong, something was not said, or something was not done.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from .drafts import Entry
from .replaying import Operated

Fact: TypeAlias = str | Sequence[str]
"""What has to be said: a text, or several of which one is enough."""

_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
# Neighbours that would make it part of a word, a date or a longer number rule a match out.
_NUMBER = re.compile(r"(?<![\w.,-])-?\d+(?:\.\d+)?(?![\w-]|[.,]\d)")
_FACT_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_SHOWN = 5


@dataclass(frozen=True)
class Criterion:
    """The result of one criterion.

    Attributes:
        name: "execution", "fidelity" or "completeness".
        passed: whether it is satisfied.
        reason: one sentence, never empty.
        missing: what is lacking, each as a text.
    """

    name: str
    passed: bool
    reason: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verification:
    """The three criteria together."""

    execution: Criterion
    fidelity: Criterion
    completeness: Criterion

    @property
    def criteria(self) -> tuple[Criterion, Criterion, Criterion]:
        """All three in order."""
        return self.execution, self.fidelity, self.completeness

    @property
    def passed(self) -> bool:
        """Whether the task is solved: every criterion is satisfied."""
        return all(criterion.passed for criterion in self.criteria)

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the criteria that are not satisfied."""
        return tuple(criterion.name for criterion in self.criteria if not criterion.passed)

    @property
    def reason(self) -> str:
        """Why it is not solved, part by part; one sentence if it is."""
        wrong = [f"{c.name}: {c.reason}" for c in self.criteria if not c.passed]
        return "; ".join(wrong) or "the state is right, everything was said, everything was done"


def execution_correctness(golden: str, found: str, changed: Iterable[Entry] | None = None) -> Criterion:
    """Whether the database content is the same after the golden calls and after the trajectory.

    Criterion 1 of ToolScale (arXiv 2511.21689, appendix "Data Synthesis").

    Args:
        golden: digest of the state after the golden calls.
        found: digest of the state after the trajectory.
        changed: records in which the trajectory's state differs from the database, to be named in the reason.
    """
    if golden == found:
        return Criterion("execution", True, "the final state is that of the golden calls")
    told = ""
    if changed is not None:
        names = [_entry(entry) for entry in sorted(changed)]
        told = f"; the trajectory changed {_some(names)}" if names else "; the trajectory changed nothing"
    return Criterion("execution", False, f"the final state {found[:12]} is not the golden one, {golden[:12]}{told}")


def process_fidelity(required: Sequence[Fact], text: str) -> Criterion:
    """Whether what had to be communicated was mentioned.

    Criterion 2 of ToolScale (arXiv 2511.21689, appendix "Data Synthesis"). See `mentions` for when a text counts.

    Args:
        required: the facts; empty if nothing has to be said.
        text: what the trajectory said.
    """
    missing = tuple(_fact(fact) for fact in required if not mentions(text, fact))
    if missing:
        return Criterion("fidelity", False, f"not mentioned: {_some(missing)}", missing)
    said = f"all {len(required)} facts were mentioned" if required else "nothing had to be mentioned"
    return Criterion("fidelity", True, said)


def operation_completeness(golden: Operated, found: Operated, *, reads: bool = True) -> Criterion:
    """Whether the records that the golden calls operated were operated by the trajectory too.

    Criterion 3 of ToolScale (arXiv 2511.21689, appendix "Data Synthesis"). A record that the golden calls wrote has to
    be written; one that they looked up may be looked up or written. More than the golden ones may be operated.

    Args:
        reads: whether records that were only looked up count; tau-bench counts writes alone.
    """
    unwritten = golden.written - found.written
    # A record that is written has been looked up on the way; to ask for both would count it twice.
    unread = (golden.read - golden.written) - (found.read | found.written) if reads else frozenset[Entry]()
    missing = (
        *(f"{_entry(entry)} not written" for entry in sorted(unwritten)),
        *(f"{_entry(entry)} not looked up" for entry in sorted(unread)),
    )
    if missing:
        return Criterion("completeness", False, _some(missing), missing)
    count = len(golden.written | golden.read) if reads else len(golden.written)
    return Criterion("completeness", True, f"all {count} records of the golden calls were operated")


def verify(
    digest: str,
    operated: Operated,
    required: Sequence[Fact],
    *,
    found_digest: str,
    found: Operated,
    text: str,
    changed: Iterable[Entry] | None = None,
    reads: bool = True,
) -> Verification:
    """All three criteria.

    Args:
        digest, operated, required: of the task: its golden state, the records of its golden calls, its facts.
        found_digest, found, text: of the trajectory.
        changed: as in `execution_correctness`.
        reads: as in `operation_completeness`.
    """
    return Verification(
        execution_correctness(digest, found_digest, changed),
        process_fidelity(required, text),
        operation_completeness(operated, found, reads=reads),
    )


def mentions(text: str, fact: Fact) -> bool:
    """Whether a text says a fact.

    Case, runs of blanks and thousands separators do not count, and words count whole: "15" does not say "5". A number
    is compared by its value: "$1,234.50" says "1234.5".
    """
    if not isinstance(fact, str):
        return any(mentions(text, each) for each in fact)
    text, wanted = _normal(text), _normal(fact)
    # Nothing to say is said by any text.
    if not wanted:
        return True
    if _FACT_NUMBER.fullmatch(wanted):
        return any(Decimal(number) == Decimal(wanted) for number in _NUMBER.findall(text))
    # Only at a letter or digit: a fact such as "$5" has no word's edge before its sign.
    before = r"(?<!\w)" if wanted[0].isalnum() else ""
    after = r"(?!\w)" if wanted[-1].isalnum() else ""
    return re.search(before + re.escape(wanted) + after, text) is not None


def _normal(text: str) -> str:
    return _THOUSANDS.sub("", " ".join(text.casefold().split()))


def _fact(fact: Fact) -> str:
    return repr(fact) if isinstance(fact, str) else " or ".join(map(repr, fact))


def _entry(entry: Entry) -> str:
    return "/".join(filter(None, entry))


def _some(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more
