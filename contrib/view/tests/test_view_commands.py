"""`concertino traces html` and `concertino view` from the command line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

import pytest
from click.testing import CliRunner
from concertino.cli import command_line


def test_a_run_becomes_a_private_file_that_is_named(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    done = CliRunner().invoke(command_line, ["traces", "html", str(trace), "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert f"{out}: 11 items" in done.output
    assert out.stat().st_mode & 0o777 == 0o600
    assert "How many?" in out.read_text()


def test_json_says_what_was_written(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    done = CliRunner().invoke(command_line, ["traces", "html", str(trace), "-o", str(out), "--json"])
    told = json.loads(done.output)
    assert told == {"path": str(out), "run_id": "r1", "items": 11, "bytes": out.stat().st_size, "notes": []}


def test_the_page_never_takes_the_place_of_its_trace(trace: Path) -> None:
    before = trace.read_bytes()
    done = CliRunner().invoke(command_line, ["traces", "html", str(trace), "-o", str(trace)])
    assert done.exit_code != 0
    assert trace.read_bytes() == before


def test_a_damaged_trace_is_written_as_far_as_it_goes_and_says_so(trace: Path, tmp_path: Path) -> None:
    trace.write_bytes(trace.read_bytes()[:-30])
    done = CliRunner().invoke(command_line, ["traces", "html", str(trace), "-o", str(tmp_path / "x.html")])
    assert done.exit_code == 0
    assert "may still be written" in done.output


@pytest.mark.slow
def test_view_prints_an_address_serves_it_and_ends_with_ctrl_c(trace: Path) -> None:
    command = [sys.executable, "-m", "concertino", "view", str(trace.parent), "--json"]
    # A process in the background of a script ignores Ctrl-C, and so would its child.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler)
    ) as process:
        try:
            assert process.stdout is not None
            told = ""
            while not told.rstrip().endswith("}"):
                told += process.stdout.readline().decode()
            opener = urllib.request.build_opener(
                urllib.request.HTTPCookieProcessor(CookieJar()), urllib.request.ProxyHandler({})
            )
            with opener.open(json.loads(told)["address"], timeout=30) as answer:
                assert b"server_main.js" in answer.read()
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
        finally:
            process.kill()
