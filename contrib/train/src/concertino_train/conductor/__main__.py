"""Train the tiny conductor and write it as a folder that transformers, vLLM and concertino-conductor read.

python -m concertino_train.conductor --out tiny --seconds 600
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from .examples import collect, to_row
from .training import Settings, train
from .wording import problem_writer


def main(arguments: list[str] | None = None) -> int:
    """The command. Returns the exit code."""
    given = _parser().parse_args(arguments)
    import torch

    from concertino_train.tiny import new_model, new_tokenizer

    torch.set_num_threads(given.threads)
    begun = time.process_time()
    _tell(f"collecting {given.rows:,} runs of the scripted leader")
    said = collect(range(given.rows), seed=given.seed, slips=given.slips, texts=_problems)
    if given.start:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        tokenizer: Any = AutoTokenizer.from_pretrained(given.start)
        model: Any = AutoModelForCausalLM.from_pretrained(given.start, dtype=torch.float32)
    else:
        tokenizer = new_tokenizer([message.text for run in said[:1500] for message, _ in run], size=given.vocabulary)
        model = new_model(tokenizer, layers=given.layers, hidden=given.hidden, heads=given.heads, seed=given.seed)
    rows = [to_row(run, tokenizer) for run in said]
    size = sum(parameter.numel() for parameter in model.parameters())
    mean = sum(len(row.ids) for row in rows) / len(rows)
    _tell(
        f"{size:,} parameters, {len(tokenizer)} tokens, rows of {mean:.0f} tokens; {time.process_time() - begun:.0f} s"
    )
    settings = Settings(seconds=given.seconds, rate=given.rate, muon=given.muon, seed=given.seed)
    trained = train(model, rows, settings, _tell)
    model.half().save_pretrained(given.out)
    tokenizer.save_pretrained(given.out)
    record = {
        "parameters": size, "vocabulary": len(tokenizer), "rows": len(rows), "row_tokens": round(mean, 1),
        "steps": trained.steps, "tokens": trained.tokens, "cpu_seconds": round(trained.seconds),
        "loss": round(trained.loss, 4), "torch": torch.__version__.partition("+")[0],
        "arguments": {key: value for key, value in vars(given).items() if key not in ("out", "start")},
        "before": json.loads((given.start / "training.json").read_text("utf-8")) if given.start else None,
    }  # fmt: skip
    (given.out / "training.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    _tell(f"written to {given.out}")
    return 0


def _problems(rng: Random) -> Callable[[Random], str]:
    """Who writes the problems of a cast: in some of them MASBENCH, so that its words and lengths are no strangers."""
    return _masbench_text if rng.random() < 0.2 else problem_writer(rng)


def _masbench_text(rng: Random) -> str:
    from concertino_bench.masbench import make_task

    level = rng.choice((2, 2, 3, 4, 6, 8))
    task = make_task("depth", level, rng.randrange(10_000), split="train", rules=False)
    return task.question.partition("\n\n")[0]


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m concertino_train.conductor", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--start", type=Path, help="folder of a trained one to go on with")
    parser.add_argument("--seconds", type=float, default=600, help="CPU-seconds of training")
    parser.add_argument("--rows", type=int, default=8000, help="runs to learn from")
    parser.add_argument("--slips", type=float, default=0.06, help="share of rounds with a malformed call")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--vocabulary", type=int, default=1280)
    parser.add_argument("--rate", type=float, default=3e-3, help="learning rate of AdamW")
    parser.add_argument("--muon", type=float, default=0.02, help="learning rate of Muon")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
