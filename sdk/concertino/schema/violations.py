"""Violations: what a model reads when its arguments do not match, and `explain`, the message built from them.

A violation names one place (a JSON pointer, "" is the whole value), the keyword that does not hold, what was
expected and what was there. At most five are reported, sorted by pointer and keyword; for alternatives
(`anyOf`, `oneOf`) the one that was evidently meant is followed, so the message is about the real fault and
not of the choice. The words are made here, of what either library reports.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .document import Document
from .errors import pointer_of
from .failures import KeywordFailure
from .wording import cut, expected, got

MAX_VIOLATIONS = 5
_MAX_POINTER = 200


@dataclass(frozen=True, slots=True)
class Violation:
    """One place where a value does not match its schema; `str()` is the line a model reads."""

    pointer: str
    keyword: str
    expected: str
    got: str

    def __str__(self) -> str:
        return f"{cut(self.pointer, _MAX_POINTER) or '(root)'}: expected {self.expected}, got {self.got}"


class Exemplar(Protocol):
    """Anything that can show a value and judge it, such as a `Validator`."""

    def example(self) -> Any:
        """One value, valid wherever one can be found."""

    def is_valid(self, instance: Any) -> bool:
        """The verdict."""


def violations_of(failures: Iterable[KeywordFailure], document: Document) -> tuple[Violation, ...]:
    """Word the failures: no duplicates, sorted by pointer then keyword, at most five."""
    # A set: `allOf` and references report the same fault several times.
    found = {Violation(pointer_of(each.path), each.keyword, expected(each, document), got(each)) for each in failures}
    ordered = sorted(found, key=lambda each: (each.pointer, each.keyword, each.expected, each.got))
    return tuple(ordered[:MAX_VIOLATIONS])


def explain(violations: Sequence[Violation], validator: Exemplar, *, limit: int = 200) -> str:
    """The message for the model, at most `limit` characters; "" where nothing is wrong.

    One line per violation, as many as fit, then an example of a valid value if it still fits.
    """
    if not violations:
        return ""
    text = cut(str(violations[0]), limit)
    for index, violation in enumerate(violations[1:], start=1):
        line = f"\n{violation}"
        if len(text) + len(line) > limit:
            more = f"\n(+{len(violations) - index} more)"
            return text + more if len(text) + len(more) <= limit else text
        text += line
    value = validator.example()
    example = "\nexample: " + json.dumps(value, ensure_ascii=False)
    # An example that is itself wrong would teach the model the fault.
    return text + example if len(text) + len(example) <= limit and validator.is_valid(value) else text
