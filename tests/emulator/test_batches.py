"""Batches are checked late, end by the clock, and keep their results apart."""

import json
from typing import Any

from emulator_requests import api, body, said, send, text, user
from tables import each

from pytest_regen.emulator import Emulator
from pytest_regen.emulator.limits import Clock, RateLimits
from pytest_regen.emulator.values import Fault

ROOT = "/v1/messages/batches"


def create(core: Emulator, *params: dict[str, Any]) -> dict[str, Any]:
    requests = [{"custom_id": f"r{n}", "params": given} for n, given in enumerate(params)]
    return said(send(core, {"requests": requests}, path=ROOT))


def get(core: Emulator, path: str) -> dict[str, Any]:
    return said(send(core, method="GET", path=f"{ROOT}{path}", host="127.0.0.1:9"))


def results(core: Emulator, batch: dict[str, Any]) -> list[dict[str, Any]]:
    response = send(core, method="GET", path=f"{ROOT}/{batch['id']}/results")
    return [json.loads(line) for line in response.body.splitlines()]


def test_a_batch_ends_by_the_clock_and_keeps_its_results_for_29_days() -> None:
    """Counts stay at zero until the end; then the batch can be seen longer than its results."""
    clock = Clock(0.0)
    core = api(clock=clock, batch_seconds=100)
    batch = create(core, body(), body(max_tokens=5))

    clock.advance(99)
    running = get(core, f"/{batch['id']}")
    early = [
        send(core, method=method, path=f"{ROOT}/{batch['id']}{what}").status
        for method, what in (("GET", "/results"), ("DELETE", ""))
    ]
    clock.advance(1)
    ended = get(core, f"/{batch['id']}")
    clock.advance(29 * 24 * 3600)
    archived = get(core, f"/{batch['id']}")

    assert running == batch
    assert early == [400, 400]
    assert ended["request_counts"]["succeeded"] == 2
    assert ended["ended_at"] == "1970-01-01T00:01:40Z"
    assert ended["results_url"] == f"http://127.0.0.1:9{ROOT}/{batch['id']}/results"
    assert (archived["results_url"], archived["archived_at"]) == (None, "1970-01-30T00:00:00Z")


@each(
    ("said", "fields", "told"),
    [
        (
            Fault(429, message="No more.", error_code="spent"),
            {},
            {
                "type": "rate_limit_error",
                "message": "No more.",
                "details": {"error_code": "spent"},
            },
        ),
        (
            "Hello.",
            {"stream": True},
            {"type": "invalid_request_error", "message": "stream: not supported in a batch"},
        ),
        (Fault(kind="expire"), {}, None),
    ],
)
def test_what_goes_wrong_is_found_late(
    said: Any, fields: dict[str, Any], told: dict[str, Any] | None
) -> None:
    """The batch is accepted; the result of that request is an error like that of a call."""
    core = api(said)
    batch = create(core, body(**fields))
    core.clock.advance(60)

    [result] = results(core, batch)

    assert result["result"].get("error", {}).get("error") == told
    assert result["result"]["type"] == ("errored" if told else "expired")


def test_a_batch_reads_and_writes_the_cache() -> None:
    core = api()
    system = [text("x" * 2_000, "1h")]
    batch = create(core, *(body(system=system, messages=[user(str(n))]) for n in range(3)))
    core.clock.advance(60)

    usages = [result["result"]["message"]["usage"] for result in results(core, batch)]

    assert sorted(usage["cache_read_input_tokens"] for usage in usages) == [0, 820, 820]


@each(
    "payload",
    [
        {"requests": []},
        {"requests": [{"custom_id": "a b", "params": {}}]},
        {"requests": [{"custom_id": "a", "params": {}}] * 2},
    ],
)
def test_a_malformed_batch_is_refused_at_once(payload: dict[str, Any]) -> None:
    assert send(api(), payload, path=ROOT).status == 400


def test_batches_have_limits_of_their_own() -> None:
    """So many calls a minute; calls of messages are not counted with them."""
    core = api(clock=Clock(0.0), limits=RateLimits(requests=1, batch_requests=3))
    requests = [{"custom_id": f"r{number}", "params": body()} for number in range(2)]

    created = send(core, {"requests": requests}, path=ROOT).status
    listed = [send(core, method="GET", path=ROOT).status for _ in range(3)]

    assert created == 200
    assert listed == [200, 200, 429]
    assert send(core, body()).status == 200


def test_batches_are_listed_in_pages() -> None:
    """Newest first, as many as asked for; a page says whether another one follows."""
    core = api()
    ids = [create(core, body(max_tokens=n + 1))["id"] for n in range(4)][::-1]

    first, second = get(core, "?limit=2"), get(core, f"?limit=2&after_id={ids[1]}")

    listed = [[batch["id"] for batch in page["data"]] for page in (first, second)]
    assert listed == [ids[:2], ids[2:]]
    assert [page["has_more"] for page in (first, second)] == [True, False]
