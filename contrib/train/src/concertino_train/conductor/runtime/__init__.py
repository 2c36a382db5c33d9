"""A tiny model as an orchestrator's model, with numpy alone: no torch, no tokenizers, no server.

What `concertino_train.tiny` makes and a training saves is read again here and leads wherever Python runs.

model       messages in, one turn's text out; remembers what it read
network     the transformer's arithmetic
vocabulary  texts to tokens and back
"""

from .model import TinyConductor

__all__ = ["TinyConductor"]
