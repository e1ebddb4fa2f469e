"""Batches are checked late, end by the clock, and keep their results apart."""

from typing import Any

import pytest
from emulator_requests import api, body, dumped, said, send

from pytest_regen.emulator.api import MessagesApi
from pytest_regen.emulator.clock import Clock
from pytest_regen.emulator.values import Fault

ROOT = "/v1/messages/batches"


def create(core: MessagesApi, *params: dict[str, Any]) -> dict[str, Any]:
    """Return a batch of the given requests."""
    requests = [{"custom_id": f"r{n}", "params": given} for n, given in enumerate(params)]
    return said(send(core, {"requests": requests}, path=ROOT))


def get(core: MessagesApi, path: str, **query: str) -> dict[str, Any]:
    """Return what stands at one path of the batches."""
    return said(send(core, method="GET", path=f"{ROOT}{path}", query=query))


def test_counts_stay_at_zero_until_the_end() -> None:
    """While it runs, everything is processing and there are no results."""
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


def test_faults_and_wrong_requests_are_results() -> None:
    """What one request lacks does not touch the others."""
    clock = Clock(0.0)
    core = api(Fault(529), clock=clock)
    batch = create(core, body(), body(stream=True), {"model": "x"})
    clock.advance(60)

    counts = get(core, f"/{batch['id']}")["request_counts"]

    assert (counts["errored"], counts["succeeded"]) == (3, 0)


def test_a_batch_of_a_day_expires() -> None:
    """After 24 hours what was not processed has expired."""
    clock = Clock(0.0)
    core = api(clock=clock, batch_seconds=25 * 3600)
    batch = create(core, body())
    clock.advance(24 * 3600)

    assert get(core, f"/{batch['id']}")["request_counts"]["expired"] == 1


def test_a_running_batch_cannot_be_deleted() -> None:
    """It has to end, or be cancelled, first."""
    core = api()
    batch = create(core, body())

    assert send(core, method="DELETE", path=f"{ROOT}/{batch['id']}").status == 400


def test_the_same_batch_twice_is_two_batches() -> None:
    """They are told apart, and a first batch has the same id everywhere."""
    core = api()

    first, second = create(core, body()), create(core, body())

    assert first["id"] != second["id"]
    assert create(api(), body())["id"] == first["id"]


def test_batches_are_listed_in_pages() -> None:
    """Newest first, forward and backward."""
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
        {},
        {"requests": []},
        {"requests": [{"custom_id": "a"}]},
        {"requests": [{"custom_id": "a b", "params": {}}]},
        {"requests": [{"custom_id": "a" * 65, "params": {}}]},
        {"requests": [{"custom_id": "a", "params": {}}] * 2},
    ],
)
def test_a_malformed_batch_is_refused(payload: dict[str, Any]) -> None:
    """Custom ids are checked at once, the requests themselves only later."""
    assert send(api(), dumped(payload), path=ROOT).status == 400


@pytest.mark.parametrize("query", [{"limit": "0"}, {"limit": "x"}, {"after_id": "none"}])
def test_a_wrong_page_is_refused(query: dict[str, str]) -> None:
    """Parameters of a list are checked."""
    assert send(api(), method="GET", path=ROOT, query=query).status == 400
