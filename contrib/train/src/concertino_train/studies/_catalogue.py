"""The studies that come along: claims of the five papers at toy size, on the practice domain."""

from __future__ import annotations

from ._study import Arm, Study

_SERIAL = "rollout.strategy={name: serial-calls, prompt: brief, quotes: true, show_budget: false, max_rounds: 8}"
_SPENDING = "reward={terms: {correct: {term: shared/correct}, format: {term: paramanager/format, weight: 0.2}, "
_SPENDING += "spending: {term: shared/spending, of: units, limit: 20, weight: WEIGHT}}}"

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        Study(
            "reinforcement",
            "Does reinforcement learning add to what a teacher taught?",
            "paramanager/toy",
            (Arm("taught", learn=None), Arm("reinforced")),
            ("reward", "accuracy", "format_rate", "rounds", "calls", "units"),
            expects=(("reinforced", "reward", 0.05),),
        ),
        Study(
            "parallel",
            "Do rounds of parallel calls beat one call at a time, in accuracy and in time?",
            "paramanager/toy",
            (Arm("serial", teach=(_SERIAL, "rollout.turn_tokens=60", "rollout.total_tokens=300")), Arm("parallel")),
            ("accuracy", "critical_path", "rounds", "calls", "units"),
            expects=(("parallel", "accuracy", 0.0), ("parallel", "critical_path", -0.1)),
        ),
        Study(
            "mixed-pool",
            "Does a pool of specialists beat a single generalist?",
            "paramanager/toy",
            (Arm("mono", teach=("pool.make.mix=mono",)), Arm("mixed")),
            ("accuracy", "units", "unique_tools"),
            expects=(("mixed", "accuracy", 0.0),),
        ),
        Study(
            "diversity",
            "Does ParaManager's diversity reward lead to more different tools in a run?",
            "paramanager/toy",
            (Arm("without", learn=("reward.terms.diversity.weight=0",)), Arm("with")),
            ("unique_tools", "accuracy", "calls", "units"),
            expects=(("with", "unique_tools", 0.0),),
        ),
        Study(
            "cost",
            "Does a price on cost units lower spending, and what does it cost in success?",
            "paramanager/toy",
            (
                Arm("weight-0", learn=(_SPENDING.replace("WEIGHT", "0"),)),
                Arm("weight-1", learn=(_SPENDING.replace("WEIGHT", "1"),)),
            ),
            ("units", "calls", "accuracy"),
            expects=(("weight-1", "units", -0.1), ("weight-1", "accuracy", -0.03)),
        ),
        Study(
            "agent-turn",
            "Do groups of one role's turn beat groups of whole rollouts, at about the same number of sampled tokens?",
            "at-grpo/toy",
            (Arm("trajectory", learn=("algorithm.grouping=trajectory", "rollout.tree=null")), Arm("agent-turn")),
            ("accuracy", "calls", "rounds"),
            expects=(("agent-turn", "accuracy", 0.0),),
        ),
    )
}
"""By name."""
