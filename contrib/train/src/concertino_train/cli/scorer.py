"""`concertino train scorer`: train a scorer of members, or measure one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from concertino.cli.terminal import say, say_json

if TYPE_CHECKING:
    from concertino_train.scorer.evaluation import ReadingFigure


@click.command("scorer")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--steps",
    type=click.IntRange(1),
    default=9_000,
    show_default=True,
    help="Steps over single sentences; as many follow over casts.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of all draws.")
@click.option("--wordnet", type=click.Path(path_type=Path, file_okay=False), help="Folder of WordNet's files.")
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True, help="What computes.")
@click.option("--workers", type=click.IntRange(0), default=1, show_default=True, help="Processes that draw batches.")
@click.option("--figures", is_flag=True, help="Train nothing; measure the scorer of FILE.")
@click.option("--test", is_flag=True, help="Measure on the test part: authors and topics for the last figures alone.")
@click.option("--casts", type=click.IntRange(1), default=300, show_default=True, help="Questions for each figure.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def scorer_command(
    file: Path,
    steps: int,
    seed: int,
    wordnet: Path | None,
    device: str,
    workers: int,
    figures: bool,
    test: bool,
    casts: int,
    as_json: bool,
) -> None:
    """Train a scorer of members and write it to FILE.

    It reads descriptions of members and says how often each is expected to be right on a question. The training takes
    about an hour of processor time, and continues where it stood if it is interrupted. The figures are of authors
    and topics that it did not read; settings may be chosen by them, but for those of --test.
    """
    from concertino import UsageError
    from concertino_scorer.scorer import Scorer

    from concertino_train.scorer import DEVELOPMENT, TEST, Voice, load_topics
    from concertino_train.scorer.evaluation import reading_figures
    from concertino_train.scorer.training import ScorerSettings, ScorerTraining
    from concertino_train.scorer.wordnet import DEBIAN

    if not figures:
        if not file.parent.is_dir():
            raise UsageError(f"{file}: no folder {file.parent}; create it first: mkdir -p {file.parent}")
        settings = ScorerSettings(matching_steps=min(4_000, steps), sentence_steps=steps, cast_steps=steps, seed=seed)
        state = file.with_suffix(".state")
        training = ScorerTraining(settings, state, _report, wordnet or DEBIAN, device=device, workers=workers)
        training.run().save(file)
        training.state.unlink()
    found = []
    voices = [Voice(author) for author in (TEST if test else DEVELOPMENT)]
    topics = load_topics("test" if test else "development")
    for figure in reading_figures(Scorer.load(file), voices, topics, casts=casts):
        found.append(figure)
        if not as_json:
            say(_line(figure))
    if as_json:
        say_json([_data(figure) for figure in found], indent=1)


def _report(line: str) -> None:
    say(line, error=True)


def _line(figure: ReadingFigure) -> str:
    low, high = figure.interval
    beside = "" if figure.heuristic is None else f", heuristic {figure.heuristic:.2f}"
    return f"{figure.what:<46} {figure.share:.2f} [{low:.2f}, {high:.2f}]   chance {figure.chance:.2f}{beside}"


def _data(figure: ReadingFigure) -> dict[str, object]:
    low, high = figure.interval
    return {
        "what": figure.what,
        "share": figure.share,
        "low": low,
        "high": high,
        "casts": figure.casts,
        "chance": figure.chance,
        "heuristic": figure.heuristic,
    }
