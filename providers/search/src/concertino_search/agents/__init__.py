"""Agents that search and read through the pool, and cite what they read."""
