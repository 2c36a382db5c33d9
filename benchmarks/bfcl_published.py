"""Verdicts of BFCL's published checker, in a process and an environment of its own.

Run by `bfcl_official.py` with the Python of an environment that has tree_sitter 0.21 with its Java and JavaScript
grammars; and by `bfcl_turns.py`, with a second argument, for calls of several turns. Cases come in as JSON Lines,
verdicts go out: true, false, or null where the checker itself stops. The modules of the checkout that ask models or
need other packages are replaced by empty ones; the checker, its readers and converters are the published ones.
"""

from __future__ import annotations

import json
import sys
import types
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock


class _Names(dict[str, Any]):
    """Every model writes names as they are."""

    def __missing__(self, name: str) -> Any:
        return types.SimpleNamespace(underscore_to_dot=name == "underscored")


def _published(checkout: Path) -> tuple[Any, Any, Any]:
    """The published reader, format check and checker."""
    sys.path.insert(0, str(checkout / "berkeley-function-call-leaderboard"))
    models = types.ModuleType("bfcl_eval.constants.model_config")
    vars(models)["MODEL_CONFIG_MAPPING"] = _Names()
    sys.modules[models.__name__] = models
    for name in ("tenacity", "filelock", "tqdm", "dotenv", "numpy", "pandas", "openai", "requests"):
        sys.modules.setdefault(name, MagicMock())
    enums = import_module("bfcl_eval.constants.enums")
    reader = import_module("bfcl_eval.model_handler.utils").default_decode_ast_prompting
    checker = import_module("bfcl_eval.eval_checker.ast_eval.ast_checker").ast_checker

    def read(text: str, language: str) -> Any:
        return reader(text, enums.ReturnFormat[language.upper()])

    def check(case: dict[str, Any], calls: Any) -> bool:
        language = enums.Language[case["language"].upper()]
        verdict = checker(case["functions"], calls, case["gold"], language, case["category"], case["model"])
        return bool(verdict["valid"])

    return read, import_module("bfcl_eval.utils").is_function_calling_format_output, check


def _turns(checkout: Path) -> None:
    """Verdicts on calls by turn: states and answers after each turn."""
    sys.path.insert(0, str(checkout / "berkeley-function-call-leaderboard"))
    check = import_module("bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker").multi_turn_checker
    for number, line in enumerate(sys.stdin):
        case = json.loads(line)
        row = {"id": case["id"], "initial_config": case["config"], "involved_classes": case["classes"]}
        # One step for each call, as a model makes them that waits for every answer.
        made = [[[call] for call in calls] for calls in case["turns"]]
        try:
            # The checker keeps its programs by the name of the model, and each case starts over.
            seen = check(made, case["gold"], row, case["id"].rsplit("_", 1)[0], f"case_{number}")
            verdict: bool | None = bool(seen["valid"])
        except Exception:
            verdict = None
        print(json.dumps(verdict), flush=False)


def main() -> None:
    """Give a verdict per line of the standard input."""
    if sys.argv[2:] == ["turns"]:
        _turns(Path(sys.argv[1]))
        return
    read, formed, check = _published(Path(sys.argv[1]))
    for line in sys.stdin:
        case = json.loads(line)
        verdict: bool | None = False
        calls = case["calls"]
        try:
            calls = read(case["text"], case["language"]) if calls is None else calls
            read_well = formed(calls)
        # The published runner counts any error of its reader as wrong.
        except Exception:
            read_well = False
        try:
            verdict = read_well and check(case, calls)
        # Here the published runner would end, so there is no verdict.
        except Exception:
            verdict = None
        print(json.dumps(verdict), flush=False)


if __name__ == "__main__":
    main()
