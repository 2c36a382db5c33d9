"""A pool is a value: every change gives a new one, and two can be compared."""

import concertino as ct

pool = ct.Pool.load("pool.toml")
print(pool)

cheaper = pool.without("toy/sage").bind(orchestrator="toy/steady")
print(pool.diff(cheaper))

print("tokens of context:", pool.count_context().by_member["calculator"] > 0)
print("the same pool again:", ct.Pool.load("pool.toml") == pool)
