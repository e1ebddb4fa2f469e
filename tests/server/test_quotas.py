"""Quotas: counted by client and window, charged all or not at all, told in every answer."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Address
from starlette.requests import Request
from starlette.testclient import TestClient
from subject_flow import MESSAGE, PLACE, Model, client_of, second_turn
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from pytest_regen.errors import RefusedError, TransportError
from pytest_regen.server import Quota, ServerSettings, client_header, peer_of
from pytest_regen.server.settings import Quotas

PATH = "/api/agents/generate-subject"


@dataclass
class Time:
    """A clock that stands where it is put."""

    now: float = 1_700_000_000.0

    def __call__(self) -> float:
        """Return the seconds since the epoch."""
        return self.now


def test_a_client_may_ask_until_the_limit() -> None:
    """The call after the last is refused, and says when to come back."""
    time = Time()
    quotas = Quotas([Quota(2, 60)], clock=time)

    standings = [quotas.charge("a") for _ in range(3)]

    assert [s and (s.allowed, s.remaining) for s in standings] == [
        (True, 1),
        (True, 0),
        (False, 0),
    ]
    last = standings[-1]
    assert last
    assert last.retry_after == 60


def test_clients_do_not_share() -> None:
    """What one used up is whole for another."""
    quotas = Quotas([Quota(1, 60)], clock=Time())
    quotas.charge("a")

    other = quotas.charge("b")

    assert other
    assert other.allowed


def test_a_window_ends() -> None:
    """After its seconds, counted from the first call, everything is allowed again."""
    time = Time()
    quotas = Quotas([Quota(1, 60)], clock=time)
    quotas.charge("a")
    time.now += 60

    again = quotas.charge("a")

    assert again
    assert again.allowed


def test_a_refused_call_is_charged_to_no_quota() -> None:
    """The hour refuses; the day is not used up by that."""
    time = Time()
    quotas = Quotas([Quota(1, 3600), Quota(2, 86400)], clock=time)
    for _ in range(5):
        quotas.charge("a")
    time.now += 3600

    later = quotas.charge("a")

    assert later
    assert later.allowed


def test_a_call_can_be_given_back() -> None:
    """What never reached the model does not count."""
    quotas = Quotas([Quota(1, 60)], clock=Time())
    quotas.charge("a")
    quotas.give_back("a")
    quotas.give_back("unknown")

    again = quotas.charge("a")

    assert again
    assert again.allowed


def test_memory_is_bounded() -> None:
    """However many clients come, only so many are remembered, the latest of them."""
    quotas = Quotas([Quota(1, 60)], clock=Time(), max_clients=10)
    for number in range(1_000):
        quotas.charge(f"client {number}")

    last, forgotten = quotas.charge("client 999"), quotas.charge("client 0")

    assert last
    assert not last.allowed
    assert forgotten
    assert forgotten.allowed


@given(
    limit=st.integers(1, 5),
    steps=st.lists(st.floats(0, 40, allow_nan=False), max_size=40),
)
def test_never_more_than_the_limit_in_a_window(limit: int, steps: Sequence[float]) -> None:
    """Whatever the pace, no window allows more than its limit, and no wait is longer than it."""
    time = Time()
    quotas = Quotas([Quota(limit, 60)], clock=time)
    ends, used = 0.0, 0
    for step in steps:
        time.now += step
        if time.now >= ends:
            ends, used = time.now + 60, 0
        quota = quotas.charge("a")
        used += 1
        assert quota
        assert quota.allowed == (used <= limit)
        assert quota.retry_after == (0 if quota.allowed else math.ceil(ends - time.now))


def limited(time: Time, limit: int, **options: object) -> TestClient:
    """Return a client of an application that allows so many first turns a minute."""
    quotas = (Quota(limit, 60),)
    settings = ServerSettings(first_turns=quotas, second_turns=quotas)
    return client_of(Model(PLACE), settings=settings, clock=time, **options)


def test_the_endpoint_says_when_to_come_back() -> None:
    """429 with `retry-after`, and after that time it answers again."""
    time = Time()
    client = limited(time, 1)
    client.post(PATH, json={"message": MESSAGE})

    refused = client.post(PATH, json={"message": MESSAGE})
    time.now += math.ceil(float(refused.headers["retry-after"]))
    later = client.post(PATH, json={"message": MESSAGE})

    assert (refused.status_code, refused.json()["code"]) == (429, "RATE_LIMITED")
    assert refused.json()["limit"] == 1
    assert refused.json()["resetAt"] == "2023-11-14T22:14:20+00:00"
    assert later.status_code == 200


@pytest.mark.parametrize(
    ("body", "status", "remaining"),
    [
        ({"message": MESSAGE}, 429, "0"),
        ({"message": "forged"}, 403, "2"),
        ({"message": "down"}, 503, "2"),
        ({"message": "refuse"}, 502, "1"),
        ({"message": "screen"}, 403, "1"),
    ],
)
def test_refusals_and_failures_tell_what_is_left_too(
    body: dict[str, Any], status: int, remaining: str
) -> None:
    """429, and whatever else a turn may end in: the same three headers."""
    model = Model(PLACE)

    def moody(messages: list[dict[str, str]]) -> str:
        if '"down"' in messages[-1]["content"]:
            raise TransportError("down", hint="wait")
        if '"refuse"' in messages[-1]["content"]:
            raise RefusedError("no", hint="ask another")
        return model(messages)

    quotas = (Quota(2, 60),)
    client = client_of(
        moody,
        settings=ServerSettings(first_turns=quotas, second_turns=quotas),
        clock=Time(),
        screen=lambda texts: "screen" not in texts,
    )
    first = client.post(PATH, json={"message": MESSAGE}).json()
    if body["message"] == "forged":
        body = second_turn(first, {}) | {"seal": "k.x.y.z"}
    elif status == 429:
        client.post(PATH, json={"message": MESSAGE})
    else:
        client = client_of(
            moody,
            settings=ServerSettings(first_turns=quotas),
            clock=Time(),
            screen=lambda texts: "screen" not in texts,
        )

    answer = client.post(PATH, json=body)

    assert answer.status_code == status
    assert answer.headers["x-ratelimit-limit"] == "2"
    assert answer.headers["x-ratelimit-remaining"] == remaining
    assert answer.headers["x-ratelimit-reset"] == "2023-11-14T22:14:20+00:00"


def test_answers_tell_what_is_left() -> None:
    """Each answer carries limit, remaining calls and the time of reset."""
    answer = limited(Time(), 3).post(PATH, json={"message": MESSAGE})

    assert answer.headers["x-ratelimit-limit"] == "3"
    assert answer.headers["x-ratelimit-remaining"] == "2"
    assert answer.headers["x-ratelimit-reset"] == "2023-11-14T22:14:20+00:00"


def test_who_was_asked_can_answer() -> None:
    """Second turns count apart: using up the first ones cuts nobody off before the answer."""
    client = limited(Time(), 1)
    first = client.post(PATH, json={"message": MESSAGE}).json()

    answer = client.post(PATH, json=second_turn(first, {"location": "Austin, TX"}))

    assert answer.status_code == 200


def test_without_seals_nobody_can_claim_a_second_turn() -> None:
    """With `seal="off"` every turn counts as a first one."""
    client = limited(Time(), 1, seal="off")
    first = client.post(PATH, json={"message": MESSAGE}).json()

    assert client.post(PATH, json=second_turn(first, {})).status_code == 429


@pytest.mark.parametrize("content", [b"{", b"{}", b'{"message": "x", "y": 1}'])
def test_what_is_refused_does_not_count(content: bytes) -> None:
    """A request that never reaches the model uses nothing up."""
    client = limited(Time(), 1)
    client.post(PATH, content=content, headers={"content-type": "application/json"})

    assert client.post(PATH, json={"message": MESSAGE}).status_code == 200


def test_a_forged_context_does_not_count() -> None:
    """A seal that is refused uses nothing up."""
    client = limited(Time(), 1)
    first = client.post(PATH, json={"message": MESSAGE}).json()
    body = second_turn(first, {})

    assert client.post(PATH, json={**body, "seal": "k.x.y.z"}).status_code == 403
    assert client.post(PATH, json=body).status_code == 200


def test_a_model_out_of_reach_does_not_count() -> None:
    """Where the model could not be reached the call is given back."""
    time = Time()
    replies = iter([TransportError("down", hint="wait"), None])
    model = Model(PLACE)

    def flaky(messages: list[dict[str, str]]) -> str:
        error = next(replies)
        if error:
            raise error
        return model(messages)

    settings = ServerSettings(first_turns=(Quota(1, 60),))
    client = client_of(flaky, settings=settings, clock=time)

    assert client.post(PATH, json={"message": MESSAGE}).status_code == 503
    assert client.post(PATH, json={"message": MESSAGE}).status_code == 200


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("fe80::1%eth0", "fe80::"),
        ("testclient", "testclient"),
    ],
)
def test_who_counts_as_one_client(address: str, client: str) -> None:
    """An address is a client; of IPv6 the network is, since one person has a whole one."""
    scope = {"type": "http", "client": Address(address, 1), "headers": []}

    assert peer_of(Request(scope)) == client


def test_forwarded_headers_are_not_believed() -> None:
    """A client cannot become another by sending a header."""
    client = limited(Time(), 1)
    client.post(PATH, json={"message": MESSAGE}, headers={"x-forwarded-for": "1.1.1.1"})

    again = client.post(PATH, json={"message": MESSAGE}, headers={"x-forwarded-for": "2.2.2.2"})

    assert again.status_code == 429


@pytest.mark.parametrize("forged", ["1.1.1.{}", "1.1.1.{}:80", "9.9.9.9, [2001:db8:{}::1]"])
def test_a_server_that_believes_forwarded_headers_changes_nothing(forged: str) -> None:
    """What runs uvicorn without options takes a header for the peer: such clients count as one."""
    limited_app: Any = limited(Time(), 1).app
    app: Any = ProxyHeadersMiddleware(limited_app, trusted_hosts="*")
    client = TestClient(app, base_url="http://127.0.0.1")

    answers = [
        client.post(
            PATH, json={"message": MESSAGE}, headers={"x-forwarded-for": forged.format(n)}
        ).status_code
        for n in range(1, 4)
    ]

    assert answers == [200, 429, 429]


@pytest.mark.parametrize(
    ("said", "client"),
    [
        (["10.0.0.7"], "10.0.0.7"),
        (["6.6.6.6, 10.0.0.7"], "10.0.0.7"),
        (["6.6.6.6", "10.0.0.7"], "10.0.0.7"),
        (["10.0.0.7:4711"], "10.0.0.7"),
        (["[2001:db8:1:2:3::1]:443"], "2001:db8:1:2::"),
        (["2001:db8:1:2:3::1"], "2001:db8:1:2::"),
        ([], "192.0.2.1"),
        ([""], "192.0.2.1"),
    ],
)
def test_a_header_of_a_proxy_may_be_believed(said: list[str], client: str) -> None:
    """Where it is named: its last address, which the client cannot choose, as one client."""
    headers = [(b"x-real-peer", value.encode()) for value in said]
    scope = {"type": "http", "client": Address("192.0.2.1", 1), "headers": headers}

    assert client_header("X-Real-Peer")(Request(scope)) == client


def test_clients_can_be_told_apart_otherwise() -> None:
    """`client_of` decides who asks, for instance by a name that a proxy has checked."""
    client = limited(Time(), 1, client_of=lambda request: request.headers.get("x-user", ""))

    answers = [
        client.post(PATH, json={"message": MESSAGE}, headers={"x-user": user}).status_code
        for user in ("ann", "ben", "ann")
    ]

    assert answers == [200, 200, 429]
