"""What a client brings for the calls of a suspended run: results of its own tools, and decisions about other calls.

Invariant: answers belong to one run, and each to a call of it that waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from .api_error import ApiError
from .client_tools import call_key, split_key
from .run_story import RunStory


class GivenAnswer(NamedTuple):
    """One answer as a client gives it.

    Attributes:
        key: the id of the call, as the client has read it.
        answer: the result as text, or whether the call may be made.
        where: in the body, for messages.
    """

    key: str
    answer: str | bool
    where: str


@dataclass(frozen=True)
class CallAnswers:
    """The answers for one run.

    Attributes:
        given: results of the client's tools, by the id of the call.
        decided: whether calls may be made, by the id of the call.
    """

    run_id: str
    given: Mapping[str, str]
    decided: Mapping[str, bool]

    @classmethod
    def of(cls, answers: Iterable[GivenAnswer]) -> CallAnswers:
        """Answers as they came.

        Raises:
            ApiError: they belong to no run of a server, or to several.
        """
        given: dict[str, str] = {}
        decided: dict[str, bool] = {}
        runs = set()
        for key, answer, where in answers:
            run_id, call_id = split_key(key)
            runs.add(run_id)
            if not call_id or len(runs) > 1:
                raise ApiError(
                    400,
                    f"{where}: {key[:80]!r} is no call that this answer can be for; send the results of one answer's "
                    "calls, each under the id that the call had",
                    param=where,
                    code="invalid_value",
                )
            if isinstance(answer, bool):
                decided[call_id] = answer
            else:
                given[call_id] = answer
        return cls(runs.pop(), given, decided)

    def check(self, story: RunStory) -> int:
        """Compare with the calls that wait.

        Returns:
            The number of the record behind which the run continues.

        Raises:
            ApiError: the run does not wait, or for others.
        """
        if not story.suspended:
            raise ApiError(409, "the calls of this run do not wait: they were answered before", code="conflict")
        mine = {call.id for call in story.for_client}
        others = set(story.waiting) - mine
        if unknown := sorted((set(self.given) - mine) | (set(self.decided) - others)):
            there = ", ".join(call_key(self.run_id, each) for each in sorted(story.waiting))
            raise ApiError(400, f"{unknown[0]!r}: no such call waits; those that wait: {there}", code="invalid_value")
        if self.given and (missing := sorted(mine - set(self.given))):
            key = call_key(self.run_id, missing[0])
            raise ApiError(
                400, f"the result of the call {key!r} is missing; send those of all calls", code="invalid_value"
            )
        return story.place
