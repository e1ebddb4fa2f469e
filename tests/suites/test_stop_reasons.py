"""A table: what goes wrong, why the work stops, what it cost, and that nothing is lost."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from failing_models import (
    FIRST_LIMIT,
    OVERLOADED,
    Body,
    InTurn,
    Responder,
    Truncating,
    cut,
    deaf,
    said_before,
)
from reference_writer import ReferenceWriter, parse_request
from served_stores import (
    EXAMPLE,
    SMALL_OPERATION,
    Served,
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
    GenerateResult,
    StopReason,
    generate_store,
    heal_store,
    partial_regenerate,
)
from pytest_regen.stores import RegenStore, history
from pytest_regen.turns import Budget


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


def generated(server: Served, out: Path, **options: Any) -> GenerateResult:
    """Generate the small store; ``options`` are settings of its turns."""
    settings = replace(server.settings, **options)
    return generate_store(EXAMPLE, SMALL_OPERATION, out, settings=settings, fields_per_page=20)


def check_resumed(good: RegenStore, path: Path, missing: int) -> None:
    """Assert that the same command asks only what is missing, and ends with the whole store."""
    with served() as server:
        again = generated(server, path.parent)
        requests = len(server.bodies)
    assert requests == again.calls == missing
    done = RegenStore.open(path)
    assert issues_of(done) == []
    assert done.missing_pages == ()
    assert done.source == good.source


@pytest.mark.parametrize(
    ("fault", "reason"),
    [(EmulatedReply(stop_reason="refusal"), "refused"), (Fault(status=401), "transport")],
)
def test_what_goes_wrong_while_generating(
    fault: Fault | EmulatedReply, reason: StopReason, good: RegenStore, tmp_path: Path
) -> None:
    """The pages before the fault are stored, the reason told; the same command then finishes."""
    third = good.prompts[2].key

    def third_page_fails(body: Body) -> str | EmulatedReply | Fault:
        page = parse_request(body)
        return fault if page.key == (third.type_name, third.page) else ReferenceWriter()(body)

    with served(third_page_fails) as server:
        made = generated(server, tmp_path)
        asked = {page.key for page in server.asked}

    keys = [entry.key for entry in good.prompts]
    # What was refused says nothing of other pages; what did not arrive says all of them will not.
    lost = keys[2:3] if reason == "refused" else keys[2:]
    assert made.stop_reasons == {third.type_name: reason}
    assert made.calls == (len(keys) if reason == "refused" else 3)
    assert len(made.failures) == 1
    store = RegenStore.open(made.plan.path)
    assert list(store.missing_pages) == lost
    assert asked.isdisjoint((key.type_name, key.page) for key in lost[1:])
    assert {key: page.output for key, page in store.pages.items()}.items() <= {
        key: page.output for key, page in good.pages.items()
    }.items()
    check_resumed(good, store.path, len(lost))


def test_a_budget_stops_a_generation_before_the_call_it_does_not_cover(
    good: RegenStore, tmp_path: Path
) -> None:
    """Call N+1 is not made; what N calls brought is stored, and a larger budget goes on."""
    with served() as server:
        limit = generated(server, tmp_path / "all").usage.total_tokens // 2
        budget = Budget(limit)
        server.answers(ReferenceWriter())
        made = generated(server, tmp_path, budget=budget)
        requests = len(server.bodies)

    store = RegenStore.open(made.plan.path)
    assert set(made.stop_reasons.values()) == {"budget"}
    assert 0 < requests == made.calls == len(store.pages) < len(store.prompts)
    assert budget.spent <= limit
    assert errors_of(store)
    check_resumed(good, store.path, len(store.missing_pages))
