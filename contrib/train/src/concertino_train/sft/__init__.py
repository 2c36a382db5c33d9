"""SFT: a policy learns to write what good trajectories wrote.

    result = fine_tune(SftSettings(out="out", data="sets/first", model="models/base", epochs=2))

Conversations are encoded here (`data.encoding`) and handed to TRL's SFTTrainer as ids and labels. No message, and so no
argument of a call, passes through a table that would fill in missing keys. Which row is read when is decided here as
well, for all steps at once.

The invariants: what is trained are the labels of the encoding, whole or not at all: a conversation that is too long is
refused or left out, never cut. The rows of a step follow from the seed alone, so a training that was interrupted and
resumed ends with the weights of one that was not. It is resumed only with the data, codec and settings that it
began with.

training     from settings to a trained model and its record
fine_tuning  conversations in, weights out
settings     of the fine-tuning
rows         which conversation is read when
arguments    the settings as TRL's
callback     figures, measurements and checkpoints while it runs
progress     what is reported, and the result

Importing this package imports no torch.
"""

from .fine_tuning import fine_tune
from .settings import SftSettings
from .training import SftResult, run_sft

__all__ = ["SftResult", "SftSettings", "fine_tune", "run_sft"]
