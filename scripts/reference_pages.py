"""Write the pages of the reference that are made from code: the command line, the members, the issues of texts.

    python scripts/reference_pages.py            write them
    python scripts/reference_pages.py --check    exit with 1 if one of them is not what the code says

Invariant: a page depends on the code alone, not on the machine, its settings or what else is installed.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from notebook_drawing import drawing_page
from reference_issues import issues_page
from tree import ROOT

if TYPE_CHECKING:
    from concertino import Pool, ToolSpec
    from concertino_bench.metrics import Metric

PAGES = ROOT / "docs" / "reference"
_COMMON = {"--json", "--debug", "--help"}

_MORE = {
    "concertino pool describe": "[describe models](../how-to/describe-models.md)",
    "concertino serve": "[serve a pool](../how-to/serve-a-pool.md)",
    "concertino view": "[look at a run in a browser](../how-to/look-at-a-run-in-a-browser.md)",
    "concertino check": "[test a plugin](../how-to/test-a-plugin.md)",
    "concertino run": "[watch a run](../how-to/watch-a-run.md), [resume](../how-to/resume-and-replay.md)",
}
"""Pages that say more of a command."""

CLI = """\
# Command line

```text
concertino COMMAND [OPTIONS] [ARGUMENTS]
```

Results go to stdout, progress and errors to stderr. Every built-in command takes these options:

| Option | Meaning |
|---|---|
| `--json` | print JSON, as `--help` of the command describes it; errors too: `{"error": {"type", "message"}}` |
| `--debug` | show the traceback of an error |
| `-h`, `--help` | explain the command |

| Exit code | Meaning |
|---|---|
| 0 | done; the answer, the call or the check is good |
| 1 | the run, the call or the check failed |
| 2 | wrong usage: nothing has run |
| 130 | Ctrl-C; what was done is kept |

If a command takes `--pool`, `--only`, `--without` and `--bind` and is given none of them, it uses the pool file that
the [settings](settings.md) name, else everything installed. Plugins may add commands; `concertino plugins --load` lists
them. [concertino-bench](cli-bench.md), [concertino-serve](cli-serve.md), [concertino-train](cli-train.md) and
[concertino-view](cli-view.md) have their own pages.

## What is shown of foreign texts

Models, tools, servers, traces, plugins and file names hold texts of strangers. None of them commands your terminal, and
none hides words from you.

| Where | What happens to such a character |
|---|---|
| text, tables, views, logs, errors, questions | it is made visible: `\\x1b`, `\\u202e`; in a file or a pipe too |
| JSON on a terminal | it is an escape of JSON; the value is the same |
| JSON into a file or a pipe | it stays as it is |
| what a plugin or a library writes directly to a terminal | the same as text; colours and moves of the cursor stay |
| proposals of a shell's completion | a name that holds one is left out |
| names of members, roles, aliases, listed models | the name is refused; a tool of an MCP server gets another one |

Such characters are: control characters but line feed and tab; marks that turn the direction of writing; characters
without width, where they only hide; line and paragraph separators; tags; halves of a character; the ninth mark on a
letter, and further ones. All languages and emoji stay as they are, joiners and selectors included.
Markup of rich in a foreign text is plain text, and no link is made of it.
"""


# -- the command line ----------------------------------------------------------------------------------------------


def cli_page() -> str:
    """`cli.md`: every command with its help and its options."""
    from concertino.cli import command_line

    return "\n".join(
        [CLI, *(_command_section(path, command) for path, command in _commands(command_line, "concertino"))]
    )


def bench_page() -> str:
    """`cli-bench.md`: the commands of concertino-bench."""
    from concertino_bench.cli import bench
    from concertino_bench.cli.describe import describe_command

    described = _command_section("concertino pool describe", describe_command)
    return "\n".join([_plugin_page("concertino bench", "concertino-bench", bench), described])


def train_page() -> str:
    """`cli-train.md`: the commands of concertino-train."""
    from concertino_train.cli import train

    return _plugin_page("concertino train", "concertino-train", train)


def serve_page() -> str:
    """`cli-serve.md`: the command of concertino-serve."""
    from concertino_serve.serve_commands import serve_command

    head = (
        "# Command line: serve\n\nServe pools to clients of the OpenAI API.\n\nThe command comes with "
        "`concertino-serve`. Exit codes, `--json` and `--debug` are those of [all commands](cli.md).\n"
    )
    return "\n".join([head, _command_section("concertino serve", serve_command)])


def view_page() -> str:
    """`cli-view.md`: the commands of concertino-view."""
    from concertino_view.view_commands import html_command, view_command

    head = (
        "# Command line: view\n\nLook at runs in a browser.\n\nThe commands come with `concertino-view`. Exit codes, "
        "`--json` and `--debug` are those of [all commands](cli.md).\n"
    )
    shown = (("concertino view", view_command), ("concertino traces html", html_command))
    return "\n".join([head, *(_command_section(path, command) for path, command in shown)])


def _plugin_page(path: str, distribution: str, group: click.Group) -> str:
    head = (
        f"# Command line: {path.partition(' ')[2]}\n\n{_filled(_one_line(group.help or ''))}\n\n"
        f"It comes with `{distribution}`. Exit codes, `--json` and `--debug` are those of [all commands](cli.md).\n"
    )
    return "\n".join([head, *(_command_section(each, command) for each, command in _commands(group, path))])


def _commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group, info_name=path)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from _commands(command, f"{path} {name}")


def _command_section(path: str, command: click.Command) -> str:
    context = click.Context(command, info_name=path)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    if isinstance(command, click.Group):
        usage = re.sub(r" COMMAND.*", " COMMAND", usage)
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


# -- the built-in members ------------------------------------------------------------------------------------------

MEMBERS = """\
# Built-in members

The agents and tools of the distributions that are developed together with concertino, as an orchestrator reads them.
This page is made from their specs by `make reference`. `concertino pool show` shows what is installed where you are.

*Cost* is in units, without what an agent spends on models and calls. *Context* is the length of a member's card in
tokens (an estimate). A tool or agent that *may be repeated* is repeated after a failure that
may have been executed; one that *writes* never runs beside another one that does.
"""
_DISTRIBUTIONS = {
    "reasoning": "Agents that reason with models of your pool: alone, several at once, against each other, with a "
    "critic.",
    "code": "A Python interpreter in a sandbox, and an agent that writes, runs and repairs scripts.",
    "search": "Search in a corpus of your own and on the web, pages, and agents that read and cite. The corpus comes "
    "from `[providers.search]`; [how to set it up](../how-to/search-a-corpus.md).",
    "toy": "A calculator, a reader and a solver for one grammar of questions, so that concertino runs without a model.",
}
_CUT = {"code/python": "Python 3"}
"""Descriptions that go on with what holds on one machine: where that begins."""
_MCP = """\
## concertino-mcp

The tools of any MCP server, as `mcp/<server>.<tool>`, or a whole server as one agent; what there is depends on your
servers. [How to use an MCP server](../how-to/use-an-mcp-server.md).
"""
_WITHOUT_CODE = """\
## Agents without code

--8<-- "providers/reasoning/README.md:without-code"
"""


def members_page() -> str:
    """`members.md`: every tool and agent of the distributions of the tree."""
    parts = [MEMBERS]
    for provider, text in _DISTRIBUTIONS.items():
        parts.append(_distribution(provider, text))
    return "\n".join([*parts, _MCP, _WITHOUT_CODE])


def _distribution(provider: str, text: str) -> str:
    pool = _published(provider)
    shown = [(visible, spec) for visible, spec in pool.actions]
    rows = [f"| [`{spec.name}`](#{_anchor(spec.name)}) | {spec.kind} | {_first(spec)} |" for _, spec in shown]
    table = "\n".join(["| Name | Kind | |", "|---|---|---|", *rows])
    parts = [f"## concertino-{provider}\n", _filled(text) + "\n", table + "\n"]
    tokens = pool.count_context().by_member
    return "\n".join([*parts, *(_member(spec, tokens[visible]) for visible, spec in shown)])


def _published(provider: str) -> Pool:
    """What a distribution publishes, under settings that hold everywhere."""
    from concertino import Pool, ProviderSettings
    from concertino.core.settings import Settings
    from concertino.plugins import PluginManager

    with tempfile.TemporaryDirectory() as folder:
        tables: dict[str, ProviderSettings] = {}
        if provider == "search":
            corpus = Path(folder) / "corpus.jsonl"
            corpus.write_text(json.dumps({"id": "1", "title": "Page", "text": "Text."}) + "\n", encoding="utf-8")
            values = {"corpus": str(corpus), "web": "duckduckgo", "cache": folder}
            tables["search"] = ProviderSettings(values, where="settings", folder=Path(folder))
        specs = PluginManager(Settings(providers=tables)).specs([f"{provider}/*"])
        return Pool(specs)


def _member(spec: ToolSpec, tokens: int) -> str:
    facts = {
        "Cost": "free" if not spec.cost.units else f"{spec.cost.units:g} unit{'s' if spec.cost.units != 1 else ''}",
        "Timeout": f"{spec.timeout:g} s" if spec.timeout else "that of the run",
        "Context": "" if spec.name in _CUT else f"{tokens // 10 * 10} tokens",
        "Asks": ", ".join(f"`{role}`" for role in getattr(spec, "models", ())),
        "Calls": "writes" if spec.writes else "may be repeated" if spec.retry_safe else "not repeated",
        "At most": f"{spec.max_chars:,} characters shown",
    }
    parts = [f"### `{spec.name}`\n", _filled(_description(spec)) + "\n"]
    parameters = [_parameter(name, schema, spec.input_schema) for name, schema in _properties(spec).items()]
    if parameters:
        parts += ["| Parameter | Kind | |\n|---|---|---|", *parameters, ""]
    parts.append(" · ".join(f"{name}: {value}" for name, value in facts.items() if value) + "\n")
    return "\n".join(parts)


def _properties(spec: ToolSpec) -> Mapping[str, Any]:
    found: Mapping[str, Any] = spec.input_schema.get("properties", {})
    return found


def _parameter(name: str, schema: Mapping[str, Any], whole: Mapping[str, Any]) -> str:
    needed = name in whole.get("required", ())
    default = "" if needed or schema.get("default") in (None, "") else f"; `{json.dumps(schema['default'])}`"
    label = f"**`{name}`**" if needed else f"`{name}`"
    return f"| {label} | {_cell(_kind(schema))}{default} | {_cell(_one_line(str(schema.get('description', ''))))} |"


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"] if one.get("type") != "null")
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {})).replace('list of', 'lists of')}s".replace("ss", "s")
    names = {"string": "text", "integer": "whole number", "boolean": "true or false", "object": "object"}
    return names.get(str(schema.get("type", "")), str(schema.get("type", "any")))


def _description(spec: ToolSpec) -> str:
    cut = _CUT.get(spec.name)
    text = _one_line(spec.description)
    return text if cut is None else f"{text[: text.index(cut)].strip()} Then what holds on your machine."


def _first(spec: ToolSpec) -> str:
    return _cell(re.split(r"(?<=\.) ", _description(spec), maxsplit=1)[0])


def _anchor(name: str) -> str:
    return re.sub(r"[^\w -]", "", name.lower()).replace(" ", "-")


# -- text ----------------------------------------------------------------------------------------------------------


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _filled(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


# -- writing -------------------------------------------------------------------------------------------------------


_METRICS_HEAD = """\
# Metrics

Every metric is computed from the items of one system, `metric(items)`, and gives a `Value`: the value, how many tasks
it rests on, and how many items could not be used (`missing`, of which `unknown` for want of a price).
`intervals(items, metrics)` adds an interval: tasks are drawn with replacement 2,000 times, each with all of its
samples, and the interval holds the middle 95 % of the results. `compare(items, a, b, metrics)` compares two systems on
the tasks that both have.

Not known is not zero: money is unknown as soon as the price of one request is, and then the value is None. A system
that could not begin a task is not right, and is missing wherever consumption is measured. Where a metric is *strict*,
one item with an unknown price makes the value unknown; the others are of the items that are left.
"""


def metrics_page() -> str:
    """`metrics.md`: every metric of concertino-bench."""
    from concertino_bench.metrics import METRICS
    from concertino_bench.metrics.catalogue import GROUPS

    lines = [_METRICS_HEAD]
    for group, names in GROUPS.items():
        lines += [f"## {group}", "", "| Metric | Unit | Better | Source |", "|---|---|---|---|"]
        for name in names:
            metric = METRICS[name]
            cells = (f"[`{name}`](#{_metric_anchor(name)})", metric.unit, metric.better or "neither", metric.source)
            lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
        lines.append("")
        for name in names:
            lines += _metric_section(name, METRICS[name])
    return "\n".join(lines).rstrip() + "\n"


def _metric_section(name: str, metric: Metric) -> list[str]:
    strict = "; strict" if metric.strict else ""
    return [
        f"### `{name}` {{ #{_metric_anchor(name)} }}",
        "",
        metric.summary,
        "",
        f"- Formula: {metric.formula}",
        f"- Unit: {metric.unit}. Range: {metric.within}. Better: {metric.better or 'neither'}{strict}.",
        f"- Source: {metric.source}",
        f"- In Python: `{metric.use}`",
        "",
    ]


def _metric_anchor(name: str) -> str:
    return name.replace("@", "-at-").replace("_", "-")


def rewards_page() -> str:
    """`rewards.md`: every reward term of concertino-train."""
    from reference_rewards import reference_page

    return reference_page()


def spans_page() -> str:
    """`spans.md`: what concertino-otel sends."""
    from reference_spans import reference_page

    return reference_page()


def training_settings_page() -> str:
    """`training-settings.md`: every key of a settings file of concertino-train."""
    from reference_training_settings import reference_page

    return reference_page()


MADE = {
    "cli.md": cli_page,
    "cli-bench.md": bench_page,
    "cli-serve.md": serve_page,
    "cli-train.md": train_page,
    "cli-view.md": view_page,
    "members.md": members_page,
    "metrics.md": metrics_page,
    "rewards.md": rewards_page,
    "spans.md": spans_page,
    "strategy-issues.md": issues_page,
    "training-settings.md": training_settings_page,
    "../examples/notebooks/first_run.html": drawing_page,
}
"""The pages that this script writes."""


def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8") if page.exists() else ""


def main() -> None:
    """Write the pages, or check them."""
    stale = [name for name, make in MADE.items() if _text(PAGES / name) != make()]
    if "--check" in sys.argv[1:]:
        sys.exit(f"not what the code says: {', '.join(stale)}; run: make reference" if stale else 0)
    for name in stale:
        (PAGES / name).write_text(MADE[name](), encoding="utf-8")
        print(f"wrote {(PAGES / name).resolve().relative_to(ROOT)}")


if __name__ == "__main__":
    main()
