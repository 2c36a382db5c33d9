"""`concertino search-index`: build the index of a corpus in advance, so that no call has to wait for it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import click
from concertino import UsageError
from concertino.cli.terminal import say, say_json

from .options import IndexOptions


@click.command("search-index")
@click.argument("corpus", envvar="CONCERTINO_SEARCH_CORPUS", type=click.Path(path_type=Path))
@click.option("--analyser", envvar="CONCERTINO_SEARCH_ANALYSER", default="english", show_default=True)
@click.option("--cache", type=click.Path(path_type=Path), help="Where indexes are kept; CONCERTINO_SEARCH_CACHE.")
@click.option("--json", "as_json", is_flag=True, help='Print {"passages", "seconds", "folder"}.')
def search_index(corpus: Path, analyser: str, cache: Path | None, as_json: bool) -> None:
    """Build the index of CORPUS: a JSON Lines file, a document, or a folder of these."""
    from .index import open_index

    began = time.monotonic()
    try:
        index = asyncio.run(open_index(corpus, IndexOptions(analyser=analyser), cache=cache, trust_stamps=False))
    except UsageError as error:
        raise click.ClickException(str(error)) from None
    seconds = time.monotonic() - began
    if as_json:
        data = {"passages": len(index.passages), "seconds": round(seconds, 3), "folder": str(index.folder)}
        say_json(data)
    else:
        say(f"{len(index.passages):,} passages in {seconds:.1f} s: {index.folder}")
