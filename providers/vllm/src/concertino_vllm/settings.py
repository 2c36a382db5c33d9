"""Settings of a server: everything that decides how a `vllm serve` is started. Equal settings mean the same server.

Invariant: settings that exist can be started as far as this machine's files do not matter. What depends on them (is
there a `vllm`, is the folder there) is looked at when the server starts.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from concertino import SpecError, keep_variables, read_secret
from concertino.executor import child_environment

from concertino_vllm.gpu_choice import WAYS, Way, way_by_default

LORA_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""The ranks that vLLM can be prepared for."""

TRANSFER_FLAG = "--weight-transfer-config"
STEP_SECONDS = 600.0
"""How long a step of a change of weights may take by default."""

STARTUP_SECONDS = 600.0
"""How long a server may take by default until it answers."""

DEV_SWITCHES = ("VLLM_SERVER_DEV_MODE", "VLLM_ALLOW_RUNTIME_LORA_UPDATING")
"""Environment variables that open endpoints which no key guards."""

EXTENSION_FLAG, EXTENSION = "--worker-extension-cls", "concertino_vllm_worker.Weights"
IN_VLLM = Path(__file__).with_name("in_vllm")
"""The folder of what runs inside vLLM's workers."""

_OWN_FLAGS = {
    "--host": 'give it as the option host = "..."',
    "--port": "give it as the option port = ...",
    "--uds": "the server has to listen on a port",
    "--model": 'give it as the option model = "..."',
    "--api-key": 'everybody could see it in the list of processes; name its environment variable as key_env = "..."',
    "--lora-modules": "give them as the option adapters = { name = folder }",
}
_OFF = ("", "0", "false", "no", "off")
_ADAPTER_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}\Z")


@dataclass(frozen=True)
class VllmSettings:
    """How a server is started, or reached.

    Attributes:
        model: a folder, or a name on the Hugging Face hub; with `attach`, the name to ask for, by default the first.
        executable: the `vllm` command; empty: looked for.
        args: further arguments of `vllm serve`.
        host: the address that it listens on.
        port: the port; 0 for a free one.
        env: environment variables for it.
        env_from: names of this process's variables that it is given too, such as HF_TOKEN; it gets no other secrets.
        adapters: LoRA adapters that it starts with, by name.
        lora_rank: the largest rank of adapters loaded later; 0: that of `adapters`.
        training: open the endpoints that change weights and adapters, for `PolicyServer`.
        device: numbers of the GPUs that it may use, such as `1` or `0,1`; empty: those that this process sees.
        weights: how tensors get into it: `folder`, `ipc` (memory of the GPU that both use), `nccl` (between GPUs), or
            `auto` for the fastest that is possible.
        transfer_seconds: how long each step of a change of weights may take.
        startup_seconds: how long it may take until it answers.
        grace_seconds: how long it may take to end after SIGTERM.
        idle_seconds: stop it after so long without a request; the next request starts it again.
        keep: leave it running until this process ends, also when no model uses it any more.
        log: the file that its output is added to; empty: a temporary one.
        attach: the address of a server that somebody else runs; nothing is started.
        key_env: the environment variable that holds the server's key.
    """

    model: str = ""
    executable: str = ""
    args: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    port: int = 0
    env: tuple[tuple[str, str], ...] = ()
    adapters: tuple[tuple[str, str], ...] = ()
    lora_rank: int = 0
    training: bool = False
    device: str = ""
    weights: str = "auto"
    transfer_seconds: float = STEP_SECONDS
    startup_seconds: float = STARTUP_SECONDS
    grace_seconds: float = 10.0
    idle_seconds: float | None = None
    keep: bool = False
    log: str = ""
    attach: str = ""
    key_env: str = ""
    env_from: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.attach:
            self._check_attached()
        elif not self.model:
            raise SpecError("model is missing; expected a folder or a name on the Hugging Face hub")
        self._check_args()
        if self.weights not in ("auto", *WAYS):
            raise SpecError(f"weights = {self.weights!r}; expected auto, {', '.join(WAYS)}")
        if not re.fullmatch(r"(\d+(,\d+)*)?", self.device):
            raise SpecError(f"device = {self.device!r}; expected numbers of GPUs, such as '1' or '0,1'")
        if self.device and "CUDA_VISIBLE_DEVICES" in dict(self.env):
            raise SpecError("device and env.CUDA_VISIBLE_DEVICES both say which GPUs it may use; leave one of both out")
        for name in ("startup_seconds", "grace_seconds", "transfer_seconds", "idle_seconds"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise SpecError(f"{name} = {value!r}; expected a number of seconds above 0")
        if not 0 <= self.port < 65536:
            raise SpecError(f"port = {self.port}; expected 1 to 65535, or 0 for a free one")
        if self.lora_rank and not 0 < self.lora_rank <= LORA_RANKS[-1]:
            raise SpecError(f"lora_rank = {self.lora_rank}; expected 1 to {LORA_RANKS[-1]}, or 0")
        self.check_exposure(dict(self.env))

    def _check_args(self) -> None:
        for flag in (part.partition("=")[0].replace("_", "-") for part in self.args):
            if flag in _OWN_FLAGS:
                raise SpecError(f"args: {flag} cannot stand there; {_OWN_FLAGS[flag]}")
        for name, _ in self.adapters:
            if not _ADAPTER_NAME.match(name):
                raise SpecError(f"adapters: {name!r} is not a valid name; expected letters, digits, '.', '_' and '-'")

    def _check_attached(self) -> None:
        parts = urlsplit(self.attach)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SpecError(f"attach = {self.attach!r}; expected an address such as 'http://127.0.0.1:8000'")
        for name in ("executable", "args", "port", "env", "env_from", "adapters", "lora_rank", "log", "keep", "device"):
            if getattr(self, name):
                raise SpecError(
                    f"{name} is about starting a server, and attach names one that runs; leave one of both out"
                )

    # -- where it is -------------------------------------------------------------------------------------------

    @property
    def base(self) -> str:
        """The address of an attached server, without `/v1`."""
        return self.attach.rstrip("/").removesuffix("/v1")

    @property
    def local(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(urlsplit(self.attach).hostname or "" if self.attach else self.host)

    @property
    def endpoint(self) -> str:
        """The server in words: the same for equal settings, another for others."""
        if self.attach:
            return self.base
        return f"{self.model} {hashlib.sha256(repr(self).encode()).hexdigest()[:12]}"

    def check_exposure(self, env: Mapping[str, str]) -> None:
        """Refuse a server that others can reach and anyone can control.

        Raises:
            SpecError: it says why.
        """
        switched = [name for name in DEV_SWITCHES if env.get(name, "").strip().lower() not in _OFF]
        if self.training:
            switched = ["training = true"]
        if switched and not self.attach and not self.local:
            raise SpecError(
                f"host = {self.host!r} with {' and '.join(switched)}: refused, because the endpoints that this opens "
                "(/pause, /collective_rpc, loading of adapters) ask for no key, so anyone who reaches the port could "
                "change the model; use host = '127.0.0.1', through a tunnel if it has to be far away"
            )

    # -- what is run -------------------------------------------------------------------------------------------

    @property
    def folder(self) -> Path | None:
        """The model's folder, None if `model` is a name on the hub, or the server is somebody else's."""
        if self.attach:
            return None
        path = Path(self.model).expanduser()
        # A name on the hub has at most one slash.
        local = self.model.startswith(("/", "./", "../", "~", ".\\")) or self.model.count("/") > 1
        return path.absolute() if local or path.exists() else None

    @property
    def extended(self) -> bool:
        """Whether the server's workers have our extension: for training, unless the user brings one."""
        given = {part.partition("=")[0].replace("_", "-") for part in self.args}
        return self.training and not self.attach and EXTENSION_FLAG not in given

    @property
    def way(self) -> Way:
        """How a server that is started with these settings takes tensors."""
        if not self.training or self.attach:
            return "folder"
        if self.weights != "auto":
            return next(way for way in WAYS if way == self.weights)
        # With adapters, the weights of the model itself stay as they are.
        return "folder" if self.lora_rank or self.adapters else way_by_default(self.device, self.args)

    @property
    def max_lora_rank(self) -> int:
        """The rank that the server is prepared for: the least that vLLM knows and that covers what is asked for."""
        rank = max(self.lora_rank, *(adapter_rank(Path(folder)) for _, folder in self.adapters), 1)
        return next((known for known in LORA_RANKS if known >= rank), LORA_RANKS[-1])

    def command(self, executable: Path) -> list[str]:
        """Program and arguments; `{port}` stands for the port."""
        model = str(self.folder or self.model)
        command = [str(executable), "serve", model, "--host", self.host, "--port", "{port}"]
        # A line per request would push the cause of an end out of the part of the log that is read.
        self._add(command, "--disable-uvicorn-access-log")
        # Without it no reply tells `cached_tokens`, by which a stale prefix cache is noticed.
        self._add(command, "--enable-prompt-tokens-details")
        if self.extended:
            self._add(command, EXTENSION_FLAG, EXTENSION)
        if (way := self.way) != "folder":
            self._add(command, TRANSFER_FLAG, json.dumps({"backend": way}))
        if self.adapters or self.lora_rank:
            self._add(command, "--enable-lora")
            self._add(command, "--max-lora-rank", str(self.max_lora_rank))
            # In training, requests under way stay with the old version while the new one is loaded.
            self._add(command, "--max-loras", str(max(1, len(self.adapters)) + (1 if self.training else 0)))
        if self.adapters:
            command += [
                "--lora-modules",
                *(f"{name}={Path(folder).expanduser().absolute()}" for name, folder in self.adapters),
            ]
        return [*command, *self.args]

    def _add(self, command: list[str], flag: str, *values: str) -> None:
        """A flag of ours, unless the user gives the same one or its opposite."""
        given = {part.partition("=")[0].replace("_", "-") for part in self.args}
        if not given & {flag, flag.replace("--", "--no-", 1)}:
            command += [flag, *values]

    def environment(self, executable: Path, scratch: Path) -> dict[str, str]:
        """The whole environment of the server.

        Args:
            executable: the `vllm` command.
            scratch: where its sockets and temporary files go.

        Raises:
            SpecError: together with the environment of this process, it would be open to everyone.
        """
        defaults = {
            "VLLM_NO_USAGE_STATS": "1",
            "PYTHONUNBUFFERED": "1",
            # Compiled code is worth keeping: it stays where torch puts it when it has no scratch folder.
            "TORCHINDUCTOR_CACHE_DIR": str(Path(tempfile.gettempdir()) / f"torchinductor_{_user()}"),
        }
        keep_variables(dict(self.env))
        for name in self.env_from:
            read_secret(name)
        env = {**defaults, **child_environment(self.env_from, python=True, accelerators=True), **dict(self.env)}
        env |= {"TMPDIR": str(scratch), "VLLM_RPC_BASE_PATH": str(scratch)}
        # Compilers that are called while it runs lie beside the command, whose environment is not activated.
        env["PATH"] = os.pathsep.join([str(executable.parent), env.get("PATH", os.defpath)])
        if self.device:
            env["CUDA_VISIBLE_DEVICES"] = self.device
        if self.training:
            env |= dict.fromkeys(DEV_SWITCHES, "1")
        if self.extended:
            env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(IN_VLLM), env.get("PYTHONPATH", "")]))
        if self.key_env:
            # Not as an argument, which everybody could see in the list of processes.
            env["VLLM_API_KEY"] = self.key()
        self.check_exposure(env)
        return env

    def key(self) -> str:
        """The server's key, "" without one.

        Raises:
            SpecError: the environment variable is not set.
        """
        if not self.key_env:
            return ""
        key = read_secret(self.key_env)
        if not key:
            raise SpecError(f"key_env = {self.key_env!r}: the environment variable is not set; export it")
        return key


def is_loopback(host: str) -> bool:
    """Whether an address can only be reached from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def adapter_rank(folder: Path) -> int:
    """The rank that an adapter's folder states, 1 if it states none."""
    try:
        stated = json.loads((folder.expanduser() / "adapter_config.json").read_text(encoding="utf-8"))
        # PEFT allows single layers a rank of their own.
        ranks = [stated.get("r", 1), *(stated.get("rank_pattern") or {}).values()]
        return max(rank for rank in ranks if isinstance(rank, int))
    except (OSError, ValueError, AttributeError):
        return 1


def _user() -> str:
    import getpass

    try:
        return re.sub(r"[^\w.-]", "_", getpass.getuser())
    except (KeyError, OSError):
        # A container may run as a user without a name.
        return str(os.getuid())
