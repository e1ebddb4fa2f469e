"""Providers that ask in batches, against an emulator whose batches end at once."""

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anthropic  # noqa: F401 - once, before processes are forked
from turn_values import turn

from pytest_regen.emulator import BatchStep, Emulator, Script
from pytest_regen.files import replace_file
from pytest_regen.turns import BatchProvider, Reply, TurnRequest
from pytest_regen.turns.exchange import TurnExchange, whole_reply

KEY = "opaque-key-of-a-workspace"
POLL = 0.02
LONG = 3_600.0
"""Seconds of a batch that ends only when a test moves the clock."""
WORDS = [f"w{number}" for number in range(12)]
"""What ``store_all`` asks."""


def emulator(*steps: BatchStep, answer: Any = None, **options: Any) -> Emulator:
    """Return an emulator that says each question back, and whose batches take no time."""
    return Emulator(
        answer or (lambda body: f"You said: {body['messages'][-1]['content']}"),
        script=Script(batches=steps),
        **{"batch_seconds": 0.0, **options},
    )


def provider(emulated: Emulator, folder: Path, **options: Any) -> BatchProvider:
    """Return a provider that notes its batches in a folder."""
    options = {"api_key": KEY, "poll": POLL, "max_retries": 0, **options}
    return BatchProvider(base_url=emulated.base_url, folder=folder, **options)


def ask(asked: BatchProvider, *words: str | TurnRequest) -> list[str | BaseException]:
    """Return the texts of replies to what is asked at the same time, or why there are none."""
    requests = [word if isinstance(word, TurnRequest) else turn(word) for word in words]

    async def gathered() -> list[Reply | BaseException]:
        return await asyncio.gather(*map(asked.asend, requests), return_exceptions=True)

    replies = asyncio.run(gathered())
    return [reply.text if isinstance(reply, Reply) else reply for reply in replies]


def begin(emulated: Emulator, folder: Path, *words: str, until: Callable[[Path], bool]) -> None:
    """Ask, and stop as if by a kill as soon as the folder of batches is in some state."""
    asked = provider(emulated, folder)

    async def given_up() -> None:
        waiting = [asyncio.ensure_future(asked.asend(turn(word))) for word in words]
        await asyncio.to_thread(wait_for, lambda: until(folder))
        for reply in waiting:
            reply.cancel()

    asyncio.run(given_up())
    asked.stop()


def has_id(folder: Path) -> bool:
    """Whether a batch is noted with its id."""
    return any('"id"' in path.read_text("utf-8") for path in noted(folder))


def noted(folder: Path) -> list[Path]:
    """Return the files of batches."""
    return sorted(folder.glob("*.jsonl"))


def forget_ids(folder: Path) -> None:
    """Leave of each file only the intent, as a kill right after the call does."""
    for path in noted(folder):
        path.write_text(path.read_text("utf-8").split("\n")[0] + "\n", "utf-8")


def submitted(emulated: Emulator) -> list[list[Mapping[str, Any]]]:
    """Return what the requests of each call that creates a batch asked for."""
    return [
        [request["params"] for request in received.body["requests"]]
        for received in list(emulated.requests)
        if received.method == "POST" and received.path.endswith("/batches")
    ]


def sizes(emulated: Emulator) -> list[int]:
    """Return how many requests each call that creates a batch had."""
    return [len(batch) for batch in submitted(emulated)]


def wait_for(is_so: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            raise TimeoutError("it is not so")
        time.sleep(0.005)


def store_all(folder: Path) -> None:
    """Ask what is not stored yet, as a command does; store each reply, then say so."""
    asked = BatchProvider(folder=folder / "batches", api_key=KEY, poll=0.1, max_retries=0)

    async def store(word: str) -> None:
        path = folder / f"{word}.txt"
        if not path.exists():
            steps = whole_reply(turn(word), larger_limit=30_000)
            whole = await TurnExchange(asked).arun(steps)
            replace_file(path, "".join(whole.pieces))
            asked.stored([turn(word), *[whole.request] * (whole.request != turn(word))])

    async def store_all() -> None:
        await asyncio.gather(*map(store, WORDS))

    asyncio.run(store_all())
    asked.close()
