"""Settings of a training: read from YAML and the command line, checked, whole.

_reading   files, recipes, bases and `key=value`, with the place of every key
_sections  the model, the pool, the questions, rollouts
_learning  the algorithm, optimisation, logging, roles
_data      trajectories for supervised learning
_config    all of it, checked
_page      the page of the reference about all of it
"""

from ._config import TrainConfig, load_config
from ._data import CollectSection, DataSection
from ._learning import (
    AdvantageSection,
    AlgorithmSection,
    EvalTrainer,
    FilterSection,
    LoggingSection,
    MonitorSection,
    RlTrainer,
    RolesSection,
    SamplingSection,
    SftTrainer,
    TraceSection,
    TrainerSection,
)
from ._reading import read_settings, recipe_names, recipe_text
from ._sections import (
    Adapter,
    ModelSection,
    Named,
    NewModel,
    PoolSection,
    PreferenceSection,
    RolloutSection,
    StrategySection,
    TaskSelection,
    TasksSection,
    Variation,
)

__all__ = [
    "Adapter",
    "AdvantageSection",
    "AlgorithmSection",
    "CollectSection",
    "DataSection",
    "EvalTrainer",
    "FilterSection",
    "LoggingSection",
    "ModelSection",
    "MonitorSection",
    "Named",
    "NewModel",
    "PoolSection",
    "PreferenceSection",
    "RlTrainer",
    "RolesSection",
    "RolloutSection",
    "SamplingSection",
    "SftTrainer",
    "StrategySection",
    "TaskSelection",
    "TasksSection",
    "TraceSection",
    "TrainConfig",
    "TrainerSection",
    "Variation",
    "load_config",
    "read_settings",
    "recipe_names",
    "recipe_text",
]
