"""AgentGraph: the paradigm of MAS-Orchestra, a graph of agents written at once.

_strategy   its settings, and a run of it
_format     the text of a graph, read and written
_text       the text taken apart into elements
_arguments  what an agent is handed, and where it refers to others
_rules      what makes a graph valid
_prompts    what the model is shown
_archive    graphs kept as data
"""

from ._archive import ArchivedGraph, read_archive
from ._strategy import AgentGraph

__all__ = [
    "AgentGraph",
    "ArchivedGraph",
    "read_archive",
]  # fmt: skip
