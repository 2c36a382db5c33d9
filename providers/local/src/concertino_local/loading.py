"""Reading a model from disk: its folder, its tokenizer, its network. Nothing is downloaded, no code of the folder runs.

Whatever keeps a model from being loaded is told as a `ProviderError` of the caller's class with the next step.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .codec import TemplateCodec
from .codec.template import own_template
from .errors import caller_error, is_out_of_memory
from .folder import context_limit, looks_like_a_folder
from .settings import LocalSettings
from .weight_files import check_adapter_folder, check_model_folder, read_object


@dataclass
class Loaded:
    """A model that is ready to generate.

    Attributes:
        network: what is called: the causal LM, or peft's wrapper around it.
        codec: its tokenizer and chat template.
        context: tokens of prompt and reply together.
        defaults: temperature, top_p and top_k of requests that name none.
        solo: it cannot be batched, so that its requests are answered one after another.
    """

    network: Any
    codec: TemplateCodec
    context: int
    defaults: tuple[float, float, int]
    solo: bool


def load(settings: LocalSettings) -> Loaded:
    """Read tokenizer and network.

    Raises:
        ProviderError: it cannot be loaded; says why and what to do.
    """
    require("torch", "transformers")
    folder = find_folder(settings.path)
    check_model_folder(folder)
    tokenizer = load_tokenizer(folder, settings)
    network = load_network(folder, settings)
    generation = network.generation_config
    ends = generation.eos_token_id
    codec = make_codec(tokenizer, settings, [] if ends is None else [ends] if isinstance(ends, int) else ends)
    limits = [limit for limit in (settings.context, context_limit(network.config.to_dict())) if limit]
    solo = _cannot_be_batched(network)
    if settings.adapter is not None:
        network = with_adapter(network, settings.adapter)
    return Loaded(network, codec, min(limits, default=2048), _defaults(settings, generation), solo)


def make_codec(tokenizer: Any, settings: LocalSettings, end_ids: Iterable[int]) -> TemplateCodec:
    """The codec of a tokenizer, with the template and the reply format of the settings."""
    file = settings.template
    template = own_template(tokenizer) if file is None else Path(file).expanduser().read_text(encoding="utf-8")
    return TemplateCodec(
        tokenizer,
        template,
        options=settings.template_options,
        end_ids=end_ids,
        reply_format=settings.reply_format,
    )


def require(*packages: str) -> None:
    """Check that packages are installed.

    Raises:
        ProviderError: one is not.
    """
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        raise caller_error(
            f"local models need {' and '.join(missing)}, which this Python does not have; "
            f"`pip install {' '.join(missing)}` adds it"
        )


def find_folder(path: str) -> Path:
    """The folder of a path or of a hub name in the local cache.

    Raises:
        ProviderError: there is none.
    """
    folder = Path(path).expanduser()
    if folder.is_dir():
        return folder
    if looks_like_a_folder(path):
        raise caller_error(f"path={path!r}: folder not found; the working directory is {str(Path.cwd())!r}")
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(path, local_files_only=True))
    except Exception as error:  # of several libraries, none of which is public
        raise caller_error(
            f"path={path!r} is neither a folder nor a model in the local Hugging Face cache, and nothing is "
            f"downloaded unasked; `hf download {path}` fetches a model ({type(error).__name__})"
        ) from error


def load_network(folder: Path, settings: LocalSettings) -> Any:
    """The causal LM of a folder, on its device, ready for inference.

    Raises:
        ProviderError: it cannot be loaded, or there is no memory for it.
    """
    import torch
    from transformers import AutoModelForCausalLM

    dtype: Any = settings.dtype if settings.dtype == "auto" else getattr(torch, settings.dtype)
    options: dict[str, Any] = {} if settings.attention == "auto" else {"attn_implementation": settings.attention}
    device = find_device(settings.device)
    check_model_folder(folder)
    options |= {"use_safetensors": True, "local_files_only": True, "trust_remote_code": False}
    try:
        with _quietly():
            network = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, **options)
        return network.to(device).eval().requires_grad_(False)
    except Exception as error:
        if is_out_of_memory(error):
            raise caller_error(
                f"{settings.path}: not enough memory on {device} to load it ({error}); choose a smaller model, "
                "dtype='bfloat16', or another device"
            ) from error
        raise caller_error(_why_not_loaded(settings.path, folder, error)) from error


def _why_not_loaded(path: str, folder: Path, error: Exception) -> str:
    if "custom code" in str(error) and "auto_map" in read_object(folder / "config.json"):
        return f"{path}: it needs Python code of its own (`auto_map` in config.json), which is not run; choose another"
    return f"{path}: transformers cannot load it as a causal LM: {' '.join(str(error).split())[:500]}"


def with_adapter(network: Any, adapter: str) -> Any:
    """A network with a LoRA adapter on top.

    Raises:
        ProviderError: peft is missing, or the folder holds no adapter that fits.
    """
    if importlib.util.find_spec("peft") is None:
        raise caller_error(f"adapter {adapter!r} needs peft; `pip install concertino-local[lora]` adds it")
    from peft import PeftModel

    folder = Path(adapter).expanduser()
    if folder.is_dir():  # else peft says what it looked for
        check_adapter_folder(folder)
    try:
        wrapped = PeftModel.from_pretrained(network, str(folder), local_files_only=True)
    except Exception as error:
        raise caller_error(f"adapter {adapter!r} cannot be loaded onto {network.name_or_path!r}: {error}") from error
    return wrapped.eval().requires_grad_(False)


def find_device(name: str) -> Any:
    """The torch device of a setting.

    Raises:
        ProviderError: this machine has no such device.
    """
    import torch

    if name == "auto":
        accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        return accelerator or torch.device("cpu")
    try:
        return torch.empty(0, device=name).device
    except Exception as error:  # RuntimeError or AssertionError, by back end
        reason = str(error).partition("\n")[0]
        raise caller_error(f"device={name!r} cannot be used here ({reason}); 'auto' takes what there is") from error


def load_tokenizer(folder: Path, settings: LocalSettings) -> Any:
    """The tokenizer of a folder.

    Raises:
        ProviderError: it cannot be loaded.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:
        raise caller_error(f"{settings.path}: its tokenizer cannot be loaded: {error}") from error
    if len(tokenizer) <= len(tokenizer.added_tokens_decoder):  # transformers makes up an empty one
        raise caller_error(f"{settings.path}: its tokenizer cannot be loaded: the folder has no tokenizer.json")
    return tokenizer


_KEYS_AND_VALUES = {"DynamicLayer", "DynamicSlidingWindowLayer"}


def _cannot_be_batched(network: Any) -> bool:
    """Whether a model keeps a state other than keys and values, as linear attention and state spaces do.

    Raises:
        ProviderError: it does, and this version of transformers has no common cache for it.
    """
    from transformers import DynamicCache, __version__

    from .sampling.network import other_state

    solo = not {type(layer).__name__ for layer in DynamicCache(config=network.config).layers} <= _KEYS_AND_VALUES
    if not solo and other_state(network):
        raise caller_error(
            f"{network.name_or_path} ({network.config.model_type}) keeps a state other than keys and values, which "
            f"transformers {__version__} cannot carry from step to step; `pip install 'transformers>=5'` can"
        )
    return solo


def _defaults(settings: LocalSettings, generation: Any) -> tuple[float, float, int]:
    """Temperature, top_p and top_k of requests that name none: the settings', else the generation config's."""
    temperature, top_p, top_k = settings.temperature, settings.top_p, settings.top_k
    # What a generation config says of temperature counts only where it samples.
    if temperature is None:
        temperature = (generation.temperature or 1.0) if generation.do_sample else 0.0
    if top_p is None:
        top_p = generation.top_p or 1.0
    if top_k is None:
        top_k = (generation.top_k or 0) if generation.do_sample else 0
    return float(temperature), float(top_p), int(top_k)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Without transformers' progress bars."""
    from transformers.utils import logging

    bars: Any = logging
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            bars.enable_progress_bar()
