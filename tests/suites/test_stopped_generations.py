"""A generation that is stopped: why, after how many calls, what is stored, how it goes on."""

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from failing_models import OVERLOADED, Body, Responder
from reference_writer import ReferenceWriter
from reference_writer_request import parse_request
from served_stores import (
    EXAMPLE,
    SMALL_OPERATION,
    errors_of,
    issues_of,
    served,
)

from pytest_regen.emulator import EmulatedReply, Fault
from pytest_regen.regeneration import (
    StopReason,
    generate_store,
)
from pytest_regen.stores import RegenStore
from pytest_regen.turns import Budget


@dataclass(frozen=True)
class Run:
    """One line of the table: a fault on the third page of a store that is generated."""

    name: str
    fault: Fault | EmulatedReply
    reason: StopReason
    calls: int
    """Until the run ends, the third page's included."""
    options: dict[str, Any] = field(default_factory=dict)
    stops: bool = True
    """Whether the pages after it are not asked."""


RUNS = (
    Run("refused", EmulatedReply(stop_reason="refusal"), "refused", 0, stops=False),
    Run("overloaded", OVERLOADED, "transport", 3),
    Run("dropped", Fault(kind="drop"), "transport", 3, {"max_retries": 0}),
    Run("key refused", Fault(status=401), "transport", 3),
)
THIRD = 2


def third_page_fails(store: RegenStore, fault: Fault | EmulatedReply) -> Responder:
    """Return a writer of correct pages that fails on the third page of the plan."""
    key = store.prompts[THIRD].key

    def write(body: Body) -> str | EmulatedReply | Fault:
        page = parse_request(body)
        return fault if page.key == (key.type_name, key.page) else ReferenceWriter()(body)

    return write


def check_resumed(good: RegenStore, path: Path, out: Path, missing: int) -> None:
    """Assert that the same command asks only what is missing, and ends with the whole store."""
    with served() as server:
        again = generate_store(
            EXAMPLE, SMALL_OPERATION, out, provider=server.provider, fields_per_page=20
        )
        requests = len(server.bodies)
    assert requests == again.calls == missing
    done = RegenStore.open(path)
    assert issues_of(done) == []
    assert done.missing_pages == ()
    assert done.source == good.source


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_what_goes_wrong_while_generating(run: Run, good: RegenStore, tmp_path: Path) -> None:
    """The pages before the fault are stored, the reason told; the same command then finishes."""
    third = good.prompts[THIRD].key
    total = len(good.prompts)
    assert total > 4
    with served(third_page_fails(good, run.fault), **run.options) as server:
        made = generate_store(
            EXAMPLE, SMALL_OPERATION, tmp_path, provider=server.provider, fields_per_page=20
        )
        asked = Counter(page.key for page in server.asked)

    assert made.stop_reasons == {third.type_name: run.reason}
    assert made.calls == (run.calls or total)
    assert len(made.failures) == 1
    store = RegenStore.open(made.plan.path)
    lost = [entry.key for entry in good.prompts][THIRD : None if run.stops else THIRD + 1]
    assert list(store.missing_pages) == lost
    assert all(asked[key.type_name, key.page] == 0 for key in lost[1:])
    assert {key: page.output for key, page in store.pages.items()}.items() <= {
        key: page.output for key, page in good.pages.items()
    }.items()
    check_resumed(good, store.path, tmp_path, len(lost))


def test_a_budget_stops_a_generation_before_the_call_it_does_not_cover(
    good: RegenStore, tmp_path: Path
) -> None:
    """Call N+1 is not made; what N calls brought is stored, and a larger budget goes on."""
    with served() as server:
        whole = generate_store(
            EXAMPLE, SMALL_OPERATION, tmp_path / "all", settings=server.settings, fields_per_page=20
        )
        limit = whole.usage.total_tokens // 2
        budget = Budget(limit)
        server.answers(ReferenceWriter())
        settings = replace(server.settings, budget=budget)
        made = generate_store(
            EXAMPLE, SMALL_OPERATION, tmp_path, settings=settings, fields_per_page=20
        )
        requests = len(server.bodies)

    store = RegenStore.open(made.plan.path)
    assert set(made.stop_reasons.values()) == {"budget"}
    assert 0 < requests == made.calls == len(store.pages) < len(store.prompts)
    assert budget.spent <= limit
    assert errors_of(store)
    check_resumed(good, store.path, tmp_path, len(store.missing_pages))
