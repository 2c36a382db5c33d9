"""What two processes run in `test_run_sharded.py`: whole trainings with `trainer.sharding=full`.

python sharded_run.py FOLDER
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


def loaded(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


HERE = Path(__file__).parent
own = loaded("own_conftest", HERE / "conftest.py")
ranks = loaded("sharded_ranks", HERE.parent / "trainer" / "sharded_ranks.py")
sft = loaded("supervised", HERE.parent / "test_sft.py")

from concertino_train.config import load_config  # noqa: E402
from concertino_train.rewards import TERMS  # noqa: E402
from concertino_train.rl import run_rl  # noqa: E402

TERMS[own.Drawn.name] = own.Drawn
SUPERVISED = {"sharding": "full", "steps": 4, "save_every": 2}
KINDS = {"whole": (), "adapter": ("model.adapter={rank: 2}",)}


def reinforced(kind: str, folder: Path, *overrides: str, resume: bool = False) -> Any:
    settings = [f"trainer.output={folder}", *KINDS[kind], "trainer.rl.steps=2", "trainer.rl.save_every=1", *overrides]
    return run_rl(load_config(own.SETTINGS, settings), resume=resume)


def measured(step: int) -> dict[str, float]:
    """Nothing but that it was asked."""
    return {"eval/step": float(step)}


def work(folder: Path) -> None:
    for kind in KINDS:
        reinforced(kind, folder / kind, "trainer.sharding=full")
    ahead = ("trainer.sharding=full", "trainer.rl.max_staleness=1", "trainer.rl.steps=4")
    reinforced("whole", folder / "ahead", *ahead)
    sft.taught(folder / "sft", evaluate=measured, **SUPERVISED)
    sft.taught(folder / "again", stop=lambda: True, **SUPERVISED)
    sft.taught(folder / "again", resume=True, **SUPERVISED)


if __name__ == "__main__":
    home = Path(sys.argv[1])
    os.environ["HF_HUB_OFFLINE"] = "1"
    sys.exit(not ranks.on_two_ranks(lambda: work(home)))
