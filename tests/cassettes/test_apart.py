"""Turns that are taken at the same time, each with a cassette of its own."""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import httpx2
import pytest
from recorded import KEY, echo
from turn_values import MODEL, turn

from pytest_regen.cassettes import CassetteRun, RecordMode, read_cassette
from pytest_regen.emulator import EmulatedReply, Emulator
from pytest_regen.network import BlockedConnectionError
from pytest_regen.turns import AnthropicProvider, Provider, Reply, TurnRequest
from pytest_regen.turns.exchange import TurnExchange

WORDS = ("ivy", "oak", "elm", "yew")


class Plain:
    """A provider of a user's: no part of it knows cassettes."""

    def __init__(self, address: str) -> None:
        self._address = address

    def send(self, request: TurnRequest) -> Reply:
        """Ask in the thread in which it is asked itself."""
        message = {"role": "user", "content": request.messages[-1].content}
        body = {"model": MODEL, "max_tokens": 9, "messages": [message]}
        with httpx2.Client(headers={"x-api-key": KEY, "anthropic-version": "2023-06-01"}) as client:
            answer = client.post(f"{self._address}/v1/messages", json=body)
        return Reply(answer.json()["content"][-1]["text"])


def _slow_echo(body: dict[str, Any]) -> EmulatedReply:
    return EmulatedReply(echo(body), delay=0.05)


async def _take_all(
    folder: Path, provider: Provider, mode: RecordMode, words: tuple[str, ...] = WORDS
) -> list[str]:
    runs = [CassetteRun(folder / f"{word}.yaml", mode, is_apart=True) for word in words]
    exchanges = [TurnExchange(provider, cassette=run) for run in runs]
    try:
        replies = await asyncio.gather(
            *(exchange.asend(turn(word)) for exchange, word in zip(exchanges, words, strict=True))
        )
    finally:
        for run in runs:
            run.finish(keep=True)
    return [reply.text for reply in replies]


def _words_in(path: Path) -> list[str]:
    file = read_cassette(path)
    bodies = [stored.interaction.request_body for stored in file.interactions] if file else []
    return [json.loads(body)["messages"][-1]["content"] for body in bodies]


@pytest.mark.parametrize("kind", [AnthropicProvider, Plain])
def test_each_turn_has_its_own_cassette(tmp_path: Path, kind: Any) -> None:
    """Turns under way together are recorded each in its own file, and replayed from there."""
    with Emulator(_slow_echo) as emulator:
        provider = (
            AnthropicProvider(api_key=KEY, base_url=emulator.base_url)
            if kind is AnthropicProvider
            else kind(emulator.base_url)
        )
        recorded = asyncio.run(_take_all(tmp_path, provider, "once"))
        asked = len(emulator.requests)

        replayed = asyncio.run(_take_all(tmp_path, provider, "none"))

        assert len(emulator.requests) == asked == len(WORDS)
    assert recorded == replayed == list(WORDS)
    assert [_words_in(tmp_path / f"{word}.yaml") for word in WORDS] == [[word] for word in WORDS]


def test_a_replay_closes_the_network_to_itself(tmp_path: Path) -> None:
    """A turn that only replays reaches nothing, while one beside it may send."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        run = CassetteRun(tmp_path / "c.yaml", "none", is_apart=True)

        async def connect() -> str:
            try:
                socket.create_connection(address, timeout=5).close()
            except BlockedConnectionError:
                return "blocked"
            return "open"

        async def replay(inside: asyncio.Event, left: asyncio.Event) -> str:
            with run.in_use(http_clients=False):
                inside.set()
                await left.wait()
                return await connect()

        async def both() -> tuple[str, str]:
            inside, left = asyncio.Event(), asyncio.Event()
            replaying = asyncio.create_task(replay(inside, left))
            await inside.wait()
            beside = await connect()
            left.set()
            return await replaying, beside

        assert asyncio.run(both()) == ("blocked", "open")
