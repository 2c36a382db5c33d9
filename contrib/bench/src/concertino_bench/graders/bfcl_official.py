"""BFCL's published verdicts, repeated: for figures that stand beside the leaderboard's.

The published score of a model rests on how its handler read its text (`bfcl_dialects`) and on the checker
(`bfcl_rules`). Both are repeated here, with what is odd in them. `call-match` is our own grader of the same tasks. The
invariant: a verdict is right if and only if the published programs say so; what they cannot read is *unparsable*.

Multi-turn categories are refused: their published verdict compares states, which `call-states` does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from concertino_bench.tasks.grade import Grade, Grader, GraderServices, Submission, Verdict
from concertino_bench.tasks.task import Task

from .base import golds, shown, written
from .bfcl_dialects import DIALECTS, dialect_of, read_dialect, underscored
from .bfcl_rules import Call, fault, language_of
from .call_match import Functions, functions_of

_MARKS = re.compile(r"[,./\-_*^()]")


class OfficialCallMatch(Grader):
    """Right if BFCL's published checker says so.

    Args:
        dialect: how texts are read, one of `bfcl_dialects.DIALECTS`, or "auto": by their shape, else as BFCL v4 reads
            models that are asked in words. A task's `metadata["dialect"]` goes before it.
    """

    name = "call-match-official"

    def __init__(self, dialect: str = "auto") -> None:
        _see(dialect)
        self.dialect = dialect

    @classmethod
    def of(cls, model: str) -> OfficialCallMatch:
        """Reads as BFCL read this model in August 2024, such as "gpt-4-0613-FC"; by shape for a model of later."""
        return cls(dialect_of(model))

    def check(self, task: Task) -> None:
        """See that a task has gold as BFCL writes it, and a category that is not judged by states."""
        category = _category(task)
        _see(str(task.metadata.get("dialect") or self.dialect))
        if "multi_turn" in category:
            raise ValueError(
                f"{task.id}: the published verdict of {category!r} compares states and answers; use the "
                "grader `call-states`, with the option one_by_one of the task set"
            )
        if _by_mention(category):
            golds(task)
        elif "relevance" not in category:
            functions_of(task)
            _gold(task)

    async def grade(self, task: Task, submission: Submission, services: GraderServices) -> Grade:
        """Grade the calls that were made; those written in the text if none was made."""
        self.check(task)
        category = _category(task)
        if _by_mention(category):
            return _mentioned(task, submission.text)
        dialect = str(task.metadata.get("dialect") or self.dialect)
        try:
            if submission.calls:
                calls, dialect = _made(task, submission), "native"
            else:
                calls = read_dialect(submission.text, dialect, language_of(category))
        except ValueError as error:
            if "relevance" in category:
                return _relevant(category, 0)
            return Grade(
                Verdict.UNPARSABLE, f"the published reader ({dialect}) takes no call: {shown(str(error), 200)}"
            )
        if "relevance" in category:
            return _relevant(category, len(calls))
        gold = _gold(task)
        why = fault(calls, gold, task.metadata["functions"], category, underscored(dialect))
        expected, found = tuple(map(written, gold)), tuple(map(written, calls))
        if why:
            return Grade(Verdict.WRONG, why, expected, found)
        return Grade(Verdict.RIGHT, "every call is right by the published rules", expected, found)


def _see(dialect: str) -> None:
    if dialect != "auto" and dialect not in DIALECTS:
        raise ValueError(f"dialect={dialect!r}; expected auto, {', '.join(DIALECTS)}")


def _category(task: Task) -> str:
    return str(task.metadata.get("category") or "")


def _by_mention(category: str) -> bool:
    return category.startswith(("memory", "web_search"))


def _gold(task: Task) -> list[Call]:
    gold = task.metadata.get("ground_truth")
    if not isinstance(gold, (list, tuple)) or not gold or not all(map(_accepted_call, gold)):
        raise ValueError(f"{task.id}: ground_truth is {shown(repr(gold))}; expected [{{name: {{argument: values}}}}]")
    return list(gold)


def _accepted_call(call: Any) -> bool:
    return isinstance(call, Mapping) and len(call) == 1 and isinstance(next(iter(call.values())), Mapping)


def _made(task: Task, submission: Submission) -> list[Any]:
    """The calls of a run that mean a function of the task, or nothing that there is."""
    known: Functions = functions_of(task)
    calls = []
    for call in submission.calls:
        name, arguments = str(call.get("name", "")), call.get("arguments")
        meant = known.resolve(name)
        # Other members of the pool are how a system works, and no part of its answer; an unknown name is.
        if meant is not None or call.get("status") == "PARSE_ERR":
            calls.append({meant or name: dict(arguments) if isinstance(arguments, Mapping) else {}})
    return calls


def _relevant(category: str, count: int) -> Grade:
    right = (count == 0) is ("irrelevance" in category)
    wanted = "none is to be" if "irrelevance" in category else "at least one is to be"
    return Grade(Verdict.RIGHT if right else Verdict.WRONG, f"{count} calls are read, and {wanted}")


def _mentioned(task: Task, text: str) -> Grade:
    """Whether one of the accepted texts occurs in the answer, without marks and case, as whole words."""
    said, accepted = _plain(text), golds(task)
    if not text.strip():
        return Grade(Verdict.UNPARSABLE, "the answer is empty", accepted)
    found = next((one for one in accepted if re.search(rf"\b{re.escape(_plain(one))}\b", said)), None)
    if found is None:
        return Grade(Verdict.WRONG, f"it mentions none of {shown(written(list(accepted)))}", accepted)
    return Grade(Verdict.RIGHT, f"it mentions {shown(found)!r}", accepted, (found,))


def _plain(text: str) -> str:
    return _MARKS.sub("", text).lower().replace("'", '"')
