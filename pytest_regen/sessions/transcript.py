"""Requests and replies of a session, call by call, and what the prompt cache did per turn."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pytest_regen.turns.models import min_cacheable_tokens
from pytest_regen.turns.values import TOKENS, CacheTtl, Cost, Message, Reply, TurnRequest, Usage

Purpose = Literal["ask", "continuation", "repair"]

SLACK = 7
"""Tokens at the end of a request that no breakpoint reaches; measured on real traffic: 2 to 7."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One call: a request and its reply, or why there is none."""

    turn: int
    """Number of the turn it was made for, counted from 1, whether or not that turn succeeded."""
    purpose: Purpose
    request: TurnRequest
    reply: Reply | None = None
    failure: str = ""
    branch: str = ""
    """Which conversation under the same system prompt; empty where there is only one."""
    sent: Usage | None = None
    """What a call took at least whose reply broke off or was not waited for, in part estimated."""

    @property
    def usage(self) -> Usage | None:
        """Tokens spent, as far as they are known; ``None`` where a call brought nothing."""
        return self.reply.usage if self.reply else self.sent

    @property
    def input_tokens(self) -> int | None:
        """Tokens of the whole request, cached or not; ``None`` where the provider did not say."""
        if self.reply is None or self.reply.usage.input_tokens is None:
            return None
        usage = self.reply.usage
        read, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
        return (usage.input_tokens or 0) + read + written


class SessionTranscript:
    """Every call of a session in order: unlike the history, failures and repairs included."""

    def __init__(self, exchanges: Iterable[Exchange] = ()) -> None:
        self._exchanges: list[Exchange] = []
        self._answered: dict[int, Exchange] = {}
        self._before: list[Exchange | None] = []
        for exchange in exchanges:
            self.add(exchange)

    def __iter__(self) -> Iterator[Exchange]:
        return iter(tuple(self._exchanges))

    def __len__(self) -> int:
        return len(self._exchanges)

    def __getitem__(self, index: int) -> Exchange:
        return self._exchanges[index]

    def add(self, exchange: Exchange) -> None:
        """Append a call."""
        beginnings = list(_beginnings(exchange.request))
        self._before.append(self._longest(exchange.request, beginnings))
        self._exchanges.append(exchange)
        if exchange.reply is not None:
            # The last key covers the whole request; of equal requests the last call counts.
            self._answered[beginnings[-1]] = exchange

    def of_turn(self, turn: int) -> tuple[Exchange, ...]:
        """Return the calls made for one turn."""
        return tuple(exchange for exchange in self._exchanges if exchange.turn == turn)

    def before(self, exchange: Exchange) -> Exchange | None:
        """Return the answered call whose request is the longest beginning of that of ``exchange``.

        Raises:
            KeyError: ``exchange`` is not in the transcript.
        """
        # From the end, where it is asked for; by identity, for two calls may be equal.
        for candidate, before in zip(
            reversed(self._exchanges), reversed(self._before), strict=True
        ):
            if candidate is exchange:
                return before
        raise KeyError(exchange)

    def _longest(self, request: TurnRequest, beginnings: Sequence[int]) -> Exchange | None:
        """Return the last answered call whose request is the longest beginning of ``asked``.

        Looked up, not searched for: a session of n turns would compare n requests of up to n
        messages in each turn.
        """
        for key in reversed(beginnings):
            candidate = self._answered.get(key)
            if candidate is not None and _goes_on_from(request, candidate.request):
                return candidate
        return None

    def to_json(self) -> list[dict[str, Any]]:
        """Return plain JSON for a log: each call with the messages that are new in it.

        ``offset`` counts the messages it shares with the call before it in the same conversation.
        """
        latest: dict[str, TurnRequest] = {}
        entries = []
        for exchange in self._exchanges:
            entries.append(_entry(exchange, latest.get(exchange.branch)))
            latest[exchange.branch] = exchange.request
        return entries


def _beginnings(request: TurnRequest) -> Iterator[int]:
    """Yield a key for each number of messages, none included, that ``request`` begins with."""
    # A chain of hashes, linear in the messages. Equal keys are no proof: whoever finds a call by
    # its key compares the messages, see _longest.
    key = hash((request.system, request.model))
    yield key
    for message in request.messages:
        key = hash((key, message.role, message.content))
        yield key


def _goes_on_from(request: TurnRequest, earlier: TurnRequest) -> bool:
    if (request.system, request.model) != (earlier.system, earlier.model):
        return False
    return _common_length(request.messages, earlier.messages) == len(earlier.messages)


def _common_length(messages: Sequence[Message], earlier: Sequence[Message]) -> int:
    """Return how many messages at the beginning are the same, breakpoints aside."""
    count = 0
    for message, other in zip(messages, earlier, strict=False):
        if (message.role, message.content) != (other.role, other.content):
            break
        count += 1
    return count


def _entry(exchange: Exchange, earlier: TurnRequest | None) -> dict[str, Any]:
    request, reply = exchange.request, exchange.reply
    offset = _common_length(request.messages, earlier.messages) if earlier else 0
    is_new = earlier is None or earlier.system != request.system
    return {
        "branch": exchange.branch,
        "turn": exchange.turn,
        "purpose": exchange.purpose,
        "model": request.model,
        **({"system": request.system} if is_new else {}),
        "offset": offset,
        "messages": [
            {"role": message.role, "content": message.content}
            for message in request.messages[offset:]
        ],
        "reply": reply.text if reply else None,
        "stop_reason": (reply.stop_reason or None) if reply else None,
        "usage": usage_to_json(exchange.usage) if exchange.usage else None,
        "failure": exchange.failure,
    }


def usage_to_json(usage: Usage) -> dict[str, int | str | None]:
    """Return plain JSON; the cost stands in it where all of it is known."""
    cost = usage.cost if usage.cost and usage.cost.json else None
    counts = {name: getattr(usage, name) for name in TOKENS}
    return {**counts, **({"cost_usd": f"{cost.usd:f}"} if cost else {})}


@dataclass(frozen=True, slots=True)
class CacheReport:
    """What one turn read from the prompt cache and wrote to it, in tokens."""

    read: int = 0
    written: int = 0
    plain: int = 0
    """Input that the cache had no part in."""
    expected: int = 0
    """What could have been read: all that stood in the requests these ones went on from."""
    is_reported: bool = True
    """Whether the provider counted at all."""
    notes: tuple[str, ...] = ()
    """Why nothing was cached, or less than could have been."""

    @property
    def missed(self) -> int:
        """Tokens that should have been read and were paid again."""
        return max(0, self.expected - self.read) if self.is_reported else 0

    def __str__(self) -> str:
        if not self.is_reported:
            return "the provider reports no cache use"
        missed = f", {self.missed:,} missed" if self.missed else ""
        return f"{self.read:,} read, {self.written:,} written, {self.plain:,} not cached{missed}"


@dataclass(frozen=True, slots=True)
class TurnReport:
    """What one turn took."""

    turn: int
    committed: bool
    """Whether the turn entered the history; a failed one is paid all the same."""
    calls: int = 0
    repairs: int = 0
    usage: Usage = field(default_factory=Usage)
    cache: CacheReport = field(default_factory=CacheReport)
    notes: tuple[str, ...] = ()
    """What was left out of the reply and why: duplicates, unknown tools, a part that was cut."""
    failure: str = ""

    @property
    def cost(self) -> Cost | None:
        """What the calls cost, each priced by itself; ``None`` where none was made."""
        return self.usage.cost


def report_turn(
    transcript: SessionTranscript,
    turn: int,
    *,
    since: int,
    committed: bool,
    notes: Sequence[str] = (),
    failure: str = "",
) -> TurnReport:
    """Return the report of the calls from position ``since`` of the transcript on."""
    exchanges = tuple(transcript)[since:]
    usage = _total(exchange.usage for exchange in exchanges)
    return TurnReport(
        turn,
        committed,
        calls=len(exchanges),
        repairs=sum(exchange.purpose == "repair" for exchange in exchanges),
        usage=usage,
        cache=_cache_report(transcript, exchanges),
        notes=tuple(notes),
        failure=failure,
    )


def _total(usages: Iterable[Usage | None]) -> Usage:
    total = Usage()
    for usage in usages:
        total += usage or Usage()
    return total


def _cache_report(transcript: SessionTranscript, exchanges: Sequence[Exchange]) -> CacheReport:
    answered = [exchange for exchange in exchanges if exchange.reply is not None]
    usage = _total(exchange.usage for exchange in answered)
    reported = any(
        exchange.reply is not None and exchange.reply.usage.cache_read_tokens is not None
        for exchange in answered
    )
    notes = [note for exchange in answered for note in _notes(transcript, exchange)]
    return CacheReport(
        read=usage.cache_read_tokens or 0,
        written=usage.cache_write_tokens or 0,
        plain=usage.input_tokens or 0,
        expected=sum(_expected_read(transcript, exchange) for exchange in answered),
        is_reported=reported or not answered,
        notes=tuple(dict.fromkeys(notes)),
    )


def _expected_read(transcript: SessionTranscript, exchange: Exchange) -> int:
    """Return the tokens that ``exchange`` should have read."""
    earlier = transcript.before(exchange)
    if earlier is None or _ttl(exchange.request) is None or _ttl(earlier.request) is None:
        return 0
    size = earlier.input_tokens or 0
    least = min_cacheable_tokens(exchange.request.model)
    return max(0, size - SLACK) if least is not None and size >= least + SLACK else 0


def _notes(transcript: SessionTranscript, exchange: Exchange) -> Iterator[str]:
    """Yield notes on one call for the reader of a bill."""
    request, reply, ttl = exchange.request, exchange.reply, _ttl(exchange.request)
    if reply is None or reply.usage.cache_read_tokens is None or ttl is None:
        return
    size, least = exchange.input_tokens or 0, min_cacheable_tokens(request.model)
    read, written = reply.usage.cache_read_tokens, reply.usage.cache_write_tokens or 0
    if not read and not written and least is not None and size >= least:
        yield (
            f"the provider reports nothing as cached, neither read nor written, though the request "
            f"has {size:,} tokens: it may cache without saying so, or not at all"
        )
    elif not read and not written:
        limit = f"{least:,}" if least is not None else "an unknown number of"
        yield (
            f"nothing was cached: the request has {size:,} tokens, and {request.model} caches "
            f"prefixes of {limit} tokens and more"
        )
    elif read < _expected_read(transcript, exchange):
        missed = _expected_read(transcript, exchange) - read
        yield (
            f"{missed:,} tokens were paid again that could have been read from the cache; it keeps "
            f"a prefix for {ttl} after its last use, and one that is changed is another one"
        )


def _ttl(request: TurnRequest) -> CacheTtl | None:
    return request.messages[-1].cache
