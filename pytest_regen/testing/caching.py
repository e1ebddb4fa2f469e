"""Whether a conversation keeps its prompt cache: each request begins as the one before it did."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_regen.canonical import canonical_json
from pytest_regen.sessions import Exchange
from pytest_regen.turns.values import TurnRequest
from pytest_regen.turns.wire import request_body

_BREAKPOINTS = 4
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class _Block:
    where: str
    role: str
    text: str
    """What a reader takes the block for: its text, or the block as JSON."""
    rest: str
    """As JSON, what a block of text has besides; empty where it has nothing, as most have."""
    is_marked: bool

    @property
    def counts(self) -> tuple[str, str, str, str]:
        """Everything that counts: the block and its place, without its breakpoint."""
        return self.where, self.role, self.text, self.rest


@dataclass(frozen=True, slots=True)
class _Request:
    name: str
    branch: str
    purpose: str
    turn: int
    settings: str
    """What is folded into the prefix besides its blocks: model, tools, output format."""
    blocks: tuple[_Block, ...]


def assert_cache_prefix_stable(
    transcript: Iterable[Exchange | TurnRequest | Mapping[str, Any]],
) -> None:
    """Assert that every request can be read from the prompt cache as far as it was sent before.

    Each request of a conversation must begin, byte for byte, with the whole of the request it goes
    on from: a repair or a continuation with the call before it, a new turn with the first call of
    the turn before. At most four breakpoints may stand in a request, and one on its last block.

    Args:
        transcript: ``session.transcript``; or requests, or request bodies as the Messages API
            takes them (``emulator.requests[n].body``), which are then taken as turn after turn.

    Raises:
        AssertionError: a block has moved or changed, the first one is named; or the breakpoints
            do not serve.
    """
    __tracebackhide__ = True
    firsts: dict[str, tuple[_Request, ...]] = {}
    latest: dict[str, _Request] = {}
    for number, call in enumerate(transcript, start=1):
        request = _request(call, number)
        _check_breakpoints(request)
        before = latest.get(request.branch)
        if request.purpose == "ask":
            # A retried turn continues the turn before it, as the first try did.
            asked = firsts.get(request.branch, ())
            before = next((old for old in reversed(asked) if old.turn < request.turn), None)
        if before is not None:
            _check_prefix(before, request)
        latest[request.branch] = request
        is_answered = not isinstance(call, Exchange) or call.reply is not None
        if request.purpose == "ask" and is_answered:
            firsts[request.branch] = (before, request) if before else (request,)


def _request(call: Exchange | TurnRequest | Mapping[str, Any], number: int) -> _Request:
    name, branch, purpose, turn = f"request {number}", "", "ask", number
    if isinstance(call, Exchange):
        purpose, turn = call.purpose, call.turn
        name += f" (turn {turn}, {purpose})"
        call = call.request
    body = request_body(call) if isinstance(call, TurnRequest) else call
    settings = {key: body.get(key) for key in ("model", "tools", "output_config", "thinking")}
    return _Request(name, branch, purpose, turn, canonical_json(settings), tuple(_blocks(body)))


def _blocks(body: Mapping[str, Any]) -> Iterator[_Block]:
    for number, block in enumerate(_as_blocks(body.get("system"))):
        yield _block(f"system.{number}", block, "system")
    for turn, message in enumerate(body.get("messages") or ()):
        for number, block in enumerate(_as_blocks(message["content"])):
            yield _block(f"messages.{turn}.content.{number}", block, str(message["role"]))


def _as_blocks(content: object) -> list[Mapping[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content if isinstance(content, list) else []


def _block(where: str, block: Mapping[str, Any], role: str) -> _Block:
    # Texts as they are: to write each as JSON in each request takes longer than the test it is in.
    rest = {key: value for key, value in block.items() if key not in ("cache_control", "text")}
    text, is_marked = block.get("text"), "cache_control" in block
    as_json = "" if rest == {"type": "text"} else canonical_json(rest)
    if isinstance(text, str):
        return _Block(where, role, text, as_json, is_marked)
    return _Block(where, role, as_json, "", is_marked)


def _check_breakpoints(request: _Request) -> None:
    marked = [block.where for block in request.blocks if block.is_marked]
    assert len(marked) <= _BREAKPOINTS, (
        f"{request.name} has {len(marked)} cache breakpoints, {_BREAKPOINTS} are allowed: "
        f"{', '.join(marked)}"
    )
    assert request.blocks and request.blocks[-1].is_marked, (  # noqa: PT018 - as above
        f"{request.name} has no cache breakpoint on its last block, so that the next request can "
        f"read less than was sent; breakpoints stand on: {', '.join(marked) or 'nothing'}"
    )


def _check_prefix(before: _Request, request: _Request) -> None:
    assert before.settings == request.settings, (
        f"{request.name} cannot read what {before.name} wrote to the cache: model, tools or output "
        f"format changed\n  before: {before.settings}\n  now:    {request.settings}"
    )
    for number, block in enumerate(before.blocks):
        now = request.blocks[number] if number < len(request.blocks) else None
        if now is not None and now.counts == block.counts:
            continue
        raise AssertionError(
            f"{block.where} of {request.name} is not what it was in {before.name}; from there on "
            f"nothing can be read from the cache\n{_difference(block, now)}"
        )


def _difference(block: _Block, now: _Block | None) -> str:
    if now is None:
        return f"  before: {block.text[:_SHOWN]!r}\n  now:    nothing"
    # The same text in another role, or with another setting, differs in the whole of the block.
    was, is_ = block.text, now.text
    if was == is_:
        was, is_ = f"{block.role} {block.rest}", f"{now.role} {now.rest}"
    pairs = zip(was, is_, strict=False)
    same = next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(was), len(is_)))
    start = max(0, same - _SHOWN // 2)
    cut = "…" if start else ""
    return (
        f"  first difference after {same} characters\n"
        f"  before: {cut}{was[start : start + _SHOWN]!r}\n"
        f"  now:    {cut}{is_[start : start + _SHOWN]!r}"
    )
