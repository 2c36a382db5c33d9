"""Files that are not what they should be: every loader gives one error, which says where, what, and what to do next."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from concertino_bench import DataError, Task, loaders
from concertino_bench.loaders.grade_school import gsm8k
from concertino_bench.loaders.rows import EXTENSIONS, read_rows
from concertino_bench.masbench import make_task
from concertino_bench.masbench.rows import to_row
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

MESSAGES = [{"role": "user", "content": "Book a table."}]
FUNCTION = {"name": "book", "description": "Book.", "parameters": {"type": "dict", "properties": {}}}

# One good row per loader, the column that holds a text, and the column of the id.
GOOD: dict[str, tuple[dict[str, Any], str, str]] = {
    "2wiki": ({"_id": "a", "question": "Who?", "answer": "Ann", "context": [["T", ["One."]]]}, "question", "_id"),
    "acebench": (
        {"id": "a", "question": "user: Book.", "function": [FUNCTION], "ground_truth": {"book": {}}},
        "question",
        "id",
    ),
    "aime": ({"id": "a", "problem": "How many?", "answer": "033"}, "problem", "id"),
    "amc": ({"id": "a", "problem": "How many?", "answer": 27.0}, "problem", "id"),
    "api-bank": (
        {"id": "a", "turns": [{"role": "API", "api_name": "book", "param_dict": {"at": 7}, "result": "done"}]},
        "",
        "id",
    ),
    "apps": (
        {"id": "a", "question": "Add.", "input_output": '{"inputs": ["1 2"], "outputs": ["3"]}'},
        "question",
        "id",
    ),
    "asynchow": (
        {
            "id": "a",
            "title": "How to make tea",
            "steps": ["Boil.", "Pour."],
            "edges": [["1", "2"]],
            "durations_s": {"1": [60, 60], "2": [5, 5]},
            "makespan_s": [65, 65],
        },
        "title",
        "id",
    ),
    "bamboogle": ({"id": "a", "question": "Who?", "answer": "Ann"}, "question", "id"),
    "bfcl": ({"id": "a", "question": [MESSAGES], "function": [FUNCTION], "ground_truth": [{"book": {}}]}, "", "id"),
    # "Who?" and "Ann", encrypted with the canary "k".
    "browsecomp": ({"id": "a", "problem": "1TysFg==", "answer": "wzqt", "canary": "k"}, "problem", "id"),
    "browsecomp-plus": ({"query_id": "a", "query": "Who?", "answer": "Ann"}, "query", "query_id"),
    "codecontests": (
        {"name": "a", "description": "Add.", "public_tests": [{"input": "1 2", "output": "3"}]},
        "description",
        "name",
    ),
    "drop": (
        {"query_id": "a", "passage": "One.", "question": "How many?", "answers_spans": {"spans": ["1"]}},
        "question",
        "query_id",
    ),
    "fanoutqa": ({"id": "a", "question": "Which?", "answer": {"x": 1}}, "question", "id"),
    "frames": ({"id": "a", "Prompt": "Who?", "Answer": "Ann"}, "Prompt", "id"),
    "gap": ({"id": "a", "instruction": "Who?", "input": "", "output": "<answer>Ann</answer>"}, "instruction", "id"),
    "gpqa": (
        {"Record ID": "a", "Question": "Which?", "Correct Answer": "w"}
        | {f"Incorrect Answer {number}": text for number, text in enumerate("xyz", 1)},
        "Question",
        "Record ID",
    ),
    "gsm8k": ({"id": "a", "question": "How many?", "answer": "One.\n#### 1,000"}, "question", "id"),
    "hle": ({"id": "a", "question": "Who?", "answer": "Ann", "answer_type": "exactMatch"}, "question", "id"),
    "hotpotqa": ({"id": "a", "question": "Who?", "answer": "Ann"}, "question", "id"),
    "humaneval": (
        {"task_id": "a", "prompt": "def f():\n", "entry_point": "f", "test": "def check(candidate):\n    pass\n"},
        "prompt",
        "task_id",
    ),
    "jsonl": ({"id": "a", "question": "Who?", "answer": "Ann"}, "", "id"),
    "livecodebench": (
        {
            "question_id": "a",
            "question_content": "Add.",
            "public_test_cases": '[{"input": "1 2", "output": "3", "testtype": "stdin"}]',
        },
        "question_content",
        "question_id",
    ),
    "llmcompiler": ({"id": "a", "question": "Who?", "answer": "Ann"}, "question", "id"),
    "masbench-rows": (to_row(make_task("depth", 3, 0)), "prompt_json", ""),
    "math": ({"unique_id": "a", "problem": "How many?", "answer": r"\frac12"}, "problem", "unique_id"),
    "mbpp": (
        {"task_id": "a", "text": "Write f.", "code": "def f():\n    pass", "test_list": ["assert f() is None"]},
        "text",
        "task_id",
    ),
    "mmlu-pro": ({"id": "a", "question": "Which?", "options": ["x", "y"], "answer": "B"}, "question", "id"),
    "musique": ({"id": "a", "question": "Who?", "answer": "Ann", "answer_aliases": ["Anna"]}, "question", "id"),
    "nestful": (
        {"sample_id": "a", "input": "Book.", "output": [{"name": "book", "arguments": {"at": 7}, "label": "var1"}]},
        "input",
        "sample_id",
    ),
    "olympiadbench": ({"id": "a", "question": "How many?", "final_answer": ["$7$"]}, "question", "id"),
    "seal-tools": (
        {"id": "a", "query": "Book.", "calling": [{"api": "book", "parameters": {"at": 7}, "responses": []}]},
        "query",
        "id",
    ),
    "simpleqa": ({"id": "a", "problem": "Who?", "answer": "Ann"}, "problem", "id"),
    "traject": (
        {"id": "a", "query": "Book.", "calls": [{"tool": "Hotels: Book", "arguments": {"at": 7}, "output": "done"}]},
        "query",
        "id",
    ),
    "when2call": ({"uuid": "a", "question": "Who?", "tools": [], "correct_answer": "direct"}, "question", "uuid"),
    "worfbench": (
        {"id": "a", "task": "Make tea.", "gold_text": "Node:\n1: Boil.\nEdge: (START,1) (1,END)"},
        "task",
        "id",
    ),
    "toolorchestra": ({"index": "qa____1", "category": "qa", "problem": "2+2?", "answer": "4"}, "problem", "index"),
}
SETS = {each.name: each for each in loaders.task_sets()}
NAMES = sorted(GOOD)


def load(name: str, path: Path) -> Iterator[Task]:
    return SETS[name].load(path=path, id="id") if name == "jsonl" else SETS[name].load(path=path)


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    def write(*rows: Any, name: str = "rows.jsonl", end: str = "\n") -> Path:
        file = tmp_path / name
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        file.write_text("\n".join(lines) + end, encoding="utf-8")
        return file

    return write


def error_of(name: str, path: Path) -> str:
    with pytest.raises(DataError) as caught:
        list(load(name, path))
    return str(caught.value)


def test_every_loader_has_a_good_row_here() -> None:
    assert sorted(SETS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_good_row_becomes_a_task_that_is_plain_data(name: str, written: Callable[..., Path]) -> None:
    (task,) = load(name, written(GOOD[name][0]))
    assert json.loads(json.dumps(dict(task.metadata))) == task.metadata
    assert task.kind
    assert not list(Path(written(GOOD[name][0])).parent.glob("*.tmp"))


@pytest.mark.parametrize("name", NAMES)
def test_a_last_line_without_its_line_feed_is_a_whole_row(name: str, written: Callable[..., Path]) -> None:
    assert len(list(load(name, written(GOOD[name][0], end="")))) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_cut_last_line_is_an_error_after_the_whole_rows(name: str, written: Callable[..., Path]) -> None:
    row = json.dumps(GOOD[name][0])
    path = written(row, row[: len(row) // 2], end="")
    tasks = load(name, path)
    next(tasks)
    with pytest.raises(
        DataError, match=r"rows\.jsonl:2: the line ends inside a JSON value: the file is cut short; copy"
    ):
        next(tasks)


@pytest.mark.parametrize("name", NAMES)
def test_a_bad_row_is_left_out_of_every_set_where_that_is_allowed(name: str, written: Callable[..., Path]) -> None:
    path = written("{", {"unknown": 1}, GOOD[name][0])
    with loaders.skip_bad_rows(2) as skipped:
        assert len(list(load(name, path))) == 1
    assert [":1: " in str(skipped.errors[0]), ":2: " in str(skipped.errors[1])] == [True, True]
    with loaders.skip_bad_rows(1), pytest.raises(DataError, match="and this is one more"):
        list(load(name, path))


@pytest.mark.parametrize("name", [name for name in NAMES if GOOD[name][1]])
def test_a_misspelt_column_is_named_with_the_one_that_was_expected(name: str, written: Callable[..., Path]) -> None:
    row, column, _ = GOOD[name]
    misspelt = {(f"{key}z" if key == column else key): value for key, value in row.items()}
    if name == "masbench-rows":
        misspelt.pop("data")
    message = error_of(name, written(misspelt))
    assert message.startswith(str(written(misspelt)) + ":1: ")
    assert column in message or name == "gap"
    assert f"{column}z" in message or name == "masbench-rows"


@pytest.mark.parametrize("name", [name for name in NAMES if GOOD[name][1]])
def test_a_number_where_a_text_is_expected_is_named(name: str, written: Callable[..., Path]) -> None:
    row, column, _ = GOOD[name]
    message = error_of(
        name, written({**row, column: 5, "data": "{}"} if name == "masbench-rows" else {**row, column: 5})
    )
    assert re.search(r"rows\.jsonl:1: ", message)
    assert column in message
    assert re.search(r"a number \(5\)|int|got 5", message)


@pytest.mark.parametrize("name", [name for name in NAMES if GOOD[name][2]])
def test_an_id_that_is_there_twice_is_an_error_that_names_both_lines(name: str, written: Callable[..., Path]) -> None:
    row, _, column = GOOD[name]
    other = {**row, column: "other"}
    message = error_of(name, written(other, "", row, row))
    assert re.search(r"rows\.jsonl:4: the id '[^']+' is that of line 3 too; expected ids that differ", message)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", r"it holds no row; expected at least one"),
        (b"\n \n\n", r"it holds no row"),
        ('{"question": "caf\u00e9"}'.encode("latin-1"), r":1: byte 0xe9 is not UTF-8; expected UTF-8: convert"),
        ("{}".encode("utf-16"), r"text in UTF-16; expected UTF-8: convert it \(iconv -f UTF-16"),
        ("{}".encode("utf-32"), r"text in UTF-32"),
        (b"[1, 2]\n", r":1: a list \(\[1, 2\]\); expected a JSON object in each row"),
        (b'"text"\n', r":1: a text"),
        (b'{"question": NaN}\n', r":1: invalid JSON \(NaN is not JSON\)"),
        (b"question: Why?\n", r":1: invalid JSON \(column 1: Expecting value\)"),
        (b'{"a": 1} {"b": 2}\n', r":1: invalid JSON \(column 10: Extra data\)"),
        (b"[" * 100_000 + b"\n", r":1: the JSON is nested too deep"),
        (b"PAR1....", r"a Parquet file; expected text: rename it, so that it ends in '\.parquet'"),
        (b"version https://git-lfs.github.com/spec/v1\n", r"a Git LFS pointer, not the data"),
        (b"PK\x03\x04...", r"a zip archive"),
        (b"\x1f\x8b" + b"\0" * 30, r"the gzip file is damaged|cut short"),
    ],
    ids=[
        "empty",
        "blank",
        "latin-1",
        "utf-16",
        "utf-32",
        "list",
        "text",
        "NaN",
        "YAML",
        "two",
        "deep",
        "parquet",
        "lfs",
        "zip",
        "gzip",
    ],
)
def test_what_is_no_file_of_rows_is_one_clear_error(name: str, content: bytes, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(content)
    message = error_of(name, file)
    assert message.startswith(str(file))
    assert re.search(expected, message), message


@pytest.mark.parametrize("name", NAMES)
def test_a_path_that_is_no_file_is_refused_before_anything_is_read(name: str, written: Callable[..., Path]) -> None:
    path = written({}, name="questions.jsonl")
    (path.parent / "empty").mkdir()
    with pytest.raises(DataError, match=r"a folder without a file in \.jsonl, "):
        load(name, path.parent / "empty")
    with pytest.raises(DataError, match=r"file not found; did you mean 'questions\.jsonl'\?"):
        load(name, path.with_name("question.jsonl"))
    with pytest.raises(DataError, match="file not found; check the path"):
        load(name, Path("/nowhere/at/all.jsonl"))
    with pytest.raises(DataError, match=r"extension '\.xlsx'; expected one of .*: convert or rename it"):
        load(name, written({}, name="rows.xlsx"))
    with pytest.raises(DataError, match=r"no file fits this pattern"):
        load(name, path.parent / "rows-*.jsonl")
    with pytest.raises(DataError, match="an address; expected a local file: download it"):
        load(name, "https://example.org/rows.jsonl")  # type: ignore[arg-type]


def test_a_mark_of_the_byte_order_is_read_at_the_beginning_and_refused_behind_it(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    row = json.dumps(GOOD["gsm8k"][0]).encode()
    file.write_bytes(b"\xef\xbb\xbf" + row + b"\n")
    assert [task.id for task in gsm8k(path=file)] == ["a"]
    file.write_bytes(row + b"\n\xef\xbb\xbf" + row)
    assert "rows.jsonl:2: a byte order mark inside the file" in error_of("gsm8k", file)


def test_a_text_that_cannot_be_written_as_utf_8_is_refused(written: Callable[..., Path]) -> None:
    row = '{"question": "half \\ud800", "answer": "#### 1"}'
    assert ":1: half a surrogate pair" in error_of("gsm8k", written(row))


def test_a_blank_or_null_text_is_refused(written: Callable[..., Path]) -> None:
    assert "column 'question' is blank" in error_of("gsm8k", written({"question": " ", "answer": "#### 1"}))
    assert "column 'question' is null" in error_of("gsm8k", written({"question": None, "answer": "#### 1"}))


def test_a_file_without_rights_or_of_a_wrong_suffix_says_so(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl.gz"
    file.write_bytes(b'{"a": 1}\n')
    with pytest.raises(DataError, match=r"not gzip, though it ends in '\.gz'; expected gzip: rename"):
        list(read_rows(file))
    packed = gzip.compress(b'{"a": 1}\n' * 1000)
    file.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError, match="the gzip file is damaged or cut short"):
        list(read_rows(file))
    assert zlib.crc32(packed)


# -- the shapes of files -----------------------------------------------------------------------------------------------

ROWS = [{"question": 'Wie\u00a0viel? {["', "answer": "a, b"}, {"question": "Line\nbreak", "answer": "c"}]


def rows_of(path: Path) -> list[tuple[int, dict[str, Any]]]:
    return [(row.line, dict(row.data)) for row in read_rows(path)]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("packed", [False, True])
def test_a_json_list_is_read_object_by_object_with_lines(indent: int | None, packed: bool, tmp_path: Path) -> None:
    file = tmp_path / ("rows.json.gz" if packed else "rows.json")
    content = json.dumps(ROWS, indent=indent, ensure_ascii=False).encode()
    file.write_bytes(gzip.compress(content) if packed else content)
    lines = [1, 1] if indent is None else [2, 6]
    assert rows_of(file) == list(zip(lines, ROWS, strict=True))


def test_a_list_of_long_objects_is_read_though_none_fits_one_read(tmp_path: Path) -> None:
    rows = [{"question": "é" * 70_000 + str(number), "answer": "\\" * 999} for number in range(9)]
    file = tmp_path / "rows.json"
    file.write_text(json.dumps(rows, ensure_ascii=False, indent=1), encoding="utf-8")
    assert [data for _, data in rows_of(file)] == rows


def test_an_object_over_several_lines_is_one_row_and_json_lines_may_be_called_json(tmp_path: Path) -> None:
    file = tmp_path / "row.json"
    file.write_text(json.dumps(ROWS[0], indent=2), encoding="utf-8")
    assert rows_of(file) == [(1, ROWS[0])]
    file.write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    assert rows_of(file) == [(1, ROWS[0]), (2, ROWS[1])]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('[{"a": 1}, {"b": ', r":1: the list ends inside a value; the file is cut short"),
        ('[{"a": 1}', r":1: the list is not closed"),
        ('[{"a": 1}\n{"b": 2}]', r":2: '\{' behind an element, expected ',' or '\]'"),
        ('[{"a": 1},\n{"b" 2},' + ' {"c": 3},' * 99_999, r":2: invalid JSON \(Expecting ':' delimiter\)"),
        ('[{"a": 1}]\n{"b": 2}', r":2: text behind the list"),
        ("[]", "it holds no row"),
        ("[1]", r":1: a number \(1\); expected a JSON object"),
        ('[{"a": 1},]', r":1: invalid JSON"),
        ('{"a":\n1,\n"b" 2}', r":3: invalid JSON \(Expecting ':' delimiter\)"),
    ],
)
def test_a_json_list_that_is_wrong_names_its_line(content: str, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=expected):
        list(read_rows(file))


def test_a_byte_that_is_no_utf_8_inside_a_list_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    file.write_bytes(b'[\n{"a": "' + b"x" * 70_000 + b'"},\n{"a": "\xe9"}]')
    with pytest.raises(DataError, match=r"rows\.json:3: byte 0xe9 is not UTF-8"):
        list(read_rows(file))


def test_csv_and_tsv_are_read_with_quotes_line_breaks_and_missing_values(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_bytes(b'\xef\xbb\xbfquestion,answer,note\r\n"a ""b"", c\nd",1,\r\n\r\nx,2,y\r\n')
    assert rows_of(file) == [
        (2, {"question": 'a "b", c\nd', "answer": "1"}),
        (5, {"question": "x", "answer": "2", "note": "y"}),
    ]
    tabs = tmp_path / "rows.tsv"
    tabs.write_text("question\tanswer\na, b\t1\n", encoding="utf-8")
    assert rows_of(tabs) == [(2, {"question": "a, b", "answer": "1"})]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a,b\n1,2\n1,2,3\n", r":3: 3 cells; expected 2, as in the header"),
        ('a,b\n1,"2\n', r":2: invalid CSV \(unexpected end of data\); the file is cut short, or a quote is not closed"),
        ("a;b\n1;2\n", r":1: one column, 'a;b'; expected columns separated by ','"),
        ("a,a\n1,2\n", r":1: two columns 'a' in the header"),
        ("a,\n1,2\n", r":1: a column without a name"),
        ("a,b\n", "it holds no row"),
        (
            "a,b\n1," + "x" * 140_000 + "\n",
            r":2: invalid CSV \(field larger than field limit \(131072\)\); write the file as",
        ),
    ],
)
def test_a_csv_file_that_is_wrong_names_its_line(content: str, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=expected):
        list(read_rows(file))


# -- anything at all ---------------------------------------------------------------------------------------------------

ODD: list[Any] = [
    None,
    5,
    -1.5,
    True,
    "",
    " ",
    "x",
    "{",
    "9" * 5000,
    [],
    [1],
    {},
    {"a": 1},
    [[]],
    [{}],
    [None],
    [["a", "b"]],
    {"title": ["a"], "sentences": [5]},
    [{"name": 5}],
    [{"name": "x", "parameters": {"properties": {"a": 5}}}],
    [{"name": "x", "parameters": {"type": ["dict", None], "properties": []}}],
    {"target": 5},
    {"ground_truth": 5},
    [[{"role": "user", "content": ""}]],
    [{"role": "user", "content": "x"}],
    {"1": None},
    {"1": ["a", "b"]},
    [["a", 1]],
]
FURTHER: dict[str, list[dict[str, Any]]] = {
    "asynchow": [{"durations_text": {}}],
    "bfcl": [
        {"category": "parallel"},
        {"category": "multi_turn_base", "ground_truth": [["book()"]], "missed_function": {"1": ["x"]}},
    ],
    "gap": [
        {"output": None, "prompt": MESSAGES, "reward_model": {"ground_truth": {"target": ["x"]}}},
        {"output": None, "question": "Q", "answer": ["x"]},
    ],
    "hotpotqa": [{"context": [["T", ["x"]]], "supporting_facts": [["T", 0]], "answer_aliases": ["x"]}],
    "math": [{"level": 1, "solution": "x"}],
    "mbpp": [{"test_setup_code": "", "challenge_test_list": []}],
    "mmlu-pro": [{"answer_index": 1}],
    "musique": [{"paragraphs": [{"title": "a", "paragraph_text": "b"}], "answerable": True}],
    "toolorchestra": [
        {"tools": [], "pref_vec": {}, "tool_pricing": {}, "model_mapping": {}},
        {"category": "func_call", "example": {"user_scenario": {"instructions": {"known_info": "x"}}}},
    ],
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::concertino_bench.loaders.DataWarning")
@pytest.mark.parametrize("name", NAMES)
def test_any_value_in_any_column_gives_plain_tasks_or_the_one_error(name: str, written: Callable[..., Path]) -> None:
    refused = 0
    for further in [{}, *FURTHER.get(name, [])]:
        row = {**GOOD[name][0], **further}
        for column in (*row, "split"):
            for value in ODD:
                message = trouble_of(load, name, written({**row, column: value}))
                if message:
                    refused += 1
                    assert re.match(r".*rows\.jsonl:1: ", message), message
                    assert re.search("expected|correct|rename", message, re.IGNORECASE), message
    assert refused > 9


def trouble_of(read: Callable[..., Iterator[Any]], *arguments: Any) -> str:
    """What the one error says, empty where there is none; tasks that came before have to be plain data."""
    try:
        for each in read(*arguments):
            assert not isinstance(each, Task) or json.loads(json.dumps(dict(each.metadata))) == each.metadata
    except DataError as error:
        return str(error)
    return ""


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200) | st.text('[]{}",:\\ \n\r0aé', max_size=80).map(str.encode), st.sampled_from(EXTENSIONS))
def test_any_bytes_give_rows_or_the_one_error(tmp_path: Path, content: bytes, suffix: str) -> None:
    file = tmp_path / f"rows{suffix}"
    file.write_bytes(content)
    message = trouble_of(read_rows, file)
    if message:
        assert message.startswith(str(file))
        return
    for row in read_rows(file):
        assert isinstance(row.data, dict)
        assert 1 <= row.line <= content.count(b"\n") + content.count(b"\r") + 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("chunk", [1, 2, 7, 64])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.dictionaries(st.text(max_size=4), JSON, max_size=3), min_size=1, max_size=5),
    st.booleans(),
    st.sampled_from([None, 1]),
)
def test_a_list_read_in_pieces_of_any_size_is_what_json_reads_at_once(
    chunk: int, tmp_path: Path, listed: list[dict[str, Any]], ascii_only: bool, indent: int | None
) -> None:
    file = tmp_path / "rows.json"
    text = json.dumps(listed, ensure_ascii=ascii_only, indent=indent)
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("concertino_bench.loaders.text_rows.CHUNK", chunk)
        assert [data for _, data in rows_of(file)] == json.loads(text)
