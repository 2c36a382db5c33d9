"""`TransformersPolicy`: a model of transformers in this process, also while it is being trained.

Sampling leaves the model as it was: training or evaluation mode of each module, which adapter is active, and which
parameters are trained. What is sampled comes from the weights as they are at the call: keys and values that are kept
for the next call are forgotten when a weight changes.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from concertino import UsageError
from concertino_local.codec import Codec

from concertino_train.device import computing_in
from concertino_train.settings import Precision

from .policy import Policy, Prompt, Sample

if TYPE_CHECKING:
    import torch
    from concertino_local.sampling import Network, PrefixCache


logger = logging.getLogger("concertino")
_LOOKED_AT = 16
"""Numbers of each weight by which a change of it is known."""


class TransformersPolicy(Policy):
    """A causal language model in this process.

        policy = TransformersPolicy(model, ChatCodec.load("checkpoints/0"))
        policy = TransformersPolicy(lambda: accelerator.unwrap_model(trainer.model), codec, adapters={"coder": "lora"})

    Args:
        model: of transformers, or of PEFT around one; or a function that gives it, asked again for each batch. Wrappers
            of data-parallel training and of `torch.compile` are taken off.
        codec: between messages and its token ids.
        temperature: with which it samples; 0 takes the most probable token.
        top_p: share of probability that is sampled from.
        device: where its inputs go; the device of its parameters by default.
        batch: rows that are sampled at once, at most.
        tokens: that the rows of a batch may have together, read and written; by default what half of the memory holds
            that is free at the first batch.
        kept: tokens whose keys and values are kept for the next call, so that the next turn of a conversation reads its
            new tokens alone; None is half of `tokens`. With 0, the same call gives the same numbers to the bit.
        context: tokens that a prompt and its continuation may have together, if less than the model says.
        adapters: by role, which adapter of a PEFT model speaks; "" is the model without any. Without this, whatever
            adapter is active speaks for all roles.

    Attributes:
        work: what generation has done so far.

    Raises:
        UsageError: an argument is out of bounds, or the model has layers whose state is not keys and values.
    """

    def __init__(
        self,
        model: torch.nn.Module | Callable[[], torch.nn.Module],
        codec: Codec,
        *,
        temperature: float = 1.0,
        top_p: float = 1.0,
        device: str | torch.device | None = None,
        batch: int = 256,
        tokens: int | None = None,
        kept: int | None = 0,
        context: int | None = None,
        adapters: Mapping[str, str] | None = None,
        precision: Precision = "float32",
    ) -> None:
        if temperature < 0 or not 0 < top_p <= 1 or batch < 1 or (tokens is not None and tokens < 1):
            raise UsageError(
                f"TransformersPolicy(temperature={temperature}, top_p={top_p}, batch={batch}, tokens={tokens}): "
                "expected 0 or more, a share above 0 and up to 1, and 1 or more of both others"
            )
        import torch
        from concertino_local.sampling import SamplingWork

        self._model = model
        self.codec = codec
        self.temperature, self.top_p = temperature, top_p
        self.batch, self.tokens = batch, tokens
        self.adapters = dict(adapters) if adapters is not None else None
        self.work = SamplingWork()
        self._device = None if device is None else torch.device(device)
        self._context, self._precision = context, precision
        self._kept: tuple[Any, PrefixCache] | None = None  # of which weights, and what
        self._keep = kept
        if isinstance(model, torch.nn.Module):
            _network(_unwrap(model))  # before anything is trained that could never be sampled

    @property
    def model(self) -> torch.nn.Module:
        """The model, without wrappers.

        Raises:
            UsageError: its parameters are spread over processes.
        """
        import torch

        model = self._model if isinstance(self._model, torch.nn.Module) else self._model()
        return _unwrap(model)

    def generate(self, prompts: Sequence[Prompt]) -> list[Sample]:
        """See `Policy.generate`. A prompt that leaves no room in the context gets an empty sample of `length`.

        Raises:
            UsageError: a prompt is empty or asks for nothing, a role has no adapter, the tokens are not the model's, or
                its logits are not finite.
        """
        import torch

        began = time.perf_counter()
        model = self.model
        # Prompts without room keep this; all others are replaced.
        found: list[Sample] = [Sample((), (), "length")] * len(prompts)
        with torch.no_grad(), _evaluating(model):
            network = _network(model)
            if self._device is not None:
                network.device = self._device
            self._check(prompts, network)
            if self.tokens is None:
                self.tokens = tokens_that_fit(model, network.device)
            places = self._order(prompts, network)
            # One pass for each adapter, since a batch is computed with one.
            for adapter in dict.fromkeys(name for name, _ in places):
                mine = [place for name, place in places if name == adapter]
                with _speaking(model, adapter), computing_in(self._precision, network.device):
                    self._forget_others(model)
                    for chosen in self._batches(mine, prompts, network):
                        samples = self._sampled([prompts[place] for place in chosen], network)
                        for place, sample in zip(chosen, samples, strict=True):
                            found[place] = sample
        self.work.seconds += time.perf_counter() - began
        return found

    def rest(self) -> None:
        """See `Policy.rest`."""
        if self._kept is not None:
            self._kept[1].clear()

    def _forget_others(self, model: torch.nn.Module) -> None:
        """Forget keys and values of other weights than those that sample now."""
        from concertino_local.sampling import PrefixCache

        most = (self.tokens or 0) // 2 if self._keep is None else self._keep
        if not most:
            return
        weights = (self.version, self._precision, *_fingerprint(model))
        if self._kept is None or self._kept[0] != weights:
            self.rest()
            self._kept = weights, PrefixCache(most)

    def _sampled(self, prompts: Sequence[Prompt], network: Network) -> list[Sample]:
        """Samples of a batch; in smaller ones where the memory is too small for it, from then on.

        A sample depends on its own prompt and seed, so nothing but time is lost.
        """
        import torch

        try:
            return self._sample(prompts, network)
        except torch.OutOfMemoryError as error:
            if len(prompts) == 1:
                raise UsageError(
                    f"the memory of {network.device} is too small to sample one text of {len(prompts[0].ids)} tokens "
                    f"and up to {prompts[0].most} more; take a smaller rollout.context_tokens or rollout.turn_tokens, "
                    "or an adapter (model.adapter)"
                ) from error
        # Outside of the handler: what it holds of the failed pass would keep that memory taken.
        self.rest()
        if network.device.type == "cuda":
            torch.cuda.empty_cache()
        self.batch = len(prompts) // 2
        logger.warning(
            "the memory of %s is too small to sample %d texts at once; from now on %d (rollout.batch=%d says so from "
            "the beginning)", network.device, len(prompts), self.batch, self.batch,
        )  # fmt: skip
        found: list[Sample] = []
        while len(found) < len(prompts):
            found += self._sampled(prompts[len(found) : len(found) + self.batch], network)
        return found

    def _sample(self, prompts: Sequence[Prompt], network: Network) -> list[Sample]:
        from concertino_local.sampling import BatchRow, SamplingRule, complete_batch

        rule = SamplingRule(self.temperature, self.top_p)
        rows = [BatchRow(prompt.ids, rule, prompt.seed) for prompt in prompts]
        limits = [self._room(prompt, network) for prompt in prompts]
        try:
            known = self._kept[1] if self._kept is not None else None
            completed = complete_batch(network, rows, limits, self.codec.end_ids, self.work, known)
        except FloatingPointError as error:
            raise UsageError(
                "the policy's logits are not finite numbers: training has diverged, or the weights or their dtype are "
                "broken; go back to the last good checkpoint, with a smaller learning rate or in float32 or bfloat16"
            ) from error
        return [Sample(*row, "stop" if self.codec.ended(row.ids) else "length") for row in completed]

    def _order(self, prompts: Sequence[Prompt], network: Network) -> list[tuple[str | None, int]]:
        """Places of prompts that have room, with their adapters; those side by side that can share most."""
        able = [place for place, prompt in enumerate(prompts) if self._room(prompt, network) > 0]
        able.sort(key=lambda place: (len(prompts[place].ids), prompts[place].ids))
        return [(self._adapter(prompts[place].role), place) for place in able]

    def _batches(self, places: Sequence[int], prompts: Sequence[Prompt], network: Network) -> Iterator[list[int]]:
        """Places of prompts that are sampled together, in their order; one alone may have more than all tokens."""
        batch, longest, most = list[int](), 0, 0
        for place in places:
            read, room = len(prompts[place].ids), self._room(prompts[place], network)
            # Each row of a batch is as wide as the longest.
            wide = max(longest, read) + max(most, room)
            if batch and (len(batch) == self.batch or (len(batch) + 1) * wide > (self.tokens or math.inf)):
                yield batch
                batch, longest, most = [], 0, 0
            batch.append(place)
            longest, most = max(longest, read), max(most, room)
        if batch:
            yield batch

    def _room(self, prompt: Prompt, network: Network) -> int:
        bounds = [bound for bound in (self._context, network.context) if bound is not None]
        return min([prompt.most, *(bound - len(prompt.ids) for bound in bounds)])

    def _adapter(self, role: str) -> str | None:
        if self.adapters is None:
            return None
        if role not in self.adapters:
            known = ", ".join(sorted(self.adapters)) or "no role"
            raise UsageError(f"no adapter speaks for role {role!r}; adapters= names {known}; add it, or '' for none")
        return self.adapters[role]

    def _check(self, prompts: Sequence[Prompt], network: Network) -> None:
        if self.codec.size > network.vocabulary:
            raise UsageError(
                f"the codec has {self.codec.size} tokens and the model {network.vocabulary}; they do not belong "
                "together, or call model.resize_token_embeddings(codec.size) before training"
            )
        for prompt in prompts:
            if not prompt.ids or prompt.most < 1:
                raise UsageError(f"Prompt({len(prompt.ids)} ids, most={prompt.most}): expected one of each or more")


def _fingerprint(model: torch.nn.Module) -> tuple[Any, ...]:
    """What changes when a weight does, or another adapter speaks: some numbers of each, and how often each changed.

    A change in place is counted by torch, unless it goes through `data`; then the numbers show it.
    """
    import torch

    values = [value.detach() for value in model.parameters()]
    some = [value.flatten()[:: max(1, value.numel() // _LOOKED_AT)][:_LOOKED_AT].float() for value in values]
    peft: Any = model if hasattr(model, "peft_config") else None
    adapters = () if peft is None else tuple(peft.base_model.active_adapters)
    off = any(getattr(module, "_disable_adapters", False) for module in model.modules())
    places = tuple((value.data_ptr(), value._version) for value in values)
    return adapters, off, places, tuple(torch.cat(some).tolist())


def tokens_that_fit(model: torch.nn.Module, device: torch.device) -> int | None:
    """Tokens whose keys and values fill half of the memory that is free; None for a model that does not tell.

    A power of two, so that a training that is resumed forms the same batches although a little more memory is taken.
    """
    import torch

    config: Any = getattr(model, "config", None)
    config = config.get_text_config() if hasattr(config, "get_text_config") else config
    layers, heads = getattr(config, "num_hidden_layers", None), getattr(config, "num_attention_heads", None)
    if not layers or not heads:
        return None
    shared = getattr(config, "num_key_value_heads", None) or heads
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    # Keys and values, in the dtype of the weights.
    each = 2 * layers * shared * width * next(model.parameters()).element_size()
    if device.type == "cuda":
        free = torch.cuda.mem_get_info(device)[0]
    elif "SC_AVPHYS_PAGES" not in os.sysconf_names:
        return None
    else:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 1 << max(0, int(free // 2 // each).bit_length() - 1)


def _network(model: torch.nn.Module) -> Network:
    """A model as the sampler sees it.

    Raises:
        UsageError: it has layers whose state is not keys and values.
    """
    from concertino_local.sampling import Network

    network = Network(model)
    if network.other_state:
        raise UsageError(
            f"{network.name} has layers that cannot be sampled in a batch here ({network.other_state}); serve it with "
            "vLLM and give a VLLMPolicy"
        )
    return network


def _unwrap(model: torch.nn.Module) -> torch.nn.Module:
    """Without wrappers of data-parallel training and of `torch.compile`."""
    import torch

    parallel = (torch.nn.parallel.DistributedDataParallel, torch.nn.DataParallel)
    while True:
        # By name: DeepSpeed need not be installed.
        wraps = isinstance(model, parallel) or type(model).__name__ == "DeepSpeedEngine"
        inner = getattr(model, "module" if wraps else "_orig_mod", None)  # torch.compile keeps the model there
        if not isinstance(inner, torch.nn.Module):
            break
        model = inner
    sharded = any(type(module).__name__ == "FullyShardedDataParallel" for module in model.modules())
    # ZeRO-3 marks parameters by `ds_id`, FSDP2 by `device_mesh`.
    if sharded or any(hasattr(each, "ds_id") or hasattr(each, "device_mesh") for each in model.parameters()):
        raise UsageError(
            "the model's parameters are spread over processes (FSDP or ZeRO-3), so one process cannot sample from "
            "them; sample within `whole_weights()` of a trainer with sharding=full, serve the model with vLLM and give "
            "a VLLMPolicy, or train it data-parallel (DDP)"
        )
    return model


@contextlib.contextmanager
def _evaluating(model: torch.nn.Module) -> Iterator[None]:
    """In evaluation mode, and as it was afterwards, module by module."""
    # Module by module: some may be in evaluation mode on purpose, and `train()` would set all alike.
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


@contextlib.contextmanager
def _speaking(model: Any, adapter: str | None) -> Iterator[None]:
    """With one adapter of a PEFT model, and as it was afterwards; PEFT changes what is trained along with it."""
    if adapter is None:
        yield
        return
    known = getattr(model, "peft_config", None)
    if not isinstance(known, dict) or (adapter and adapter not in known):
        has = f"it has {', '.join(known)}" if known else f"{type(model).__name__} has none; expected a model of PEFT"
        raise UsageError(f"the model has no adapter {adapter!r}: {has}")
    active = list(model.base_model.active_adapters)
    # PEFT freezes adapters that it makes inactive, and the optimiser still holds them.
    trained = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    try:
        if not adapter:
            with model.disable_adapter():
                yield
        else:
            model.base_model.set_adapter(adapter)
            yield
    finally:
        model.base_model.set_adapter(active)
        for parameter, required in trained:
            parameter.requires_grad_(required)


def score(model: torch.nn.Module, prompt: Sequence[int], sampled: Sequence[int], temperature: float) -> list[float]:
    """Log-probabilities of tokens behind a prompt, as one forward pass gives them.

    Args:
        model: of transformers or PEFT; it is left as it was.
        prompt, sampled: token ids, none of both empty.
        temperature: of sampling; at 0, the numbers are those of temperature 1.
    """
    import torch
    from concertino_local.sampling import SamplingRule

    model = _unwrap(model)
    device = next(model.parameters()).device
    with torch.no_grad(), _evaluating(model):
        # The logits at a place are those of the next token.
        logits = model(input_ids=torch.tensor([[*prompt, *sampled]], device=device)).logits[0, len(prompt) - 1 : -1]
    scores = logits.float() / (1.0 if SamplingRule(temperature).greedy else temperature)
    chosen = torch.tensor(list(sampled), device=device)[:, None]
    found: list[float] = scores.log_softmax(-1).gather(-1, chosen)[:, 0].tolist()
    return found
