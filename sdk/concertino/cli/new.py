"""`concertino new plugin`: the skeleton of a distribution that installs, passes its tests and `concertino check`.

The files are templates (`_templates/*.tmpl`, with `$name` for what differs). For each kind that is asked for (tool,
agent, model, strategy) the package gets a module, a hook, examples and a test module.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from string import Template

import click

from concertino.core.errors import UsageError

from .options import common_options
from .output import write_json
from .terminal import say

KINDS = {
    "tool": ("ToolSpec",),
    "agent": ("AgentSpec", "Pool"),
    "model": ("ModelSpec",),
    "strategy": ("Strategy",),
}
"""What a plugin can publish, and the names of concertino that the hooks mention."""
_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")


@click.group("new")
def new() -> None:
    """Write the skeleton of a plugin."""


@new.command("plugin")
@click.argument("name")
@click.option("--tool", "kinds", flag_value="tool", multiple=True, help="With a tool; the default.")
@click.option("--agent", "kinds", flag_value="agent", multiple=True, help="With an agent.")
@click.option("--model", "kinds", flag_value="model", multiple=True, help="With a model.")
@click.option("--strategy", "kinds", flag_value="strategy", multiple=True, help="With a strategy.")
@click.option(
    "--dir",
    "parent",
    type=click.Path(path_type=Path),
    default=Path(),
    metavar="FOLDER",
    help="Where to put its folder.",
)
@common_options
def plugin(name: str, kinds: tuple[str, ...], parent: Path, as_json: bool) -> None:
    """Write a plugin as a distribution: package, tests, pyproject.toml, README.

    NAME is the first part of the names of its members and strategies; the distribution is called concertino-NAME.

    JSON: {"folder", "distribution", "package", "files"}
    """
    name = name.removeprefix("concertino-").removeprefix("concertino_")
    if not _NAME.fullmatch(name):
        raise UsageError(f"plugin name {name!r}: expected small letters and digits, parts joined by '-', such as words")
    folder = parent / f"concertino-{name}"
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is there already; choose another NAME or --dir, or remove it")
    chosen = [kind for kind in KINDS if kind in kinds] or ["tool"]
    written = _write(folder, skeleton(name, chosen))
    package = f"concertino_{name.replace('-', '_')}"
    if as_json:
        data = {"folder": str(folder), "distribution": f"concertino-{name}", "package": package, "files": written}
        write_json(data)
    else:
        steps = f"\n\nnext:\n  cd {folder}\n  pip install -e '.[test]'\n  pytest\n  concertino check {name}"
        say("\n".join(f"{folder}/{file}" for file in written) + steps)


def skeleton(name: str, kinds: list[str]) -> dict[str, str]:
    """The files of a plugin: texts by path inside its folder."""
    package = f"concertino_{name.replace('-', '_')}"
    many = [_plural(kind) for kind in kinds]
    words = {
        "name": name,
        "package": package,
        "distribution": f"concertino-{name}",
        "versions": _compatible(version("concertino")),
        "summary": " and ".join(filter(None, [", ".join(many[:-1]), many[-1]])).capitalize(),
        "specs": ", ".join(sorted({name for kind in kinds for name in KINDS[kind]})),
        "examples": "".join(_fill(f"{kind}.example", {}) for kind in kinds),
        "hooks": "".join(_fill(f"{kind}.hook", {}) for kind in kinds).rstrip("\n"),
        "commands": "".join(_fill(f"{kind}.command", {"name": name}) for kind in kinds),
    }
    texts = {
        "pyproject.toml": _fill("pyproject.toml", words),
        "README.md": _fill("README.md", words),
        ".gitignore": _fill("gitignore", words),
        f"src/{package}/__init__.py": _fill("init.py", words),
        f"src/{package}/py.typed": "",
    }
    for kind in kinds:
        texts[f"src/{package}/{_plural(kind)}.py"] = _fill(f"{kind}.py", words)
        texts[f"tests/test_{_plural(kind)}.py"] = _fill(f"{kind}.test", words)
    return texts


def _plural(kind: str) -> str:
    return "strategies" if kind == "strategy" else f"{kind}s"


def _fill(template: str, words: Mapping[str, str]) -> str:
    text = files(__package__).joinpath("_templates", f"{template}.tmpl").read_text(encoding="utf-8")
    return Template(text).substitute(words)


def _compatible(installed: str) -> str:
    """Versions that keep the promises of this one: `>=0.1,<0.2`, or `>=1.4,<2`."""
    major, minor = (int(part) for part in installed.split(".")[:2])
    return f">={major}.{minor},<{f'0.{minor + 1}' if major == 0 else major + 1}"


def _write(folder: Path, texts: Mapping[str, str]) -> list[str]:
    for place, text in texts.items():
        file = folder / place
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{file}: cannot be written: {error.strerror}; choose another --dir") from error
    return list(texts)
