"""Rate limits hold by the minute, refill by the clock, and are reported in headers."""

import pytest
from emulator_requests import api, ask, body, said, send, text, user

from pytest_regen.emulator import Clock, EmulatedReply, RateLimits

PREFIX = "anthropic-ratelimit-"


def test_requests_per_minute() -> None:
    """The request over the limit is told when to come back, and then may."""
    clock = Clock(0.0)
    core = api(clock=clock, limits=RateLimits(requests=3))
    for _ in range(3):
        ask(core)

    refused = send(core, body())
    clock.advance(int(refused.headers["retry-after"]))

    assert refused.status == 429
    assert said(refused)["error"]["type"] == "rate_limit_error"
    assert refused.headers["retry-after"] == "20"
    assert send(core, body()).status == 200


def test_cache_reads_do_not_count_as_input() -> None:
    """A long prefix is charged when it is written, not when it is read."""
    clock = Clock(0.0)
    core = api(clock=clock, limits=RateLimits(input_tokens=1_000))
    system = [text("x" * 2_000, "5m")]

    statuses = [send(core, body(system=system)).status for _ in range(5)]
    uncached = send(core, body(system="y" * 2_000))

    assert statuses == [200] * 5
    assert uncached.status == 429


def test_output_tokens_per_minute() -> None:
    """Output is charged as it is spoken, whatever ``max_tokens`` says."""
    clock = Clock(0.0)
    reply = EmulatedReply("x", output_tokens=80)
    core = api(reply, clock=clock, limits=RateLimits(output_tokens=100))

    statuses = [send(core, body(max_tokens=100_000)).status for _ in range(3)]
    clock.advance(60)

    assert statuses == [200, 200, 429]
    assert send(core, body()).status == 200


def test_model_classes_have_their_own_buckets() -> None:
    """One class at its limit leaves the others alone."""
    core = api(limits=RateLimits(requests=1))
    ask(core)

    assert send(core, body()).status == 429
    assert send(core, body(model="claude-opus-5-5")).status == 200
    assert send(core, body(model="claude-sonnet-5")).status == 429


def test_counting_tokens_has_a_pool_of_its_own() -> None:
    """It is refused by its own limit only."""
    core = api(limits=RateLimits(requests=1, count_requests=2))
    ask(core)
    count = body(max_tokens=...)

    statuses = [send(core, count, path="/v1/messages/count_tokens").status for _ in range(3)]

    assert statuses == [200, 200, 429]


def test_headers_report_what_is_left() -> None:
    """Limit, remaining and reset of requests, input, output and both together."""
    core = api(clock=Clock(1_000.0), limits=RateLimits(60, 1_000, 500))

    headers = send(core, body(messages=[user("x" * 100)])).headers

    assert headers[f"{PREFIX}requests-limit"] == "60"
    assert headers[f"{PREFIX}requests-remaining"] == "59"
    assert headers[f"{PREFIX}requests-reset"] == "1970-01-01T00:16:41Z"
    assert headers[f"{PREFIX}input-tokens-remaining"] == str(1_000 - 41)
    assert headers[f"{PREFIX}tokens-limit"] == "1500"


@pytest.mark.parametrize("limits", [None, RateLimits()])
def test_a_refusal_takes_nothing(limits: RateLimits | None) -> None:
    """An invalid request costs no tokens."""
    core = api(limits=limits)
    before = send(core, body(max_tokens=...)).headers

    after = send(core, body(max_tokens=...)).headers

    assert before[f"{PREFIX}requests-remaining"] == after[f"{PREFIX}requests-remaining"]
