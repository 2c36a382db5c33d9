"""The command line as a process: streams that are closed, full or of another encoding, bytes in arguments, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="streams of POSIX")

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")


class Done(NamedTuple):
    code: int
    out: str
    err: str


Shell = Callable[..., Done]


@pytest.fixture
def shell(site: Path) -> Shell:
    """`shell("{c} tools > /dev/full")`: a line for the shell; `{c}` is the command, with `band` as its only plugin."""

    def run(line: str, *arguments: bytes, **environment: str) -> Done:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHONUTF8"))}
        env = {**kept, "PYTHONPATH": str(site), "CONCERTINO_PLUGINS": "band", **environment}
        command = line.replace("{c}", f"'{sys.executable}' -m concertino")
        # Decoded here: what a locale makes of the output is what is looked at.
        done = subprocess.run(["bash", "-c", command, "bash", *arguments], env=env, capture_output=True, timeout=60)
        return Done(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))

    return run


# -- stdout ------------------------------------------------------------------------------------------------------------

PRINTING = ["tools", "tools --json", "--help", "version", "completion bash", "traces list"]


@needs_full
@pytest.mark.parametrize("command", PRINTING)
def test_a_device_that_takes_nothing_more_is_said_on_one_line(shell: Shell, command: str) -> None:
    done = shell(f"{{c}} {command} > /dev/full")
    assert done.code == 1
    assert "stdout cannot be written: No space left on device; free space, or send it elsewhere" in done.err
    assert len(done.err.splitlines()) == 1
    if "--json" in command:
        assert json.loads(done.err)["error"]["type"] == "OutputLost"


@needs_full
@pytest.mark.parametrize("options", ["", "--json", "--events"])
def test_a_run_whose_answer_cannot_be_written_says_where_it_is_kept(shell: Shell, options: str) -> None:
    done = shell(f"{{c}} run add --model band/lead {options} > /dev/full")
    assert done.code == 1
    (trace,) = Path("runs").glob("*.trace.jsonl")
    assert f"the run is kept: concertino traces show {trace}" in done.err
    assert '"t":"end"' in trace.read_text(encoding="utf-8")
    assert "Traceback" not in done.err


@pytest.mark.parametrize("command", ["tools", "tools --json", "run add --model band/lead"])
def test_a_closed_stdout_is_refused_before_anything_runs(shell: Shell, command: str) -> None:
    done = shell(f"{{c}} {command} >&-")
    assert done.code == 2
    assert "stdout is closed, so no result could be shown; redirect it instead: > FILE, or > /dev/null" in done.err
    assert len(done.err.splitlines()) == 1
    assert not Path("runs").exists()


def test_a_closed_stderr_and_stdin_are_no_fault(shell: Shell) -> None:
    assert shell("{c} tools 2>&-").out.startswith("NAME")
    assert shell("{c} nonsense >&- 2>&-").code == 2
    done = shell("{c} run - --model band/lead <&-")
    assert (done.code, done.err) == (2, "Error: the question is empty; give a text, or `-` with a text on stdin\n")


@needs_full
def test_an_error_that_cannot_be_written_keeps_its_exit_code(shell: Shell) -> None:
    assert shell("{c} nonsense 2>/dev/full").code == 2


def test_a_reader_that_has_seen_enough_is_no_error(shell: Shell) -> None:
    done = shell("{c} tools --json | head -c 1")
    assert (done.code, done.out, done.err) == (0, "[", "")


# -- encodings ---------------------------------------------------------------------------------------------------------


def test_the_c_locale_shows_every_character(cli: Any, shell: Shell) -> None:
    environment = {"LC_ALL": "C", "PYTHONUTF8": "0"}
    cli("run", "add", "--model", "band/lead")
    done = shell("{c} traces show", **environment)
    assert (done.code, done.err) == (0, "")
    assert "✗ add" in done.out
    assert shell('{c} call band/echo \'{"text": "größe"}\' --bind default=band/parrot', **environment).out == "größe\n"


def test_an_encoding_without_a_character_shows_another_one(cli: Any, shell: Shell) -> None:
    cli("run", "add", "--model", "band/lead")
    done = shell("{c} traces show", PYTHONIOENCODING="latin-1")
    assert done.code == 0
    assert "? add" in done.out


# -- arguments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "place"),
    [("{c} run $1 --model band/lead", 2), ("{c} call band/add $1", 3), ("{c} tools show $1", 3), ("{c} $1", 1)],
)
def test_an_argument_that_is_no_text_is_refused_before_anything_runs(shell: Shell, line: str, place: int) -> None:
    done = shell(line, b"\xffno")
    assert done.code == 2
    assert f"argument {place} ('?no') is not UTF-8 text: invalid start byte; give text in UTF-8" in done.err
    assert not Path("runs").exists()


def test_a_file_may_have_any_name(shell: Shell) -> None:
    name = os.fsdecode(b"\xff.toml")
    Path(name).write_text('members = ["band/nap"]', encoding="utf-8")
    done = shell("{c} tools --pool $1 --json", b"\xff.toml")
    assert [each["name"] for each in json.loads(done.out)] == ["band/nap"]


# -- Ctrl-C ------------------------------------------------------------------------------------------------------------

INTERRUPT = """
import os, signal, sys

module = sys.argv[1]

class AtImport:
    def find_spec(self, name, path, target=None):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)

from concertino.cli import main
sys.meta_path.insert(0, AtImport())
sys.argv[:] = ["concertino", *sys.argv[2:]]
main()
"""


@pytest.mark.parametrize("module", ["concertino.cli.process", "click", "inspect", "concertino.cli.group", "rich"])
def test_ctrl_c_while_modules_are_imported_ends_with_one_word(site: Path, module: str) -> None:
    Path("runs").mkdir()
    command = [sys.executable, "-c", INTERRUPT, module, "run", "add", "--model", "band/lead", "--live"]
    env = {**os.environ, "PYTHONPATH": str(site), "CONCERTINO_PLUGINS": "band"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 130, done.stderr
    assert done.stderr.split() == ["cancelled"]


WHILE_A_CLASS_IS_MADE = """
import os, signal, sys

class Attribute:
    def __set_name__(self, owner, name):
        os.kill(os.getpid(), signal.SIGINT)

class AtImport:
    def find_spec(self, name, path, target=None):
        if name == MODULE:
            class Owner:
                attribute = Attribute()

from concertino.cli import main
sys.meta_path.insert(0, AtImport())
main()
"""


@pytest.mark.parametrize("module", ["concertino.cli.process", "concertino.cli.members"])
def test_ctrl_c_while_a_class_is_made_ends_with_one_word_too(site: Path, module: str) -> None:
    # Python 3.11 makes a RuntimeError of it.
    program = WHILE_A_CLASS_IS_MADE.replace("MODULE", repr(module))
    env = {**os.environ, "PYTHONPATH": str(site), "CONCERTINO_PLUGINS": "band"}
    done = subprocess.run([sys.executable, "-c", program, "tools"], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 130, done.stderr
    assert done.stderr.split() == ["cancelled"]


@pytest.mark.slow
def test_ctrl_c_at_any_time_shows_no_traceback_of_ours(site: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(site), "CONCERTINO_PLUGINS": "band"}
    # Without `site`, whose hooks run before any of our code: of an environment with editable installs they are many.
    program = f"import sys; sys.path[:0] = {sys.path!r}; from concertino.cli import main; main()"
    for delay in (0.03, 0.05, 0.08, 0.12, 0.2, 0.3):
        command = [sys.executable, "-S", "-c", program, "tools"]
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
            time.sleep(delay)
            child.send_signal(signal.SIGINT)
            _, err = child.communicate(timeout=60)
        # Python itself may still be starting, and then says so in its own way.
        assert child.returncode in (0, 130, -signal.SIGINT, 1)
        assert "/cli/" not in _frames(err), err


def _frames(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.startswith('  File "'))
