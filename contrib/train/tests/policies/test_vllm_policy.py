"""What a vLLM policy asks, reads and refuses, on a server that can be made to fail.

With the real vLLM: `providers/vllm/tests/test_training_policy.py`, beside the server that it shares.
"""

from __future__ import annotations

import json
import logging
import math
import struct
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from concertino import ProviderError, UsageError
from concertino_local.codec import ByteCodec
from concertino_train.policies import Prompt, Sample, VLLMPolicy

from .conftest import network

concertino_vllm = pytest.importorskip("concertino_vllm")

END = ByteCodec.END
Answer = Callable[[dict[str, Any]], dict[str, Any]]


def completion(ids: list[int], finish: str = "stop", logprob: float = -0.5) -> dict[str, Any]:
    """What vLLM answers to a prompt of token ids."""
    choice = {
        "text": "",
        "finish_reason": finish,
        "token_ids": ids,
        "logprobs": {"token_logprobs": [logprob] * len(ids)},
    }
    return {"model": "m", "choices": [choice], "usage": {}}


class Fake:
    """A server on the loopback interface.

    Attributes:
        answer: what it says to a completion; a number is a status of failure.
        asked: bodies of completions.
        calls: paths of all other requests.
        refused: paths of such that are answered with 500.
    """

    def __init__(self) -> None:
        self.answer: Callable[[dict[str, Any]], Any] = lambda body: completion([65, END])
        self.asked: list[dict[str, Any]] = []
        self.calls: list[str] = []
        self.refused: set[str] = set()
        self.under_way = self.most = 0
        self.version = "0"
        self.lock = threading.Lock()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                cards = {"data": [{"id": "m", "root": "m", "max_model_len": 400}]}
                config = {"device_config": {"device": "cuda"}, "model_config": {"enable_sleep_mode": True}}
                said = {
                    "/v1/models": cards,
                    "/weight_info": {"weight_version": fake.version},
                    "/server_info": {"vllm_config": config},
                }
                self.say(said.get(self.path.partition("?")[0], {}))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
                if self.path != "/v1/completions":
                    path, _, query = self.path.partition("?")
                    fake.calls.append(path + (f" {query}" if path in ("/sleep", "/wake_up") else ""))
                    if path in fake.refused:
                        self.say({"error": {"message": "no room"}}, 500)
                        return
                    fake.version = body.get("new_version", fake.version)
                    self.say({"success": True, "results": []})
                    return
                with fake.lock:
                    fake.asked.append(body)
                    fake.under_way += 1
                    fake.most = max(fake.most, fake.under_way)
                said = fake.answer(body)
                with fake.lock:
                    fake.under_way -= 1
                self.say({"error": {"message": "no"}} if isinstance(said, int) else said, said)

            def say(self, content: Any, status: Any = 200) -> None:
                data = json.dumps(content).encode()
                self.send_response(status if isinstance(status, int) else 200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def fake() -> Iterator[Fake]:
    fake = Fake()
    yield fake
    fake.close()


@pytest.fixture
def policy(fake: Fake) -> Iterator[Callable[..., VLLMPolicy]]:
    """Makes policies of the fake server, which are closed at the end."""
    made: list[VLLMPolicy] = []

    def make(**options: Any) -> VLLMPolicy:
        made.append(VLLMPolicy(fake.url, ByteCodec(), **options))
        return made[-1]

    yield make
    for each in made:
        each.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "concertino-vllm-policy"]


def prompts(count: int, most: int = 8) -> list[Prompt]:
    return [Prompt((1, 2, place), most, seed=place) for place in range(count)]


# -- sampling ------------------------------------------------------------------------------------------------------


def test_token_ids_go_in_and_come_out_in_order_with_nothing_of_the_servers_own_settings(
    fake: Fake, policy: Callable[..., VLLMPolicy]
) -> None:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        time.sleep(0.02)  # so that requests meet
        return completion([body["prompt"][2], END])

    fake.answer = answer
    samples = policy(concurrent=4).generate(prompts(12, most=5))
    assert samples == [Sample((place, END), (-0.5, -0.5), "stop") for place in range(12)]
    asked = fake.asked[-1]
    wanted = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "logprobs": 0, "return_token_ids": True, "max_tokens": 5}
    assert wanted.items() <= asked.items()
    assert len({body["seed"] for body in fake.asked}) == 12
    assert 1 < fake.most <= 4


def test_one_prompt_and_seed_ask_alike_and_two_turns_with_one_seed_do_not(
    fake: Fake, policy: Callable[..., VLLMPolicy]
) -> None:
    made = policy()
    for ids in ((1, 2), (1, 2), (1, 2, 3)):
        made.generate([Prompt(ids, 2, seed=5)])
    first, again, later = (body["seed"] for body in fake.asked)
    assert first == again != later


def test_requests_that_fail_for_a_while_are_made_again_and_others_are_not(
    fake: Fake, policy: Callable[..., VLLMPolicy]
) -> None:
    left = [502, 500, 503]
    fake.answer = lambda body: left.pop() if left else completion([65, END])
    assert [sample.ids for sample in policy().generate(prompts(2))] == [(65, END)] * 2
    assert len(fake.asked) == 5
    fake.asked.clear()
    fake.answer = lambda body: 400
    with pytest.raises(ProviderError, match="400"):
        policy().generate(prompts(1))
    assert len(fake.asked) == 1
    fake.answer = lambda body: 500
    with pytest.raises(ProviderError, match="500"):
        policy(attempts=2).generate(prompts(1))
    assert len(fake.asked) == 3


def test_a_busy_server_is_asked_until_it_has_room_or_patience_ends(
    fake: Fake, policy: Callable[..., VLLMPolicy]
) -> None:
    left = [503] * 4
    fake.answer = lambda body: left.pop() if left else completion([65, END])
    assert policy(attempts=1).generate(prompts(1))
    fake.answer = lambda body: 503
    with pytest.raises(ProviderError, match="503"):
        policy(attempts=1, patience=0.0).generate(prompts(1))


def test_a_turn_stops_behind_the_codecs_end_and_a_server_that_goes_on_is_said_to(
    fake: Fake, policy: Callable[..., VLLMPolicy], caplog: pytest.LogCaptureFixture
) -> None:
    fake.answer = lambda body: completion([65, END, 66, 67], "length")
    with caplog.at_level(logging.WARNING, logger="concertino.train.vllm"):
        assert policy().generate(prompts(3)) == [Sample((65, END), (-0.5, -0.5), "stop")] * 3
    assert [record.message for record in caplog.records] == [
        "the server continues after token 257 ('<|end|>'), which ends a turn; what follows is discarded: put it as "
        "eos_token_id into the generation_config.json of the model"
    ]
    fake.answer = lambda body: completion([65, 66], "length")
    assert policy().generate(prompts(1)) == [Sample((65, 66), (-0.5, -0.5), "length")]


def test_a_server_that_ends_turns_elsewhere_is_refused(fake: Fake, policy: Callable[..., VLLMPolicy]) -> None:
    fake.answer = lambda body: completion([65, 66], "stop")
    with pytest.raises(UsageError, match=r"ended a turn behind 'B', which ends none for the codec \('<\|end\|>' does"):
        policy().generate(prompts(1))


def test_a_prompt_that_fills_the_context_gets_nothing_and_others_what_is_left(
    fake: Fake, policy: Callable[..., VLLMPolicy]
) -> None:
    samples = policy().generate([Prompt((1,) * 400, 8), Prompt((1,) * 397, 8), Prompt((1,), 8)])
    assert samples[0] == Sample((), (), "length")
    assert sorted(body["max_tokens"] for body in fake.asked) == [3, 8]
    for context, left in ((5, 4), (500, 8)):
        policy(context=context).generate([Prompt((1,), 8)])
        assert fake.asked[-1]["max_tokens"] == left


def test_a_prompt_of_nothing_is_refused(policy: Callable[..., VLLMPolicy]) -> None:
    with pytest.raises(UsageError, match="expected one of each or more"):
        policy().generate([Prompt((), 3)])


@pytest.mark.parametrize("settings", [{"temperature": -1}, {"top_p": 0}, {"concurrent": 0}, {"attempts": 0}])
def test_settings_of_a_server_that_mean_nothing_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="expected 0 or more"):
        VLLMPolicy("http://127.0.0.1:1", ByteCodec(), **settings)


# -- which log-probabilities ---------------------------------------------------------------------------------------


def test_a_temperature_whose_log_probabilities_nobody_can_vouch_for_is_refused(
    fake: Fake, policy: Callable[..., VLLMPolicy]
) -> None:
    with pytest.raises(UsageError, match=r"nobody can tell which log-probabilities .* gives; give the model as"):
        policy(temperature=0.7).generate(prompts(1))
    with pytest.raises(UsageError, match=r"top_p 0\.5"):
        policy(top_p=0.5).generate(prompts(1))
    assert fake.asked == []
    assert policy(temperature=0.0).generate(prompts(1))


@pytest.mark.parametrize(
    ("args", "settings", "message"),
    [
        ((), {"temperature": 0.7}, r"declare it with args=\[\"--logprobs-mode\", \"processed_logprobs\"\]"),
        (("--logprobs-mode", "processed_logprobs"), {"top_p": 0.9}, "among the tokens that are left"),
        (("--logprobs_mode=processed_logprobs",), {"temperature": 0.7, "top_p": 0.9}, "among the tokens that are left"),
    ],
)
def test_a_declared_server_with_other_log_probabilities_is_refused(
    args: tuple[str, ...], settings: dict[str, float], message: str
) -> None:
    spec = concertino_vllm.model("policy", model="some/model", args=list(args), training=True)
    with pytest.raises(UsageError, match=message):
        VLLMPolicy(spec, ByteCodec(), **settings)._check_numbers()  # type: ignore[arg-type]


def test_a_server_is_to_be_declared_for_training() -> None:
    with pytest.raises(UsageError, match=r"training = true"):
        VLLMPolicy(concertino_vllm.model("policy", model="some/model"), ByteCodec())


# -- weights -------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that looks like a model's."""
    header = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
    (tmp_path / "config.json").write_text("{}")
    return tmp_path


class Even:
    """A model in this process to which all tokens are equally probable; `sharp` makes one more so."""

    def __init__(self) -> None:
        torch = pytest.importorskip("torch")

        class Module(torch.nn.Module):  # type: ignore[name-defined,misc]
            def __init__(self) -> None:
                super().__init__()
                self.sharp = torch.nn.Parameter(torch.zeros(()))

            def forward(self, input_ids: Any) -> Any:
                logits = torch.zeros((*input_ids.shape, ByteCodec.size))
                logits[..., 65] = self.sharp
                return type("Out", (), {"logits": logits})

        self.module = Module()


def test_an_update_pauses_loads_empties_the_cache_goes_on_and_compares(
    fake: Fake, policy: Callable[..., VLLMPolicy], folder: Path
) -> None:
    even = Even()
    even.module.train()
    fake.answer = lambda body: completion([65] * body["max_tokens"], "length", -math.log(ByteCodec.size))
    made = policy(reference=lambda: even.module)
    before = made.version
    apart = made.update(folder)
    assert apart is not None
    assert apart < 1e-6
    assert made.version == before + 1
    assert fake.calls == ["/pause", "/collective_rpc", "/reset_prefix_cache", "/update_weight_version", "/resume"]
    assert even.module.training
    assert len(made.generate(prompts(1))) == 1


def test_numbers_that_are_not_the_models_stop_sampling_until_an_update_succeeds(
    fake: Fake, policy: Callable[..., VLLMPolicy], folder: Path
) -> None:
    even = Even()
    fake.answer = lambda body: completion([65] * body["max_tokens"], "length", -1.0)
    made = policy(reference=even.module)
    with pytest.raises(concertino_vllm.SwapError, match=r"4\.56 apart on average \(tolerance 0\.05\)") as failure:
        made.update(folder)
    assert failure.value.version is None
    with pytest.raises(concertino_vllm.SwapError, match="other weights or another dtype"):
        made.generate(prompts(1))
    fake.answer = lambda body: completion([65] * body["max_tokens"], "length", -math.log(ByteCodec.size))
    made.update(folder)
    assert made.generate(prompts(1))


def test_a_temperature_is_taken_where_the_server_gives_its_log_probabilities(
    fake: Fake, policy: Callable[..., VLLMPolicy]
) -> None:
    even = Even()
    even.module.sharp.data.fill_(2.0)
    scaled = 2.0 / 0.5 - math.log(math.exp(2.0 / 0.5) + ByteCodec.size - 1)
    fake.answer = lambda body: completion([65] * body["max_tokens"], "length", scaled)
    made = policy(reference=even.module, temperature=0.5)
    assert made.generate(prompts(1))
    assert made.generate(prompts(1))
    assert len(fake.asked) == 3  # compared once
    fake.answer = lambda body: completion(
        [65] * body["max_tokens"], "length", 2.0 - math.log(math.exp(2.0) + ByteCodec.size - 1)
    )
    with pytest.raises(concertino_vllm.SwapError, match=r"--logprobs-mode processed_logprobs"):
        policy(reference=even.module, temperature=0.5).generate(prompts(1))


def test_after_an_update_that_failed_nothing_is_sampled_although_the_server_would(
    fake: Fake, policy: Callable[..., VLLMPolicy], folder: Path
) -> None:
    made = policy()
    fake.refused = {"/collective_rpc"}
    with pytest.raises(concertino_vllm.SwapError, match="no room"):
        made.update(folder)
    asked = len(fake.asked)
    with pytest.raises(concertino_vllm.SwapError, match=r"last update failed.*no room.*update\(\) again"):
        made.generate(prompts(1))
    assert len(fake.asked) == asked
    fake.refused = set()
    made.update(folder)
    assert made.generate(prompts(1))


def test_a_server_that_says_done_and_keeps_the_old_weights_is_found_by_its_numbers(
    fake: Fake, policy: Callable[..., VLLMPolicy], folder: Path
) -> None:
    even = Even()
    fake.answer = lambda body: completion([65] * body["max_tokens"], "length", -math.log(ByteCodec.size))
    made = policy(reference=even.module)
    made.update(folder)
    even.module.sharp.data.fill_(5.0)  # the model has learnt, and the server's answers stay as they were
    with pytest.raises(concertino_vllm.SwapError, match="other log-probabilities than the model in this process"):
        made.update(folder)
    with pytest.raises(concertino_vllm.SwapError, match="other log-probabilities"):
        made.generate(prompts(1))


MUTATIONS: dict[str, Callable[[Any], None]] = {
    "two of one shape swapped": lambda layers: swap(layers[0].self_attn.k_proj, layers[0].self_attn.v_proj),
    "two layers swapped": lambda layers: swap(layers[0].mlp.down_proj, layers[1].mlp.down_proj),
    "one kept from before": lambda layers: layers[1].self_attn.o_proj.weight.data.mul_(-1),
    "one cut short": lambda layers: layers[0].mlp.up_proj.weight.data[8:].zero_(),
}


def swap(one: Any, other: Any) -> None:
    one.weight.data, other.weight.data = other.weight.data, one.weight.data


@pytest.mark.parametrize("how", [None, *MUTATIONS], ids=["all there", *MUTATIONS])
def test_weights_that_changed_on_their_way_and_fit_nevertheless_are_found_by_their_numbers(
    how: str | None, fake: Fake, policy: Callable[..., VLLMPolicy], folder: Path
) -> None:
    pytest.importorskip("torch")
    from concertino_train.policies.transformers import score

    trained, served = network(), network()
    if how is not None:
        MUTATIONS[how](served.model.layers)

    def answer(body: dict[str, Any]) -> Any:
        ids = [(5 * place) % 200 for place in range(body["max_tokens"])]
        said = completion(ids, "length")
        said["choices"][0]["logprobs"]["token_logprobs"] = list(score(served, body["prompt"], ids, 1.0))
        return said

    fake.answer = answer
    made = policy(reference=trained)
    if how is None:
        apart = made.update(folder)
        assert apart is not None
        assert apart < 1e-4
        return
    with pytest.raises(concertino_vllm.SwapError, match="other log-probabilities than the model in this process"):
        made.update(folder)
    with pytest.raises(concertino_vllm.SwapError, match="other log-probabilities"):
        made.generate(prompts(1))


def test_a_server_of_others_that_was_started_anew_is_noticed_behind_the_batch_and_answers_nothing_until_an_update(
    fake: Fake, policy: Callable[..., VLLMPolicy], folder: Path
) -> None:
    made = policy()
    made.update(folder)
    assert made.generate(prompts(2))
    fake.version = "default"  # as vLLM says at its start
    with pytest.raises(concertino_vllm.SwapError, match=r"given weights of version 1, and says that it has 'default'"):
        made.generate(prompts(2))
    asked = len(fake.asked)
    with pytest.raises(concertino_vllm.VllmServerError, match=r"nothing answers: .*restarted"):
        made.generate(prompts(2))
    assert len(fake.asked) == asked
    made.update(folder)
    assert made.generate(prompts(2))


def test_a_server_that_somebody_else_has_changed_is_noticed_by_who_gave_it_weights_and_followed_by_other_ranks(
    fake: Fake, policy: Callable[..., VLLMPolicy], folder: Path
) -> None:
    fake.version = "4"
    follows = policy()
    assert follows.generate(prompts(1))
    fake.version = "5"  # by the rank that leads
    assert follows.generate(prompts(1))
    fake.version = "3"
    with pytest.raises(concertino_vllm.SwapError, match=r"version 5, and says that it has '3'"):
        follows.generate(prompts(1))
    leads = policy()
    leads.update(folder)
    fake.version = "9"
    with pytest.raises(concertino_vllm.SwapError, match=r"version \d+, and says that it has '9'"):
        leads.generate(prompts(1))


def test_versions_count_the_updates_of_the_training_whatever_number_the_server_has(
    fake: Fake, policy: Callable[..., VLLMPolicy], folder: Path
) -> None:
    fake.version = "40"
    made = policy()
    made.update(folder)
    assert (made.version, fake.version) == (1, "41")
    assert made.generate(prompts(1))
    assert made.version == 1


def test_at_the_begin_of_a_step_a_served_policy_has_the_version_of_the_steps_that_are_over(
    fake: Fake, policy: Callable[..., VLLMPolicy], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from concertino_train.factories import learners

    made, even = policy(), Even()
    given: list[Any] = []
    monkeypatch.setattr(made, "update", lambda state: given.append(sorted(state)))
    learners._handing_over(even.module, made, folder)(8)
    assert (made.version, given) == (7, [["sharp"]])
    # Of several ranks, one gives the weights, and all count.
    monkeypatch.setattr(learners, "wait_for_everyone", lambda: None)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    learners._handing_over(even.module, made, folder)(9)
    assert (made.version, len(given)) == (8, 1)


def test_a_resting_server_gives_its_memory_back_and_gets_its_weights_before_its_cache(
    fake: Fake, policy: Callable[..., VLLMPolicy], folder: Path
) -> None:
    made = policy(sleep=True)
    made.update(folder)
    assert made.generate(prompts(1))
    fake.calls.clear()
    made.rest()
    with pytest.raises(ProviderError, match="the server sleeps"):
        made.generate(prompts(1))
    made.update(folder)
    assert made.generate(prompts(1))
    assert fake.calls[:4] == [
        "/sleep level=2&mode=wait",
        "/wake_up tags=weights",
        "/collective_rpc",
        "/wake_up tags=kv_cache",
    ]


def test_a_server_of_its_own_gpu_does_not_rest(fake: Fake, policy: Callable[..., VLLMPolicy], folder: Path) -> None:
    made = policy()
    made.update(folder)
    made.rest()
    assert not [call for call in fake.calls if call.startswith("/sleep")]


def test_a_folder_that_is_no_model_changes_nothing(
    fake: Fake, policy: Callable[..., VLLMPolicy], tmp_path: Path
) -> None:
    made = policy()
    with pytest.raises(UsageError, match="expected weights as save_pretrained writes them"):
        made.update(tmp_path)
    assert fake.calls == []
    assert made.generate(prompts(1))
    assert made.version == 0


def test_a_server_that_is_not_there_is_named() -> None:
    policy = VLLMPolicy("http://127.0.0.1:1", ByteCodec())
    with pytest.raises(ProviderError, match="no vLLM answers there; start it, or correct the address"):
        policy.generate(prompts(1))
    policy.close()
