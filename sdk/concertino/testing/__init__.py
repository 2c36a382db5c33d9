"""Testing, in public: what concertino's own tests use, for the tests of providers and applications.

    ScriptedModel                             a model that speaks a script, and fails where the run leaves it
    fake_tool, fake_agent, and their faults   members that answer as told and remember their calls
    call, run_call, make_context, make_pool   one member through the real executor
    Recording                                 record and replay at the call boundary
    ToolConformance, AgentConformance, ModelConformance, check_package
                                              what every member owes to those who call it

pytest finds the fixtures `scripted_model`, `concertino_no_installed_plugins` and `concertino_nothing_left` by itself.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._calling import call, make_context, make_pool, run_call
    from ._check import CheckFailed, CheckMissing, CheckSkipped, MemberSubject, ModelSubject, Row
    from ._conformance import AgentConformance, ModelConformance, ToolConformance
    from ._fakes import FakeAgent, FakeTool, blocking_tool, fake_agent, fake_tool, hanging_tool, stubborn_tool
    from ._package import check_package
    from ._recording import Recording, RecordingMiss
    from ._report import Report
    from ._scripted_model import ScriptedModel

_HOMES = {
    "_calling": ["call", "make_context", "make_pool", "run_call"],
    "_check": ["CheckFailed", "CheckMissing", "CheckSkipped", "MemberSubject", "ModelSubject", "Row"],
    "_conformance": ["AgentConformance", "ModelConformance", "ToolConformance"],
    "_fakes": [
        "FakeAgent", "FakeTool", "blocking_tool", "fake_agent", "fake_tool", "hanging_tool", "stubborn_tool",
    ],
    "_package": ["check_package"],
    "_recording": ["Recording", "RecordingMiss"],
    "_report": ["Report"],
    "_scripted_model": ["ScriptedModel"],
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AgentConformance",
    "CheckFailed",
    "CheckMissing",
    "CheckSkipped",
    "FakeAgent",
    "FakeTool",
    "MemberSubject",
    "ModelConformance",
    "ModelSubject",
    "Recording",
    "RecordingMiss",
    "Report",
    "Row",
    "ScriptedModel",
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


def __getattr__(name: str) -> Any:
    """Import a name's module at its first use: pytest imports this package at every start."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'concertino.testing' has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
