"""What reads the files of known benchmarks, and a file of one's own: each loader gives `Task`s one by one.

rows            rows of local files, with their places; text_rows and parquet_rows read them, row_values shows values
streaming       the tasks of rows, with ids that differ; bad_rows: how many may be wrong
grade_school    GSM8K                       competitions    MATH, AIME, AMC
multihop        HotpotQA, 2Wiki, MuSiQue, Bamboogle, FanOutQA
choices         MMLU-Pro                    programs        HumanEval, MBPP
drop            DROP
contests        LiveCodeBench, CodeContests, APPS; plain_pickles: published pickles, plain data alone
function_calls  BFCL; dialect: its schemas  plans           AsyncHow
orchestration   MASBench, ToolOrchestra, GAP
own             a file of one's own, declared in TOML
predictions     recorded answers            catalogue       the loaders as task sets
selection       subsets and splits          hygiene         what two sets share

A loader reads a local file that its keyword `path` names; nothing is fetched. Rows, tasks and memory: one at a time.
Its keyword `split` is what every task's split is; without it, the column `split` says it. Whatever is wrong with a file
or a row is a `DataError`.
"""

from __future__ import annotations

from .bad_rows import SkippedRows, skip_bad_rows
from .catalogue import task_sets
from .hygiene import overlap
from .own import jsonl, load_toml
from .predictions import read_predictions
from .selection import split, subset
from .streaming import DataWarning, stream

__all__ = [
    "DataWarning",
    "SkippedRows",
    "jsonl",
    "load_toml",
    "overlap",
    "read_predictions",
    "skip_bad_rows",
    "split",
    "stream",
    "subset",
    "task_sets",
]
