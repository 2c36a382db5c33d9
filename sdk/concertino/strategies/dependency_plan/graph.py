"""The calls of a `<graph>`: nodes with dependencies, each one call whose text may hold `{id}` of another node.

    <node id="s1">search("capital of France")</node>
    <node id="s2" depends="s1">search("population of {s1}")</node>

`{id}` is a reference where `id` is a node of the graph, or is numbered like one (`{s9}` beside `s1`: a fault). Other
braces are text, so `\\frac{1}{2}` stays what it is; `{{s1}}` writes the characters `{s1}`.

A node whose call cannot be read is a call with an error: it is not run, and its siblings are. A fault of the graph
itself (ids, dependencies, a cycle) runs nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from concertino.core.errors import PlanError
from concertino.core.plan import Call, Plan, Ref, Template, references
from concertino.strategies.base.format_issues import CallFormatIssues, shown, suggestion
from concertino.strategies.base.members import Offer, Offers, types_of
from concertino.text.json import ReadingError, read_json

# Possessive repeats with limits keep the search linear on texts that are made to be slow.
_NODE = re.compile(r"<(/?)node((?:[ \t\r\n][^<>]{0,400}+)?)>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"([A-Za-z_]{1,20}+)[ \t]?=[ \t]?(?:\"([^\"]*)\"|'([^']*)')")
_CALL = re.compile(r"([A-Za-z_][\w./-]{0,127}+)[ \t\r\n]{0,8}+\(")
_ID = re.compile(r"[A-Za-z_]\w{0,63}", re.ASCII)
_NUMBERED = re.compile(r"([A-Za-z_]+)\d+")
_BRACES = re.compile(r"(\{{1,8}+)([A-Za-z_]\w{0,63}+)(\}{1,8}+)", re.ASCII)
MAX_NODES = 64
MAX_REFERENCES = 1000


class _Names:
    """The ids of a graph, and which texts in braces speak of one."""

    def __init__(self, ids: Iterable[str]) -> None:
        self.ids = frozenset(ids)
        self._prefixes = {match.group(1) for name in self.ids if (match := _NUMBERED.fullmatch(name))}

    def spoken(self, name: str) -> bool:
        """Whether `{name}` is meant as a reference: an id, or numbered like one."""
        numbered = _NUMBERED.fullmatch(name)
        return name in self.ids or (numbered is not None and numbered.group(1) in self._prefixes)


class _Node(NamedTuple):
    id: str
    depends: tuple[str, ...]
    body: str
    start: int
    end: int
    head_end: int


def read_nodes(
    text: str, start: int, call_tags: Mapping[str, str], offers: Offers, issues: CallFormatIssues
) -> list[Call]:
    """The calls of a graph; none if the graph has a fault.

    Args:
        text: what stands inside `<graph>`.
        start: where that begins in the whole text.
        call_tags: visible names of the members by the tags that call them.
        offers: all members.
        issues: where faults go.
    """
    # Faults of other elements of the turn are already in there.
    before = len(issues.faults)
    nodes = _nodes(text, start, issues)
    names = _Names(node.id for node in nodes)
    ids = names.ids
    for node in nodes:
        for other in node.depends:
            if other == node.id:
                issues.refuse(
                    "cycle",
                    f"node {node.id!r} depends on itself; remove it from its depends",
                    node.start,
                    node.head_end,
                )
            elif other not in ids and not issues.full:
                words = (
                    f"node {node.id!r} depends on {other[:64]!r}, which is not a node; {suggestion(other[:64], ids)}"
                )
                issues.refuse("unknown_dependency", words, node.start, node.head_end)
    calls = [_call(node, names, call_tags, offers, issues) for node in nodes]
    if len(issues.faults) > before:
        return []
    try:
        Plan(calls)
    except PlanError as error:
        issues.refuse("cycle", f"{error}", start, start + len(text))
        return []
    return calls


def _nodes(text: str, start: int, issues: CallFormatIssues) -> list[_Node]:
    """The nodes, in order."""
    nodes: list[_Node] = []
    seen: set[str] = set()
    opened: re.Match[str] | None = None
    for tag in _NODE.finditer(text):
        place = start + tag.start(), start + tag.end()
        if not tag.group(1):
            # A second <node> inside an open one: which call belongs to which cannot be told, so reading stops.
            if opened is not None:
                break
            opened = tag
            if len(nodes) >= MAX_NODES:
                issues.refuse("too_many_nodes", f"a graph has at most {MAX_NODES} nodes; hand it over in parts", *place)
                return []
        elif opened is None:
            issues.mend("stray_tag", "</node> closes nothing; leave it out", *place)
        else:
            nodes.append(_node(opened, text[opened.end() : tag.start()], start, place[1], seen, issues))
            opened = None
    if opened is not None:
        words = "<node> is not closed; write </node> after its call"
        issues.refuse("unclosed_tag", words, start + opened.start(), start + opened.end())
    elif not nodes:
        words = 'the graph holds no node; write <node id="s1">tool("...")</node>'
        issues.refuse("empty_graph", words, start, start + len(text))
    return nodes


def _node(tag: re.Match[str], body: str, start: int, end: int, seen: set[str], issues: CallFormatIssues) -> _Node:
    values = {
        found.group(1).lower(): found.group(2) or found.group(3) or "" for found in _ATTRIBUTE.finditer(tag.group(2))
    }
    place = start + tag.start(), start + tag.end()
    own_id = values.get("id", "").strip()
    if not _ID.fullmatch(own_id):
        words = f"a node needs an id of letters, digits and _ that begins with a letter; got {own_id[:64]!r}"
        issues.refuse("bad_id", words, *place)
    elif own_id in seen:
        issues.refuse("duplicate_id", f"the id {own_id!r} is used twice; ids must differ", *place)
    seen.add(own_id)
    listed = (values.get("depends") or values.get("dependencies") or "").replace(",", " ").split()
    depends = tuple(dict.fromkeys(name for name in listed if name.lower() != "none"))
    return _Node(own_id, depends, body, place[0], end, place[1])


def _call(node: _Node, names: _Names, call_tags: Mapping[str, str], offers: Offers, issues: CallFormatIssues) -> Call:
    """The call of a node, or one that says what is wrong with it."""
    body = node.body.strip()
    head = _CALL.match(body)
    if head is None or not body.endswith(")"):
        words = f'{shown(body)} is not a call; write tool("text") or tool({{"argument": "text"}})'
        return _broken("?", node, "bad_call", words, issues)
    written = head.group(1)
    name = call_tags.get(written, written)
    # The text is never run as Python: what stands between the parentheses is JSON.
    inner = body[head.end() : -1].strip()
    offer = offers[name] if name in offers else Offer({"function": {"name": name}})
    try:
        value = read_json(inner, expect="any").value if inner else {}
    except ReadingError as error:
        words = f"the argument of {written} must be one text in quotes, or an object of its arguments: {error}"
        return _broken(name, node, "bad_call", words, issues)
    arguments = _arguments(value, offer)
    if arguments is None:
        words = f"{written} takes one text, or an object of its arguments; got {type(value).__name__}"
        return _broken(name, node, "bad_call", words, issues)
    parsed = _parsed(arguments, node, names, issues)
    for other in dict.fromkeys(references(parsed)):
        if other not in node.depends:
            words = f'node {node.id!r} uses {{{other}}} and does not depend on it; write depends="{other}"'
            issues.mend("reference_without_dependency", words, node.start, node.head_end)
    return Call(name, parsed, node.id, node.depends)


def _broken(name: str, node: _Node, code: str, words: str, issues: CallFormatIssues) -> Call:
    """A node that is not run; its siblings are."""
    issues.broken(code, words, node.head_end, node.end)
    return Call(name, id=node.id, after=node.depends, error=("bad_format", words))


def _arguments(value: Any, offer: Offer) -> dict[str, Any] | None:
    if isinstance(value, dict):
        return value
    if isinstance(value, str):
        return offer.filled(value)
    # A list of texts is meant only where the input takes a list and no text.
    listed = isinstance(value, list) and bool(offer.input)
    if listed and "string" not in types_of(offer.properties[offer.input]):
        return {offer.input: value}
    return None


def _parsed(value: Any, node: _Node, names: _Names, issues: CallFormatIssues) -> Any:
    """A value with its references in the texts."""
    if isinstance(value, str):
        return _template(value, node, names, issues)
    if isinstance(value, list):
        return [_parsed(item, node, names, issues) for item in value]
    if isinstance(value, dict):
        return {key: _parsed(item, node, names, issues) for key, item in value.items()}
    return value


def _template(text: str, node: _Node, names: _Names, issues: CallFormatIssues) -> str | Template:
    parts: list[str | Ref] = []
    literal, position, used = "", 0, 0
    for match in _BRACES.finditer(text):
        left, name, right = match.groups()
        literal += text[position : match.start()]
        position = match.end()
        pairs = min(len(left), len(right))
        if used > MAX_REFERENCES or issues.full:
            break
        if not names.spoken(name):
            literal += match.group()
        # Doubled braces are the escape, and lose one on each side.
        elif pairs > 1:
            literal += f"{left[1:]}{name}{right[1:]}"
        elif name not in names.ids:
            if not issues.full:
                words = f"{{{name}}} in node {node.id!r} refers to no node; {suggestion(name, names.ids)}"
                issues.refuse("unknown_reference", words, node.start, node.end)
        elif name == node.id:
            issues.refuse(
                "cycle", f"node {node.id!r} refers to its own result; refer to another node", node.start, node.end
            )
        else:
            used += 1
            literal += left[1:]
            parts += [literal, Ref(name)] if literal else [Ref(name)]
            literal = right[1:]
    if used > MAX_REFERENCES:
        words = f"node {node.id!r} uses results more than {MAX_REFERENCES} times; use each once"
        issues.refuse("too_many_references", words, node.start, node.end)
    literal += text[position:]
    if not parts:
        return literal
    return Template(tuple([*parts, literal] if literal else parts))


def by_levels(plan: Plan) -> Plan:
    """The same calls, each waiting for the end of the whole level before it, as in GAP's paper."""
    levels = plan.levels()
    order_after = {name: tuple(levels[depth - 1]) for depth, level in enumerate(levels) if depth for name in level}
    return Plan(replace(call, order_after=order_after.get(call.id, ())) for call in plan.calls)


def write_nodes(plan: Plan, call_tags: Mapping[str, str] | None = None) -> str:
    """A plan as a `<graph>`; `read_nodes` reads the same calls.

    Raises:
        PlanError: an id that the format cannot express, or braces on both sides of a reference.
    """
    written = {name: call_tag for call_tag, name in (call_tags or {}).items()}
    names = _Names(call.id for call in plan.calls)
    lines = ["<graph>"]
    for call in plan.calls:
        if not _ID.fullmatch(call.id):
            raise PlanError(f"call {call.id!r}: a node's id begins with a letter and has letters, digits and _")
        depends = ", ".join(plan.edges.get(call.id, ()))
        attribute = f' depends="{depends}"' if depends else ""
        data = call.arguments if isinstance(call.arguments, Mapping) else json.loads(call.arguments or "{}")
        # `<` as an escape: a text that holds `</node>` must not end the node.
        inner = json.dumps(_unparsed(data, names), ensure_ascii=False).replace("<", "\\u003c")
        lines.append(f'<node id="{call.id}"{attribute}>{written.get(call.name, call.name)}({inner})</node>')
    return "\n".join([*lines, "</graph>"])


def _unparsed(value: Any, names: _Names) -> Any:
    if isinstance(value, str):
        return _escaped(value, names)
    if isinstance(value, Ref):
        return f"{{{value.id}}}"
    if isinstance(value, Template):
        return _joined(value, names)
    if isinstance(value, Mapping):
        return {key: _unparsed(item, names) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_unparsed(item, names) for item in value]
    return value


def _escaped(text: str, names: _Names) -> str:
    return _BRACES.sub(lambda m: f"{{{m.group()}}}" if names.spoken(m.group(2)) else m.group(), text)


def _joined(template: Template, names: _Names) -> str:
    parts = template.parts
    for place, part in enumerate(parts):
        before, after = parts[place - 1] if place else "", parts[place + 1] if place + 1 < len(parts) else ""
        # `{` + `{s1}` + `}` would read as the escape `{{s1}}`.
        left = isinstance(before, str) and before.endswith("{")
        right = isinstance(after, str) and after.startswith("}")
        if isinstance(part, Ref) and left and right:
            raise PlanError(f"{{{part.id}}} between braces cannot be written; put a space between them")
    return "".join(f"{{{part.id}}}" if isinstance(part, Ref) else _escaped(part, names) for part in parts)
