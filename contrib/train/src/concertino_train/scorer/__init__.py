"""What a scorer of members learns from: descriptions whose truth is known.

sentences   what authors write about a member, by the share of its answers that are right
topics      what questions are about, and what descriptions call it
casts       a question and the members that may answer it, drawn for each use

The sentences and the questions were written for this package, by many authors in many voices. Two authors and a part of
the topics are held out: no training reads them, so that a figure on them says what a scorer makes of cards that it
never saw.
"""

from .casts import Card, Cast, CastSettings, draw_cast
from .sentences import HELD_OUT, Voice, author_names
from .topics import Topic, load_topics

__all__ = [
    "HELD_OUT",
    "Card",
    "Cast",
    "CastSettings",
    "Topic",
    "Voice",
    "author_names",
    "draw_cast",
    "load_topics",
]
