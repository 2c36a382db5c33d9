"""Exports a checkpoint for others: weights, tokenizer, declaration, model card.

    export("out/rl/model", "orchestrators/frugal")

    orchestrators/frugal/model.safetensors ...   for transformers, vLLM, concertino-local
    orchestrators/frugal/concertino.toml         declares it as a model
    orchestrators/frugal/pool.toml               a pool that it leads; add members
    orchestrators/frugal/strategy.json           the paradigm that it was trained in
    orchestrators/frugal/shortlist.json          how the pool was listed for it, where it was
    orchestrators/frugal/README.md               what it is, and how it is used

The invariant: what is written answers a question as it stands, with the tokenizer, the template, the end tokens, the
strategy and the shortlist that it was trained with.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concertino import UsageError

from concertino_train.config.config import TrainConfig, load_config
from concertino_train.config.named import make_strategy
from concertino_train.factories.learners import SETTINGS
from concertino_train.factories.models import ADAPTER, base_of
from concertino_train.factories.pools import MAKERS, make_shortlist
from concertino_train.running.shards import merged_shards, shards_of

if TYPE_CHECKING:
    from concertino_local.codec import ChatCodec

    from concertino_train.config.sections import Named

_SHORTLIST = "shortlist.json"
_WEIGHTS = ("*.safetensors", "*.safetensors.index.json", "config.json", "adapter_config.json")
# Weights of any format: transformers would find a file that was left from another export first.
_OF_ANOTHER = (*_WEIGHTS, "adapter_model.bin", "pytorch_model*.bin*", "generation_config.json")


@dataclass(frozen=True)
class Exported:
    """What was written.

    Attributes:
        folder: where.
        name: of the model, without its provider.
        files: all of them.
        kind: `model`, or `adapter` over `base`.
        base: the model below an adapter; empty for a whole model.
    """

    folder: Path
    name: str
    files: tuple[str, ...]
    kind: str
    base: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "folder": str(self.folder),
            "name": self.name,
            "files": list(self.files),
            "kind": self.kind,
            "base": self.base,
        }


def export(
    checkpoint: str | Path,
    folder: str | Path,
    *,
    role: str = "",
    merge: bool = True,
    dtype: str = "",
    name: str = "",
    force: bool = False,
) -> Exported:
    """Write a model that can be used at once.

    Args:
        checkpoint: folder of a model that was trained, of a checkpoint, or of a training.
        folder: for the model; made, and refused where it holds something.
        role: which policy, where roles have one each.
        merge: put an adapter into the weights below it; without, the adapter is written alone.
        dtype: of the weights: `float32`, `bfloat16` or `float16`; by default the 16 bits of `model.dtype` in the
            settings of the training, else as they are.
        name: of the model; that of the folder by default.
        force: write into a folder that holds something.

    Returns:
        What was written.

    Raises:
        UsageError: there is no model, the role is missing or unknown, or the folder holds something.
    """
    source, target = find_model(checkpoint, role), Path(folder)
    if target.exists() and any(target.iterdir()) and not force:
        raise UsageError(f"{target} holds something already; choose another folder, or --force to write into it")
    if target.resolve() == source.resolve():
        raise UsageError(f"{target} is the model itself; choose another folder")
    if dtype not in ("", "float32", "bfloat16", "float16"):
        raise UsageError(f"dtype={dtype!r}: expected float32, bfloat16 or float16")
    target.mkdir(parents=True, exist_ok=True)
    for file in [file for pattern in _OF_ANOTHER for file in target.glob(pattern)]:
        file.unlink()  # an adapter that was exported here before would be put on these weights
    config = settings_of(source, Path(checkpoint))
    base = base_of(source)
    codec = _codec(source, base, config)
    if not dtype and config is not None and config.model.dtype in ("bfloat16", "float16"):
        dtype = config.model.dtype
    if (base and merge) or dtype or shards_of(source) is not None:
        _converted(source, target, base, merge, dtype)
    else:
        _copied(source, target)
    codec.save(target)
    _generation(target, codec, config)
    adapter = bool(base) and not merge
    called = name or target.resolve().name
    exported = Exported(target, called, (), "adapter" if adapter else "model", base if adapter else "")
    _declare(exported, config, codec)
    files = sorted(each.relative_to(target).as_posix() for each in target.rglob("*") if each.is_file())
    return Exported(target, called, tuple(files), exported.kind, exported.base)


def find_model(checkpoint: str | Path, role: str = "") -> Path:
    """The folder with weights that a path means.

    Args:
        checkpoint: a model, a checkpoint, or a training, whose `model` is meant.
        role: whose policy, where there are several.

    Raises:
        UsageError: there are no weights; says what is there.
    """
    path = Path(checkpoint)
    if not path.is_dir():
        raise UsageError(f"{path}: folder not found; expected that of a model, a checkpoint or a training")
    for each in _places(path):
        roles = _roles_in(each)
        if role in roles:
            return each / role
        if roles:
            given = f"there is no role {role!r}" if role else "roles have a policy each"
            raise UsageError(f"{each}: {given}; name one of {', '.join(roles)}")
        if _holds_weights(each) and role:
            raise UsageError(f"{each} holds one policy for all roles; leave out the role {role!r}")
        if _holds_weights(each):
            return each
    raise UsageError(f"{path}: there is no config.json and no {ADAPTER} in it or in its `model`; expected a model")


def find_policies(path: Path) -> Path | None:
    """The folder with the weights of all roles that a path means; None where there are none."""
    return next((each for each in _places(path) if _holds_weights(each) or _roles_in(each)), None)


def _places(path: Path) -> list[Path]:
    """Where the weights of a training, or of several behind each other, may be."""
    places = (path, path / "model", path / "rl" / "model", path / "sft" / "model")
    return [each for each in places if each.is_dir()]


def _roles_in(folder: Path) -> list[str]:
    """Roles that have folders of weights in a folder of a model."""
    if _holds_weights(folder) or not (folder / "tokenizer_config.json").is_file():
        return []
    # Only a folder of roles has a tokenizer and no weights of its own.
    return sorted(each.name for each in folder.iterdir() if each.is_dir() and _holds_weights(each))


def settings_of(*folders: Path) -> TrainConfig | None:
    """The settings that a model was trained with, as far as they stand in these folders or a training above them."""
    for folder in folders:
        for place in (folder, folder.parent, folder.parent.parent):
            if (place / SETTINGS).is_file():
                # Unchecked: what the settings name need not be installed where a model is exported.
                return load_config(place / SETTINGS, check=False, trusted=True)
            if (place / "config.yaml").is_file() and (place / "checkpoints").is_dir():
                return load_config(place / "config.yaml", check=False, trusted=True)
    return None


def _holds_weights(folder: Path) -> bool:
    return (folder / "config.json").is_file() or (folder / ADAPTER).is_file()


def _codec(source: Path, base: str, config: TrainConfig | None) -> ChatCodec:
    from concertino_local.codec import ChatCodec

    homes = [str(each) for each in (source, source.parent) if (each / "tokenizer_config.json").is_file()]
    home = next(iter(homes), base)
    if not home:
        raise UsageError(f"{source} has no tokenizer beside it; expected tokenizer_config.json")
    options: Mapping[str, Any] = config.model.template_options if config is not None else {}
    return ChatCodec.load(home, **options)


# -- weights -----------------------------------------------------------------------------------------------------------


def _copied(source: Path, target: Path) -> None:
    """The files as they are."""
    for pattern in _WEIGHTS:
        for file in sorted(source.glob(pattern)):
            shutil.copyfile(file, target / file.name)


def _converted(source: Path, target: Path, base: str, merge: bool, dtype: str) -> None:
    """The weights in another type, an adapter put into those below it."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    kind = getattr(torch, dtype) if dtype else "auto"
    shards = shards_of(source)
    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        if shards is not None and not base:
            model: Any = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(str(source), **options))
        else:
            options |= {"dtype": kind, "use_safetensors": True}
            model = AutoModelForCausalLM.from_pretrained(base or str(source), **options)
    except (OSError, ValueError) as error:
        raise UsageError(f"{base or source} cannot be loaded: {' '.join(str(error).split())[:300]}") from error
    if base:
        model = _with_adapter(model, source, shards)
        model = model.merge_and_unload() if merge else model
    elif shards is not None:
        _take_over(model, merged_shards(shards), source)
    # Weights that were loaded in this type are in it already, but for a few that their architecture keeps in 32 bits.
    if dtype and (base or shards is not None):
        model = model.to(kind)
    model.save_pretrained(str(target))


def _with_adapter(model: Any, source: Path, shards: Path | None) -> Any:
    """A model with the adapter of a folder, whose weights may be in the parts of a checkpoint."""
    from peft import PeftConfig, PeftModel, get_peft_model

    if shards is None:
        return PeftModel.from_pretrained(model, str(source))
    name = "default" if source == shards else source.name
    adapted = get_peft_model(model, PeftConfig.from_pretrained(str(source)), adapter_name=name)
    found = merged_shards(shards)
    _take_over(adapted, {key: value for key, value in found.items() if f".{name}." in key}, source)
    return adapted


def _take_over(model: Any, weights: Mapping[str, Any], source: Path) -> None:
    """Load weights, of which none may be unknown."""
    unknown = model.load_state_dict(dict(weights), strict=False).unexpected_keys
    if unknown or not weights:
        raise UsageError(f"{source}: its parts hold {', '.join(unknown[:3]) or 'no weights'}, which the model has not")


def _generation(target: Path, codec: ChatCodec, config: TrainConfig | None) -> None:
    """Write the defaults of sampling: those of the training."""
    file = target / "generation_config.json"
    known = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    own = config.rollout if config is not None else None
    sampling = {"temperature": own.temperature, "top_p": own.top_p} if own is not None and own.temperature else {}
    ends = list(codec.end_ids)
    settings = {
        **known,
        # What the base model was made to sample with is not what this policy was trained with.
        "do_sample": True,
        "temperature": 1.0,
        "top_p": 1.0,
        # Otherwise transformers would take its default of 50, which training never had.
        "top_k": 0,
        # Training switches it off in the settings of the weights, and every generation would be slow.
        "use_cache": True,
        **sampling,
        "eos_token_id": ends if len(ends) > 1 else ends[0],
        "pad_token_id": codec.pad_id,
    }
    file.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


# -- what it is --------------------------------------------------------------------------------------------------------


def _declare(exported: Exported, config: TrainConfig | None, codec: ChatCodec) -> None:
    """Write the declarations, the strategy and the card."""
    target, place = exported.folder, exported.folder.resolve()
    local: dict[str, Any] = {"path": str(place)}
    served: dict[str, Any] = {"model": str(place)}
    if exported.kind == "adapter":
        base = str(Path(exported.base).resolve()) if Path(exported.base).exists() else exported.base
        local = {"path": base, "adapter": str(place)}
        served = {"model": base, "adapters": {exported.name: str(place)}}
    if config is not None and config.model.template_options:
        local["template_options"] = dict(config.model.template_options)
    declared = _toml({"models": {f"local/{exported.name}": local}})
    comment = "".join(f"# {line}\n" for line in _toml({"models": {f"vllm/{exported.name}": served}}).splitlines())
    note = "# Paths count from the working directory where they are relative; change them if the folder moves.\n"
    vllm = f"# Served by vLLM instead (pip install concertino-vllm):\n{comment}"
    (target / "concertino.toml").write_text(f"{note}{declared}\n{vllm}", encoding="utf-8")
    members = list(config.pool.members) if config is not None else []
    told: dict[str, Any] = {"members": members}
    if config is not None:
        told |= {key: value for key in ("without", "offer") if (value := list(getattr(config.pool, key)))}
    roles = dict(config.pool.roles) if config is not None else {}
    pool = _toml({**told, "roles": {**roles, "orchestrator": f"local/{exported.name}"}})
    head = f"# A pool that it leads. {_origin(config)}Name members, such as members = ['search/*', 'code/python'].\n"
    (target / "pool.toml").write_text(f"{head}{note}{pool}\n{declared}\n{vllm}", encoding="utf-8")
    strategy = make_strategy(config.rollout.strategy).to_json() if config is not None else None
    if strategy is not None:
        (target / "strategy.json").write_text(json.dumps(strategy, indent=2) + "\n", encoding="utf-8")
    shortlist = make_shortlist(config.pool) if config is not None else None
    if shortlist is not None:
        (target / _SHORTLIST).write_text(json.dumps(shortlist.to_json(), indent=2) + "\n", encoding="utf-8")
    if config is not None:
        (target / SETTINGS).write_text(config.text(), encoding="utf-8")
    (target / "README.md").write_text(_card(exported, config, codec), encoding="utf-8")


def _origin(config: TrainConfig | None) -> str:
    """Where the members of the training came from, if a list of names cannot say it."""
    section = config.pool if config is not None else None
    if section is not None and section.make is not None:
        return f"Its training had the pool of {_maker(section.make)}, which no file can hold: see README.md. "
    if section is not None and section.file:
        return f"Its training had the pool of {section.file}: copy its members and tables. "
    return ""


def _maker(made: Named) -> str:
    """The function that made the pool, as `module:function`."""
    return MAKERS.get(made.name, made.name)


def _toml(data: Mapping[str, Any]) -> str:
    import tomli_w

    return tomli_w.dumps(data)


def _card(exported: Exported, config: TrainConfig | None, codec: ChatCodec) -> str:
    what = f"an adapter over `{exported.base}`" if exported.base else "a whole model"
    lines = [
        f"# {exported.name}",
        "",
        f"An orchestrator for concertino: {what}.",
        "",
        "## Use",
        "",
        *_pool_told(config),
        "",
        "```bash",
        shlex.join(["pip", "install", "concertino", "concertino-local", *_plugins(config)]),
        _command(exported, config),
        "```",
        "",
        "`concertino.toml` declares it as a model, also for a vLLM server. Both name paths of the machine that "
        "wrote them.",
        "",
    ]
    if config is not None:
        strategy = make_strategy(config.rollout.strategy)
        listed = config.pool.shortlist is not None
        lines += ["From Python, with the settings of the strategy that it was trained under:", "", "```python"]
        lines += [_PYTHON.format(arrange=_ARRANGE if listed else "", **_pool_made(config)), "```", ""]
        lines += ["## Training", "", f"- settings: `{config.id}`, in full in `{SETTINGS}`"]
        lines += [f"- strategy: `{strategy.name}`, with its settings in `strategy.json`; use it with these"]
        lines += [f"- pool: as `{_SHORTLIST}` lists it; the policy has seen no other"] if listed else []
        lines += [f"- reward: {_reward(config)}", *([f"- about: {config.about}"] if config.about else [])]
        own = config.rollout
        lines += [f"- rollouts: groups of {own.group_size} at temperature {own.temperature:g}"]
    lines += [f"- tokenizer and template: `{codec.fingerprint}`", ""]
    return "\n".join(lines)


_PYTHON = """import json
from pathlib import Path
import concertino as ct
import concertino_local
from concertino.strategies import strategy_by_name
{imported}
told = json.loads(Path("strategy.json").read_text())
strategy = strategy_by_name(told["name"]).from_json(told)
leader = ct.Orchestrator(concertino_local.model("it", path="."), strategy{arrange})
pool = {pool}
run = leader.run_sync(question, pool=pool)"""
_ARRANGE = ', arrange=ct.Shortlist.parse(json.loads(Path("shortlist.json").read_text()))'


def _pool_told(config: TrainConfig | None) -> list[str]:
    """How its pool is come by on the command line."""
    if config is None or config.pool.make is None:
        return ["Name the members that it leads in `pool.toml`; then, in this folder:"]
    return [
        f"It was trained with the pool that the function `{_maker(config.pool.make)}` makes. No pool file can name "
        "such members: use them from Python, as below. To lead others on the command line, name them in `pool.toml`; "
        "then, in this folder:"
    ]


def _pool_made(config: TrainConfig) -> dict[str, str]:
    """The pool in Python: `pool`, an expression, and `imported`, the line that it needs."""
    made = config.pool.make
    if made is None:
        return {"pool": 'ct.Pool.load("pool.toml")', "imported": ""}
    module, _, function = _maker(made).partition(":")
    given = ", ".join(f"{name}={value!r}" for name, value in made.settings.items())
    return {"pool": f"{function}({given})", "imported": f"from {module} import {function}\n"}


def _command(exported: Exported, config: TrainConfig | None) -> str:
    words = ["concertino", "run", "QUESTION", "--pool", "pool.toml"]
    if config is not None:
        section = config.rollout.strategy
        words += ["--strategy", section.name]
        for key, value in section.settings.items():
            if isinstance(value, (bool, int, float, str)):
                words += ["--set", f"{key}={_plain(value)}"]
        shortlist = make_shortlist(config.pool)
        if shortlist is not None:
            ranking, *options = (f"{key}={_plain(value)}" for key, value in shortlist.to_json().items())
            words += ["--shortlist", ",".join([ranking.removeprefix("ranking="), *options])]
    return shlex.join(words)


def _plugins(config: TrainConfig | None) -> list[str]:
    """What else an answer needs: the plugin of the ranking, if it is one of this project."""
    listed = make_shortlist(config.pool) if config is not None else None
    return ["concertino-scorer"] if listed is not None and listed.to_json()["ranking"].startswith("scorer/") else []


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _reward(config: TrainConfig) -> str:
    from concertino_train.config.named import make_reward

    try:
        terms = make_reward(config.reward).terms
    except UsageError:  # it names what is not installed here
        return f"in `{SETTINGS}`"
    return ", ".join(f"{each.weight:g} × {each.term.name}" for each in terms.values() if each.weight)
