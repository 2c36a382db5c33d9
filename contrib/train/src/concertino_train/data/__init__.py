"""Data: from runs of a teacher to sets that a policy is taught with.

    collecting     a teacher works on tasks; traces and results are kept
    replaying      a trace gone through again         conversations   what each role read and wrote
    trajectories   what a choice looks at             selecting       which are taken
    outcomes       questions for RL                   gap             GAP's filters
    dataflow       which calls need which results     rewriting       serial ones become parallel
    examples       what a set holds of a run          building        the whole way
    files          on disk                            card            what is in a set
    encoding       conversations as ids and labels

A set is a folder: `conversations.jsonl`, `left_out.jsonl`, `card.json`, `README.md`.
"""

from .building import DataSet, SetSettings, make_set
from .card import card_of, read_card, write_card
from .collecting import Collection, collect
from .conversations import Conversation, conversations_of
from .dataflow import dependencies
from .encoding import IGNORED, Encoded, encode, encode_all, token_lengths
from .examples import Example
from .files import read_conversations, write_conversations
from .gap import GapSettings, gap_filter
from .outcomes import Asked, Mixed, OutcomeSettings, mixed_outcomes, read_asked, write_asked
from .rewriting import NotParallel, Rewritten, parallelised
from .selecting import Selected, SelectionSettings, select
from .trajectories import LeftOut, Trajectory, read_trajectories

__all__ = [
    "IGNORED",
    "Asked",
    "Collection",
    "Conversation",
    "DataSet",
    "Encoded",
    "Example",
    "GapSettings",
    "LeftOut",
    "Mixed",
    "NotParallel",
    "OutcomeSettings",
    "Rewritten",
    "Selected",
    "SelectionSettings",
    "SetSettings",
    "Trajectory",
    "card_of",
    "collect",
    "conversations_of",
    "dependencies",
    "encode",
    "encode_all",
    "gap_filter",
    "make_set",
    "mixed_outcomes",
    "parallelised",
    "read_asked",
    "read_card",
    "read_conversations",
    "read_trajectories",
    "select",
    "token_lengths",
    "write_asked",
    "write_card",
    "write_conversations",
]
