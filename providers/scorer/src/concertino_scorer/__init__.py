"""concertino-scorer: reads what descriptions say of a pool's members, and ranks them for a question.

    from concertino_scorer import Scorer

    Scorer.shipped().rank("Which enzyme unwinds DNA?", pool)
    Orchestrator(model, arrange=Shortlist("scorer/best", most=6))

scorer      rank                            beliefs   how often a member is expected to be right
reading     cards as words and numbers      matching  which sentences speak of the question
network     the network that reads          words     words and their forms
model_file  all of it in one file           features  what is known of each word
published   rankings by name                trained.npz, MODEL_CARD.md  the scorer that is shipped

It needs numpy, and no model server. `concertino train scorer` (concertino-train) trains another one.
"""

from __future__ import annotations

from .beliefs import Belief
from .scorer import Evidence, RankedMember, Scorer

__all__ = ["Belief", "Evidence", "RankedMember", "Scorer"]
