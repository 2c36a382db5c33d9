"""A fixed policy that conducts: it splits a question, asks solvers in parallel, repairs, checks, concludes.

It knows no answer by itself. Each turn it reads the whole conversation and picks at most four calls, in
this order: repair what was refused, ask anew what failed, decide disputes with the calculator or the
reader, have single answers confirmed by a second model. In its last round it drops the checks;
with no rounds or budget left it answers with what it has.

With `slip` it misspells one argument of its first round, so that a demonstration shows a repair.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from random import Random

from concertino import ChatRequest

from .evidence import Attempt, Dispute, Part, judge_arithmetic, judge_reading
from .grammar import GrammarError, read, sections
from .models import SimulatedModel
from .ontology import Quantity
from .repair import repair
from .skills import INSTANT, Pace
from .transcript import Action, Call, Transcript, read_transcript

MAX_CALLS = 4
MAX_ROUNDS = 12
TRIES_PER_MODEL = 2
SENTENCES_PER_SIZE = 6
"""A part starts with the first model on the list, and with one further down for each so many sentences."""
_PART = re.compile(r"Problem (\d+):")


class Conductor(SimulatedModel):
    """The policy as a model: messages in, one round's text out."""

    def __init__(self, name: str = "sim/conductor", *, pace: Pace = INSTANT, slip: bool = False, seed: int = 0) -> None:
        super().__init__(name, pace)
        self._slip, self._seed = slip, seed

    async def compose(self, request: ChatRequest) -> str:
        """The next round, or the final answer where the last message asks for it."""
        transcript = read_transcript(request)
        parts = read_parts(transcript)
        if transcript.concluding:
            return _conclusion(parts)
        calls = _Turn(transcript, parts).calls()
        if self._slip and not transcript.exchanges:
            calls = self._misspell(calls, transcript)
        strategy = [f"- {call.name}: {_purpose(call)}" for call in calls]
        calls = calls or [Call(transcript.final, {})]
        return _round(parts, strategy or ["Nothing is left to ask, or to spend: conclude."], calls)

    def _misspell(self, calls: list[Call], transcript: Transcript) -> list[Call]:
        """Swap two letters in one argument's name or in one model's name."""
        chance = Random(f"{self._seed} {transcript.question}")
        if transcript.solver is None or transcript.solver.models is None or not calls:
            return calls
        subtask, model, _ = transcript.solver.models
        at = chance.randrange(len(calls))
        arguments = dict(calls[at].arguments)
        if chance.random() < 0.5:
            arguments[_swapped(subtask)] = arguments.pop(subtask)
        else:
            arguments[model] = _swapped(str(arguments[model]))
        return [*calls[:at], Call(calls[at].name, arguments), *calls[at + 1 :]]


def read_parts(transcript: Transcript) -> list[Part]:
    """The parts of the question, with every attempt that the conversation holds."""
    found = sections(transcript.question)
    several = len(found) > 1
    parts = [Part(number, f"Problem {number}: {body.strip()}" if several else body) for number, body in found]
    for part in parts:
        part.needs = tuple(k for k in _results_used(part.text) if k != part.number)
    solver = transcript.solver
    for exchange in transcript.exchanges:
        for call, response in exchange:
            about = _part_of(call, parts)
            if about is None or response is None or solver is None or _checks(call, transcript):
                continue
            attempt = Attempt(_model(call, solver), call, response)
            about.attempts.append(attempt)
            about.last_failure = None if attempt.answer else attempt
    for part in parts:
        _weigh(part, transcript)
    return parts


class _Turn:
    """The choice of one round's calls."""

    def __init__(self, transcript: Transcript, parts: list[Part]) -> None:
        self._transcript, self._parts = transcript, parts
        self._budget = transcript.budget
        self._rounds = self._budget.get("rounds", MAX_ROUNDS - len(transcript.exchanges))

    def calls(self) -> list[Call]:
        """At most four calls; none to conclude."""
        solver = self._transcript.solver
        if solver is None or solver.models is None or self._spent():
            return []
        paid = int(min(MAX_CALLS, self._budget.get("units", MAX_CALLS)))
        chosen = [*self._needed(solver)][:paid]
        for part in self._parts:
            if self._rounds > 1 and part.answered and not part.settled and len(chosen) < MAX_CALLS:
                check = self._check(part) or (self._ask(part, solver) if len(chosen) < paid else None)
                chosen += [check] if check else []
        return chosen[:MAX_CALLS]

    def _spent(self) -> bool:
        over = any(self._budget.get(name, 1.0) <= 0 for name in ("usd", "units", "calls", "tokens"))
        return over or self._rounds < 1 or self._budget.get("seconds", 60.0) < 1

    def _needed(self, solver: Action) -> Iterator[Call]:
        """What is missing an answer: repairs and first or further attempts, whose own needs are met."""
        by_number = {part.number: part for part in self._parts}
        for part in self._parts:
            needs = [by_number[k] for k in part.needs if k in by_number]
            if part.answered or not all(self._usable(need) for need in needs):
                continue
            call = self._again(part) or self._ask(part, solver)
            if call:
                yield call

    def _usable(self, part: Part) -> bool:
        """A result may be built upon once it is settled, or cannot be settled any more."""
        if not part.answered or part.settled:
            return part.settled
        solver = self._transcript.solver
        return self._rounds < 3 or (solver is not None and not self._check(part) and not self._ask(part, solver))

    def _again(self, part: Part) -> Call | None:
        """The repaired call after PARSE_ERR, the same call after a failure that says it may be repeated."""
        failure = part.last_failure
        if failure is None:
            return None
        if failure.response.status == "PARSE_ERR":
            mended = repair(failure.call, failure.response.error, self._transcript.actions)
            return mended if mended and self._transcript.response_to(mended) is None else None
        repeats = sum(attempt.call == failure.call for attempt in part.attempts)
        again = failure.response.status == "EXEC_ERR" and failure.response.error.get("retryable")
        return failure.call if again and repeats < TRIES_PER_MODEL else None

    def _ask(self, part: Part, solver: Action) -> Call | None:
        """A solver call with a model that has not replied and was asked less than twice; None beyond that."""
        if solver.models is None:
            return None
        subtask, model, names = solver.models
        asked = Counter(attempt.model for attempt in part.attempts)
        replied = {attempt.model for attempt in part.attempts if attempt.response.status == "OK"}
        start = min(len(names) - 1, part.text.count(". ") // SENTENCES_PER_SIZE)
        order = [*names[start:], *reversed(names[:start])]
        if part.answered:
            # To confirm, a model of the right size that failed by accident is better than a smaller one.
            order.sort(key=lambda name: (name in names[:start], asked[name]))
        else:
            order.sort(key=lambda name: asked[name])
        name = next((name for name in order if name not in replied and asked[name] < TRIES_PER_MODEL), None)
        return Call(solver.name, {subtask: self._self_contained(part), model: name}) if name else None

    def _self_contained(self, part: Part) -> str:
        """The part's text, with the results of other parts that it uses."""
        given = []
        for other in self._parts:
            about = _asked(other) if other.number in part.needs and other.answer else None
            if about:
                given.append(f"[answer{other.number}] stands for each {about} and equals {other.answer[0]}.")
        return "\n\n".join([part.text, *given])

    def _check(self, part: Part) -> Call | None:
        """The call that would decide the part's dispute, None if there is none or it was made in vain."""
        dispute = part.dispute()
        call = _check_call(part, dispute, self._transcript) if dispute else None
        return call if call and self._transcript.response_to(call) is None else None


def _check_call(part: Part, dispute: Dispute, transcript: Transcript) -> Call | None:
    """Ask the calculator about numbers, the reader about what the text states."""
    parameter = "expression" if dispute.kind == "arithmetic" else "text"
    tool = transcript.taking(parameter)
    asked = dispute.first.steps[dispute.quantity].numbers if dispute.kind == "arithmetic" else part.text
    return Call(tool.name, {parameter: asked}) if tool else None


def _weigh(part: Part, transcript: Transcript) -> None:
    """Apply the verdicts of the checks that were made; each ends its dispute or ends the weighing."""
    while dispute := part.dispute():
        call = _check_call(part, dispute, transcript)
        response = transcript.response_to(call) if call else None
        if response is None or response.status != "OK":
            return
        if dispute.kind == "arithmetic":
            judge_arithmetic(dispute, response.content)
        elif stated := _stated(response.content, dispute.quantity):
            judge_reading(dispute, stated)
        if part.dispute() == dispute:
            return


def _stated(content: object, quantity: str) -> str | None:
    """The formula that a reader's listing gives for a quantity."""
    problems = content.get("problems") if isinstance(content, dict) else None
    for problem in problems if isinstance(problems, list) else ():
        quantities = problem.get("quantities") if isinstance(problem, dict) else None
        if isinstance(quantities, dict) and quantity in quantities:
            return str(quantities[quantity])
    return None


def _results_used(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(int(k) for k in re.findall(r"\[answer(\d+)\]", text)))


def _asked(part: Part) -> Quantity | None:
    try:
        asks = read(part.text, strict=False).problems[-1].asks
    except GrammarError:
        return None
    return next((ask for ask in asks if isinstance(ask, Quantity)), None)


def _part_of(call: Call, parts: list[Part]) -> Part | None:
    """The part that a call is about: by its heading, or the only one."""
    if len(parts) == 1:
        return parts[0]
    heads = [_PART.match(value) for value in call.arguments.values() if isinstance(value, str)]
    numbers = [int(match[1]) for match in heads if match]
    return next((part for part in parts if numbers and part.number == numbers[0]), None)


def _checks(call: Call, transcript: Transcript) -> bool:
    """Whether a call went to the calculator or the reader."""
    return any(tool and tool.name == call.name for tool in map(transcript.taking, ("expression", "text")))


def _model(call: Call, solver: Action) -> str:
    """The model that a call was given to; empty if it never reached one."""
    _, key, names = solver.models or ("", "", ())
    name = call.arguments.get(key, "")
    return name if name in names else ""


def _swapped(name: str) -> str:
    return name[:1] + name[2:3] + name[1:2] + name[3:]


def _purpose(call: Call) -> str:
    shown = ", ".join(f"{key}={' '.join(str(value).split())[:48]!r}" for key, value in call.arguments.items())
    return shown or "no arguments"


def _state(part: Part) -> str:
    if not part.answered:
        failed = [f"{a.response.status} from {a.model or 'the executor'}" for a in part.attempts]
        return f"- Part {part.number}: no answer yet" + (f" ({', '.join(failed)})" if failed else "")
    known = "confirmed" if part.settled else "unconfirmed"
    said = ", ".join(f"{a.model} {'/'.join(a.answer)}{' (refuted)' * a.discredited}" for a in part.attempts if a.answer)
    return f"- Part {part.number}: {'/'.join(part.answer)}, {known} ({said})"


def _round(parts: list[Part], strategy: list[str], calls: list[Call]) -> str:
    state = "\n".join(map(_state, parts))
    headings = f"### State Analysis\n{state}\n\n### Strategy Planning and Tool Selection\n" + "\n".join(strategy)
    return "\n".join([f"<reasoning>\n{headings}\n</reasoning>", *(call.text() for call in calls)])


def _conclusion(parts: list[Part]) -> str:
    state = "\n".join(map(_state, parts))
    boxes = [f"\\boxed{{{value}}}" for part in parts for value in part.answer or ("unknown",)]
    return "\n".join([f"<reasoning>\n{state}\n</reasoning>", "<answer>", *boxes, "</answer>"])
