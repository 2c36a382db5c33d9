"""Agents that a person declares in a TOML file, without code."""
