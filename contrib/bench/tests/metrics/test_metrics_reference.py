"""The table of contents, and the page made from it."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from concertino_bench import metrics as m
from concertino_bench.metrics.catalogue import GROUPS
from reference_pages import metrics_page
from tree import ROOT


def test_the_page_is_what_the_definitions_say() -> None:
    page = ROOT / "docs" / "reference" / "metrics.md"
    assert page.read_text(encoding="utf-8") == metrics_page()


@pytest.mark.parametrize("metric", m.METRICS.values(), ids=lambda metric: metric.name)
def test_every_metric_says_what_it_is(metric: m.Metric) -> None:
    for field in ("name", "title", "unit", "within", "formula", "source", "summary", "use"):
        assert getattr(metric, field), field
    assert metric.better in ("higher", "lower", "")
    assert hasattr(m, re.split(r"[\[(]", metric.use)[0]), f"{metric.use} names nothing of concertino_bench.metrics"


def test_every_section_of_the_page_is_a_metric() -> None:
    headings = re.findall(r"^### `(.+?)`", metrics_page(), re.M)
    assert headings == list(m.METRICS)
    assert [name for names in GROUPS.values() for name in names] == list(m.METRICS)


def test_importing_metrics_and_reports_imports_no_heavy_library() -> None:
    code = "import sys, concertino_bench.reports; print({'numpy', 'matplotlib'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "set()"
