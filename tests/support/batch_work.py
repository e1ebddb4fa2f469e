"""Providers that ask in batches, against an emulator whose batches end at once."""

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from turn_values import turn

from pytest_regen.canonical import canonical_hash
from pytest_regen.emulator import BatchStep, EmulatedReply, Emulator, Script
from pytest_regen.errors import RegenError
from pytest_regen.turns import BatchProvider, Reply, TurnRequest

KEY = "opaque-key-of-a-workspace"
POLL = 0.02


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


def ask(asked: BatchProvider, *requests: TurnRequest) -> list[Reply | BaseException]:
    """Return the replies to requests that are made at the same time, or why there are none."""

    async def gathered() -> list[Reply | BaseException]:
        return await asyncio.gather(*map(asked.asend, requests), return_exceptions=True)

    return asyncio.run(gathered())


def submitted(emulated: Emulator) -> list[list[Mapping[str, Any]]]:
    """Return what the requests of each call that creates a batch asked for."""
    return [
        [request["params"] for request in received.body["requests"]]
        for received in emulated.requests
        if received.method == "POST" and received.path.endswith("/batches")
    ]


def paid(emulated: Emulator) -> Counter[str]:
    """Return how often each request was submitted."""
    return Counter(canonical_hash(params) for batch in submitted(emulated) for params in batch)


def said(replies: Sequence[Reply | BaseException]) -> list[str]:
    """Return the texts of replies.

    Raises:
        RegenError: one of them is none.
    """
    for reply in replies:
        if isinstance(reply, BaseException):
            raise reply
    return [reply.text for reply in replies if isinstance(reply, Reply)]
