"""The pytest plugin that comes with the install: what its fixtures do to tests, and what it costs others."""

from __future__ import annotations

import subprocess
import sys
import time

import concertino.testing
import pytest

pytest_plugins = ["pytester"]

HEADER = """
import asyncio
from concertino import ChatRequest, Message
from concertino.testing import call, fake_tool, stubborn_tool
"""


def outcomes(pytester: pytest.Pytester, source: str) -> tuple[dict[str, int], str]:
    pytester.makepyfile(HEADER + source)
    # In a process of its own: plugins of other distributions may have imported half of concertino into this one.
    plugins = ("cacheprovider", "asyncio", "anyio", "unraisableexception", "hypothesispytest")
    result = pytester.runpytest_subprocess(*(word for name in plugins for word in ("-p", f"no:{name}")))
    return result.parseoutcomes(), str(result.stdout)


def test_a_script_that_is_not_used_up_fails_its_test_at_teardown(pytester: pytest.Pytester) -> None:
    found, text = outcomes(
        pytester,
        """
def test_good(scripted_model):
    asyncio.run(scripted_model("used").chat(ChatRequest([Message("user", "?")])))

def test_bad(scripted_model):
    scripted_model("never used")
""",
    )
    assert found == {"passed": 2, "errors": 1}
    assert "1 of 1 scripted turns were never asked for" in text


@pytest.mark.slow
def test_a_test_that_leaves_a_call_or_thread_behind_fails_if_it_asked_for_that(pytester: pytest.Pytester) -> None:
    found, text = outcomes(
        pytester,
        """
import time
from concertino import tool

@tool(timeout=0.05)
def sleep(seconds: float) -> str:
    "Sleep in a thread."
    time.sleep(seconds)
    return "done"

def test_good(concertino_nothing_left):
    call(fake_tool(), {})
    call(sleep, {"seconds": 0.2})

@tool(timeout=0.05)
async def unstoppable() -> str:
    "Neither cancelling nor closing ends it."
    end = time.monotonic() + 0.6
    while time.monotonic() < end:
        try:
            await asyncio.sleep(0.05)
        except (asyncio.CancelledError, GeneratorExit):
            pass
    return "done"

def test_closed(concertino_nothing_left):
    call(stubborn_tool(seconds=0.6, timeout=0.05), {})

def test_left(concertino_nothing_left):
    call(unstoppable, {})

def test_thread(concertino_nothing_left):
    call(sleep, {"seconds": 2})

def test_did_not_ask():
    call(stubborn_tool(seconds=0.6, timeout=0.05), {})
""",
    )
    assert found == {"passed": 5, "errors": 2}
    assert "left running by this test: call 1 of unstoppable" in text
    assert "left running by this test: thread concertino:sleep" in text
    time.sleep(1.0)  # the thread of the third test ends, and is not counted against others


@pytest.mark.slow
def test_installed_plugins_can_be_kept_out_of_a_test(pytester: pytest.Pytester) -> None:
    found, _ = outcomes(
        pytester,
        """
import os
from concertino.plugins import default_manager

def test_out(concertino_no_installed_plugins):
    assert all(info.state == "disabled" for info in default_manager().plugins())
    assert default_manager().specs() == []

def test_in():
    assert "CONCERTINO_PLUGINS" not in os.environ
    assert not any(info.state == "disabled" for info in default_manager().plugins())
""",
    )
    assert found == {"passed": 2}


def test_the_plugin_imports_nothing_of_concertino() -> None:
    code = (
        "import sys, pytest_concertino\n"
        "print(*sorted(m for m in sys.modules if m.split('.')[0] in ('concertino', 'pydantic', 'pluggy', 'asyncio')\n"
        "      and m.startswith(('concertino', 'pydantic'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not done.stdout.split()


def test_the_contents_page_is_sorted_and_every_name_is_there() -> None:
    names = concertino.testing.__all__
    assert names == sorted(names, key=lambda name: (name.islower(), name))
    assert all(getattr(concertino.testing, name).__module__.startswith("concertino.testing.") for name in names)
