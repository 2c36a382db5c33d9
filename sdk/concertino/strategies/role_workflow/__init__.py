"""RoleWorkflow: the paradigm of AT-GRPO, roles that speak in turns until they agree or the world is done.

strategy     its settings
run          a run of it
role         roles and endings, as data
document     workflows as TOML and JSON
workflows    the three that come with it
format       what a role's text says
template     the places of a prompt
prompts      what roles are asked
record       what was said, told again
environment  worlds that a workflow acts in
"""

from .environment import Environment, Stepped, environment_tool
from .role import Agree, PassTests, ReachGoal, Role
from .strategy import RoleWorkflow
from .workflows import coder_tester, planner_programmer, reasoner_programmer

__all__ = [
    "Agree",
    "Environment",
    "PassTests",
    "ReachGoal",
    "Role",
    "RoleWorkflow",
    "Stepped",
    "coder_tester",
    "environment_tool",
    "planner_programmer",
    "reasoner_programmer",
]
