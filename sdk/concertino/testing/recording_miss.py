"""What a missing record looks like next to the nearest one: the places where they differ, as JSON pointers.

Nearest is the record of the same kind and name with the fewest differing places; among equals, the one whose texts are
most alike. Of two long texts only the neighbourhood of the first difference is shown.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .recording_file import Record

_SHOWN = 60
_DIFFERENCES = 3
_CANDIDATES = 500
"""Records that are compared; of a longer recording, the last ones."""

Difference = tuple[str, Any, Any]
"""A JSON pointer, what is recorded there, and what was asked."""


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


_ABSENT = _Absent()


def explain_miss(request: Mapping[str, Any], records: Sequence[Record], path: Path) -> str:
    """A text for the author of a test: what is not recorded, the nearest record, and what to do."""
    what = f"{request['kind']} {request['name']!r}"
    step = "record again with mode='record' (on the command line --record), or only this one with mode='auto'"
    same = [r for r in records if (r.request["kind"], r.request["name"]) == (request["kind"], request["name"])]
    if not same:
        return f"{path} holds no request of {what}; {step}"
    equal = sum(record.request == request for record in same)
    if equal:
        times = "once" if equal == 1 else f"{equal} times"
        return f"{path} holds this request of {what} only {times}, and it was made once more; {step}"
    found = [(list(_differences(record.request, request)), record) for record in same[-_CANDIDATES:]]
    fewest = min(len(differences) for differences, _ in found)
    nearest = [(differences, record) for differences, record in found if len(differences) == fewest]
    differences, _ = max(nearest, key=lambda pair: _likeness(pair[1].request, request))
    shown = "; ".join(_show(*difference) for difference in differences[:_DIFFERENCES])
    more = f" (+{len(differences) - _DIFFERENCES} more)" if len(differences) > _DIFFERENCES else ""
    return f"{path} does not hold this request of {what}. The nearest one differs at {shown}{more}; {step}"


def _differences(recorded: Any, asked: Any, pointer: str = "") -> Iterator[Difference]:
    if isinstance(recorded, dict) and isinstance(asked, dict):
        for key in dict.fromkeys([*recorded, *asked]):
            yield from _differences(recorded.get(key, _ABSENT), asked.get(key, _ABSENT), f"{pointer}/{key}")
    elif isinstance(recorded, list) and isinstance(asked, list):
        for index in range(max(len(recorded), len(asked))):
            before = recorded[index] if index < len(recorded) else _ABSENT
            now = asked[index] if index < len(asked) else _ABSENT
            yield from _differences(before, now, f"{pointer}/{index}")
    # 1, 1.0 and true are equal to Python, but have different keys.
    elif recorded != asked or type(recorded) is not type(asked):
        yield pointer, recorded, asked


def _show(pointer: str, recorded: Any, asked: Any) -> str:
    if isinstance(recorded, str) and isinstance(asked, str):
        start = next((i for i, (a, b) in enumerate(zip(recorded, asked, strict=False)) if a != b), None)
        start = max(0, (min(len(recorded), len(asked)) if start is None else start) - _SHOWN // 3)
        recorded, asked = (_excerpt(text, start) for text in (recorded, asked))
    return f"{pointer}: recorded {_shorten(recorded)}, asked {_shorten(asked)}"


def _excerpt(text: str, start: int) -> str:
    end = start + _SHOWN
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")


def _shorten(value: Any) -> str:
    text = repr(value) if isinstance(value, _Absent) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN + 4 else f"{text[:_SHOWN]}…"


def _likeness(recorded: Any, asked: Any) -> float:
    # The ends: conversations of one test begin alike, and comparing takes quadratic time.
    before, now = (json.dumps(value, sort_keys=True)[-2000:] for value in (recorded, asked))
    return difflib.SequenceMatcher(a=before, b=now, autojunk=False).quick_ratio()
