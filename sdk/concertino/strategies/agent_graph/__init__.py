"""AgentGraph: the paradigm of MAS-Orchestra, a graph of agents written at once.

strategy   its settings, and a run of it
format     the text of a graph, read and written
text       the text taken apart into elements
arguments  what an agent is handed, and where it refers to others
rules      what makes a graph valid
prompts    what the model is shown
"""

from .strategy import AgentGraph

__all__ = [
    "AgentGraph",
]
