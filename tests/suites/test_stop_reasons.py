"""A table: what goes wrong, why the work stops, what it cost, and that nothing is lost."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from failing_models import (
    FIRST_LIMIT,
    OVERLOADED,
    InTurn,
    Responder,
    Truncating,
    cut,
    deaf,
    said_before,
)
from reference_writer import ReferenceWriter
from served_stores import (
    EXAMPLE,
    SMALL_OPERATION,
    copy_of,
    errors_of,
    issues_of,
    served,
)

from pytest_regen.cassettes import use_cassette
from pytest_regen.documents.ir import FieldIR, Scalar
from pytest_regen.emulator import EmulatedReply, Fault
from pytest_regen.errors import (
    BudgetError,
    CassetteMissError,
    RefusedError,
    RejectedRequestError,
    TransportError,
)
from pytest_regen.regeneration import (
    StopReason,
    TurnSettings,
    generate_store,
    heal_store,
    partial_regenerate,
)
from pytest_regen.stores import RegenStore, history
from pytest_regen.turns import AnthropicProvider, Budget


@dataclass(frozen=True)
class Case:
    """One line of the table: healing one page with one fault in it."""

    name: str
    responder: Callable[[], Responder]
    reason: StopReason
    calls: int
    rounds: int = 1
    requests: int | None = None
    """That arrive at the API; the client's own retries included. As many as calls if not given."""
    failure: type[Exception] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    """Of the client."""


def lost(
    name: str, *events: Any, calls: int = 1, failure: type[Exception] = TransportError, **more: Any
) -> Case:
    """Return a case in which the API answers so, and no page comes of it."""
    return Case(name, lambda: InTurn(*events), "transport", calls, 3, failure=failure, **more)


CASES = (
    Case("corrected", InTurn, "clean", 1),
    Case("truncated once", lambda: Truncating(1), "clean", 2),
    Case("truncated and continued three times", lambda: Truncating(4), "clean", 5),
    Case("truncated for ever", lambda: Truncating(99), "attempts", 5),
    Case("truncated for ever, twice", lambda: Truncating(99), "no_progress", 10, 5),
    Case(
        "refused",
        lambda: InTurn(EmulatedReply(stop_reason="refusal", category="cyber")),
        "refused",
        1,
        3,
        failure=RefusedError,
    ),
    Case("overloaded twice", lambda: InTurn(OVERLOADED, OVERLOADED), "clean", 1, requests=3),
    lost("overloaded for ever", *[OVERLOADED] * 9, requests=3),
    lost("connection dropped", *[Fault(kind="drop")] * 9, options={"max_retries": 0}),
    lost(
        "stream cut",
        lambda body: cut(ReferenceWriter()(body), 0.3),
        Fault(kind="cut"),
        calls=2,
        options={"max_retries": 0},
    ),
    lost("key refused", Fault(status=401), failure=RejectedRequestError),
    Case("the same again", lambda: deaf("drop_field"), "no_progress", 1, 5),
    Case("A, B, A", lambda: InTurn(deaf("invent_field"), deaf("drop_field")), "no_progress", 2, 5),
    Case(
        "another fault each time",
        lambda: InTurn(*(deaf("drop_field", victim) for victim in (1, 2, 3))),
        "attempts",
        3,
        3,
    ),
)


@pytest.fixture
def faulty(good: RegenStore, tmp_path: Path) -> RegenStore:
    """A copy in which a field of the root is missing."""
    root = good.type_names[0]
    path = copy_of(good, tmp_path)
    with served(ReferenceWriter(mistake="drop_field")) as server:
        partial_regenerate(path, [root], provider=server.provider, accept_any=True)
    store = RegenStore.open(path)
    assert [issue.code for issue in errors_of(store)] == ["MISSING_FIELD"]
    return store


def check_nothing_lost(before: RegenStore) -> RegenStore:
    """Assert that the store loads and holds each page it held, or what replaced it; return it."""
    after = RegenStore.open(before.path)
    told = {entry.output for entry in history(before.path)}
    assert {page.output for page in before.pages.values()} <= {
        *(page.output for page in after.pages.values()),
        *told,
    }
    assert after.missing_pages == before.missing_pages
    root = before.type_names[0]
    assert {key: page for key, page in after.pages.items() if key.type_name != root} == {
        key: page for key, page in before.pages.items() if key.type_name != root
    }
    return after


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_goes_wrong_while_healing(case: Case, faulty: RegenStore, good: RegenStore) -> None:
    """Reason, calls and what arrived at the API are those of the table; nothing is lost."""
    root = faulty.type_names[0]
    with served(case.responder(), **case.options) as server:
        done = heal_store(faulty.path, settings=server.settings, attempts=case.rounds)
        requests = len(server.bodies)

    assert (done.stop_reasons[root], done.calls) == (case.reason, case.calls)
    assert requests == (case.requests or case.calls)
    assert [type(one) for one in done.failures] == ([case.failure] if case.failure else [])
    after = check_nothing_lost(faulty)
    if case.reason == "clean":
        assert issues_of(after) == []
        assert after.source == good.source
        assert done.regenerated == [(root, 1)]
    else:
        assert after.source == faulty.source
        assert not done.regenerated


def test_a_truncated_reply_is_asked_with_more_room_then_continued(faulty: RegenStore) -> None:
    """A larger limit first, then turns that go on where the reply stopped, joined as one page."""
    with served(Truncating(2)) as server:
        heal_store(faulty.path, settings=server.settings)
        first, second, third = server.bodies

    assert first["max_tokens"] == FIRST_LIMIT
    assert second["max_tokens"] > FIRST_LIMIT
    assert first["messages"] == second["messages"]
    assert said_before(third)
    assert len(third["messages"]) == 3


def test_a_fault_of_the_prompt_costs_no_call(good: RegenStore, tmp_path: Path) -> None:
    """A field that no stored prompt asks for: UNFIXABLE, and nothing is asked."""
    path = copy_of(good, tmp_path)
    root = good.ir.types[0]
    unasked = FieldIR(json_name="unasked", type=Scalar(kind="string"))
    wider = root.model_copy(update={"fields": (*root.fields, unasked)})
    with RegenStore.update(path) as tx:
        tx.write(ir=good.ir.model_copy(update={"types": (wider, *good.ir.types[1:])}))

    with served() as server:
        done = heal_store(path, settings=server.settings)
        requests = list(server.bodies)

    assert (done.stop_reasons, done.calls) == ({root.name: "unfixable"}, 0)
    assert requests == []
    assert RegenStore.open(path).source == good.source


def test_a_spent_budget_makes_no_further_call(faulty: RegenStore) -> None:
    root = faulty.type_names[0]
    with served() as server:
        settings = replace(server.settings, budget=Budget(10))
        done = heal_store(faulty.path, settings=settings)
        requests = list(server.bodies)

    assert (done.stop_reasons[root], done.calls) == ("budget", 0)
    (failure,) = done.failures
    assert isinstance(failure, BudgetError)
    assert f"budget of {2 * (failure.needed or 0)}," in failure.hint
    assert requests == []
    assert check_nothing_lost(faulty).source == faulty.source


def test_a_cassette_without_an_answer_stops_the_work(faulty: RegenStore, tmp_path: Path) -> None:
    root = faulty.type_names[0]
    with served() as server:
        # Recorded for a store that is asked without a correction: its requests are others.
        with use_cassette(tmp_path / "one.yaml", mode="once"):
            generate_store(EXAMPLE, SMALL_OPERATION, tmp_path / "x", settings=server.settings)
        server.emulator.requests.clear()
        with use_cassette(tmp_path / "one.yaml", mode="none"):
            done = heal_store(faulty.path, settings=server.settings)
        requests = list(server.bodies)

    assert (done.stop_reasons[root], done.calls) == ("cassette_miss", 0)
    assert [type(one) for one in done.failures] == [CassetteMissError]
    assert requests == []
    assert check_nothing_lost(faulty).source == faulty.source


def test_no_key_is_told_without_a_call(faulty: RegenStore) -> None:
    provider = AnthropicProvider(base_url="http://127.0.0.1:9")
    done = heal_store(faulty.path, settings=TurnSettings(provider))

    assert (done.stop_reasons, done.calls) == ({faulty.type_names[0]: "transport"}, 0)
    assert check_nothing_lost(faulty).source == faulty.source
