"""Folders of weights and adapters, looked at before a server is asked to load them.

A vLLM engine that fails while it loads weights ends, and takes every request with it; one that is given a folder that
lacks tensors keeps the old ones and says so only in its log. So everything that can be seen in the files is checked
first: the headers of the safetensors files (names, shapes, lengths) and the configuration, against those of the model
that is served.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from concertino import UsageError

from concertino_vllm.settings import adapter_rank

# They tell who saved the model, and change no tensor.
_CHANGES_FREELY = frozenset({"_name_or_path", "dtype", "torch_dtype", "transformers_version", "use_cache"})
_HEADER_LIMIT = 100 * 2**20
Shapes = dict[str, tuple[int, ...]]


def absolute(folder: str | Path) -> Path:
    """The absolute path of a folder: the server has another working directory."""
    return Path(folder).expanduser().absolute()


def folder_of(root: str) -> Path | None:
    """The folder that a server says its model comes from, None if that is none of this machine.

    A name on the Hugging Face hub is the folder that the cache of this machine holds it in.
    """
    path = Path(root)
    if path.is_absolute():
        return path if path.is_dir() else None
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    cache = Path(os.environ.get("HF_HUB_CACHE") or home / "hub") / f"models--{root.replace('/', '--')}"
    try:
        snapshot = cache / "snapshots" / (cache / "refs" / "main").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None
    return snapshot if (snapshot / "config.json").is_file() else None


def is_same(one: Path, other: Path) -> bool:
    """Whether two paths lead to one folder."""
    return one.resolve() == other.resolve()


def check_weights(folder: Path, served: Path | None) -> None:
    """Refuse a folder that cannot take the place of the served model's.

    Args:
        folder: the new weights.
        served: the folder of the weights in use, if it is known.

    Raises:
        UsageError: it says what is missing or different.
    """
    shapes = read_shapes(folder)
    config = _read_config(folder)
    if served is None or is_same(served, folder):
        return
    before = _read_config(served)
    # Keys of one file only are passed over: they come and go with the version that wrote them.
    for key in sorted({*config} & {*before} - _CHANGES_FREELY):
        if config[key] != before[key]:
            raise UsageError(
                f"{folder / 'config.json'}: {key} is {config[key]!r}, and {before[key]!r} in the served {served}; a "
                "running server keeps its configuration, so it cannot load this model; start another server"
            )
    _compare(str(folder), shapes, served, config)


def _compare(what: str, shapes: Shapes, served: Path, config: Mapping[str, Any]) -> None:
    """Refuse tensors that are not exactly those of the served model."""
    known = read_shapes(served)
    # `save_pretrained` leaves a tied output layer out; a state dict has it.
    tied = {"lm_head.weight"} if config.get("tie_word_embeddings") else set()
    for name, shape in known.items():
        if name not in shapes and name not in tied:
            raise UsageError(f"{what}: {name} is missing, which the served {served} has; save the whole model")
        if name in shapes and shapes[name] != shape:
            raise UsageError(f"{what}: {name} has the shape {shapes[name]}, and {shape} in the served {served}")
    if strange := sorted(set(shapes) - set(known) - tied):
        raise UsageError(f"{what}: {strange[0]} is not a tensor of the served {served}; save the model without it")


def check_adapter(folder: Path, rank: int) -> None:
    """Refuse a folder that is not a LoRA adapter, or one of a rank that the server is not prepared for.

    Args:
        folder: the adapter, in the format of PEFT.
        rank: the largest rank that the server takes, 0 if that is not known.

    Raises:
        UsageError: it says what is wrong.
    """
    config = folder / "adapter_config.json"
    if not config.is_file():
        raise UsageError(f"{folder}: no adapter_config.json; expected an adapter as PEFT's save_pretrained writes it")
    read_shapes(folder)
    if rank and adapter_rank(folder) > rank:
        raise UsageError(
            f"{config}: rank {adapter_rank(folder)} is above the {rank} that the server was started for; "
            f"give its model lora_rank = {adapter_rank(folder)}"
        )


def is_tied(folder: Path) -> bool:
    """Whether a model uses its input embeddings as its output layer."""
    return bool(_read_config(folder).get("tie_word_embeddings")) and "lm_head.weight" not in read_shapes(folder)


def read_shapes(folder: Path) -> Shapes:
    """The shapes of all tensors in a folder, from the headers of its files.

    Raises:
        UsageError: there are none, or a file is not whole.
    """
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        what = "no *.safetensors in it" if folder.is_dir() else "folder not found"
        raise UsageError(f"{folder}: {what}; expected weights as save_pretrained writes them")
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        wanted = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        if missing := sorted(wanted - {file.name for file in files}):
            raise UsageError(f"{index}: it names {missing[0]}, which is not there; wait until the folder is written")
    shapes: Shapes = {}
    for file in files:
        shapes |= _read_header(file)
    return shapes


def _read_header(file: Path) -> Shapes:
    size = file.stat().st_size
    try:
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if not 0 < length <= min(size - 8, _HEADER_LIMIT):
                raise ValueError(f"its header would have {length} bytes")
            header = json.loads(stream.read(length))
        tensors = {name: entry for name, entry in header.items() if name != "__metadata__"}
        end = max((entry["data_offsets"][1] for entry in tensors.values()), default=0)
        if size != 8 + length + end:
            raise ValueError(f"it has {size} bytes, and its header speaks of {8 + length + end}")
        return {name: tuple(entry["shape"]) for name, entry in tensors.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{file}: not a whole safetensors file: {error}; wait until it is written") from error


def _read_config(folder: Path) -> dict[str, Any]:
    try:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{folder}: no config.json; expected a model as save_pretrained writes it") from None
    except ValueError as error:
        raise UsageError(f"{folder / 'config.json'}: {error}") from error
    return config


@dataclass(frozen=True)
class Outgoing:
    """A tensor on its way to a server. It is cast when it is read, so that no second copy of a model is held.

    Attributes:
        tensor: as the trainer has it.
        dtype: as the server has it.
    """

    tensor: Any
    dtype: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return tuple(self.tensor.shape)

    @property
    def size(self) -> int:
        """Bytes on the way."""
        return math.prod(self.shape) * int(self.dtype.itemsize)

    def read(self) -> Any:
        """The tensor, cast."""
        return self.tensor.detach().to(self.dtype)


State = dict[str, Outgoing]


def outgoing(state: Mapping[str, Any], served: Path | None, dtype: str = "") -> State:
    """The tensors of a state dict that a server is to have.

    Args:
        state: tensors by name, as `model.state_dict()` gives them.
        served: the folder of the served model, by which names and shapes are checked.
        dtype: of the server, such as `bfloat16`; numbers with a point are cast to it. "" leaves them as they are.

    Raises:
        UsageError: the served model is not a folder, or the tensors are not those that it has.
    """
    if served is None:
        raise UsageError(
            "a state can only be loaded where the server's model is a folder, or in the Hugging Face cache of this "
            "machine; save the model, and give its folder"
        )
    import torch

    target = getattr(torch, dtype, None)
    known = read_shapes(served)
    tensors: State = {}
    places = set()
    # Names of the served files first: of two tied tensors, theirs is the one to keep.
    for name, tensor in sorted(state.items(), key=lambda item: item[0] not in known):
        place = (tensor.data_ptr(), math.prod(tensor.shape), tensor.storage_offset())
        if name not in known and place in places:
            continue  # tied to one that is there
        places.add(place)
        cast = isinstance(target, torch.dtype) and tensor.is_floating_point()
        tensors[name] = Outgoing(tensor, target if cast else tensor.dtype)
    _compare("the state", {name: each.shape for name, each in tensors.items()}, served, _read_config(served))
    return tensors


def write_state(state: State, served: Path, folder: Path) -> None:
    """Write tensors as a folder that a server can load.

    Args:
        state: what `outgoing` gives.
        served: the folder of the served model, whose configuration and tokenizer are taken over.
        folder: where to; an empty folder, which is removed if it cannot be filled.

    Raises:
        UsageError: there is no room, or safetensors is not installed.
    """
    try:
        from safetensors.torch import save_file
    except ImportError:
        raise UsageError(
            "loading a state needs safetensors: pip install safetensors; or save the model and give its folder"
        ) from None
    needed, free = sum(tensor.size for tensor in state.values()), shutil.disk_usage(folder).free
    try:
        if needed > free:
            raise OSError(f"{free / 2**30:.1f} GiB are free")
        for file in served.iterdir():
            if file.is_file() and not file.name.endswith((".safetensors", ".safetensors.index.json", ".bin", ".gguf")):
                shutil.copy(file, folder)
        # safetensors refuses tensors that share memory.
        tensors = {name: each.read().cpu().contiguous().clone() for name, each in state.items()}
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    # safetensors has an error of its own for a disk that is full.
    except Exception as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise UsageError(
            f"the weights cannot be written to {folder}: {error}; they need {needed / 2**30:.3g} GiB: free the disk, "
            "name a folder on another one as TMPDIR, or have the server take them without files (weights = 'ipc')"
        ) from error
