"""A recording: questions, and what each of several models answered to them, once or several times.

Invariant: it is never changed after it was read, so that models share it; what was not recorded is None and never a
guess.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from concertino import Prices

from .questions import QuestionIndex

VERDICTS = ("correct", "numeric_correct", "strict_success", "success")
"""Names of verdicts that recordings may have."""
_PREFERRED = ("numeric_correct", "strict_success", "correct", "success")


@dataclass(frozen=True)
class RecordedQuestion:
    """A recorded question.

    Attributes:
        id: unique in the recording.
        text: as it was asked; empty where a question is known by its id alone.
        group: what it belongs to, "humaneval"; empty where there is one group.
        gold: the right answer where the file has it.
    """

    id: str
    text: str
    group: str = ""
    gold: str = ""


@dataclass(frozen=True)
class RecordedAnswer:
    """One recorded answer.

    Attributes:
        text: what the model wrote; empty where it gave no answer.
        input_tokens, output_tokens: as the server counted them; None if it did not.
        seconds: how long it took.
        usd: what it cost, where that was recorded.
        verdicts: the verdicts of graders, by name; None where one could not decide.
        finish_reason: why it ended.
        several_turns: the tokens are those of a conversation of which only the last text was recorded.
    """

    text: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float | None = None
    usd: float | None = None
    verdicts: Mapping[str, bool | None] = field(default_factory=dict)
    finish_reason: str = "stop"
    several_turns: bool = False


@dataclass(frozen=True)
class RecordedModel:
    """What a file says about a model itself."""

    prices: Prices | None = None
    description: str = ""
    context: int | None = None


class Recording:
    """A recording of questions and answers.

    Args:
        questions: by id.
        answers: by model, then by question; several samples in the order of the file.
        facts: what is known of the models themselves.
        sources: names of the files, for descriptions.
    """

    def __init__(
        self,
        questions: Mapping[str, RecordedQuestion],
        answers: Mapping[str, Mapping[str, Sequence[RecordedAnswer]]],
        facts: Mapping[str, RecordedModel] | None = None,
        sources: Sequence[str] = (),
    ) -> None:
        self.questions = dict(questions)
        self.answers = {model: {q: tuple(given) for q, given in by.items()} for model, by in answers.items()}
        self.facts = dict(facts or {})
        self.sources = tuple(sources)

    @property
    def models(self) -> tuple[str, ...]:
        """The models, under the names that the file gives them, in its order."""
        return tuple(self.answers)

    @cached_property
    def index(self) -> QuestionIndex:
        """Its questions by their words; made once."""
        return QuestionIndex({question.id: question.text for question in self.questions.values()})

    def verdict_names(self) -> tuple[str, ...]:
        """The verdicts that its answers have, the strictest first."""
        seen = {name for by in self.answers.values() for given in by.values() for a in given for name in a.verdicts}
        return tuple(name for name in _PREFERRED if name in seen)

    def rows(self, verdict: str = "") -> Iterator[dict[str, Any]]:
        """Every answer as plain data, such as a router is fitted to.

        Args:
            verdict: which verdict is `correct`; by default the strictest that the recording has.

        Yields:
            `id`, `question`, `group`, `gold`, `model`, `sample`, `text`, `correct` (None if it was not graded),
            `input_tokens`, `output_tokens`, `seconds` and `usd` (None where they were not recorded).
        """
        chosen = verdict or next(iter(self.verdict_names()), "")
        for model, by_question in self.answers.items():
            for key, given in by_question.items():
                question = self.questions[key]
                about = {"id": key, "question": question.text, "group": question.group, "gold": question.gold}
                for sample, answer in enumerate(given):
                    yield {
                        **about,
                        "model": model,
                        "sample": sample,
                        "text": answer.text,
                        "correct": answer.verdicts.get(chosen),
                        "input_tokens": answer.input_tokens,
                        "output_tokens": answer.output_tokens,
                        "seconds": answer.seconds,
                        "usd": answer.usd,
                    }
