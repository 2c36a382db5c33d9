"""Every attack at every level, as root and as an ordinary user: each reaches nothing but what the page says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from levels_matrix import ATTACKS, KNOWN_GAPS, LEVELS, PAGE, USERS, measure, written_page

OFTEN = ("namespaces-root",)
"""Measured at each change: a cell takes a third of a minute. `make soak` measures all of them."""
CELLS = [
    pytest.param(level, user, id=f"{level}-{user}", marks=[] if f"{level}-{user}" in OFTEN else [pytest.mark.soak])
    for level in LEVELS
    for user in USERS
]
NAMES = [attack.name.removeprefix("own_") for attack in ATTACKS]


@pytest.mark.alone  # it marks processes, and those of other tests of the sandbox bear the same mark
@pytest.mark.slow
@pytest.mark.parametrize(("level", "user"), CELLS)
@pytest.mark.parametrize("attack", NAMES)
def test_an_attack_reaches_nothing_that_the_level_says_to_hold(level: str, user: str, attack: str) -> None:
    cell = measure(level, user)
    if cell.lacking:
        pytest.skip(cell.lacking)
    name = f"own_{attack}"
    if name not in KNOWN_GAPS[level]:
        assert cell.achieved.get(name, []) == []


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.parametrize(("level", "user"), CELLS)
def test_a_level_passes_its_self_test_and_leaves_no_process_and_no_folder(level: str, user: str) -> None:
    cell = measure(level, user)
    if cell.lacking:
        pytest.skip(cell.lacking)
    assert {name: what for name, what in cell.achieved.items() if name.removeprefix("own_") not in NAMES} == {}


def test_the_attacks_are_many_and_of_every_class() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS) >= 120
    assert len({attack.kind for attack in ATTACKS}) >= 8


def test_each_gap_is_of_an_attack_that_exists_and_the_strongest_level_has_none() -> None:
    known = {attack.name for attack in ATTACKS} | {"f07_multiprocessing"}
    assert {name for gaps in KNOWN_GAPS.values() for name in gaps} <= known
    assert KNOWN_GAPS["namespaces"] == {}


def test_the_page_shows_what_the_attacks_are_held_to() -> None:
    assert PAGE.read_text(encoding="utf-8") == written_page(), (
        f"run: python {Path(__file__).parent}/levels_matrix.py --write"
    )


_WITHOUT_NAMESPACES = """
import asyncio, os, sys
from concertino_code.jail import syscalls as sc
from concertino_code.sandbox import choose_level
from concertino_code.doctor import weaker
user, group = os.getuid(), os.getgid()
sc.unshare(sc.CLONE_NEWUSER)
sc.map_user(1000, user, group)
open("/proc/sys/user/max_user_namespaces", "w").write("0")  # of this namespace and those below, not of the machine
sc.prctl(sc.PR_SET_DUMPABLE, 1)
choice = asyncio.run(choose_level(python="/usr/bin/python3"))
print(choice.level, "|", choice.explain(), "|", weaker(choice.level))
"""


def test_where_no_user_namespace_is_granted_a_weaker_level_says_what_it_does_not_hold() -> None:
    done = subprocess.run([sys.executable, "-c", _WITHOUT_NAMESPACES], capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or "uid_map" in done.stderr:
        pytest.skip("this machine grants no user namespace to begin with")
    level, passed_over, not_held = (part.strip() for part in done.stdout.split("|"))
    assert "namespaces: " in passed_over, done.stderr
    assert level in ("landlock", "")
    if level == "landlock":
        assert "bubblewrap: " in passed_over
        assert "disk" in not_held
