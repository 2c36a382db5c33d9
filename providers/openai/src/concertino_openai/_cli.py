"""`concertino probe`."""

import click


@click.command("probe")
def probe() -> None:
    """Probe."""
