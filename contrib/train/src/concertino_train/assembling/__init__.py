"""Assembling: from the settings of a training to what it is made of.

_strategies  the strategy, the reward
_pools       the pool and its variations
_questions   tasks as assignments
_models      weights, tokenizer, codec; imports torch when used
_learners    what learns, and how it samples; likewise
"""

from ._learners import SETTINGS, Learner, lora_config, make_engine, make_learner, policy_names, without_dropout
from ._models import Loaded, beginning_of, first_texts, load_model
from ._pools import VariedPool, asked_with, draw_preference, make_named, make_pool, preference_of
from ._questions import (
    Questions,
    evaluation_assignments,
    in_batches,
    make_budget,
    select_tasks,
    selections_of,
    training_tasks,
)
from ._strategies import make_reward, make_strategy

__all__ = [
    "SETTINGS",
    "Learner",
    "Loaded",
    "Questions",
    "VariedPool",
    "asked_with",
    "beginning_of",
    "draw_preference",
    "evaluation_assignments",
    "first_texts",
    "in_batches",
    "load_model",
    "lora_config",
    "make_budget",
    "make_engine",
    "make_learner",
    "make_named",
    "make_pool",
    "make_reward",
    "make_strategy",
    "policy_names",
    "preference_of",
    "select_tasks",
    "selections_of",
    "training_tasks",
    "without_dropout",
]
