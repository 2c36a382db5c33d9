"""What a training is made of, as data: the sections of a settings file.

Every key has a default, so that a file says only what differs; there is no key that nothing reads. Numbers that count
say what they count: questions, rollouts, rows, tokens, steps. A *step* of reinforcement learning samples a batch of
rollouts and makes `updates` optimiser steps of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from concertino import Shortlist, UsageError
from concertino.strategies import DEFAULT_STRATEGY
from concertino_bench.tasks.unseen import Drawn
from pydantic import BaseModel, ConfigDict, Field, model_validator

from concertino_train.settings import Above, Amount, Count, Number, Precision, Section, Share

# -- the model ---------------------------------------------------------------------------------------------------------


class PriceSection(Section):
    """$ per million tokens of one model.

    Attributes:
        input: that it reads.
        output: that it writes.
        cached: that it has read before; like `input` by default.
    """

    input: Amount
    output: Amount
    cached: Amount | None = None


class NewModel(Section):
    """A model created from scratch, for small trainings and tests.

    Attributes:
        layers, hidden, heads: of the transformer.
        key_heads: heads of keys and values; as many as `heads` by default.
        feed_forward: width inside a layer; three times `hidden` by default.
        context: positions.
        tokenizer: folder of one; by default one is made for the training's own texts.
        vocabulary: tokens of the one that is made, at most.
        common_lines: lines that most conversations have, such as those of a prompt, are one token each in it.
    """

    layers: Count = 4
    hidden: Count = 128
    heads: Count = 4
    key_heads: Count | None = None
    feed_forward: Count | None = None
    context: Count = 2048
    tokenizer: str = ""
    vocabulary: Count = 1024
    common_lines: bool = True


class Adapter(Section):
    """A LoRA adapter, which is trained instead of the whole model.

    Attributes:
        rank: of the update, r.
        alpha: the update is scaled by alpha / r.
        dropout: of its input, during SFT; in reinforcement learning there is none, because ratios would be noise.
        targets: names of modules, or `all-linear`.
    """

    rank: Count = 16
    alpha: Count = 32
    dropout: Share = 0.0
    targets: str | list[str] = "all-linear"


class ModelSection(Section):
    """The policy.

    Attributes:
        path: folder of the weights and the tokenizer, or a name in the local Hugging Face cache.
        new: the model to create if there is no `path`.
        adapter: train a LoRA adapter; without, all weights. A `path` that holds an adapter is trained further as it is,
            and what is said here has to be what it was made with.
        dtype: of the weights below an adapter; `auto` is bfloat16 on an accelerator, else float32. Without an adapter,
            weights stay float32 while they are trained; 16 bits are then those of computing, if `trainer.precision` is
            `auto`, and of exports.
        attention: implementation of transformers, such as `sdpa`.
        template: file of a chat template; by default the tokenizer's. `family` is one of ours with the marks of the
            tokenizer's family, `training` TRL's variant of the tokenizer's, `chatml` ChatML.
        template_options: variables for the template, such as `enable_thinking: false`.
        start: where reinforcement learning begins on the command line: `auto` with what supervised learning left in the
            same output, if it did; `given` in any case with `path` or `new`.
        prices: of its own tokens, for rewards that charge $.
    """

    path: str = ""
    new: NewModel | None = None
    adapter: Adapter | None = None
    dtype: Precision = "auto"
    attention: str = "auto"
    template: str = ""
    template_options: dict[str, Any] = Field(default_factory=dict)
    start: Literal["auto", "given"] = "auto"
    prices: PriceSection | None = None


# -- the pool and the questions ----------------------------------------------------------------------------------------


class CostSection(Section):
    """What a call of a tool or agent costs, in addition to what it spends itself.

    Attributes:
        units: abstract cost units.
        usd: $ of each call.
    """

    units: Amount = 1.0
    usd: Amount = 0.0


class PreferenceSection(Section):
    """What a user prefers: what is said to the policy, and the weights that its reward uses.

    Attributes:
        text: appended to the question.
        members: weight of each member, by name or pattern, 0 to 1.
        accuracy, usd, seconds: weights of a right answer, of little money, of little time.
    """

    text: str = ""
    members: dict[str, Share] = Field(default_factory=dict)
    accuracy: Share = 0.0
    usd: Share = 0.0
    seconds: Share = 0.0


_VARIED_BY_DEFAULT: tuple[Drawn, ...] = ("names", "order", "cards")
"""What a policy reads of a pool, and would learn by heart if it were always the same."""


class Variation(Section):
    """What differs from question to question; all rollouts of a question have the same.

    Attributes:
        keep: probability with which each tool or agent stays in the pool.
        always: patterns of members that stay.
        rename: probability with which each tool or agent is shown under a neutral alias.
        unseen: what else is random: names, order, cards (wording), prices, skills (who is there). By default names,
            order and cards of installed members and of a pool file, so that a policy has to read them; nothing of a
            pool that `pool.make` makes.
        prices: price schedules, of which one is drawn: $ per million tokens by model.
        costs: likewise of tools and agents: the cost of a call by name or pattern.
        make: settings of `pool.make`, of which one table is drawn.
        preferences: of which one is drawn.
        preference_share: share of questions that have one.
    """

    keep: Share = 1.0
    always: list[str] = Field(default_factory=list)
    rename: Share = 0.0
    unseen: list[Drawn] = Field(default_factory=list)
    prices: list[dict[str, PriceSection]] = Field(default_factory=list)
    costs: list[dict[str, CostSection]] = Field(default_factory=list)
    make: list[dict[str, Any]] = Field(default_factory=list)
    preferences: list[PreferenceSection] = Field(default_factory=list)
    preference_share: Share = 1.0

    @property
    def varies(self) -> bool:
        """Whether pools differ; preferences do not count."""
        return self.keep < 1 or self.rename > 0 or bool(self.unseen or self.prices or self.costs or self.make)


class Named(BaseModel):
    """A name, and settings of what it names next to it.

    Attributes:
        name: one that is known here, or `module:function`.
    """

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)
    name: str

    @property
    def settings(self) -> dict[str, Any]:
        """What stands beside the name."""
        return dict(self.model_extra or {})


class PoolSection(Section):
    """What may be called. Models that roles are bound to play these roles; the policy plays all others.

    Attributes:
        make: a function that makes a pool, with its arguments: `{name: practice, mix: mono}`, or `module:function`.
        file: a pool file.
        members: patterns of installed members; everything installed if no source is given.
        without: patterns of members that are left out.
        offer: patterns of models that may be called as agents.
        roles: models by role, `summariser` and `judge` for example.
        shortlist: what the policy sees of it, in trainings and evaluations: settings of `concertino.Shortlist`, such as
            `{ranking: scorer/best, most: 3}`, or a text, `scorer/best,most=3`. All of it by default.
        variation: what differs from question to question; evaluations do without.
    """

    make: Named | None = None
    file: str = ""
    members: list[str] = Field(default_factory=list)
    without: list[str] = Field(default_factory=list)
    offer: list[str] = Field(default_factory=list)
    roles: dict[str, str] = Field(default_factory=dict)
    shortlist: dict[str, Any] | str | None = None
    variation: Variation = Variation()

    @model_validator(mode="before")
    @classmethod
    def _vary(cls, given: Any) -> Any:
        """What is read differs, unless the settings say otherwise."""
        if not isinstance(given, Mapping) or given.get("make") is not None:
            return given
        variation = given.get("variation", {})
        if not isinstance(variation, Mapping) or "unseen" in variation:
            return given
        return {**given, "variation": {**variation, "unseen": list(_VARIED_BY_DEFAULT)}}

    @model_validator(mode="after")
    def _check_shortlist(self) -> PoolSection:
        if self.shortlist is not None:
            try:
                Shortlist.parse(self.shortlist)
            except UsageError as error:
                raise ValueError(f"shortlist: {str(error).removeprefix('shortlist: ')}") from error
        return self


class TaskSelection(Section):
    """Some tasks of an installed set.

    Attributes:
        set: its name, or a TOML file that declares one; `concertino bench tasks` lists them.
        options: of the set.
        limit: greatest number of tasks.
        seed: draws them at random from the whole set.
        skip_bad: wrong rows of its files that are left out, each with a warning; one more is an error.
    """

    set: str
    options: dict[str, Any] = Field(default_factory=dict)
    limit: Count | None = None
    seed: int | None = None
    skip_bad: int = Field(default=0, ge=0)


class TasksSection(Section):
    """The questions.

    Attributes:
        train: to learn from.
        eval: to evaluate on.
        outcomes: results files of earlier runs: only questions of `train` with mixed outcomes there are asked.
        order: `shuffled` again in every pass, or `given`.
    """

    train: list[TaskSelection] = Field(default_factory=list)
    eval: list[TaskSelection] = Field(default_factory=list)
    outcomes: list[str] = Field(default_factory=list)
    order: Literal["shuffled", "given"] = "shuffled"


# -- rollouts ----------------------------------------------------------------------------------------------------------


class StrategySection(Named):
    """The paradigm: its name, and its own settings next to it.

    Attributes:
        name: an installed strategy. Beside it, `environment` names an environment of concertino-bench that has a
            strategy of this name, `file` a file that the strategy is read from, and `make` a function that makes it of
            the settings beside it.
    """

    name: str = DEFAULT_STRATEGY


class BudgetSection(Section):
    """How much one rollout may use; see `concertino.Budget`."""

    rounds: Count | None = None
    parallel: Count | None = None
    calls: Number | None = None
    units: Amount | None = None
    usd: Amount | None = None
    tokens: Count | None = None
    seconds: Above | None = None


class TreeSection(Section):
    """Tree sampling (AT-GRPO): at every turn of a role, `group_size` texts are tried, and one is chosen.

    Attributes:
        branch: the best one, or one drawn evenly.
        credit: what a text is scored by: `turn`, after the roles behind it have finished the turn, or `text`, as it
            stands, which samples less, and tells the texts of a role that does not act itself apart by its own scores
            alone.
    """

    branch: Literal["greedy", "sampled"] = "greedy"
    credit: Literal["turn", "text"] = "turn"


class ServerSection(Section):
    """Sampling by a vLLM server that follows the weights.

    Attributes:
        args: for `vllm serve`.
        executable: path of the command; looked up by default.
        attach: address of one that runs already.
        device: numbers of the GPUs that it may use, such as `"1"`; those that the training sees by default.
        weights: how it gets new weights: `folder` by files, `ipc` by memory of the GPU that both use, `nccl` from GPU
            to GPU; `auto` is the fastest that is possible.
        transfer_seconds: how long each step of that may take.
        sleep: it gives its memory back while the model is updated, for a server on the GPU of the training; leave it
            room with `args`: `["--gpu-memory-utilization", "0.4"]`.
    """

    args: list[str] = Field(default_factory=list)
    executable: str = ""
    attach: str = ""
    device: Annotated[str, Field(pattern=r"^(\d+(,\d+)*)?$")] = ""
    weights: Literal["auto", "folder", "ipc", "nccl"] = "auto"
    transfer_seconds: Above = 600.0
    sleep: bool = False


class JudgeSection(Section):
    """A model of the pool compares the answers of a group, for the reward term `shared/judged`.

    Attributes:
        model: its role or name in the pool.
        criteria: what else counts, in words.
        max_tokens: of a reply.
    """

    model: str = "judge"
    criteria: str = ""
    max_tokens: Count = 400


class RolloutSection(Section):
    """How rollouts are made.

    Attributes:
        strategy: the paradigm.
        group_size: rollouts of each question, G; with a tree, texts tried at each turn, K.
        turn_tokens: tokens of one text, at most.
        total_tokens: tokens that the policy samples in a rollout, at most.
        context_tokens: tokens of one conversation, at most; that of the model by default.
        temperature, top_p: of sampling.
        batch: texts that are sampled at once; as many as the backend takes well by default, 256.
        batch_tokens: tokens that these texts may have together, read and written; by default what half of the memory
            holds that is free when sampling begins. A server has bounds of its own.
        backend: who samples: the model in this process, or a vLLM server.
        server: of `backend: vllm`.
        budget: of each rollout.
        tree: tree sampling; none by default.
        judge: who compares the answers of a group; nobody by default.
        share_calls: calls that rollouts of a group make alike are made once.
        tool_threads: calls of members at once, of all rollouts of a process together; of a worker process where runs
            happen elsewhere.
        on: where runs happen: `local` in this process, `local:4` in four worker processes, `ray` on a cluster. The
            policy is sampled in this process or by its server all the same.
        env: environment variables that worker processes are given, such as OPENAI_API_KEY.
        listen: address at which workers ask for the policy; one that other machines reach, where workers are there.
    """

    strategy: StrategySection = StrategySection()
    group_size: Count = 8
    turn_tokens: Count = 256
    total_tokens: Count = 4096
    context_tokens: Count | None = None
    temperature: Amount = 1.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    batch: Count | None = None
    batch_tokens: Count | None = None
    backend: Literal["transformers", "vllm"] = "transformers"
    server: ServerSection = ServerSection()
    budget: BudgetSection = BudgetSection()
    tree: TreeSection | None = None
    judge: JudgeSection | None = None
    share_calls: bool = False
    tool_threads: Count = 4096
    on: str = "local"
    env: list[str] = Field(default_factory=list)
    listen: str = "127.0.0.1"
