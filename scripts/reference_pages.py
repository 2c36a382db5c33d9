"""Write the pages of the reference that are made from code: the command line, and the built-in members.

    python scripts/reference_pages.py            write them
    python scripts/reference_pages.py --check    exit with 1 if one of them is not what the code says

Invariant: a page depends on the code alone, not on the machine, its settings or what else is installed.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator

import click
from tree import ROOT

PAGES = ROOT / "docs" / "reference"
_COMMON = {"--json", "--debug", "--help"}

_MORE = {
    "concertino pool describe": "[describe models](../how-to/describe-models.md)",
    "concertino check": "[test a plugin](../how-to/test-a-plugin.md)",
    "concertino run": "[watch a run](../how-to/watch-a-run.md), [resume](../how-to/resume-and-replay.md)",
}
"""Pages that say more of a verb."""

CLI = """\
# Command line

```text
concertino VERB [OPTIONS] [ARGUMENTS]
```

Results go to stdout, progress and errors to stderr. Every verb takes these options:

| Option | Meaning |
|---|---|
| `--json` | print JSON, in the form that `--help` of the verb describes; errors too: `{"error": {"type", "message"}}` |
| `--debug` | show the traceback of an error |
| `-h`, `--help` | explain the verb |

| Exit code | Meaning |
|---|---|
| 0 | done; the answer, the call or the check is good |
| 1 | the run, the call or the check failed |
| 2 | wrong usage: nothing has run |
| 130 | Ctrl-C; what was done is kept |

Where a verb takes `--pool`, `--only`, `--without` and `--bind` and is given none of them, it uses the pool file that
the [settings](settings.md) name, else everything installed. Plugins may add verbs; `concertino plugins --load` names
them.
"""


# -- the command line ----------------------------------------------------------------------------------------------


def cli_page() -> str:
    """`cli.md`: every verb with its help and its options."""
    from concertino.cli import command_line

    return "\n".join([CLI, *(_verb(path, command) for path, command in _verbs(command_line, "concertino"))])


def _verbs(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group, info_name=path)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from _verbs(command, f"{path} {name}")


def _verb(path: str, command: click.Command) -> str:
    context = click.Context(command, info_name=path)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    if isinstance(command, click.Group):
        usage = re.sub(r" COMMAND.*", " VERB", usage)
    parts = [f"## `{path}`\n", f"```text\n{usage}\n```\n"]
    for paragraph in (command.help or "").replace("\b", "").split("\n\n"):
        text = _one_line(paragraph)
        if text and not text.startswith("JSON"):
            parts.append(_filled(text) + "\n")
    if path in _MORE:
        parts.append(f"More: {_MORE[path]}.\n")
    options = [p for p in command.params if isinstance(p, click.Option) and not _COMMON & set(p.opts)]
    if options:
        parts += ["| Option | Meaning |\n|---|---|", *(_option(option, context) for option in options), ""]
    return "\n".join(parts)


def _option(option: click.Option, context: click.Context) -> str:
    names = [*option.opts, *option.secondary_opts]
    names.sort(key=lambda name: name.count("-") > 1)
    cell = ", ".join(f"`{name}`" for name in names[:-1]) + (", " if names[1:] else "")
    text = re.sub(r"'([^' ]+)'", r"`\1`", _one_line(option.help or ""))
    if option.multiple:
        text += " May be given several times."
    if isinstance(option.type, click.Choice):
        text = (text.rstrip(".") + ". " if text else "") + _choices(option.type)
    if option.show_default and option.default is not None and not option.is_flag:
        text = f"{text} Default: `{option.default}`.".strip()
    return f"| {_cell(f'{cell}`{names[-1]}{_metavar(option, context)}`')} | {_cell(text)} |"


def _choices(kind: click.Choice[str]) -> str:
    return "One of " + ", ".join(f"`{choice}`" for choice in kind.choices) + "."


def _metavar(option: click.Option, context: click.Context) -> str:
    if option.is_flag:
        return ""
    if isinstance(option.type, click.Choice):
        return " WORD"
    shown = option.make_metavar(context)
    return " NUMBER" if "INTEGER" in shown else f" {shown}"


# -- text ----------------------------------------------------------------------------------------------------------


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _filled(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


# -- writing -------------------------------------------------------------------------------------------------------

MADE = {"cli.md": cli_page}
"""The pages that this script writes."""


def main() -> None:
    """Write the pages, or check them."""
    stale = [name for name, make in MADE.items() if (PAGES / name).read_text(encoding="utf-8") != make()]
    if "--check" in sys.argv[1:]:
        sys.exit(f"not what the code says: {', '.join(stale)}; run: make reference" if stale else 0)
    for name in stale:
        (PAGES / name).write_text(MADE[name](), encoding="utf-8")
        print(f"wrote docs/reference/{name}")


if __name__ == "__main__":
    main()
