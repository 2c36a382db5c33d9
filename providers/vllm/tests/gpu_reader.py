"""What another process does in `test_gpu_ipc.py`: it opens memory by its handle, as a worker of vLLM does.

python gpu_reader.py WORKER_FILE HANDLE
"""

from __future__ import annotations

import importlib.util
import json
import sys

import torch
from torch.multiprocessing import reductions

spec = importlib.util.spec_from_file_location("worker", sys.argv[1])
assert spec is not None
assert spec.loader is not None
worker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(worker)

torch.cuda.init()
opened = reductions.rebuild_cuda_tensor(*worker._handle(json.loads(sys.argv[2])))
sys.stdout.write(json.dumps(opened.cpu().tolist()))
