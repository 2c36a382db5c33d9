"""RoleWorkflow: the paradigm of AT-GRPO, roles that speak in turns until they agree or the world is done.

_strategy     its settings
_run          a run of it
_role         roles and endings, as data
_document     workflows as TOML and JSON
_workflows    the three that come with it
_format       what a role's text says
_template     the places of a prompt
_prompts      what roles are asked
_record       what was said, told again
_agreement    whether two roles say the same
_environment  worlds that a workflow acts in
"""

from ._environment import Environment, Stepped, environment_tool
from ._role import Agree, PassTests, ReachGoal, Role
from ._strategy import RoleWorkflow
from ._workflows import coder_tester, planner_programmer, reasoner_programmer

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
]  # fmt: skip
