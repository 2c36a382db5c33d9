"""A plan: a directed acyclic graph of calls. Everything an orchestrator can say becomes one, and one executor runs it.

A parallel round is a plan without edges; a serial turn is a plan of one call; an agent graph and a dependency plan
have edges. An edge comes from `Call.after`, or from a reference `${id}` inside an argument: the result of call `id`
takes its place, or a part of it (`${id.hotels[0].name}`). Text is parsed **once** into literal parts and references;
results are put in by position and never read again, so a `${…}` inside a result stays text. `$${` writes a literal
`${`. `Call.order_after` orders calls without an edge: they wait for the others to end, with success or without.

References are only recognised where the strategy asks for them (`Plan.parse`): in a parallel round `${x}` is text.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .errors import PlanError
from .references import Path, Placeholder, as_text, follow, name_and_path, split, write_path

# Asked for first, since most values are one of these and `isinstance` of a Mapping is slow.
_SCALARS = (str, int, float, type(None))
_MAPPINGS = (dict, Mapping)
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,63}")


@dataclass(frozen=True, slots=True)
class Ref:
    """A place that the result of another call fills. As a whole argument it keeps the result's JSON type.

    Attributes:
        id: of the call.
        path: fields and items on the way into its result; empty for the whole of it.
    """

    id: str
    path: Path = ()

    def __str__(self) -> str:
        return f"${{{self.id}{write_path(self.path)}}}"


@dataclass(frozen=True, slots=True)
class Template:
    """A text with references in it: literal parts and `Ref`s in order. Results are written into it as text."""

    parts: tuple[str | Ref, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a plan.

    Attributes:
        name: the member's name as the orchestrator wrote it.
        arguments: data, or the raw JSON text that the model wrote; may hold `Ref`s and `Template`s.
        id: unique inside the plan; `""` lets the plan number it from 1.
        after: ids of calls that must have succeeded before it starts, in addition to those that it refers to.
        error: set by a strategy that could not read this call: it is not run, and observed as PARSE_ERR with this
            code and text.
        repairs: names of the repairs that the strategy needed to read it.
        guarded: the arguments come from `concertino.text.json`, so they are plain JSON within its limits already.
        order_after: ids of calls that must have ended before it starts, with success or without.
    """

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str = ""
    after: tuple[str, ...] = ()
    error: tuple[str, str] | None = None
    repairs: tuple[str, ...] = ()
    guarded: bool = False
    order_after: tuple[str, ...] = ()

    @property
    def data(self) -> Any:
        """The arguments as plain data, references written as `${id}`; the raw text where it is not JSON."""
        arguments = unparse(self.arguments)
        if not isinstance(arguments, str):
            return arguments
        try:
            return json.loads(arguments)
        except ValueError:
            return arguments

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data; references are written as `${id}` again."""
        data: dict[str, Any] = {"id": self.id, "name": self.name, "arguments": unparse(self.arguments)}
        if self.after:
            data["after"] = list(self.after)
        if self.order_after:
            data["order_after"] = list(self.order_after)
        if self.error:
            data["error"] = list(self.error)
        if self.repairs:
            data["repairs"] = list(self.repairs)
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Call:
        """The inverse of `to_json`, for calls without references."""
        error = data.get("error")
        return cls(
            data["name"],
            data["arguments"],
            data["id"],
            tuple(data.get("after", ())),
            (error[0], error[1]) if error else None,
            tuple(data.get("repairs", ())),
            order_after=tuple(data.get("order_after", ())),
        )


class Plan:
    """A checked, immutable graph of calls.

    Args:
        calls: in the order in which observations will come back.

    Raises:
        PlanError: a duplicate or malformed id, an edge to an unknown call, or a cycle (its path is named).
    """

    __slots__ = ("barriers", "calls", "edges")

    calls: tuple[Call, ...]
    edges: dict[str, tuple[str, ...]]
    """For each call with predecessors: their ids."""
    barriers: dict[str, tuple[str, ...]]
    """For each call that waits for others only to end: their ids."""

    def __init__(self, calls: Iterable[Call]) -> None:
        numbered = tuple(c if c.id else replace(c, id=str(i)) for i, c in enumerate(calls, 1))
        self.calls = numbered
        self.edges = {}
        self.barriers = {}
        ids = {call.id for call in numbered}
        if len(ids) < len(numbered):
            twice = next(name for name, count in Counter(call.id for call in numbered).items() if count > 1)
            raise PlanError(f"two calls have the id {twice!r}; ids must differ")
        for call in numbered:
            # Raw text holds no references: `parse` makes them, out of data.
            if call.after or call.order_after or not isinstance(call.arguments, str):
                self._connect(call, ids)
        if self.edges or self.barriers:
            self._refuse_cycles()

    @classmethod
    def parse(cls, calls: Iterable[Call]) -> Plan:
        """A plan whose text arguments may hold references `${id}`; raw JSON is read first, so none crosses a quote.

        Raises:
            PlanError: as the constructor, or a malformed reference (says at which character).
        """
        numbered = [call if call.id else replace(call, id=str(number)) for number, call in enumerate(calls, 1)]
        ids = {call.id for call in numbered}
        return cls([replace(call, arguments=parse_references(_as_data(call.arguments), ids)) for call in numbered])

    @classmethod
    def parallel(cls, calls: Sequence[Call]) -> Plan:
        """A plan without edges, of calls numbered from 1: their arguments hold no references."""
        # Without the checks of the constructor: such calls neither share an id nor wait for each other.
        plan = cls.__new__(cls)
        plan.calls = tuple(calls)
        plan.edges = {}
        plan.barriers = {}
        return plan

    def _connect(self, call: Call, ids: set[str]) -> None:
        wanted = dict.fromkeys((*call.after, *references(call.arguments)))
        # An edge waits for the same end and asks for success too, so it says all that a barrier would.
        order_after = [other for other in dict.fromkeys(call.order_after) if other not in wanted]
        for other in (*wanted, *order_after):
            if other == call.id:
                raise PlanError(f"call {call.id!r} depends on itself")
            if other not in ids:
                from concertino.schema import near_names

                near = near_names(other, ids)
                hint = f"; did you mean {' or '.join(near)}?" if near else f"; calls are {', '.join(sorted(ids)[:8])}"
                raise PlanError(f"call {call.id!r} refers to {other!r}, which is not in the plan{hint}")
        if wanted:
            self.edges[call.id] = tuple(wanted)
        if order_after:
            self.barriers[call.id] = tuple(order_after)

    def before(self, call_id: str) -> tuple[str, ...]:
        """Ids of all calls that one waits for, to succeed or only to end."""
        return (*self.edges.get(call_id, ()), *self.barriers.get(call_id, ()))

    def _refuse_cycles(self) -> None:
        left = {call.id: len(self.before(call.id)) for call in self.calls}
        followers = self._waiting()
        ready = [call_id for call_id, count in left.items() if count == 0]
        while ready:
            call_id = ready.pop()
            del left[call_id]
            for follower in followers.get(call_id, ()):
                left[follower] -= 1
                if left[follower] == 0:
                    ready.append(follower)
        if left:
            raise PlanError(
                f"the plan has a cycle: {' -> '.join(self._cycle(left))}; calls must not wait for each other"
            )

    def _cycle(self, among: Mapping[str, int]) -> list[str]:
        path = [next(iter(among))]
        while True:
            # There is one: a call that is left over waits for another one that is left over.
            step = next(other for other in self.before(path[-1]) if other in among)
            if step in path:
                return [*reversed(path[path.index(step) :]), path[-1]]
            path.append(step)

    def followers(self) -> dict[str, list[str]]:
        """For each call with successors: their ids."""
        result: dict[str, list[str]] = {}
        for call_id, before in self.edges.items():
            for other in before:
                result.setdefault(other, []).append(call_id)
        return result

    def _waiting(self) -> dict[str, list[str]]:
        """`followers`, with the calls that only wait for an end."""
        result = self.followers()
        for call_id, before in self.barriers.items():
            for other in before:
                result.setdefault(other, []).append(call_id)
        return result

    def levels(self) -> list[list[str]]:
        """Call ids by depth: what GAP's level-by-level execution would run together."""
        depth: dict[str, int] = {}
        order = self.topological_order()
        for call_id in order:
            depth[call_id] = 1 + max((depth[other] for other in self.edges.get(call_id, ())), default=-1)
        levels: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
        for call_id in order:
            levels[depth[call_id]].append(call_id)
        return levels

    def topological_order(self) -> list[str]:
        """Call ids, each after all that it depends on."""
        left = {call.id: len(self.before(call.id)) for call in self.calls}
        followers = self._waiting()
        order = [call_id for call_id, count in left.items() if count == 0]
        # The list grows while it is walked: what becomes ready is put at its end.
        for call_id in order:
            for follower in followers.get(call_id, ()):
                left[follower] -= 1
                if left[follower] == 0:
                    order.append(follower)
        return order

    def critical_path(self, seconds: Mapping[str, float]) -> tuple[float, list[str]]:
        """The longest chain of dependent calls, given what each call took: its length in seconds, and its ids."""
        finish: dict[str, float] = {}
        via: dict[str, str] = {}
        for call_id in self.topological_order():
            before = max(self.edges.get(call_id, ()), key=lambda other: finish[other], default=None)
            finish[call_id] = seconds.get(call_id, 0.0) + (finish[before] if before is not None else 0.0)
            if before is not None:
                via[call_id] = before
        if not finish:
            return 0.0, []
        path = [max(finish, key=lambda call_id: finish[call_id])]
        while path[-1] in via:
            path.append(via[path[-1]])
        return max(finish.values()), path[::-1]

    def __len__(self) -> int:
        return len(self.calls)

    def __repr__(self) -> str:
        edges = sum(len(before) for before in self.edges.values())
        return f"Plan({len(self.calls)} calls, {edges} edges)"

    def to_json(self) -> list[dict[str, Any]]:
        """Plain JSON data."""
        return [call.to_json() for call in self.calls]


def _as_data(arguments: Mapping[str, Any] | str) -> Any:
    """Raw JSON that holds a reference, as data. Unreadable text is left alone: the executor says what is wrong."""
    if not isinstance(arguments, str) or "${" not in arguments:
        return arguments
    from concertino.text.json import ReadingError, read_json

    try:
        return read_json(arguments).value
    except ReadingError:
        # Escaped, because an unreadable text must not be refused for a reference in it.
        return arguments.replace("${", "$${")


def parse_references(value: Any, ids: Collection[str] = ()) -> Any:
    """Replace every text that holds `${id}` or `${id.field[0]}` by a `Ref` or a `Template`, at any depth.

    Args:
        value: plain JSON data.
        ids: of the plan's calls; an id may hold dots, so the longest one that fits is meant.

    Raises:
        PlanError: `${` without `}` or with something else than an id between; says at which character.
    """
    if isinstance(value, str):
        return _parse_text(value, ids) if "${" in value else value
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, _MAPPINGS):
        return {key: parse_references(item, ids) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [parse_references(item, ids) for item in value]
    return value


def _parse_text(text: str, ids: Collection[str]) -> str | Ref | Template:
    parts = [part if isinstance(part, str) else _reference(part, ids) for part in split(text)]
    if all(isinstance(part, str) for part in parts):
        return "".join(part for part in parts if isinstance(part, str))
    return parts[0] if len(parts) == 1 and isinstance(parts[0], Ref) else Template(tuple(parts))


def _reference(mark: Placeholder, ids: Collection[str]) -> Ref:
    if not mark.closed:
        raise PlanError(f"'${{' at character {mark.start} is not closed; write ${{id}}, or $${{ for text")
    try:
        name, path = name_and_path(mark.inner, ids)
        if _ID.fullmatch(name):
            return Ref(name, path)
    except ValueError:
        pass
    raise PlanError(f"'${{{mark.inner}}}' at character {mark.start} is not a reference; write ${{id}} or ${{id.field}}")


def references(value: Any) -> list[str]:
    """Ids that a parsed value refers to, in order, possibly repeated."""
    if isinstance(value, _SCALARS):
        return []
    if isinstance(value, Ref):
        return [value.id]
    if isinstance(value, Template):
        return [part.id for part in value.parts if isinstance(part, Ref)]
    if isinstance(value, _MAPPINGS):
        return [found for item in value.values() for found in references(item)]
    if isinstance(value, (list, tuple)):
        return [found for item in value for found in references(item)]
    return []


def substitute(value: Any, results: Mapping[str, Any]) -> Any:
    """Put results in the places of references. A whole `Ref` keeps the JSON type; inside a text it becomes text.

    Raises:
        LookupFailed: a path leads to nothing in a result.
    """
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, Ref):
        return follow(results[value.id], value.path)
    if isinstance(value, Template):
        return "".join(
            part if isinstance(part, str) else as_text(follow(results[part.id], part.path)) for part in value.parts
        )
    if isinstance(value, _MAPPINGS):
        return {key: substitute(item, results) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [substitute(item, results) for item in value]
    return value


def unparse(value: Any) -> Any:
    """Plain JSON data again, for traces: the inverse of `parse_references`, but an escaped `$${` stays plain text."""
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, Ref):
        return str(value)
    if isinstance(value, Template):
        return "".join(part.replace("${", "$${") if isinstance(part, str) else str(part) for part in value.parts)
    if isinstance(value, _MAPPINGS):
        return {key: unparse(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [unparse(item) for item in value]
    return value
