"""The included studies: claims of the five papers at toy size, on the practice domain.

Each is a question that somebody has of a training; the sizes are those of the toy recipes, so that an arm takes minutes
on one core. What is expected stands beside it, and a study says as readily that it did not happen.
"""

from __future__ import annotations

import json

from concertino_train.config.reading import read_settings

from .study import Arm, Expected, Study

_SPENDING = (
    "reward={terms: {correct: {term: shared/correct}, format: {term: paramanager/format, weight: 0.2}, "
    "spending: {term: shared/spending, of: units, limit: 30, weight: %s}}}"
)
_FRUGAL = (
    "data.collect.teacher.careless=0",
    "trainer.sft.steps=1000",
    "trainer.rl.steps=120",
    "trainer.rl.audit=tell",
)
"""What can be saved is to be learnt from recoveries, so the teacher gives up none; and to save without failing takes
longer than to save. Taught for that long, it sometimes fills a first batch with answers of which none is wrong."""
_OUTCOME = "reward={terms: {correct: {term: shared/correct}}}"
_HELD = "algorithm.kl=0.1"
"""With rewards that mean nothing Adam walks at random, ever further; a distance that costs something keeps it near."""
_SERIAL = (
    # One call at a time is how the other recipe works: its strategy, with its settings, is taken over.
    f"rollout.strategy={json.dumps(read_settings('toolorchestra/toy').data['rollout']['strategy'])}",
    "rollout.turn_tokens=60",
    "rollout.total_tokens=300",
)
_HOPS = (
    "data.collect.tasks=[{set: practice/mixed, options: {split: train, count: 3000, start: 600}}]",
    "trainer.sft.steps=3000",
    "trainer.rl.steps=40",
)
"""Calls copy names of places that no training had, and a policy of this size learns to copy from many conversations:
from 650 of them, one answer in six is right."""
_ONE_HOP_A_TURN = (
    "data.collect.teacher={name: practice, careless: 0.1, serial: 1.0}",
    "data.gap=null",
    "rollout.strategy.max_rounds=10",
    "rollout.total_tokens=600",
)
"""In the same format, so that the arms differ in planning and in nothing else."""
_GRAPHS = (
    "data.collect.tasks=[{set: practice/facts, options: {split: train, count: 2400, start: 600}}]",
    "trainer.sft.steps=1200",
    "trainer.rl.steps=60",
)
"""With the recipe's 500 steps of teaching, one answer in nine is right, and reinforcement has nothing to begin with."""
_PARTS = "tasks.eval=[{set: practice/facts, options: {split: test, count: 300, level: %d}}]"
_THREE_PARTS_ALONE = (
    "data.collect.tasks=[{set: practice/facts, options: {split: train, count: 2400, start: 600, level: 3}}]"
)
"""Whoever was taught by questions of three parts alone has seen one degree, and has nothing to choose from."""
_ROLES = (
    "trainer.rl.steps=150",
    "trainer.rl.eval_every=150",
    "trainer.rl.learning_rate=3.0e-4",
)
_WAITING = "pool.make={name: practice, mix: mixed, latency: 0.2}"
_WISHES = (
    'trainer.eval.preferences=[{text: "Keep it cheap.", accuracy: 1.0, usd: 1.0}, {text: "Be sure.", accuracy: 1.0}]'
)
_TWO_WISHES = (
    'pool.variation.preferences=[{text: "Keep it cheap.", accuracy: 1.0, usd: 1.0}, '
    '{text: "Be sure.", accuracy: 1.0, members: {birch: 1.0, elm: 1.0, gorse: 1.0, ivy: 1.0}}]',
    "pool.variation.preference_share=1.0",
    "data.collect.teacher={name: practice, slips: 0.05, careless: 0.3, ignores: 0.75}",
    "trainer.sft.steps=1200",
    "trainer.rl.steps=100",
)
"""A wish and its counter-wish, each as often as the other; who wants to be sure likes the sure members. The teacher
passes over three wishes in four: what he obeyed always would leave reinforcement nothing to add. Taught for 600 steps,
one policy of three is right in 65 % and obeys nothing; for 1,200 steps, in 98 %."""
_CONTRAST = (
    "reward={terms: {correct: {term: shared/correct}, contrast: {term: toolorchestra/contrast, weight: 0.5, "
    "when: right, most_usd: 0.05, against: {accuracy: 1.0, "
    "members: {birch: 0.5, elm: 0.5, gorse: 0.5, ivy: 0.5}}}}}"
)
"""Sure members are liked under one wish and disliked under the other; a right answer is worth the same under both. No
money in `against`: a wish to be sure would pay for spending, which the audit refuses."""
_SUCCESS_FIRST = (
    "reward={preset: paramanager-success-first, terms: {diversity: {theta_par: 1.25, theta_tool: 3, weight: 0.1}, "
    "efficiency: {length_target: 240, cost_target: 6, weight: 0.25}}}"
)
"""The target lies below what the taught policy spends, or thrift would be paid in full from the first step on. With the
preset's weights of 0.5, a fifth of the units is saved and greedy success falls by two points."""
_OVER_TURNS = ("algorithm.grouping=trajectory", "rollout.tree=null")
_STEPWISE = (
    "rollout.strategy={name: role-workflow, make: practice, environment: plan-path, stepwise: true, turns: 10}",
    "tasks.train=[{set: environments/plan-path, options: {split: train, level: 6, at_once: 1, view: words, "
    "count: 4000}}]",
    "tasks.eval=[{set: environments/plan-path, options: {split: test, level: 6, at_once: 1, view: words, count: 300}}]",
    "data.collect.tasks=[{set: environments/plan-path, options: {split: train, level: 6, at_once: 1, view: words, "
    "count: 800, start: 4000}}]",
    "data.collect.teacher={name: practice, careless: 0.75}",
    "data.select.answers=any",
    "trainer.sft.steps=500",
    "trainer.rl.steps=400",
    "trainer.rl.eval_every=400",
    "trainer.rl.learning_rate=5.0e-4",
    "rollout.tree.branch=sampled",
)
"""Ten decisions, each with a credit of its own. Three moves of the teacher in four are wrong, and wrong runs are taught
too: teaching gives the form of a move and nothing else, so that everything else is reinforcement's. (From a policy that
already leans to the right moves, groups of every kind reach what can be known of the neighbours alone.)
Neighbours are told in words, because a policy of this size does not read grids. Trees continue with a candidate drawn
evenly: with the best one, the policy learns at places that it never reaches alone."""
_SUDOKU = (
    "rollout.strategy.environment=sudoku",
    "tasks.train=[{set: environments/sudoku, options: {split: train, level: 4, blanks: 5, count: 600}}]",
    "tasks.eval=[{set: environments/sudoku, options: {split: test, level: 4, blanks: 5, count: 200}}]",
    "data.collect.tasks=[{set: environments/sudoku, options: {split: train, level: 4, blanks: 5, count: 1800, "
    "start: 600}}]",
)
_MORE_TESTS = ("tasks.eval.0.options.count=500",)


def _agent_turn(name: str, environment: str, settings: tuple[str, ...] = ()) -> Study:
    return Study(
        name,
        f"On {environment}, do groups of one role's turn beat groups of whole rollouts, at as many sampled tokens?",
        "at-grpo/toy",
        (Arm("trajectory", learn=(_HELD, *_OVER_TURNS)), Arm("agent-turn", learn=(_HELD,)), Arm("taught", learn=None)),
        ("accuracy", "calls", "rounds", "sampled_tokens", "learning_cpu_seconds"),
        settings,
        (Expected("agent-turn", "accuracy", least=0.0),),
        _MORE_TESTS,
    )


STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        Study(
            "paramanager",
            "Does reinforcement learning add success to what a teacher taught, and do rewards dealt out at random not?",
            "paramanager/toy",
            (
                Arm("taught", learn=None),
                Arm("success-first", learn=(_HELD, _SUCCESS_FIRST)),
                Arm("right-alone", learn=(_HELD, _OUTCOME)),
                Arm("paper", learn=(_HELD,)),
                Arm("shuffled", learn=(_HELD, _SUCCESS_FIRST, "algorithm.shuffle_rewards=true")),
            ),
            ("sampled/accuracy", "accuracy", "sampled/units", "units", "rounds", "calls"),
            (),
            (
                Expected("success-first", "sampled/accuracy", least=0.03),
                Expected("success-first", "accuracy", least=-0.01),
                Expected("success-first", "sampled/units", most=0.0),
                Expected("shuffled", "sampled/accuracy", most=0.03),
            ),
            _MORE_TESTS,
        ),
        Study(
            "parallel",
            "Taught alike, do rounds of parallel calls beat one call at a time, in accuracy and in time?",
            "paramanager/toy",
            (
                Arm("serial", teach=_SERIAL, learn=None, measure=(_WAITING,)),
                Arm("parallel", learn=None, measure=(_WAITING,)),
            ),
            ("accuracy", "critical_path", "rounds", "calls", "units", "output_tokens"),
            (),
            (Expected("parallel", "accuracy", least=0.0), Expected("parallel", "critical_path", most=0.0)),
            _MORE_TESTS,
        ),
        Study(
            "mixed-pool",
            "Taught alike, does a pool of members of several kinds beat one of a single kind?",
            "paramanager/toy",
            (
                Arm("mono", teach=("pool.make.mix=mono",), learn=None),
                Arm("mixed", learn=None),
            ),
            ("accuracy", "calls", "units", "unique_tools"),
            (),
            (Expected("mixed", "accuracy", least=0.0),),
            _MORE_TESTS,
        ),
        Study(
            "diversity",
            "Does ParaManager's diversity reward lead to more different tools in a run?",
            "paramanager/toy",
            (
                Arm("without", learn=("reward.terms.diversity.weight=0",)),
                Arm("with"),
            ),
            ("unique_tools", "accuracy", "calls", "units"),
            (),
            (Expected("with", "unique_tools", least=0.0),),
            _MORE_TESTS,
        ),
        Study(
            "cost",
            "Does a price on cost units lower spending, and what does it cost in success?",
            "paramanager/toy",
            (
                Arm("weight-0", learn=(_HELD, _SPENDING % 0)),
                Arm("weight-1", learn=(_HELD, _SPENDING % 1)),
            ),
            ("units", "calls", "accuracy"),
            _FRUGAL,
            (
                Expected("weight-1", "units", most=0.0),
                Expected("weight-1", "accuracy", least=-0.03),
            ),
            _MORE_TESTS,
        ),
        Study(
            "toolorchestra",
            "Is what the user prefers obeyed, and does reinforcement with preferences add to it?",
            "toolorchestra/toy",
            (
                Arm("taught", learn=None),
                Arm("contrast", learn=(_HELD, _CONTRAST)),
                Arm("paper", learn=(_HELD,)),
                Arm("shuffled", learn=(_HELD, _CONTRAST, "algorithm.shuffle_rewards=true")),
            ),
            (
                "obedience",
                "sampled/obedience",
                "accuracy",
                "sampled/accuracy",
                "usd/Keep it cheap.",
                "usd/Be sure.",
                "success/Keep it cheap.",
                "success/Be sure.",
            ),
            _TWO_WISHES,
            (
                Expected("contrast", "obedience", least=0.03),
                Expected("contrast", "sampled/obedience", least=0.03),
                Expected("shuffled", "obedience", least=-0.02, most=0.02),
            ),
            (*_MORE_TESTS, _WISHES),
        ),
        Study(
            "mas-orchestra",
            "Does reinforcement learning make better one-shot graphs than those that were imitated?",
            "mas-orchestra/toy",
            (
                Arm("taught", learn=None),
                Arm("reinforced", learn=(_HELD,)),
                Arm("shuffled", learn=(_HELD, "algorithm.shuffle_rewards=true")),
            ),
            ("sampled/accuracy", "accuracy", "calls", "units", "output_tokens", "learning_cpu_seconds"),
            _GRAPHS,
            (
                Expected("reinforced", "sampled/accuracy", least=0.03),
                Expected("reinforced", "accuracy", least=0.0),
                Expected("shuffled", "sampled/accuracy", most=0.03),
            ),
            ("tasks.eval.0.options.count=300",),
        ),
        Study(
            "gap",
            "On questions of several hops, do dependency plans take fewer turns than single calls, as often right?",
            "gap/toy",
            (
                Arm("serial", teach=_ONE_HOP_A_TURN),
                Arm("plan"),
                Arm("plan-evenly", learn=("algorithm.sampling.enabled=false",)),
                Arm("plan-taught", learn=None),
                Arm("plan-shuffled", learn=("algorithm.sampling.enabled=false", "algorithm.shuffle_rewards=true")),
            ),
            (
                "accuracy",
                "sampled/accuracy",
                "rounds",
                "calls",
                "output_tokens",
                "sampled_tokens",
                "learning_cpu_seconds",
            ),
            _HOPS,
            (
                Expected("plan", "rounds", most=-0.5),
                Expected("plan", "accuracy", least=-0.02),
                Expected("plan", "sampled/accuracy", least=-0.02),
            ),
            ("tasks.eval.0.options.count=300",),
        ),
        Study(
            "at-grpo",
            "On Plan-Path, one move a turn, do groups of a turn beat groups of whole rollouts, at as many moves?",
            "at-grpo/toy",
            (
                # The same rewards as `turn`, so that the two differ in nothing but the groups.
                Arm("whole", learn=(_HELD, *_OVER_TURNS, "reward={preset: at-grpo, terms: {mixed: {over: mean}}}")),
                Arm("turn", learn=(_HELD,)),
                # A first batch without a single right run is what this arm is about, not a mistake.
                Arm("outcome", learn=(_HELD, *_OVER_TURNS, _OUTCOME, "trainer.rl.audit=tell")),
                Arm("taught", learn=None),
                Arm("shuffled", learn=(_HELD, "algorithm.shuffle_rewards=true")),
            ),
            ("sampled/accuracy", "accuracy", "rounds", "sampled_tokens", "learning_cpu_seconds"),
            _STEPWISE,
            (
                Expected("turn", "sampled/accuracy", least=0.1),
                Expected("turn", "accuracy", least=0.1),
                Expected("shuffled", "sampled/accuracy", most=0.05),
            ),
        ),
        Study(
            "degree",
            "Does a leader that writes graphs choose the number of agents from the question?",
            "mas-orchestra/toy",
            (
                Arm("one-part", learn=(_HELD,), measure=(_PARTS % 1,)),
                Arm("two-parts", learn=(_HELD,), measure=(_PARTS % 2,)),
                Arm("three-parts", learn=(_HELD,), measure=(_PARTS % 3,)),
                Arm("one-part-taught", learn=None, measure=(_PARTS % 1,)),
                Arm("three-parts-taught", learn=None, measure=(_PARTS % 3,)),
                Arm("one-part-fixed", teach=(_THREE_PARTS_ALONE,), learn=None, measure=(_PARTS % 1,)),
            ),
            ("calls", "sampled/calls", "accuracy", "sampled/accuracy"),
            _GRAPHS,
            (
                Expected("two-parts", "calls", least=0.5),
                Expected("three-parts", "calls", least=1.0),
                Expected("one-part-fixed", "calls", least=1.0),
            ),
        ),
        Study(
            "role-policies",
            "On Plan-Path, does a policy for each role beat one for both, at as many sampled tokens?",
            "at-grpo/toy",
            (
                Arm("shared", learn=(_HELD,)),
                Arm("own", learn=(_HELD, "roles.policies=full")),
                Arm("taught", learn=None),
                Arm("shuffled", learn=(_HELD, "algorithm.shuffle_rewards=true")),
            ),
            ("sampled/accuracy", "accuracy", "calls", "rounds", "sampled_tokens", "learning_cpu_seconds"),
            _ROLES,
            (Expected("own", "sampled/accuracy", least=0.0), Expected("shuffled", "sampled/accuracy", most=0.03)),
            _MORE_TESTS,
        ),
        _agent_turn("agent-turn", "Plan-Path"),
        _agent_turn("agent-turn-sudoku", "Sudoku 4×4", _SUDOKU),
    )
}
"""The included studies, by name."""
