"""Several stores through one queue: what is asked at once, in which order, and what ends it."""

import asyncio
import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_writer import ReferenceWriter
from small_documents import document_of

from pytest_regen.errors import RegenError, RejectedRequestError, TransportError
from pytest_regen.regeneration import GenerateResult, TurnSettings, generate_stores, heal_stores
from pytest_regen.regeneration.queue import Batch, Flow, drive_flows
from pytest_regen.regeneration.values import Answer, Ask, RunState
from pytest_regen.stores import RegenStore
from pytest_regen.turns import CallableProvider
from pytest_regen.turns.values import Message, Reply, TurnRequest, Usage

WRITER = ReferenceWriter()


def text_of(request: TurnRequest) -> str:
    """Return what the reference writer answers."""
    sent = [{"role": each.role, "content": each.content} for each in request.messages]
    answer = WRITER({"system": request.system, "messages": sent})
    assert isinstance(answer, str)
    return answer


class Model:
    """Answers in the event loop; counts what is under way.

    Args:
        answer: what it says.
        gather: replies, but the first, wait until so many requests are under way.
    """

    def __init__(
        self, answer: Callable[[TurnRequest], str | Reply] = text_of, gather: int = 1
    ) -> None:
        self._answer = answer
        self._gather = gather
        self._gathered = asyncio.Event()
        self.asked: list[TurnRequest] = []
        self.now = self.most = 0
        self.ended_before: list[int] = []
        """For each request, how many had ended when it was sent."""

    def send(self, request: TurnRequest) -> Reply:
        """Fail: the queue asks in its event loop."""
        raise AssertionError(request)

    async def asend(self, request: TurnRequest) -> Reply:
        """Answer."""
        self.ended_before.append(len(self.asked) - self.now)
        self.asked.append(request)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            if self.now >= self._gather:
                self._gathered.set()
            if len(self.asked) > 1:
                await asyncio.wait_for(self._gathered.wait(), 30)
            await asyncio.sleep(0.001)
            answer = self._answer(request)
            if isinstance(answer, Reply):
                return answer
            return Reply(answer, "end_turn", Usage(1, 1), "model-a")
        finally:
            self.now -= 1


def write_document(path: Path, names: str = "abcd", shared: str = "") -> Path:
    """Write a document with an operation per letter, whose answer has two types."""
    schemas: dict[str, Any] = {
        "Shared": {"type": "object", "properties": {"at": {"type": "number"}}}
    }
    for name in names:
        own = {"id": {"type": "string"}, f"of_{name}": {"type": "integer"}}
        inner = "Shared" if name in shared else f"Part{name.upper()}"
        own["part"] = {"$ref": f"#/components/schemas/{inner}"}
        schemas[f"Whole{name.upper()}"] = {"type": "object", "properties": own}
        schemas[f"Part{name.upper()}"] = {
            "type": "object",
            "properties": {f"by_{name}": {"type": "string"}},
        }
    paths = {
        f"/{name}": document_of({"$ref": f"#/components/schemas/Whole{name.upper()}"})["paths"][
            "/things"
        ]
        for name in names
    }
    file = path / "api.json"
    file.write_text(json.dumps({**document_of({}, schemas), "paths": paths}))
    return file


def parts_of(names: str = "abcd") -> list[str]:
    """Return the operations of the document."""
    return [f"GET /{name}" for name in names]


def generated(
    file: Path, names: str, provider: Any, jobs: int, **options: Any
) -> dict[str, GenerateResult | RegenError]:
    """Generate stores; return what came of each."""
    asking = TurnSettings(provider, jobs=jobs, **options)
    return dict(generate_stores(file, parts_of(names), file.parent / "out", settings=asking))


def test_a_system_prompt_is_warmed_once_per_run(tmp_path: Path) -> None:
    """Its first request goes alone, whichever store it belongs to; then the others."""
    model = Model(gather=7)
    generated(write_document(tmp_path), "abcd", model, 8)

    assert len({request.system for request in model.asked}) == 1
    assert model.ended_before[:2] == [0, 1]
    assert model.most == 7


def test_a_page_shared_by_stores_that_are_made_at_once_is_asked_for_once(tmp_path: Path) -> None:
    """The store that began later waits for it, and its other pages go on."""
    model = Model()
    done = generated(write_document(tmp_path, shared="abcd"), "abcd", model, 8)

    assert len(model.asked) == 5
    shared = [result.shared for result in done.values() if isinstance(result, GenerateResult)]
    assert sorted(map(len, shared)) == [0, 1, 1, 1]
    for name in "abcd":
        assert not RegenStore.open(tmp_path / "out" / f"GET_{name}").missing_pages


def test_who_waits_for_a_page_that_fails_asks_for_it(tmp_path: Path) -> None:
    """What one store did not get another one may, where the failure is not the prompt's."""
    failed: list[str] = []

    def answer(request: TurnRequest) -> str:
        if 'TYPE: "Shared"' in request.messages[-1].content and not failed:
            failed.append("once")
            error = TransportError("the stream was cut", hint="")
            error.is_alone = True
            raise error
        return text_of(request)

    model = Model(answer)
    done = generated(write_document(tmp_path, shared="ab"), "ab", model, 8)

    first, second = (done[part] for part in parts_of("ab"))
    assert isinstance(first, GenerateResult)
    assert isinstance(second, GenerateResult)
    assert set(first.stop_reasons.values()) == {"transport"}
    assert not second.failures
    assert not RegenStore.open(tmp_path / "out" / "GET_b").missing_pages


def test_a_lost_connection_ends_all_stores(tmp_path: Path) -> None:
    """What is under way is kept; a store that got no answer is as if it had not begun."""
    names = "abcdefgh"

    def answer(request: TurnRequest) -> str:
        if "PartB" in request.messages[-1].content:
            raise TransportError("the connection was lost", hint="try again")
        return text_of(request)

    model = Model(answer)
    done = generated(write_document(tmp_path, names), names, model, 2)

    assert len(model.asked) < 8
    assert "GET /h" not in done
    assert not (tmp_path / "out" / "GET_h").exists()
    first = done["GET /a"]
    assert isinstance(first, GenerateResult)
    assert not first.failures
    again = generated(write_document(tmp_path, names), names, Model(), 2)
    assert list(again) == parts_of(names)
    assert not any(each.failures for each in again.values() if isinstance(each, GenerateResult))


def rejecting(*words: str) -> Model:
    """Return a model that finds prompts with one of these words invalid."""

    def answer(request: TurnRequest) -> str:
        if any(word in request.messages[-1].content for word in words):
            raise RejectedRequestError("prompt is too long", status=400, hint="")
        return text_of(request)

    return Model(answer)


def test_a_page_that_is_rejected_ends_no_other(tmp_path: Path) -> None:
    """One invalid request says nothing about the next; its store tells of it."""
    done = generated(write_document(tmp_path), "abcd", rejecting('TYPE: "PartB"'), 8)

    failed = {name for name in done if done[name].failures}  # type: ignore[union-attr]
    assert failed == {"GET /b"}
    assert list(done) == parts_of()
    assert not RegenStore.open(tmp_path / "out" / "GET_d").missing_pages


@pytest.mark.parametrize(("answered", "asked"), [("", 1), ("a", 2 + 3)])
def test_requests_that_are_rejected_one_after_the_other_end_the_run(
    tmp_path: Path, answered: str, asked: int
) -> None:
    """The first of all, or three in a row: then it is the account that is rejected, say."""
    names = "abcdefgh"
    fields = [f"{kind}_{name}" for name in names if name != answered for kind in ("by", "of")]
    model = rejecting(*fields)

    generated(write_document(tmp_path, names), names, model, 1)

    assert len(model.asked) == asked


def test_whoever_stops_listening_stops_the_run(tmp_path: Path) -> None:
    """Nothing more is asked, and what has arrived by then is stored."""
    model = Model()
    asking = TurnSettings(model, jobs=1)
    run = generate_stores(write_document(tmp_path), parts_of(), tmp_path / "out", settings=asking)
    name, _ = next(run)
    run.close()  # type: ignore[attr-defined]

    assert name == "GET /a"
    assert len(model.asked) <= 3
    assert not RegenStore.open(tmp_path / "out" / "GET_a").missing_pages


def test_an_interruption_waits_for_no_model(tmp_path: Path) -> None:
    """It is raised at once, what came before is stored, and nothing more is asked."""
    hung = threading.Event()
    asked = []

    def answer(messages: object) -> str:
        asked.append(messages)
        if "PartB" in str(messages):
            raise KeyboardInterrupt
        if "PartA" not in str(messages):
            hung.wait(60)
        return text_of(
            TurnRequest(
                messages[0]["content"],  # type: ignore[index]
                (Message("user", messages[-1]["content"]),),  # type: ignore[index]
                "m",
                1,
            )
        )

    file = write_document(tmp_path, "abcdef")
    with pytest.raises(KeyboardInterrupt):
        generated(file, "abcdef", CallableProvider(answer), 4)
    hung.set()
    time.sleep(0.2)

    assert len(asked) < 2 * len("abcdef")
    assert not RegenStore.open(tmp_path / "out" / "GET_a").missing_pages


def test_several_stores_are_healed_at_once(tmp_path: Path) -> None:
    """Each that has errors is asked for; the others cost nothing."""
    file = write_document(tmp_path)
    spoilt = ReferenceWriter(mistake="rename_field", target=("PartB", 1))

    def wrong(request: TurnRequest) -> str:
        sent = [{"role": "user", "content": request.messages[-1].content}]
        return str(spoilt({"system": request.system, "messages": sent}))

    asking = TurnSettings(Model(wrong), jobs=8)
    list(generate_stores(file, parts_of(), tmp_path / "out", settings=asking, attempts=1))
    paths = [tmp_path / "out" / f"GET_{name}" for name in "abcd"]
    model = Model()
    done = dict(heal_stores(paths, settings=replace(asking, provider=model)))

    assert set(done) == set(map(str, paths))
    assert len(model.asked) == 1
    result = done[str(paths[1])]
    assert not isinstance(result, RegenError)
    assert not result.validation.has_errors


def test_who_watches_sees_all_of_a_run(tmp_path: Path) -> None:
    """In the end every page and store is done, and nothing is under way."""
    seen: list[RunState] = []
    under_way = threading.Event()

    def watch(state: RunState) -> None:
        seen.append(state)
        if state.in_flight:
            under_way.set()

    def answer(request: TurnRequest) -> str:
        # Waits to be seen, because an answer may come before anybody looks.
        assert under_way.wait(30)
        return text_of(request)

    generated(write_document(tmp_path), "abcd", Model(answer, gather=3), 4, watch=watch)

    last = seen[-1]
    assert (last.places_done, last.places_total) == (4, 4)
    assert (last.pages_done, last.pages_known, last.pages_failed) == (8, 8, 0)
    assert (last.in_flight, last.calls) == (0, 8)
    assert last.usage.total_tokens == 16
    assert any(state.in_flight for state in seen)
    assert [state.pages_done for state in seen] == sorted(state.pages_done for state in seen)


def ask(name: str, system: str = "s") -> Ask:
    """Return an ask whose reply is its name."""
    request = TurnRequest(system, (Message("user", name),), "m", 100, cache="5m")
    return Ask(name, 1, request, 10, name, "".join)


def collecting(batches: list[Batch], at_once: int) -> Flow[list[tuple[Answer, ...]]]:
    """Ask for batches, so many at once; return all that came back."""
    found: list[tuple[Answer, ...]] = []
    waiting = list(batches)
    while waiting:
        now, waiting = waiting[:at_once], waiting[at_once:]
        arrived = yield now
        found += arrived
        owed = len(now) - len(arrived)
        while owed:
            arrived = yield ()
            found += arrived
            owed -= len(arrived)
    return found


def echo(refused: frozenset[str] = frozenset()) -> Model:
    """Return a model that answers with what it was asked; some of it it refuses."""

    def answer(request: TurnRequest) -> Reply:
        name = request.messages[-1].content
        return Reply(name, "refusal" if name in refused else "end_turn", model="m")

    return Model(answer)


@settings(max_examples=15, deadline=None)
@given(
    sizes=st.lists(st.lists(st.integers(1, 3), max_size=4), min_size=1, max_size=5),
    jobs=st.integers(1, 6),
    at_once=st.integers(1, 4),
    refuse=st.sets(st.integers(0, 20)),
)
def test_every_batch_is_answered_once(
    sizes: list[list[int]], jobs: int, at_once: int, refuse: set[int]
) -> None:
    """In the order asked, up to the first failure in it; no more than so many are under way."""
    number = 0
    flows: dict[str, list[Batch]] = {}
    for place, batches in enumerate(sizes):
        flows[str(place)] = []
        for size in batches:
            names = [str(number + each) for each in range(size)]
            number += size
            flows[str(place)].append([ask(name, f"s{place % 2}") for name in names])
    refused = frozenset(map(str, refuse))
    model = echo(refused)
    driven = ((name, collecting(batches, at_once)) for name, batches in flows.items())
    done = dict(drive_flows(driven, TurnSettings(model, jobs=jobs)))

    assert model.most <= jobs
    assert done.keys() == flows.keys()
    for name, found in done.items():
        assert not isinstance(found, RegenError)
        answered = {answers[0].ask.name: answers for answers in found}
        assert len(answered) == len(flows[name])
        for batch in flows[name]:
            answers = answered[batch[0].name]
            assert [each.ask.name for each in answers] == [
                each.name for each in batch[: len(answers)]
            ]
            failed = [each.failure is not None for each in answers]
            assert failed == [each.ask.name in refused for each in answers]
            assert len(answers) == len(batch) or any(failed)
            assert all(each.output == each.ask.name for each in answers if not each.failure)


def test_of_what_ends_a_run_each_flow_that_met_it_tells_once() -> None:
    """Requests of two flows are under way when the connection is lost; the rest is not sent."""
    both = threading.Barrier(2, timeout=10)

    class Lost:
        def send(self, request: TurnRequest) -> Reply:
            both.wait()
            raise TransportError(f"lost for {request.messages[-1].content}", hint="")

    flows = (
        (name, collecting([[ask(f"{name}{page}", name)] for page in range(2)], 2)) for name in "ab"
    )
    done = dict(drive_flows(flows, TurnSettings(Lost(), jobs=2)))

    for name, found in done.items():
        assert not isinstance(found, RegenError)
        failures = [str(answer.failure) for answers in found for answer in answers]
        assert len(failures) == 1
        assert f"lost for {name}0" in failures[0]
    assert done.keys() == {"a", "b"}


def test_what_arrived_is_stored_although_who_watches_fails() -> None:
    """The run ends with what the watcher raised; the flow was handed what had been paid for."""
    stored: list[str] = []

    def store() -> Flow[None]:
        arrived = yield [[ask("page")]]
        stored.extend(answer.output for answers in arrived for answer in answers)

    def watch(state: RunState) -> None:
        if state.pages_done:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(drive_flows([("place", store())], TurnSettings(echo(), watch=watch)))

    assert stored == ["page"]
