"""What learns: one model, one with an adapter for each role, or a model for each role; and how it samples.

The invariant: what samples is what is trained, with the weights as they are at the beginning of a step; and what is
saved can be loaded again by the path of its folder alone.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concertino import Prices, UsageError

from concertino_train.config.named import make_strategy
from concertino_train.running.ranks import this_rank, wait_for_everyone

from .models import ADAPTER, LoadedPolicy, check_adapter, precision_of, save_base

if TYPE_CHECKING:
    from concertino_local.codec import ChatCodec

    from concertino_train.config.config import TrainConfig
    from concertino_train.policies import Policy
    from concertino_train.rollouts.engine import Place, RolloutEngine

SETTINGS = "training.yaml"
"""The settings of the training, beside the trained weights."""


@dataclass
class Learner:
    """What learns.

    Attributes:
        model: that is trained; of several, the first.
        models: by role, where each has its own.
        adapters: roles that have adapters of their own.
        codec: of all of them.
        policies: who samples: one policy, or one for each role.
        refresh: called at the beginning of a step with its number from 1.
    """

    model: Any
    codec: ChatCodec
    policies: Policy | Mapping[str, Policy]
    models: Mapping[str, Any] = field(default_factory=dict)
    adapters: tuple[str, ...] = ()
    refresh: Callable[[int], None] = lambda step: None
    closing: ExitStack = field(default_factory=ExitStack)

    def save(self, folder: Path, config: TrainConfig) -> None:
        """Write weights, tokenizer and settings; by role into folders of their own where these have policies.

        All processes call it, as sharded weights are gathered from them; the one that leads writes.

        Args:
            folder: replaced file by file.
            config: of the training.
        """
        if config.trainer.sharding == "full":
            from concertino_train.trainer.sharding import save_whole

            save_whole(self.model, folder)
        if not this_rank().leads:
            return
        folder.mkdir(parents=True, exist_ok=True)
        if self.models:
            for role, model in self.models.items():
                model.save_pretrained(str(folder / role))
                self.codec.save(folder / role)
        elif self.adapters:
            from concertino_train.trainer.roles import save_adapters

            if config.trainer.sharding == "none":
                save_adapters(self.model, folder, self.adapters)
            for role in self.adapters:
                self.codec.save(folder / role)
        elif config.trainer.sharding == "none":
            self.model.save_pretrained(str(folder))
        self.codec.save(folder)
        (folder / SETTINGS).write_text(config.text(), encoding="utf-8")

    def close(self) -> None:
        """Release what samples."""
        self.closing.close()


def policy_names(config: TrainConfig) -> list[str]:
    """The roles that have a policy each, in order; empty where all share one.

    Raises:
        UsageError: the strategy has one role only.
    """
    if config.roles.policies == "shared":
        return []
    names = list(dict.fromkeys(make_strategy(config.rollout.strategy).parts.values()))
    if len(names) < 2:
        raise UsageError(f"roles.policies={config.roles.policies}: the strategy has one role, {names[0]!r}; share it")
    return names


def make_learner(config: TrainConfig, loaded: LoadedPolicy, home: Path | None = None) -> Learner:
    """What learns, ready to sample.

    Args:
        config: the training.
        loaded: the model.
        home: folder of the training; a base that was made from nothing is written there, for adapters need one.

    Raises:
        UsageError: there is no room for what the settings ask for, or a server cannot be started.
    """
    names = policy_names(config)
    if config.roles.policies == "full":
        return _full(config, loaded, names)
    base = loaded.model
    if config.model.adapter is not None and loaded.made and home is not None:
        save_base(loaded, home)
    if names:
        model = _role_adapters(config, loaded, names)
        policy = _policy(config, model, loaded, {name: name for name in names})
        return Learner(model, loaded.codec, policy, adapters=tuple(names), refresh=_counting(policy))
    model = _with_adapter(config, base)
    if config.rollout.backend == "vllm":
        return _served(config, model, loaded, home)
    policy = _policy(config, model, loaded)
    return Learner(model, loaded.codec, policy, refresh=_counting(policy))


def make_engine(
    config: TrainConfig,
    policies: Policy | Mapping[str, Policy],
    beginning: str = "",
    place: Place | None = None,
) -> RolloutEngine:
    """The engine that rolls out.

    Args:
        config: the training.
        policies: who samples.
        beginning: a digest of the weights that the training begins with.
        place: where runs happen, if not in this process.
    """
    from concertino_train.rollouts.assignment import TokenLimits
    from concertino_train.rollouts.engine import RolloutEngine

    own, prices = config.rollout, config.model.prices
    limits = TokenLimits(own.turn_tokens, own.total_tokens, own.context_tokens)
    price = Prices(**prices.model_dump()) if prices is not None else None
    # The same for a training that is resumed, whose calls in doubt are made again under their keys.
    scope = hashlib.sha256(f"{config.id} {beginning} {this_rank().rank}".encode()).hexdigest()[:12]
    return RolloutEngine(
        policies, limits=limits, share=own.share_calls, prices=price, calls=own.tool_threads, scope=scope, place=place
    )


def lora_config(config: TrainConfig) -> Any:
    """What an adapter is, for peft."""
    from peft import LoraConfig

    section = config.model.adapter
    assert section is not None
    return LoraConfig(
        r=section.rank,
        lora_alpha=section.alpha,
        lora_dropout=section.dropout,
        target_modules=section.targets,
        task_type="CAUSAL_LM",
    )


def without_dropout(model: Any) -> None:
    """Take the dropout out of the adapters of a model, for as long as it is reinforced."""
    import torch

    for adapter in getattr(model, "peft_config", {}).values():
        # The configuration as well, by which the trainer refuses dropout.
        adapter.lora_dropout = 0.0
    for module in model.modules():
        dropouts = getattr(module, "lora_dropout", None)
        if isinstance(dropouts, torch.nn.ModuleDict):
            for name in dropouts:
                dropouts[name] = torch.nn.Identity()


def _with_adapter(config: TrainConfig, model: Any) -> Any:
    """The model with a new adapter, where the settings ask for one and it has none."""
    if config.model.adapter is None or hasattr(model, "peft_config"):
        return model
    from peft import get_peft_model

    return get_peft_model(model, lora_config(config))


def _role_adapters(config: TrainConfig, loaded: LoadedPolicy, names: list[str]) -> Any:
    """The model with an adapter for each role, those of `model.path` where it holds them."""
    from concertino_train.trainer.roles import role_adapters

    folder = Path(config.model.path)
    if not config.model.path or not all((folder / name / ADAPTER).exists() for name in names):
        return role_adapters(loaded.model, names, lora_config(config))
    from peft import PeftModel

    for name in names:
        check_adapter(config, folder / name)
    model = PeftModel.from_pretrained(loaded.model, folder / names[0], adapter_name=names[0], is_trainable=True)
    for name in names[1:]:
        model.load_adapter(str(folder / name), adapter_name=name, is_trainable=True)
    return model


def _full(config: TrainConfig, loaded: LoadedPolicy, names: list[str]) -> Learner:
    """A model for each role: those of `model.path` where it holds them, else copies of the one."""
    import copy

    from .models import load_weights

    folder = Path(config.model.path)
    own = config.model.path and all((folder / name / "config.json").exists() for name in names)
    # A copy for each role: two optimisers over the same tensors would undo each other's steps.
    models = {name: load_weights(config, str(folder / name)) if own else copy.deepcopy(loaded.model) for name in names}
    policies = {name: _policy(config, model, loaded) for name, model in models.items()}
    refresh = _counting(*policies.values())
    return Learner(models[names[0]], loaded.codec, policies, models, refresh=refresh)


def _policy(config: TrainConfig, model: Any, loaded: LoadedPolicy, adapters: Mapping[str, str] | None = None) -> Policy:
    from concertino_train.policies import TransformersPolicy

    own = config.rollout
    more: dict[str, Any] = {"batch": own.batch} if own.batch is not None else {}
    more |= {"tokens": own.batch_tokens, "kept": None}
    return TransformersPolicy(
        model,
        loaded.codec,
        temperature=own.temperature,
        top_p=own.top_p,
        context=own.context_tokens,
        adapters=adapters,
        precision=precision_of(config),
        **more,
    )


def _counting(*policies: Policy) -> Callable[[int], None]:
    """The version of policies in this process: their weights are those of the step before."""

    def refresh(step: int) -> None:
        for policy in policies:
            policy.version = step - 1

    return refresh


def check_server(config: TrainConfig, ranks: int, *, adapter: bool = False) -> None:
    """See that a server can sample for so many processes, before anything is loaded.

    Args:
        config: the training.
        ranks: its processes.
        adapter: an adapter is trained, whatever the settings say.

    Raises:
        UsageError: says what to change.
    """
    own = config.rollout
    if own.backend != "vllm" or ranks == 1:
        return
    if adapter or config.model.adapter is not None:
        raise UsageError(
            "rollout.backend=vllm with several processes and model.adapter: only the process that loads an adapter "
            "into the server samples with it; train all weights (model.adapter=null), or in one process"
        )
    if own.server.sleep:
        raise UsageError(
            "rollout.server.sleep with several processes: one would put the server to sleep that others still sample "
            "with; leave it out, or train in one process"
        )
    if not own.server.attach:
        raise UsageError(
            "rollout.backend=vllm with several processes: start one server for all of them, and name it: "
            "rollout.server.attach=http://127.0.0.1:8000"
        )


def _served(config: TrainConfig, model: Any, loaded: LoadedPolicy, home: Path | None) -> Learner:
    """A policy that a vLLM server samples; it gets the weights at the beginning of every step."""
    from concertino_train.policies import VLLMPolicy

    own = config.rollout
    # A folder may hold an adapter of which the settings say nothing.
    check_server(config, this_rank().ranks, adapter=hasattr(model, "peft_config"))
    policy = VLLMPolicy(
        _server(config, model, loaded, home),
        loaded.codec,
        temperature=own.temperature,
        top_p=own.top_p,
        reference=model,
        concurrent=own.batch or 256,
        context=own.context_tokens,
        sleep=own.server.sleep,
    )
    learner = Learner(model, loaded.codec, policy)
    if home is None:
        home = Path(learner.closing.enter_context(tempfile.TemporaryDirectory()))
    learner.closing.callback(policy.close)
    learner.refresh = _handing_over(model, policy, home / "served")
    return learner


def _server(config: TrainConfig, model: Any, loaded: LoadedPolicy, home: Path | None) -> Any:
    """A server of our own, declared for training, which is started at the first use; or the one that runs already."""
    section = config.rollout.server
    try:
        import concertino_vllm
    except ImportError as error:
        raise UsageError("rollout.backend=vllm needs concertino-vllm; pip install concertino-vllm") from error
    more: dict[str, Any] = {"weights": section.weights, "transfer_seconds": section.transfer_seconds}
    if section.attach:
        return concertino_vllm.model("policy", attach=section.attach, **more)
    path = loaded.base or config.model.path
    if not path:
        if home is None:
            raise UsageError("rollout.backend=vllm serves a folder; give model.path")
        path = save_base(loaded, home)
    if section.executable:
        more["executable"] = section.executable
    if hasattr(model, "peft_config"):
        more["lora_rank"] = max(adapter.r for adapter in model.peft_config.values())
    # Unasked, vLLM gives log-probabilities at temperature 1, and training needs those of sampling.
    args = [*section.args, *([] if "--logprobs-mode" in section.args else ["--logprobs-mode", "processed_logprobs"])]
    if section.sleep and "--enable-sleep-mode" not in args:
        args.append("--enable-sleep-mode")
    return concertino_vllm.model("policy", model=path, training=True, args=args, device=section.device, **more)


def _handing_over(model: Any, policy: Any, served: Path) -> Callable[[int], None]:
    """Give the server the weights: those of an adapter as a folder, others as tensors; by the rank that leads.

    A folder is kept until the next one answers, because a restarted server reads it again.
    """

    from concertino_train.trainer.sharding import is_sharded

    def refresh(step: int) -> None:
        sharded = is_sharded(model)
        if this_rank().leads:
            if hasattr(model, "peft_config"):
                before = sorted(served.glob("*"))
                folder = served / f"{step:06}"
                model.save_pretrained(str(folder))
                policy.update(folder)
                for old in before:
                    if old != folder:
                        shutil.rmtree(old)
            else:
                # Sharded weights are whole while a step begins, and gathering them again would free them.
                policy.update(dict(model.named_parameters()) if sharded else model.state_dict())
        # Other ranks sample from the same server, and only once it has the new weights.
        wait_for_everyone()
        # On all ranks, and in a resumed training too: how old a token is follows from it.
        policy.version = step - 1

    return refresh
