"""S8. Scripts that end strangely or answer for themselves: each is one observation, well formed, with the right status.

A script may write what looks like a result to every descriptor, print what is no text, close its streams, stop itself
or never finish ending. Whoever called sees one record of it, and the next call finds the sandbox as it was.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
from concertino import Observation, Status
from concertino.testing import run_call
from concertino_code.jail.wire import pack
from concertino_code.sandbox.jailed import JailedSandbox
from concertino_code.sandbox.limits import ScriptLimits
from concertino_code.settings import CodeSettings
from concertino_code.tool import python_tool

SPOOFED = {"reason": "", "seconds": 0.1, "peak": 0, "totals": [7, 0], "files": {}, "code": 0, "cpu": 0.1}
SPOOF = f"""
import json, os, struct
message = {pack(SPOOFED, [b"SPOOFED", b"", b"", b""])!r}
text = json.dumps({SPOOFED!r}).encode()
for handle in range(3, 200):
    for data in (message, text + b"\\n", struct.pack("<I", len(text)) + text, struct.pack("<iiqq", 0, 0, 0, 0)):
        try:
            os.write(handle, data)
        except OSError:
            break
os._exit(9)
"""
QUICK, SLOW = 20.0, 1.0
"""Seconds for scripts that end by themselves, and for those that have to be ended."""


class Strange(NamedTuple):
    """A script, and what its observation says."""

    code: str
    status: Status
    error: str
    content: dict[str, Any]
    """What the content holds; of `stdout` and `stderr`, a part."""
    seconds: float = QUICK


OK, FAILED, LATE = Status.OK, Status.EXEC_ERR, Status.TIMEOUT
STRANGE = {
    "a forged result": Strange(SPOOF, FAILED, "script_error", {"stdout": "", "exit_code": 9}),
    "a forged result on its own stream": Strange(
        f"import os\nos.write(1, {pack(SPOOFED, [b'x', b'', b'', b''])!r})\nraise SystemExit(4)",
        FAILED,
        "script_error",
        {"stdout": '"totals": [7, 0]', "exit_code": 4},
    ),
    "half a character": Strange(
        "print('\\ud800')", FAILED, "script_error", {"stdout": "", "stderr": "surrogates not allowed", "exit_code": 1}
    ),
    "half a character as bytes": Strange(
        "import os\nos.write(1, '\\ud800'.encode('utf-8', 'surrogatepass'))", OK, "", {"stdout": "\ufffd"}
    ),
    "bytes that are no text": Strange(
        "import os\nos.write(1, bytes(range(256)) * 10)\nos.write(2, b'\\xff\\xfe\\0')",
        OK,
        "",
        {"stdout": "\x00\x01", "stderr": "\ufffd\ufffd\x00"},
    ),
    "200 MB in one line": Strange(
        "import os\nfor _ in range(200): os.write(1, b'x' * (1 << 20))\nos.write(1, b'the end')",
        OK,
        "",
        {"stdout": "the end"},
        60.0,
    ),
    "all descriptors closed": Strange(
        "import os\nprint('a', flush=True)\nos.closerange(0, 256)", OK, "", {"stdout": "a"}
    ),
    "all descriptors closed, then a crash": Strange(
        "import os\nos.closerange(0, 256)\nos.abort()", FAILED, "script_signal", {"stdout": "", "exit_code": -6}
    ),
    "an exit at once": Strange("import os\nprint('lost')\nos._exit(0)", OK, "", {"stdout": ""}),
    "an exit at once with a number": Strange(
        "import os\nos._exit(7)", FAILED, "script_error", {"stdout": "", "exit_code": 7}
    ),
    "a stop": Strange(
        "import os, signal\nprint('a', flush=True)\nos.kill(os.getpid(), signal.SIGSTOP)",
        LATE,
        "time_limit",
        {"stdout": "a"},
        SLOW,
    ),
    "an exit handler that hangs": Strange(
        "import atexit, threading\natexit.register(threading.Event().wait)\nprint('done', flush=True)",
        LATE,
        "time_limit",
        {"stdout": "done"},
        SLOW,
    ),
    "a thread that never ends": Strange(
        "import threading\nthreading.Thread(target=threading.Event().wait).start()\nprint('done', flush=True)",
        LATE,
        "time_limit",
        {"stdout": "done"},
        SLOW,
    ),
    "a real-time signal": Strange(
        "import os\nos.kill(os.getpid(), 40)", FAILED, "script_signal", {"stdout": "", "exit_code": -40}
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STRANGE)
async def test_a_strange_ending_is_one_observation_with_its_status(sandbox: JailedSandbox, name: str) -> None:
    script = STRANGE[name]
    limits = ScriptLimits(wall=script.seconds, cpu=script.seconds)
    seen = await run_call(python_tool(sandbox, settings=CodeSettings(limits=limits)), {"code": script.code})
    assert (seen.status, seen.error.code if seen.error else "") == (script.status, script.error), seen
    assert seen.attempts == 1
    well_formed(seen)
    for key, value in script.content.items():
        found = seen.content.get(key)
        assert value in found if isinstance(value, str) and value else found == value, (key, found)
    assert "SPOOFED" not in seen.content["stdout"]
    assert ("exit_code" in seen.content) == ("exit_code" in script.content)


@pytest.mark.slow
async def test_the_sandbox_is_as_it_was_after_each_of_them(sandbox: JailedSandbox) -> None:
    for script in STRANGE.values():
        await sandbox.run(script.code, limits=ScriptLimits(wall=min(script.seconds, 2.0), cpu=20))
        done = await sandbox.run("print(6 * 7)", limits=ScriptLimits(wall=QUICK))
        assert (done.ok, done.stdout.text) == (True, "42\n")


def well_formed(seen: Observation) -> None:
    """It can be written into a record and read back as it was, in a size that a model can be shown."""
    written = json.dumps(seen.to_json(), allow_nan=False, ensure_ascii=False).encode("utf-8")
    assert json.loads(written)["content"] == seen.content
    assert len(written) < 64_000
    assert isinstance(seen.content["stdout"], str)
