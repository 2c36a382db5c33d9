"""Recorded models as members of a pool: their names, descriptions and prices.

Invariant: a name means one recorded model. Equal names are an error that says how to change one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from concertino import ModelSpec, Pool, Prices, ProviderSettings, SpecError, UsageError
from concertino.schema import suggestion

from .examples import EXAMPLE
from .files import read
from .model import ReplayModel
from .recording import VERDICTS, RecordedAnswer, RecordedModel, Recording

SETTINGS = ("files", "names", "describe", "verdict", "latency", "draw")
"""Keys of `[providers.replay]`."""
OPTIONS = ("file", "model", "describe", "verdict", "latency", "draw")
"""Keys of `[models."replay/…"]`."""
_DESCRIBE = ("plain", "profile")
_UNFIT = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST = 60
"""Characters of a name: `ask_` is put before it where a model is offered as an agent."""


def pool(*paths: str | Path, **options: Any) -> Pool:
    """A pool of all recorded models, each of which may also be called as an agent, `ask_<name>`.

    Args:
        paths: files, or folders that hold a `pool.jsonl`.
        options: as for `models`.

    Raises:
        RecordingError: a file cannot be read.
        UsageError: an option or a name is invalid.
    """
    return Pool(models(*paths, **options)).offering("*")


def models(
    *paths: str | Path,
    names: Mapping[str, str] | None = None,
    prices: Mapping[str, Prices] | None = None,
    describe: str = "plain",
    verdict: str = "",
    latency: float = 0.0,
    draw: bool = False,
) -> list[ModelSpec]:
    """The recorded models of some files.

    Args:
        paths: files, or folders that hold a `pool.jsonl`.
        names: pool names by recorded name, for models whose names do not fit or are equal.
        prices: $ per million tokens by pool name; else those of the files.
        describe: `plain` says what was recorded; `profile` also what share of it was right, by group.
        verdict: which of the recorded verdicts a profile counts; the strictest by default.
        latency: what recorded seconds are multiplied with; 0 answers at once.
        draw: requests without a seed get any of several recorded samples, not always the first.

    Raises:
        RecordingError: a file cannot be read; names file and line.
        UsageError: an option or a name is invalid; says which.
    """
    _check_options(describe, verdict, latency, draw)
    recording = read(*paths)
    named = pool_names(recording.models, names or {})
    for given in prices or {}:
        if given not in named.values():
            raise UsageError(f"prices: there is no model {given!r}; {_near(given, list(named.values()))}")
    specs = []
    for model, name in named.items():
        spec = _spec(recording, model, name, describe, verdict, latency, draw)
        specs.append(spec.with_(prices=prices[name]) if prices and name in prices else spec)
    return specs


def pool_names(recorded: Sequence[str], names: Mapping[str, str]) -> dict[str, str]:
    """The pool name of each recorded model: its own, without the part before the last slash and what does not fit.

    Raises:
        UsageError: two models would have one name, or `names` has a model that was not recorded.
    """
    for given in names:
        if given not in recorded:
            raise UsageError(f"names: there is no recorded model {given!r}; {_near(given, recorded)}")
    found: dict[str, str] = {}
    owners: dict[str, str] = {}
    for model in recorded:
        name = names.get(model) or _UNFIT.sub("-", model.rpartition("/")[2]).lstrip("_.-")[:_LONGEST].rstrip("-.")
        if not name or _UNFIT.search(name):
            raise UsageError(f'the recorded model {model!r} needs a name; write names = {{"{model}" = "…"}}')
        if name in owners:
            raise UsageError(
                f"{owners[name]!r} and {model!r} would both be called {name!r}; give one of them another name: "
                f'names = {{"{model}" = "…"}}'
            )
        owners[name], found[model] = model, name
    return found


def published(settings: ProviderSettings) -> list[ModelSpec]:
    """The models of the files that the settings name; none where they name none.

    Raises:
        UsageError: a setting is invalid, or a file cannot be read.
    """
    settings.check(SETTINGS)
    names = settings.get("names", {})
    if not isinstance(names, Mapping) or not all(isinstance(name, str) for name in names.values()):
        raise UsageError(f'names = {names!r}; expected pool names by recorded name: {{"a/b" = "b"}}')
    paths = files_of(settings)
    if not paths:
        return []
    options = {key: settings[key] for key in ("describe", "verdict", "latency", "draw") if key in settings}
    return models(*paths, names=names, **options)


def files_of(settings: ProviderSettings) -> list[Path]:
    """The files that the settings name, from the folder of their own file; `example` is the built-in recording."""
    files = settings.get("files", [])
    if isinstance(files, str) or not isinstance(files, Iterable) or not all(f and isinstance(f, str) for f in files):
        raise UsageError(f'files = {files!r}; expected a list of paths: ["recorded.jsonl"]')
    return [EXAMPLE if file == "example" else settings.folder / Path(file).expanduser() for file in files]


def declare(name: str, options: Mapping[str, Any]) -> ModelSpec:
    """One recorded model under a name of its own.

    Raises:
        SpecError: an option is unknown or invalid; names it, what was given and what is expected.
        RecordingError: the file cannot be read.
    """
    for key in options:
        if key not in OPTIONS:
            raise SpecError(f"replay/{name}: unknown option {key!r}; {_near(key, OPTIONS)}")
    for key in ("file", "model"):
        if not isinstance(options.get(key), str) or not options[key]:
            raise SpecError(f"replay/{name}: {key} = {options.get(key)!r}; expected a text")
    describe, verdict = options.get("describe", "plain"), options.get("verdict", "")
    latency, draw = options.get("latency", 0.0), options.get("draw", False)
    _check_options(describe, verdict, latency, draw)
    recording = read(Path(options["file"]).expanduser())
    model = options["model"]
    if model not in recording.models:
        raise SpecError(f"replay/{name}: {options['file']} has no model {model!r}; {_near(model, recording.models)}")
    return _spec(recording, model, name, describe, verdict, latency, draw).with_(options=dict(options))


def _check_options(describe: Any, verdict: Any, latency: Any, draw: Any) -> None:
    if describe not in _DESCRIBE:
        raise UsageError(f"describe = {describe!r}; expected 'plain' or 'profile'")
    if verdict and verdict not in VERDICTS:
        raise UsageError(f"verdict = {verdict!r}; {_near(str(verdict), VERDICTS)}")
    if isinstance(latency, bool) or not isinstance(latency, (int, float)) or not 0 <= latency < float("inf"):
        raise UsageError(
            f"latency = {latency!r}; expected a number, 0 or more: what recorded seconds are multiplied by"
        )
    if not isinstance(draw, bool):
        raise UsageError(f"draw = {draw!r}; expected true or false")


def _spec(
    recording: Recording, model: str, name: str, describe: str, verdict: str, latency: float, draw: bool
) -> ModelSpec:
    known = recording.facts.get(model, RecordedModel())
    answers = [answer for given in recording.answers[model].values() for answer in given]
    if not answers:
        raise UsageError(f"{', '.join(recording.sources)}: the model {model!r} is described and has no answer")
    text = known.description or _plain(recording, model)
    if describe == "profile":
        text = f"{text} {profile(recording, model, verdict)}"
    # A long recorded answer must not be cut by the default bound of a model.
    most = max((answer.output_tokens or 0 for answer in answers), default=0)
    make = partial(ReplayModel, recording, model, latency=float(latency), draw=draw)
    # No timeout: a recorded answer never hangs, and `latency` may replay long ones.
    return ModelSpec(name, make, text, known.prices, known.context, max_tokens=max(4096, most), timeout=None)


def _plain(recording: Recording, model: str) -> str:
    count = len(recording.answers[model])
    questions = "1 question" if count == 1 else f"{count} questions"
    return f"Recorded answers of {model} to {questions} of {', '.join(recording.sources)}."


def profile(recording: Recording, model: str, verdict: str = "") -> str:
    """What share of a model's recorded answers was right, in all and by group, and how long they were.

    Raises:
        UsageError: these answers were not graded, or not with this verdict.
    """
    known = recording.verdict_names()
    chosen = verdict or next(iter(known), "")
    graded: dict[str, list[bool]] = {}
    answers: list[RecordedAnswer] = []
    for key, given in recording.answers[model].items():
        answers += given
        verdicts = [answer.verdicts.get(chosen) for answer in given]
        graded.setdefault(recording.questions[key].group, []).extend(v for v in verdicts if v is not None)
    everything = [v for values in graded.values() for v in values]
    if not everything:
        has = f"they have {', '.join(known)}" if known else "they have no verdicts at all"
        wanted = f"the verdict {chosen!r}" if chosen else "a verdict"
        raise UsageError(f"describe = 'profile' needs {wanted}, and the answers of {model!r} lack it; {has}")
    text = f"Right: {_share(everything)}, by {chosen}"
    groups = [f"{group} {_share(values)}" for group, values in graded.items() if group and values]
    text += f": {', '.join(groups)}." if groups else "."
    written = [answer.output_tokens for answer in answers if answer.output_tokens is not None]
    return f"{text} Median length {median(written):.0f} tokens." if written else text


def _share(verdicts: Sequence[bool]) -> str:
    return f"{sum(verdicts) / len(verdicts):.0%} of {len(verdicts)}"


def _near(word: str, known: Sequence[str]) -> str:
    return suggestion(word, known)
