"""Role conversations: what a policy read and wrote, message by message, and which of its texts are trained on.

    messages   system, user, assistant, user, assistant …    as the policy read them
    own        which assistant messages the policy wrote      the last message is one
    train      which of these it is taught

The invariants: what is not in `train` is context and never a target; a text that was malformed, cut off, or had a call
that could not be understood stays in its place and is not taught; and every text of a run is taught at most once: where
a strategy rewrites the history, earlier texts are context.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from concertino import Message, Trace, UsageError

from .replaying import ReplayedTrace, Spoken, Tools, replayed

OTHERS = ("summariser",)
"""Roles that no policy plays unless told otherwise."""


@dataclass(frozen=True)
class RoleConversation:
    """What one role read and wrote.

    Attributes:
        id: run and number, unique in a set.
        messages: in order; the last is the policy's own.
        own: places of the policy's own messages, rising.
        train: places of those that are taught, rising.
        faults: by place, why an own message is not taught.
        role: of the pool, who plays it.
        part: role of the workflow; else the same as `role`.
        tools: function objects for native calls.
        task, question: id and text of the task; empty where they are not known.
        run, pool, strategy, models: of the run.
        rewritten: the strategy of the conversation that this was made of; empty for what was really said.
    """

    id: str
    messages: tuple[Message, ...]
    own: tuple[int, ...]
    train: tuple[int, ...]
    faults: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    role: str = "orchestrator"
    part: str = "orchestrator"
    tools: tuple[Mapping[str, Any], ...] = ()
    task: str = ""
    question: str = ""
    run: str = ""
    pool: str = ""
    strategy: str = ""
    models: tuple[str, ...] = ()
    rewritten: str = ""

    def __post_init__(self) -> None:
        said = f"RoleConversation({self.id!r})"
        if not self.own or self.own[-1] != len(self.messages) - 1 or self.own[0] == 0:
            raise UsageError(f"{said}: own={self.own}; expected places behind the first message, the last one included")
        if list(self.own) != sorted(set(self.own)) or list(self.train) != sorted(set(self.train)):
            raise UsageError(f"{said}: own={self.own}, train={self.train}; expected rising places")
        if wrong := [place for place in self.own if self.messages[place].role != "assistant"]:
            raise UsageError(
                f"{said}: message {wrong[0]} is {self.messages[wrong[0]].role}'s; own ones are assistant's"
            )
        if wrong := sorted(set(self.train) - set(self.own)):
            raise UsageError(f"{said}: message {wrong[0]} is to be taught and is not the policy's own")
        if wrong := [b for a, b in zip(self.own, self.own[1:], strict=False) if b == a + 1]:
            raise UsageError(f"{said}: messages {wrong[0] - 1} and {wrong[0]} are both the policy's; something is said")

    @property
    def flags(self) -> tuple[bool, ...]:
        """For each message whether it is taught."""
        return tuple(place in self.train for place in range(len(self.messages)))

    @property
    def texts(self) -> list[str]:
        """The texts that are taught."""
        return [self.messages[place].text for place in self.train]


def conversations_of(
    trace: Trace | ReplayedTrace,
    *,
    run: str = "",
    pool: str = "",
    task: str = "",
    question: str = "",
    tools: Tools = (),
    others: Collection[str] = OTHERS,
    exact: bool = False,
) -> list[RoleConversation]:
    """The conversations of a run, whatever its strategy.

    Args:
        trace: of a run that ended; or one that was gone through already, with what it says of itself in the further
            arguments.
        tools: the action space, for strategies that call natively (`replaying.replayed`).
        others: roles that are not played by the policy.
        exact: teach only texts without any issue, those that had one plain reading included.

    Raises:
        TraceError, UsageError: as `replaying.replayed`.
    """
    if isinstance(trace, Trace):
        run, pool, question = trace.run_id, str(trace.setup.get("pool", "")), question or trace.question
        trace = replayed(trace, tools)
    lines: dict[str, list[Spoken]] = {}
    found: list[list[Spoken]] = []
    for said in trace.spoken:
        if said.part in others or said.role in others:
            continue
        if said.begins or said.role not in lines:
            lines[said.role] = []
            found.append(lines[said.role])
        lines[said.role].append(said)
    about = {"run": run, "pool": pool, "task": task, "question": question, "strategy": trace.strategy.name}
    return [_joined(f"{run}/{number}", line, exact, about) for number, line in enumerate(found, 1)]


def _joined(id: str, line: Sequence[Spoken], exact: bool, about: Mapping[str, str]) -> RoleConversation:
    messages: list[Message] = []
    own: list[int] = []
    faults: dict[int, tuple[str, ...]] = {}
    for said in line:
        messages += said.fresh
        own.append(len(messages))
        if wrong := faults_of(said, exact):
            faults[len(messages)] = wrong
        # Without what a server said of itself, which would make equal sets differ.
        messages.append(replace(Message.of(said.reply), extra={}))
    return RoleConversation(
        id,
        tuple(messages),
        tuple(own),
        tuple(place for place in own if place not in faults),
        faults,
        line[0].role,
        line[0].part,
        line[0].tools,
        models=tuple(dict.fromkeys(said.model for said in line)),
        **about,
    )


def faults_of(said: Spoken, exact: bool = False) -> tuple[str, ...]:
    """Why a text is not taught; nothing for one that is."""
    found = ["unread"] if said.unread else []
    if said.reply.finish_reason == "length":
        found.append("cut_off")
    found += said.issues
    found += sorted({seen.error.code for _, seen in said.calls if seen.error and seen.status.value == "PARSE_ERR"})
    if exact:
        found += said.repaired
    if not said.reply.text.strip() and not said.reply.tool_calls:
        found.append("empty")
    return tuple(dict.fromkeys(found))
