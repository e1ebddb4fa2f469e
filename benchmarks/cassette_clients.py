"""Figures of clients: concurrent, missing a recording, retrying, making their first turn."""

# ruff: noqa: BLE001 - subjects are foreign, and imported where they are measured

import asyncio
import random
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cassette_figures import cpu_of
from cassette_subjects import Subject

__all__ = ["ROWS"]

PORT = 18_734


@contextmanager
def served(responder: Callable[[dict[str, Any]], Any]) -> Iterator[str]:
    """Run an emulated API; yield its address."""
    from pytest_regen.emulator import Emulator

    with Emulator(responder, port=PORT) as emulator:
        yield emulator.base_url


def echo(body: dict[str, Any]) -> str:
    """Say what the last message said."""
    return str(body["messages"][-1]["content"])


def late_echo(body: dict[str, Any]) -> str:
    """Say it after a while that is drawn: answers come in another order than requests."""
    text = echo(body)
    time.sleep(random.Random(text).uniform(0, 0.05))
    return text


def ask(client: Any, text: str) -> Any:
    """Make one call with the SDK, plain or asynchronous."""
    messages = [{"role": "user", "content": text}]
    return client.messages.create(model="claude-sonnet-5-5", max_tokens=200, messages=messages)


def said_by(message: Any) -> str:
    """Return the text of a message."""
    return "".join(getattr(block, "text", "") for block in message.content)


def concurrent(subject: Subject, folder: Path) -> str:
    """Wrong answers of 24 calls in 8 threads, and of 8 calls gathered."""
    import anthropic

    def in_threads(url: str) -> int:
        client = anthropic.Anthropic(api_key="x", base_url=url)
        with ThreadPoolExecutor(8) as pool:
            texts = list(pool.map(lambda n: said_by(ask(client, f"number {n}")), range(24)))
        return sum(text != f"number {n}" for n, text in enumerate(texts))

    async def gathered(url: str) -> int:
        client = anthropic.AsyncAnthropic(api_key="x", base_url=url)
        replies = await asyncio.gather(*(ask(client, f"number {n}") for n in range(8)))
        return sum(said_by(reply) != f"number {n}" for n, reply in enumerate(replies))

    worst = [0, 0]
    with served(late_echo) as url:
        for number in range(3):
            threads, both = folder / f"t{number}.yaml", folder / f"g{number}.yaml"
            for mode in ("once", "none"):
                with subject.use(threads, mode, clients=True):
                    worst[0] = max(worst[0], in_threads(url))
                with subject.use(both, mode, clients=True):
                    worst[1] = max(worst[1], asyncio.run(gathered(url)))
    return f"{worst[0]} / {worst[1]}"


def missed(subject: Subject, folder: Path) -> str:
    """Milliseconds until a call that was not recorded is told, and as what."""
    import anthropic

    path = folder / "miss.yaml"
    with served(echo) as url:
        client = anthropic.Anthropic(api_key="x", base_url=url)
        with subject.use(path, "once", clients=True):
            ask(client, "recorded")
        start, outcome = 0.0, "nothing"
        try:
            with subject.use(path, "none", clients=True):
                ask(client, "recorded")
                start = time.perf_counter()
                ask(client, "recorded")
        except Exception as error:
            outcome = type(error).__name__
        return f"{(time.perf_counter() - start) * 1e3:,.0f} ms, {outcome}"


def retried(subject: Subject, folder: Path) -> str:
    """Milliseconds of a replayed 529 that asked for a second, and the answer after it."""
    import anthropic

    from pytest_regen.emulator import Fault

    answers: list[Any] = [Fault(529, retry_after=1), "late"]
    with served(lambda _body: answers.pop(0)) as url:
        client = anthropic.Anthropic(api_key="x", base_url=url)
        with subject.use(folder / "retry.yaml", "once", clients=True):
            ask(client, "x")
        with subject.use(folder / "retry.yaml", "none", clients=True):
            start = time.perf_counter()
            ask(client, "x")
            return f"{(time.perf_counter() - start) * 1e3:,.0f} ms"


FIRST_TURN = {
    "pytest-regen": """
        from pathlib import Path
        from pytest_regen.cassettes import ReplayProvider
        from pytest_regen.turns.values import Message, TurnRequest
        turn = TurnRequest("", (Message("user", "hello"),), "claude-sonnet-5-5", 200)
        assert ReplayProvider(Path({path!r})).send(turn).text == "hello"
    """,
    "vcrpy": """
        import anthropic, vcr
        with vcr.use_cassette({path!r}, record_mode="none"):
            client = anthropic.Anthropic(api_key="x", base_url={url!r})
            client.messages.create(model="claude-sonnet-5-5", max_tokens=200,
                                   messages=[{{"role": "user", "content": "hello"}}])
    """,
    "cassetter": """
        import anthropic, cassetter
        with cassetter.use_cassette({path!r}, record_mode="none"):
            client = anthropic.Anthropic(api_key="x", base_url={url!r})
            client.messages.create(model="claude-sonnet-5-5", max_tokens=200,
                                   messages=[{{"role": "user", "content": "hello"}}])
    """,
}


def first_turn(subject: Subject, folder: Path) -> str:
    """CPU seconds of a fresh process that replays one turn."""
    import anthropic

    path = folder / "first.yaml"
    with served(echo) as url, subject.use(path, "once", clients=True):
        ask(anthropic.Anthropic(api_key="x", base_url=url), "hello")
    name = subject.name
    code = textwrap.dedent(FIRST_TURN[name]).format(path=str(path), url=url)
    return f"{min(cpu_of([sys.executable, '-c', code], folder) for _ in range(5)):.2f} s"


ROWS: dict[str, Callable[[Subject, Path], str]] = {
    "first replayed turn, fresh process": first_turn,
    "wrong answers: threads x 24 / gather x 8, delays at random": concurrent,
    "an unrecorded call through the SDK (ours: fixture `cassette`)": missed,
    "replayed 529 with Retry-After 1 s": retried,
}
