"""The files of a model's folder, looked at before a library opens them: the folder may be a stranger's.

Invariant: weights are read from safetensors alone. A pickle, which could run any function, is never opened; an index
names files of its own folder; what is to be a file is no pipe, device or folder; names of tensors, which libraries
print, can be shown on a terminal; a configuration has no more layers than the weights have tensors. The rest of a
header, its shapes and offsets, the library of safetensors checks itself.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .errors import caller_error

_CONFIG_BYTES, _TOKENIZER_BYTES, _HEADER_BYTES = 16 << 20, 512 << 20, 100_000_000
_NAME_CHARS = 500
_LAYERS = frozenset({"num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers"})
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt")
_INDEX = "model.safetensors.index.json"
ADAPTER = "adapter_config.json"


def check_model_folder(folder: Path) -> None:
    """Refuse a folder that holds no model, or one that is not read here.

    Raises:
        ProviderError: names the file, what is wrong with it, and what to do.
    """
    config = read_object(folder / "config.json")
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        if _is_there(folder / name):
            _check_file(folder / name, _TOKENIZER_BYTES)
    if _is_there(folder / _INDEX):
        _check_index(folder / _INDEX)
    _check_layers(folder, config, _check_weights(folder))


def check_adapter_folder(folder: Path) -> None:
    """The same of the folder of a LoRA adapter."""
    read_object(folder / ADAPTER)
    _check_weights(folder)


def read_object(file: Path) -> dict[str, Any]:
    """The table in a JSON file.

    Raises:
        ProviderError: there is none.
    """
    _check_file(file, _CONFIG_BYTES)
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise caller_error(
            f"{file}: cannot be read: {str(error)[:200]}; get the folder again from its source"
        ) from None
    if not isinstance(data, dict):
        raise caller_error(f"{file}: it holds {type(data).__name__}, expected a table; get the folder again")
    return data


def _check_index(file: Path) -> None:
    parts = read_object(file).get("weight_map")
    if not isinstance(parts, dict):
        raise caller_error(f"{file}: `weight_map` is not a table; get the folder again from its source")
    for name in parts.values():
        if not isinstance(name, str) or Path(name).name != name or not name.endswith(".safetensors"):
            raise caller_error(f"{file}: it names {str(name)[:80]!r}; expected .safetensors files of its own folder")


def _check_weights(folder: Path) -> int | None:
    """How many tensors there are; None where there is no file of them."""
    found = sorted(folder.glob("*.safetensors"))
    for file in found:
        _check_file(file, 0)
    if not found:
        pickles = sorted(file.name for pattern in _PICKLES for file in folder.glob(pattern))
        if pickles:
            raise caller_error(
                f"{folder}: its weights are a pickle ({pickles[0][:80]}), which could run any code and is not opened; "
                "convert it to safetensors where you trust it: model.save_pretrained(FOLDER)"
            )
    # Without any weights, the library says which names it looked for.
    return sum(_check_names(file) for file in found) if found else None


def _check_names(file: Path) -> int:
    """How many tensors a file has. Eight bytes give the length of the JSON in which they are named."""
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if length > min(file.stat().st_size, _HEADER_BYTES):
            raise caller_error(f"{file}: not a whole safetensors file; get the folder again from its source")
        text = stream.read(length)
    try:
        header = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise caller_error(f"{file}: its header is not a table of JSON; get the folder again from its source")
    for name in header:
        if len(name) > _NAME_CHARS or not name.isprintable():
            raise caller_error(f"{file}: it names a tensor {name[:80]!r}; such names are not shown, and not read")
    return len(header)


def _check_layers(folder: Path, config: dict[str, Any], tensors: int | None) -> None:
    """A library makes each layer before it looks for its weights, and a stranger may ask for a thousand million."""
    for part in (config, *(value for value in config.values() if isinstance(value, dict))):
        for key, value in part.items():
            if key in _LAYERS and isinstance(value, int) and tensors is not None and value > tensors:
                raise caller_error(
                    f"{folder / 'config.json'}: {key} = {value}, but the weights have {tensors} tensors; "
                    "get the folder again from its source"
                )


def _is_there(file: Path) -> bool:
    return file.exists() or file.is_symlink()


def _check_file(file: Path, most: int) -> None:
    if not file.is_file():
        what = "it is not a file" if _is_there(file) else "file not found"
        raise caller_error(f"{file}: {what}; get the folder again from its source")
    if most and file.stat().st_size > most:
        raise caller_error(f"{file}: it has {file.stat().st_size:,} bytes, at most {most:,} are read")
