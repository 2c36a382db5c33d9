"""Testing, in public: what concertino's own tests use, for the tests of providers and applications.

    ScriptedModel                             a model that replies from a script, and fails where the run leaves it
    fake_tool, fake_agent, and their faults   members with given results, which remember their calls
    call, run_call, make_context, make_pool   one member through the real executor
    Recorder                                  record and replay at the call boundary
    ToolConformance, AgentConformance, ModelConformance, StrategyConformance, check_package
                                              the contracts of members, models and strategies, as tests

pytest finds the fixtures `scripted_model`, `concertino_no_installed_plugins` and `concertino_nothing_left`.
"""

from .calling import call, make_context, make_pool, run_call
from .check import CheckRow
from .conformance import AgentConformance, ModelConformance, StrategyConformance, ToolConformance
from .fakes import blocking_tool, fake_agent, fake_tool, hanging_tool, stubborn_tool
from .package import check_package
from .recording import Recorder
from .report import ConformanceReport
from .scripted_model import ScriptedModel

__all__ = [
    "AgentConformance",
    "CheckRow",
    "ConformanceReport",
    "ModelConformance",
    "Recorder",
    "ScriptedModel",
    "StrategyConformance",
    "ToolConformance",
    "blocking_tool",
    "call",
    "check_package",
    "fake_agent",
    "fake_tool",
    "hanging_tool",
    "make_context",
    "make_pool",
    "run_call",
    "stubborn_tool",
]
