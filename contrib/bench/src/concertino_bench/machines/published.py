"""Data of BFCL's published programs, read from their files as data: fares, and the texts that make answers long.

The idea: what a program does is written here again; tables that are only its data are read where their owners publish
them, so none of them is kept in this package.

The invariant: a file is parsed and never run. What is no literal in it is not there.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

TRAVEL, LONG = "travel_booking.py", "long_context.py"
"""The files: what `TravelAPI` needs, and what `multi_turn_long_context` needs."""
WHERE = "bfcl_eval/eval_checker/multi_turn_eval/func_source_code of github.com/ShishirPatil/gorilla"


@dataclass(frozen=True)
class Published:
    """The published programs, as far as they are there.

    Attributes:
        folder: where they are; empty if they are not there.
        long: calls answer at length.
    """

    folder: str = ""
    long: bool = False

    def constant(self, name: str) -> Any:
        """A literal by its name.

        Raises:
            ValueError: no file of the folder has it.
        """
        for file in (TRAVEL, LONG):
            if name in (found := _literals(Path(self.folder, file))):
                return found[name]
        raise ValueError(f"{self.folder or 'no folder'}: neither {TRAVEL} nor {LONG} assigns {name}; expected {WHERE}")

    def has(self, file: str) -> bool:
        """Whether a file is there."""
        return bool(self.folder) and Path(self.folder, file).is_file()


NOTHING = Published()
"""No published program is there."""


@cache
def _literals(file: Path) -> Mapping[str, Any]:
    """What the file assigns to names, wherever it is a literal; nothing where the file is missing or is no Python."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name):
                with contextlib.suppress(ValueError, TypeError, RecursionError, MemoryError):
                    found[target.id] = ast.literal_eval(node.value)
    return found
