"""Other files of strangers: recordings, sessions, documents, locks, scorers, results, model folders and adapters."""

from __future__ import annotations

import ast
import importlib.util
import io
import json
import os
import pickle
import resource
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from concertino.core.documents import read_document
from concertino.core.errors import ConcertinoError, PoolError, UsageError
from concertino.core.regular_file import open_regular, read_regular
from concertino.runs.session import Session
from concertino.testing.recording_file import RecordingFile
from concertino.traces.journal_line import encode_json, frame

pytestmark = pytest.mark.usefixtures("here")
ROOT = Path(__file__).resolve().parents[3]


class Bomb:
    """What a pickle would run."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("burst",)


def needs(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


def one_sentence(error: BaseException, path: str) -> None:
    assert path in str(error)
    assert len(str(error)) < 1_500
    assert not Path("burst").exists()


# -- plain files -------------------------------------------------------------------------------------------------------

PLACES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a pipe": (os.mkfifo, "it is a named pipe, not a file"),
    "a device": (lambda p: p.symlink_to("/dev/zero"), "it is a device, not a file"),
    "a folder": (Path.mkdir, "Is a directory"),
    "a link to itself": (lambda p: p.symlink_to(p.name), "Too many levels"),
    "a link to nothing": (lambda p: p.symlink_to("gone"), "No such file"),
    "a terabyte of holes": (lambda p: (p.touch(), os.truncate(p, 1 << 40)), "at most 16,777,216 are read"),
}


@pytest.mark.parametrize("attack", PLACES)
def test_what_is_no_plain_file_is_refused_before_it_is_read(attack: str) -> None:
    make, words = PLACES[attack]
    make(Path("given.toml"))
    with pytest.raises(OSError, match=words):
        read_regular(Path("given.toml"))


def test_a_plain_file_is_read_as_it_is() -> None:
    Path("plain").write_bytes(b"text")
    assert read_regular("plain", 4) == b"text"
    with pytest.raises(OSError, match="at most 3 are read"):
        read_regular("plain", 3)
    with open_regular("plain") as file:
        assert file.read() == b"text"


# -- documents ---------------------------------------------------------------------------------------------------------

DOCUMENTS: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "a pipe": (".toml", os.mkfifo, "named pipe"),
    "a device": (".yaml", lambda p: p.symlink_to("/dev/zero"), "device"),
    "holes": (".toml", lambda p: (p.touch(), os.truncate(p, 1 << 40)), "at most"),
    "bytes": (".toml", lambda p: p.write_bytes(b"\xff\xfe"), "not UTF-8"),
    "a number of ten thousand digits": (".toml", lambda p: p.write_text("x = " + "9" * 10_000), "invalid TOML"),
    "deep lists": (".toml", lambda p: p.write_text("x = " + "[" * 5_000 + "]" * 5_000), "invalid TOML"),
    "deep tables": (".yaml", lambda p: p.write_text("{a: " * 3_000 + "1" + "}" * 3_000), "invalid YAML"),
    "a tag that runs code": (".yaml", lambda p: p.write_text("x: !!python/object/apply:os.mkdir [burst]"), "YAML"),
    "aliases of aliases": (
        ".yaml",
        lambda p: p.write_text(
            "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
            + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))
        ),
        "aliases stand for more",
    ),
    "a list that contains itself": (".yaml", lambda p: p.write_text("a: &a [*a]"), "contains itself"),
    "a number of ten thousand digits in YAML": (".yaml", lambda p: p.write_text("x: " + "9" * 10_000), "invalid YAML"),
    "a list": (".yaml", lambda p: p.write_text("- 1"), "expected `key: value` lines"),
    "a name that is a number": (".yaml", lambda p: p.write_text("1: x"), "expected `key: value` lines"),
}


@pytest.mark.parametrize("attack", DOCUMENTS)
def test_a_hostile_document_is_one_sentence(attack: str) -> None:
    suffix, make, words = DOCUMENTS[attack]
    path = Path(f"given{suffix}")
    make(path)
    with pytest.raises(PoolError, match=words) as caught:
        read_document(path)
    one_sentence(caught.value, path.name)


LOCKS = {
    "a pool that is a number": "pool = 3",
    "providers that are texts": 'pool = "x"\nproviders = {words = "1.0"}',
    "a provider without a version": 'pool = "x"\n[providers.words]\ndistribution = "w"',
    "members that are a list": 'pool = "x"\nmembers = []',
    "an unknown key": 'pool = "x"\nrun = "rm"',
    "nothing": "",
}


@pytest.mark.parametrize("attack", LOCKS)
def test_a_hostile_lock_of_a_pool_is_one_sentence(cli: Any, attack: str) -> None:
    Path("pool.toml").write_text("members = []\n")
    Path("pool.lock").write_text(LOCKS[attack])
    done = cli("pool", "check", "--pool", "pool.toml", "--lock", "pool.lock")
    assert done.exit_code in (1, 2)
    assert "unexpected" not in done.stderr
    assert "Traceback" not in done.output


# -- recordings and sessions -------------------------------------------------------------------------------------------

HEADER = '{"concertino": "recording", "version": 1}\n'
RECORDINGS: dict[str, str] = {
    "another header": '{"concertino": "recording", "version": 9}\n',
    "a header that is a list": "[]\n",
    "a line that is a number": HEADER + "3\n",
    "a key that is a list": HEADER + '{"key": [], "request": {}, "answer": {"text": "x"}}\n',
    "a number that is a text": HEADER + '{"key": "k", "number": "1", "request": {}, "answer": {"text": "x"}}\n',
    "a request that is a text": HEADER + '{"key": "k", "request": "x", "answer": {"text": "x"}}\n',
    "no answer": HEADER + '{"key": "k", "request": {}}\n',
    "an answer that is a text": HEADER + '{"key": "k", "request": {}, "answer": "x"}\n',
    "a text that is a list": HEADER + '{"key": "k", "request": {}, "answer": {"text": []}}\n',
    "usage that is a text": HEADER + '{"key": "k", "request": {}, "answer": {"text": "x", "usage": "much"}}\n',
    "an amount without end": HEADER + '{"key": "k", "request": {}, "answer": {"text": "x", "usage": {"usd": 1e999}}}\n',
    "a status that nobody knows": HEADER + '{"key": "k", "request": {}, "answer": {"status": "FINE"}}\n',
    "an error without a code": HEADER + '{"key": "k", "request": {}, "answer": {"status": "EXEC_ERR", "error": {}}}\n',
    "a tool call that is a text": HEADER + '{"key": "k", "request": {}, "answer": {"text": "", "tool_calls": ["x"]}}\n',
    "nested beyond the stack": HEADER + '{"key": "k", "request": ' + "[" * 100_000 + "]" * 100_000 + "}\n",
}


@pytest.mark.parametrize("attack", RECORDINGS)
def test_a_hostile_recording_is_one_sentence_with_its_line(attack: str) -> None:
    path = Path("given.jsonl")
    path.write_text(RECORDINGS[attack])
    with pytest.raises(UsageError) as caught:
        RecordingFile(path).read()
    one_sentence(caught.value, "given.jsonl:")


def test_a_recording_that_is_a_pipe_makes_nobody_wait() -> None:
    os.mkfifo("given.jsonl")
    with pytest.raises(UsageError, match="named pipe"):
        RecordingFile(Path("given.jsonl")).read()


TURN = {"run_id": "r", "question": "q", "observed": "", "answer": "a", "stop": "answered", "at": 1.0, "usage": {}}
TURNS: dict[str, dict[str, Any]] = {
    "a question that is a list": {"question": []},
    "an answer that is a number": {"answer": 3},
    "a time that is a text": {"at": "now"},
    "usage that is a text": {"usage": "much"},
    "an amount that is a list": {"usage": {"usd": []}},
    "a run above the folder": {"run_id": "../../secret"},
    "a run with an absolute name": {"run_id": "/etc/passwd"},
    "a run that is a number": {"run_id": 3},
}


@pytest.mark.parametrize("attack", TURNS)
def test_a_hostile_session_is_one_sentence(attack: str) -> None:
    path = Path("talk.session.jsonl")
    head = {"t": "header", "v": 1, "format": "concertino-session"}
    path.write_bytes(frame(encode_json(head), 0) + frame(encode_json({**TURN, **TURNS[attack]}), 1))
    with pytest.raises(ConcertinoError, match="not a turn of a session") as caught:
        _ = Session("talk", ".").turns
    one_sentence(caught.value, "talk.session.jsonl")


# -- scorers -----------------------------------------------------------------------------------------------------------


def _npz(**arrays: Any) -> bytes:
    import numpy

    file = io.BytesIO()
    numpy.savez_compressed(file, **arrays)
    return file.getvalue()


def _objects() -> bytes:
    import numpy

    return _npz(head=numpy.array([Bomb()], dtype=object))


def _zip_bomb() -> bytes:
    file = io.BytesIO()
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed,
        packed.open("head.npy", "w", force_zip64=True) as out,
    ):
        out.write(bytes(4 << 20))
    return file.getvalue()


def _head(text: str) -> bytes:
    import numpy

    return _npz(head=numpy.frombuffer(text.encode(), numpy.uint8))


SCORERS: dict[str, Callable[[], bytes]] = {
    "a pickle": lambda: pickle.dumps(Bomb()),
    "arrays of objects": _objects,
    "a text": lambda: b"hello",
    "nothing": lambda: b"",
    "a zip file of nothing": lambda: b"PK\x05\x06" + bytes(18),
    "megabytes in a few bytes": _zip_bomb,
    "a head that is no JSON": lambda: _head("hello"),
    "a head that is a list": lambda: _head("[]"),
    "a head of another format": lambda: _head('{"format": 99}'),
    "a head that is nested beyond the stack": lambda: _head("[" * 100_000),
    "a head without arrays": lambda: _head('{"format": 2, "bias": 0, "heads": 1, "about": {}}'),
}


@pytest.mark.parametrize("attack", SCORERS)
def test_a_hostile_scorer_is_one_sentence(attack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("concertino_scorer")
    from concertino_scorer import model_file
    from concertino_scorer.model_file import ScorerModel

    monkeypatch.setattr(model_file, "_MOST", 1 << 20)
    path = Path("given.npz")
    path.write_bytes(SCORERS[attack]())
    with pytest.raises(UsageError, match="cannot be read as a scorer") as caught:
        ScorerModel.load(path)
    one_sentence(caught.value, "given.npz")


# -- results of an evaluation ------------------------------------------------------------------------------------------

ITEM = {"t": "item", "key": ["s", "t", 0, 0], "kind": "x", "verdict": "right", "reason": ""}
ITEMS: dict[str, dict[str, Any]] = {
    "a key that is a text": {"key": "x"},
    "a key that is too long": {"key": [1, 2, 3, 4, 5, 6, 7]},
    "a verdict that nobody knows": {"verdict": "fine"},
    "seconds that are a text": {"seconds": "long"},
    "calls that are a list": {"calls": []},
    "usage that is a text": {"usage": "much"},
    "members that are a list": {"members": []},
    "a member without its kind": {"members": {"x": {}}},
    "a stop that is a number": {"stop": 3},
}


@pytest.mark.parametrize("attack", ITEMS)
def test_a_hostile_results_file_is_one_sentence(cli: Any, attack: str) -> None:
    needs("concertino_bench")
    from concertino_bench.reports.results import read_results

    lines = [{"t": "bench", "version": 1}, {**ITEM, **ITEMS[attack]}]
    Path("given.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with pytest.raises(UsageError) as caught:
        read_results("given.jsonl")
    one_sentence(caught.value, "given.jsonl")


# -- model folders -----------------------------------------------------------------------------------------------------


def _folder(**files: Any) -> Path:
    folder = Path("model")
    folder.mkdir()
    for name, content in {"config.json": {"model_type": "llama"}, "model.safetensors": b"", **files}.items():
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        if content is not None:
            (folder / name).write_bytes(data)
    return folder


def _with(name: str, make: Callable[[Path], object]) -> Path:
    folder = _folder(**{name: None})
    make(folder / name)
    return folder


INDEX = "model.safetensors.index.json"
TENSOR = {"dtype": "F32", "shape": [16, 8], "data_offsets": [0, 512]}
TINY = {
    "model_type": "llama",
    "hidden_size": 8,
    "intermediate_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 1,
    "num_key_value_heads": 1,
    "vocab_size": 16,
}


def _weights(header: Any = None, length: int | None = None, data: bytes = bytes(512), **config: Any) -> Path:
    """A tiny model whose weights begin with such a header."""
    text = header if isinstance(header, bytes) else json.dumps({"a": TENSOR} if header is None else header).encode()
    begin = struct.pack("<Q", len(text) if length is None else length)
    return _folder(**{"config.json": {**TINY, **config}, "model.safetensors": begin + text + data})


FOLDERS: dict[str, tuple[Callable[[], Path], str]] = {
    "weights that are a pickle": (
        lambda: _folder(**{"model.safetensors": None, "pytorch_model.bin": pickle.dumps(Bomb())}),
        "pickle",
    ),
    "no config": (lambda: _folder(**{"config.json": None}), "file not found"),
    "a config that is a list": (lambda: _folder(**{"config.json": []}), "expected a table"),
    "a config that is no JSON": (lambda: _folder(**{"config.json": b"{"}), "cannot be read"),
    "a config that is nested beyond the stack": (lambda: _folder(**{"config.json": b"[" * 100_000}), "cannot be read"),
    "a config that is a pipe": (lambda: _with("config.json", os.mkfifo), "it is not a file"),
    "a config that is a device": (lambda: _with("config.json", lambda p: p.symlink_to("/dev/zero")), "not a file"),
    "a config of holes": (
        lambda: _with("config.json", lambda p: (p.touch(), os.truncate(p, 1 << 40))),
        "at most",
    ),
    "a tokenizer that is a pipe": (lambda: _with("tokenizer.json", os.mkfifo), "it is not a file"),
    "weights that are a pipe": (lambda: _with("model.safetensors", os.mkfifo), "it is not a file"),
    "weights that are a device": (
        lambda: _with("model.safetensors", lambda p: p.symlink_to("/dev/zero")),
        "not a file",
    ),
    "an index that leads out": (lambda: _folder(**{INDEX: {"weight_map": {"a": "../other.safetensors"}}}), "names"),
    "an index with an absolute name": (lambda: _folder(**{INDEX: {"weight_map": {"a": "/etc/passwd"}}}), "names"),
    "an index of pickles": (lambda: _folder(**{INDEX: {"weight_map": {"a": "weights.bin"}}}), "names"),
    "an index of numbers": (lambda: _folder(**{INDEX: {"weight_map": {"a": 3}}}), "names"),
    "an index that is a list": (lambda: _folder(**{INDEX: []}), "expected a table"),
    "a header that is longer than its file": (lambda: _weights(length=10**6), "not a whole"),
    "a header of nearly all numbers": (lambda: _weights(length=2**63), "not a whole"),
    "a header that is a list": (lambda: _weights([]), "not a table"),
    "a header that is nested beyond the stack": (lambda: _weights(b"[" * 100_000), "not a table"),
    "a header that is no JSON": (lambda: _weights(b"{"), "not a table"),
    "a tensor whose name commands a terminal": (lambda: _weights({"\x1b]0;gone\x07": TENSOR}), "names a tensor"),
    "a tensor with a long name": (lambda: _weights({"a" * 10_000: TENSOR}), "names a tensor"),
    "ten million layers": (lambda: _weights({"a": TENSOR}, num_hidden_layers=10**7), "but the weights have 1 tensors"),
    "layers of a part": (lambda: _weights({"a": TENSOR}, text_config={"n_layers": 10**7}), "but the weights have"),
}


@pytest.mark.parametrize("attack", FOLDERS)
def test_a_hostile_model_folder_is_refused_before_a_library_opens_it(attack: str) -> None:
    needs("concertino_local")
    from concertino import ProviderError
    from concertino_local.weight_files import check_model_folder

    make, words = FOLDERS[attack]
    with pytest.raises(ProviderError, match=words) as caught:
        check_model_folder(make())
    one_sentence(caught.value, "model")


EMBEDDING = "model.embed_tokens.weight"
LIES: dict[str, Callable[[], Path]] = {
    "an offset beyond the file": lambda: _weights({EMBEDDING: {**TENSOR, "data_offsets": [0, 2**60]}}),
    "an offset before the file": lambda: _weights({EMBEDDING: {**TENSOR, "data_offsets": [-512, 0]}}),
    "offsets that overlap": lambda: _weights({EMBEDDING: TENSOR, "lm_head.weight": TENSOR}),
    "a shape of 2 to the 80": lambda: _weights({EMBEDDING: {**TENSOR, "shape": [2**40, 2**40]}}),
    "a shape that overflows": lambda: _weights({EMBEDDING: {**TENSOR, "shape": [2**62, 4, 0]}}),
    "a type of objects": lambda: _weights({EMBEDDING: {**TENSOR, "dtype": "OBJ"}}),
    "bytes of no tensor": lambda: _weights({EMBEDDING: TENSOR}, data=bytes(1024)),
    "a vocabulary of 100 thousand million": lambda: _weights({EMBEDDING: TENSOR}, vocab_size=10**11),
    "a width of a million": lambda: _weights({EMBEDDING: TENSOR}, hidden_size=10**6),
    "a width below nothing": lambda: _weights({EMBEDDING: TENSOR}, hidden_size=-1),
    "code of its own": lambda: _with_code(),
}


def _with_code() -> Path:
    mapped = {"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"}
    folder = _weights({EMBEDDING: TENSOR}, model_type="evil", auto_map=mapped)
    (folder / "evil.py").write_text("open('burst', 'w')", encoding="utf-8")
    return folder


@pytest.mark.slow  # transformers is imported: seconds
@pytest.mark.parametrize("attack", LIES)
def test_weights_that_lie_are_one_sentence_and_no_memory(attack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("concertino_local")
    from concertino import ProviderError
    from concertino_local.loading import load_network
    from concertino_local.settings import LocalSettings

    # A person would be asked whether code of the folder may run; a question that nobody has put is a fault.
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("somebody was asked"))
    folder = LIES[attack]()
    with pytest.raises(ProviderError) as caught:
        load_network(folder, LocalSettings(path=str(folder)))
    one_sentence(caught.value, "model")
    assert not Path("burst").exists()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert most < 8 << 30


def test_no_loader_of_ours_asks_for_the_code_of_a_folder() -> None:
    found = 0
    for file in (file for package in ("sdk", "contrib", "providers") for file in (ROOT / package).rglob("*.py")):
        if "tests" in file.relative_to(ROOT).parts:
            continue
        for call in (node for node in ast.walk(ast.parse(file.read_bytes())) if isinstance(node, ast.Call)):
            if ast.unparse(call.func).startswith("Auto") and ast.unparse(call.func).endswith(".from_pretrained"):
                found += 1
                given = {option.arg: ast.unparse(option.value) for option in call.keywords}
                # Two loaders give `**options`, which hold it.
                assert given.get("trust_remote_code", given.get(None)) in ("False", "options"), (file, call.lineno)
    assert found >= 8


def test_an_adapter_that_is_a_pickle_is_not_opened() -> None:
    needs("concertino_local")
    from concertino import ProviderError
    from concertino_local.weight_files import check_adapter_folder

    folder = _folder(**{"adapter_config.json": {}, "model.safetensors": None})
    (folder / "adapter_model.bin").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ProviderError, match="pickle"):
        check_adapter_folder(folder)
    assert not Path("burst").exists()


ADAPTERS: dict[str, tuple[Any, str]] = {
    "a list": ([], "expected a table"),
    "no JSON": (b"{", "cannot be read"),
    "a base that is a list": ({"base_model_name_or_path": ["x"]}, "names no base model"),
    "no base": ({}, "names no base model"),
}


@pytest.mark.parametrize("attack", ADAPTERS)
def test_a_hostile_adapter_is_one_sentence_in_training(attack: str) -> None:
    needs("concertino_train")
    from concertino_train.factories.models import base_of

    content, words = ADAPTERS[attack]
    folder = _folder(**{"adapter_config.json": content})
    with pytest.raises(UsageError, match=words) as caught:
        base_of(folder)
    one_sentence(caught.value, "model")


CHECKPOINTS = {"a list": "[]", "a number": "3", "no JSON": "{", "another format": '{"format": "x"}', "null": "null"}


@pytest.mark.parametrize("attack", CHECKPOINTS)
def test_a_hostile_checkpoint_is_one_sentence(attack: str) -> None:
    needs("concertino_train")
    from concertino_train.running.checkpoints import FILE, read_state

    folder = Path("checkpoint-3")
    folder.mkdir()
    (folder / FILE).write_text(CHECKPOINTS[attack])
    with pytest.raises(UsageError) as caught:
        read_state(folder)
    one_sentence(caught.value, "checkpoint-3")
