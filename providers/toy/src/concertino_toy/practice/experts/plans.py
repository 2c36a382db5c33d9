"""Experts for the two strategies that write plans: by dependencies, turn by turn, and one graph of agents at once."""

from __future__ import annotations

import re
from collections.abc import Sequence

from concertino import Message

from .calls import answer_text, thought
from .expert import Expert, turns_of
from .progress import UNKNOWN, KnownMember, PartAttempt, PlannedCall, QuestionProgress

_NODE = re.compile(r'<node id="s(\d+)"[^<>]*>([\w-]+)\("([^"]*)"\)</node>')
_TAG = re.compile(r"<([\w-]+)>([^<>]*)</\1>")
_AGENT = re.compile(
    r"<agent_id>A(\d+)</agent_id>\s*<agent_name>([\w-]+)</agent_name>.*?<agent_input>([^<>]*)</agent_input>", re.DOTALL
)
_OWN_TAGS = ("think", "answer", "agent_id", "agent_name", "agent_input", "agent_description")


class PlanExpert(Expert):
    """For `DependencyPlan(prompt="brief")`: single calls for what is ready, a graph where parts need each other."""

    def read(self, progress: QuestionProgress, messages: Sequence[Message]) -> int:
        turns = turns_of(messages)
        for text, seen in turns:
            nodes: list[tuple[int | None, str]] = [(int(n) - 1, name) for n, name, _ in _NODE.findall(text)]
            tags = [(name, asked) for name, asked in _TAG.findall(text) if name not in _OWN_TAGS]
            called = nodes or [(_part_of(progress, asked), name) for name, asked in tags]
            for (part, name), each in zip(called, seen, strict=False):
                # A call that nobody received is no attempt at its part.
                ran = each.status != "PARSE_ERR" and "dependency_failed" not in each.text
                if part is not None and ran and part < len(progress.parts):
                    progress.attempts[part].append(PartAttempt(name, each.status == "OK", each.text, each.label))
        return len(turns)

    def turn(self, progress: QuestionProgress, messages: Sequence[Message]) -> str:
        moves = [] if "No more calls" in messages[-1].text else progress.moves()
        head = f"<think>{thought(progress, moves)}</think>"
        if not moves:
            return f"{head}\n<answer>{answer_text(progress)}</answer>"
        waiting = [] if self.habits.draws("serial", progress.question) else waiting_parts(progress, moves)
        if not waiting:
            calls = [f"<{move.member.name}>{asked(progress, move.part)}</{move.member.name}>" for move in moves]
            return "\n".join([head, *calls])
        nodes = [_node(progress, move) for move in (*moves, *waiting)]
        return "\n".join([head, "<graph>", *nodes, "</graph>"])

    def slip(self, text: str, share: float) -> str:
        """A tag that is not closed, or no call at all."""
        end = text.rindex("</")
        return text[:end] if share < 0.6 else text.partition("\n")[0]


def waiting_parts(progress: QuestionProgress, moves: Sequence[PlannedCall]) -> list[PlannedCall]:
    """The parts that need what is asked now, and who will be asked about them."""
    asked_now = {move.part for move in moves}
    found: list[PlannedCall] = []
    for index, part in enumerate(progress.parts):
        if part.after in asked_now and index not in asked_now and not progress.given_up(index):
            found.append(PlannedCall(index, progress.choose(index)))
            asked_now.add(index)
    return found


def asked(progress: QuestionProgress, part: int, reference: str = "{{s{}}}") -> str:
    """What a member is asked about a part: topic and place, or the part that finds the place."""
    this = progress.parts[part]
    if this.after is None:
        return f"{this.topic} of {this.place}"
    return f"{this.topic} of {progress.value(this.after) or reference.format(this.after + 1)}"


def _node(progress: QuestionProgress, move: PlannedCall) -> str:
    after = _needed(progress, move.part)
    depends = f' depends="s{after + 1}"' if after is not None else ""
    return f'<node id="s{move.part + 1}"{depends}>{move.member.name}("{asked(progress, move.part)}")</node>'


def _part_of(progress: QuestionProgress, text: str) -> int | None:
    """Which part was asked so."""
    texts = [asked(progress, part) for part in range(len(progress.parts))]
    return texts.index(text) if text in texts else None


class GraphExpert(Expert):
    """For `AgentGraph(prompt="brief")`, over a pool with a combiner: one agent for each part, and one that joins."""

    def read(self, progress: QuestionProgress, messages: Sequence[Message]) -> int:
        turns = turns_of(messages)
        for text, seen in turns:
            names = {f"A{number}": (int(number) - 1, name) for number, name, _ in _AGENT.findall(text)}
            for each in seen:
                part, name = names.get(each.label, (len(progress.parts), ""))
                ran = each.status != "PARSE_ERR" and "dependency_failed" not in each.text
                if ran and part < len(progress.parts):
                    progress.attempts[part].append(PartAttempt(name, each.status == "OK", each.text, each.label))
        return len(turns)

    def turn(self, progress: QuestionProgress, messages: Sequence[Message]) -> str:
        moves = progress.moves()
        moves += waiting_parts(progress, moves)
        head = f"<thinking>{thought(progress, moves)}</thinking>"
        if not moves:
            return f"{head}\n<answer>{answer_text(progress)}</answer>"
        agents = [_agent(f"A{move.part + 1}", move.member, _input(progress, move)) for move in moves]
        edges = [(after, move.part) for move in moves if (after := _needed(progress, move.part)) is not None]
        needed = {part.after for part in progress.parts}
        last = [index for index in range(len(progress.parts)) if index not in needed]
        asked_now = {move.part for move in moves}
        if len(last) > 1:
            told = [f"${{A{part + 1}}}" if part in asked_now else progress.value(part) or UNKNOWN for part in last]
            number = len(progress.parts)
            agents.append(_agent(f"A{number + 1}", KnownMember("gather", "", "", "ask"), " ".join(told)))
            edges += [(part, number) for part in last if part in asked_now]
        drawn = [f"  <from>A{start + 1}</from><to>A{end + 1}</to>" for start, end in edges]
        return "\n".join([head, *agents, *(["<edge>", *drawn, "</edge>"] if drawn else [])])

    def slip(self, text: str, share: float) -> str:
        """An agent that is not closed, an edge left out, or an agent that is none."""
        if share < 0.4 and "<agent_name>" in text:
            return text.replace("<agent_name>", "<agent_name>x", 1)
        return text[: text.rindex("</")]


def _needed(progress: QuestionProgress, part: int) -> int | None:
    """The part whose result a part waits for."""
    after = progress.parts[part].after
    return after if after is not None and not progress.value(after) else None


def _input(progress: QuestionProgress, move: PlannedCall) -> str:
    """The sub-task: the original question stands in front of it, so a topic is enough for a place that it names."""
    part = progress.parts[move.part]
    return part.topic if part.after is None else asked(progress, move.part, "${{A{}}}")


def _agent(own_id: str, member: KnownMember, text: str) -> str:
    return f"""<agent>
  <agent_id>{own_id}</agent_id>
  <agent_name>{member.name}</agent_name>
  <agent_description>{member.topic or "any"}</agent_description>
  <required_arguments>
    <agent_input>{text}</agent_input>
  </required_arguments>
</agent>"""
