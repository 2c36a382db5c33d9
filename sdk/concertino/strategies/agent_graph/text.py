"""The text of an agent graph (MAS-Orchestra), cut into its elements: agents, edges, answer. Their meaning comes later.

    <thinking> … </thinking>
    <agent><agent_id>A</agent_id><agent_name>cot</agent_name><agent_description> … </agent_description>
      <required_arguments><agent_input> … </agent_input></required_arguments></agent>
    <edge><from>A</from><to>B</to></edge>

Rules of the tokenizer:
- What was thought is never read: `<thinking>` and `<think>` blocks, everything up to a `</think>` that nothing opened,
  everything up to the last `assistantfinal` (the mark that some chat templates leave between channels).
- The text of a field or argument runs to the closing tag **of its own name**. Other tags inside it are text, so an
  `</agent>` that an input quotes does not end the agent. Where the own tag must be quoted, `<![CDATA[ … ]]>` does.
- An element that opens again before it was closed counts as unclosed: what belongs to it cannot be told.
- Outer white space of a text is dropped, except inside CDATA. Entities (`&lt;`) stay as they are.

Invariant: reading never raises, and is linear in the length of the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from concertino.strategies.base.format_issues import FormatIssues, shown
from concertino.strategies.base.tags import MAX_TAGS, Leaf, Tag, TagIndex

THOUGHTS = ("thinking", "think")
BLOCKS = ("agent", "edge", "answer", *THOUGHTS)
FIELDS = ("agent_id", "agent_name", "agent_description", "agent_output_id")
ARGUMENTS = "required_arguments"
# Each argument is compared with those before it, so their number must stay small.
MAX_ARGUMENTS = 64
# What remains of Harmony's channel marks once a tokenizer has dropped the special tokens.
_HARMONY = "assistantfinal"
_THOUGHT = re.compile(r"<(/?)(?:thinking|think)>")
_BLOCK = re.compile(r"<(agent|edge|answer|thinking|think)>")
_KNOWN = frozenset((*BLOCKS, *FIELDS, ARGUMENTS, "from", "to", "agent_input"))


@dataclass(slots=True)
class AgentElement:
    """One `<agent>` as written.

    Attributes:
        start, end: where it stands.
        fields: its fields by tag.
        arguments: names, texts and places of its arguments, in order.
        has_arguments: there is a `<required_arguments>`.
    """

    start: int
    end: int = 0
    fields: dict[str, Leaf] = field(default_factory=dict)
    arguments: list[tuple[str, Leaf]] = field(default_factory=list)
    has_arguments: bool = False


@dataclass(slots=True)
class GraphElements:
    """What stands in the text.

    Attributes:
        agents: in order.
        pairs: `<from>` and `<to>` texts of the edges.
        answer: the text of `<answer>`.
        thinking: what was thought.
        edge_block: where the first `<edge>` begins, -1 if there is none.
        answer_closed: the answer is whole.
    """

    agents: list[AgentElement] = field(default_factory=list)
    pairs: list[tuple[Leaf, Leaf]] = field(default_factory=list)
    answer: Leaf | None = None
    thinking: list[str] = field(default_factory=list)
    edge_block: int = -1
    answer_closed: bool = False


def read_elements(text: str, issues: FormatIssues) -> GraphElements:
    """Cut a text into its elements."""
    return _Cutter(text, issues).read()


class _Cutter:
    """One text being cut."""

    def __init__(self, text: str, issues: FormatIssues) -> None:
        self.text = text
        self.issues = issues
        self.found = GraphElements()
        begin = self._behind_thoughts()
        self.begin = begin
        # Indexed only behind the thoughts: their tags would count against the limit.
        self.index = TagIndex(text, begin)

    # -- what was thought ------------------------------------------------------------------------------------------

    def _behind_thoughts(self) -> int:
        """Where the text begins that was not thought."""
        mark = self.text.rfind(_HARMONY)
        begin = mark + len(_HARMONY) if mark >= 0 else 0
        if begin:
            self.found.thinking.append(self.text[:mark].strip())
        first = _THOUGHT.search(self.text, begin)
        # Chat templates may open the thought in the prompt, so the reply only closes it.
        if first is not None and first.group(1):
            self.found.thinking.append(self.text[begin : first.start()].strip())
            begin = first.end()
        return self._skip_leading(begin)

    def _skip_leading(self, begin: int) -> int:
        """After the thoughts that stand before the first element; marks of CDATA in them mean nothing."""
        # On the raw text, not on the index: a thought may quote half a CDATA section, which would swallow the graph.
        while (block := _BLOCK.search(self.text, begin)) and block.group(1) in THOUGHTS:
            name, inside = block.group(1), block.end()
            end = self.text.find(f"</{name}>", inside)
            if end < 0:
                self._unclosed(Tag(name, block.start(), inside, False, False, ""))
                return len(self.text)
            self._stray(begin, block.start())
            self.found.thinking.append(self.text[inside:end].strip())
            # 3 for `</` and `>`.
            begin = end + len(name) + 3
        return begin

    # -- elements --------------------------------------------------------------------------------------------------

    def read(self) -> GraphElements:
        """All elements."""
        if self.index.overflow:
            text = f"the text holds more than {MAX_TAGS} tags; write a shorter one"
            self.issues.refuse("too_many_tags", text, self.begin, len(self.text))
            return self.found
        position = behind = self.begin
        while tag := self.index.next(position):
            position = tag.end
            if tag.name not in _KNOWN:
                continue  # prose that looks like a tag
            self._stray(behind, tag.start)
            if tag.closing:
                self._stray_closing(tag)
            elif tag.name not in BLOCKS:
                self._unexpected(tag, "an <agent>")
                position = self._skip(tag)
            elif tag.name == "agent":
                position = self._agent(tag)
            elif tag.name == "edge":
                position = self._edges(tag)
            else:
                position = self._text_block(tag)
            behind = position
        self._stray(behind, len(self.text))
        return self.found

    def _text_block(self, tag: Tag) -> int:
        """An answer, or a thought between elements."""
        leaf = self._leaf(tag)
        if leaf is None:
            return len(self.text)
        if tag.name in THOUGHTS:
            self.found.thinking.append(leaf.text)
        elif self.found.answer is not None:
            self.issues.refuse("duplicate_field", "a second <answer>; write one", tag.start, tag.end)
        else:
            self.found.answer, self.found.answer_closed = leaf, True
        return self._behind(tag)

    def _agent(self, opening: Tag) -> int:
        self._refuse_attributes(opening)
        agent = AgentElement(opening.start)
        self.found.agents.append(agent)
        position = opening.end
        while tag := self.index.next(position):
            self._stray(position, tag.start)
            if tag.closing:
                agent.end = position = tag.end
                if tag.name == "agent":
                    return position
                self._stray_closing(tag)
            elif tag.name in BLOCKS:
                # Left for the caller: the tag begins the next block, and only this agent is unclosed.
                position = tag.start
                break
            elif tag.name == ARGUMENTS:
                position = self._arguments(tag, agent)
            elif tag.name in FIELDS:
                position = self._field(tag, agent)
            else:
                self.issues.mend(
                    "misplaced_argument",
                    f"<{tag.name}> stands outside of <required_arguments>; move it inside",
                    tag.start,
                    tag.end,
                )
                position = self._argument(tag, agent)
        else:
            position = len(self.text)
        self._unclosed(opening)
        agent.end = position
        return position

    def _field(self, tag: Tag, agent: AgentElement) -> int:
        leaf = self._leaf(tag)
        if leaf is None:
            return self._resume(tag)
        if tag.name in agent.fields:
            self.issues.refuse("duplicate_field", f"a second <{tag.name}> in one agent; write one", tag.start, tag.end)
        agent.fields.setdefault(tag.name, leaf)
        return self._behind(tag)

    def _arguments(self, opening: Tag, agent: AgentElement) -> int:
        """`<required_arguments>`: an element of any name is an argument."""
        self._refuse_attributes(opening)
        agent.has_arguments = True
        if opening.empty:
            return opening.end
        position = opening.end
        while tag := self.index.next(position):
            self._stray(position, tag.start)
            if tag.closing and tag.name == ARGUMENTS:
                return tag.end
            if (tag.closing and tag.name == "agent") or (not tag.closing and self._begins_block(tag)):
                self._unclosed(opening)
                return tag.start
            if tag.closing:
                self._stray_closing(tag)
                position = tag.end
            else:
                position = self._argument(tag, agent)
        self._unclosed(opening)
        return len(self.text)

    def _begins_block(self, tag: Tag) -> bool:
        """Whether a tag named like a block is one, and no argument of that name."""
        if tag.name not in BLOCKS or tag.empty:
            return False
        # An agent's schema may well have an argument called `answer` or `edge`.
        own = self.index.first(tag.name, tag.end, closing=True)
        end = self.index.first(ARGUMENTS, tag.end, closing=True)
        return own is None or end is None or end.start < own.start

    def _argument(self, tag: Tag, agent: AgentElement) -> int:
        leaf = self._leaf(tag)
        if leaf is None:
            return self._resume(tag)
        if len(agent.arguments) >= MAX_ARGUMENTS:
            text = f"an agent takes at most {MAX_ARGUMENTS} arguments; remove <{tag.name}>"
            self.issues.refuse("too_many_arguments", text, tag.start, tag.end)
        elif any(name == tag.name for name, _ in agent.arguments):
            self.issues.refuse("duplicate_field", f"a second <{tag.name}> in one agent; write one", tag.start, tag.end)
        else:
            agent.arguments.append((tag.name, leaf))
        return self._behind(tag)

    # -- edges -----------------------------------------------------------------------------------------------------

    def _edges(self, opening: Tag) -> int:
        self._refuse_attributes(opening)
        if self.found.edge_block >= 0:
            text = "a second <edge> block; list all links in one"
            self.issues.mend("several_edge_blocks", text, opening.start, opening.end)
        else:
            self.found.edge_block = opening.start
        ends: list[tuple[Tag, Leaf]] = []
        position = opening.end
        while not opening.empty:
            tag = self.index.next(position)
            self._stray(position, tag.start if tag else len(self.text))
            if tag is None or (not tag.closing and tag.name in BLOCKS):
                self._unclosed(opening)
                position = tag.start if tag else len(self.text)
                break
            if tag.closing:
                position = tag.end
                if tag.name == "edge":
                    break
                self._stray_closing(tag)
            elif tag.name not in ("from", "to"):
                self._unexpected(tag, "<from> and <to> in <edge>")
                position = self._skip(tag)
            else:
                leaf = self._leaf(tag)
                ends += [(tag, leaf)] if leaf is not None else []
                position = self._behind(tag) if leaf is not None else self._resume(tag)
        self._pair(ends)
        return position

    def _pair(self, ends: list[tuple[Tag, Leaf]]) -> None:
        """Pair each `<from>` with its `<to>`: one after the other, or all of one kind before all of the other."""
        sources = [leaf for tag, leaf in ends if tag.name == "from"]
        targets = [leaf for tag, leaf in ends if tag.name == "to"]
        if len(sources) != len(targets):
            at = ends[_odd_one(ends)][0]
            text = (
                f"{len(sources)} <from> and {len(targets)} <to>: each <from> needs its own <to> right after it; "
                f"<{at.name}> has no partner here"
            )
            self.issues.refuse("unpaired_edge", text, at.start, at.end)
            return
        if any(tag.name != ("from", "to")[place % 2] for place, (tag, _) in enumerate(ends)):
            first, last = ends[0][0], ends[-1][0]
            text = "write each <to> right after its <from>; they were paired in the order of the text"
            self.issues.mend("grouped_edges", text, first.start, self._behind(last))
        self.found.pairs += zip(sources, targets, strict=True)

    # -- leaves ----------------------------------------------------------------------------------------------------

    def _leaf(self, tag: Tag) -> Leaf | None:
        """The text of an element, `None` if it is not closed."""
        self._refuse_attributes(tag)
        if tag.empty:
            return Leaf("", tag.start, tag.end)
        closing = self.index.first(tag.name, tag.end, closing=True)
        # The element that opens again first would swallow the next one's text, and nobody could tell where it ended.
        again = self.index.first(tag.name, tag.end, closing=False)
        if closing is None or (again is not None and again.start < closing.start):
            self._unclosed(tag)
            return None
        return self.index.leaf(tag.end, closing.start)

    def _behind(self, tag: Tag) -> int:
        """After the element that a tag opens, once it is known to be closed."""
        closing = None if tag.empty else self.index.first(tag.name, tag.end, closing=True)
        return closing.end if closing is not None else tag.end

    def _skip(self, tag: Tag) -> int:
        """After an element that is not read."""
        return self._behind(tag) if self._leaf(tag) is not None else self._resume(tag)

    def _resume(self, tag: Tag) -> int:
        """Where reading continues after an unclosed tag: at the next tag."""
        following = self.index.next(tag.end)
        return following.start if following is not None else len(self.text)

    # -- issues -----------------------------------------------------------------------------------------------------

    def _unclosed(self, tag: Tag) -> None:
        text = f"<{tag.name}> is not closed; write </{tag.name}> after its content"
        self.issues.refuse("unclosed_tag", text, tag.start, tag.end)

    def _unexpected(self, tag: Tag, where: str) -> None:
        text = f"<{tag.name}> does not belong here; expected {where}"
        self.issues.refuse("unexpected_tag", text, tag.start, tag.end)

    def _stray_closing(self, tag: Tag) -> None:
        self.issues.mend("stray_tag", f"</{tag.name}> closes nothing; leave it out", tag.start, tag.end)

    def _refuse_attributes(self, tag: Tag) -> None:
        if tag.attributes:
            text = f"<{tag.name} {tag.attributes[:40]}>: attributes are not read; write each value as an element"
            self.issues.refuse("tag_attributes", text, tag.start, tag.end)

    def _stray(self, start: int, end: int) -> None:
        """Text between elements means nothing."""
        piece = self.text[start:end]
        if piece and not piece.isspace():
            lead = len(piece) - len(piece.lstrip())
            what = f"{shown(piece)} stands between the elements and is not read; keep thoughts in <thinking>"
            self.issues.mend("stray_text", what, start + lead, start + len(piece.rstrip()))


def _odd_one(ends: list[tuple[Tag, Leaf]]) -> int:
    """The first end that stands where its partner should."""
    for place, (tag, _) in enumerate(ends):
        if tag.name != ("from", "to")[place % 2]:
            return place if tag.name == "to" else place - 1
    return len(ends) - 1
