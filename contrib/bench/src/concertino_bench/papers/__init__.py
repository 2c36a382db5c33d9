"""Tables of papers as recipes: what was compared on what, and the published numbers; run again over any pool.

recipe      a table as data: its columns, its published rows, and the systems that stand beside them
repeating   running a recipe's systems over its tasks, file by file
table       our numbers beside the published ones
recipes/    one TOML file for each table, and the tables that cannot be repeated with the reason
"""
