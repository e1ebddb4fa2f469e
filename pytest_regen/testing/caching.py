"""Whether a conversation keeps its prompt cache: each request begins as the one before it did."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from pytest_regen.canonical import canonical_json
from pytest_regen.sessions import Exchange
from pytest_regen.turns.values import TurnRequest
from pytest_regen.turns.wire import request_body

_FOLDED = ("model", "tools", "output_config", "thinking")
"""What is folded into the prefix besides its blocks."""

_Block = tuple[str, str, Mapping[str, Any]]
"""Where it stands, whose it is, and its members but for its breakpoint, which does not count."""


@dataclass(frozen=True, slots=True)
class _Request:
    name: str
    turn: int
    blocks: list[_Block]


def assert_cache_prefix_stable(
    transcript: Iterable[Exchange | TurnRequest | Mapping[str, Any]],
) -> None:
    """Assert that every request can be read from the prompt cache as far as it was sent before.

    Each request of a conversation must begin, byte for byte, with the whole of the request it goes
    on from: a repair or a continuation with the call before it, a new turn with the first call of
    the turn before. A breakpoint must stand on its last block.

    Args:
        transcript: ``session.transcript``; or requests, or request bodies as the Messages API
            takes them (``emulator.requests[n].body``), which are then taken as turn after turn.

    Raises:
        AssertionError: a block has moved or changed, the first one is named; or no breakpoint
            stands on the last block.
    """
    __tracebackhide__ = True
    asks: list[_Request] = []
    latest: _Request | None = None
    for number, call in enumerate(transcript, start=1):
        name, purpose, turn, is_answered = f"request {number}", "ask", number, True
        sent: Any = call
        if isinstance(call, Exchange):
            purpose, turn = call.purpose, call.turn
            name += f" (turn {turn}, {purpose})"
            sent, is_answered = call.request, call.reply is not None
        body = request_body(sent) if isinstance(sent, TurnRequest) else sent
        settings = {key: body.get(key) for key in _FOLDED}
        # As a block before all others, because the cache is keyed by them first.
        request = _Request(name, turn, [("model, tools or output format", "", settings)])
        marked: list[str] = []
        for where, role, block in _blocks(body):
            bare = {key: value for key, value in block.items() if key != "cache_control"}
            request.blocks.append((where, role, bare))
            marked += [where] if len(bare) < len(block) else []
        assert [where for where, _, _ in request.blocks[-1:]] == marked[-1:] != [], (
            f"{name} has no cache breakpoint on its last block, so that the next request can read "
            f"less than was sent; breakpoints stand on: {', '.join(marked) or 'nothing'}"
        )
        before, latest = latest, request
        # By turns, because repairs and continuations are dropped from what the next turn sends.
        if purpose == "ask":
            # A retried turn continues the turn before it, as the first try did.
            before = next((ask for ask in reversed(asks) if ask.turn < turn), None)
            if is_answered:
                asks.append(request)
        if before is None:
            continue
        for was, now in zip_longest(before.blocks, request.blocks[: len(before.blocks)]):
            # As JSON, because pytest shows of two long texts where they begin to differ.
            assert canonical_json(now) == canonical_json(was), (
                f"{was[0]} of {name} is not what it was in {before.name}; from there on "
                "nothing can be read from the cache"
            )


def _blocks(body: Mapping[str, Any]) -> Iterator[_Block]:
    contents: list[tuple[str, str, Any]] = [("system", "system", body.get("system"))]
    for turn, message in enumerate(body.get("messages") or ()):
        contents.append((f"messages.{turn}.content", message["role"], message["content"]))
    for where, role, content in contents:
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for number, block in enumerate(blocks if content else ()):
            yield f"{where}.{number}", role, block
