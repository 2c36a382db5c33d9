"""Data: from runs of a teacher to sets of conversations for SFT.

collecting     a teacher works on tasks; traces and results are kept
replaying      a trace read again              conversations   what each role read and wrote
trajectories   what a selection looks at       selecting       which are taken
outcomes       questions for RL                gap             GAP's filters
dataflow       which calls need which results  rewriting       serial calls become parallel
examples       what a set holds of a run       building        the whole way
files          on disk                         card            what is in a set
encoding       conversations as ids and labels

A set is a folder: `conversations.jsonl`, `left_out.jsonl`, `card.json`, `README.md`.
"""

from .building import DataSet, SetSettings, make_set
from .conversations import Conversation, conversations_of
from .files import read_conversations, write_conversations
from .gap import GapSettings
from .outcomes import OutcomeSettings, mixed_outcomes
from .rewriting import parallelised
from .selecting import SelectionSettings, select
from .trajectories import Trajectory, read_trajectories

__all__ = [
    "Conversation",
    "DataSet",
    "GapSettings",
    "OutcomeSettings",
    "SelectionSettings",
    "SetSettings",
    "Trajectory",
    "conversations_of",
    "make_set",
    "mixed_outcomes",
    "parallelised",
    "read_conversations",
    "read_trajectories",
    "select",
    "write_conversations",
]
