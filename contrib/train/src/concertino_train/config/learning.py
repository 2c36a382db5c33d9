"""The sections of a settings file about learning, and about what is logged."""

from __future__ import annotations

from typing import Annotated, Literal

from concertino_bench.tasks.unseen import Drawn
from pydantic import Field

from concertino_train.groups import AdvantageSettings, Filters, SamplerSettings
from concertino_train.settings import Above, Amount, Count, Number, Precision, Schedule, Section, Share

from .sections import PreferenceSection


class PolicyUpdate(Section):
    """How a step of reinforcement learning changes the policy.

    Attributes:
        loss: what the loss of tokens is divided by: `grpo` each row by its length, then by the rows; `dapo` all tokens
            of the step; `dr_grpo` the rows times `row_tokens`. Rows that are filtered or padding count nowhere.
        ratio: of each token, or of whole rows, normalised by length: with loss `grpo` that is GSPO, with clip widths of
            about 4e-4.
        clip_low, clip_high: the ratio has a gradient from 1 - low to 1 + high.
        kl: weight of the distance to the policy as it was when training began; 0 for none.
        row_tokens: constant length of a row, for `dr_grpo`.
        old: log-probabilities that ratios are taken to. `recomputed` by the trainer before its first update: ratios
            begin at 1, whoever sampled. `sampled`, as the sampler gave them: saves that pass over the rows, and is
            right where sampler and trainer compute alike (same weights, precision and temperature).
        correction: for samplers that compute differently, such as a server in another precision, or with older weights:
            weigh each token, or each row, by how much more probable it is for the trainer. Needs `old: recomputed`.
            `auto` is `token_truncate` where a server samples or `trainer.rl.max_staleness` is above 0, else `none`.
        correction_cap: greatest such weight; beyond it, `truncate` keeps the cap and `mask` leaves out.
    """

    loss: Literal["grpo", "dapo", "dr_grpo"] = "dapo"
    ratio: Literal["token", "sequence"] = "token"
    clip_low: Annotated[float, Field(gt=0, lt=1)] = 0.2
    # DAPO section 3.1 (clip-higher): more room above lets unlikely tokens grow.
    clip_high: Above = 0.28
    kl: Amount = 0.0
    row_tokens: Count | None = None
    old: Literal["recomputed", "sampled"] = "recomputed"
    correction: Literal["auto", "none", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask"] = "auto"
    # The bound that TRL uses for its own correction.
    correction_cap: Above = 3.0

    def check(self) -> None:
        """See `Section.check`."""
        if (self.loss == "dr_grpo") != (self.row_tokens is not None):
            raise ValueError(f"row_tokens={self.row_tokens}: expected a number with loss=dr_grpo, and with no other")
        if self.old == "sampled" and self.correction not in ("auto", "none"):
            raise ValueError(
                f"correction={self.correction!r}: expected none with old=sampled, whose ratios hold the difference "
                "already; or set old=recomputed"
            )


class AlgorithmSection(PolicyUpdate):
    """The update of reinforcement learning.

    Attributes:
        grouping: whole rollouts of a question are compared, or the texts tried at one turn of one role, which needs
            `rollout.tree`.
        shuffle_rewards: a control: the rewards of a group are dealt out among its rollouts, or its texts of a turn, at
            random, so that there is nothing to learn; what changes nevertheless is not learning.
        advantages, filters, sampling: before the update.
    """

    grouping: Literal["trajectory", "agent_turn"] = "trajectory"
    shuffle_rewards: bool = False
    advantages: AdvantageSettings = AdvantageSettings()
    filters: Filters = Filters()
    sampling: SamplerSettings = SamplerSettings()


class Optimisation(Section):
    """What supervised and reinforcement learning share.

    Attributes:
        learning_rate: at the top of the schedule.
        schedule: of the learning rate.
        warmup: optimiser steps in which it rises from 0.
        weight_decay: of AdamW.
        max_grad_norm: gradients are scaled down to this norm; 0 for no bound.
        micro_batch: rows in one forward pass of one process, at most; no other setting depends on it. One process takes
            fewer where its memory is too small for them, and says so.
    """

    learning_rate: Above = 1e-6
    schedule: Schedule = "constant"
    warmup: Number = 0
    weight_decay: Amount = 0.0
    max_grad_norm: Amount = 1.0
    micro_batch: Count = 8


class SftSteps(Optimisation):
    """What supervised learning goes through.

    Attributes:
        steps: optimiser steps; by default as many as `epochs` make.
        epochs: passes over the data.
        batch: conversations of a step, over all processes.
        max_tokens: of a conversation; as many as the model reads by default.
        too_long: how longer ones are handled: `refuse` says which, `drop` leaves them out and counts them.
        group_by_length: rows of similar length share a step, which saves padding.
        loss: `nll`, the log-likelihood, or `dft`, weighted by the probability itself.
    """

    learning_rate: Above = 1e-5
    schedule: Schedule = "cosine"
    steps: Count | None = None
    epochs: Above = 1.0
    batch: Count = 32
    max_tokens: Count | None = None
    too_long: Literal["refuse", "drop"] = "refuse"
    group_by_length: bool = True
    loss: Literal["nll", "dft"] = "nll"


class SftTrainer(SftSteps):
    """Optimisation of supervised learning.

    Attributes:
        save_every: steps between checkpoints.
        eval_every: steps between evaluations on `tasks.eval`; by default one at the end.
    """

    save_every: Count = 100
    eval_every: Count | None = None


class RlSteps(Optimisation):
    """What reinforcement learning goes through.

    A *step* samples one batch of rollouts. Its rows are divided among `steps_per_generation` optimiser steps, and gone
    through `iterations` times.

    Attributes:
        steps: batches of rollouts.
        questions_per_step: of each, over all processes: a step has `questions_per_step * group_size` rollouts.
        steps_per_generation: optimiser steps that the rows of a step are divided among.
        iterations: how often the rows of a step are gone through.
    """

    steps: Count = 100
    questions_per_step: Count = 8
    steps_per_generation: Count = 1
    iterations: Count = 1


class RlTrainer(RlSteps):
    """Optimisation of reinforcement learning.

    Attributes:
        save_every: steps between checkpoints.
        eval_every: steps between evaluations on `tasks.eval`; by default only one at the end. Figures
            of a step, these too, are of the weights before its update; those of the end are in `result.json`.
        max_staleness: updates that a sampled token may be old when it is trained. 0: a step waits for all of its
            rollouts. With more, rollouts of so many later steps are under way while the policy is trained, so a slow
            call seldom delays a step.
        stale: how rollouts are handled that would become older: `wait` for them, or `drop` their group, whose calls
            were then paid for nothing.
        audit: how a first batch that fails the audit is handled: `refuse` trains nothing, `tell` warns and continues,
            for where a batch of few groups may be all alike by chance.
    """

    save_every: Count = 20
    eval_every: Count | None = None
    max_staleness: Number = 0
    stale: Literal["wait", "drop"] = "wait"
    audit: Literal["refuse", "tell"] = "refuse"


class EvalTrainer(Section):
    """How a checkpoint is measured.

    Attributes:
        samples: rollouts of each task.
        temperature: 0 takes the most probable token.
        batch: tasks that are rolled out together.
        preferences: by `concertino train eval`, every task is asked once with each, and the runs are compared
            (`obedience`); by default, and during a training, tasks are asked as they are.
        unseen: what of the pool is random for each task: names, order, cards (wording), prices, skills (who is
            there).
        counterfactuals: by `concertino train eval`, every task is also asked over the pool in reverse order (`stays`:
            share of tasks whose first choice is the same) and with its descriptions permuted (`follows`: share whose
            first choice is the new holder of the description).
    """

    samples: Count = 1
    temperature: Amount = 0.0
    batch: Count = 64
    preferences: list[PreferenceSection] = Field(default_factory=list)
    unseen: list[Drawn] = Field(default_factory=list)
    counterfactuals: bool = False


class ComputeSection(Section):
    """On what a training computes, and how.

    Attributes:
        seed: of everything that is drawn.
        device: `auto` is the first accelerator, else the CPU.
        precision: of computing; `auto` is bfloat16 on an accelerator, float32 on a CPU.
        gradient_checkpointing: compute activations again instead of keeping them: less memory for more time.
        packing: compute the rows of a micro-batch one behind the other in a single row, without padding; the gradients
            are the same. A model whose attention does not keep them apart is refused.
        sharding: `full` spreads weights, gradients and the optimiser's state over all processes (FSDP2); with `none`,
            each process has all of them.
        optimizer: `adamw_8bit` keeps its state in 8 bits, on GPUs, and needs bitsandbytes.
    """

    seed: int = 0
    device: Literal["auto", "cpu", "cuda"] = "auto"
    precision: Precision = "auto"
    gradient_checkpointing: bool = False
    packing: bool = False
    sharding: Literal["none", "full"] = "none"
    optimizer: Literal["adamw", "adamw_8bit"] = "adamw"


class TrainerSection(ComputeSection):
    """What is optimised, how, and where it goes.

    Attributes:
        output: folder of checkpoints, metrics, traces and figures.
        threads: of torch in one process; torch's own choice by default.
        accelerate: a file of accelerate, or a preset of TRL (`multi_gpu`), for the launch command. Reinforcement
            learning works with data-parallel ones alone, and shards by itself (`sharding`).
        processes, nodes: for the launch command.
        keep: checkpoints that are kept; one more with a model for each role, which a crash leaves at different steps.
        sft, rl, eval: of each kind of work.
    """

    output: str = "out"
    threads: Count | None = None
    accelerate: str = ""
    processes: Count = 1
    nodes: Count = 1
    keep: Count = 2
    sft: SftTrainer = SftTrainer()
    rl: RlTrainer = RlTrainer()
    eval: EvalTrainer = EvalTrainer()


class TraceSection(Section):
    """Rollouts that are written as trace files while training.

    Attributes:
        every: steps between them; 0 for none.
        keep: rollouts of such a step.
    """

    every: Number = 10
    keep: Count = 4


class MonitorSection(Section):
    """When a training looks as if it were collapsing; None switches a monitor off.

    Attributes:
        patience: steps in a row that a figure has to be bad.
        warmup: steps at the beginning that are not looked at.
        tool_entropy: least entropy of the shares of called members, as a part of the greatest possible.
        rounds: mean rounds at least.
        length: mean tokens of a rollout at least, as a part of the mean over the first steps.
        longer: ... and at most, as a multiple of it.
        zero_variance: greatest share of groups whose rewards are all equal.
        no_signal: greatest share of such groups over the first eight steps.
        format: least share of rollouts in the exact form.
        stop: end the training, with a checkpoint, instead of only warning.
    """

    patience: Count = 5
    warmup: Number = 5
    tool_entropy: Share | None = 0.1
    rounds: Amount | None = None
    length: Share | None = 0.25
    longer: Above | None = 4.0
    zero_variance: Share | None = 0.9
    no_signal: Share | None = 0.5
    format: Share | None = 0.5
    stop: bool = False


class LoggingSection(Section):
    """What is logged during a training. `metrics.jsonl` is always written.

    Attributes:
        every: steps between lines of progress.
        trackers: where figures also go: `tensorboard`, `trackio`, `wandb`. None by default.
        project, run: names that trackers show.
        traces: rollouts as trace files.
        plot_every: steps between drawings of `plot.svg`; at the end it is drawn in any case; 0 for only then.
        monitors: signs of collapse.
    """

    every: Count = 1
    trackers: list[str] = Field(default_factory=list)
    project: str = "concertino"
    run: str = ""
    traces: TraceSection = TraceSection()
    plot_every: Number = 20
    monitors: MonitorSection = MonitorSection()


class RolesSection(Section):
    """Who plays the roles of a workflow.

    Attributes:
        policies: all roles `shared` one policy, or each role has one: a `lora` adapter over one model, or a `full`
            model.
    """

    policies: Literal["shared", "lora", "full"] = "shared"
