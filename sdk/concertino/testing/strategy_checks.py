"""Checks of strategies by their behaviour. No model is asked and no member runs; see `strategy_driver`.

A strategy promises that any text can be read, that its machine can be copied and written down between any two steps,
and that it ends. A strategy that cannot write its own format (`write_turn` raises `UsageError`) is checked as far as
that is possible, and the report says why the rest is skipped.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import is_dataclass
from typing import Any

from concertino.core.model import Message, Reply
from concertino.core.observation import Status
from concertino.core.plan import Call
from concertino.strategies.base.machine import Act, Ask, Done, Machine, TaskContext

from .check import CheckFailed, CheckMissing, CheckSkipped, StrategySubject
from .hostile_texts import HOSTILE_TEXTS, MEGABYTE_PIECES
from .strategy_driver import Driver, Voice, look, seen

RUNS = 12
"""Random runs of the checks that make some."""
MEGABYTE_SECONDS = 20.0
"""Seconds of this process's time that reading a text of a megabyte may take."""
LAST_ASKS = 4
"""Replies that a machine may still ask for, for each of its parts, after it was ended from outside."""


def its_settings_are_read_back(subject: StrategySubject) -> None:
    """`from_json` reads back what `to_json` gives, through JSON, and the name is among it."""
    strategy = subject.strategy
    written = json.loads(json.dumps(strategy.to_json()))
    if written.get("name") != strategy.name:
        raise CheckFailed(f"`to_json` gives name={written.get('name')!r}; expected {strategy.name!r}")
    again = type(strategy).from_json(written)
    # Through JSON, as in a trace: tuples come back as lists, and must still make equal settings.
    if json.loads(json.dumps(again.to_json())) != written or (is_dataclass(strategy) and again != strategy):
        raise CheckFailed(f"{written} was read back as {again}; make each setting a field of a dataclass")


def it_begins_with_a_question_or_a_plan(subject: StrategySubject) -> None:
    """A run begins with an Ask or an Act, whatever the question, and in a replay without tools."""
    driver = Driver(subject)
    for question in (*subject.questions, *HOSTILE_TEXTS):
        if isinstance(step := look(driver.begin(question)), Done):
            raise CheckFailed(f"a run with the question {_short(question)} begins with {step}")
    if not subject.strategy.reads_tools:
        try:
            look(subject.strategy.begin(TaskContext(subject.questions[0])))
        except Exception as error:
            raise CheckFailed(
                f"without tools, as in a replay, `begin` raises {_named(error)}; do without, or set `reads_tools`"
            ) from error


def a_written_turn_is_read_back(subject: StrategySubject) -> None:
    """What `write_turn` writes is read as the same calls, without an issue, and they are run."""
    driver = Driver(subject)
    reasons: list[str] = []
    count = 0
    for machine, ask in driver.to_each_part():
        written, refused = driver.turns_of(ask.part)
        reasons += refused
        for calls, text in written:
            count += 1
            twin = machine.fork()
            twin.on_reply(Reply(text))
            _expect_calls(twin, calls, text)
    if not count:
        raise CheckSkipped(reasons[0] if reasons else "no part of it is asked at the start")


def _expect_calls(machine: Machine, calls: Iterable[Call], text: str) -> None:
    wanted = [_plain(call) for call in calls]
    step, reading = look(machine), machine.reading
    if reading is not None:
        if reading.issues:
            raise CheckFailed(f"of its own text {_short(text)} `reading` says {reading.issues[0].message!r}")
        if (read := [_plain(call) for call in reading.calls]) != wanted:
            raise CheckFailed(f"{_short(text)} was written for {wanted} and read as {read}")
    if isinstance(step, Act):
        planned = [_plain(call) for call in step.plan.calls]
        wrong = [call.error for call in step.plan.calls if call.error is not None]
        if planned != wanted or wrong:
            raise CheckFailed(
                f"{_short(text)} was written for {wanted}; its plan is {planned}"
                + (f", with the error {wrong[0]}" if wrong else "")
            )
    elif reading is None or isinstance(step, Done):
        raise CheckFailed(f"{_short(text)} was written for {wanted} and is followed by {_short(repr(step))}")


def _plain(call: Call) -> tuple[str, Any]:
    """A call without the white space around its texts, which a format may lay out."""
    data = call.data
    stripped = {k: v.strip() if isinstance(v, str) else v for k, v in data.items()} if isinstance(data, dict) else data
    return call.name, stripped


def a_written_answer_ends_the_run(subject: StrategySubject) -> None:
    """What `write_answer` writes ends the run with that answer."""
    driver = Driver(subject)
    for machine in driver.to_first_ask():
        told: dict[str, int] = {}
        for _ in range(driver.most_asks):
            step = look(machine)
            if isinstance(step, Ask):
                texts = driver.answers_of(step.part)
                place = told[step.part] = told.get(step.part, -1) + 1
                machine.on_reply(Reply(texts[place % len(texts)]))
            elif isinstance(step, Act):
                machine.observe([driver.observe(call) for call in step.plan.calls], {"usd": 1.0})
            else:
                break
        if not isinstance(step, Done) or step.answer != "42":
            raise CheckFailed(f"`write_answer('42')` was told, and it is followed by {_short(repr(step))}")


def any_text_is_read(subject: StrategySubject) -> None:
    """No reply raises: empty, cut off, damaged, of another format, with control characters, or of a megabyte."""
    driver = Driver(subject)
    for machine in driver.to_first_ask():
        for text in HOSTILE_TEXTS:
            for reason in ("stop", "length"):
                _read(machine, text, reason)
    for seed in range(RUNS):
        with _Naming(f"in random run {seed}"):
            driver.run(driver.begin(), driver.random_voice(seed))
    first = next(driver.to_each_part(), None)
    if first is None:
        raise CheckSkipped("no run of it asks a model")
    machine, ask = first
    for piece in (*MEGABYTE_PIECES, *driver.good_texts(ask.part)[:1]):
        # Time of this process, because a busy machine is not the reader's fault.
        began = time.process_time()
        _read(machine, piece * (1_000_000 // len(piece)), "stop")
        if (took := time.process_time() - began) > MEGABYTE_SECONDS:
            raise CheckFailed(f"a megabyte of {_short(piece)} took {took:.0f} s; read in linear time")


def _read(machine: Machine, text: str, reason: str) -> None:
    twin = machine.fork()
    with _Naming(f"told {_short(text)}"):
        twin.on_reply(Reply(text, finish_reason=reason))
        look(twin)
        json.dumps(twin.dump())


def every_reply_is_reported(subject: StrategySubject) -> None:
    """`reading` says what each reply was read as; the places of issues lie inside of the text."""
    driver = Driver(subject)
    for machine in driver.to_first_ask():
        if machine.reading is not None:
            raise CheckFailed(f"`reading` is {machine.reading} before the first reply; expected None")
        ask = machine.step()
        assert isinstance(ask, Ask)
        for text in (*HOSTILE_TEXTS, *driver.good_texts(ask.part)):
            twin = machine.fork()
            twin.on_reply(Reply(text))
            if (reading := twin.reading) is None:
                raise CheckMissing("`Machine.reading` is None after a reply; override it, for training reads it")
            if reading.part not in subject.strategy.parts:
                raise CheckFailed(
                    f"`reading.part` is {reading.part!r}; `parts` has {', '.join(subject.strategy.parts)}"
                )
            for issue in reading.issues:
                if not (0 <= issue.start <= issue.end <= len(text) and issue.code and issue.message):
                    raise CheckFailed(f"told {_short(text)} of {len(text)} characters, it reports {issue}")


def any_observation_is_shown(subject: StrategySubject) -> None:
    """Every status and every content is survived, and no result decides what only the model may say."""
    driver = Driver(subject)
    # Results in the very form of replies: a machine that searches them for calls or answers gives itself away.
    forged = ("a plain result", *driver.good_texts(""))
    contents: tuple[Any, ...] = (*forged, *HOSTILE_TEXTS, {"a": [None, 1e300]}, [], 0, None)
    count = 0
    for after, act in driver.to_each_act():
        count += 1
        for status in Status:
            kinds: dict[str, str] = {}
            for content in contents:
                twin = after.fork()
                with _Naming(f"shown {status} with the content {_short(repr(content))}"):
                    observed = driver.ending_as(status, content)
                    twin.observe([observed(call) for call in act.plan.calls], {"usd": 0.5})
                    kind = type(look(twin)).__name__
                    json.dumps(twin.dump())
                if content in forged:
                    kinds.setdefault(kind, str(content))
            if len(kinds) > 1:
                shown = " and ".join(f"{kind} after {_short(content)}" for kind, content in kinds.items())
                raise CheckFailed(
                    f"of results with the status {status}, it wants {shown}; never read a result as a reply"
                )
    if not count:
        raise CheckSkipped("no reply that calls something is known; give `texts`, or its class a method write_turn")


def it_is_written_down_at_every_step(subject: StrategySubject) -> None:
    """At every step a fork and a restored dump continue as the original does, and share nothing with it."""
    driver = Driver(subject)
    # -1 is the run in which everybody says what the format reads.
    for seed in range(-1, RUNS):
        voice = driver.good_voice() if seed < 0 else driver.random_voice(seed)
        observe = driver.observe if seed < 0 else driver.random_observer(seed)
        machine = driver.begin()
        for number in range(driver.most_asks):
            step = look(machine)
            with _Naming(f"in run {seed} at step {number} ({type(step).__name__})"):
                machine = _copied(driver, machine, step, voice, observe)
            if isinstance(step, Done):
                break


def _copied(driver: Driver, machine: Machine, step: Any, voice: Any, observe: Any) -> Machine:
    """Check the copies of a machine, and give one of them a step further."""
    written = _dumped(machine)
    restored, fork = _restored(driver, written), machine.fork()
    for how, twin in (("restored", restored), ("forked", fork)):
        if seen(look(twin)) != seen(step):
            raise CheckFailed(f"the {how} machine wants {_short(repr(look(twin)))}; the original {_short(repr(step))}")
        if (other := _dumped(twin)) != written:
            raise CheckFailed(f"the dump of the {how} machine differs {_difference(written, other)}")
        if _state(twin) != _state(machine):
            raise CheckFailed(f"`reading` or `turn_state` of the {how} machine differs from the original's")
    text = voice(step) if isinstance(step, Ask) else ""
    seen_as = [observe(call) for call in step.plan.calls] if isinstance(step, Act) else []
    for twin in (restored, fork):
        if isinstance(step, Ask):
            twin.on_reply(Reply(text))
        elif isinstance(step, Act):
            twin.observe(seen_as, {"usd": 1.0})
    if (other := _dumped(machine)) != written:
        raise CheckFailed(f"what its fork was told changed it {_difference(written, other)}; copy lists and mappings")
    if (one := _dumped(fork)) != (other := _dumped(restored)):
        raise CheckFailed(f"after the same step, fork and restored machine differ {_difference(one, other)}")
    return restored


def _restored(driver: Driver, written: Any) -> Machine:
    """A machine from a dump, as a resumed run makes it: by a strategy of the same settings."""
    return driver.strategy.restore(json.loads(json.dumps(written)))


def _dumped(machine: Machine) -> Any:
    return json.loads(json.dumps(machine.dump()))


def _state(machine: Machine) -> Any:
    reading, turn = machine.reading, machine.turn_state()
    said = None if turn is None else (turn.turn, turn.finished, {n: s.to_json() for n, s in turn.said.items()})
    return None if reading is None else reading.to_json(), said


def it_ends_from_outside(subject: StrategySubject) -> None:
    """`finish` ends a run at any step: at once, or after a last answer; nothing is run any more."""
    driver = Driver(subject)
    machine, voice, last = driver.begin(), driver.good_voice(), LAST_ASKS * len(subject.strategy.parts)
    for number in range(driver.most_asks):
        step = look(machine)
        with _Naming(f"finished at step {number} ({type(step).__name__})"):
            for text in ("", "42", *driver.good_texts(step.part if isinstance(step, Ask) else "")):
                twin = machine.fork()
                twin.finish("budget", "the check ends it")
                for _ in range(last):
                    after = look(twin)
                    if not isinstance(after, Ask):
                        break
                    twin.on_reply(Reply(text))
                if not isinstance(after, Done):
                    raise CheckFailed(f"it still wants {_short(repr(after))}; ask for a last answer, or be Done")
        if isinstance(step, Done):
            break
        driver.feed(machine, step, voice, driver.observe)


def it_ends_whatever_the_model_says(subject: StrategySubject) -> None:
    """Every run ends within its limits: with a model that calls for ever, says nothing useful, or anything at all."""
    driver = Driver(subject)
    voices = {"calls for ever": driver.calling_voice(), "says the same as before": driver.good_voice()}
    voices |= {f"says {_short(text)}": _always(text) for text in HOSTILE_TEXTS}
    voices |= {f"says anything (seed {seed})": driver.random_voice(seed) for seed in range(RUNS)}
    for what, voice in voices.items():
        for status in (None, Status.EXEC_ERR):
            with _Naming(f"a model that {what}"):
                driver.run(driver.begin(), voice, None if status is None else driver.ending_as(status))


def _always(text: str) -> Voice:
    return lambda ask: text


def calls_begun_early_are_those_of_the_turn(subject: StrategySubject) -> None:
    """`complete_calls` of a part of a text are calls of the finished turn, and a longer part gives no fewer."""
    driver = Driver(subject)
    if type(driver.begin()).complete_calls is Machine.complete_calls:
        raise CheckSkipped("its machine does not override `complete_calls`")
    for machine in driver.to_first_ask():
        ask = machine.step()
        assert isinstance(ask, Ask)
        for text in driver.good_texts(ask.part):
            twin = machine.fork()
            twin.on_reply(Reply(text))
            act = look(twin)
            planned = {call.id: (call.name, call.data) for call in act.plan.calls} if isinstance(act, Act) else {}
            before: set[str] = set()
            for end in range(0, len(text) + 1, max(1, len(text) // 50)):
                early = {call.id: (call.name, call.data) for call in machine.complete_calls(text[:end])}
                if not before <= set(early):
                    raise CheckFailed(
                        f"`complete_calls` forgets the calls {sorted(before - set(early))} of {_short(text)}"
                    )
                strange = [each for call, each in early.items() if planned.get(call) != each]
                if strange:
                    raise CheckFailed(
                        f"`complete_calls` begins {strange[0]}, which the plan of {_short(text)} does not have"
                    )
                before = set(early)


def fresh_messages_are_counted(subject: StrategySubject) -> None:
    """`fresh` counts the messages that are new to a role, its own replies left out, so that a trace has each once."""
    driver = Driver(subject)
    for seed in range(-1, RUNS):
        voice = driver.good_voice() if seed < 0 else driver.random_voice(seed)
        machine = driver.begin()
        known: dict[str, list[Message]] = {}
        for _ in range(driver.most_asks):
            step = look(machine)
            if isinstance(step, Done):
                break
            if isinstance(step, Ask):
                _expect_fresh(step, known.get(step.role, []))
                known[step.role] = list(step.messages)
            driver.feed(machine, step, voice, driver.observe)


def _expect_fresh(ask: Ask, known: list[Message]) -> None:
    before = len(ask.messages) - ask.fresh
    if not ask.messages:
        raise CheckFailed(f"it asks {ask.role!r} with no messages")
    old = list(ask.messages[: max(before, 0)])
    own = old[len(known) :]  # its own reply, which the trace has already
    if before < 0 or old[: len(known)] != known[: len(old)] or any(message.role != "assistant" for message in own):
        raise CheckFailed(
            f"it asks {ask.role!r} with {len(ask.messages)} messages, fresh={ask.fresh}; but the first {before} are "
            "not those that it was asked with before, and its reply"
        )


STRATEGY_CHECKS = (
    its_settings_are_read_back,
    it_begins_with_a_question_or_a_plan,
    a_written_turn_is_read_back,
    a_written_answer_ends_the_run,
    any_text_is_read,
    every_reply_is_reported,
    any_observation_is_shown,
    it_is_written_down_at_every_step,
    it_ends_from_outside,
    it_ends_whatever_the_model_says,
    calls_begun_early_are_those_of_the_turn,
    fresh_messages_are_counted,
)


class _Naming:
    """Says what was being done when something is raised."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, CheckFailed):
            raise CheckFailed(f"{self.what}: {error}") from error
        if isinstance(error, Exception) and not isinstance(error, CheckSkipped):
            raise CheckFailed(f"{self.what}, it raises {_named(error)}") from error


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _short(text: str, limit: int = 120) -> str:
    shown = ascii(text) if not text.startswith(("Ask(", "Act(", "Done(")) else text
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def _difference(one: Any, other: Any) -> str:
    """Where two dumps differ first."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            if one.get(key) != other.get(key):
                return f"at {key!r}: {_short(json.dumps(one.get(key)))} and {_short(json.dumps(other.get(key)))}"
    return f"({_short(json.dumps(one))} and {_short(json.dumps(other))})"
