"""The loaders as task sets: what the hook `concertino_tasks` offers of them.

The invariant: every set says which file it wants, and where its owners publish it.
"""

from __future__ import annotations

from concertino_bench.tasks.task import TaskSet

from . import (
    browsecomp,
    call_tasks,
    choices,
    competitions,
    contests,
    drop,
    function_calls,
    grade_school,
    multihop,
    open_questions,
    orchestration,
    own,
    plans,
    programs,
    recorded_calls,
    tool_benchmarks,
)


def task_sets() -> list[TaskSet]:
    """One task set per loader; each reads the file that its keyword `path` names."""
    return sorted([*_questions(), *_calls(), *_orchestration()], key=lambda each: each.name)


def _questions() -> list[TaskSet]:
    """Sets whose tasks have an answer."""
    return [
        TaskSet(
            "2wiki",
            "2WikiMultihopQA: questions that need several facts.",
            multihop.two_wiki,
            file="dev.json",
            source="github.com/Alab-NII/2wikimultihop, Apache-2.0",
        ),
        TaskSet(
            "aime",
            "AIME: competition problems with answers from 0 to 999.",
            competitions.aime,
            file="problems and answers of a year, as rows",
            source="huggingface.co/datasets/Maxwell-Jia/AIME_2024 and others; problems of the MAA",
        ),
        TaskSet(
            "amc",
            "AMC: competition problems with numbers as answers.",
            competitions.amc,
            file="problems and answers, as rows",
            source="huggingface.co/datasets/AI-MO/aimo-validation-amc; problems of the MAA",
        ),
        TaskSet(
            "apps",
            "APPS: programming problems of three levels, with tests.",
            contests.apps,
            file="test.jsonl or train.jsonl",
            source="huggingface.co/datasets/codeparrot/apps, or github.com/hendrycks/apps, MIT",
        ),
        TaskSet(
            "bamboogle",
            "Bamboogle: two-hop questions, no paragraphs.",
            multihop.bamboogle,
            file="Bamboogle Prerelease - Sheet1.csv",
            source="github.com/ofirpress/self-ask, MIT",
        ),
        TaskSet(
            "browsecomp",
            "BrowseComp: short answers that are hard to find, encrypted.",
            browsecomp.browsecomp,
            file="browse_comp_test_set.csv",
            source="github.com/openai/simple-evals (its code names the address), MIT",
        ),
        TaskSet(
            "browsecomp-plus",
            "BrowseComp-Plus: the same over a fixed corpus, encrypted.",
            browsecomp.browsecomp_plus,
            file="data/test-….parquet, or decrypted.jsonl of the owners' program",
            source="huggingface.co/datasets/Tevatron/browsecomp-plus, program: github.com/texttron/BrowseComp-Plus",
        ),
        TaskSet(
            "codecontests",
            "CodeContests: problems of programming contests, with tests.",
            contests.codecontests,
            file="data/test-….parquet or data/valid-….parquet",
            source="huggingface.co/datasets/deepmind/code_contests, CC BY 4.0",
        ),
        TaskSet(
            "drop",
            "DROP: questions over a paragraph, with numbers, dates or spans as answers.",
            drop.drop,
            file="drop_dataset_dev.json, or validation-00000-of-00001.parquet",
            source="huggingface.co/datasets/ucinlp/drop, CC BY-SA 4.0",
        ),
        TaskSet(
            "fanoutqa",
            "FanOutQA: questions that fan out over many pages.",
            multihop.fanoutqa,
            file="fanout-final-dev.json",
            source="github.com/zhudotexe/fanoutqa, CC BY-SA 4.0",
        ),
        TaskSet(
            "frames",
            "FRAMES: questions that need several pages of Wikipedia.",
            open_questions.frames,
            file="test.tsv",
            source="huggingface.co/datasets/google/frames-benchmark, Apache-2.0",
        ),
        TaskSet(
            "gpqa",
            "GPQA: questions of experts with four options.",
            open_questions.gpqa,
            file="gpqa_diamond.csv, gpqa_main.csv or gpqa_extended.csv",
            source="github.com/idavidrein/gpqa (in a zip archive with a password), CC BY 4.0",
        ),
        TaskSet(
            "gsm8k",
            "GSM8K: grade-school mathematics.",
            grade_school.gsm8k,
            file="test.jsonl or train.jsonl",
            source="github.com/openai/grade-school-math, MIT",
        ),
        TaskSet(
            "hle",
            "HLE: questions at the edge of what experts know.",
            open_questions.hle,
            file="test-00000-of-00001.parquet",
            source="huggingface.co/datasets/cais/hle (access is asked for), MIT",
        ),
        TaskSet(
            "hotpotqa",
            "HotpotQA: questions that need two facts.",
            multihop.hotpotqa,
            file="hotpot_dev_distractor_v1.json",
            source="hotpotqa.github.io, CC BY-SA 4.0",
        ),
        TaskSet(
            "humaneval",
            "HumanEval: Python functions to complete, with tests.",
            programs.humaneval,
            file="HumanEval.jsonl.gz",
            source="github.com/openai/human-eval, MIT",
        ),
        TaskSet(
            "jsonl",
            "A file of your own, its columns named by keywords or TOML.",
            own.jsonl,
            file="yours: JSON Lines, JSON, CSV, TSV or Parquet",
        ),
        TaskSet(
            "livecodebench",
            "LiveCodeBench: recent problems of programming contests, with tests.",
            contests.livecodebench,
            file="test.jsonl to test6.jsonl",
            source="huggingface.co/datasets/livecodebench/code_generation_lite, CC",
        ),
        TaskSet(
            "llmcompiler",
            "LLMCompiler: questions whose calls can run in parallel.",
            open_questions.llmcompiler,
            file="parallelqa_dataset.json, movie_recommendations_formatted.json or hotpotqa_comparison.json",
            source="github.com/SqueezeAILab/LLMCompiler, MIT",
        ),
        TaskSet(
            "math",
            "MATH and MATH-500: problems with LaTeX answers.",
            competitions.math,
            file="test.jsonl",
            source="huggingface.co/datasets/HuggingFaceH4/MATH-500, MIT",
        ),
        TaskSet(
            "mbpp",
            "MBPP: short Python programs, with tests.",
            programs.mbpp,
            file="mbpp.jsonl",
            source="github.com/google-research/google-research, folder mbpp, CC BY 4.0",
        ),
        TaskSet(
            "mmlu-pro",
            "MMLU-Pro: questions with up to ten options.",
            choices.mmlu_pro,
            file="test-00000-of-00001.parquet",
            source="huggingface.co/datasets/TIGER-Lab/MMLU-Pro, MIT",
        ),
        TaskSet(
            "musique",
            "MuSiQue: questions that need two to four facts.",
            multihop.musique,
            file="musique_ans_v1.0_dev.jsonl",
            source="github.com/StonyBrookNLP/musique, CC BY 4.0",
        ),
        TaskSet(
            "olympiadbench",
            "OlympiadBench: problems of olympiads, texts alone.",
            open_questions.olympiadbench,
            file="OE_TO_maths_en_COMP.json or OE_TO_physics_en_COMP.json, or the Parquet file of that name",
            source="github.com/OpenBMB/OlympiadBench, MIT",
        ),
        TaskSet(
            "simpleqa",
            "SimpleQA: short questions of fact.",
            open_questions.simpleqa,
            file="simple_qa_test_set.csv",
            source="github.com/openai/simple-evals (its code names the address), MIT",
        ),
    ]


def _calls() -> list[TaskSet]:
    """Sets whose tasks are answered with calls, or with a plan of steps."""
    return [
        TaskSet(
            "acebench",
            "ACEBench: which functions to call, and when none.",
            tool_benchmarks.acebench,
            call_tasks.world,
            file="data_normal_….json or data_special_….json, with possible_answer/ beside it",
            source="github.com/ACEBench/ACEBench, folder data_all, MIT",
        ),
        TaskSet(
            "api-bank",
            "API-Bank: the next call of a dialogue.",
            recorded_calls.api_bank,
            call_tasks.world,
            file="the folder level-1-given-desc or level-2-toolsearcher of lv1-lv2-samples",
            source="github.com/AlibabaResearch/DAMO-ConvAI, folder api-bank, Apache-2.0",
        ),
        TaskSet(
            "asynchow",
            "AsyncHow: the shortest time of an everyday plan.",
            plans.asynchow,
            file="async_benchmark.pkl",
            source="github.com/fangru-lin/graph-llm-asynchow-plan, MIT",
        ),
        TaskSet(
            "bfcl",
            "BFCL: which functions to call, with what.",
            function_calls.bfcl,
            function_calls.world,
            file="BFCL_v4_….json, with possible_answer/ and multi_turn_func_doc/ beside it",
            source="github.com/ShishirPatil/gorilla, folder berkeley-function-call-leaderboard, Apache-2.0",
        ),
        TaskSet(
            "nestful",
            "NESTFUL: calls that use what earlier calls gave.",
            tool_benchmarks.nestful,
            call_tasks.world,
            file="non-executable-sgd-data.json, with non-executable-sgd-spec.json beside it",
            source="github.com/IBM/NESTFUL, Apache-2.0",
        ),
        TaskSet(
            "seal-tools",
            "Seal-Tools: nested calls of many tools.",
            tool_benchmarks.seal_tools,
            call_tasks.world,
            file="dev.jsonl or test_….jsonl, with tool.jsonl beside it",
            source="github.com/fairyshine/Seal-Tools, Apache-2.0",
        ),
        TaskSet(
            "traject",
            "TRAJECT-Bench: parallel and sequential calls of real services.",
            recorded_calls.traject,
            call_tasks.world,
            file="parallel/DOMAIN/hard_ver.json or sequential/DOMAIN/traj_query.json, with tools/ above it",
            source="github.com/PengfeiHePower/TRAJECT-Bench, folder public_data, MIT",
        ),
        TaskSet(
            "when2call",
            "When2Call: call, ask back or decline.",
            tool_benchmarks.when2call,
            call_tasks.world,
            file="when2call_test_llm_judge.jsonl or when2call_test_mcq.jsonl",
            source="github.com/NVIDIA/When2Call, folder data/test, Apache-2.0",
        ),
        TaskSet(
            "worfbench",
            "WorFBench: a task as a graph of sub-tasks.",
            plans.worfbench,
            file="gold_traj/…/graph_eval.json",
            source="github.com/zjunlp/WorFBench, MIT",
        ),
    ]


def _orchestration() -> list[TaskSet]:
    """Rows that papers on orchestration published."""
    return [
        TaskSet(
            "gap",
            "GAP: recorded traces and training rows.",
            orchestration.gap,
            file="rows of traces, of training (Parquet too), or of questions",
            source="github.com/WJQ7777/Graph-Agent-Planning",
        ),
        TaskSet(
            "masbench-rows",
            "MASBench: published rows.",
            orchestration.masbench_rows,
            file="the published Parquet files, or JSON Lines",
            source="huggingface.co/datasets/Salesforce/MASBench, Apache-2.0",
        ),
        TaskSet(
            "toolorchestra",
            "ToolOrchestra: questions with tools, prices and preferences.",
            orchestration.toolorchestra,
            file="data.jsonl, or frames.jsonl and hle.jsonl of the evaluation",
            source="github.com/NVlabs/ToolOrchestra, Apache-2.0",
        ),
    ]
