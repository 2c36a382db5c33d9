"""Hostile schemas and values are refused for the right reason or validated, fast and offline (bar J4).

The bars are 50 ms for a refusal and 20 ms for a validation; the tests allow ten times that for a busy
machine.
"""

import socket
import time

import pytest
from concertino.schema import InstanceRefused, SchemaRefused, admit, compile_schema, explain, guard_instance

from .nasty import Nasty, attacks

ATTACKS = attacks()


@pytest.fixture
def no_sockets(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    opened: list[str] = []

    def trap(*args: object, **kwargs: object) -> None:
        opened.append("socket")
        raise AssertionError("a schema made the library open a socket")

    monkeypatch.setattr(socket, "socket", trap)
    monkeypatch.setattr(socket, "create_connection", trap)
    monkeypatch.setattr(socket, "getaddrinfo", trap)
    return opened


def outcome(attack: Nasty, backend: str) -> tuple[str | None, float]:
    """The reason of the refusal (None: validated and explained), and the CPU seconds of the decisive step."""
    start = time.thread_time()
    try:
        validator = compile_schema(attack.schema, backend=backend)  # type: ignore[arg-type]
        start = time.thread_time()
        guard_instance(attack.value, max_items=validator.max_items)
        validator.is_valid(attack.value)
        seconds = time.thread_time() - start
        # A pattern that is just cheap enough for one look may be too costly for the next one.
        violations = validator.check(attack.value)
    except (SchemaRefused, InstanceRefused) as refusal:
        return refusal.reason, time.thread_time() - start
    assert len(explain(violations, validator, limit=1024)) <= 1024
    return None, seconds


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["auto", "python"])
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_is_refused_for_its_reason_or_validated(attack: Nasty, backend: str, no_sockets: list[str]) -> None:
    for _ in range(3):  # a machine that stands still is not the attack's
        reason, seconds = outcome(attack, backend)
        assert reason in ({attack.reason, attack.python} if backend == "python" else {attack.reason})
        if seconds < (2.0 if reason is None else 4.0):  # a tenth of it on an idle machine
            break
    else:
        pytest.fail(f"{seconds:.1f} seconds, three times")
    assert no_sockets == []


def test_there_are_enough_attacks() -> None:
    assert len({attack.name for attack in ATTACKS}) >= 45


def test_admission_alone_gives_the_same_reasons_in_few_words() -> None:
    refused_by_admission = 0
    for attack in ATTACKS:
        try:
            admit(attack.schema)
        except SchemaRefused as refusal:
            found, text = refusal.reason, str(refusal)
        else:
            continue
        refused_by_admission += 1
        assert found == attack.reason, attack.name
        assert len(text) < 500, attack.name
    assert refused_by_admission >= 45
