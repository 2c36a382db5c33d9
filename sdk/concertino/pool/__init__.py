"""Pools: immutable values that hold members, their prices and descriptions, and the models bound to roles.

pool     the value, and how it changes      file   pool files (TOML, YAML)      lock   pinned pools
live     a pool that is exchanged while it serves     orchestrator_agent   an orchestrator as a member
shortlist   the members that a ranking puts first

They are public as `concertino.Pool`, `concertino.LivePool` and `concertino.Shortlist`.
"""
