"""Words that name a cluster, and what is said where there is none."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from typing import Any

import concertino as ct
import pytest
from concertino.rollouts import check_place
from concertino_ray import Cluster


@pytest.mark.parametrize(
    ("word", "cluster"),
    [
        ("ray", Cluster()),
        ("ray:4", Cluster(workers=4)),
        ("ray://10.0.0.1:6379", Cluster("10.0.0.1:6379")),
        ("ray://head.example:6379", Cluster("head.example:6379")),
        ("ray://[::1]:6379", Cluster("[::1]:6379")),
    ],
)
def test_a_word_names_a_cluster(word: str, cluster: Cluster) -> None:
    assert Cluster.of(word) == cluster


@pytest.mark.parametrize("word", ["ray:0", "ray:", "ray://", "ray://host", "ray://host:0", "ray://a b:1", "ray:x"])
def test_another_word_is_refused_with_those_that_are_known(word: str) -> None:
    with pytest.raises(ct.UsageError, match=r"expected ray .*, ray:4 .*, or ray://HOST:PORT"):
        check_place(word)


def test_where_ray_is_missing_the_word_says_how_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec

    def without(name: str, package: str | None = None) -> Any:
        return None if name == "ray" else found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    with pytest.raises(ct.UsageError, match=r"on='ray:2': Ray is not installed here.*concertino\[ray\]"):
        check_place("ray:2")


def test_importing_the_package_does_not_import_ray() -> None:
    code = "import sys, concertino_ray; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
