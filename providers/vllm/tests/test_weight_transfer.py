"""Tensors that reach a server without files, on a stand-in that can be made to fail at each of the steps.

No GPU is needed: what vLLM's workers would find in its memory, the stand-in finds in a file, and vLLM's engine for NCCL
is a stand-in too. What is real is the order of the steps, the packing of tensors, and what follows when one fails.
"""

from __future__ import annotations

import json
import re
import struct
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from concertino import ModelSpec, ProviderError, UsageError
from concertino_vllm import PolicyServer, SwapError, VllmServerError
from concertino_vllm.policy import cuda_ipc
from concertino_vllm.policy.weights import outgoing

from .test_policy import calls, value

torch = pytest.importorskip("torch")

Policy = Callable[..., PolicyServer]
SHAPES = {"embed.weight": (5, 4), "layer.weight": (4, 3), "norm.weight": (3,)}
STEPS = {
    "init": "/init_weight_transfer_engine",
    "start": "/start_weight_update",
    "update": "",  # by how the pieces come
    "finish": "/finish_weight_update",
    "version": "/update_weight_version",
    "resume": "/resume",
}
UPDATE = {"ipc": "/collective_rpc", "nccl": "/update_weights"}
WAYS = ("ipc", "nccl")


def state(value: float, **more: Any) -> dict[str, Any]:
    """A state dict whose numbers differ from each other, and from those of another value."""
    return {name: torch.arange(_count(shape)).reshape(shape) + value for name, shape in SHAPES.items()} | more


def _count(shape: tuple[int, ...]) -> float:
    return float(torch.tensor(shape).prod())


@pytest.fixture
def served(tmp_path: Path) -> Path:
    """The folder of a model with these tensors; only its header is ever read."""
    header, place = {}, 0
    for name, shape in SHAPES.items():
        size = int(_count(shape)) * 4
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [place, place + size]}
        place += size
    text = json.dumps(header).encode()
    folder = tmp_path / "start"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(place))
    (folder / "config.json").write_text('{"hidden_size": 4}')
    return folder


@pytest.fixture
def policy(declare: Callable[..., ModelSpec], served: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Policy:
    """A policy server on a stand-in that takes tensors over `way`."""
    monkeypatch.setattr("concertino_vllm.policy.policy_server.usable", lambda way: True)
    buffers = iter(range(1000))

    class FileBuffer(cuda_ipc.SharedBuffer):
        """A file in the place of the memory of a GPU."""

        def __init__(self, size: int, device: Any) -> None:
            self.path = str(tmp_path / f"buffer{next(buffers)}")
            self.bytes = torch.from_file(self.path, shared=True, size=size, dtype=torch.uint8)
            self.gpu = "GPU-0"

        def fill(self, tensors: list[Any]) -> None:
            cuda_ipc.write_side_by_side(self.bytes, tensors)

        def handle(self) -> tuple[Any, ...]:
            return (self.path.encode(),)

    monkeypatch.setattr(cuda_ipc, "SharedBuffer", FileBuffer)
    monkeypatch.setattr(cuda_ipc, "PIECE_BYTES", 100)  # so that a state takes two pieces
    install_engine(monkeypatch, tmp_path)

    def make(way: str, wish: dict[str, Any] | None = None, **options: Any) -> PolicyServer:
        options = {"weights": way, "transfer_seconds": 20, **options}
        return PolicyServer(declare(wish, model=served, training=True, **options))

    return make


class Broadcast:
    """How the stand-in for vLLM's engine behaves: `hangs` in the broadcast, as NCCL does when a peer is gone."""

    hangs = threading.Event()
    joins = 0
    over = threading.Event()
    folder = Path()


def install_engine(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Put a stand-in for vLLM's engine for trainers where the real one would be imported from."""
    Broadcast.hangs.clear()
    Broadcast.over.clear()
    Broadcast.joins = 0
    Broadcast.folder = folder
    package = "vllm.distributed.weight_transfer"
    parts = {
        "factory": {"WeightTransferTrainerFactory": Engine},
        "nccl_engine": {"NCCLTrainerInitInfo": types.SimpleNamespace},
        "base": {"ParamMeta": lambda name, dtype, shape: types.SimpleNamespace(name=name, dtype=dtype, shape=shape)},
    }
    for name, members in parts.items():
        module = types.ModuleType(f"{package}.{name}")
        module.__dict__.update(members)
        monkeypatch.setitem(sys.modules, module.__name__, module)


class Engine:
    """As vLLM's: it calls the phases through a client, the update beside a broadcast that nothing ends but a peer."""

    @classmethod
    def trainer_init(cls, *, init_info: Any, client: Any, source: Any) -> Engine:
        assert (init_info.rank, init_info.world_size) == (0, 2)
        assert init_info.master_address == "127.0.0.1"
        Broadcast.joins += 1
        client.init_weight_transfer_engine({"world_size": init_info.world_size})
        made = cls()
        made.client, made.source = client, source
        return made

    client: Any
    source: Any

    def send_weights(self) -> None:
        meta = self.source.metadata()
        file = Broadcast.folder / f"broadcast{Broadcast.joins}"
        tensors = dict(self.source)
        assert [(each.name, each.shape) for each in meta] == [(name, tuple(t.shape)) for name, t in tensors.items()]
        file.write_bytes(b"".join(tensor.contiguous().numpy().tobytes() for tensor in tensors.values()))
        sizes = [tensor.numel() * tensor.element_size() for tensor in tensors.values()]
        self.client.start_weight_update()
        info = {"names": list(tensors), "tensor_sizes": sizes, "file": str(file)}
        update = threading.Thread(target=self._update, args=(info,), daemon=True)
        update.start()
        if Broadcast.hangs.is_set():
            Broadcast.over.wait(60)
        update.join()
        if self.failed is not None:
            raise self.failed
        self.client.finish_weight_update()

    failed: Exception | None = None

    def _update(self, info: Any) -> None:
        try:
            self.client.update_weights(info)
        except Exception as error:
            self.failed = error


# -- all is well ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
async def test_tensors_go_through_four_phases_and_no_file_and_the_version_counts_after_all_of_them(
    policy: Policy, way: str
) -> None:
    async with policy(way) as server:
        first = await value(server)
        await server.load_weights(state(1), 3)
        second = await value(server)
        await server.load_weights(state(2), 4)
        third = await value(server)
        await server.load_weights(state(1), 5)
        fourth = await value(server)
        made, sent = await calls(server), await calls(server, "/sent")
    assert [version for _, version in (first, second, third, fourth)] == [0, 3, 4, 5]
    assert len({first[0], second[0], third[0]}) == 3
    assert second[0] == fourth[0]
    assert sent == {"embed.weight": 80, "layer.weight": 48, "norm.weight": 12}
    update = [f"{UPDATE[way]} concertino_open_weights"] * 2 if way == "ipc" else [UPDATE[way]]
    change = ["/start_weight_update", *update, "/finish_weight_update", "/reset_prefix_cache"]
    change += ["/update_weight_version", "/resume"]
    assert made[:2] == ["/pause?mode=wait", "/init_weight_transfer_engine"]
    assert made[2 : 2 + len(change)] == change
    # Once for every start of a server.
    assert made.count("/init_weight_transfer_engine") == 1
    assert server.server.served.states is None


def test_a_state_is_cast_to_the_dtype_of_the_server_and_wide_numbers_come_first(served: Path) -> None:
    given = state(0.0)
    given["norm.weight"] = torch.arange(3)  # whole numbers stay as they are
    tensors = outgoing(given, served, "bfloat16")
    assert {name: str(each.dtype) for name, each in tensors.items()} == {
        "embed.weight": "torch.bfloat16",
        "layer.weight": "torch.bfloat16",
        "norm.weight": "torch.int64",
    }
    (piece,) = cuda_ipc.pieces(tensors, 1000)
    assert [name for name, _ in piece] == ["norm.weight", "embed.weight", "layer.weight"]
    buffer = torch.zeros(88, dtype=torch.uint8)
    cuda_ipc.write_side_by_side(buffer, [each for _, each in piece])
    assert buffer[:24].view(torch.int64).tolist() == [0, 1, 2]
    assert buffer[24:64].view(torch.bfloat16).tolist() == list(map(float, range(20)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"extra.weight": [1.0]}, "extra.weight is not a tensor of the served"),
        ({"norm.weight": [1.0]}, r"norm\.weight has the shape \(1,\), and \(3,\) in the served"),
        ({"norm.weight": None}, "norm.weight is missing"),
    ],
    ids=["a strange tensor", "another shape", "one missing"],
)
async def test_tensors_that_are_not_the_served_models_are_refused_before_anything_is_touched(
    policy: Policy, change: dict[str, Any], message: str
) -> None:
    given = state(1.0)
    for name, numbers in change.items():
        given[name] = torch.tensor(numbers or [])
        if numbers is None:
            del given[name]
    async with policy("ipc") as server:
        with pytest.raises(UsageError, match=message):
            await server.load_weights(given, 1)
        assert await calls(server) == []


def mutated(how: str) -> dict[str, Any]:
    """A state that something went wrong with on its way."""
    given = state(1.0)
    if how == "cut short":
        given["embed.weight"] = given["embed.weight"][:4]
    elif how == "turned":
        given["layer.weight"] = given["layer.weight"].T
    elif how == "two swapped":
        given["layer.weight"], given["embed.weight"] = given["embed.weight"], given["layer.weight"]
    elif how == "one missing":
        del given["norm.weight"]
    return given


@pytest.mark.parametrize("way", [*WAYS, "folder"])
@pytest.mark.parametrize("how", ["cut short", "turned", "two swapped", "one missing"])
def test_a_state_that_was_changed_on_its_way_is_refused_whichever_way_it_would_go(
    way: str, how: str, served: Path
) -> None:
    with pytest.raises(UsageError, match=r"(embed|layer)\.weight has the shape|norm\.weight is missing"):
        outgoing(mutated(how), served, "bfloat16" if way == "ipc" else "")


# -- a step fails --------------------------------------------------------------------------------------------

HOW = ("dies", "stalls", "refuses", "raves")


def _mark(way: str, step: str, how: str) -> list[pytest.MarkDecorator]:
    """One of each kind always; of the others one way where there is time, the other one in the soak."""
    if (way, step) == ("ipc", "update") and how != "stalls":
        return []
    return [pytest.mark.slow if way == "ipc" and how != "raves" else pytest.mark.soak]


EVERY = [pytest.param(way, step, how, marks=_mark(way, step, how)) for way in WAYS for step in STEPS for how in HOW]


@pytest.mark.parametrize(("way", "step", "how"), EVERY)
async def test_after_a_step_that_fails_nothing_answers_until_a_later_change_succeeds(
    policy: Policy, tmp_path: Path, way: str, step: str, how: str
) -> None:
    fail = {"at": STEPS[step] or UPDATE[way], "how": how, "once": str(tmp_path / "failed")}
    async with policy(way, {"fail": fail}, transfer_seconds=1 if how == "stalls" else 20) as server:
        with pytest.raises(SwapError, match=r"(?s)nobody knows which weights .* load_weights\(\) again") as failure:
            await server.load_weights(state(1), 1)
        assert failure.value.version is None
        if how == "stalls":
            assert re.search(r"(no answer|has not ended) after 1 s", str(failure.value))
        assert server.version == 0
        with pytest.raises(VllmServerError, match="nobody knows which weights"):
            await value(server)
        server.server.settings.__dict__["transfer_seconds"] = 20.0
        await server.load_weights(state(2), 1)
        assert (await value(server))[1] == server.version == 1


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stalls", "refuses"])
async def test_a_pause_that_fails_changes_nothing(policy: Policy, tmp_path: Path, how: str) -> None:
    fail = {"at": "/pause", "how": how, "once": str(tmp_path / "failed")}
    async with policy("ipc", {"fail": fail}, transfer_seconds=1) as server:
        before = await value(server)
        with pytest.raises(ProviderError, match="/pause"):
            await server.load_weights(state(1), 1)
        assert await value(server) == before
        assert "/start_weight_update" not in await calls(server)


async def test_a_broadcast_that_nobody_receives_ends_in_time_and_leaves_no_thread_that_holds_the_process(
    policy: Policy,
) -> None:
    async with policy("nccl", transfer_seconds=0.5) as server:
        Broadcast.hangs.set()
        try:
            with pytest.raises(SwapError, match=r"the broadcast of NCCL has not ended after 1\.5 s"):
                await server.load_weights(state(1), 1)
            left = [thread for thread in threading.enumerate() if thread.name == "concertino-vllm-nccl"]
            assert left
            assert all(thread.daemon for thread in left)
        finally:
            Broadcast.over.set()
        for thread in left:
            thread.join(20)
        assert not any(thread.is_alive() for thread in left)
        Broadcast.hangs.clear()
        server.server.settings.__dict__["transfer_seconds"] = 20.0
        await server.load_weights(state(1), 1)
        assert Broadcast.joins == 2  # a group of which a step failed is not used again
        assert (await value(server))[1] == 1


async def test_a_server_that_says_done_and_keeps_the_old_weights_answers_like_before(policy: Policy) -> None:
    """Only a comparison with the trainer's model finds it: `VLLMPolicy` makes one after every change."""
    async with policy("ipc", {"fail": {"at": "/finish_weight_update", "how": "lies"}}) as server:
        before = (await value(server))[0]
        await server.load_weights(state(1), 1)
        assert (await value(server))[0] == before


@pytest.mark.slow
async def test_a_server_that_dies_after_tensors_were_sent_does_not_answer_with_the_weights_of_its_start(
    policy: Policy,
) -> None:
    import os
    import signal

    from .conftest import until
    from .test_policy import is_idle

    async with policy("ipc") as server:
        await server.load_weights(state(1), 1)
        os.kill((await server.health()).pid, signal.SIGKILL)
        await until(lambda: is_idle(server))
        with pytest.raises(VllmServerError, match=r"version 1 were sent .* load_weights\(\) them again"):
            await value(server)
        await server.load_weights(state(1), 2)
        assert (await value(server))[1] == 2


@pytest.mark.slow
async def test_a_bad_folder_after_tensors_has_no_way_back(policy: Policy, served: Path, tmp_path: Path) -> None:
    import shutil

    async with policy("ipc") as server:
        await server.load_weights(state(1), 1)
        with pytest.raises(SwapError, match="because it was sent as tensors") as failure:
            await server.load_weights(shutil.copytree(served, tmp_path / "error"), 2)
        assert failure.value.version is None


# -- files ---------------------------------------------------------------------------------------------------


async def test_files_have_the_dtype_of_the_server_and_only_those_in_use_are_kept(policy: Policy, served: Path) -> None:
    from concertino_vllm.policy.weights import read_shapes
    from safetensors.torch import load_file

    async with policy("folder", {"dtype": "torch.bfloat16"}) as server:
        for version in (1, 2):
            await server.load_weights(state(version), version)
        assert server.server.served.states is not None
        (kept,) = server.server.served.states.iterdir()
        assert kept == server.server.served.weights
        assert (kept / "config.json").read_bytes() == (served / "config.json").read_bytes()
        assert read_shapes(kept) == SHAPES
        assert {tensor.dtype for tensor in load_file(kept / "model.safetensors").values()} == {torch.bfloat16}


async def test_a_disk_without_room_is_told_before_anything_is_touched_and_nothing_is_left_on_it(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with policy("folder") as server:
        full = types.SimpleNamespace(free=100)
        monkeypatch.setattr("concertino_vllm.policy.weights.shutil.disk_usage", lambda folder: full)
        with pytest.raises(UsageError, match=r"they need .* GiB: free the disk, name a folder .* as TMPDIR"):
            await server.load_weights(state(1), 1)
        assert server.server.served.states is not None
        assert list(server.server.served.states.iterdir()) == []
        assert await calls(server) == []


def test_a_name_on_the_hub_is_the_folder_that_the_cache_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from concertino_vllm.policy.weights import folder_of

    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    assert folder_of("some/model") is None
    home = tmp_path / "hub" / "models--some--model"
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text("abc")
    assert folder_of("some/model") is None
    (home / "snapshots" / "abc").mkdir(parents=True)
    (home / "snapshots" / "abc" / "config.json").write_text("{}")
    assert folder_of("some/model") == home / "snapshots" / "abc"


# -- which way -----------------------------------------------------------------------------------------------


async def test_a_server_that_was_started_for_another_way_is_named_with_what_starts_it_right(policy: Policy) -> None:
    async with policy("ipc", args=["--weight-transfer-config", '{"backend": "nccl"}']) as server:
        with pytest.raises(UsageError, match="the server takes nccl only; start it with --weight-transfer-config"):
            await server.load_weights(state(1), 1)


async def test_a_vllm_that_is_too_old_is_told_as_such(policy: Policy) -> None:
    async with policy("ipc", {"version": "0.27.1"}) as server:
        with pytest.raises(SwapError, match=r"vLLM 0\.27\.1; weights over ipc and nccl need 0\.28 or newer"):
            await server.load_weights(state(1), 1)


async def test_without_a_gpu_here_a_way_that_needs_one_is_refused_and_auto_takes_files(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("CONCERTINO_TEST_MARK", "none")
    with pytest.raises(UsageError, match="needs a GPU that torch sees in this process; set weights = 'folder'"):
        policy("ipc")._way("ipc")
    assert policy("auto")._way("ipc") == "folder"


class Cuda:
    """What torch says of the GPUs of a process."""

    def __init__(self, current: int) -> None:
        self.cuda = types.SimpleNamespace(is_available=lambda: True, current_device=lambda: current)


@pytest.mark.parametrize(
    ("seen", "current", "device", "args", "vllm", "way"),
    [
        ("", 0, "", (), True, "ipc"),
        ("2,3", 0, "2", (), True, "ipc"),
        ("2,3", 1, "2", (), True, "nccl"),
        ("2,3", 1, "2", (), False, "folder"),
        ("", 0, "1", (), True, "nccl"),
        ("", 0, "0,1", ("--tensor-parallel-size", "2"), True, "folder"),
        ("", 0, "1,2", ("--tensor-parallel-size=2",), True, "nccl"),
        ("", 0, "0", ("-tp=1",), True, "ipc"),
    ],
    ids=lambda each: str(each).replace(" ", ""),
)
def test_the_way_follows_from_the_gpus_of_both(
    monkeypatch: pytest.MonkeyPatch, seen: str, current: int, device: str, args: Any, vllm: bool, way: str
) -> None:
    from concertino_vllm import gpu_choice

    monkeypatch.setitem(sys.modules, "torch", Cuda(current))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object() if vllm else None)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", seen)
    assert gpu_choice.way_by_default(device, args) == way


def test_the_settings_of_a_server_say_which_gpu_it_has_and_how_it_takes_weights(tmp_path: Path) -> None:
    from concertino import SpecError
    from concertino_vllm.settings import VllmSettings

    settings = VllmSettings(model="m", training=True, device="3", weights="ipc")
    assert settings.command(Path("vllm"))[-2:] == ["--weight-transfer-config", '{"backend": "ipc"}']
    env = settings.environment(Path("vllm"), tmp_path)
    assert env["CUDA_VISIBLE_DEVICES"] == "3"
    # With it, whoever reaches the port could run code.
    assert "VLLM_ALLOW_INSECURE_SERIALIZATION" not in env
    assert "--weight-transfer-config" not in VllmSettings(model="m", weights="ipc").command(Path("vllm"))
    for wrong in ({"device": "gpu0"}, {"weights": "disk"}, {"transfer_seconds": 0.0}):
        with pytest.raises(SpecError, match=f"{next(iter(wrong))} = "):
            VllmSettings(model="m", **wrong)
