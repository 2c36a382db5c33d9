"""What a scorer of members learns from: descriptions whose truth is known.

sentences   what authors write about a member, by the share of its answers that are right
topics      what questions are about, and what descriptions call it
glossary    words that people use when they speak of a topic
casts       a question and the members that may answer it, drawn for each use

The sentences and the questions were written for this package, by many authors in many voices. Some authors and topics
are held out: no training reads them, so that a figure on them says what a scorer makes of cards that it never saw. Of
these, the development part may choose settings; the test part is read for the last figures alone.
"""

from .casts import Card, Cast, CastSettings, draw_cast
from .sentences import DEVELOPMENT, HELD_OUT, TEST, Voice, author_names
from .topics import Part, Topic, load_topics

__all__ = [
    "DEVELOPMENT",
    "HELD_OUT",
    "TEST",
    "Card",
    "Cast",
    "CastSettings",
    "Part",
    "Topic",
    "Voice",
    "author_names",
    "draw_cast",
    "load_topics",
]
