"""The environment of every child process: what programs need, and what somebody named; nothing else.

A child is a worker, a tool server, a model server, a training. None of them has a use for the keys of this process.
Invariants: a variable is passed on because it is on a list or was named, never because it is there; one whose name is
that of a secret is passed on only where it was named.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

_ALWAYS = frozenset(
    {
        *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LANGUAGE", "TZ", "TZDIR"),
        *("TMPDIR", "TEMP", "TMP", "LD_LIBRARY_PATH", "SYSTEMROOT", "VIRTUAL_ENV", "CONDA_PREFIX"),
        *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "NO_PROXY"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    }
)
_PROXIES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY"})
_LOCALE = ("LC_",)
_PYTHON = ("PYTHON", "CONCERTINO_", "OMP_", "MKL_", "OPENBLAS_", "NUMEXPR_", "COVERAGE_")
_ACCELERATORS = (
    *("CUDA_", "NVIDIA_", "NCCL_", "HIP_", "HSA_", "ROCM_", "ROCR_", "ZE_", "ONEAPI_", "GPU_", "UCX_", "GLOO_"),
    *("TORCH", "PYTORCH_", "TRITON_", "VLLM_", "HF_", "HUGGINGFACE_", "TRANSFORMERS_", "TOKENIZERS_", "RAY_"),
)
_SECRET = frozenset(
    {
        *("KEY", "KEYS", "APIKEY", "TOKEN", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSPHRASE"),
        *("CREDENTIAL", "CREDENTIALS", "AUTH", "COOKIE"),
    }
)
"""Words of a name that make it that of a secret."""


def child_environment(
    names: Iterable[str] = (),
    *,
    python: bool = False,
    accelerators: bool = False,
    environ: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The environment of a child process.

    Always passed on are PATH, HOME, TMPDIR and their like, the language, the time zone, certificates, and proxies
    whose address holds no password.

    Args:
        names: further variables that are passed on where they are set, secrets too.
        python: what Python, its numerical libraries and concertino read, such as PYTHONHASHSEED.
        accelerators: what CUDA, torch, vLLM and the like read, such as CUDA_VISIBLE_DEVICES and HF_HOME.
        environ: that of which it is taken; by default that of this process.
    """
    environ = os.environ if environ is None else environ
    prefixes = (*_LOCALE, *(_PYTHON if python else ()), *(_ACCELERATORS if accelerators else ()))
    passed = {name: value for name, value in environ.items() if _is_passed_on(name.upper(), value, prefixes)}
    return {**passed, **{name: environ[name] for name in names if name in environ}}


@contextmanager
def only_child_environment(names: Iterable[str] = ()) -> Iterator[None]:
    """Leave this process no other variables for so long. For children of `multiprocessing`, which get all of them.

    Only for a program's main thread: other threads would miss the rest as well.

    Args:
        names: as for `child_environment`.
    """
    kept = dict(os.environ)
    left = child_environment(names, python=True, accelerators=True)
    try:
        for name in kept.keys() - left.keys():
            del os.environ[name]
        yield
    finally:
        os.environ.update({name: value for name, value in kept.items() if name not in os.environ})


def _is_passed_on(name: str, value: str, prefixes: tuple[str, ...]) -> bool:
    if name in _PROXIES:
        return "@" not in value
    if name in _ALWAYS:
        return True
    return name.startswith(prefixes) and _SECRET.isdisjoint(name.split("_"))
