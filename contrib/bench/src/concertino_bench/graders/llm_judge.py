"""A model as judge, for answers that no rule can compare, and the judges of known benchmarks.

What a judge is told is data (`judge_form`). It sees question, accepted answers and the answer as data, and replies with
JSON that the executor checks. The invariants: a verdict that cannot be read is *unparsable*, never wrong; nothing is
asked about an empty answer; and what was judged once is not paid for again, if there is a folder to keep it in. How far
a judge can be trusted is a measurement of its own: `agreement`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from concertino import CallFailed, ChatRequest, Message, ProviderError, Sampling
from concertino.text import Quoting

from concertino_bench.tasks.grade import Grade, Grader, GraderServices, Submission, Verdict
from concertino_bench.tasks.task import Task

from .answers import spoken
from .base import json_of, shown
from .judge_form import JudgeForm, judge_form

# Characters of a question and of an answer that are sent: what is longer costs more than it tells a judge.
_LONGEST = 16_000


class LlmJudge(Grader):
    """Right if the model in the role `judge` says so.

    Args:
        cache: a folder for verdicts; without one nothing is kept.
        judge: which model judges, in your words; part of what a kept verdict is found by, so needed with `cache`.
        role: the role or name of the judge in the pool.
        max_tokens: of a reply.
    """

    name = "llm-judge"
    form: ClassVar[str] = "plain"

    def __init__(
        self, cache: str | Path | None = None, *, judge: str = "", role: str = "judge", max_tokens: int = 300
    ) -> None:
        if cache is not None and not judge:
            raise ValueError(
                "LlmJudge(cache=…) needs judge='which model it is': another model's verdicts are not its own"
            )
        self.role, self.max_tokens = role, max_tokens
        self._cache = Path(cache) if cache is not None else None
        self._judge = judge
        self.needs = (f"model:{role}",)

    @property
    def schema(self) -> Mapping[str, Any]:
        """What the judge's reply has to look like."""
        return self._form.schema

    async def grade(self, task: Task, submission: Submission, services: GraderServices) -> Grade:
        """Ask the judge."""
        if not task.answers:
            raise ValueError(f"{task.id} has no answers; the grader `{self.name}` needs one to compare with")
        # Without thoughts and documents, which could hold the right answer though it was not given.
        answer = spoken(submission.text).strip()
        if not answer:
            return Grade(Verdict.UNPARSABLE, "there is no answer to judge", task.answers)
        data = await self.verdict(self._request(task, answer), services)
        if isinstance(data, str):
            return Grade(Verdict.UNPARSABLE, data, task.answers)
        said, reason = str(data["verdict"]), shown(data["reason"], 240) or "no reason given"
        other = "" if said in ("right", "wrong") else f"{said}: "
        verdict = Verdict.RIGHT if said == "right" else Verdict.WRONG
        values = self._form.values(data)
        return Grade(verdict, f"the judge: {other}{reason}", task.answers, (shown(answer, 240),), values=values)

    @property
    def _form(self) -> JudgeForm:
        return judge_form(self.form)

    async def verdict(self, request: ChatRequest, services: GraderServices) -> Mapping[str, Any] | str:
        """The judge's reply to a request that asks for `schema`, kept or new; a text says why there is none."""
        key = self._key(request)
        kept = self._kept(key)
        if kept is not None:
            return kept
        try:
            reply = await services.ask(self.role, request)
        except (ProviderError, CallFailed) as error:
            return f"the judge did not answer: {shown(str(error))}"
        # A model server without structured output still writes JSON as text.
        data: Any = reply.data if reply.data is not None else json_of(reply.text)
        if not self._form.fits(data):
            return f"the judge's verdict cannot be read: {shown(reply.text) or 'nothing'}"
        self._keep(key, data)
        return dict(data)

    def _request(self, task: Task, answer: str) -> ChatRequest:
        accepted = [*task.answers, *_texts(task.metadata.get("aliases", ()))]
        data: dict[str, Any] = {
            # The ends are kept: a question's instruction and a solver's answer stand last.
            "question": task.question[-_LONGEST:],
            "accepted": accepted,
            "all": len(task.answers) > 1,
            "candidate": answer[-_LONGEST:],
        }
        # Half a surrogate pair in a reply cannot be sent as UTF-8.
        text = Quoting().json(json.dumps(data, ensure_ascii=False)).encode("utf-8", "replace").decode()
        messages = [Message("system", self._form.instructions), Message("user", text)]
        return ChatRequest(messages, sampling=Sampling(temperature=0.0, max_tokens=self.max_tokens), schema=self.schema)

    def _key(self, request: ChatRequest) -> str:
        # The pool binds the role, and this grader does not see to which model: hence the caller's own words for it.
        content = [self._judge, self.max_tokens, self.schema, [message.to_json() for message in request.messages]]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def _kept(self, key: str) -> Mapping[str, Any] | None:
        if self._cache is None:
            return None
        try:
            data = json.loads((self._cache / f"{key}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return data if self._form.fits(data) else None

    def _keep(self, key: str, data: Any) -> None:
        """Keep a verdict; a folder that cannot be written costs money, but no verdict."""
        if self._cache is None:
            return
        with contextlib.suppress(OSError):
            self._cache.mkdir(parents=True, exist_ok=True)
            # Written aside and moved: two processes may share the folder, and neither reads half a verdict.
            handle, temporary = tempfile.mkstemp(dir=self._cache, suffix=".part")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(data, file)
            Path(temporary).replace(self._cache / f"{key}.json")


class SimpleQaJudge(LlmJudge):
    """As `LlmJudge`, by the rules of SimpleQA: an answer can also be not attempted, which is not right."""

    name = "judge-simpleqa"
    form = "simpleqa"


class HleJudge(LlmJudge):
    """As `LlmJudge`, by the rules of HLE and BrowseComp; it also reads how sure the answer is."""

    name = "judge-hle"
    form = "hle"


class BrowseCompPlusJudge(LlmJudge):
    """As `HleJudge`, by the rules of BrowseComp-Plus: kinder to how an answer is written."""

    name = "judge-browsecomp-plus"
    form = "browsecomp-plus"


class FramesJudge(LlmJudge):
    """As `LlmJudge`, by the rules of FRAMES: the known answer has to be in what is said."""

    name = "judge-frames"
    form = "frames"


def _texts(aliases: Any) -> list[str]:
    return [alias for alias in aliases if isinstance(alias, str)] if not isinstance(aliases, str) else [aliases]
