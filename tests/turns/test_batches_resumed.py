"""Batches outlive the run that submitted them: the next one waits for them, and pays once."""

import json
import stat
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import anthropic
import pytest
from batch_work import (
    KEY,
    LONG,
    POLL,
    WORDS,
    ask,
    begin,
    emulator,
    forget_ids,
    has_id,
    noted,
    provider,
    sizes,
    submitted,
    wait_for,
)
from killing import kill_until_done
from tables import each
from turn_values import turn

from pytest_regen.canonical import canonical_hash
from pytest_regen.emulator import BatchStep, Clock, EmulatedReply, Emulator, Fault
from pytest_regen.errors import RejectedRequestError, TransportError
from pytest_regen.turns.batch_files import BatchFolder

GRACE = 12 * POLL
"""Seconds for which a batch that is not listed may still come."""


def client_of(emulated: Emulator) -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key=KEY, base_url=emulated.base_url)


def create(emulated: Emulator, name: str, count: int) -> str:
    message = {"role": "user", "content": "x"}
    params: Any = {"model": turn().model, "max_tokens": 9, "messages": [message]}
    requests: Any = [{"custom_id": f"{name}-{n}", "params": params} for n in range(count)]
    return client_of(emulated).messages.batches.create(requests=requests).id


def delete_all(emulated: Emulator) -> None:
    batches = client_of(emulated).messages.batches
    for batch in list(batches.list()):
        batches.delete(batch.id)


def test_the_next_run_waits_for_the_batch_of_one_that_was_killed(tmp_path: Path) -> None:
    """What is new goes into another one, and all of it where another address is asked."""
    with emulator() as emulated, emulator() as other:
        begin(emulated, tmp_path, "a", "b", "c", until=has_id)
        with provider(other, tmp_path) as asked:
            elsewhere = ask(asked, "a")
        with provider(emulated, tmp_path) as asked:
            first = ask(asked, "b", "a", "b")
        left = len(noted(tmp_path))
        with provider(emulated, tmp_path) as asked:
            second = ask(asked, "c")

    assert first == ["You said: b", "You said: a", "You said: b"]
    assert elsewhere + second == ["You said: a", "You said: c"]
    assert (sizes(emulated), sizes(other)) == ([3, 1], [1])
    assert (left, len(noted(tmp_path))) == (1, 0)


@pytest.mark.parametrize("ending", ["stop", "stored", "close"])
def test_a_reply_is_taken_again_until_it_is_stored(tmp_path: Path, ending: str) -> None:
    with emulator() as emulated:
        first = provider(emulated, tmp_path)
        ask(first, "a", "b")
        if ending == "stored":
            first.stored([turn("a"), turn("b")])
        (first.close if ending == "close" else first.stop)()
        with provider(emulated, tmp_path) as second:
            ask(second, "a", "b")

    assert sizes(emulated) == ([2] if ending == "stop" else [2, 2])


def test_a_batch_whose_id_was_not_noted_is_found(tmp_path: Path) -> None:
    """Killed between the call and its answer: the custom ids in the results tell which it is."""
    with emulator() as emulated:
        before = create(emulated, "before", 2)
        begin(emulated, tmp_path, "a", "b", until=has_id)
        create(emulated, "later", 2)
        create(emulated, "larger", 3)
        forget_ids(tmp_path)
        with provider(emulated, tmp_path) as asked:
            replies = ask(asked, "b", "a")

    assert replies == ["You said: b", "You said: a"]
    assert sizes(emulated) == [2, 2, 2, 3]
    read = {request.path for request in emulated.requests if request.path.endswith("/results")}
    assert not any(before in path for path in read)


def test_a_batch_that_may_be_the_one_is_waited_for(tmp_path: Path) -> None:
    """It has as many requests and has not ended; only then it shows whose it is."""
    clock = Clock()
    with emulator(batch_seconds=LONG, clock=clock) as emulated:
        begin(emulated, tmp_path, "a", until=has_id)
        forget_ids(tmp_path)
        told: list[str] = []
        with provider(emulated, tmp_path, tell=told.append) as asked:
            replies: list[Any] = []
            waiting = threading.Thread(target=lambda: replies.extend(ask(asked, "a")))
            waiting.start()
            wait_for(lambda: any("may be msgbatch" in line for line in told))
            time.sleep(GRACE)
            clock.advance(LONG)
            waiting.join()

    assert replies == ["You said: a"]
    assert sizes(emulated) == [1]


def test_a_batch_that_was_never_created_is_submitted(tmp_path: Path) -> None:
    """Killed between the intent and the call: it is given some time to be listed."""
    with emulator() as emulated:
        begin(emulated, tmp_path, "a", until=has_id)
        delete_all(emulated)
        forget_ids(tmp_path)
        began = time.monotonic()
        with provider(emulated, tmp_path) as asked:
            assert ask(asked, "a") == ["You said: a"]

    assert time.monotonic() - began > GRACE
    assert sizes(emulated) == [1, 1]
    assert not noted(tmp_path)


def test_what_is_gone_at_the_api_is_submitted_again(tmp_path: Path) -> None:
    """The batch was deleted there, or is older than its results are kept."""
    clock = Clock()
    with emulator(clock=clock) as emulated:
        begin(emulated, tmp_path, "a", until=has_id)
        time.sleep(GRACE)
        delete_all(emulated)
        with provider(emulated, tmp_path) as asked:
            deleted = ask(asked, "a")
            asked.stop()
        clock.advance(30 * 86_400)
        with provider(emulated, tmp_path) as asked:
            archived = ask(asked, "a")

    assert deleted == archived == ["You said: a"]
    assert sizes(emulated) == [1, 1, 1]


def test_the_batch_of_another_workspace_is_told_of(tmp_path: Path) -> None:
    """Its key cannot see the batch; to pay again is for people to decide."""
    with emulator() as emulated:
        begin(emulated, tmp_path, "a", until=has_id)
        delete_all(emulated)
        with provider(emulated, tmp_path, api_key="another-key") as asked:
            [outcome] = ask(asked, "a")

    [path] = noted(tmp_path)
    assert isinstance(outcome, RejectedRequestError)
    assert "another key" in outcome.why
    assert str(path) in outcome.hint
    assert sizes(emulated) == [1]


def test_what_failed_in_an_earlier_run_is_asked_again(tmp_path: Path) -> None:
    """Even where it was refused: what stood against it then may be mended now."""
    answers: list[Any] = [Fault(403), "Now."]
    # Held back until the run has ended, because what failed is not noted any longer then.
    steps, clock = (BatchStep(seconds=LONG), BatchStep()), Clock()
    with emulator(*steps, answer=lambda _: answers.pop(0), clock=clock) as emulated:
        begin(emulated, tmp_path, "a", until=has_id)
        clock.advance(LONG)
        with provider(emulated, tmp_path) as asked:
            assert ask(asked, "a") == ["Now."]

    assert sizes(emulated) == [1, 1]
    assert not noted(tmp_path)


def test_two_providers_of_one_process_wait_for_the_same_batch(tmp_path: Path) -> None:
    with (
        emulator(batch_seconds=0.3) as emulated,
        provider(emulated, tmp_path) as first,
        provider(emulated, tmp_path) as second,
    ):
        outcomes: list[list[Any]] = []
        threads = [
            threading.Thread(target=lambda asked=asked: outcomes.append(ask(asked, *"abc")))
            for asked in (first, second)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert outcomes == [[f"You said: {word}" for word in "abc"]] * 2
    assert sizes(emulated) == [3]


def test_a_kill_at_any_moment_loses_no_reply_and_pays_none_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real processes, killed before, while and after a batch is created, read and stored.

    The API is no help: answers get lost, some batches are listed late, and requests fail.
    """
    paid: Counter[str] = Counter()
    failures = {"w3": 1, "w4": 2}

    def answer(body: dict[str, Any]) -> Any:
        said = body["messages"][-1]["content"]
        if failures.get(said, 0):
            failures[said] -= 1
            return Fault(529) if said == "w3" else Fault(kind="expire")
        paid[canonical_hash(body)] += 1
        if said == "w5" and body["max_tokens"] < 1_000:
            return EmulatedReply("Half", stop_reason="max_tokens")
        return f"You said: {said}"

    steps = [
        BatchStep(seconds=0.1, fault=Fault(kind="drop")),
        BatchStep(seconds=0.3, unlisted=0.2),
        BatchStep(fault=Fault(529)),
        BatchStep(seconds=0.0, fault=Fault(kind="cut")),
        BatchStep(seconds=0.2),
    ]
    with emulator(*steps, answer=answer) as emulated:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", emulated.base_url)
        kills = kill_until_done("batch_work:store_all", tmp_path, 2, within=800, seed=1)

    assert len(kills) == 2
    texts = {word: (tmp_path / f"{word}.txt").read_text("utf-8") for word in WORDS}
    assert texts == {word: f"You said: {word}" for word in WORDS}
    assert paid.most_common(1)[0][1] == 1


def test_nothing_of_what_is_asked_is_on_disk(tmp_path: Path) -> None:
    """Neither prompts, nor replies, nor the key; and only the user reads the rest."""
    folder = tmp_path / ".regen" / "batches"
    with emulator() as emulated:
        begin(emulated, folder, "a secret plan", until=has_id)

    [path] = noted(folder)
    text = path.read_text("utf-8")
    assert not any(word in text for word in ("secret", KEY, "terse"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert folder.joinpath(".gitignore").read_text("utf-8") == "*\n"


def test_a_batch_that_cannot_be_noted_is_not_submitted(tmp_path: Path) -> None:
    obstacle = tmp_path / "batches"
    obstacle.write_text("no folder", "utf-8")
    elsewhere = tmp_path / "link"
    elsewhere.symlink_to(tmp_path)
    with emulator() as emulated:
        for folder in (obstacle, elsewhere):
            with provider(emulated, folder) as asked:
                [outcome] = ask(asked, "a")
            assert isinstance(outcome, TransportError)
            assert "no batch was submitted" in outcome.what

    assert not submitted(emulated)


@each(
    "change",
    [{"version": 2}, {"created": time.time() - 30 * 86_400}, {"requests": ["x"]}, None],
)
def test_a_file_that_says_nothing_is_passed_over(
    tmp_path: Path, change: dict[str, Any] | None
) -> None:
    """Of another version, too old for its results, forged, or half an intent: the call comes after.

    What is too old is removed.
    """
    folder = BatchFolder(tmp_path)
    batch = folder.note("http://127.0.0.1:9", KEY, "", ["0" * 32])
    batch.release()
    text = batch.path.read_text("utf-8")
    harmed = text[:40] if change is None else json.dumps({**json.loads(text), **change})
    batch.path.write_text(harmed, "utf-8")

    assert folder.read("http://127.0.0.1:9") == []
    assert batch.path.exists() is ("created" not in (change or {}))


def test_a_note_that_was_cut_does_not_swallow_the_next(tmp_path: Path) -> None:
    """A kill in the middle of a line leaves the lines of others whole."""
    folder = BatchFolder(tmp_path)
    batch = folder.note("http://127.0.0.1:9", KEY, "", ["0" * 32, "1" * 32])
    with batch.path.open("a", encoding="utf-8") as file:
        file.write('{"id": "msgba')
    batch.note_id("msgbatch_01")
    batch.settle([1])
    batch.release()

    [known] = folder.read("http://127.0.0.1:9")
    assert (known.id, known.settled) == ("msgbatch_01", {1})
