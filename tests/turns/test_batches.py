"""Turns by the Message Batches API: the real SDK over real HTTP, against the emulator."""

import asyncio
import multiprocessing
import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anthropic
import pytest
from batch_work import KEY, LONG, POLL, ask, emulator, noted, provider, sizes, submitted, wait_for
from filelock import FileLock
from turn_values import turn

from pytest_regen.emulator import BatchStep, Clock, Emulator, Fault
from pytest_regen.errors import (
    MissingKeyError,
    RejectedRequestError,
    TransportError,
    UsageError,
)
from pytest_regen.turns import BatchProvider
from pytest_regen.turns.batch_calls import POLL_VARIABLE


def words_of(body: Mapping[str, Any]) -> str:
    content = body["messages"][-1]["content"]
    return str(content)


def failing(fault: Fault, *words: str, times: int = 99) -> Callable[..., Any]:
    seen: Counter[str] = Counter()

    def answer(body: Mapping[str, Any]) -> Any:
        said = words_of(body)
        seen[said] += 1
        return fault if said in words and seen[said] <= times else f"You said: {said}"

    return answer


def test_what_is_asked_at_once_goes_into_one_batch(tmp_path: Path) -> None:
    """Each request gets its own reply, whatever the order of the results."""
    with emulator() as emulated, provider(emulated, tmp_path) as asked:
        replies = ask(asked, *(f"{n}" for n in range(20)))

    assert replies == [f"You said: {n}" for n in range(20)]
    assert sizes(emulated) == [20]
    assert not noted(tmp_path)


def test_threads_share_a_batch(tmp_path: Path) -> None:
    with (
        emulator() as emulated,
        provider(emulated, tmp_path, poll=0.5) as asked,
        ThreadPoolExecutor(3) as pool,
    ):
        waiting = [pool.submit(asked.send, turn(word)) for word in "ab"]
        waiting.append(pool.submit(lambda: asyncio.run(asked.asend(turn("c")))))
        replies = [reply.result().text for reply in waiting]

    assert replies == [f"You said: {word}" for word in "abc"]
    assert sizes(emulated) == [3]


def test_a_long_reply_is_asked_for_without_a_stream(tmp_path: Path) -> None:
    with emulator() as emulated, provider(emulated, tmp_path) as asked:
        assert ask(asked, turn("Hi.", max_tokens=30_000)) == ["You said: Hi."]

    assert "stream" not in submitted(emulated)[0][0]


def test_what_is_refused_is_refused_alone(tmp_path: Path) -> None:
    """A request that the API finds wrong fails; the others of its batch do not."""
    with emulator() as emulated, provider(emulated, tmp_path) as asked:
        good, bad = ask(asked, "good", turn("bad", model="claude-nobody"))

    assert good == "You said: good"
    assert isinstance(bad, RejectedRequestError)
    assert "claude-nobody" in str(bad)
    assert sizes(emulated) == [2]


@pytest.mark.parametrize("fault", [Fault(529), Fault(kind="expire")])
def test_what_fails_is_asked_again_in_another_batch(tmp_path: Path, fault: Fault) -> None:
    """What expired or met an error of the API goes into the next one; the rest has its reply."""
    answer = failing(fault, "a", times=2)
    with emulator(answer=answer) as emulated, provider(emulated, tmp_path) as asked:
        replies = ask(asked, "a", "b", "c")

    assert replies == ["You said: a", "You said: b", "You said: c"]
    assert sizes(emulated) == [3, 1, 1]
    assert not noted(tmp_path)


def test_what_fails_in_three_batches_has_failed(tmp_path: Path) -> None:
    answer = failing(Fault(529, message="Too much."), "a")
    with emulator(answer=answer) as emulated, provider(emulated, tmp_path) as asked:
        lost, other = ask(asked, "a", "b")

    assert isinstance(lost, TransportError)
    assert "Too much." in lost.why
    assert lost.is_alone
    assert other == "You said: b"
    assert sizes(emulated) == [2, 1, 1]


def test_what_was_cancelled_is_asked_again(tmp_path: Path) -> None:
    clock = Clock(0.0)
    with (
        emulator(batch_seconds=LONG, clock=clock) as emulated,
        provider(emulated, tmp_path) as asked,
        ThreadPoolExecutor(1) as pool,
    ):
        waiting = pool.submit(asked.send, turn("a"))
        client = anthropic.Anthropic(api_key=KEY, base_url=emulated.base_url)
        wait_for(lambda: client.messages.batches.list().data)
        client.messages.batches.cancel(client.messages.batches.list().data[0].id)
        clock.advance(1)
        wait_for(lambda: len(submitted(emulated)) == 2)
        clock.advance(LONG)

        assert waiting.result().text == "You said: a"


def test_a_batch_whose_creation_was_not_answered_is_found(tmp_path: Path) -> None:
    """The connection is dropped after the call: the list of batches tells that there is one."""
    lost = BatchStep(fault=Fault(kind="drop"), unlisted=0.05)
    with emulator(lost, BatchStep()) as emulated, provider(emulated, tmp_path) as asked:
        replies = ask(asked, "a", "b")

    assert replies == ["You said: a", "You said: b"]
    assert sizes(emulated) == [2]


def test_a_batch_that_was_not_created_is_created(tmp_path: Path) -> None:
    """The API is overloaded for a while: the call is made again once it is known to have failed."""
    busy = BatchStep(fault=Fault(529), times=2)
    with emulator(busy, BatchStep()) as emulated, provider(emulated, tmp_path) as asked:
        assert ask(asked, "a") == ["You said: a"]

    assert sizes(emulated) == [1, 1, 1]
    assert len({batch.body["requests"][0]["custom_id"] for batch in posts(emulated)}) == 1


def posts(emulated: Emulator) -> list[Any]:
    return [request for request in emulated.requests if request.method == "POST"]


def test_a_full_queue_of_batches_is_waited_for(tmp_path: Path) -> None:
    """No limit makes a request fail: the batch is submitted when there is room."""
    told: list[str] = []
    full = BatchStep(fault=Fault(429, message="The queue is full."), times=3)
    with (
        emulator(full, BatchStep()) as emulated,
        provider(emulated, tmp_path, tell=told.append) as asked,
    ):
        assert ask(asked, "a") == ["You said: a"]

    assert any("waits to be submitted" in line and "The queue is full." in line for line in told)


def test_a_spend_limit_ends_all_at_once(tmp_path: Path) -> None:
    """Waiting would not help."""
    limit = Fault(429, error_code="enforced_spend_limit_reached")
    with (
        emulator(BatchStep(fault=limit)) as emulated,
        provider(emulated, tmp_path) as asked,
    ):
        outcomes = ask(asked, "a", "b")

    assert all(isinstance(outcome, RejectedRequestError) for outcome in outcomes)
    assert sizes(emulated) == [2]
    assert not noted(tmp_path)


def test_an_address_where_nobody_answers_is_told_soon(tmp_path: Path) -> None:
    with emulator() as emulated:
        gone = provider(emulated, tmp_path)
    with gone:
        [outcome] = ask(gone, "a")

    assert isinstance(outcome, TransportError)


def test_a_connection_that_breaks_while_a_batch_is_under_way_is_nothing(tmp_path: Path) -> None:
    """The batch goes on at the API, and so does the wait for it."""
    clock = Clock(0.0)
    with emulator(batch_seconds=LONG, clock=clock) as emulated:
        fixed = Emulator(
            emulated.responder, clock=clock, batch_seconds=LONG, port=int(emulated.base_url[-5:])
        )
        emulated.stop()
        with (
            fixed.start(),
            provider(fixed, tmp_path) as asked,
            ThreadPoolExecutor(1) as pool,
        ):
            waiting = pool.submit(asked.send, turn("a"))
            wait_for(lambda: asked.batches and len(fixed.requests) > 3)
            fixed.stop()
            threading.Event().wait(0.2)
            fixed.start()
            clock.advance(LONG)

            assert waiting.result().text == "You said: a"


def test_no_key_is_told_before_anything_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    asked = BatchProvider(base_url="http://127.0.0.1:9", folder=tmp_path)

    with pytest.raises(MissingKeyError):
        asked.send(turn())


@pytest.mark.parametrize("poll", ["soon", "0", "nan"])
def test_a_wrong_pause_is_refused(monkeypatch: pytest.MonkeyPatch, poll: str) -> None:
    monkeypatch.setenv(POLL_VARIABLE, poll)

    with pytest.raises(UsageError, match=poll):
        BatchProvider()


def test_a_request_that_is_no_longer_waited_for_harms_nothing(tmp_path: Path) -> None:
    """Its reply is passed over; asked for again it is there, and paid once."""
    clock = Clock(0.0)
    with (
        emulator(batch_seconds=LONG, clock=clock) as emulated,
        provider(emulated, tmp_path) as asked,
    ):

        async def impatient() -> str:
            other = asyncio.ensure_future(asked.asend(turn("b")))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asked.asend(turn("a")), 0.5)
            again = asyncio.ensure_future(asked.asend(turn("a")))
            await asyncio.sleep(0.1)
            clock.advance(LONG)
            return (await other).text + (await again).text

        assert asyncio.run(impatient()) == "You said: bYou said: a"
    assert sizes(emulated) == [2]


def test_what_takes_several_batches_is_counted_while_it_is_under_way(tmp_path: Path) -> None:
    """For whoever shows how far a run is."""
    told: list[str] = []
    with (
        emulator(batch_seconds=0.1) as emulated,
        provider(emulated, tmp_path, tell=told.append) as asked,
    ):
        waiting = threading.Thread(target=ask, args=(asked, "a", "b"))
        waiting.start()
        wait_for(lambda: asked.batches == 1)
        waiting.join()

        wait_for(lambda: asked.batches == 0)
    told = [line.partition(": ")[2] for line in told]
    assert told == ["2 requests submitted", "0 of 2 done", "2 of 2 done"]


def test_who_waits_is_let_go_by_a_stop_at_any_moment(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        asked = BatchProvider("m", api_key=KEY, base_url=address, folder=tmp_path, poll=POLL)
        with ThreadPoolExecutor(1) as threads:
            reply = threads.submit(asked.send, turn("a"))
            connection, _ = silent.accept()
            asked.stop()
            with connection, pytest.raises(CancelledError):
                reply.result(5)


def test_a_folder_that_another_process_holds_keeps_nothing_else_waiting(tmp_path: Path) -> None:
    folder = tmp_path / "batches"
    folder.mkdir()
    with (
        FileLock(folder / "folder.lock"),
        emulator() as emulated,
        ThreadPoolExecutor(1) as threads,
    ):
        asked = provider(emulated, folder)
        reply = threads.submit(asked.send, turn("a"))
        wait_for(lambda: any(request.path.endswith("batches") for request in emulated.requests))
        time.sleep(0.1)
        ended = threading.Thread(target=asked.stop, daemon=True)
        ended.start()
        ended.join(5)
        assert not ended.is_alive()
        with pytest.raises(CancelledError):
            reply.result(5)
    assert not submitted(emulated)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked on Windows")
def test_a_forked_process_asks_in_a_loop_of_its_own(tmp_path: Path) -> None:
    """That of the process it was forked from does not run there."""
    with emulator() as emulated, provider(emulated, tmp_path) as asked:
        ask(asked, "a")
        child = multiprocessing.get_context("fork").Process(target=ask_and_stop, args=(asked,))
        child.start()
        child.join(20)
        is_alive = child.is_alive()
        child.kill()

    assert not is_alive
    assert [batch[0]["messages"][0]["content"] for batch in submitted(emulated)] == ["a", "b"]


def ask_and_stop(asked: BatchProvider) -> None:
    ask(asked, "b")
    asked.stop()
