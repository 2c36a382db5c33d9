"""The strongest level that passes its self-test, and a reason for every one that does not."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from concertino_code.doctor import findings
from concertino_code.jail import seccomp, syscalls
from concertino_code.sandbox.base import SandboxUnavailable
from concertino_code.sandbox.jailed import JailedSandbox
from concertino_code.sandbox.levels import SAFE_LEVELS, choose_level, choose_level_now, open_sandbox
from concertino_code.sandbox.selftest import self_test
from concertino_code.settings import CodeSettings
from concertino_code.tool import python_tool


async def test_limits_alone_fail_the_self_test_and_are_never_chosen_unasked(namespaces: None) -> None:
    bare = JailedSandbox("limits", preload=(), python="/usr/bin/python3")
    reason = await self_test(bare)
    await bare.close()
    assert reason
    choice = await choose_level("limits")
    assert (choice.level, choice.safe) == ("", False)
    assert "allow_unsafe" in choice.explain()


async def test_limits_are_used_where_they_are_allowed_and_say_what_they_are() -> None:
    choice = await choose_level("limits", allow_unsafe=True)
    assert (choice.level, choice.safe) == ("limits", False)
    tool = python_tool(settings=CodeSettings(level="limits", allow_unsafe=True))
    assert "NOT a sandbox" in tool.description


async def test_namespaces_are_chosen_where_they_work(namespaces: None) -> None:
    choice = await choose_level()
    assert (choice.level, dict(choice.refused), choice.safe) == ("namespaces", {}, True)


async def test_a_level_that_cannot_be_used_is_refused_with_the_reason() -> None:
    choice = await choose_level("bubblewrap", bwrap="/nowhere/bwrap")
    assert choice.level == ""
    assert "bwrap is not installed" in choice.refused["bubblewrap"]
    with pytest.raises(SandboxUnavailable, match="bwrap is not installed"):
        await open_sandbox("bubblewrap", bwrap="/nowhere/bwrap")


async def test_a_weaker_level_is_taken_when_a_stronger_one_fails(
    namespaces: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    async def only_landlock(sandbox: JailedSandbox, **_: Any) -> str:
        tried.append(sandbox.level)
        return "" if sandbox.level == "landlock" else f"{sandbox.level} is forbidden"

    monkeypatch.setattr("concertino_code.sandbox.levels.self_test", only_landlock)
    choice = await choose_level()
    assert tried == list(SAFE_LEVELS)
    assert choice.level == "landlock"
    assert choice.explain() == "namespaces: namespaces is forbidden; bubblewrap: bubblewrap is forbidden"


async def test_other_systems_have_no_local_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "needs Linux" in (await choose_level()).explain()


async def test_a_choice_can_be_made_inside_an_event_loop(namespaces: None) -> None:
    assert choose_level_now(level="namespaces").level == "namespaces"


async def test_scripts_get_the_network_only_where_it_is_allowed(namespaces: None) -> None:
    code = (
        "import socket\ns = socket.create_server(('127.0.0.1', 0))\n"
        "c = socket.create_connection(s.getsockname())\nprint('open')"
    )
    answers = []
    for network in (False, True):
        async with JailedSandbox(preload=(), network=network) as sandbox:
            answers.append(await sandbox.run(code))
    assert [done.stdout.text for done in answers] == ["", "open\n"]
    assert "PermissionError" in answers[0].stderr.text or "OSError" in answers[0].stderr.text


@pytest.mark.parametrize(("machine", "architecture"), [("x86_64", 0xC000003E), ("aarch64", 0xC00000B7)])
def test_the_filter_is_a_valid_program_on_every_architecture(machine: str, architecture: int) -> None:
    column = syscalls.MACHINES.index(machine)
    program = seccomp.build(machine=machine)
    verdicts = {"socket": (41, 198), "mount": (165, 40), "ptrace": (101, 117), "bpf": (321, 280), "clone3": (435, 435)}
    for name, numbers in verdicts.items():
        first = 2 if name == "socket" else 0
        assert run_filter(program, architecture, numbers[column], first) >> 16 == 5, name
    for number in ((0, 63)[column], (1, 64)[column], (231, 94)[column]):  # read, write, exit_group
        assert run_filter(program, architecture, number) == 0x7FFF0000
    assert run_filter(program, architecture, (41, 198)[column], 1) == 0x7FFF0000
    assert run_filter(program, 0x40000003, 1) == 0x80000000
    assert run_filter(program, architecture, (56, 220)[column], 0x10000000 | 17) >> 16 == 5
    assert run_filter(program, architecture, (56, 220)[column], 17) == 0x7FFF0000


def run_filter(program: bytes, architecture: int, number: int, first: int = 0, second: int = 0) -> int:
    """An interpreter of the instructions that the filter uses; gives the verdict."""
    import struct

    code = list(struct.iter_unpack("<HBBI", program))
    data = {0: number, 4: architecture, 16: first, 24: second}
    at = accumulator = 0
    while True:
        operation, yes, no, value = code[at]
        at += 1
        if operation == 0x06:
            return int(value)
        if operation == 0x20:
            accumulator = data[value]
            continue
        met = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[operation]
        at += yes if met else no


def test_the_doctor_names_the_level_and_what_was_passed_over(namespaces: None) -> None:
    assert [(one.level, one.text) for one in findings(CodeSettings())] == [
        ("ok", "scripts run at the level namespaces, which passed its self-test")
    ]
    assert [one.level for one in findings(CodeSettings(level="bubblewrap", bwrap="/nowhere/bwrap"))] == ["error"]
    assert [one.level for one in findings(CodeSettings(level="limits", allow_unsafe=True))] == ["warning"]
