"""Requests and replies of a session, call by call, and what the prompt cache did per turn."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from pytest_regen.turns.models import min_cacheable_tokens
from pytest_regen.turns.values import TOKENS, Cost, Reply, TurnRequest, Usage

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
        # The total, because by the count of the API what the cache had a part in is no input.
        usage = self.reply.usage
        return usage.total_tokens - (usage.output_tokens or 0)


class SessionTranscript(list[Exchange]):
    """Every call of a session in order: unlike the history, failures and repairs included."""

    def before(self, exchange: Exchange) -> Exchange | None:
        """Return the answered call whose request is the longest beginning of that of ``exchange``.

        Of equally long ones the latest counts.
        """
        # By identity, because two calls may be equal.
        before = itertools.takewhile(lambda call: call is not exchange, self)
        answered = [call for call in before if call.reply is not None]
        # The longest first, because the first one looked at is then the right one in a session:
        # comparing them all would read every message of every turn again in each turn.
        answered.sort(key=lambda call: len(call.request.messages))
        for call in reversed(answered):
            request, earlier = exchange.request, call.request
            is_same = (request.system, request.model) == (earlier.system, earlier.model)
            if is_same and _words(request)[: len(earlier.messages)] == _words(earlier):
                return call
        return None


def _words(request: TurnRequest) -> list[tuple[str, str]]:
    # Without breakpoints, because those move on with each request.
    return [(message.role, message.content) for message in request.messages]


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


def report_cache(transcript: SessionTranscript, calls: Sequence[Exchange]) -> CacheReport:
    """Return what ``calls`` of a turn, the last of the transcript, read and wrote."""
    answered = [exchange for exchange in calls if exchange.reply is not None]
    usage = sum((exchange.usage or Usage() for exchange in answered), Usage())
    expected = [_expected_read(transcript, exchange) for exchange in answered]
    notes = map(_cache_note, answered, expected)
    return CacheReport(
        read=usage.cache_read_tokens or 0,
        written=usage.cache_write_tokens or 0,
        plain=usage.input_tokens or 0,
        expected=sum(expected),
        is_reported=usage.cache_read_tokens is not None or not answered,
        notes=tuple(dict.fromkeys(filter(None, notes))),
    )


def _expected_read(transcript: SessionTranscript, exchange: Exchange) -> int:
    """Return the tokens that ``exchange`` should have read."""
    earlier = transcript.before(exchange)
    if earlier is None or exchange.request.cache is None or earlier.request.cache is None:
        return 0
    size = earlier.input_tokens or 0
    least = min_cacheable_tokens(exchange.request.model)
    return max(0, size - SLACK) if least is not None and size >= least + SLACK else 0


def _cache_note(exchange: Exchange, expected: int) -> str:
    """Return a note on one answered call for the reader of a bill, empty where all is well."""
    request, usage = exchange.request, exchange.usage or Usage()
    if usage.cache_read_tokens is None or request.cache is None:
        return ""
    size, least = exchange.input_tokens or 0, min_cacheable_tokens(request.model)
    read, written = usage.cache_read_tokens, usage.cache_write_tokens or 0
    # Above the least nothing is claimed, because a provider may cache without saying so.
    if not read and not written and least is not None and size < least:
        return (
            f"nothing was cached: the request has {size:,} tokens, and {request.model} caches "
            f"prefixes of {least:,} tokens and more"
        )
    if read < expected:
        return (
            f"{expected - read:,} tokens were paid again that could have been read from the cache; "
            f"it keeps a prefix for {request.cache} after its last use, and one that is changed is "
            "another one"
        )
    return ""
