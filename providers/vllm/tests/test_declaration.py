"""Declared models: options checked by name and type, servers shared, and nothing exposed that has no key."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import concertino_vllm
import pytest
from concertino import ModelSpec, Pool, SpecError
from concertino_vllm import VllmSettings
from concertino_vllm.declaration import OPTIONS

COMMAND = Path("/opt/vllm/bin/vllm")


def settings(**options: Any) -> VllmSettings:
    return concertino_vllm.server(concertino_vllm.model("m", **{"model": "someone/some-model", **options})).settings


# -- options -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"modle": "x"}, "model 'm': unknown option 'modle'; did you mean 'model'?"),
        ({"args": "--dtype half"}, "model 'm': args = '--dtype half'; expected a list of texts"),
        ({"port": "8000"}, "model 'm': port = '8000'; expected a whole number"),
        ({"port": 70_000}, "model 'm': port = 70000; expected 1 to 65535, or 0 for a free one"),
        ({"training": "yes"}, "model 'm': training = 'yes'; expected true or false"),
        ({"env": ["A=1"]}, "model 'm': env = ['A=1']; expected a table of texts"),
        ({"startup_seconds": -1}, "model 'm': startup_seconds = -1.0; expected a number of seconds above 0"),
        ({"args": ["--port", "1"]}, "model 'm': args: --port cannot stand there; give it as the option port = ..."),
        ({"args": ["--api-key=secret"]}, "model 'm': args: --api-key cannot stand there; everybody could see it"),
        ({"adapters": {"a/b": "x"}}, "model 'm': adapters: 'a/b' is not a valid name; expected letters, digits"),
        ({"lora_rank": 1000}, "model 'm': lora_rank = 1000; expected 1 to 512, or 0"),
        ({"attach": "gpu:8000"}, "model 'm': attach = 'gpu:8000'; expected an address such as 'http://127.0.0.1:8000'"),
        ({"attach": "http://gpu:8000", "port": 1}, "model 'm': port is about starting a server, and attach names one"),
        ({"think": "loud"}, "think = 'loud'; expected one of tags, open, off"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_wrong_option_is_named_with_what_is_expected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        concertino_vllm.model("m", **{"model": "someone/some-model", **options})


def test_a_model_is_needed() -> None:
    with pytest.raises(SpecError, match="model is missing; expected a folder or a name on the Hugging Face hub"):
        concertino_vllm.model("m")


def test_a_mere_name_is_a_model_of_a_server_that_runs_already(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_BASE_URL", "http://gpu.example:8000/v1")
    (model,) = Pool.of(orchestrator="vllm/Qwen/Qwen3-8B").models
    assert (model.name, model.endpoint) == ("vllm/Qwen/Qwen3-8B", "http://gpu.example:8000/v1")
    assert model.options == {"model": "Qwen/Qwen3-8B"}


def test_a_spec_tells_its_options_as_plain_data_and_waits_for_the_start(tmp_path: Path) -> None:
    spec = concertino_vllm.model("m", model=tmp_path, adapters={"a": tmp_path / "a"}, args=("--dtype", "half"))
    assert spec.options == {"model": str(tmp_path), "adapters": {"a": str(tmp_path / "a")}, "args": ["--dtype", "half"]}
    assert spec.timeout == 900
    assert concertino_vllm.model("m", model="a/b", startup_seconds=60).timeout == 360


def test_a_description_is_there_without_a_path_of_this_machine(tmp_path: Path) -> None:
    spec = concertino_vllm.model("m", model=tmp_path / "qwen", adapters={"fine": "x"})
    assert spec.description == "qwen on vLLM."
    assert concertino_vllm.model("n", of=spec, adapter="fine").description == "Adapter fine of qwen on vLLM."
    assert concertino_vllm.model("n", of=spec, description="Writes code.").description == "Writes code."


def test_declaring_a_model_imports_nothing_heavy() -> None:
    program = "import sys, concertino_vllm; concertino_vllm.model('m', model='a/b'); print('aiohttp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# -- sharing -------------------------------------------------------------------------------------------------


def test_equal_settings_are_one_server_and_one_endpoint_whatever_the_members_are_called() -> None:
    one, other = (concertino_vllm.model(name, model="a/shared", args=["-x"]) for name in ("one", "other"))
    third = concertino_vllm.model("third", model="a/shared")
    assert concertino_vllm.server(one) is concertino_vllm.server(other)
    assert concertino_vllm.server(one) is not concertino_vllm.server(third)
    assert one.endpoint == other.endpoint != third.endpoint


def test_a_pool_file_declares_a_server_once_and_further_members_of_it(tmp_path: Path) -> None:
    (tmp_path / "pool.toml").write_text(
        """
        members = []
        [models."vllm/tuned-in-file"]
        of = "vllm/base-in-file"
        adapter = "tuned"
        [models."vllm/base-in-file"]
        model = "someone/base"
        adapters = { tuned = "adapters/tuned" }
        """
    )
    pool = Pool.load(tmp_path / "pool.toml")
    tuned, base = pool["vllm/tuned-in-file"], pool["vllm/base-in-file"]
    assert concertino_vllm.server(tuned) is concertino_vllm.server(base)  # type: ignore[arg-type]
    model = tuned.factory()  # type: ignore[union-attr]
    assert (model.adapter, model.server) == ("tuned", concertino_vllm.server(base))  # type: ignore[arg-type]


def test_what_other_tables_of_a_pool_file_say_is_sent_there(tmp_path: Path) -> None:
    (tmp_path / "pool.toml").write_text('[models."vllm/x"]\nmodel = "a/b"\nprices = { input = 1 }\n')
    with pytest.raises(Exception, match=r"prices stands in another table of the file: \[prices\]"):
        Pool.load(tmp_path / "pool.toml")


def test_of_names_a_declared_model() -> None:
    concertino_vllm.model("known-server", model="a/b")
    spec = concertino_vllm.model("m", of="vllm/knownserver")
    with pytest.raises(SpecError, match=r"of = 'vllm/knownserver' is not declared; did you mean 'vllm/known-server'\?"):
        spec.factory()


def test_of_is_not_guessed_between_two_declarations() -> None:
    for port in (8001, 8002):
        concertino_vllm.model("twice", model="a/b", port=port)
    with pytest.raises(SpecError, match="was declared 2 times in this process, with different settings"):
        concertino_vllm.model("m", of="vllm/twice").factory()


def test_of_and_settings_of_a_server_exclude_each_other() -> None:
    base = concertino_vllm.model("base", model="a/b")
    with pytest.raises(SpecError, match="of takes the server of another model; so leave out args"):
        concertino_vllm.model("m", of=base, args=["-x"])


def test_an_unknown_adapter_is_named() -> None:
    spec = concertino_vllm.model("m", model="a/b", adapters={"policy": "x"}, adapter="polciy")
    with pytest.raises(SpecError, match=r"adapter = 'polciy' is not of the server; did you mean 'policy'\?"):
        spec.factory()


def test_a_model_of_somebody_else_has_no_server() -> None:
    import concertino_openai

    spec = concertino_openai.model("m", server="vllm", model="x")
    with pytest.raises(SpecError, match="is not served by concertino-vllm"):
        concertino_vllm.server(spec)


# -- the command ---------------------------------------------------------------------------------------------


def test_the_command_names_model_address_and_what_it_always_needs(tmp_path: Path) -> None:
    command = settings(model=tmp_path, args=["--max-model-len", "128"]).command(COMMAND)
    assert command[:3] == [str(COMMAND), "serve", str(tmp_path)]
    assert command[3:7] == ["--host", "127.0.0.1", "--port", "{port}"]
    assert command[7:] == ["--disable-uvicorn-access-log", "--enable-prompt-tokens-details", "--max-model-len", "128"]


def test_a_users_flag_wins_over_ours_in_every_spelling() -> None:
    given = ["--no-enable-prompt-tokens-details", "--disable_uvicorn_access_log", "--max-lora-rank=64"]
    command = settings(args=given, lora_rank=8).command(COMMAND)
    assert "--enable-prompt-tokens-details" not in command
    assert "--disable-uvicorn-access-log" not in command
    assert "--max-lora-rank" not in command


def test_adapters_prepare_the_server_for_their_rank(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text('{"r": 20, "rank_pattern": {"q_proj": 40}}')
    command = settings(adapters={"policy": tmp_path}).command(COMMAND)
    assert command[command.index("--max-lora-rank") + 1] == "64"
    assert f"policy={tmp_path}" in command


def test_training_opens_the_control_endpoints_and_brings_the_extension(tmp_path: Path) -> None:
    training = settings(training=True)
    env = training.environment(COMMAND, tmp_path)
    assert (env["VLLM_SERVER_DEV_MODE"], env["VLLM_ALLOW_RUNTIME_LORA_UPDATING"]) == ("1", "1")
    assert "concertino_vllm_worker.Weights" in training.command(COMMAND)
    folder = env["PYTHONPATH"].split(":")[0]
    assert [path.name for path in Path(folder).glob("*.py")] == ["concertino_vllm_worker.py"]
    plain = settings().environment(COMMAND, tmp_path)
    assert "VLLM_SERVER_DEV_MODE" not in plain
    assert "concertino_vllm_worker.Weights" not in settings().command(COMMAND)


def test_a_key_goes_through_the_environment_and_never_into_the_arguments(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SERVER_KEY", "not-for-everybody")
    with_key = settings(key_env="SERVER_KEY")
    assert with_key.environment(COMMAND, tmp_path)["VLLM_API_KEY"] == "not-for-everybody"
    assert "not-for-everybody" not in " ".join(with_key.command(COMMAND))
    monkeypatch.delenv("SERVER_KEY")
    with pytest.raises(SpecError, match="key_env = 'SERVER_KEY': the environment variable is not set"):
        with_key.environment(COMMAND, tmp_path)


# -- exposure ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.3", "gpu.example.org"])
@pytest.mark.parametrize(
    "opened",
    [
        {"training": True},
        {"env": {"VLLM_SERVER_DEV_MODE": "1"}},
        {"env": {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "true"}},
    ],
    ids=["training", "dev mode", "adapters"],
)
def test_a_server_that_anyone_can_control_is_refused_on_an_address_that_others_reach(
    host: str, opened: dict[str, Any]
) -> None:
    with pytest.raises(SpecError, match=r"(?s)host = .*: refused, because .* ask for no key"):
        settings(host=host, **opened)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "localhost", "::1"])
def test_on_a_loopback_address_it_is_allowed(host: str) -> None:
    assert settings(host=host, training=True).local


def test_an_open_server_without_dev_mode_is_the_users_choice() -> None:
    assert not settings(host="0.0.0.0").local


def test_dev_mode_in_the_environment_of_this_process_counts_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened = settings(host="0.0.0.0")
    monkeypatch.setenv("VLLM_SERVER_DEV_MODE", "1")
    with pytest.raises(SpecError, match="refused, because the endpoints that this opens"):
        opened.environment(COMMAND, tmp_path)


# -- the README ----------------------------------------------------------------------------------------------

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_readme_lists_every_option_with_its_default() -> None:
    rows = [row.split("|")[1:-1] for row in README.splitlines() if row.startswith("| `")]
    listed = {name: row[2].strip().strip("`") for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    assert set(OPTIONS) <= set(listed)
    words = {"model": "needed", "executable": "looked for", "log": "a temporary file", "env": "{}", "adapters": "{}"}
    plain = {(): "[]", False: "false", None: "none", "": "none", 600.0: "600", 10.0: "10"}
    for field in dataclasses.fields(VllmSettings):
        default = "0" if field.type == "int" else plain.get(field.default, field.default)
        assert (field.name, listed[field.name]) == (field.name, words.get(field.name, default))


def test_the_pool_files_of_the_readme_load(tmp_path: Path) -> None:
    for number, text in enumerate(re.findall(r"```toml\n(.*?)```", README, re.DOTALL)):
        file = tmp_path / f"{number}.toml"
        file.write_text(text)
        assert all(isinstance(member, ModelSpec) for member in Pool.load(file).members if member.provider == "vllm")


async def test_the_programs_of_the_readme_run_as_far_as_they_need_no_server() -> None:
    for program in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        exec(compile(program, "README.md", "exec"), {})
