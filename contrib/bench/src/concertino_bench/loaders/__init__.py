"""What reads the files of known benchmarks, and a file of one's own: each loader gives `Task`s one by one.

rows            rows of local files, with their places; stream: the tasks of rows, with ids that differ
grade_school    GSM8K                       competitions    MATH, AIME, AMC
multihop        HotpotQA, 2Wiki, MuSiQue, Bamboogle, FanOutQA
choices         MMLU-Pro                    programs        HumanEval, MBPP
function_calls  BFCL; dialect: its schemas  plans           AsyncHow
orchestration   MASBench, ToolOrchestra, GAP
own             a file of one's own, declared in TOML
predictions     recorded answers            catalogue       the loaders as task sets
selection       subsets and splits          hygiene         what two sets share

A loader reads a local file that its keyword `path` names; nothing is fetched. Rows, tasks and memory: one at a time.
"""

from .catalogue import task_sets
from .choices import mmlu_pro
from .competitions import aime, amc, boxed, math
from .dialect import json_schema
from .function_calls import CallWorld, bfcl
from .grade_school import gsm8k
from .hygiene import OverlapReport, Pair, overlap, words_of
from .multihop import bamboogle, fanoutqa, hotpotqa, multihop, musique, two_wiki
from .orchestration import gap, masbench_rows, toolorchestra
from .own import Column, Columns, jsonl, load_toml
from .plans import asynchow, durations_of, plan_of
from .predictions import Prediction, read_predictions
from .programs import humaneval, mbpp
from .rows import Row, read_rows
from .selection import in_first_part, split, subset
from .stream import DataWarning, stream

__all__ = [
    "CallWorld",
    "Column",
    "Columns",
    "DataWarning",
    "OverlapReport",
    "Pair",
    "Prediction",
    "Row",
    "aime",
    "amc",
    "asynchow",
    "bamboogle",
    "bfcl",
    "boxed",
    "durations_of",
    "fanoutqa",
    "gap",
    "gsm8k",
    "hotpotqa",
    "humaneval",
    "in_first_part",
    "json_schema",
    "jsonl",
    "load_toml",
    "masbench_rows",
    "math",
    "mbpp",
    "mmlu_pro",
    "multihop",
    "musique",
    "overlap",
    "plan_of",
    "read_predictions",
    "read_rows",
    "split",
    "stream",
    "subset",
    "task_sets",
    "toolorchestra",
    "two_wiki",
    "words_of",
]
