"""`concertino init`: looks at what there is, asks, and writes a settings file, a pool file and a program that runs.

Invariant: a file that is there is never replaced without `--force`, and nothing is written before everything is known.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

import click

from concertino.core.errors import UsageError

from . import complete
from .options import common_options
from .output import write_json
from .terminal import ask, say
from .trust import trust_file

if TYPE_CHECKING:
    from .surroundings import Candidate, Surroundings

FILES = ("concertino.toml", "pool.toml", "app.py")
_QUESTION = "How many r's are in strawberry?"


@click.command("init")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path())
@click.option(
    "--model", metavar="NAME", help="The model that leads, such as openai/NAME.", shell_complete=complete.models
)
@click.option(
    "--member",
    "members",
    multiple=True,
    metavar="PATTERN",
    help="What it may call, such as 'code/*'; 'none' for nothing but the program's own tool.",
    shell_complete=complete.patterns,
)
@click.option("--yes", "-y", is_flag=True, help="Ask nothing: take what is found, or what the options say.")
@click.option("--force", is_flag=True, help="Replace files that are there.")
@click.option("--no-probe", is_flag=True, help="Do not look for model servers on this machine.")
@common_options
def init(
    folder: Path,
    model: str | None,
    members: tuple[str, ...],
    yes: bool,
    force: bool,
    no_probe: bool,
    as_json: bool,
) -> None:
    """Look at what there is, ask, and write concertino.toml, pool.toml and app.py into FOLDER (by default here).

    Looks for keys of services in the environment, for model servers at their default addresses on this machine, and
    for installed members. `python app.py` then asks a question.

    JSON: {"folder", "files", "model", "members", "lacks", "next"}; with --json nothing is asked
    """
    from concertino.plugins import default_manager

    from .surroundings import look_around

    _refuse_existing(folder, force)
    asking = not (yes or as_json)
    if asking and not sys.stdin.isatty():
        raise UsageError("nobody can be asked, because stdin is no terminal; give --yes, and --model NAME")
    found = look_around(default_manager(), probe=not no_probe)
    leader = _chosen(model, found, asking)
    patterns = _members(members, leader, found, asking)
    lacks = _checked(leader, patterns)
    written = _write(folder, _texts(leader, patterns))
    steps = [*([f"cd {shlex.quote(str(folder))}"] if folder != Path() else []), "python app.py"]
    if as_json:
        data = {"folder": str(folder), "files": written, "model": leader.name, "members": list(patterns)}
        write_json({**data, "lacks": lacks, "next": steps})
        return
    missing = [f"{leader.name} cannot lead yet: {lacks}", ""] if lacks else []
    say("\n".join([*written, "", *missing, "next:", *(f"  {step}" for step in steps)]))


def _refuse_existing(folder: Path, force: bool) -> None:
    there = [name for name in FILES if (folder / name).exists()]
    if there and not force:
        shown = ", ".join(str(folder / name) for name in there)
        verb = "is" if len(there) == 1 else "are"
        raise UsageError(f"{shown} {verb} there already; --force replaces them, or choose another FOLDER")


# -- choosing ----------------------------------------------------------------------------------------------------------


def _chosen(model: str | None, found: Surroundings, asking: bool) -> Candidate:
    """The model that leads: as given, else as chosen, else the first that was found."""
    from .surroundings import Candidate

    if model is not None:
        return next((each for each in found.candidates if each.name == model), Candidate(model, "as given"))
    if not asking:
        if not found.candidates:
            hint = f"; {found.hints[0]}" if found.hints else ""
            raise UsageError(f"no model was found that can lead; give --model NAME, or set the key of a service{hint}")
        return found.candidates[0]
    for number, each in enumerate(found.candidates, 1):
        say(f"{number:>3}  {each.name}  ({each.why})", error=True)
    for service in found.unnamed:
        say(f"  -  {service}/MODEL  (its key is set; type the name of a model)", error=True)
    for hint in found.hints:
        say(f"  -  {hint}", error=True)
    default = "1" if found.candidates else None
    answer = ask("Which model leads? (a number, or provider/name)", default).strip()
    if answer.isdecimal():
        if not 1 <= int(answer) <= len(found.candidates):
            raise UsageError(f"there is no model {answer} in the list; give 1 to {len(found.candidates)}, or a name")
        return found.candidates[int(answer) - 1]
    return _chosen(answer, found, asking)


def _members(given: Sequence[str], leader: Candidate, found: Surroundings, asking: bool) -> tuple[str, ...]:
    """Patterns of what may be called."""
    if given:
        return () if tuple(given) == ("none",) else tuple(given)
    toy = leader.name.startswith("toy/")
    # The toy's own members solve nothing but its questions, and its leader knows no others.
    proposed = ["toy/*"] if toy else [f"{name}/*" for name, _ in found.providers if name != "toy"]
    if not asking:
        return tuple(proposed)
    for name, count in found.providers:
        say(f"     {name}/*  ({count})", error=True)
    text = "What may it call? (patterns, or none)"
    answer = ask(text, ", ".join(proposed) or "none")
    return tuple(each for each in re.split(r"[,\s]+", answer.strip()) if each and each != "none")


def _checked(leader: Candidate, patterns: Sequence[str]) -> str:
    """What keeps the leader from leading; empty for nothing. What cannot be is refused before anything is written."""
    from concertino.plugins import default_manager
    from concertino.pool.pool import Pool

    from .leaders import leader_of

    manager = default_manager()
    if "/" not in leader.name:
        raise UsageError(f"--model {leader.name!r}: expected provider/name, such as openai/{leader.name}")
    declared = [manager.declare(leader.name, dict(leader.options))] if leader.options else []
    pool = Pool(manager.specs([*patterns, leader.name], declared))
    seen = leader_of(pool.model(leader.name), pool)
    return "; ".join(filter(None, [seen.why, seen.step]))


# -- writing -----------------------------------------------------------------------------------------------------------


def _texts(leader: Candidate, patterns: Sequence[str]) -> dict[str, str]:
    """The files: texts by name."""
    from .surroundings import TOY_LEADER

    toy = leader.name == TOY_LEADER
    lines = [f"{key} = {_quoted(value)}" for key, value in leader.options]
    table = "\n".join(["", f"[models.{_quoted(leader.name)}]", *lines, ""]) if lines else ""
    words = {
        "members": ", ".join(map(_quoted, patterns)),
        "models": table,
        "leader": _quoted(leader.name),
        "imports": "from concertino_toy.demo import demo_question\n" if toy else "",
        "arguments": "" if toy else 'instructions="Answer in one sentence."',
        "question": "demo_question()[0]" if toy else _quoted(_QUESTION),
        "example": "" if toy else f' "{_QUESTION}"',
    }
    return {name: _fill(name, words) for name in FILES}


def _quoted(text: str) -> str:
    """A text as TOML and Python write it."""
    return json.dumps(text, ensure_ascii=False)


def _fill(name: str, words: Mapping[str, str]) -> str:
    text = files(__package__).joinpath("_templates", f"{name}.tmpl").read_text(encoding="utf-8")
    return Template(text).substitute(words)


def _write(folder: Path, texts: Mapping[str, str]) -> list[str]:
    written = []
    for name, text in texts.items():
        file = folder / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{file}: cannot be written: {error.strerror}; choose another FOLDER") from error
        written.append(str(file))
        if file.suffix == ".toml":
            trust_file(file)  # what it says was just chosen
    return written
