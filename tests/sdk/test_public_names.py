"""The table of contents: what is public, and that getting at it costs little."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import concertino

PUBLIC = [
    "AgentSpec",
    "ApprovalRequest",
    "Approve",
    "Attachment",
    "Audio",
    "Budget",
    "BudgetError",
    "CODES",
    "Call",
    "CallFailed",
    "ChatRequest",
    "ConcertinoError",
    "Context",
    "Cost",
    "Deny",
    "EndRun",
    "ErrorInfo",
    "Executor",
    "FailureClass",
    "File",
    "Finding",
    "Guard",
    "GuardedCall",
    "GuardedResult",
    "Image",
    "IndexedRanking",
    "Limits",
    "LivePool",
    "Message",
    "Model",
    "ModelSpec",
    "Observation",
    "Orchestrator",
    "ParallelRounds",
    "Plan",
    "PlanError",
    "PluginError",
    "Pool",
    "PoolError",
    "Prices",
    "ProviderError",
    "ProviderSettings",
    "Ranking",
    "RankingEntry",
    "RankingIndex",
    "Ref",
    "Replace",
    "Reply",
    "Result",
    "Round",
    "RouterSpec",
    "Run",
    "RunContext",
    "RunError",
    "RunHandle",
    "RunInfo",
    "RunSummary",
    "Runs",
    "STOP_REASONS",
    "Sampling",
    "Session",
    "SessionBusy",
    "SessionTurn",
    "Shortlist",
    "SpecError",
    "Status",
    "SteppedRun",
    "Strategy",
    "Thought",
    "ToolCall",
    "ToolSearch",
    "ToolSpec",
    "Trace",
    "TraceError",
    "TraceStore",
    "Usage",
    "UsageError",
    "agent",
    "as_function",
    "as_langchain_tool",
    "as_openai_agents_tool",
    "guard",
    "hookimpl",
    "keep_headers",
    "keep_secret",
    "keep_variables",
    "events",
    "plan_to_dot",
    "plan_to_json",
    "plan_to_mermaid",
    "read_secret",
    "replay",
    "router",
    "tool",
    "without_secrets",
]


def test_the_public_names_are_exactly_these() -> None:
    assert sorted(concertino.__all__) == sorted(PUBLIC)


def test_every_public_name_is_there_and_documented() -> None:
    for name in PUBLIC:
        value = getattr(concertino, name)
        assert isinstance(value, dict) or value.__doc__, name


PUBLIC_BY_THE_ROOT = ("core", "members", "pool", "runs")
"""Packages whose public names are those of `concertino`; to import one of them imports no other module of it."""


def test_every_subpackage_has_a_table_of_contents_that_is_complete() -> None:
    subpackages = [path.parent.name for path in Path(concertino.__file__).parent.glob("*/__init__.py")]
    for module in (import_module(f"concertino.{name}") for name in subpackages if name not in PUBLIC_BY_THE_ROOT):
        assert module.__all__, module.__name__
        assert len(module.__all__) == len(set(module.__all__)), module.__name__
        for name in module.__all__:
            assert hasattr(module, name), f"{module.__name__}.{name}"


def imported(statement: str) -> set[str]:
    program = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_imports_nothing_heavy() -> None:
    modules = imported("import concertino")
    assert not modules & {"asyncio", "pydantic", "jsonschema", "jsonschema_rs", "aiohttp", "tenacity", "rich", "yaml"}


def test_a_tool_with_plain_types_needs_no_pydantic() -> None:
    modules = imported(
        "import concertino as ct\n@ct.tool\ndef f(x: int) -> int:\n    '''F.'''\n    return x\nct.Pool.of(f)"
    )
    assert not modules & {"pydantic", "aiohttp", "tenacity", "rich", "yaml", "click", "torch"}
