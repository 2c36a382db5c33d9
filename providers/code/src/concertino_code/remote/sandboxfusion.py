"""A SandboxFusion server: one POST per execution. Not exercised against a real server.

How well scripts are kept apart, and whether they have a network, is the server's configuration.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from concertino_code.execution import Artefact, Ending, Execution, Stream
from concertino_code.limits import DEFAULT, Limits
from concertino_code.sandbox import Sandbox, SandboxFault, SandboxUnavailable, check_name, to_bytes

from .http import Service

_SLACK = 30.0


class SandboxFusion(Sandbox):
    """Scripts on a SandboxFusion server.

    Args:
        url: its address, such as `http://127.0.0.1:8080`.
        limits: of an execution that names none; the server honours time and memory.
    """

    level = "sandboxfusion"

    def __init__(self, url: str, *, limits: Limits = DEFAULT) -> None:
        if not url.startswith(("http://", "https://")):
            raise SandboxUnavailable(f"SandboxFusion: url={url!r}; expected such as 'http://127.0.0.1:8080'")
        self.limits = limits
        self._service = Service("SandboxFusion", url.rstrip("/"))

    @property
    def description(self) -> str:
        """The rules for scripts."""
        return f"Each script runs on a SandboxFusion server. Limit: {self.limits.wall:g} s."

    async def run(
        self,
        code: str,
        *,
        limits: Limits | None = None,
        stdin: str | bytes = b"",
        files: Mapping[str, bytes | str] | None = None,
        artefacts: Sequence[str] = (),
        seed: int | None = None,
    ) -> Execution:
        """As `Sandbox.run` says; a seed becomes a first line of the script."""
        limits = limits or self.limits
        names = [check_name(name) for name in artefacts]
        body = {
            "code": code if seed is None else f"import random; random.seed({seed}); del random\n{code}",
            "language": "python",
            "run_timeout": limits.wall,
            "memory_limit_MB": limits.memory_mb,
            "stdin": to_bytes(stdin).decode("utf-8", "replace"),
            "files": {
                check_name(name): base64.b64encode(to_bytes(data)).decode() for name, data in (files or {}).items()
            },
            "fetch_files": names,
        }
        answer = await self._service.ask("POST", "/run_code", body=body, seconds=limits.wall + _SLACK)
        try:
            return _execution(answer, names, limits)
        except (KeyError, TypeError, AttributeError, binascii.Error) as error:
            text = f"SandboxFusion answered in an unknown form: {type(error).__name__}: {error}"
            raise SandboxFault(text, executed=True) from error


def _execution(answer: dict[str, Any], names: list[str], limits: Limits) -> Execution:
    if answer["status"] == "SandboxError":
        raise SandboxFault(f"SandboxFusion failed: {str(answer.get('message'))[:200]}", executed=True)
    ran = answer["run_result"]
    late = ran["status"] == "TimeLimitExceeded"
    code = None if late else int(ran["return_code"])
    ending = Ending.WALL if late else Ending.OK if code == 0 else Ending.SIGNAL if (code or 0) < 0 else Ending.EXIT
    files = answer.get("files") or {}
    artefacts = {
        name: Artefact(base64.b64decode(files[name])) if name in files else Artefact(error="it was not given back")
        for name in names
    }
    stdout, stderr = (_stream(ran.get(name) or "", limits.output_kb << 10) for name in ("stdout", "stderr"))
    return Execution(ending, code, stdout, stderr, seconds=ran.get("execution_time") or 0.0, artefacts=artefacts)


def _stream(text: str, limit: int) -> Stream:
    data = text.encode("utf-8", "surrogatepass")
    first = limit // 2
    return Stream(data[:first], data[first:][-(limit - first) :], len(data))
