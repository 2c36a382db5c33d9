"""Settings of a training: read from YAML and the command line, then validated.

reading   files, recipes, bases and `key=value`, with the place of every key
sections  the model, the pool, the questions, rollouts
learning  the algorithm, optimisation, logging, roles
data      trajectories for SFT
named     functions, strategies and rewards that settings name
config    the whole training
"""

from .config import TrainConfig, load_config
from .reading import recipe_names, recipe_text

__all__ = [
    "TrainConfig",
    "load_config",
    "recipe_names",
    "recipe_text",
]
