"""Read a file in which one answer is missing."""

import json
import os
import tempfile
from pathlib import Path

from concertino_bench.loaders import jsonl, skip_bad_rows

ROWS = [{"text": "4 * 4?", "gold": 16}, {"text": "5 * 5?", "gold": None}, {"text": "6 * 6?", "gold": 36}]

os.chdir(tempfile.mkdtemp())
Path("questions.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
with skip_bad_rows(1) as skipped:
    print([task.id for task in jsonl(path="questions.jsonl", question="text", answer="gold")])
for error in skipped.errors:
    print("left out:", error)
