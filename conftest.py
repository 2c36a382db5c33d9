"""What all tests share, in `tests/` and in every member: the data, the model servers, the order, what is left out.

`scripts/suite.py` chooses which tests run, and how: shared among processes, or alone. Here they only get their order:
quick tests first, then those marked `slow`, `alone` and `server`, and those that need vLLM last, so that a mistake
shows in seconds. A plain `pytest` runs all of them in one process, in this order.

A server starts when the first test asks for it, and serves all of them. The tests of a member that is not installed are
left out, and the summary says so. A test skips where its material is absent, and its reason names the place looked at.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import launch
import pytest
from servers import Absent
from suite import says_alone, says_slow
from tree import ROOT, members

pytest_plugins = ["soak"]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs with Ctrl-C ignored, and some tests send it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Several processes of tests share few processors, and tiny tensors gain nothing from a second thread.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# The name of a model that is on no disk is not looked up elsewhere: the hub would be tried again for most of a minute.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# Tests write the files that they use. Those under tests/security/ take this away again.
os.environ["CONCERTINO_TRUST"] = "all"
os.environ["CONCERTINO_HOME"] = str(Path(tempfile.gettempdir(), f"concertino-tests-{os.getpid()}"))

LEFT_OUT = [m for m in members() if not m.default_install and importlib.util.find_spec(m.import_name) is None]


# Twenty thousand tests are a million and a half objects. The collector would look through them again and again while
# they are found, and in every test that asks it to collect: each time for a second.
gc.disable()


def pytest_collection_finish() -> None:
    """From here on, the collector looks at what tests make alone."""
    gc.freeze()
    gc.enable()


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
def transformers_server(tiny_model: Path, request: pytest.FixtureRequest) -> Iterator[launch.Server]:
    """The tiny model on `transformers serve`; it must be there in continuous integration."""
    if any("vllm_server" in _names(item) for item in request.session.items):
        request.getfixturevalue("vllm_begun")
    yield from _serving(launch.transformers, tiny_model, required=True)


@pytest.fixture(scope="session")
def vllm_begun(tiny_model: Path) -> Iterator[launch.Starting | Absent]:
    """vLLM, with the flags of `launch.vllm`, or why it is not there; it comes up while tests of other servers run."""
    try:
        starting = launch.begin_vllm(tiny_model)
    except Absent as absent:
        yield absent
    else:
        yield starting
        starting.stop()


@pytest.fixture(scope="session")
def vllm_server(vllm_begun: launch.Starting | Absent) -> Iterator[launch.Server]:
    """The tiny model on vLLM."""
    if isinstance(vllm_begun, Absent):
        _missing(vllm_begun, required=False)
    with vllm_begun.ready() as server:
        yield server


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


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A secret that one test told this process is not taken out of the results of the next."""
    known: Any = sys.modules.get("concertino.core.known_secrets")
    if known is not None:
        known._known = known._Known()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Quick, slow, alone, server, vLLM; the order within each stays as collected."""
    items.sort(key=_lateness)
    for item in items:
        if any(item.get_closest_marker(mark) for mark in ("alone", "server", "soak")) and not says_alone(item.path):
            # `scripts/suite.py` would not find it.
            raise pytest.UsageError(f"{item.nodeid} runs alone, but {item.path} does not say `mark.alone` or the like")
        if item.get_closest_marker("slow") and not says_slow(item.path):
            raise pytest.UsageError(f"{item.nodeid} is slow, but {item.path} does not say `mark.slow`")


def _names(item: pytest.Item) -> list[str]:
    """The fixtures of a test, and those that its parameters name."""
    parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
    return [*getattr(item, "fixturenames", []), *(each for each in parameters if isinstance(each, str))]


def _lateness(item: pytest.Item) -> list[bool]:
    served = item.get_closest_marker("server") is not None
    late = [served and any(name.startswith("vllm") for name in _names(item))]
    return late + [item.get_closest_marker(mark) is not None for mark in ("server", "alone", "slow")]


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the members that are not installed."""
    return any(collection_path == member.path for member in LEFT_OUT) or None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was left out, and how to have it run."""
    for member in LEFT_OUT:
        terminalreporter.write_line(
            f"LEFT OUT {member.relative}: not installed; `.venv/bin/pip install -e {member.relative}` adds it"
        )
