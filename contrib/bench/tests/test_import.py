"""The module is light: importing it imports none of its parts, and every public name is there when asked for."""

from __future__ import annotations

import subprocess
import sys

import concertino_bench
import pytest

PROGRAM = """
import sys, concertino_bench
loaded = [name for name in sys.modules if name.startswith("concertino_bench.")]
assert loaded == [], loaded
assert "click" not in sys.modules
"""


def test_importing_the_module_imports_no_part_of_it() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", concertino_bench.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(concertino_bench, name) is not None
    assert name in dir(concertino_bench)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'unknown'"):
        _ = concertino_bench.unknown
