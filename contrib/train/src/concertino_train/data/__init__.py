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
from .conversations import RoleConversation, conversations_of
from .files import read_conversations, write_conversations
from .gap import GapSettings
from .selecting import SelectionSettings

__all__ = [
    "DataSet",
    "GapSettings",
    "RoleConversation",
    "SelectionSettings",
    "SetSettings",
    "conversations_of",
    "make_set",
    "read_conversations",
    "write_conversations",
]
