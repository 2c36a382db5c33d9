"""A host that keeps failing is left alone for a while, and no other one with it."""

from __future__ import annotations

import socket

import pytest
from concertino import ProviderError
from concertino_search.web.addresses import AddressGuard
from concertino_search.web.breakers import AFTER, REST_SECONDS, HostBreakers
from concertino_search.web.fetching import Fetcher


class Clock:
    """Seconds that a test moves on."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def failing(breakers: HostBreakers, host: str, times: int) -> None:
    for _ in range(times):
        breakers.record(host, ok=False)


def test_a_host_is_left_alone_after_failures_in_a_row_and_others_are_not() -> None:
    breakers = HostBreakers(Clock())
    failing(breakers, "a", AFTER - 1)
    assert breakers.refusal("a") == ""
    failing(breakers, "a", 1)
    assert breakers.refusal("a") == f"a failed {AFTER} times in a row and is not asked for {REST_SECONDS:.0f} s"
    assert breakers.refusal("b") == ""


def test_a_success_forgets_all_failures() -> None:
    breakers = HostBreakers(Clock())
    failing(breakers, "a", AFTER - 1)
    breakers.record("a", ok=True)
    failing(breakers, "a", AFTER - 1)
    assert breakers.refusal("a") == ""


@pytest.mark.parametrize("ok", [True, False])
def test_after_its_rest_one_request_tries_and_decides(ok: bool) -> None:
    clock = Clock()
    breakers = HostBreakers(clock)
    failing(breakers, "a", AFTER)
    clock.now += REST_SECONDS + 1
    assert breakers.refusal("a") == ""
    assert "is not asked" in breakers.refusal("a")
    breakers.record("a", ok=ok)
    assert (breakers.refusal("a") == "") == ok


def test_a_trial_that_is_never_recorded_holds_a_host_no_longer_than_another_rest() -> None:
    clock = Clock()
    breakers = HostBreakers(clock)
    failing(breakers, "a", AFTER)
    clock.now += REST_SECONDS + 1
    assert breakers.refusal("a") == ""
    clock.now += REST_SECONDS + 1
    assert breakers.refusal("a") == ""


async def test_a_dead_host_is_not_asked_for_every_page_of_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    fetcher = Fetcher(AddressGuard.of(["127.0.0.1/32"]))
    said = []
    for number in range(AFTER + 2):
        with pytest.raises(ProviderError) as failed:
            await fetcher.fetch(f"http://127.0.0.1:{port}/{number}")
        said.append(str(failed.value))
    assert all("cannot be reached" in text for text in said[:AFTER])
    assert all(f"/{AFTER + n} is not asked: 127.0.0.1:{port} failed" in text for n, text in enumerate(said[AFTER:]))
