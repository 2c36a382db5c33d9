"""What an agent of a graph is handed: texts read as the agent's schema wants them, with references in their places.

`<agent_input>` is the sub-task, whatever the agent's schema calls the argument that takes it: empty, it stands for the
original question; otherwise the original question is put in front of it. An argument under its own name is handed over
as it is: where its schema takes a text, the text of its element; any other is read as JSON. In all of them,
`${id}` stands for the output of another agent and `$${` for the characters `${`. References are found once, in the
orchestrator's text; the original task, which is put in front of an input, and the outputs of agents are never searched.

Invariant: arguments that the agent's schema would refuse whatever its references become are an issue with a place,
before anything has run. The executor checks every call again when the outputs are in.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from concertino.core.plan import Ref, Template, unparse
from concertino.core.references import Placeholder, name_and_path, split
from concertino.schema import InstanceRefused, explain
from concertino.strategies.base.format_issues import FormatIssues, shown, suggestion
from concertino.strategies.base.members import Offer, types_of
from concertino.strategies.base.tags import Leaf
from concertino.text.json import ReadingError, read_json

from .prompts import before_subtask
from .text import AgentElement

ID = re.compile(r"[A-Za-z0-9_]{1,64}")
INPUT = "agent_input"
# A text that is nothing but `${a}` would otherwise make a template with a part for every few characters.
MAX_REFERENCES = 1000
# The paper's graphs write the empty input as nothing or as a pair of quotation marks.
_NOTHING = ("", '""', "“”")


class Reference(NamedTuple):
    """One `${id}`, and where it stands."""

    id: str
    start: int
    end: int


@dataclass(slots=True)
class Handed:
    """What one agent is handed.

    Attributes:
        values: arguments by the names of the agent's schema.
        references: all of them, in order.
        places: where each argument stands.
        unreadable: one of them could not be read, so the schema has nothing to say.
    """

    values: dict[str, Any] = field(default_factory=dict)
    references: list[Reference] = field(default_factory=list)
    places: dict[str, Leaf] = field(default_factory=dict)
    unreadable: bool = False


@dataclass(frozen=True, slots=True)
class ArgumentReader:
    """Reads the arguments of the agents of one graph.

    Attributes:
        question: the original task.
        prepend_task: put it in front of every input.
        renamed: argument names of the format, by those that pools use instead.
        ids: of all agents of the graph.
        issues: where faults go.
    """

    question: str
    prepend_task: bool
    renamed: Mapping[str, str]
    ids: Collection[str]
    issues: FormatIssues

    def read(self, agent: AgentElement, own_id: str, offer: Offer) -> Handed:
        """The arguments of one agent."""
        handed = Handed()
        given = False
        for written, leaf in agent.arguments:
            name = self._name(written, offer)
            if name in handed.places:
                text = f"<{written}> gives the argument {name!r} a second time; write it once"
                self.issues.refuse("duplicate_field", text, leaf.start, leaf.end)
                continue
            handed.places[name] = leaf
            # Even an unreadable input was given: it is told as such, not as missing.
            given |= name == (offer.input or INPUT)
            if written == INPUT and name == (offer.input or INPUT):
                self._input(name, leaf, own_id, offer, handed)
            else:
                self._argument(name, leaf, own_id, offer, handed)
        if not given and offer.input:  # a member that takes no text lacks nothing
            text = f"<{INPUT}> is missing; write it empty to hand over the original question"
            self.issues.mend("missing_field", text, agent.start, agent.end)
            handed.values |= offer.filled(self.question)
        if not handed.unreadable:
            self._check(agent, offer, handed)
        return handed

    def _name(self, written: str, offer: Offer) -> str:
        """An argument's name in the schema."""
        known = offer.properties
        if written in known:
            return written
        if written == INPUT and offer.input:
            return offer.input
        other = self.renamed.get(written, written)
        return other if other in known else written

    def _input(self, name: str, leaf: Leaf, own_id: str, offer: Offer, handed: Handed) -> None:
        """The sub-task; an empty one stands for the original question."""
        if leaf.text in _NOTHING and not leaf.quoted:
            if offer.input:
                handed.values |= offer.filled(self.question)
            return
        parts = self._parts(leaf.text, leaf, own_id, handed)
        if self.prepend_task:
            # Put in front only after the split, so that a `${` of the question is never taken for a reference.
            parts.insert(0, before_subtask(self.question))
        handed.values |= offer.filled(_joined(parts)) if offer.input else {name: _joined(parts)}

    def _argument(self, name: str, leaf: Leaf, own_id: str, offer: Offer, handed: Handed) -> None:
        types = types_of(offer.properties.get(name))
        as_text = "string" in types
        if not leaf.text and not leaf.quoted and not as_text:
            return  # an empty element gives nothing
        # Where the schema takes texts, `12` and `true` stay texts; only an opening bracket may mean JSON.
        if types != {"string"} and not (as_text and leaf.text[:1] not in ("[", "{")):
            try:
                value = read_json(leaf.text, expect="any", strict=as_text).value
            except ReadingError as error:
                if not as_text:
                    wanted = " or ".join(sorted(types)) if len(types) < 6 else "value"
                    text = f"<{name}> must be a JSON {wanted}: {error}"
                    self.issues.refuse("bad_json", text, leaf.start, leaf.end)
                    # The schema would only repeat, in other words, that this argument is wrong.
                    handed.unreadable = True
                    return
            else:
                handed.values[name] = self._inside(value, leaf, own_id, handed)
                return
        handed.values[name] = _joined(self._parts(leaf.text, leaf, own_id, handed))

    # -- references ------------------------------------------------------------------------------------------------

    def _inside(self, value: Any, leaf: Leaf, own_id: str, handed: Handed) -> Any:
        """References in the texts of a JSON value; their place is the argument's."""
        if isinstance(value, str):
            return _joined(self._parts(value, Leaf(value, leaf.start, leaf.end), own_id, handed))
        if isinstance(value, list):
            return [self._inside(item, leaf, own_id, handed) for item in value]
        if isinstance(value, dict):
            return {key: self._inside(item, leaf, own_id, handed) for key, item in value.items()}
        return value

    def _parts(self, text: str, leaf: Leaf, own_id: str, handed: Handed) -> list[str | Ref]:
        """A text as literal parts and references."""
        parts: list[str | Ref] = []
        for part in split(text):
            if isinstance(part, str):
                parts.append(part)
                continue
            if self.issues.full or len(handed.references) > MAX_REFERENCES:
                break
            # Texts from inside a JSON value have lost their offsets (escapes), so the whole argument is the place.
            place = (leaf.at(part.start), leaf.at(part.end - 1) + 1) if leaf.origins else (leaf.start, leaf.end)
            reference = self._reference(part, own_id, *place)
            if reference is not None:
                parts.append(reference)
                handed.references.append(Reference(reference.id, *place))
        if len(handed.references) > MAX_REFERENCES:
            words = f"agent {own_id!r} refers to outputs more than {MAX_REFERENCES} times; refer to each once"
            self.issues.refuse("too_many_references", words, leaf.start, leaf.end)
        return parts

    def _reference(self, mark: Placeholder, own_id: str, start: int, end: int) -> Ref | None:
        """The reference of a mark; a wrong one is a fault."""
        written = f"${{{mark.inner}{'}' if mark.closed else ''}"
        if not mark.closed:
            text = f"{shown(written, 24)} is not closed; write ${{id}}, or $${{ for the characters ${{"
            self.issues.refuse("bad_reference", text, start, end)
            return None
        try:
            name, path = name_and_path(mark.inner, self.ids)
        except ValueError:
            name, path = "", ()
        if not ID.fullmatch(name):
            inner = mark.inner.strip()
            hint = f"write ${{{inner}}}" if inner in self.ids else "write ${id} with an agent_id"
            text = f"{shown(written, 24)} is not a reference; {hint}, or $${{ for the characters ${{"
            self.issues.refuse("bad_reference", text, start, end)
        elif name == own_id:
            self.issues.refuse("self_edge", f"agent {own_id!r} refers to its own output", start, end)
        elif name not in self.ids:
            text = f"${{{name}}} refers to no agent of the graph; {suggestion(name, self.ids)}"
            self.issues.refuse("unknown_reference", text, start, end)
        else:
            return Ref(name, path)
        return None

    # -- the schema ------------------------------------------------------------------------------------------------

    def _check(self, agent: AgentElement, offer: Offer, handed: Handed) -> None:
        """Refuse what no output could make right."""
        validator = offer.validator
        if validator is None:
            return
        # With references as the texts `${id}`: most graphs pass here at once, without a look at single violations.
        literal = unparse(handed.values)
        try:
            if validator.is_valid(literal):
                return
            violations = validator.check(validator.coerce(literal)[0])
        except InstanceRefused as error:
            self.issues.refuse("invalid_arguments", f"agent {offer.name!r}: {error}", agent.start, agent.end)
            return
        # An output that is still to come may make these arguments right, so only the executor can refuse them.
        open_ones = {name for name, value in handed.values.items() if _refers(value)}
        violations = tuple(each for each in violations if _first_of(each.pointer) not in open_ones)
        if violations:
            leaf = handed.places.get(_first_of(violations[0].pointer))
            place = (leaf.start, leaf.end) if leaf is not None else (agent.start, agent.end)
            text = f"agent {offer.name!r}: {explain(violations, validator)}"
            self.issues.refuse("invalid_arguments", text, *place)


def _joined(parts: list[str | Ref]) -> str | Template:
    """Parts as one text; a reference alone stays a template, so that the output becomes text."""
    if all(isinstance(part, str) for part in parts):
        return "".join(part for part in parts if isinstance(part, str))
    merged: list[str | Ref] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    return Template(tuple(merged))


def _refers(value: Any) -> bool:
    if isinstance(value, list):
        return any(_refers(item) for item in value)
    if isinstance(value, dict):
        return any(_refers(item) for item in value.values())
    return isinstance(value, (Ref, Template))


def _first_of(pointer: str) -> str:
    # RFC 6901: `~1` before `~0`, else `~01` would become `/`.
    return pointer[1:].partition("/")[0].replace("~1", "/").replace("~0", "~")
