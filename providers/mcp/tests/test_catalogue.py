"""What a server offers: names that stay apart, tools left out with a reason, servers that cost only themselves."""

from __future__ import annotations

import json
import logging
from collections import Counter
from pathlib import Path

import concertino as ct
import concertino_mcp
import mcp_types as types
import pytest
from concertino_mcp.catalogue.catalogue import MAX_TOOLS, _build
from concertino_mcp.catalogue.listing import Listing
from concertino_mcp.catalogue.names import LIMIT, ToolNames
from concertino_mcp.settings import declare
from hypothesis import given
from hypothesis import strategies as st

from .conftest import bare


def test_odd_long_and_equal_names_stay_apart() -> None:
    found = concertino_mcp.inspect_server("s", **bare("names"))
    names = {spec.function.tool: spec.short_name for spec in found.tools}
    assert len(names) == 8
    assert names["a.b"] == "s.a.b"
    assert names["a_b"].startswith("s.a_b-")
    assert all(len(spec.name) <= 64 for spec in found.tools)
    assert [(refusal.tool, refusal.reason) for refusal in found.refused] == [
        ("twice", "it is listed twice; the first one is taken")
    ]
    described = {spec.function.tool: spec.description for spec in found.tools}
    assert described["ä b/c"].startswith("ä b/c: ä b/c: does")
    pool = ct.Pool.of(*found.tools)
    assert len({visible for visible, _ in pool.actions}) == len(names), "the pool shows two of them alike"


@given(st.lists(st.tuples(st.sampled_from(["", "a.", "a_", "s."]), st.text(max_size=80)), max_size=30))
def test_no_two_tools_are_ever_shown_alike(tools: list[tuple[str, str]]) -> None:
    names, again = ToolNames(), ToolNames()
    found = [names.give(*tool) for tool in dict.fromkeys(tools)]
    assert found == [again.give(*tool) for tool in dict.fromkeys(tools)]
    taken = [name for name in found if name is not None]
    shown = [name.replace(".", "_") for name in taken]
    assert len(set(shown)) == len(shown)
    for name in taken:
        assert len(name) <= LIMIT
        ct.ToolSpec(f"mcp/{name}", "x", {"type": "object"}, print)


def test_servers_with_one_prefix_do_not_take_each_others_names(tmp_path: Path) -> None:
    from concertino_mcp.catalogue.catalogue import catalogues

    servers = [declare(name, bare("good", tmp_path / name, prefix="")) for name in ("one", "two")]
    specs = [spec for found in catalogues(servers) for spec in found.members]
    assert len({spec.name for spec in specs}) == len(specs) == 2 * len({spec.function.tool for spec in specs})
    assert "mcp/echo" in {spec.name for spec in specs}
    ct.Pool.of(*specs)


def test_a_schema_that_is_refused_costs_its_tool_and_not_the_server(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "concertino.mcp"):
        found = concertino_mcp.inspect_server("s", **bare("bombs"))
    assert [spec.function.tool for spec in found.tools] == ["fine", "bad output"]
    reasons = {refusal.tool: refusal.reason for refusal in found.refused}
    assert set(reasons) == {"deep", "deeper", "wide", "doubling", "remote", "no object"}
    assert "it cannot be read" in reasons["deeper"]
    assert "it breaks the protocol at tools.0.inputSchema.properties" in reasons["no object"]
    assert "nesting goes beyond" in reasons["deep"]
    assert "5000 values" in reasons["wide"]
    assert "unfolds to" in reasons["doubling"]
    assert "6 tools of the MCP server 's' are left out; the first: deep" in caplog.text
    (note,) = found.notes
    assert note.tool == "bad output"
    assert found.tools[1].output_schema is None


def test_of_a_list_without_end_a_bounded_number_is_taken() -> None:
    found = concertino_mcp.inspect_server("s", **bare("many"))
    assert (len(found.tools), len(found.refused)) == (MAX_TOOLS, 4000)
    assert "name those you want in `include`" in found.refused[0].reason
    found = concertino_mcp.inspect_server("s", **bare("many", include=["tool_42*"]))
    assert (len(found.tools), found.refused) == (111, ())


@pytest.mark.slow
def test_a_server_that_cannot_be_used_costs_itself_alone(caplog: pytest.LogCaptureFixture) -> None:
    settings = ct.ProviderSettings(
        {
            "servers": {
                "gone": {"command": ["no-such-program"]},
                "slow": bare("silent", start_timeout=1.5),
                "good": bare(),
                "dead": bare("exit"),
            }
        }
    )
    with caplog.at_level(logging.WARNING, "concertino.mcp"):
        specs = concertino_mcp.concertino_tools(settings)
    assert {spec.function.server.name for spec in specs} == {"good"}
    assert "the MCP server 'gone' is left out: there is no program" in caplog.text
    reasons = {refusal.server: refusal.reason for refusal in concertino_mcp.refused(settings)}
    assert set(reasons) == {"gone", "slow", "dead"}
    assert "cannot open the database" in reasons["dead"]


@pytest.mark.slow
def test_a_hook_does_not_wait_longer_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("concertino_mcp.servers.HOOK_SECONDS", 2.5)
    settings = ct.ProviderSettings({"servers": {"slow": bare("silent", start_timeout=60.0), "good": bare()}})
    specs = concertino_mcp.concertino_tools(settings)
    assert {spec.function.server.name for spec in specs} == {"good"}
    slow, good = concertino_mcp.concertino_doctor(settings)
    assert (slow.level, good.level) == ("error", "ok")
    assert "which is all that a hook may take" in slow.text
    assert "`concertino mcp list` waits longer" in slow.step


def test_a_server_is_started_once_for_all_hooks(notes: Path) -> None:
    settings = ct.ProviderSettings({"servers": {"s": bare(file=notes), "a": bare("good", **{"as": "agent"})}})
    assert concertino_mcp.concertino_tools(settings)
    assert [spec.name for spec in concertino_mcp.concertino_agents(settings)] == ["mcp/a"]
    assert concertino_mcp.concertino_doctor(settings)
    assert notes.read_text().split() == ["start", "list"]


def test_the_schemas_of_real_servers_are_admitted_or_refused_with_a_reason(shared_data: Path) -> None:
    folder = shared_data / "mcp_tools"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there; point CONCERTINO_TEST_DATA at the folder of data samples")
    by_server: dict[str, list[types.Tool]] = {}
    for line in (folder / "tools.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        fields = {key: row.get(key) for key in ("name", "description", "inputSchema", "annotations")}
        tool = types.Tool.model_validate({key: value for key, value in fields.items() if value is not None})
        by_server.setdefault(row["server"], []).append(tool)
    names = ToolNames()
    taken, reasons = 0, Counter[str]()
    specs = []
    for number, tools in enumerate(by_server.values()):
        found = _build(declare(f"server{number}", {"command": ["x"]}), Listing(tools=tools), names)
        assert len(found.tools) + len(found.refused) == len(tools)
        taken += len(found.tools)
        specs += found.tools
        reasons.update(refusal.reason.split(":")[-1].strip()[:60] for refusal in found.refused)
    assert sum(reasons.values()) <= 0.01 * taken, reasons
    pool = ct.Pool.of(*specs)
    assert len(pool.actions) == taken
    assert taken >= 250
