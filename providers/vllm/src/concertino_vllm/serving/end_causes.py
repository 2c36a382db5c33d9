"""Why a server ended, read from its exit code and the end of its log; and what to do about it.

The patterns are the wordings of vLLM, torch and Python. A failure that matches none of them is explained by the last
error in the log, without advice.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
from pathlib import Path

END = 64 * 1024
"""Bytes of a log's end that are read."""

SHOWN = 12
"""Lines of it that an error quotes."""

_GPU = "give it less to hold (--max-model-len, --max-num-seqs) or more to hold it in (--gpu-memory-utilization)"
_CAUSES: tuple[tuple[str, str, str], ...] = (
    (r"Address already in use", "its port is taken", "choose another, or port = 0 for a free one"),
    (
        r"less than desired (?:GPU|CPU) memory utilization",
        "too little memory is free on the device",
        "end what else uses it, or lower --gpu-memory-utilization",
    ),
    (r"No available memory for the cache blocks", "the model leaves no memory for the KV cache", _GPU),
    (r"KV cache is needed, which is larger than", "the KV cache is too small for one request of full length", _GPU),
    (r"out of memory|OutOfMemoryError", "the model does not fit into the device's memory", _GPU),
    (
        r"Failed to infer device type|Device string must not be empty|No CUDA GPUs are available|no NVIDIA driver",
        "this vLLM finds no device that it can use",
        "a machine without a GPU needs a CPU build of vLLM; check executable",
    ),
    (
        r"No package metadata was found for vllm",
        "this vLLM does not know its own version, as repackaged builds may not",
        "install the official distribution, or give its dist-info folder the name vllm",
    ),
    (
        r"operator torchvision::\w+ does not exist",
        "its environment mixes torch builds",
        "uninstall torchvision and torchaudio there, or install the builds that go with its torch",
    ),
    (r"unrecognized arguments: .*|error: argument .*", "it refuses the arguments", "correct args"),
    (r"invalid tool call parser: \S+|invalid reasoning parser: \S+", "it has no such parser", "correct args"),
    (
        r"Provide a valid Hugging Face repository ID|LocalEntryNotFoundError|RepositoryNotFoundError|GatedRepoError"
        r"|OfflineModeIsEnabled|Repo id must be in the form",
        "it finds no such model",
        "give a folder with a config.json, or a name on the hub that this machine can load",
    ),
    (r"LoRA rank \d+ is greater than max_lora_rank", "an adapter's rank is too large", "raise lora_rank"),
    (r"No adapter found for", "an adapter's folder holds no adapter", "correct adapters"),
    (
        r"No common block size",
        "this device needs another block size",
        "pass --block-size in args, on CPU a multiple of 32",
    ),
    (r"max_model_len .* is greater than the derived", "the model's context is shorter", "lower --max-model-len"),
)
_ERROR = re.compile(r"(?:^|\s)((?:[\w.]*\.)?\w*(?:Error|Exception|Exit|Interrupt): .+)")
# These only point to the cause, which stands further up in the log.
_VAGUE = re.compile(r"initialization failed|See root cause above|See stack trace|EngineDeadError")
_PREFIX = re.compile(r"^\(\w+ pid=\d+\) (?:(?:INFO|WARNING|ERROR|DEBUG) \S+ \S+ \[[\w.]+:\d+\] ?)?")
_NOISE = re.compile(r"resource_tracker|warnings\.warn|nanobind|^\s*$")


def read_end(log: str | Path) -> list[str]:
    """The last lines of a log, without empty ones; empty if there is no log."""
    with contextlib.suppress(OSError), Path(log).open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - END))
        return [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    return []


def last_line(log: str | Path) -> str:
    """The last line that says something, short."""
    for line in reversed(read_end(log)):
        if not _NOISE.search(line):
            return _PREFIX.sub("", line).strip()[:160]
    return ""


def explain_end(code: int | None, lines: list[str]) -> str:
    """Why it ended and what to do, in one sentence.

    Args:
        code: the exit code, negative for a signal; None if it still runs.
        lines: the end of its log.
    """
    text = "\n".join(lines)
    for pattern, what, advice in _CAUSES:
        if found := re.search(pattern, text):
            return f"{what}; {advice} (it says: {_said(lines, found)})"
    if code == -signal.SIGKILL:
        return "it was killed, most likely because this machine ran out of memory; give it less to hold"
    if code == -signal.SIGILL:
        return "this vLLM was built for another processor; install a build for this one"
    if code == 127 and (last := next((line for line in reversed(lines) if "cannot execute" in line), "")):
        return f"{last}; check executable"
    errors = [found[1] for line in lines if (found := _ERROR.search(line)) and not _VAGUE.search(line)]
    how = "" if code is None else f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"
    if errors:
        return f"{errors[-1][:300]}{f' ({how})' if how else ''}"
    return f"it ended with {how}" if how else "the log names no error"


def _said(lines: list[str], found: re.Match[str]) -> str:
    """The line with the match, from its error's name on, short."""
    line = next(line for line in reversed(lines) if found[0].splitlines()[0] in line)
    error = _ERROR.search(line)
    return (error[1] if error else _PREFIX.sub("", line)).strip()[:300]


def quote(log: str | Path) -> str:
    """The log's path and its last lines, as they stand at the end of an error."""
    lines = [line for line in read_end(log) if not _NOISE.search(line)][-SHOWN:]
    shown = "\n".join(f"  {_PREFIX.sub('', line)[:300]}" for line in lines)
    return f"\nIts log: {log}" + (f"\n{shown}" if shown else " (empty)")
