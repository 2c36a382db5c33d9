"""Tables of papers as recipes: what was compared on what, and the published numbers; run again over any pool.

recipe      a table as data: its columns, its published rows, and the systems that stand beside them
repeating   running a recipe's systems over its tasks, file by file
table       our numbers beside the published ones
recipes/    one TOML file for each table, and the tables that cannot be repeated with the reason
"""

from __future__ import annotations

from .recipe import Recipe, find_recipe, left_out_tables, recipes
from .repeating import Choices, Wanted, repeat, wanted
from .table import PaperTable, table_of

__all__ = [
    "Choices",
    "PaperTable",
    "Recipe",
    "Wanted",
    "find_recipe",
    "left_out_tables",
    "recipes",
    "repeat",
    "table_of",
    "wanted",
]
