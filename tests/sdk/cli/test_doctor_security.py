"""`concertino doctor --security`: what is left open, how severe it is, and what to do."""

from __future__ import annotations

import importlib.metadata
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Finding = dict[str, str]
Findings = Callable[..., list[Finding]]


@pytest.fixture
def findings(cli: Any, monkeypatch: pytest.MonkeyPatch) -> Findings:
    """`findings("traces")`: what is said of a subject."""
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() or 1000, raising=False)
    monkeypatch.setenv("HOME", str(Path.cwd()))
    Path.cwd().chmod(0o755)

    def found(subject: str, exit_code: int | None = None) -> list[Finding]:
        done = cli("doctor", "--security", "--json")
        data = json.loads(done.stdout)
        assert done.exit_code == (0 if data["ok"] else 1)
        assert exit_code is None or done.exit_code == exit_code
        assert data["ok"] == all(each["severity"] != "high" for each in data["findings"])
        return [each for each in data["findings"] if each["subject"] == subject and each["severity"] != "ok"]

    return found


def only(found: list[Finding]) -> Finding:
    (one,) = found
    assert one["step"]
    return one


def test_it_loads_no_plugin_but_the_sandbox_and_makes_no_member(cli: Any, install: Any) -> None:
    install("boom", "raise SystemExit('imported')")
    done = cli("doctor", "--security")
    assert "imported" not in done.output
    assert "acme_band" not in __import__("sys").modules


def test_traces_that_others_can_read_are_counted(findings: Findings) -> None:
    Path("runs").mkdir(mode=0o755)
    for name, mode in (("a.trace.jsonl", 0o644), ("b.trace.jsonl", 0o600), ("t.session.jsonl", 0o644)):
        Path("runs", name).touch()
        Path("runs", name).chmod(mode)
    Path("runs").chmod(0o755)
    found = only(findings("traces"))
    assert found["severity"] == "medium"
    assert "others can read 2 of the first 3" in found["text"]
    Path("runs").chmod(0o700)
    assert findings("traces") == []


def test_a_link_among_the_traces_is_named(findings: Findings) -> None:
    Path("runs").mkdir(mode=0o700)
    Path("runs/a.trace.jsonl").symlink_to("/etc/hostname")
    assert "'a.trace.jsonl' is a link" in only(findings("traces"))["text"]


def test_traces_without_a_key_are_low_and_a_short_key_is_high(
    findings: Findings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert only(findings("trace key"))["severity"] == "low"
    monkeypatch.setenv("CONCERTINO_TRACE_KEY", "short")
    assert only(findings("trace key", 1))["severity"] == "high"
    monkeypatch.setenv("CONCERTINO_TRACE_KEY", "x" * 40)
    assert findings("trace key") == []


def test_settings_that_others_can_change_are_high(findings: Findings) -> None:
    settings = Path("concertino.toml")
    settings.write_text("always = []\n")
    settings.chmod(0o666)
    found = only(findings("settings", 1))
    assert found["severity"] == "high"
    assert found["step"].startswith("chmod go-w concertino.toml")
    settings.chmod(0o644)
    assert findings("settings") == []


def test_trust_in_every_folder_is_named(findings: Findings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONCERTINO_TRUST", "all")
    assert "CONCERTINO_TRUST=all" in only(findings("trust"))["text"]


@pytest.mark.parametrize(("mode", "severity"), [(0o644, "high"), (0o600, "medium")])
def test_a_key_in_the_settings_is_named_and_never_shown(cli: Any, findings: Findings, mode: int, severity: str) -> None:
    Path("concertino.toml").write_text('[providers.band]\napi_key = "swordfish-1234"\nkey_env = "BAND_KEY"\n')
    Path("concertino.toml").chmod(mode)
    found = only(findings("keys"))
    assert found["severity"] == severity
    assert "providers.band.api_key holds a key" in found["text"]
    assert "swordfish" not in cli("doctor", "--security").output


def test_a_file_of_variables_that_others_can_read_is_high(findings: Findings) -> None:
    Path(".env").write_text("OPENAI_API_KEY=sk-x\n")
    Path(".env").chmod(0o644)
    assert only(findings("keys", 1))["severity"] == "high"
    Path(".env").chmod(0o600)
    assert findings("keys") == []


@pytest.mark.parametrize(
    ("setting", "severity"),
    [
        ('host = "0.0.0.0"', "high"),
        ('bind = "192.0.2.7:8000"', "high"),
        ('host = "::"', "high"),
        ('host = "127.0.0.1"', ""),
        ('host = "::1"', ""),
        ('listen = "localhost"', ""),
        ('base_url = "http://models.example/v1"', "medium"),
        ('base_url = "https://models.example/v1"', ""),
        ('base_url = "http://127.0.0.1:8000/v1"', ""),
    ],
)
def test_an_address_that_others_reach_is_named(findings: Findings, setting: str, severity: str) -> None:
    Path("concertino.toml").write_text(f"[providers.band]\n{setting}\n")
    assert [each["severity"] for each in findings("server")] == ([severity] if severity else [])


def test_an_approving_plugin_that_is_missing_is_high(findings: Findings) -> None:
    Path("concertino.toml").write_text('always = ["approval"]\n')
    assert "its hooks check no call" in only(findings("plugins", 1))["text"]


def test_plugins_that_are_not_from_an_index_are_named(
    findings: Findings, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert findings("plugins") == []
    info = next(site.glob("*.dist-info"))
    source = site.parent / "source"
    source.mkdir()
    direct = {"url": source.as_uri(), "dir_info": {"editable": True}}
    (info / "direct_url.json").write_text(json.dumps(direct))
    monkeypatch.setattr(
        importlib.metadata, "distribution", lambda name: importlib.metadata.PathDistribution(info), raising=True
    )
    assert "band (editable)" in only(findings("plugins"))["text"]
    source.chmod(0o777)
    assert "can be changed by everybody" in findings("plugins")[0]["text"]


def test_a_missing_sandbox_is_named(findings: Findings) -> None:
    assert "no level of isolation is there" in only(findings("sandbox"))["text"]


def test_a_root_process_is_named(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0, raising=False)
    assert "medium   user: this process is root" in cli("doctor", "--security").stdout


def test_it_goes_without_the_options_of_the_other_report(cli: Any) -> None:
    done = cli("doctor", "--security", "--probe")
    assert done.exit_code == 2
    assert "neither --pool nor --probe" in done.stderr
