"""Weights go through the memory of one GPU into another process, as they are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import concertino_vllm  # noqa: E402
from concertino_vllm.policy import cuda_ipc  # noqa: E402

WORKER = Path(concertino_vllm.__file__).parent / "in_vllm" / "concertino_vllm_worker.py"
READER = Path(__file__).with_name("gpu_reader.py")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device here")
def test_another_process_reads_what_was_filled_in_and_what_is_filled_in_later() -> None:
    buffer = cuda_ipc.SharedBuffer(64, "cuda:0")
    handle = json.dumps([cuda_ipc._plain(part) for part in buffer.handle()])
    for first in (0, 100):
        expected = torch.arange(first, first + 64, dtype=torch.uint8)
        buffer.bytes.copy_(expected)
        torch.cuda.synchronize()
        words = [sys.executable, str(READER), str(WORKER), handle]
        done = subprocess.run(words, capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        assert json.loads(done.stdout) == expected.tolist()
        # torch counts each time that memory is opened, and wants a new handle for the next.
        handle = json.dumps([cuda_ipc._plain(part) for part in buffer.handle()])
