"""The policy of a settings file: weights, tokenizer and codec, loaded from this machine or created from scratch.

The invariants: nothing is downloaded and no code of a model's folder is run; a model that is made follows from its
settings, its texts and the seed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concertino import UsageError
from concertino.strategies import Ask

from concertino_train.policies.transformers import check_sampled
from concertino_train.running.shards import shards_of
from concertino_train.settings import Precision
from concertino_train.weight_storage import unreadable

if TYPE_CHECKING:
    from concertino_local.codec import ChatCodec

    from concertino_train.config.config import TrainConfig

    from .questions import Questions

ADAPTER = "adapter_config.json"
"""The file by which the folder of an adapter is known."""
_LONG = 20
"""Characters of a line from which on it may be one token."""
_READ = 64
"""Numbers of a tensor that tell it from others."""
_TEXTS = 400
"""Questions whose first contexts a tokenizer is trained on."""


@dataclass
class LoadedPolicy:
    """A model that can be trained.

    Attributes:
        model: of transformers, or of peft where there is an adapter.
        codec: between messages and its tokens.
        base: folder or name of the weights below an adapter; empty without.
        made: whether it was made from nothing.
    """

    model: Any
    codec: ChatCodec
    base: str = ""
    made: bool = False


def load_model(config: TrainConfig, texts: Iterable[str] = ()) -> LoadedPolicy:
    """The policy, before any training of this run.

    Args:
        config: the training.
        texts: that a new tokenizer is trained on.

    Raises:
        UsageError: the model does not exist here, or it cannot be trained; says what to do.
    """
    if config.model.path:
        loaded = _from_path(config, config.model.path)
    elif config.model.new is not None:
        loaded = _new(config, texts)
    else:
        raise UsageError("model: neither path nor new is given; expected a folder, or {new: {layers: 4, hidden: 128}}")
    if config.rollout.backend == "transformers":
        check_sampled(loaded.model)
    _to_device(config, loaded.model)
    return loaded


def save_base(loaded: LoadedPolicy, home: Path) -> str:
    """Write a model that was made from nothing to `home/base`, where adapters name it; gives the folder."""
    base = home / "base"
    loaded.model.save_pretrained(str(base))
    loaded.codec.save(base)
    loaded.model.name_or_path = str(base.resolve())
    return str(base)


def first_texts(questions: Questions) -> list[str]:
    """What rollouts begin with: texts to train a tokenizer on."""
    found: list[str] = []
    for number in range(min(_TEXTS, len(questions.tasks))):
        asked = questions.assignment(number)
        step = asked.first_step()
        if isinstance(step, Ask):
            found += [message.text for message in step.messages]
        else:  # a workflow that looks at its world before it asks anybody
            found += [asked.text, json.dumps(asked.strategy.to_json(), ensure_ascii=False)]
    return found


# -- from a folder -----------------------------------------------------------------------------------------------------


def _from_path(config: TrainConfig, path: str) -> LoadedPolicy:
    from concertino_local.codec import ChatCodec

    home = _first_role(path)
    base = base_of(home)
    if home != path:  # adapters or models by role, which are put on later
        model = load_weights(config, base or home)
    else:
        model = load_weights(config, path)
    tokenizer = next((each for each in (path, home) if (Path(each) / "tokenizer_config.json").exists()), base or path)
    codec = ChatCodec.load(tokenizer, config.model.template or None, **config.model.template_options)
    return LoadedPolicy(model, codec, base)


def _first_role(path: str) -> str:
    """The folder itself; or, of one that holds folders of roles only, the first of these."""
    folder = Path(path)
    if not folder.is_dir() or (folder / "config.json").exists() or (folder / ADAPTER).exists():
        return path
    roles = sorted(each for each in folder.iterdir() if (each / "config.json").exists() or (each / ADAPTER).exists())
    return str(roles[0]) if roles else path


def load_weights(config: TrainConfig, path: str) -> Any:
    """A model, with the adapter on it where the folder is an adapter's.

    Raises:
        UsageError: the model does not exist here.
    """
    from transformers import AutoModelForCausalLM

    if shards_of(Path(path)) is not None:
        raise UsageError(
            f"model.path={path!r} is a checkpoint in parts; put it together: concertino train export {path} FOLDER, "
            "and give model.path=FOLDER"
        )
    base = base_of(path)
    check_adapter(config, path)
    # No pickle is opened, and no code of the folder is imported, nor asked about: either could run anything.
    options: dict[str, Any] = {"dtype": _dtype(config), "local_files_only": True}
    options |= {"use_safetensors": True, "trust_remote_code": False}
    if config.model.attention != "auto":
        options["attn_implementation"] = config.model.attention
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(base or path, **options)
        if base:
            from peft import PeftModel

            model = PeftModel.from_pretrained(model, path, is_trainable=True)
    except unreadable() as error:
        raise UsageError(
            f"model.path={path!r} cannot be loaded: {' '.join(str(error).split())[:300]}. Expected a folder that "
            "save_pretrained wrote, with all files whole, or a model in the local Hugging Face cache; nothing is "
            "downloaded"
        ) from error
    return model


def check_adapter(config: TrainConfig, path: str | Path) -> None:
    """See that an adapter is what the settings say, where they say anything: it stays as it was made.

    Raises:
        UsageError: it is of another make.
    """
    section, file = config.model.adapter, Path(path) / ADAPTER
    if section is None or not file.exists():
        return
    made = _adapter_file(file)
    pairs: dict[str, tuple[Any, Any]] = {
        "rank": (made.get("r"), section.rank),
        "alpha": (made.get("lora_alpha"), section.alpha),
    }
    if isinstance(section.targets, list) and isinstance(made.get("target_modules"), list):
        pairs["targets"] = sorted(made["target_modules"]), sorted(section.targets)
    other = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    if other:
        told = ", ".join(f"{name} {was!r}, and model.adapter.{name} is {now!r}" for name, (was, now) in other.items())
        right = " ".join(f"model.adapter.{name}={was}" for name, (was, _) in other.items())
        raise UsageError(
            f"{path} is an adapter with {told}; an adapter is trained further as it was made: give {right}, or begin "
            "with other weights (model.path)"
        )


def base_of(path: str | Path) -> str:
    """The model below the adapter in a folder; empty where it holds none."""
    file = Path(path) / ADAPTER
    if not file.exists():
        return ""
    name = _adapter_file(file).get("base_model_name_or_path") or ""
    if not name or not isinstance(name, str):
        raise UsageError(f"{file} names no base model; merge the adapter, or give base_model_name_or_path there")
    return str(name)


def trains_whole(config: TrainConfig) -> bool:
    """Whether all weights are trained, and no adapter over them."""
    return config.model.adapter is None and not base_of(config.model.path)


def precision_of(config: TrainConfig) -> Precision:
    """What a training computes in.

    Whole weights stay float32 while they are trained: of bfloat16 weights near 0.05, the next number is 0.0002 away,
    and at a learning rate of 1e-6 nearly all updates would be rounded to nothing. So for them, 16 bits of `model.dtype`
    are those of computing and of exports.
    """
    asked = config.trainer.precision
    return config.model.dtype if asked == "auto" and trains_whole(config) else asked


def _adapter_file(file: Path) -> dict[str, Any]:
    """The table in the file of an adapter, which may be a stranger's."""
    try:
        data = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{file}: cannot be read: {str(error)[:200]}; get the adapter again") from error
    if not isinstance(data, dict):
        raise UsageError(f"{file}: not the file of an adapter; expected a table; get the adapter again")
    if not any(file.parent.glob("*.safetensors")) and shards_of(file.parent) is None:
        raise UsageError(f"{file.parent}: it holds no .safetensors file; a pickle is not opened, it could run any code")
    return data


def _dtype(config: TrainConfig) -> Any:
    """The dtype in which weights are loaded."""
    import torch

    name = config.model.dtype
    if trains_whole(config):
        name = "float32"
    elif name == "auto":
        name = "bfloat16" if config.model.adapter is not None and _accelerated(config) else "float32"
    return getattr(torch, name)


def _accelerated(config: TrainConfig) -> bool:
    import torch

    return config.trainer.device != "cpu" and torch.cuda.is_available()


def _to_device(config: TrainConfig, model: Any) -> None:
    """Put it where it is trained, so that it can sample before a trainer moves it; sharding moves layer by layer."""
    if _accelerated(config) and config.trainer.sharding == "none":
        import os

        model.to(f"cuda:{os.environ.get('LOCAL_RANK', '0')}")


def beginning_of(loaded: LoadedPolicy) -> str:
    """A digest of the weights that a training begins with; empty for those that were made, which its settings say.

    Of every tensor a few numbers are read, so that it takes no time with large models.
    """
    import hashlib

    import torch

    if loaded.made:
        return ""
    digest = hashlib.sha256()
    for name, weight in sorted(loaded.model.named_parameters()):
        flat = weight.detach().reshape(-1)
        # Spread over the tensor: fine-tuned weights may differ in a few rows only.
        some = flat[:: max(1, len(flat) // _READ)][:_READ].to("cpu", torch.float32)
        digest.update(f"{name} {tuple(weight.shape)}".encode() + some.numpy().tobytes())
    return digest.hexdigest()[:16]


# -- from nothing ------------------------------------------------------------------------------------------------------


def common_lines(texts: Sequence[str]) -> list[str]:
    """Long lines that at least half as many texts have as have the most frequent one: the wording of a prompt."""
    counts = Counter(line for text in texts for line in set(text.splitlines()) if len(line) >= _LONG)
    most = max(counts.values(), default=0)
    # With a single text every line would be as frequent as the most frequent one.
    return sorted(line for line, count in counts.items() if 2 * count >= most > 1)


def _new(config: TrainConfig, texts: Iterable[str]) -> LoadedPolicy:
    from concertino_local.codec import ChatCodec

    from concertino_train.tiny import new_model, new_tokenizer

    section = config.model.new
    assert section is not None
    if section.tokenizer:
        codec = ChatCodec.load(section.tokenizer, config.model.template or None, **config.model.template_options)
    else:
        found: Sequence[str] = list(texts)
        if not found:
            raise UsageError("model.new: there are no texts to make a tokenizer of; give tasks, or model.new.tokenizer")
        phrases = common_lines(found) if section.common_lines else ()
        made = new_tokenizer(found, section.vocabulary, phrases=phrases, context=section.context)
        codec = ChatCodec.load(made, config.model.template or None, **config.model.template_options)
    sizes = section.model_dump(include={"layers", "hidden", "heads", "key_heads", "feed_forward", "context"})
    return LoadedPolicy(new_model(codec.tokenizer, seed=config.trainer.seed, **sizes), codec, made=True)
