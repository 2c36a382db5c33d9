"""`concertino train audit`: a file of episodes and a reward, checked before anything is trained."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from concertino import UsageError
from concertino.cli.terminal import say, say_json

from concertino_train.audit.checks import audit, read_episodes
from concertino_train.groups.filters import Filters
from concertino_train.rewards.installed import installed_rewards
from concertino_train.rewards.reward import Reward
from concertino_train.settings import did_you_mean


@click.command("audit")
@click.argument("episodes", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--reward", required=True, metavar="FILE|NAME", help="A YAML or JSON file, or the name of a reward.")
@click.option("--homogeneity", type=click.FloatRange(min=0, min_open=True), help="Filter groups with a smaller std.")
@click.option("--format", "format_", is_flag=True, help="Filter episodes with a text that lacks the exact form.")
@click.option("--invalid", is_flag=True, help="Filter episodes without an answer.")
@click.option("--overlong", is_flag=True, help="Filter episodes with a text that was cut off.")
@click.option("--force", is_flag=True, help="End with status 0 whatever is found.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
def audit_command(
    episodes: Path,
    reward: str,
    homogeneity: float | None,
    format_: bool,
    invalid: bool,
    overlong: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Audit a reward on EPISODES, a JSON Lines file: does spending ever pay, is there anything to learn from?

    Ends with status 1 if something fails that should not be trained on.

    JSON: {"reward", "ok", "figures", "findings": [{"level", "code", "seen", "change", "groups"}]}
    """
    try:
        filters = Filters(
            homogeneity=homogeneity, format=format_, invalid=invalid, overlong="drop" if overlong else "keep"
        )
        report = audit(read_episodes(episodes), _reward(reward), filters=filters if filters.any else None)
    except UsageError as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        say_json(report.to_json(), indent=2)
    else:
        say(report.text())
    if not report.ok and not force:
        sys.exit(1)


def _reward(word: str) -> Reward:
    """A file, or a name of what is installed."""
    catalogue = installed_rewards()
    if Path(word).is_file():
        return Reward.load(word, terms=catalogue.terms, presets=catalogue.presets)
    if word not in catalogue.presets:
        hint = did_you_mean(word, list(catalogue.presets))
        raise UsageError(f"--reward {word}: neither a file nor the name of a reward; {hint}")
    return catalogue.presets[word]
