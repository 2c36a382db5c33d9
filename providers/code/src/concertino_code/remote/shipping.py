"""What is sent to a machine that can run Python, and what its line means: the two ends of `runner`."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from concertino_code.execution import Execution
from concertino_code.jailed import execution_of
from concertino_code.limits import Limits
from concertino_code.sandbox import SandboxFault, check_name, to_bytes

from .runner import MARK


def payload(
    code: str,
    limits: Limits,
    stdin: str | bytes,
    files: Mapping[str, bytes | str] | None,
    artefacts: Sequence[str],
    seed: int | None,
) -> str:
    """The job as one word of ASCII."""
    job = {
        "code": _encode(to_bytes(code)),
        "limits": limits.to_wire(),
        "stdin": _encode(to_bytes(stdin)),
        "files": {check_name(name): _encode(to_bytes(data)) for name, data in (files or {}).items()},
        "artefacts": [check_name(name) for name in artefacts],
        "seed": seed,
    }
    return _encode(zlib.compress(json.dumps(job).encode("ascii")))


def program() -> str:
    """The text of the runner."""
    return resources.files(__package__).joinpath("runner.py").read_text(encoding="utf-8")


def read_line(text: str, limits: Limits, where: str) -> Execution:
    """The execution that the runner's line speaks of.

    Raises:
        SandboxFault: there is no such line.
    """
    _, found, line = text.rpartition(MARK)
    if not found:
        raise SandboxFault(f"{where} gave no result: {text.strip()[-200:]!r}", executed=True)
    try:
        result: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(line.split()[0])))
        blobs = [base64.b64decode(word) for word in result.pop("streams")]
        blobs += [base64.b64decode(file.get("data", "")) for file in result["files"].values()]
        return execution_of(result, blobs, limits)
    except (ValueError, IndexError, KeyError, zlib.error, binascii.Error) as error:
        raise SandboxFault(f"{where} gave a damaged result: {type(error).__name__}: {error}", executed=True) from error


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
