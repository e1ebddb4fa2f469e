"""Rate limits hold by the minute, refill by the clock, and are reported in headers."""

import pytest
from emulator_requests import api, ask, body, said, send, text, user

from pytest_regen.emulator import EmulatedReply, RateLimits
from pytest_regen.errors import UsageError

PREFIX = "anthropic-ratelimit-"


def test_cache_reads_do_not_count_as_input() -> None:
    """A long prefix is charged when it is written, not when it is read."""
    core = api(limits=RateLimits(input_tokens=1_000))
    system = [text("x" * 2_000, "5m")]

    statuses = [send(core, body(system=system)).status for _ in range(5)]
    uncached = send(core, body(system="y" * 2_000))

    assert statuses == [200] * 5
    assert uncached.status == 429


def test_each_class_of_models_has_buckets_that_refill() -> None:
    """The request over the limit is told when to come back, and then may; others may at once."""
    core = api(limits=RateLimits(requests=3))
    for _ in range(3):
        ask(core)

    refused = send(core, body())
    others = [send(core, body(model=f"claude-{name}")).status for name in ("opus-5-5", "sonnet-5")]
    core.clock.advance(int(refused.headers["retry-after"]))

    assert refused.status == 429
    assert said(refused)["error"]["type"] == "rate_limit_error"
    assert refused.headers["retry-after"] == "20"
    assert others == [200, 429]
    assert send(core, body()).status == 200


def test_output_counts_once_it_is_known() -> None:
    core = api(EmulatedReply("x", output_tokens=80), limits=RateLimits(output_tokens=100))

    statuses = [send(core, body(max_tokens=100_000)).status for _ in range(3)]
    core.clock.advance(60)

    assert statuses == [200, 200, 429]
    assert send(core, body()).status == 200


def test_headers_report_what_is_left() -> None:
    """An invalid request costs nothing, and reports nothing, as with the real API."""
    core = api(limits=RateLimits(60, 1_000, 500))
    core.clock.set(1_000.0)

    refused = send(core, body(max_tokens=...)).headers
    headers = send(core, body(messages=[user("x" * 100)])).headers

    assert not any(name.startswith(PREFIX) for name in refused)
    assert headers[f"{PREFIX}requests-limit"] == "60"
    assert headers[f"{PREFIX}requests-remaining"] == "59"
    assert headers[f"{PREFIX}requests-reset"] == "1970-01-01T00:16:41Z"
    assert headers[f"{PREFIX}input-tokens-remaining"] == str(1_000 - 41)


def test_a_bucket_that_never_fills_is_the_callers_mistake() -> None:
    with pytest.raises(UsageError, match="output_tokens=0"):
        RateLimits(output_tokens=0)
