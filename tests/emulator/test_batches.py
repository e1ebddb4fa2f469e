"""Batches are checked late, end by the clock, and keep their results apart."""

import json
from typing import Any

import pytest
from emulator_requests import api, body, dumped, said, send, text, user

from pytest_regen.emulator import Emulator
from pytest_regen.emulator.limits import Clock, RateLimits
from pytest_regen.emulator.script import Script
from pytest_regen.emulator.values import BatchStep, Fault

ROOT = "/v1/messages/batches"


def create(core: Emulator, *params: dict[str, Any]) -> dict[str, Any]:
    requests = [{"custom_id": f"r{n}", "params": given} for n, given in enumerate(params)]
    return said(send(core, {"requests": requests}, path=ROOT))


def get(core: Emulator, path: str, **query: str) -> dict[str, Any]:
    return said(send(core, method="GET", path=f"{ROOT}{path}", query=query))


def results(core: Emulator, batch: dict[str, Any]) -> list[dict[str, Any]]:
    response = send(core, method="GET", path=f"{ROOT}/{batch['id']}/results")
    return [json.loads(line) for line in response.body.splitlines()]


def test_counts_stay_at_zero_until_the_end() -> None:
    clock = Clock(0.0)
    core = api(clock=clock, batch_seconds=100)
    batch = create(core, body(), body(max_tokens=5))

    clock.advance(99)
    running = get(core, f"/{batch['id']}")
    early = send(core, method="GET", path=f"{ROOT}/{batch['id']}/results")
    clock.advance(1)
    ended = get(core, f"/{batch['id']}")

    assert running == batch
    assert early.status == 400
    assert ended["request_counts"]["succeeded"] == 2
    assert ended["ended_at"] == "1970-01-01T00:01:40Z"
    assert ended["results_url"] == f"http://127.0.0.1:9{ROOT}/{batch['id']}/results"


@pytest.mark.parametrize("fields", [{"stream": True}, {"max_tokens": 0}])
def test_what_a_batch_does_not_take_is_found_late(fields: dict[str, Any]) -> None:
    """The batch is accepted; the result of that request is an error like that of a call."""
    core = api()
    batch = create(core, body(**fields))
    core.clock.advance(60)

    [result] = results(core, batch)

    error = result["result"]["error"]
    assert result["result"]["type"] == "errored"
    assert list(error) == ["type", "error", "request_id"]
    assert error["error"]["type"] == "invalid_request_error"


def test_a_fault_is_a_result_with_all_it_says() -> None:
    """Its type, message and code are those a call would get."""
    core = api(Fault(429, message="No more.", error_code="spent"))
    batch = create(core, body())
    core.clock.advance(60)

    [result] = results(core, batch)

    assert result["result"]["error"]["error"] == {
        "type": "rate_limit_error",
        "message": "No more.",
        "details": {"error_code": "spent"},
    }


def test_results_are_kept_for_29_days() -> None:
    """Then the batch can still be seen, but its results are gone."""
    clock = Clock(0.0)
    core = api(clock=clock)
    batch = create(core, body())

    clock.advance(29 * 24 * 3600 - 1)
    kept = get(core, f"/{batch['id']}")
    clock.advance(1)
    archived = get(core, f"/{batch['id']}")

    assert kept["results_url"]
    assert kept["archived_at"] is None
    assert archived["results_url"] is None
    assert archived["archived_at"] == "1970-01-30T00:00:00Z"
    assert send(core, method="GET", path=f"{ROOT}/{batch['id']}/results").status == 404


def test_a_batch_reads_and_writes_the_cache() -> None:
    core = api()
    system = [text("x" * 2_000, "1h")]
    batch = create(core, *(body(system=system, messages=[user(str(n))]) for n in range(3)))
    core.clock.advance(60)

    usages = [result["result"]["message"]["usage"] for result in results(core, batch)]

    assert sorted(usage["cache_read_input_tokens"] for usage in usages) == [0, 820, 820]


def test_batches_have_limits_of_their_own() -> None:
    """So many calls a minute; calls of messages are not counted with them."""
    core = api(clock=Clock(0.0), limits=RateLimits(requests=1, batch_requests=3))
    requests = [{"custom_id": f"r{number}", "params": body()} for number in range(2)]

    created = send(core, {"requests": requests}, path=ROOT).status
    listed = [send(core, method="GET", path=ROOT).status for _ in range(3)]

    assert created == 200
    assert listed == [200, 200, 429]
    assert send(core, body()).status == 200


def test_a_batch_of_a_day_expires() -> None:
    core = api(batch_seconds=25 * 3600)
    batch = create(core, body())
    core.clock.advance(24 * 3600)

    assert get(core, f"/{batch['id']}")["request_counts"]["expired"] == 1


def test_one_request_of_a_batch_can_expire() -> None:
    """A fault of that kind is a result without an error; in a call it is an error."""
    core = api(Fault(kind="expire"))
    batch = create(core, body())
    core.clock.advance(60)

    assert results(core, batch) == [{"custom_id": "r0", "result": {"type": "expired"}}]
    assert send(core, body()).status == 529


def test_a_batch_can_take_a_time_of_its_own() -> None:
    steps = Script(batches=[BatchStep(seconds=5), BatchStep(seconds=9)])
    core = api(script=steps)
    made = [create(core, body(max_tokens=n)) for n in (1, 2, 3)]
    core.clock.advance(6)

    states = [get(core, f"/{batch['id']}")["processing_status"] for batch in made]

    assert states == ["ended", "in_progress", "in_progress"]


def test_a_batch_can_be_there_although_nobody_was_told() -> None:
    """The connection is closed instead of the answer; where it is refused there is no batch."""
    steps = Script(
        batches=[BatchStep(fault=Fault(kind=kind)) for kind in ("drop", "cut", "status")]
    )
    core = api(script=steps)
    requests = {"requests": [{"custom_id": "a", "params": body()}]}

    dropped, cut, refused = (send(core, requests, path=ROOT) for _ in range(3))

    assert [dropped.end, cut.end, refused.status] == ["drop", "cut", 529]
    assert len(get(core, "")["data"]) == 2


def test_a_batch_can_be_listed_late() -> None:
    """The API may still be busy with the call that creates it."""
    core = api(script=Script(batches=[BatchStep(unlisted=5)]))
    batch = create(core, body())
    early = get(core, "")["data"], send(core, method="GET", path=f"{ROOT}/{batch['id']}").status
    core.clock.advance(5)

    assert early == ([], 404)
    assert [listed["id"] for listed in get(core, "")["data"]] == [batch["id"]]


def test_a_running_batch_cannot_be_deleted() -> None:
    core = api()
    batch = create(core, body())

    assert send(core, method="DELETE", path=f"{ROOT}/{batch['id']}").status == 400


def test_batches_are_listed_in_pages() -> None:
    core = api()
    ids = [create(core, body(max_tokens=n + 1))["id"] for n in range(5)][::-1]

    first = get(core, "", limit="2")
    second = get(core, "", limit="2", after_id=first["last_id"])
    back = get(core, "", limit="2", before_id=second["first_id"])
    last = get(core, "", limit="2", after_id=second["last_id"])

    assert [batch["id"] for batch in first["data"]] == ids[:2]
    assert [batch["id"] for batch in second["data"]] == ids[2:4]
    assert [batch["id"] for batch in back["data"]] == ids[:2]
    assert [page["has_more"] for page in (first, second, back, last)] == [True, True, False, False]


@pytest.mark.parametrize(
    "payload",
    [
        {"requests": []},
        {"requests": [{"custom_id": "a b", "params": {}}]},
        {"requests": [{"custom_id": "a", "params": {}}] * 2},
        {"requests": [{"custom_id": f"r{number}", "params": {}} for number in range(100_001)]},
    ],
)
def test_a_malformed_batch_is_refused(payload: dict[str, Any]) -> None:
    """Custom ids are checked at once, the requests themselves only later."""
    assert send(api(), dumped(payload), path=ROOT).status == 400


@pytest.mark.parametrize("query", [{"limit": "0"}, {"limit": "x"}, {"after_id": "none"}])
def test_a_wrong_page_is_refused(query: dict[str, str]) -> None:
    assert send(api(), method="GET", path=ROOT, query=query).status == 400
