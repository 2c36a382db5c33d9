"""One run as one file: the page, its data and its scripts, which needs nothing else and lets nothing else run.

Invariants: no text of the run is markup, because `<`, `>` and `&` stand in the data as escapes of JSON; only the script
and the style sheet whose hashes the page names are obeyed; nothing is fetched.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from concertino.core.private_files import open_private

from .run_file import RunFile

_MODULES = (
    "page_parts",
    "run_data",
    "row_list",
    "budget_lines",
    "timeline",
    "token_strip",
    "reward_table",
    "item_detail",
    "round_graph",
    "graph_view",
    "run_view",
    "file_main",
)
"""In an order in which each stands after those that it imports."""
_BLOCK = 200
"""Items whose bodies are read together."""
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def static(name: str) -> str:
    """A file of the page."""
    return (files(__package__) / "static" / name).read_text(encoding="utf-8")


@cache
def scripts() -> frozenset[str]:
    """The names of the modules of the pages."""
    names = (each.name for each in (files(__package__) / "static").iterdir())
    return frozenset(name for name in names if name.endswith(".js"))


def page_of(run: RunFile) -> Iterator[str]:
    """The page of a run, piece by piece."""
    script, style = bundle(), static("page.css")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'"
    )
    patch = run.patch()
    title = html.escape(f"run {patch['head']['run']}")
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n"
        '<body>\n<div id="page"><p>Reading …</p><noscript>This page needs JavaScript.</noscript></div>\n'
    )
    yield _data("run-data", {"patch": patch, "block": _BLOCK})
    total = len(run.fold.items)
    for begin in range(0, total, _BLOCK):
        yield _data(f"bodies-{begin // _BLOCK}", run.bodies(begin, begin + _BLOCK))
    yield f'<script type="module">{script}</script>\n</body>\n</html>\n'


def write_page_of(run: RunFile, path: Path) -> Path:
    """Write the page of a run; only its user may read it.

    Raises:
        OSError: it cannot be written.
    """
    with os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w", encoding="utf-8") as file:
        file.writelines(page_of(run))
    return path


@cache
def bundle() -> str:
    """The modules of the page as one; their names are different, so they need no imports."""
    whole = "".join(static(f"{name}.js") for name in _MODULES)
    without = re.sub(r"^import [^;]*;\n", "", whole, flags=re.MULTILINE)
    return re.sub(r"^export ", "", without, flags=re.MULTILINE)


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _data(name: str, value: Any) -> str:
    """Data of the page. A browser obeys nothing in an element of this type."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    inert = re.sub("[<>&]", lambda found: _ESCAPES[found[0]], text)
    return f'<script type="application/json" id="{name}">{inert}</script>\n'
