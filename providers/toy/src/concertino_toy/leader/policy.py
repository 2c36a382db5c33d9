"""The fixed policy: which calls come next, given what is known about each problem of the question.

In this order it corrects what was refused, repeats what failed, settles disputes with the calculator or the reader, and
has single answers confirmed by a second model, up to the calls of a round. In the last round, or when nothing may be
spent any more, it drops the checks. Each strategy has a module that writes the calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from concertino_toy.problems.grammar import GrammarError, read, results_used, sections, state_result, stated_results
from concertino_toy.problems.ontology import Quantity
from concertino_toy.reading import PROBLEM_HEADING

from .conversation import ConversationState, MemberSchema, WrittenCall
from .evidence import Dispute, ProblemState, SolverReply, judge_arithmetic, judge_notes, judge_reading
from .repair import repair

TRIES_PER_MODEL = 2
SENTENCES_PER_SIZE = 6
"""A part starts with the first model on the list, and with one further down for each so many sentences."""
_NEVER_ASKED = ("dependency_failed",)
"""Codes of calls that reached nobody and that nothing in them made fail."""


def read_parts(conversation: ConversationState) -> list[ProblemState]:
    """The parts of the question, with every attempt that the conversation holds."""
    found = sections(conversation.question)
    several = len(found) > 1
    parts = [ProblemState(number, f"Problem {number}: {body.strip()}" if several else body) for number, body in found]
    for part in parts:
        part.needs = tuple(k for k in results_used(part.text) if k != part.number)
    solver = conversation.solver
    for exchange in conversation.exchanges:
        for call, response in exchange:
            about = _part_of(call, parts)
            if about is None or response is None or solver is None or _checks(call, conversation):
                continue
            attempt = SolverReply(_model(call, solver), call, response)
            if response.error.get("code") in _NEVER_ASKED:
                continue
            about.attempts.append(attempt)
            # An answer makes an earlier failure good; only the last one is repaired or repeated.
            about.last_failure = None if attempt.answer else attempt
    for part in parts:
        part.trust = solver.models[2] if solver and solver.models else ()
        # Behind the collection of all attempts: what is outdated follows from the answers of other parts.
        part.attempts = [attempt for attempt in part.attempts if not _outdated(attempt, parts)]
        _weigh(part, conversation)
    return parts


class NextCalls:
    """The choice of one round's calls."""

    def __init__(self, conversation: ConversationState, parts: list[ProblemState]) -> None:
        self._conversation, self._parts = conversation, parts
        self._budget = conversation.budget
        self._at_once = conversation.calls_at_once
        self._rounds = self._budget.get("rounds", conversation.turns - len(conversation.exchanges))
        waited_for = {k for part in parts for k in part.needs}
        waiting = [part for part in parts if not part.answered and (part.needs or part.number in waited_for)]
        self._waited_for, self._waiting = waited_for, len(waiting)

    def calls(self) -> list[WrittenCall]:
        """The calls of the next round; none to conclude."""
        solver = self._conversation.solver
        if solver is None or solver.models is None or self._spent():
            return []
        # Checks are free, so only calls that cost units are counted against what is left.
        paid = int(min(self._at_once, self._budget.get("units", self._at_once)))
        chosen = [*self._needed(solver)][:paid]
        for part in self._parts:
            if self._rounds > 1 and part.answered and not part.settled and len(chosen) < self._at_once:
                check = self._check(part) or (self._ask(part, solver) if len(chosen) < paid else None)
                chosen += [check] if check else []
        return chosen[: self._at_once]

    def _spent(self) -> bool:
        over = any(self._budget.get(name, 1.0) <= 0 for name in ("usd", "units", "calls", "tokens"))
        return over or self._rounds < 1 or self._budget.get("seconds", 60.0) < 1

    def _needed(self, solver: MemberSchema) -> Iterator[WrittenCall]:
        """What is missing an answer: repairs and first or further attempts, whose own needs are met."""
        by_number = {part.number: part for part in self._parts}
        for part in self._parts:
            needs = [by_number[k] for k in part.needs if k in by_number]
            if part.answered or not all(self._usable(need) for need in needs):
                continue
            call = self._again(part) or self._ask(part, solver)
            if call:
                yield call
            # With few rounds, the second opinion goes out with the first instead of after it.
            if call and self._scarce and part.number in self._waited_for and not part.attempts:
                yield from self._second(part, call, solver)

    @property
    def _scarce(self) -> bool:
        """Whether the rounds do not allow one to ask and one to confirm for each problem that others wait for."""
        return self._at_once > 1 and self._rounds < 2 * self._waiting + 2

    def _second(self, part: ProblemState, first: WrittenCall, solver: MemberSchema) -> Iterator[WrittenCall]:
        """The opinion of another model, asked for in the same round as the first."""
        assert solver.models is not None
        _, key, names = solver.models
        other = next((name for name in by_size(names, part.text) if name != first.arguments.get(key)), None)
        if other is not None:
            yield solver.asking(self._self_contained(part), other)

    def _usable(self, part: ProblemState) -> bool:
        """A result may be built upon once it is settled, or cannot be settled any more."""
        if not part.answered or part.settled:
            return part.settled
        solver = self._conversation.solver
        return self._rounds < max(3, self._waiting + 1) or (
            solver is not None and not self._check(part) and not self._ask(part, solver)
        )

    def _again(self, part: ProblemState) -> WrittenCall | None:
        """The repaired call after PARSE_ERR, the same call after a failure that says it may be repeated."""
        failure = part.last_failure
        if failure is None:
            return None
        if failure.response.status == "PARSE_ERR":
            corrected = repair(failure.call, failure.response.error, self._conversation.actions)
            return corrected if corrected and self._conversation.response_to(corrected) is None else None
        repeats = sum(attempt.call == failure.call for attempt in part.attempts)
        again = failure.response.status == "EXEC_ERR" and failure.response.error.get("retryable")
        return failure.call if again and repeats < TRIES_PER_MODEL else None

    def _ask(self, part: ProblemState, solver: MemberSchema) -> WrittenCall | None:
        """A solver call with a model that has not replied and was asked less than twice; None beyond that."""
        if solver.models is None:
            return None
        _, _, names = solver.models
        asked = Counter(attempt.model for attempt in part.attempts)
        replied = {attempt.model for attempt in part.attempts if attempt.final}
        order = by_size(names, part.text)
        start = len(names) - names[::-1].index(order[0]) - 1
        if part.answered:
            # To confirm, a model of the right size that failed by accident is better than a smaller one.
            order.sort(key=lambda name: (name in names[:start], asked[name]))
        else:
            order.sort(key=lambda name: asked[name])
        name = next((name for name in order if name not in replied and asked[name] < TRIES_PER_MODEL), None)
        return None if name is None else solver.asking(self._self_contained(part), name)

    def _self_contained(self, part: ProblemState) -> str:
        """The part's text, with the results of other parts that it uses."""
        known = {other.number: other.answer[0] for other in self._parts if other.number in part.needs and other.answer}
        return with_results(part, self._parts, known)

    def _check(self, part: ProblemState) -> WrittenCall | None:
        """The call that would decide the part's dispute, None if there is none or it was made without success."""
        dispute = part.dispute()
        call = _check_call(part, dispute, self._conversation) if dispute else None
        made = self._conversation.responses_to(call) if call else []
        useless = len(made) >= TRIES_PER_MODEL or any(response.status == "OK" for response in made)
        return None if useless else call


def by_size(names: Sequence[str], text: str) -> list[str]:
    """The models in the order in which they are asked: first the one that suits the length of a text."""
    start = min(len(names) - 1, text.count(". ") // SENTENCES_PER_SIZE)
    return [*names[start:], *reversed(names[:start])]


def with_results(part: ProblemState, parts: Iterable[ProblemState], known: Mapping[int, str]) -> str:
    """A part's text that stands alone: followed by the results of other parts, by number, that it uses."""
    given = []
    for other in parts:
        about = asked_quantity(other) if other.number in known else None
        if about:
            given.append(state_result(other.number, about, known[other.number]))
    return "\n\n".join([part.text, *given])


def _check_call(part: ProblemState, dispute: Dispute, conversation: ConversationState) -> WrittenCall | None:
    """Ask the calculator about numbers, the reader about what the text states."""
    parameter = "expression" if dispute.kind == "arithmetic" else "text"
    tool = conversation.taking(parameter)
    asked = dispute.first.steps[dispute.quantity].numbers if dispute.kind == "arithmetic" else part.text
    return WrittenCall(tool.name, {parameter: asked}) if tool else None


def _weigh(part: ProblemState, conversation: ConversationState) -> None:
    """Apply the verdicts of the checks that were made; each ends its dispute or ends the weighing."""
    while dispute := part.dispute():
        call = _check_call(part, dispute, conversation)
        response = conversation.response_to(call) if call else None
        if response is None or response.status != "OK":
            return
        if dispute.kind == "arithmetic":
            judge_arithmetic(dispute, response.content)
        elif stated := _stated(response.content, dispute.quantity):
            judge_reading(dispute, stated)
        elif _lists_notes(response.content):
            judge_notes(dispute)
        # A verdict that leaves the dispute as it was would be applied for ever.
        if part.dispute() == dispute:
            return


def _stated(content: object, quantity: str) -> str | None:
    """The formula that a reader's listing gives for a quantity."""
    problems = content.get("problems") if isinstance(content, dict) else None
    for problem in problems if isinstance(problems, list) else ():
        for key, name in (("quantities", quantity), ("magic_numbers", quantity.removeprefix("the magic number for "))):
            listed = problem.get(key) if isinstance(problem, dict) else None
            if isinstance(listed, dict) and name in listed:
                return str(listed[name])
    return None


def _lists_notes(content: object) -> bool:
    """Whether a reader's listing has notes to ignore."""
    problems = content.get("problems") if isinstance(content, dict) else None
    return isinstance(problems, list) and any(isinstance(p, dict) and p.get("notes_to_ignore") for p in problems)


def asked_quantity(part: ProblemState) -> Quantity | None:
    """The first quantity that a part asks for: the one that [answerk] stands for."""
    try:
        asks = read(part.text, strict=False).problems[-1].asks
    except GrammarError:
        return None
    return next((ask for ask in asks if isinstance(ask, Quantity)), None)


def _outdated(attempt: SolverReply, parts: list[ProblemState]) -> bool:
    """Whether a solver was given a result of another problem that has since proved wrong."""
    answers = {part.number: part.answer[0] for part in parts if part.answer}
    given = stated_results("\n".join(v for v in attempt.call.arguments.values() if isinstance(v, str)))
    return any(k in answers and answers[k] != value for k, value in given)


def _part_of(call: WrittenCall, parts: list[ProblemState]) -> ProblemState | None:
    """The part that a call is about: by its heading, or the only one."""
    if len(parts) == 1:
        return parts[0]
    heads = [PROBLEM_HEADING.match(value) for value in call.arguments.values() if isinstance(value, str)]
    numbers = [int(match[1]) for match in heads if match]
    return next((part for part in parts if numbers and part.number == numbers[0]), None)


def _checks(call: WrittenCall, conversation: ConversationState) -> bool:
    """Whether a call went to the calculator, the reader or the combiner."""
    others = (conversation.taking("expression"), conversation.taking("text"), conversation.combiner)
    return any(tool and tool.name == call.name for tool in others)


def _model(call: WrittenCall, solver: MemberSchema) -> str:
    """The model that a call was given to; empty if it never reached one."""
    _, key, names = solver.models or ("", "", ())
    name = call.arguments.get(key, "")
    return name if name in names else ""
