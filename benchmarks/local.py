"""Local models: tokens per second of concertino-local and of transformers' own `generate`, in one process.

    python benchmarks/local.py [--json] [--quick]

Both use the same random Qwen3 (4 layers of 256, float32), the same ragged prompts of 16 to 96 tokens, greedy decoding
and one thread. *together*: N requests of equal length of reply; `generate` gets them as one left-padded batch. *mixed*:
32 requests with replies of 8 to 128 tokens, 8 at once; `generate` runs batches of 8 to the longest reply of each and
only tokens that were asked for count. The systems take turns; a figure is the median, and CPU time stands beside wall
time because the machine may be shared. No bar: a batch is worth what the last column says.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from measure import in_turn, machine

VOCABULARY = 512
BATCHES = (1, 4, 8, 16)
Work = list[tuple[list[int], int]]
"""Prompts, and the tokens that each is to be continued with."""


def make_model(folder: Path) -> None:
    """Write a random model whose replies never end by themselves."""
    import torch
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    torch.manual_seed(0)
    size = {"hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 4, "head_dim": 32}
    heads = {"num_attention_heads": 8, "num_key_value_heads": 4, "max_position_embeddings": 2048}
    config = Qwen3Config(vocab_size=VOCABULARY, eos_token_id=None, pad_token_id=0, **size, **heads)
    Qwen3ForCausalLM(config).save_pretrained(folder)
    words = Tokenizer(models.WordLevel({f"w{i}": i for i in range(VOCABULARY)}, unk_token="w0"))
    PreTrainedTokenizerFast(tokenizer_object=words).save_pretrained(folder)


def make_work(count: int, longest: int, shortest: int) -> Work:
    """Ragged prompts with the lengths of their replies."""
    random = Random(count)
    return [
        ([random.randrange(1, VOCABULARY) for _ in range(random.randrange(16, 97))], random.randint(shortest, longest))
        for _ in range(count)
    ]


def time_of(run: Callable[[], Any], tokens: int) -> tuple[float, float]:
    """Tokens per second, and CPU milliseconds per token."""
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return tokens / (time.perf_counter() - wall), (time.process_time() - cpu) * 1e3 / tokens


class Generate:
    """`generate` of transformers."""

    def __init__(self, folder: Path) -> None:
        import torch
        from transformers import AutoModelForCausalLM

        self._torch = torch
        self._network = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def __call__(self, work: Work, at_once: int) -> None:
        """Static batches, left-padded, each to its longest reply."""
        torch = self._torch
        for place in range(0, len(work), at_once):
            part = work[place : place + at_once]
            width = max(len(prompt) for prompt, _ in part)
            ids = torch.tensor([[0] * (width - len(prompt)) + prompt for prompt, _ in part])
            mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt, _ in part])
            longest = max(count for _, count in part)
            with torch.inference_mode():
                self._network.generate(ids, attention_mask=mask, max_new_tokens=longest, do_sample=False)


class Local:
    """concertino-local, one model per number of rows."""

    def __init__(self, folder: Path, loop: asyncio.AbstractEventLoop) -> None:
        self._folder, self._loop, self.models = folder, loop, dict[int, Any]()

    def __call__(self, work: Work, at_once: int) -> None:
        """All requests at once; the model's batch takes them as it can."""
        import concertino_local

        if at_once not in self.models:
            options = {"threads": 1, "dtype": "float32", "max_batch": at_once, "prefix_tokens": 0}
            self.models[at_once] = concertino_local.model("m", path=str(self._folder), **options).factory()
        self._loop.run_until_complete(self._all(self.models[at_once], work))

    @staticmethod
    async def _all(model: Any, work: Work) -> None:
        from concertino import Sampling

        greedy = Sampling(temperature=0.0)
        await asyncio.gather(*(model.generate_ids(prompt, greedy.with_(max_tokens=count)) for prompt, count in work))


def compare(what: str, systems: Sequence[Any], work: Work, at_once: int, repeat: int) -> dict[str, Any]:
    """One row: both systems on the same work."""
    tokens = sum(count for _, count in work)
    cpu: dict[str, list[float]] = {"local": [], "generate": []}

    def measured(name: str, system: Any) -> Callable[[], float]:
        def once() -> float:
            speed, milliseconds = time_of(lambda: system(work, at_once), tokens)
            cpu[name].append(milliseconds)
            return speed

        return once

    seen = in_turn({name: measured(name, system) for name, system in zip(cpu, systems, strict=True)}, repeat)
    speed = {name: statistics.median(values) for name, values in seen.items()}
    spent = {name: statistics.median(values[1:]) for name, values in cpu.items()}
    return {"what": what, "tokens_per_second": speed, "cpu_ms_per_token": spent}


def measure(quick: bool) -> list[dict[str, Any]]:
    """All rows."""
    import torch

    torch.set_num_threads(1)
    repeat, length = (1, 16) if quick else (5, 64)
    loop = asyncio.new_event_loop()
    with tempfile.TemporaryDirectory() as place:
        make_model(Path(place))
        local = Local(Path(place), loop)
        systems = (local, Generate(Path(place)))
        rows = [compare(f"together, {n}", systems, make_work(n, length, length), n, repeat) for n in BATCHES]
        rows.append(compare("mixed, 8 of 32", systems, make_work(32, 2 * length, 8), 8, repeat))
        for model in local.models.values():
            loop.run_until_complete(model.close())
    loop.close()
    return rows


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--quick", action="store_true", help="short and once: shows that it works, not how fast")
    options = parser.parse_args()
    if missing := [
        name for name in ("torch", "transformers", "concertino_local") if not importlib.util.find_spec(name)
    ]:
        reason = f"not measured: {', '.join(missing)} not installed; `pip install -e providers/local` adds it"
        print(json.dumps({"rows": [], "note": reason}) if options.json else reason)
        return 0
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    rows = measure(options.quick)
    if options.json:
        print(json.dumps({"machine": machine(), "rows": rows}))
        return 0
    print(f"{'':18}{'tokens/s':^30}{'CPU ms/token':^24}")
    print(f"{'requests':18}{'local':>10}{'generate':>11}{'ratio':>8}{'local':>12}{'generate':>11}")
    for row in rows:
        speed, cpu = row["tokens_per_second"], row["cpu_ms_per_token"]
        line = f"{row['what']:18}{speed['local']:10.0f}{speed['generate']:11.0f}"
        print(f"{line}{speed['local'] / speed['generate']:8.2f}{cpu['local']:12.3f}{cpu['generate']:11.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
