"""The parts that need no process: causes, metrics, the gate, files of weights, trajectories."""

from __future__ import annotations

import asyncio
import json
import struct
import threading
from pathlib import Path
from typing import Any

import pytest
from concertino import UsageError
from concertino_vllm import PolicyGeneration, TokenDrift, TokenTrajectory
from concertino_vllm.policy.weights import check_adapter, check_weights, outgoing
from concertino_vllm.serving.end_causes import explain_end, last_line, quote
from concertino_vllm.serving.gate import RequestGate
from concertino_vllm.serving.metrics import read_metrics

# -- causes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("OSError: [Errno 98] Address already in use", "its port is taken"),
        (
            "(EngineCore pid=7) ERROR 01-02 03:04:05 [core.py:15] ValueError: Free memory on device cuda:0 (3.1/79.1 "
            "GiB) on startup is less than desired GPU memory utilization (0.9, 71.2 GiB).",
            "too little memory is free on the device; end what else uses it",
        ),
        (
            "ValueError: To serve at least one request with the model's max seq len (40960), (5.62 GiB KV cache is "
            "needed, which is larger than the available KV cache memory (2.1 GiB).",
            "the KV cache is too small for one request of full length; give it less to hold (--max-model-len",
        ),
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 96 MiB.",
            "does not fit into the device's memory",
        ),
        ("RuntimeError: Device string must not be empty", "this vLLM finds no device that it can use"),
        ("importlib.metadata.PackageNotFoundError: No package metadata was found for vllm", "its own version"),
        ("RuntimeError: operator torchvision::nms does not exist", "its environment mixes torch builds"),
        ("vllm: error: unrecognized arguments: --no-such-flag", "it refuses the arguments; correct args"),
        ("KeyError: 'invalid tool call parser: nosuch (chose from { hermes })'", "it has no such parser"),
        ("1. Provide a valid Hugging Face repository ID.", "it finds no such model; give a folder with a config.json"),
        ("ValueError: No common block size for 16 (CPU_ATTN: [MultipleOf(32)]).", "on CPU a multiple of 32"),
        ("ValueError: LoRA rank 4 is greater than max_lora_rank 1.", "an adapter's rank is too large; raise lora_rank"),
        ("ValueError: something that nobody has seen", "ValueError: something that nobody has seen (code 1)"),
    ],
    ids=lambda text: text[:24],
)
def test_the_end_of_a_log_gives_a_cause_and_advice(line: str, told: str) -> None:
    lines = ["INFO starting", line, "RuntimeError: Engine core initialization failed. See root cause above."]
    assert told in explain_end(1, lines)


def test_a_signal_is_explained() -> None:
    assert "ran out of memory" in explain_end(-9, ["loading"])
    assert "another processor" in explain_end(-4, [])
    assert explain_end(-15, []) == "it ended with signal SIGTERM"


def test_the_log_is_quoted_without_noise_and_the_last_line_without_prefix(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(
        "(EngineCore pid=71) INFO 11-21 12:30:14 [core.py:195] Loading weights\n\nresource_tracker: There appear\n"
    )
    assert last_line(log) == "Loading weights"
    assert quote(log) == f"\nIts log: {log}\n  Loading weights"
    assert quote(tmp_path / "none").endswith("(empty)")


# -- metrics -------------------------------------------------------------------------------------------------


def test_metrics_are_added_up_over_engines_and_the_fullest_cache_counts() -> None:
    metrics = read_metrics(
        '# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine="0",model_name="m"} 3.0\n'
        'vllm:num_requests_running{engine="1",model_name="m"} 2.0\nvllm:num_requests_waiting{engine="0"} 7.0\n'
        'vllm:num_requests_waiting_by_reason{engine="0",reason="full"} 99\nvllm:kv_cache_usage_perc{engine="0"} 0.25\n'
        'vllm:kv_cache_usage_perc{engine="1"} 0.75\nvllm:prefix_cache_queries_total{engine="0"} 200.0\n'
        'vllm:prefix_cache_hits_total{engine="0"} 1.5e+02\nvllm:generation_tokens_total{engine="0"} 4515.0\n'
    )
    assert (metrics.running, metrics.waiting, metrics.kv_cache_usage) == (5, 7, 0.75)
    assert (metrics.prefix_hit_rate, metrics.generation_tokens) == (0.75, 4515)


def test_metrics_of_another_server_are_refused() -> None:
    with pytest.raises(ValueError, match=r"expected those of vLLM, got 'llamacpp:tokens 3'"):
        read_metrics("llamacpp:tokens 3")


# -- the gate ------------------------------------------------------------------------------------------------


async def test_requests_pass_together_and_a_change_passes_alone_in_the_order_of_coming() -> None:
    gate, seen = RequestGate(), []

    async def request(name: str, seconds: float) -> None:
        async with gate.shared():
            seen.append(f"{name} in")
            await asyncio.sleep(seconds)
            seen.append(f"{name} out")

    async def change() -> None:
        async with gate.alone():
            seen.append("change in")
            await asyncio.sleep(0.01)
            seen.append("change out")

    tasks = [request("a", 0.03), request("b", 0.01), change(), request("c", 0.0)]
    await asyncio.gather(*tasks)
    assert seen == ["a in", "b in", "b out", "a out", "change in", "change out", "c in", "c out"]
    assert not gate.busy


async def test_whoever_stops_waiting_leaves_the_gate_as_it_was() -> None:
    gate = RequestGate()
    async with gate.shared():
        change = asyncio.create_task(gate.alone().__aenter__())
        await asyncio.sleep(0)
        behind = asyncio.create_task(gate.shared().__aenter__())
        await asyncio.sleep(0)
        change.cancel()
        await behind  # comes in although the first is still inside
    await asyncio.gather(change, return_exceptions=True)


async def test_a_waiter_that_is_cancelled_in_the_moment_of_its_turn_passes_it_on() -> None:
    gate = RequestGate()
    first = gate.alone()
    await first.__aenter__()
    waiting = [asyncio.create_task(gate.alone().__aenter__()) for _ in range(2)]
    await asyncio.sleep(0)
    await first.__aexit__(None, None, None)
    waiting[0].cancel()
    await asyncio.wait_for(waiting[1], 1)
    await asyncio.gather(waiting[0], return_exceptions=True)


async def test_the_gate_works_across_event_loops() -> None:
    gate, seen = RequestGate(), []

    async def elsewhere() -> None:
        async with gate.alone():
            seen.append("elsewhere")

    async with gate.shared():
        thread = threading.Thread(target=lambda: asyncio.run(elsewhere()))
        thread.start()
        await asyncio.sleep(0.1)
        seen.append("here")
    await asyncio.to_thread(thread.join)
    assert seen == ["here", "elsewhere"]


# -- files of weights ----------------------------------------------------------------------------------------


def write(folder: Path, shapes: dict[str, list[int]], **config: Any) -> Path:
    folder.mkdir(exist_ok=True)
    header, end = {}, 0
    for name, shape in shapes.items():
        size = 4
        for length in shape:
            size *= length
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    raw = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(raw)) + raw + bytes(end))
    (folder / "config.json").write_text(json.dumps({"hidden_size": 2, **config}))
    return folder


SHAPES = {"embed": [4, 2], "layer": [2, 2]}


@pytest.mark.parametrize(
    ("shapes", "config", "message"),
    [
        ({"embed": [4, 2]}, {}, "layer is missing, which the served"),
        ({**SHAPES, "layer": [2, 3]}, {}, r"layer has the shape \(2, 3\), and \(2, 2\) in the served"),
        ({**SHAPES, "more": [1]}, {}, "more is not a tensor of the served"),
        (SHAPES, {"rope_theta": 2}, "rope_theta is 2, and 1 in the served .*; start another server"),
    ],
    ids=["missing", "shape", "more", "config"],
)
def test_weights_that_do_not_fit_the_served_model_are_refused(
    tmp_path: Path, shapes: dict[str, list[int]], config: dict[str, Any], message: str
) -> None:
    served = write(tmp_path / "served", SHAPES, rope_theta=1)
    with pytest.raises(UsageError, match=message):
        check_weights(write(tmp_path / "new", shapes, **{"rope_theta": 1, **config}), served)


def test_weights_that_fit_are_taken_whatever_the_version_that_wrote_them(tmp_path: Path) -> None:
    served = write(tmp_path / "served", SHAPES, transformers_version="4", torch_dtype="float32", old=1)
    new = write(tmp_path / "new", SHAPES, transformers_version="5", dtype="float32", new={"a": 1})
    check_weights(new, served)
    check_weights(new, None)


def test_a_tied_output_layer_may_be_there_or_not(tmp_path: Path) -> None:
    served = write(tmp_path / "served", SHAPES, tie_word_embeddings=True)
    check_weights(write(tmp_path / "new", {**SHAPES, "lm_head.weight": [4, 2]}, tie_word_embeddings=True), served)


def test_a_file_that_is_still_being_written_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "new", SHAPES)
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(UsageError, match=r"not a whole safetensors file: it has .* wait until it is written"):
        check_weights(folder, None)
    file.write_bytes(b"")
    with pytest.raises(UsageError, match="not a whole safetensors file"):
        check_weights(folder, None)


def test_an_index_whose_files_are_not_all_there_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "new", SHAPES)
    index = {"weight_map": {"embed": "model.safetensors", "layer": "model-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(UsageError, match=r"it names model-2\.safetensors, which is not there"):
        check_weights(folder, None)


def test_a_folder_without_weights_or_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="folder not found; expected weights as save_pretrained writes them"):
        check_weights(tmp_path / "none", None)
    folder = write(tmp_path / "new", SHAPES)
    (folder / "config.json").unlink()
    with pytest.raises(UsageError, match=r"no config\.json"):
        check_weights(folder, None)
    with pytest.raises(UsageError, match=r"no adapter_config\.json; expected an adapter"):
        check_adapter(folder, 8)


def test_a_state_needs_a_served_folder() -> None:
    with pytest.raises(UsageError, match="a state can only be loaded where the server's model is a folder"):
        outgoing({}, None)


# -- trajectories --------------------------------------------------------------------------------------------


def turn(prompt: list[int], sampled: list[int], version: int = 0) -> PolicyGeneration:
    return PolicyGeneration(tuple(prompt), tuple(sampled), tuple(-0.5 for _ in sampled), "", "stop", version, "m")


def test_a_trajectory_masks_what_the_policy_did_not_sample() -> None:
    trajectory = TokenTrajectory()
    trajectory.add(turn([1, 2], [3, 4], 7))
    trajectory.add(turn([1, 2, 3, 4, 5], [6], 8))
    assert trajectory.ids == [1, 2, 3, 4, 5, 6]
    assert trajectory.mask == [False, False, True, True, False, True]
    assert trajectory.logprobs == [0.0, 0.0, -0.5, -0.5, 0.0, -0.5]
    assert trajectory.versions == [7, 8]


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ([1, 2, 3, 9, 5], r"turn 2: its prompt differs at id 3 of 4: \[4\] were sampled before, and it has \[9, 5\]"),
        ([1, 9, 3, 4], r"turn 2: its prompt differs at id 1 of 4: \[2, 3, 4\] were shown before"),
        ([1, 2, 3], r"turn 2: its prompt differs at id 3 of 4: \[4\] were sampled before, and it has \[\]"),
    ],
    ids=["retokenised", "rewritten", "shortened"],
)
def test_a_turn_that_does_not_continue_the_one_before_is_refused_with_its_place(
    prompt: list[int], message: str
) -> None:
    trajectory = TokenTrajectory()
    trajectory.add(turn([1, 2], [3, 4]))
    with pytest.raises(TokenDrift, match=message):
        trajectory.add(turn(prompt, [6]))
    assert trajectory.ids == [1, 2, 3, 4]


def test_ids_without_their_log_probabilities_are_refused() -> None:
    with pytest.raises(TokenDrift, match="turn 1: 2 ids and 1 log-probabilities"):
        TokenTrajectory().add(PolicyGeneration((1,), (2, 3), (-0.5,), "", "stop", 0, "m"))
