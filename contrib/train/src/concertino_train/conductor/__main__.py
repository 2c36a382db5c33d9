"""Train the tiny conductor and write it as a folder that transformers, vLLM and concertino-toy read.

python -m concertino_train.conductor --out tiny --seconds 600
"""

from __future__ import annotations

import argparse
import copy
import json
import platform
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from concertino import UsageError
from concertino.cli.terminal import say
from concertino.executor import only_child_environment
from concertino_toy.exercises import Said, collect

from .rows import mixed_writer, to_row
from .training import TrainingSettings, TrainingTotals, train_together


def main(arguments: list[str] | None = None) -> int:
    """The command. Returns the exit code."""
    given = _parser().parse_args(arguments)
    try:
        settings = TrainingSettings(
            seconds=given.seconds,
            steps=given.steps,
            tokens=given.tokens,
            rate=given.rate,
            muon=given.muon,
            seed=given.seed,
            half=given.half,
            device=given.device,
        )
    except UsageError as error:
        _parser().error(str(error))
    import torch

    from concertino_train.tiny import new_model, new_tokenizer

    # Products are too small for several threads; processes fill the cores instead.
    torch.set_num_threads(1)
    begun = time.monotonic()
    _tell(f"collecting {given.rows:,} runs of the teacher")
    said = _collect(given.rows, given.processes, given.seed, given.slips)
    if given.start:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        tokenizer: Any = AutoTokenizer.from_pretrained(given.start, trust_remote_code=False)
        model: Any = AutoModelForCausalLM.from_pretrained(
            given.start, dtype=torch.float32, use_safetensors=True, trust_remote_code=False
        )
    else:
        tokenizer = new_tokenizer([message.text for run in said[:1500] for message, _ in run], size=given.vocabulary)
        model = new_model(tokenizer, layers=given.layers, hidden=given.hidden, heads=given.heads, seed=given.seed)
    rows = [to_row(run, tokenizer) for run in said]
    size = sum(parameter.numel() for parameter in model.parameters())
    mean = sum(len(row.ids) for row in rows) / len(rows)
    taken = time.monotonic() - begun
    _tell(f"{size:,} parameters, {len(tokenizer)} tokens, rows of {mean:.0f} tokens; after {taken:.0f} s")

    processes = given.processes if settings.device == "cpu" else 1

    def keep(trained: TrainingTotals) -> None:
        record = {
            "parameters": size,
            "vocabulary": len(tokenizer),
            "rows": len(rows),
            "row_tokens": round(mean, 1),
            "steps": trained.steps,
            "tokens": trained.tokens,
            "cpu_seconds": round(trained.seconds * processes),
            "loss": round(trained.loss, 4),
            "torch": torch.__version__.partition("+")[0],
            "python": platform.python_version(),
            "arguments": {key: value for key, value in vars(given).items() if key not in ("out", "start")},
            "before": json.loads((given.start / "training.json").read_text("utf-8")) if given.start else None,
        }
        _write(given.out, model, tokenizer, record)

    keep(train_together(model, rows, settings, processes, _tell, keep))
    _tell(f"written to {given.out}")
    return 0


def _collect(count: int, processes: int, seed: int, slips: float) -> list[list[Said]]:
    """All runs in the order of their numbers, by so many processes."""
    starts = range(0, count, 500)
    parts = [range(start, min(start + 500, count)) for start in starts]
    # Not forked: torch has threads by now, which a fork would leave in the middle of their work.
    with only_child_environment(), ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        found = pool.map(partial(collect, seed=seed, slips=slips, texts=mixed_writer), parts)
        return [run for part in found for run in part]


def _write(folder: Path, model: Any, tokenizer: Any, record: dict[str, Any]) -> None:
    """The model in 16 bits, its tokenizer, and how it came to be."""
    # On a copy, since training continues in 32 bits.
    copy.deepcopy(model).half().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "training.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def _tell(line: str) -> None:
    say(line, error=True)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"got {text!r}; expected a whole number from 1 on")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m concertino_train.conductor", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--start", type=Path, help="folder of a trained model to continue from")
    parser.add_argument("--seconds", type=float, default=600, help="CPU-seconds of training, of each process")
    parser.add_argument("--steps", type=_count, help="optimiser steps at most; else as many as fit into the time")
    parser.add_argument("--tokens", type=_count, default=2500, help="of one batch of one process, about")
    parser.add_argument("--rows", type=_count, default=8000, help="runs to learn from")
    parser.add_argument("--slips", type=float, default=0.06, help="share of rounds with a malformed call")
    parser.add_argument("--layers", type=_count, default=4)
    parser.add_argument("--hidden", type=_count, default=128)
    parser.add_argument("--heads", type=_count, default=4)
    parser.add_argument("--vocabulary", type=_count, default=1280)
    parser.add_argument("--rate", type=float, default=3e-3, help="learning rate of AdamW")
    parser.add_argument("--muon", type=float, default=0.02, help="learning rate of Muon")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=_count, default=2, help="that collect and train, a core each")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="on cuda, one process trains")
    parser.add_argument("--half", action="store_true", help="multiply in 16 bits: faster, if the processor can (AMX)")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
