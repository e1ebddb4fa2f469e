"""What tests do with asynchronous clients: each asks once, or once for each word."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

Ask = Callable[[str, Sequence[str]], Coroutine[Any, Any, list[str]]]


async def with_httpx2(address: str, words: Sequence[str]) -> list[str]:
    """Ask with httpx2."""
    import httpx2

    async with httpx2.AsyncClient() as client:
        answers = [await client.post(f"{address}/echo", json=body(word)) for word in words]
        return [answer.text for answer in answers]


async def with_aiohttp(address: str, words: Sequence[str]) -> list[str]:
    """Ask with aiohttp, through a redirect that keeps the body."""
    import aiohttp

    found = []
    async with aiohttp.ClientSession() as session:
        for word in words:
            url = f"{address}/redirect?status=307"
            async with session.post(url, json=body(word)) as response:
                found.append(await response.text())
    return found


CLIENTS: dict[str, Ask] = {"httpx2": with_httpx2, "aiohttp": with_aiohttp}
"""By the module they need."""


def ask_all(client: str, address: str, words: Sequence[str]) -> list[str]:
    """Ask for each word in an event loop of its own."""
    return asyncio.run(CLIENTS[client](address, words))


def body(word: str) -> dict[str, Any]:
    """Return what is sent: its difference from another one is too long for a message."""
    return {f"field {number}": f"{word} " * 100 for number in range(8)}
