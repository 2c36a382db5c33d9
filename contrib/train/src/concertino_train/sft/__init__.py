"""Supervised learning: a policy is taught to write what good trajectories wrote.

    result = run_sft(SftSettings(out="out", data="sets/first", model="models/base", epochs=2))

Conversations are encoded here (`data.encoding`) and handed to TRL's SFTTrainer as ids and labels: no message, and so no
argument of a call, goes through a table that would fill in what is not there. Which row is read when is decided here as
well, for all steps at once.

The invariants: what is trained are the labels of the encoding, whole or not at all: a conversation that is too long is
refused or left out, never cut; the rows of a step follow from the seed alone, so a training that was interrupted and
goes on ends with the weights of one that was not; and one that goes on does so with the data, codec and settings that
it began with.

Importing this package imports no torch.

_settings     how is learnt
_rows         which conversation is read when, whole or not at all
_checkpoints  which checkpoint is whole, and who may go on from it
_trainer      the settings as TRL's
_watch        what is told, measured and kept while it goes on
_progress     how far it is, and what came of it
_run          all of it, in order
"""

from ._checkpoints import STATE, latest_checkpoint
from ._progress import Evaluate, SftProgress, SftResult, clean_share
from ._rows import limit_check, order_of, padding_of, prepare, table_of
from ._run import run_sft
from ._settings import SftSettings
from ._trainer import sft_arguments

__all__ = [
    "STATE",
    "Evaluate",
    "SftProgress",
    "SftResult",
    "SftSettings",
    "clean_share",
    "latest_checkpoint",
    "limit_check",
    "order_of",
    "padding_of",
    "prepare",
    "run_sft",
    "sft_arguments",
    "table_of",
]
