"""Agents that a person declares in a TOML file, without code."""

from .file import load_agents

__all__ = ["load_agents"]
