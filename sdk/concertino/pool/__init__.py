"""Pools: immutable values that hold members, their prices and descriptions, and the models bound to roles.

pool           the value, and how it changes        consistency    whether what it is made of fits together
views          what it answers with                 identity       what tells pools and members apart
named_models   models that are named in full        variation      random variations, for training
file           pool files (TOML, YAML)              lock           pinned pools
shortlist      the members that a ranking puts first
search         pools that are too large for a prompt               short_functions   their members in few tokens
live           a pool that is exchanged while it serves            orchestrator_agent   an orchestrator as a member
pool_html      pools in notebooks

`Pool`, `LivePool`, `Shortlist` and `ToolSearch` are public names of `concertino`.
"""
