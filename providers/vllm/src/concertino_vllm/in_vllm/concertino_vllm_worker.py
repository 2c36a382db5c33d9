"""What runs inside vLLM's workers when a server was started for training: `--worker-extension-cls` mixes `Weights` in.

This file is not a part of the package: it lies in a folder of its own, which the server finds by PYTHONPATH, and
knows only vLLM and torch. It takes weights from a folder, or opens the memory of another process on the same GPU. The
handle of that memory comes as plain data: what vLLM's own endpoint takes is a pickle, which could run any code.

From a folder, it does three things that `reload_weights` does not. An error comes back as data, where an exception
would end the engine. Layers that were given nothing are named. And a tied output layer is prepared again: on CPU, vLLM
packs it once, and would use the old one after a reload, without a warning.
"""

from __future__ import annotations

import base64
import contextlib
import json
import logging
import re
from collections.abc import Iterator
from typing import Any

_NOTHING_LOADED = re.compile(r"(\w+): Failed to load weights")
# Its table is computed, so no checkpoint brings it.
_WITHOUT_WEIGHTS = {"RotaryEmbedding"}


class Weights:
    """Mixed into a worker, which is `self`."""

    def concertino_load_weights(self, folder: str) -> dict[str, Any]:
        """Load a folder into the running model.

        Returns:
            `refreshed`, the tied layers that were prepared again, and `missed`, layers that kept what they had; or
            `error`, with the layers as they were as far as nothing of them had been loaded.
        """
        worker: Any = self
        missed: list[str] = []
        try:
            with _listening(missed):
                worker.reload_weights(weights_path=folder)
            refreshed = _refresh_tied(worker.model_runner.get_model())
        # Raised out of a worker, it would end the engine and every request in it.
        except Exception as error:
            with contextlib.suppress(Exception):
                _finish(worker)
            return {"error": f"{type(error).__name__}: {error}"}
        left = [name for name in missed if name not in _WITHOUT_WEIGHTS and name not in refreshed]
        return {"refreshed": refreshed, "missed": left}

    def concertino_open_weights(self, info: str, gpu: str, handle: str) -> dict[str, Any]:
        """Copy a piece of weights out of the memory of another process, between the start and the finish of an update.

        Args:
            info: JSON; names, dtypes, shapes and sizes of the tensors, side by side.
            gpu: the identifier of the GPU that the memory is on.
            handle: JSON; of the memory.

        Returns:
            `error`, if they could not be taken.
        """
        worker: Any = self
        try:
            worker.update_weights({**json.loads(info), "ipc_handles": {gpu: _handle(json.loads(handle))}})
        # Raised out of a worker, it would end the engine.
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}
        return {}


def _handle(parts: list[Any]) -> tuple[Any, ...]:
    """A handle as torch takes it: of bytes in one row, so its classes are known."""
    import torch

    read = [base64.b64decode(part["bytes"]) if isinstance(part, dict) else part for part in parts]
    # In this order: tensor, size, stride, offset, storage, dtype, device, handle, and seven of the storage.
    read[0], read[1], read[2] = torch.Tensor, torch.Size(read[1]), tuple(read[2])
    read[4], read[5] = torch.UntypedStorage, torch.uint8
    return tuple(read)


def _refresh_tied(model: Any) -> list[str]:
    """Prepare tied output layers again; the names of their classes."""
    refreshed = []
    known: dict[int, Any] = {}
    for module in model.modules():
        weight = module._parameters.get("weight")
        if weight is None:
            continue
        first = known.setdefault(id(weight), module)
        if first is not module:
            if hasattr(module, "cpu_linear"):
                module.quant_method.process_weights_after_loading(module)
            refreshed.append(type(module).__name__)
    return refreshed


def _finish(worker: Any) -> None:
    """End a load that broke off: what it had taken in must not be mixed into the next one."""
    from vllm.model_executor.model_loader.reload import layerwise

    layerwise.finalize_layerwise_reload(worker.model_runner.get_model(), worker.vllm_config.model_config)


@contextlib.contextmanager
def _listening(missed: list[str]) -> Iterator[None]:
    """Note which layers vLLM says it has loaded nothing into."""

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if found := _NOTHING_LOADED.match(record.getMessage()):
                missed.append(found[1])

    listener, logger = Listener(), logging.getLogger("vllm.model_executor.model_loader.reload.layerwise")
    logger.addHandler(listener)
    try:
        yield
    finally:
        logger.removeHandler(listener)
