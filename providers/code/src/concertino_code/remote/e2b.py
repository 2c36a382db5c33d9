"""E2B: a fresh virtual machine per execution, deleted in every case. Not exercised against the real service.

Three requests: make a sandbox, run the runner in its code interpreter, delete it. The service's own time limit is set
as well, so that a machine is not billed for long if the deletion never arrives.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from concertino_code.execution import Execution
from concertino_code.limits import DEFAULT, Limits
from concertino_code.sandbox import Sandbox, SandboxFault, SandboxUnavailable

from . import shipping
from .http import MOST_BYTES, Service

DOMAIN = "e2b.app"
TEMPLATE = "code-interpreter-v1"
_PORT = 49999
_SETUP_SECONDS = 60.0


class E2BSandbox(Sandbox):
    """Scripts in E2B's virtual machines.

    Args:
        key: the API key.
        limits: of an execution that names none.
        domain: of the service; `api_url` and `sandbox_url` are made of it.
        template: what machines are made from; it must hold the code interpreter.
        network: whether scripts may use the internet.
        api_url, sandbox_url: other addresses; in the latter, `{id}` becomes the machine's id.
    """

    level = "e2b"

    def __init__(
        self,
        key: str,
        *,
        limits: Limits = DEFAULT,
        domain: str = DOMAIN,
        template: str = TEMPLATE,
        network: bool = False,
        api_url: str = "",
        sandbox_url: str = "",
    ) -> None:
        if not key:
            raise SandboxUnavailable("E2B needs a key: set E2B_API_KEY")
        self.limits = limits
        self.network = network
        self._template = template
        self._api = Service("E2B", (api_url or f"https://api.{domain}").rstrip("/"), {"X-API-Key": key})
        self._sandbox_url = sandbox_url or f"https://{_PORT}-{{id}}.{domain}"

    @property
    def description(self) -> str:
        """The rules for scripts."""
        network = "the internet is open" if self.network else "there is no network"
        return f"Each script runs in a virtual machine of E2B; {network}. Limit: {self.limits.wall:g} s."

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
        """As `Sandbox.run` says."""
        limits = limits or self.limits
        job = shipping.payload(code, limits, stdin, files, artefacts, seed)
        made = asyncio.ensure_future(self._create(limits))
        try:
            machine = await asyncio.shield(made)
            text = await self._execute(machine, job, limits)
            return shipping.read_line(text, limits, "E2B")
        except SandboxFault as error:
            raise type(error)(str(error), executed=error.executed and self.network) from error
        finally:
            await asyncio.shield(asyncio.ensure_future(self._delete(made)))

    async def _create(self, limits: Limits) -> dict[str, Any]:
        body = {
            "templateID": self._template,
            "timeout": int(limits.wall + _SETUP_SECONDS),
            "allow_internet_access": self.network,
        }
        machine: dict[str, Any] = await self._api.ask("POST", "/sandboxes", body=body, seconds=_SETUP_SECONDS)
        if not isinstance(machine, dict) or not machine.get("sandboxID"):
            raise SandboxFault(f"E2B made no sandbox: {str(machine)[:200]}")
        return machine

    async def _execute(self, machine: dict[str, Any], job: str, limits: Limits) -> str:
        """What the runner printed."""
        token = machine.get("envdAccessToken") or ""
        service = Service("E2B", self._sandbox_url.format(id=machine["sandboxID"]).rstrip("/"))
        body = {"code": f"{shipping.program()}\n\nmain({job!r})\n", "language": "python"}
        headers = {"X-Access-Token": token} if token else None
        seconds = limits.wall + _SETUP_SECONDS
        said, read = [], bytearray()
        async with service.stream("POST", "/execute", body=body, headers=headers, seconds=seconds) as response:
            async for chunk in response.content.iter_any():
                read += chunk
                if len(read) > MOST_BYTES:
                    raise SandboxFault(f"E2B answered more than {MOST_BYTES} bytes", executed=True)
        for line in read.splitlines():
            with contextlib.suppress(ValueError):
                event = json.loads(line)
                if event.get("type") == "stdout":
                    said.append(str(event.get("text", "")))
                elif event.get("type") == "error":
                    raise SandboxFault(f"E2B's interpreter failed: {event.get('name')}: {event.get('value')}")
        return "".join(said)

    async def _delete(self, made: asyncio.Future[dict[str, Any]]) -> None:
        """Whatever became of it; a machine that is just being made is waited for."""
        await asyncio.wait({made}, timeout=_SETUP_SECONDS)
        if made.done() and not made.cancelled() and made.exception() is None:
            with contextlib.suppress(SandboxFault):
                path = f"/sandboxes/{made.result()['sandboxID']}"
                await self._api.ask("DELETE", path, seconds=_SETUP_SECONDS)
