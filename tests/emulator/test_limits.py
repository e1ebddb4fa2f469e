"""Rate limits hold by the minute, refill by the clock, and are reported in headers."""

import anthropic
import pytest
from emulator_requests import api, ask, body, said, send, text, user
from hypothesis import given
from hypothesis import strategies as st

from pytest_regen.emulator import Clock, EmulatedReply, Emulator, RateLimits
from pytest_regen.errors import UsageError

PREFIX = "anthropic-ratelimit-"


def test_requests_per_minute() -> None:
    """The request over the limit is told when to come back, and then may."""
    core = api(limits=RateLimits(requests=3))
    for _ in range(3):
        ask(core)

    refused = send(core, body())
    core.clock.advance(int(refused.headers["retry-after"]))

    assert refused.status == 429
    assert said(refused)["error"]["type"] == "rate_limit_error"
    assert refused.headers["retry-after"] == "20"
    assert send(core, body()).status == 200


def test_cache_reads_do_not_count_as_input() -> None:
    """A long prefix is charged when it is written, not when it is read."""
    core = api(limits=RateLimits(input_tokens=1_000))
    system = [text("x" * 2_000, "5m")]

    statuses = [send(core, body(system=system)).status for _ in range(5)]
    uncached = send(core, body(system="y" * 2_000))

    assert statuses == [200] * 5
    assert uncached.status == 429


@given(
    steps=st.lists(st.tuples(st.floats(0, 90), st.integers(1, 400)), min_size=1, max_size=40),
    per_minute=st.integers(1, 300),
)
def test_no_window_lets_more_through_than_a_bucket(
    steps: list[tuple[float, int]], per_minute: int
) -> None:
    """Whatever the pauses: in any span at most a full bucket and what dripped in meanwhile."""
    limits = RateLimits(requests=10_000, input_tokens=per_minute)
    core = api(limits=limits)
    taken: list[tuple[float, int]] = []

    for pause, size in steps:
        core.clock.advance(pause)
        tokens = -(-size * 41 // 100)
        response = send(core, body(messages=[user("x" * size)]))
        if response.status == 200:
            taken.append((core.clock.now(), tokens))
        elif tokens <= per_minute:
            # Told to wait so long, one who does so is served.
            core.clock.advance(float(response.headers["retry-after"]))
            assert send(core, body(messages=[user("x" * size)])).status == 200
            taken.append((core.clock.now(), tokens))

    for first, (begun, _) in enumerate(taken):
        for last in range(first, len(taken)):
            span = taken[last][0] - begun
            used = sum(tokens for _, tokens in taken[first : last + 1])
            assert used <= per_minute + span * per_minute / 60 + 1e-6


def test_a_limit_below_one_is_the_callers_mistake() -> None:
    """A bucket that never fills would refuse everything, without a time to come back."""
    with pytest.raises(UsageError, match="output_tokens=0"):
        RateLimits(output_tokens=0)


def test_a_client_that_obeys_gets_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK waits as long as it is told to, and each of its calls is answered."""
    clock = Clock(0.0)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock.advance(seconds)

    with (
        Emulator(lambda _body: "Hello.", clock=clock, limits=RateLimits(requests=2)) as emulator,
        anthropic.Anthropic(api_key="k", base_url=emulator.base_url, max_retries=1) as client,
    ):
        client.messages.create(**body())
        monkeypatch.setattr("time.sleep", sleep)
        replies = [client.messages.create(**body()).content[-1].text for _ in range(4)]

    assert replies == ["Hello."] * 4
    assert slept == [30.0] * 3
    assert len(emulator.requests) == 8


def test_output_tokens_per_minute() -> None:
    reply = EmulatedReply("x", output_tokens=80)
    core = api(reply, limits=RateLimits(output_tokens=100))

    statuses = [send(core, body(max_tokens=100_000)).status for _ in range(3)]
    core.clock.advance(60)

    assert statuses == [200, 200, 429]
    assert send(core, body()).status == 200


def test_model_classes_have_their_own_buckets() -> None:
    core = api(limits=RateLimits(requests=1))
    ask(core)

    assert send(core, body()).status == 429
    assert send(core, body(model="claude-opus-5-5")).status == 200
    assert send(core, body(model="claude-sonnet-5")).status == 429


def test_headers_report_what_is_left() -> None:
    core = api(clock=Clock(1_000.0), limits=RateLimits(60, 1_000, 500))

    headers = send(core, body(messages=[user("x" * 100)])).headers

    assert headers[f"{PREFIX}requests-limit"] == "60"
    assert headers[f"{PREFIX}requests-remaining"] == "59"
    assert headers[f"{PREFIX}requests-reset"] == "1970-01-01T00:16:41Z"
    assert headers[f"{PREFIX}input-tokens-remaining"] == str(1_000 - 41)
    assert headers[f"{PREFIX}tokens-limit"] == "1500"


@pytest.mark.parametrize("limits", [None, RateLimits()])
def test_a_refusal_takes_nothing(limits: RateLimits | None) -> None:
    """An invalid request costs no request and no tokens, and reports none, as the real API."""
    used, unused = (api(limits=limits) for _ in "ab")

    refused = send(used, body(max_tokens=...))

    assert not any(name.startswith(PREFIX) for name in refused.headers)
    assert send(used, body()).headers == send(unused, body()).headers
