"""Word problems about quantities modulo 23, as in MASBENCH: one grammar, one reader, one writer, one exact solver.

ontology   quantities, worlds of names, and which names are categories
grammar    the grammar and its reader
solver     the answers, with every step that leads to them
writer     random questions with their answers
"""

from .grammar import GrammarError, read
from .ontology import NameWorld, Quantity, name_world
from .solver import solve
from .writer import make_question

__all__ = [
    "GrammarError",
    "NameWorld",
    "Quantity",
    "make_question",
    "name_world",
    "read",
    "solve",
]
