"""What the endpoint adds to the call of the model: the bar is 2 ms.

    python benchmarks/endpoint.py

The agent answers at once, so that what remains is the endpoint: reading, checking, sealing, a
thread where the provider blocks, the answer. Over HTTP, the client's own work is in it as well.
"""

import asyncio
import http.client
import json
import sys
import time
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from pathlib import Path
from statistics import median, quantiles
from typing import Any
from urllib.parse import urlsplit

from table import print_table

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "support")]

from serving_http import served  # noqa: E402 - found through the line above
from starlette.applications import Starlette  # noqa: E402
from subject_flow import (  # noqa: E402
    CHOICE,
    KEY,
    MESSAGE,
    PLACE,
    Model,
    second_turn,
    writing,
)

from pytest_regen.context import (  # noqa: E402
    ClarificationRequest,
    ClarifyingAgent,
    Generate,
    Sealer,
)
from pytest_regen.server import ServerSettings, create_app  # noqa: E402
from pytest_regen.turns import CallableProvider  # noqa: E402

CALLS = 1_000
WARM_UP = 50
PATH = "/api/agents/generate-subject"
BAR = 2.0
SEAL = Sealer({"bench": KEY})
SETTINGS = ServerSettings(first_turns=(), second_turns=())


class Instant:
    """An agent that answers at once, in the thread of the server or in one of its own."""

    def __init__(self) -> None:
        self.answer = Generate.model_validate(writing())

    def turn(self, _: ClarificationRequest) -> Generate:
        """Return the one answer."""
        return self.answer


class InstantAsync(Instant):
    """The same, awaited."""

    async def aturn(self, _: ClarificationRequest) -> Generate:
        """Return the one answer."""
        return self.answer


def main() -> int:
    """Print a row per way in; exit with 1 where the bar is missed."""
    body = json.dumps(second_turn(first_turn(), {"location": "Austin, TX", "framing": "no_cap"}))
    blocking, waiting = app_of(Instant()), app_of(InstantAsync())
    with served(blocking) as url:
        over_http = sorted(over_a_socket(url, body.encode()))
    rows = [
        ("ASGI, blocking agent", asyncio.run(timed(lambda: asked(blocking, body.encode())))),
        ("ASGI, asynchronous agent", asyncio.run(timed(lambda: asked(waiting, body.encode())))),
        ("HTTP on loopback, client included", over_http),
    ]
    print_table(
        ("a second turn", "median ms", "95 % ms", "bar"),
        [
            (what, f"{median(took):.2f}", f"{quantiles(took, n=20)[18]:.2f}", f"{BAR:.0f}")
            for what, took in rows
        ],
    )
    return int(any(median(took) > BAR for _, took in rows))


def app_of(agent: Instant) -> Starlette:
    """Return the application in front of an agent."""
    return create_app(agent, seal=SEAL, settings=SETTINGS)


def first_turn() -> dict[str, Any]:
    """Return what a first turn answers."""
    agent = ClarifyingAgent(CallableProvider(Model(PLACE, CHOICE)))
    app = create_app(agent, seal=SEAL, settings=SETTINGS)
    found: dict[str, Any] = json.loads(
        asyncio.run(asked(app, json.dumps({"message": MESSAGE}).encode()))
    )
    return found


async def timed(work: Callable[[], Awaitable[object]]) -> list[float]:
    """Return how many milliseconds each call took."""
    took = []
    for number in range(CALLS + WARM_UP):
        began = time.perf_counter()
        await work()
        if number >= WARM_UP:
            took.append((time.perf_counter() - began) * 1_000)
    return took


async def asked(app: Starlette, body: bytes) -> bytes:
    """Post a body straight into the application; return the body of the answer."""
    said: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        said.append(message)

    await app(
        {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "path": PATH,
            "raw_path": PATH.encode(),
            "query_string": b"",
            "root_path": "",
            "scheme": "http",
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8000),
            "headers": [(b"host", b"127.0.0.1:8000"), (b"content-type", b"application/json")],
        },
        receive,
        send,
    )
    assert said[0]["status"] == HTTPStatus.OK, said
    return b"".join(message.get("body", b"") for message in said[1:])


def over_a_socket(url: str, body: bytes) -> list[float]:
    """Return how many milliseconds each call took over one connection that stays open."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    took = []
    for number in range(CALLS + WARM_UP):
        began = time.perf_counter()
        connection.request("POST", PATH, body, {"content-type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == HTTPStatus.OK
        if number >= WARM_UP:
            took.append((time.perf_counter() - began) * 1_000)
    connection.close()
    return took


if __name__ == "__main__":
    sys.exit(main())
