"""concertino: agents, tools and models from anyone's `pip install` form one pool; an orchestrator leads it."""

from ._errors import ConcertinoError
from ._specs import agent, tool
