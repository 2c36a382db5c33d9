"""The doctor: each thing that is wrong is a finding with a next step, errors first."""

from __future__ import annotations

import sys

import pytest
from concertino.cli.doctor import Finding, diagnose
from concertino.core.settings import Settings
from concertino.plugins import PluginManager


def about(findings: list[Finding], subject: str) -> list[Finding]:
    return [finding for finding in findings if finding.subject == subject]


def test_a_healthy_installation_has_no_errors_and_counts_tokens_by_provider(install, manager) -> None:
    install("good")
    findings = diagnose(manager)
    assert [finding for finding in findings if finding.level == "error"] == []
    (good,) = about(findings, "plugin good")
    assert good.level == "ok"
    assert good.text.startswith("acme-good 1.0: 1 member, ")
    assert about(findings, "python")[0].level == "ok"
    assert about(findings, "traces")[0].level == "ok"


def test_broken_clashing_and_misspelt_plugins_are_errors_and_come_first(install, manager) -> None:
    install("bad", "raise ValueError('no key')")
    install("misspelt", "@hookimpl\ndef concertino_toolz(): return []")
    install("words", distribution="acme-words")
    install("words", distribution="acme-vocabulary")
    install("good")
    findings = diagnose(manager)
    errors = [finding for finding in findings if finding.level == "error"]
    assert findings[: len(errors)] == errors
    assert [finding.subject for finding in errors] == ["plugin bad", "plugin misspelt", "plugin words"]
    assert "ValueError: no key" in errors[0].text
    assert "did you mean concertino_tools?" in errors[1].text
    assert "acme-vocabulary 1.0 and acme-words 1.0" in errors[2].text
    assert all(finding.step for finding in errors)


def test_a_plugin_that_is_slow_to_import_is_a_warning(install, manager) -> None:
    install("slow", "import time; time.sleep(0.3)\n@hookimpl\ndef concertino_tools(): return []")
    warnings = [finding for finding in about(diagnose(manager), "plugin slow") if finding.level == "warning"]
    assert len(warnings) == 1
    assert warnings[0].text.startswith("importing acme_slow takes 0.")
    assert "-X importtime" in warnings[0].step


def test_members_that_an_orchestrator_cannot_judge_are_warnings(install, manager) -> None:
    install(
        "vague",
        """
        @hookimpl
        def concertino_models(): return [specs.ModelSpec("dumb", Model)]
        @hookimpl
        def concertino_tools():
            return [specs.ToolSpec("wordy", "x" * 3000, {"type": "object"}, print, timeout=None)]
        """,
    )
    findings = diagnose(manager)
    assert [finding.level for finding in about(findings, "model vague/dumb")] == ["warning", "warning"]
    assert "no description" in about(findings, "model vague/dumb")[0].text
    assert "price is unknown" in about(findings, "model vague/dumb")[1].text
    assert "2,048 characters" in about(findings, "tool vague/wordy")[0].text
    assert "no timeout" in about(findings, "tool vague/wordy")[1].text


def test_disabled_plugins_and_settings_that_name_nobody_are_shown(install) -> None:
    install("alpha")
    findings = diagnose(PluginManager(Settings(disable=("alpha", "alhpa"))))
    assert "not used: disabled" in about(findings, "plugin alpha")[0].text
    assert about(findings, "settings")[0].step == "did you mean 'alpha'?"


def test_a_provider_that_every_run_needs_and_that_is_not_there_is_shown(install) -> None:
    install("alpha")
    (finding,) = about(diagnose(PluginManager(Settings(always=("alhpa",)))), "settings")
    assert "they name the provider 'alhpa', which is not installed" in finding.text


def test_a_folder_where_no_trace_can_be_written_is_an_error(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    manager = PluginManager(Settings(traces=tmp_path / "file" / "runs"))
    (finding,) = about(diagnose(manager), "traces")
    assert finding.level == "error"
    assert "file is not a folder" in finding.text


def test_slower_validation_is_a_warning(manager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (finding,) = about(diagnose(manager), "jsonschema_rs")
    assert finding.level == "warning"
    assert "pip install jsonschema-rs" in finding.step


def test_a_plugin_that_imports_only_here_is_a_warning(install, manager) -> None:
    install("odd", "import acme_injected\n@hookimpl\ndef concertino_tools(): return []")
    sys.modules["acme_injected"] = sys
    findings = about(diagnose(manager), "plugin odd")
    assert [finding.level for finding in findings] == ["warning", "ok"]
    assert "cannot be imported in a fresh process" in findings[0].text
