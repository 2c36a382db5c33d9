"""What all tests share, in `tests/` and in every member: the data, the model servers, the order, what is left out.

Order: quick tests first, then those marked `slow`, then those marked `alone`, then those marked `server` (a real
model server), of which those with vLLM come last, so that a mistake shows in seconds. With `-n 3`, as `make test`
runs them, three workers share the tests, a file at a time; when all have ended, this process runs those marked `alone`
or `server`, one after the other, so that a claim about time is tested on a machine that does nothing else. The
invariant: with and without `-n` the same tests run, each once, and their reports make one result.

A server starts when the first test wants it and serves all of them; a test has five minutes, in which a server can
start on a busy machine. Left out: the tests of a member that is not installed; the summary says which. A test whose
material is absent is skipped with a reason that names the place looked at. What becomes of a test when the machine
stands still is in `standstill`.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NoReturn

import launch
import pytest
from servers import Absent
from tree import ROOT, members

pytest_plugins = ["standstill"]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs with Ctrl-C ignored, and some tests press it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

NOT_COLLECTED: list[str] = []
LEFT_OUT = [m for m in members() if not m.default_install and importlib.util.find_spec(m.import_name) is None]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public data samples, kept beside the checkout and never copied into it."""
    return _material(Path(os.environ.get("CONCERTINO_TEST_DATA", ROOT.parent / "shared" / "data")))


@pytest.fixture(scope="session")
def shared_malformed(shared_data: Path) -> Path:
    """The folder of malformed model outputs, beside `shared_data`."""
    return _material(shared_data.parent / "malformed")


def _material(folder: Path) -> Path:
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there; point CONCERTINO_TEST_DATA at the folder of data samples")
    return folder


@pytest.fixture(scope="session")
def tiny_model() -> Path:
    """The folder of the tiny model that knows `script.SCRIPT` by heart, made once for the tree.

    Beside it are `tiny-changed` (other weights), `lora-1` and `lora-2`. Tests read these folders and never write.
    """
    try:
        return launch.model()
    except Absent as absent:
        _missing(absent, required=True)


@pytest.fixture(scope="session")
def transformers_server(tiny_model: Path) -> Iterator[launch.Server]:
    """The tiny model on `transformers serve`; it must be there in continuous integration."""
    yield from _serving(launch.transformers, tiny_model, required=True)


@pytest.fixture(scope="session")
def vllm_server(tiny_model: Path) -> Iterator[launch.Server]:
    """The tiny model on vLLM, with the flags of `launch.vllm`."""
    yield from _serving(launch.vllm, tiny_model)


@pytest.fixture(scope="session")
def llama_server(tiny_model: Path) -> Iterator[launch.Server]:
    """The tiny model on llama.cpp's server."""
    yield from _serving(launch.llama, tiny_model)


def _serving(start: Callable[[Path], launch.Server], model: Path, *, required: bool = False) -> Iterator[launch.Server]:
    """A server for the whole session; what it leaves behind is an error of the last test that used it."""
    try:
        server = start(model)
    except Absent as absent:
        _missing(absent, required)
    with server:
        yield server


def _missing(absent: Absent, required: bool) -> NoReturn:
    if required and os.environ.get("CI") and sys.platform == "linux":
        pytest.fail(f"{absent} (CI is set, where this may not be missing)")
    pytest.skip(str(absent))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Quick, slow, alone, server, vLLM; the order within each stays as collected. A worker has what can share."""
    items.sort(key=_lateness)
    if hasattr(config, "workerinput"):
        items[:] = [item for item in items if not _alone(item)]
    elif _distributes(config):
        items[:] = [item for item in items if _alone(item)]


def _lateness(item: pytest.Item) -> list[bool]:
    fixtures: list[str] = getattr(item, "fixturenames", [])
    late = [any(name.startswith("vllm") for name in fixtures)]
    return late + [item.get_closest_marker(mark) is not None for mark in ("server", "alone", "slow")]


def _alone(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(mark) for mark in ("server", "alone"))


def _distributes(config: pytest.Config) -> bool:
    """Whether this process has workers, which `-n` gives it."""
    return config.pluginmanager.hasplugin("dsession")


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """A process with workers collects too, while they do, for the tests that it runs itself."""
    done = yield
    if _distributes(session.config):
        session.perform_collect()
    return done


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """The tests of the workers, then those of this process."""
    if not _distributes(session.config):
        return (yield)
    _stop_after_errors_of_collection(session)
    done = yield
    _stop_after_errors_of_collection(session)  # what the workers collected may not be the same
    session.config.pluginmanager.getplugin("dsession").nodemanager.teardown_nodes()  # with all that they still hold
    session.testscollected += len(session.items)
    for item, following in zip_longest(session.items, session.items[1:]):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
    return done


def _stop_after_errors_of_collection(session: pytest.Session) -> None:
    if NOT_COLLECTED and not session.config.option.continue_on_collection_errors:
        raise session.Interrupted(f"errors during collection: {len(NOT_COLLECTED)}")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Remember what could not be collected."""
    if report.failed:
        NOT_COLLECTED.append(report.nodeid)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the members that are not installed."""
    return any(collection_path == member.path for member in LEFT_OUT) or None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was left out, and how to have it run."""
    for member in LEFT_OUT:
        terminalreporter.write_line(
            f"LEFT OUT {member.relative}: not installed; `.venv/bin/pip install -e {member.relative}` adds it"
        )
