"""What the doctor reports about recordings: which files there are, and what they lack for which purpose."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from concertino import Finding, ProviderSettings, UsageError

from .declaration import SETTINGS, files_of, pool_names
from .files import read
from .recording import Recording

_TABLE = "[providers.replay]"


def findings(settings: ProviderSettings) -> Iterator[Finding]:
    """Look at every file, and at all of them together."""
    settings.check(SETTINGS)
    files = files_of(settings)
    if not files:
        text = f'{_TABLE} names no files, so no model is published; files = ["example"] shows two invented ones'
        yield Finding("ok", "replay", text)
        return
    broken = False
    for file in files:
        found = list(_file(file))
        broken = broken or any(finding.level == "error" for finding in found)
        yield from found
    if broken:
        return
    try:
        pool_names(read(*files).models, settings.get("names", {}))
    except UsageError as error:
        yield Finding("error", "replay", str(error), f"correct {_TABLE}")


def _file(file: Path) -> Iterator[Finding]:
    subject = f"replay {file}"
    try:
        recording = read(file)
    except UsageError as error:
        yield Finding("error", subject, str(error), f"correct the file, or files in {_TABLE}")
        return
    count = sum(len(given) for by in recording.answers.values() for given in by.values())
    text = ", ".join(
        f"{number} {noun if number == 1 else f'{noun}s'}"
        for number, noun in (
            (len(recording.models), "model"),
            (len(recording.questions), "question"),
            (count, "answer"),
        )
    )
    yield Finding("ok", subject, text)
    yield from _gaps(subject, recording)


def _gaps(subject: str, recording: Recording) -> Iterator[Finding]:
    """What was not recorded."""
    every = len(recording.questions)
    partial = [model for model, by in recording.answers.items() if len(by) < every]
    if partial:
        least = min(len(recording.answers[model]) for model in partial)
        lack = "1 model lacks" if len(partial) == 1 else f"{len(partial)} models lack"
        text = f"{lack} answers to some questions; {partial[0]} is one, the least has {least}"
        yield Finding("warning", subject, text, "compare models on the questions that all of them have")
    answers = [answer for by in recording.answers.values() for given in by.values() for answer in given]
    uncounted = sum(answer.input_tokens is None or answer.output_tokens is None for answer in answers)
    if uncounted:
        text = f"{uncounted} of {len(answers)} answers have no token counts; their usage is estimated from the text"
        yield Finding("warning", subject, text, "add input_tokens and output_tokens where they are known")
    texts: dict[str, list[str]] = {}
    for question in recording.questions.values():
        found = recording.index.find(question.text) if question.text else []
        if len(found) > 1:
            texts.setdefault(found[0], found)
    for same in texts.values():
        text = f"the questions {' and '.join(map(repr, same))} have one text, so only a line 'id: …' tells them apart"
        yield Finding("warning", subject, text, f"ask them with a line 'id: {same[0]}'")
