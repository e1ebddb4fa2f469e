"""Turns by the Message Batches API: the real SDK over real HTTP, against the emulator."""

import asyncio
import multiprocessing
import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from batch_work import KEY, LONG, POLL, ask, emulator, noted, provider, sizes, submitted, wait_for
from filelock import FileLock
from turn_values import turn

from pytest_regen.emulator import BatchStep, Clock, Emulator, Fault
from pytest_regen.errors import (
    RejectedRequestError,
    TransportError,
)
from pytest_regen.turns import BatchProvider


def test_what_is_asked_at_once_goes_into_one_batch(tmp_path: Path) -> None:
    """From threads and event loops, and without a stream; each request gets its own reply."""
    with (
        emulator() as emulated,
        provider(emulated, tmp_path, poll=0.5) as asked,
        ThreadPoolExecutor(2) as pool,
    ):
        single = pool.submit(asked.send, turn("c"))
        several = pool.submit(ask, asked, "a", turn("b", max_tokens=30_000))

    assert several.result() == ["You said: a", "You said: b"]
    assert single.result().text == "You said: c"
    assert sizes(emulated) == [3]
    assert not noted(tmp_path)


def test_what_is_refused_is_refused_alone(tmp_path: Path) -> None:
    """A request that the API finds wrong fails; the others of its batch do not."""
    with emulator() as emulated, provider(emulated, tmp_path) as asked:
        good, bad = ask(asked, "good", turn("bad", model="claude-nobody"))

    assert good == "You said: good"
    assert isinstance(bad, RejectedRequestError)
    assert "claude-nobody" in str(bad)
    assert sizes(emulated) == [2]


def test_what_fails_is_asked_again_in_another_batch(tmp_path: Path) -> None:
    """What expired or met an error of the API; what does so in three batches has failed."""
    faults = {"a": Fault(529, message="Too much."), "b": Fault(kind="expire")}
    seen: Counter[str] = Counter()

    def answer(body: Mapping[str, Any]) -> Any:
        words = body["messages"][-1]["content"]
        seen[words] += 1
        is_over = words not in faults or (words == "b" and seen[words] > 2)
        return f"You said: {words}" if is_over else faults[words]

    with emulator(answer=answer) as emulated, provider(emulated, tmp_path) as asked:
        lost, expired, other = ask(asked, "a", "b", "c")

    assert isinstance(lost, TransportError)
    assert "Too much." in lost.why
    assert lost.is_alone
    assert [expired, other] == ["You said: b", "You said: c"]
    assert sizes(emulated) == [3, 2, 2]
    assert not noted(tmp_path)


def test_a_batch_that_was_not_created_is_created_once_there_is_room(tmp_path: Path) -> None:
    """Overload and a full queue of batches make no request fail: the call is made again."""
    told: list[str] = []
    busy = BatchStep(fault=Fault(529), times=2)
    full = BatchStep(fault=Fault(429, message="The queue is full."), times=2)
    with (
        emulator(busy, full, BatchStep()) as emulated,
        provider(emulated, tmp_path, tell=told.append) as asked,
    ):
        assert ask(asked, "a") == ["You said: a"]

    posts = [request.body for request in emulated.requests if request.method == "POST"]
    assert posts == [posts[0]] * 5
    assert any("waits to be submitted" in line and "The queue is full." in line for line in told)


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
