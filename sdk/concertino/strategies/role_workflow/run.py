"""One run of a workflow of roles: whose turn it is, what was said, and its result.

Everything a run knows is plain data, the state of its environment too (`environment`): so a fork is a branch of a tree
search, and `role` says whose turn it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Self

from concertino.core.model import Message, Reply
from concertino.core.observation import Observation
from concertino.core.plan import Call, Plan
from concertino.schema import near_names
from concertino.strategies.base.machine import Act, Ask, Done, Machine, Reading, Step, TaskContext, TurnState, Utterance
from concertino.strategies.base.members import function_lines
from concertino.text.answers import same_answer, same_output
from concertino.text.foreign_text import IN_QUESTIONS, Quoting

from . import prompts
from .document import to_document
from .format import RoleText, read_role_text
from .record import TurnRecord, clipped, printed, quoting_for, shown_result, shown_value, tell_history, with_own_status
from .role import Agree, PassTests, ReachGoal, Role, Workflow
from .template import COMMON, FIELDS, fill_template

Phase = Literal["look", "ask", "use", "check", "done"]
_MOST_CALLS = 8
"""Calls of one role in one turn."""
# Characters of what another role said or got back, as a prompt quotes it.
_FIELD_SHOWN = 16_000


class RoleCall(NamedTuple):
    """A call that is to be made: for a role, or (with the owner `""`) for the check at the end of a turn."""

    owner: str
    call: Call


class EnvironmentState(NamedTuple):
    """The environment of a run as it is now."""

    observation: str = ""
    state: Any = None
    done: bool = False
    reward: float = 0.0


class RoleWorkflowMachine(Machine):
    """One run of a workflow.

    Attributes:
        turn: counted from 1.
        said: the last word of each role.
        records: the turns that are over.
        environment: the environment, if the ending has one.
        actions: the actions that were handed to the environment, in order.
        rewards: what it gave for each turn's action.
    """

    def __init__(self, settings: Workflow, context: TaskContext) -> None:
        self.settings = settings
        self.question = context.question
        self.tools = list(context.tools)
        self.parallel = context.parallel
        self.rounds = context.rounds
        self.turn = 1
        self.place = 0
        self.acts = 0
        self.asked = 0
        self.tries = 0
        self.said: dict[str, Utterance] = {}
        self.earlier: dict[str, Utterance] = {}
        self.records: list[TurnRecord] = []
        self.messages: list[Message] = []
        self.calls: list[RoleCall] = []
        self.plan: Plan | None = None
        self.seen: list[Observation] = []
        self.environment = EnvironmentState()
        self.actions: list[Any] = []
        self.rewards: list[float] = []
        self.last_reading: Reading | None = None
        self.final = Done(None, "answered")
        self.phase: Phase = "ask"
        if isinstance(settings.until, ReachGoal):
            self._run("look", [RoleCall("", Call(settings.until.tool, {"task": context.question}))])
        else:
            self._next_role(0)

    @property
    def role(self) -> Role:
        """The role that is asked, or was asked last."""
        # `place` lies behind the last role while a turn is checked.
        return self.settings.roles[min(self.place, len(self.settings.roles) - 1)]

    # -- what is wanted --------------------------------------------------------------------------------------------

    def step(self) -> Step:
        if self.phase == "done":
            return self.final
        if self.phase == "ask":
            role = self.role
            fresh = len(self.messages) - self.asked
            return Ask(role.speaker, self.messages, fresh, (), role.sampling, role.name, self.turn)
        assert self.plan is not None
        # Simultaneous roles share one plan, and its verdict holds the issues of all of them.
        speakers = dict.fromkeys(each.owner for each in self.calls if each.owner)
        issues = tuple(issue for name in speakers for issue in self.said[name].issues)
        begun = len(self.seen)
        writers = tuple(each.owner for each in self.calls[begun : begun + len(self.plan.calls)])
        return Act(self.plan, self.acts + 1, issues, writers)

    @property
    def reading(self) -> Reading | None:
        return self.last_reading

    def turn_state(self) -> TurnState:
        """What roles have said, and the environment as it is now."""
        finished = self.turn if self.phase == "done" else self.turn - 1
        until = self.settings.until
        answering = until.action if isinstance(until, ReachGoal) else self.settings.answering
        return TurnState(self.turn, finished, self.said, self.environment.state, answering)

    def prefetchable(self) -> list[Ask]:
        """Of simultaneous roles, those that come after this one in the turn."""
        if self.settings.order != "simultaneous" or self.phase != "ask":
            return []
        # They see only earlier turns, so their prompts are fixed before this role has answered.
        later = [role for role in self.settings.roles[self.place + 1 :] if not self._skipped(role)]
        prompts_ = [(role, self._prompt(role)) for role in later]
        return [
            Ask(role.speaker, prompt, len(prompt), (), role.sampling, role.name, self.turn) for role, prompt in prompts_
        ]

    def _next_plan(self) -> None:
        """The next calls as a plan, at most as many as may run in parallel; the budget may allow no further one."""
        # In batches: a limit on parallel calls must not lose those beyond it, for the role is not asked again.
        batch = self.calls[len(self.seen) :][: self.parallel or _MOST_CALLS]
        self.plan = Plan.parallel([replace(each.call, id=str(number)) for number, each in enumerate(batch, 1)])
        # Here, because every plan of a run comes through here, whatever it is for.
        if self.rounds is not None and self.acts >= self.rounds:
            self._end("rounds", f"{self.acts} plans were run, as many as the budget allows")

    # -- replies and observations ----------------------------------------------------------------------------------

    def on_reply(self, reply: Reply) -> None:
        role = self.role
        read = read_role_text(reply, role.reads, strict=self.settings.strict)
        refusals = [issue.message for issue in read.issues if not issue.repaired]
        unread = read.value is None or (self.settings.strict and bool(refusals))
        self.tries += 1
        calls = () if unread or not role.tools else tuple(each.call for each in self._uses(role, read))
        self.last_reading = Reading(role.name, calls, tuple(read.issues), not unread)
        if unread and self.tries < self.settings.max_unreadable_replies:
            self.messages.append(Message.of(reply))
            self.asked = len(self.messages)
            self.messages.append(Message("user", prompts.hand_back(refusals)))
            return
        value = None if unread else read.value
        # Clipped, because the text travels in every dump and may be put into other roles' prompts.
        self.said[role.name] = Utterance(self.turn, clipped(read.said, 100_000), value, issues=read.issues)
        # Simultaneous roles use their tools together, once the last one has spoken (`_next_role`).
        if value is not None and role.tools and self.settings.order == "sequential":
            self._run("use", self._uses(role, read))
        else:
            self._next_role(self.place + 1)

    def _uses(self, role: Role, read: RoleText) -> list[RoleCall]:
        """The calls that a role's text asks for."""
        if role.reads != "calls":
            return [RoleCall(role.name, Call(role.tools[0], {role.argument: shown_value(read.value)}))]
        return [RoleCall(role.name, self._allowed(role, call)) for call in read.value[:_MOST_CALLS]]

    @staticmethod
    def _allowed(role: Role, data: Mapping[str, Any]) -> Call:
        """A call that a role wrote, refused if it is none of its tools."""
        # Data came through our own JSON reader, which keeps its limits; native arguments are still raw text.
        call = Call(data["name"], data["arguments"], guarded=not isinstance(data["arguments"], str))
        if "error" in data:
            return replace(call, error=(data["error"][0], data["error"][1]))
        if role.may_call(call.name):
            return call
        near = near_names(call.name, role.tools, limit=1)
        hint = f"did you mean {near[0]!r}?" if near else f"it may call {', '.join(role.tools)}"
        return replace(call, error=("unknown_name", f"{role.name} may not call {call.name!r}; {hint}"))

    def observe(self, observations: Sequence[Observation], remaining: Mapping[str, float] | None = None) -> None:
        """Take the observations; the next calls, the next role or the next turn follow."""
        self.acts += 1
        self.seen.extend(observations)
        if len(self.seen) < len(self.calls):
            self._next_plan()
            return
        done = list(zip(self.calls, self.seen, strict=True))
        self.calls, self.seen, self.plan = [], [], None
        if self.phase == "look":
            self._look(done[0][1])
        elif self.phase == "use":
            self._used(done)
            self._next_role(self.place + 1)
        else:
            self._checked([seen for _, seen in done])

    def _used(self, done: Sequence[tuple[RoleCall, Observation]]) -> None:
        """What the tools of roles returned becomes part of their last word."""
        for owner in dict.fromkeys(each.owner for each, _ in done):
            own = [(each.call, seen) for each, seen in done if each.owner == owner]
            several = len(own) > 1
            texts = [f"{call.name}: {printed(seen)}" if several else printed(seen) for call, seen in own]
            ok = all(seen.ok for _, seen in own)
            self.said[owner] = replace(self.said[owner], result="\n".join(texts), ok=ok)

    # -- the course of a turn --------------------------------------------------------------------------------------

    def _next_role(self, place: int) -> None:
        """Ask the next role that is not passed over; after the last one, its tools and the check."""
        roles = self.settings.roles
        if place == 0:
            # What simultaneous roles may see: the words of earlier turns only.
            self.earlier = dict(self.said)
            # With nobody to speak, each further turn would be the same as this one.
            if all(self._skipped(role) for role in roles):
                self._end("rounds", f"no role speaks in turn {self.turn}: all are passed over, so nothing can change")
                return
        while place < len(roles) and self._skipped(roles[place]):
            place += 1
        self.place, self.tries, self.asked = place, 0, 0
        if place < len(roles):
            self.phase = "ask"
            self.messages = self._prompt(roles[place])
            return
        self.messages = []
        # The phase tells apart the first coming from that after the tools, which would otherwise run again.
        if self.settings.order == "simultaneous" and self.phase == "ask":
            spoke = [role for role in roles if role.tools and self._spoke(role)]
            calls = [each for role in spoke for each in self._uses(role, RoleText(self.said[role.name].value, ""))]
            if calls:
                self._run("use", calls)
                return
        self._check()

    def _spoke(self, role: Role) -> bool:
        """Whether the role said something readable in this turn."""
        saying = self.said.get(role.name)
        return saying is not None and saying.turn == self.turn and saying.value is not None

    @property
    def _visible(self) -> dict[str, Utterance]:
        """What a role may know of the others."""
        return self.earlier if self.settings.order == "simultaneous" else self.said

    def _skipped(self, role: Role) -> bool:
        for condition in role.skip:
            word, _, name = condition.partition(":")
            saying = self._visible.get(name)
            if (word == "first" and self.turn == 1) or (word == "later" and self.turn > 1):
                return True
            if saying is not None and (
                (word == "ok" and saying.ok is True)
                or (word == "failed" and saying.ok is False)
                or (word == "unread" and saying.value is None)
            ):
                return True
        return False

    def _prompt(self, role: Role) -> list[Message]:
        """What a role is asked: its templates, filled with what it may see."""
        values = dict.fromkeys(COMMON, "")
        quoted = self._quoting
        values.update(
            question=IN_QUESTIONS.text(self.question),
            turn=str(self.turn),
            turns=str(self.settings.turns),
            history=tell_history(self.records, self.settings.remember, quoted),
            observation=self.environment.observation,
            tools=self._tool_lines(role),
        )
        for other in self.settings.roles:
            saying = self._visible.get(other.name, Utterance(0))
            parts = (saying.text, shown_value(saying.value), shown_result(saying))
            for key, part in zip(FIELDS, parts, strict=True):
                values[f"{other.name}.{key}"] = clipped(part, _FIELD_SHOWN)
        template = role.again if self.turn > 1 and role.again else role.prompt
        system = [Message("system", fill_template(role.system, values, quoted))] if role.system else []
        return [*system, Message("user", fill_template(template, values, quoted))]

    @property
    def _quoting(self) -> Quoting:
        """How what others wrote is quoted in prompts."""
        return quoting_for(role.name for role in self.settings.roles)

    def _quoted(self, text: str) -> str:
        """What others wrote, in a sentence of the workflow's own."""
        return self._quoting.text(IN_QUESTIONS.text(text))

    def _tool_lines(self, role: Role) -> str:
        """The tools that a role may call, one JSON object per line."""
        return function_lines(tool for tool in self.tools if role.may_call(tool["function"]["name"]))

    def _run(self, phase: Phase, calls: list[RoleCall]) -> None:
        self.phase, self.calls, self.seen, self.messages = phase, calls, [], []
        self._next_plan()

    # -- the end of a turn -----------------------------------------------------------------------------------------

    def _check(self) -> None:
        """See whether the run is over, by a plan where that takes one."""
        until = self.settings.until
        if isinstance(until, Agree):
            left, right = self._value_at(until.left), self._value_at(until.right)
            if same_answer(left, right):
                self._end("answered")
            else:
                self._turn_over(f"{self._told(until.left, left)}; {self._told(until.right, right)}. They do not agree.")
            return
        missing = self._missing(until)
        if missing:
            self._turn_over(f"{' and '.join(missing)} gave nothing that could be read, so nothing was tried.")
        elif isinstance(until, PassTests):
            code, tests = self.said[until.code].value, self.said[until.tests].value
            scripts = [prompts.script_with_input(code, test["input"]) for test in tests]
            self._run("check", [RoleCall("", Call(until.tool, {until.argument: script})) for script in scripts])
        else:
            action = self.said[until.action].value
            self._run("check", [RoleCall("", Call(until.tool, {"state": self.environment.state, "action": action}))])

    def _told(self, place: str, value: Any) -> str:
        """What is compared with what, for the roles."""
        name, _, part = place.partition(".")
        what = "the result of" if part == "result" else "the word of"
        if value is None:
            return f"{what} {name} is missing"
        return f"{what} {name} is {self._quoted(clipped(shown_value(value).strip(), 400))}"

    def _missing(self, until: PassTests | ReachGoal) -> list[str]:
        """Roles of the ending without a readable word; an action counts in its own turn only."""
        if isinstance(until, ReachGoal):
            saying = self.said.get(until.action)
            # An action of an earlier turn was already taken; taking it again would change the world twice.
            fresh = saying is not None and saying.turn == self.turn and saying.value is not None
            return [] if fresh else [until.action]
        said = {name: self.said.get(name) for name in (until.code, until.tests)}
        return [name for name, saying in said.items() if saying is None or saying.value is None]

    def _value_at(self, place: str) -> Any:
        """What `role.field` is; the result of tools only if they succeeded."""
        name, _, part = place.partition(".")
        saying = self.said.get(name)
        if saying is None or saying.value is None:
            return None
        if part == "result":
            return saying.result if saying.ok else None
        return saying.text if part == "text" else saying.value

    def _look(self, seen: Observation) -> None:
        """The environment as it is at the start."""
        environment = _environment_state(seen)
        if environment is None:
            self._end("crashed", f"the environment did not begin: {printed(seen)}")
            return
        self.environment = environment
        self._next_role(0)

    def _checked(self, seen: Sequence[Observation]) -> None:
        until = self.settings.until
        if isinstance(until, ReachGoal):
            self._stepped(until, seen[0])
            return
        assert isinstance(until, PassTests)
        tests = self.said[until.tests].value
        failed = [
            prompts.tell_mismatch(number, test, with_own_status(printed(one), one.ok), self._quoting)
            for number, (test, one) in enumerate(zip(tests, seen, strict=True), 1)
            if not (one.ok and same_output(printed(one), test["output"]))
        ]
        if failed:
            self._turn_over(f"{len(failed)} of {len(tests)} tests do not match.\n" + "\n".join(failed))
        else:
            self._end("answered")

    def _stepped(self, until: ReachGoal, seen: Observation) -> None:
        environment = _environment_state(seen)
        if environment is None:
            self._turn_over(self._quoted(f"the environment did not take it: {printed(seen)}"))
            return
        value = self.said[until.action].value
        self.actions.extend(value if isinstance(value, list) else [value])
        self.environment = environment
        self.rewards.append(environment.reward)
        if environment.done:
            self._end("answered")
        else:
            self._turn_over(self._quoted(environment.observation))

    def _turn_over(self, outcome: str) -> None:
        said = tuple((name, saying) for name, saying in self.said.items() if saying.turn == self.turn)
        self.records.append(TurnRecord(self.turn, said, clipped(outcome)))
        if self.turn >= self.settings.turns:
            self._end("rounds", f"after {self.turn} turns: {clipped(outcome, 300)}")
            return
        self.turn += 1
        self.phase = "ask"
        self._next_role(0)

    def _end(self, stop: str, detail: str = "") -> None:
        """The end, with the last word of the answering role; of an environment, with all actions that it took."""
        saying = self.said.get(self.settings.answering)
        answer = shown_value(saying.value) if saying is not None and saying.value is not None else None
        if isinstance(self.settings.until, ReachGoal):
            answer = json.dumps(self.actions, ensure_ascii=False) if self.actions else None
        # A run in which no role was ever understood failed by its format, not for lack of rounds.
        unread = bool(self.records) and all(s.value is None for record in self.records for _, s in record.said)
        self._close(Done(answer, "format" if stop == "rounds" and unread else stop, detail))

    def _close(self, done: Done) -> None:
        self.final, self.phase, self.plan = done, "done", None
        self.calls, self.seen, self.messages = [], [], []

    def finish(self, stop: str, detail: str = "") -> None:
        """End from outside, with the last word that was said."""
        if self.phase != "done":
            self._end(stop, detail)

    # -- copies ----------------------------------------------------------------------------------------------------

    def fork(self) -> Self:
        """An independent copy; what is immutable is shared, lists and tables are not."""
        # `copy.deepcopy` would copy every record and state; they are values, so copied lists and tables are enough.
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        for name in ("messages", "records", "calls", "seen", "actions", "rewards"):
            setattr(twin, name, list(getattr(self, name)))
        twin.said, twin.earlier = dict(self.said), dict(self.earlier)
        return twin

    def dump(self) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in _PLAIN}
        return {
            **plain,
            "settings": to_document(self.settings),
            "said": {name: saying.to_json() for name, saying in self.said.items()},
            "earlier": {name: saying.to_json() for name, saying in self.earlier.items()},
            "records": [record.to_json() for record in self.records],
            "messages": [message.to_json() for message in self.messages],
            "calls": [[each.owner, each.call.to_json()] for each in self.calls],
            "plan": None if self.plan is None else self.plan.to_json(),
            "seen": [seen.to_json() for seen in self.seen],
            "environment": list(self.environment),
            "actions": list(self.actions),
            "rewards": list(self.rewards),
            "reading": None if self.last_reading is None else self.last_reading.to_json(),
            "final": [self.final.answer, self.final.stop, self.final.detail],
        }

    def _load(self, settings: Workflow, dumped: Mapping[str, Any]) -> None:
        self.settings = settings
        for name in _PLAIN:
            setattr(self, name, dumped[name])
        self.tools = list(dumped["tools"])
        self.said = {name: Utterance.from_json(saying) for name, saying in dumped["said"].items()}
        self.earlier = {name: Utterance.from_json(saying) for name, saying in dumped["earlier"].items()}
        self.records = [TurnRecord.from_json(record) for record in dumped["records"]]
        self.messages = [Message.from_json(message) for message in dumped["messages"]]
        self.calls = [RoleCall(owner, Call.from_json(call)) for owner, call in dumped["calls"]]
        plan = dumped["plan"]
        self.plan = None if plan is None else Plan.parallel([Call.from_json(call) for call in plan])
        self.seen = [Observation.from_json(seen) for seen in dumped["seen"]]
        self.environment = EnvironmentState(*dumped["environment"])
        self.actions = list(dumped["actions"])
        self.rewards = list(dumped["rewards"])
        read = dumped["reading"]
        self.last_reading = None if read is None else Reading.from_json(read)
        self.final = Done(*dumped["final"])


_PLAIN = ("question", "tools", "parallel", "rounds", "turn", "place", "acts", "asked", "tries", "phase")


def _environment_state(seen: Observation) -> EnvironmentState | None:
    """The environment as a call of it returned it; `None` if it failed or returned something else."""
    content = seen.content
    if not seen.ok or not isinstance(content, Mapping) or "state" not in content:
        return None
    reward = content.get("reward", 0.0)
    return EnvironmentState(
        shown_value(content.get("observation", "")),
        content["state"],
        # A truthy text such as "no" must not end a run.
        content.get("done") is True,
        float(reward) if isinstance(reward, (int, float)) else 0.0,
    )
