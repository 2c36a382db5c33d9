"""Scripts that try to get out, to take everything, to survive or to lie: judged by what they achieved.

A sample of them, and those of another set. `tests/security/sandbox` runs all at every level, as root and as an ordinary
user.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from concertino_code.sandbox.jailed import JailedSandbox
from jail_suite import ATTACKS, assault, read_attacks


async def test_every_fifth_of_our_own_attacks_achieves_nothing(sandbox: JailedSandbox) -> None:
    # All of them take half a minute.
    assert await assault(sandbox, ATTACKS[::5]) == {}


@pytest.mark.soak
async def test_attacks_of_another_set_achieve_nothing_in_random_order(
    sandbox: JailedSandbox, shared_attacks: Path
) -> None:
    times = 3 if os.environ.get("CONCERTINO_FUZZ") else 1
    scripts = read_attacks(shared_attacks)
    assert len(scripts) >= 50
    assert await assault(sandbox, scripts, repetitions=times, seed=os.getpid()) == {}
