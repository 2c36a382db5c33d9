"""Commands as JSON data: enough of a command to complete its words, without the module that it comes from.

    {"help": "…", "commands": {"run": {"help": "…", "params": [{"opts": ["--seed"], "help": "…", "type": "text"}]}}}

Invariant: a command that is made of such data does nothing when it is called; its words, its options and their kinds of
values are those of the real one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

_TEXT = 72
"""Characters of a help."""


def tree_of(command: click.Command) -> dict[str, Any]:
    """A command as data; the modules of all its subcommands are imported."""
    data: dict[str, Any] = {"help": command.get_short_help_str(_TEXT)}
    if isinstance(command, click.Group):
        context = click.Context(command)
        inner = {name: command.get_command(context, name) for name in command.list_commands(context)}
        data["commands"] = {name: tree_of(each) for name, each in inner.items() if each is not None}
    data["params"] = [_param(each) for each in command.params if not getattr(each, "hidden", False)]
    return data


def command_of(name: str, data: Mapping[str, Any]) -> click.Command:
    """A command that can be completed, from data."""
    params = [_made(each) for each in data.get("params", ())]
    if "commands" not in data:
        return click.Command(name, params=params, help=data.get("help"))
    inner = {each: command_of(each, tree) for each, tree in data["commands"].items()}
    return click.Group(name, commands=inner, params=params, help=data.get("help"))


def _param(param: click.Parameter) -> dict[str, Any]:
    kind, choices = "text", None
    if isinstance(param.type, click.Choice):
        kind, choices = "choice", [str(choice) for choice in param.type.choices]
    elif isinstance(param.type, (click.Path, click.File)):
        kind = "dir" if getattr(param.type, "file_okay", True) is False else "file"
    data: dict[str, Any] = {"opts": [*param.opts], "type": kind, "nargs": param.nargs}
    if choices is not None:
        data["choices"] = choices
    if isinstance(param, click.Option):
        text = " ".join((param.help or "").split())
        more = {"option": True, "flag": bool(param.is_flag), "multiple": param.multiple, "help": text[:_TEXT]}
        data.update(more, secondary=[*param.secondary_opts])
    return data


def _made(data: Mapping[str, Any]) -> click.Parameter:
    kinds: Mapping[str, Any] = {"file": click.Path(), "dir": click.Path(file_okay=False)}
    kind = click.Choice(data["choices"]) if data["type"] == "choice" else kinds.get(data["type"], click.STRING)
    if not data.get("option"):
        return click.Argument(data["opts"], type=kind, nargs=data["nargs"], required=False)
    if data["flag"]:
        names = "/".join(filter(None, [data["opts"][-1], *data["secondary"][:1]]))
        return click.Option([*data["opts"][:-1], names], is_flag=True, help=data["help"])
    return click.Option(data["opts"], type=kind, nargs=data["nargs"], multiple=data["multiple"], help=data["help"])
