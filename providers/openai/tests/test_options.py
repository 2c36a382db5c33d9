"""Options and declarations: each wrong option is named with what was given and what is expected."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import concertino_openai
import pytest
from concertino import ModelSpec, Pool, PoolError, Prices, SpecError
from concertino_openai import model
from concertino_openai.declaration import declare
from concertino_openai.dialects import DIALECT_OPTIONS, PRESETS, ServerDialect
from concertino_openai.late import LateModel
from concertino_openai.options import OPTIONS, OpenAISettings

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"modle": "x"}, "unknown option 'modle'; did you mean 'model'?"),
        ({"qqq": 1}, "unknown option 'qqq'; there are server, model, base_url"),
        ({"server": "vlm"}, "server = 'vlm'; expected one of openai, vllm, .*did you mean 'vllm'?"),
        ({"base_url": "localhost:8000"}, "base_url = 'localhost:8000'; expected an address such as"),
        ({"base_url": "ftp://x/v1"}, "expected an address such as"),
        ({"base_url": 8000}, "base_url = 8000"),
        ({"base_url": "http://x:99999/v1"}, "expected an address such as"),
        ({"model": ""}, "expected a text that is not empty"),
        ({"key_env": "not a name"}, "expected the NAME of an environment variable"),
        ({"connect_timeout": 0}, "connect_timeout = 0; expected a number of seconds > 0"),
        ({"idle_timeout": True}, "idle_timeout = True; expected a number of seconds"),
        ({"idle_timeout": float("inf")}, "expected a number of seconds"),
        ({"max_event_bytes": 10}, "expected a whole number of bytes >= 1024"),
        ({"max_reply_bytes": 1e9}, "expected a whole number of bytes"),
        ({"stream": "yes"}, "stream = 'yes'; expected true or false"),
        ({"headers": ["X"]}, "expected a table of header names and texts"),
        ({"headers": {"X-A": "a\nb"}}, "texts of one line"),
        ({"headers": {"Authorization": "x"}}, "no key in 'Authorization'"),
        ({"extra_body": 5}, "expected a table of fields"),
        ({"extra_body": {"messages": []}}, "no 'messages': that field is written by concertino"),
        ({"schema_style": "xml"}, "expected one of json_schema, structured_outputs"),
        ({"think": "maybe"}, "expected one of tags, open, off"),
        ({"max_tokens_field": "n_predict"}, "expected one of max_tokens, max_completion_tokens"),
        ({"reasoning_field": "a b"}, "expected the name of a field"),
        ({"key_header": "a b"}, "expected a header's name"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], text: str) -> None:
    with pytest.raises(SpecError, match=text) as raised:
        declare("fast", options)
    assert str(raised.value).startswith("model 'fast': ")


def test_a_declared_model_has_its_options_and_nothing_else() -> None:
    options = {"server": "vllm", "model": "Qwen/Qwen3-8B", "base_url": "http://gpu:8000/v1", "extra_body": {"top_k": 5}}
    spec = declare("fast", options)
    assert spec.name == "fast"
    assert dict(spec.options) == options
    assert json.loads(json.dumps(spec.to_json()))["options"] == options
    assert "Qwen/Qwen3-8B at http://gpu:8000/v1" in spec.description
    made = spec.factory()
    assert isinstance(made, LateModel)
    assert (made.settings.model, made.settings.dialect.name) == ("Qwen/Qwen3-8B", "vllm")


def test_python_and_a_pool_file_declare_the_same() -> None:
    written = concertino_openai.concertino_declare_model("fast", {"server": "vllm", "base_url": "http://gpu:8000/v1/"})
    spoken = model("fast", server="vllm", base_url="http://gpu:8000/v1/")
    assert written.to_json() == spoken.to_json()


def test_the_short_name_is_the_model_where_none_is_given() -> None:
    assert made(model("openai/gpt-5.4-mini")).settings.model == "gpt-5.4-mini"


def made(spec: ModelSpec) -> LateModel:
    model = spec.factory()
    assert isinstance(model, LateModel)
    return model


def test_fields_of_a_model_spec_can_be_given_in_python() -> None:
    spec = model("m", description="Good.", prices=Prices(1, 2), context=9, concurrency=3, timeout=None, max_tokens=5)
    assert (spec.description, spec.prices, spec.context, spec.concurrency) == ("Good.", Prices(1, 2), 9, 3)
    assert (spec.timeout, spec.max_tokens) == (None, 5)
    assert spec.options == {"model": "m"}


def test_a_server_that_answers_one_at_a_time_is_asked_one_at_a_time() -> None:
    assert model("m", server="llama-cpp-python").concurrency == 1
    assert model("m", server="llama-cpp-python", concurrency=4).concurrency == 4
    assert model("m", server="vllm").concurrency is None


def test_the_address_of_a_preset_is_used_without_one() -> None:
    for name, preset in PRESETS.items():
        if "{" not in preset.base_url:
            assert OpenAISettings.of({"server": name, "model": "m"}, "test").base_url == preset.base_url


def test_a_variable_in_the_address_of_a_preset_is_filled_in_or_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"server": "azure", "model": "m"}
    monkeypatch.delenv("AZURE_OPENAI_ENDPOINT", raising=False)
    with pytest.raises(SpecError, match="set the environment variable AZURE_OPENAI_ENDPOINT, or give base_url"):
        OpenAISettings.of(options, "test")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com/")
    found = OpenAISettings.of(options, "test")
    assert (found.base_url, found.key_env) == ("https://mine.openai.azure.com/openai/v1", "AZURE_OPENAI_API_KEY")


def test_the_environment_may_hold_another_address_and_the_key_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9000/v1/")
    found = OpenAISettings.of({"model": "m"}, "t")
    assert (found.base_url, found.key_env, found.own_address) == ("http://127.0.0.1:9000/v1", "", False)
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    assert OpenAISettings.of({"model": "m"}, "t").key_env == "OPENAI_API_KEY"
    # An address among the options is not the one of the environment, and gets no key of it.
    assert OpenAISettings.of({"model": "m", "base_url": "https://p.example/v1"}, "t").key_env == ""
    monkeypatch.setenv("OPENAI_BASE_URL", "nonsense")
    with pytest.raises(SpecError, match="OPENAI_BASE_URL"):
        OpenAISettings.of({"model": "m"}, "t")


def test_the_key_of_a_preset_goes_to_its_own_address_only() -> None:
    assert OpenAISettings.of({"model": "m"}, "t").key_env == "OPENAI_API_KEY"
    assert OpenAISettings.of({"model": "m", "base_url": "https://api.openai.com/v1/"}, "t").key_env == "OPENAI_API_KEY"
    assert OpenAISettings.of({"model": "m", "base_url": "https://proxy.example/v1"}, "t").key_env == ""
    assert OpenAISettings.of({"model": "m", "base_url": "https://p.example", "key_env": "OWN"}, "t").key_env == "OWN"


def test_every_difference_between_dialects_is_an_option() -> None:
    about_the_place = {"name", "evidence", "base_url", "key_env", "concurrency"}
    assert {field.name for field in fields(ServerDialect)} - about_the_place == set(DIALECT_OPTIONS)
    assert set(DIALECT_OPTIONS) < set(OPTIONS)
    assert {field.name for field in fields(OpenAISettings)} - {"dialect", "own_address"} < set(OPTIONS)


@pytest.mark.parametrize("server", sorted(PRESETS))
def test_a_dialect_can_be_written_as_options_and_read_back(server: str) -> None:
    preset = PRESETS[server]
    again = OpenAISettings.of({"server": "openai", "model": "m", **preset.options(PRESETS["openai"])}, "t").dialect
    assert all(getattr(again, name) == getattr(preset, name) for name in DIALECT_OPTIONS)
    assert preset.options(preset) == {}


def test_the_pool_file_of_the_readme_loads_and_is_saved_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (written,) = re.findall(r"```toml\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    file, copy = tmp_path / "pool.toml", tmp_path / "copy.toml"
    file.write_text(f"members = []\n{written}", encoding="utf-8")
    pool = Pool.load(file)
    fast, mini = pool.model("worker"), pool.model("openai/mini")
    assert (made(fast).settings.model, made(fast).settings.base_url) == ("Qwen/Qwen3-8B", "http://127.0.0.1:8000/v1")
    assert mini.prices is not None
    pool.save(copy)
    assert Pool.load(copy).model("worker").to_json() == fast.to_json()
    file.write_text('[models."openai/fast"]\nserver = "vlm"\n', encoding="utf-8")
    with pytest.raises((PoolError, SpecError), match="did you mean 'vllm'"):
        Pool.load(file)


def test_the_programs_of_the_readme_are_python() -> None:
    programs = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(programs) >= 3
    for program in programs:
        compile(program, "README.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_presets_say_how_they_are_known() -> None:
    exercised = {name for name, preset in PRESETS.items() if preset.evidence == "exercised"}
    assert exercised == {"vllm", "transformers", "llama-cpp-python"}


def test_the_readme_lists_every_option_as_the_code_knows_it() -> None:
    lines = README.read_text(encoding="utf-8").splitlines()
    expected = [f"| `{name}` | {o.type} | {o.default} | {o.about} |" for name, o in OPTIONS.items()]
    assert [line for line in lines if line in expected] == expected


def test_the_readme_names_every_preset() -> None:
    text = README.read_text(encoding="utf-8")
    for name, preset in PRESETS.items():
        assert re.search(rf"^\| `{re.escape(name)}` \|.*{preset.evidence}", text, re.MULTILINE), name


def test_the_package_is_found_as_a_plugin() -> None:
    (entry,) = importlib.metadata.entry_points(group="concertino", name="openai")
    assert entry.load() is concertino_openai


def test_every_public_name_exists() -> None:
    for name in concertino_openai.__all__:
        assert getattr(concertino_openai, name) is not None
    assert set(concertino_openai.__all__) <= set(dir(concertino_openai))
    with pytest.raises(AttributeError):
        concertino_openai.nothing  # noqa: B018
