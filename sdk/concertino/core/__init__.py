"""The values that everything else speaks of: plans, observations, budgets, model messages, events and errors.

They are public as `concertino.Plan`, `concertino.Budget` and so on. Nothing is imported here, so that a module that
needs one value, such as the errors, does not import them all.

Invariant: nothing here knows a pool, an executor or a strategy, and only `documents` and `settings` read files.
"""
