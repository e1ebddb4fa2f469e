"""Cassettes for tests: turns recorded from the emulator through the real SDK and real vcrpy."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from pytest_regen.cassettes import CassetteRun, RecordMode, read_cassette, use_cassette
from pytest_regen.cassettes.files.reader import CassetteFile
from pytest_regen.emulator import Emulator
from pytest_regen.errors import RegenError
from pytest_regen.turns import AnthropicProvider, Reply, TurnRequest

KEY = "opaque-key-of-a-gateway"


def echo(body: dict[str, Any]) -> str:
    """Say what the last message said."""
    content = body["messages"][-1]["content"]
    return str(content if isinstance(content, str) else content[0]["text"])


def record(
    path: Path,
    requests: Iterable[TurnRequest],
    *,
    mode: RecordMode = "once",
    responder: Callable[..., Any] = echo,
    max_retries: int = 2,
    **options: Any,
) -> tuple[list[Reply | RegenError], CassetteRun]:
    """Make these turns with the emulator while the cassette records; return what came of them."""
    with Emulator(responder) as emulator:
        provider = AnthropicProvider(
            api_key=KEY, base_url=emulator.base_url, max_retries=max_retries
        )
        with use_cassette(path, mode=mode, **options) as run:
            outcomes = [outcome(provider, request) for request in requests]
        provider.close()
    return outcomes, run


def loaded(path: Path) -> CassetteFile:
    """Return a cassette that is there."""
    file = read_cassette(path)
    assert file is not None
    return file


def outcome(provider: Any, request: TurnRequest) -> Reply | RegenError:
    """Return the reply, or the error of ours."""
    try:
        reply = provider.send(request)
    except RegenError as error:
        return error
    assert isinstance(reply, Reply)
    return reply


@contextmanager
def answering(answer: Callable[[httpx2.Request], httpx2.Response]) -> Iterator[None]:
    """Let a function answer where httpx2 would use the network; enter it before a cassette."""

    def handle_request(_self: httpx2.HTTPTransport, request: httpx2.Request) -> httpx2.Response:
        request.read()
        return answer(request)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpx2.HTTPTransport, "handle_request", handle_request)
        yield


def replaying(**options: Any) -> AnthropicProvider:
    """Return a provider without a key, at an address where nobody listens."""
    return AnthropicProvider(base_url="http://127.0.0.1:9", **options)
