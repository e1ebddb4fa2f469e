"""One turn with a model: budgets, hooks, cassette, sending, and the rest of a cut reply.

    reserve in every budget → before-hook → send, with the cassette in use
    → settle the budgets → log → after-hook → refusal, or the rest of a reply that was cut

Stores, units, sessions and agents all take their turns through a ``TurnExchange``. It works on
*steps* (``turns/steps.py``), so that what belongs to a call is written once, for threads and for
event loops.
"""

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Protocol, TypeVar, cast

from pytest_regen import errors
from pytest_regen.turns.budget import TokenBudget
from pytest_regen.turns.interception import CassetteMiss
from pytest_regen.turns.models import BATCH_SHARE, Prices, cost_of
from pytest_regen.turns.steps import (
    OnProgress,
    Steps,
    adrive,
    asend,
    calling,
    drive,
    no_reply,
)
from pytest_regen.turns.values import (
    CacheTtl,
    Message,
    Provider,
    Reply,
    TurnRequest,
    Usage,
    provider_reference,
    size_of,
)
from pytest_regen.turns.wire import in_brief

# A failure shows the code of the test that called, none of the lines in between.
__tracebackhide__ = True

R = TypeVar("R")

CONTINUATIONS = 3
"""Calls spent on the rest of a reply that a limit cut."""

CONTINUE = (
    "Your reply was cut off by a length limit. Continue exactly where it stopped, in the middle of "
    "a word if need be. Repeat nothing and add no introduction."
)
_NO_TEXT = "(no text)"
"""Stands for an empty reply that is shown to the model; the API refuses empty messages."""

_REFUSED = "the API ended the reply with stop_reason 'refusal'"

_USUAL_REPLY = 1_000
"""Tokens a reply is expected to take before any was seen, for the estimate of a budget."""

_STOPPED = "the reply was not waited for: the turn was cancelled or interrupted"


class TurnCassette(Protocol):
    """A recording that turns go through, as ``cassettes.CassetteRun``."""

    def in_use(self, *, http_clients: bool) -> AbstractContextManager[None]:
        """Serve and record what is sent while the block runs."""
        ...

    def delivered(self, miss: CassetteMiss, /) -> None:
        """Note that ``miss`` was raised to the caller."""
        ...


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call as it ended."""

    request: TurnRequest
    reply: Reply | None = None
    error: Exception | None = None
    """Why there is no reply."""
    usage: Usage | None = None
    """Tokens spent; estimated where the call broke off, ``None`` where nothing was spent."""
    failure: str = ""
    """Why there is no reply, in words: the error, or that the call was interrupted."""


Log = Callable[[CallRecord], None]


class Tally:
    """Calls made and tokens spent; ``add`` is a log for any number of threads."""

    def __init__(self) -> None:
        self.calls = 0
        self.usage = Usage()
        self._lock = threading.Lock()

    def add(self, call: CallRecord) -> None:
        """Count a call; one that was never sent has cost nothing."""
        with self._lock:
            self.calls += not isinstance(call.error, errors.MissingKeyError | errors.CassetteError)
            self.usage += call.usage or Usage()


class TurnExchange:
    """Takes turns with a provider, and is a provider itself, so that exchanges can be nested.

    Args:
        provider: who answers. An exception other than ``RegenError``, and a return value other
            than ``Reply``, becomes a ``TransportError``.
        budgets: each reserves what a call may take; where one refuses, the others get theirs back.
        before: called with each request before it is sent.
        after: called with each request and its reply.
        cassette: in use while the provider is asked, and only then.
        log: called with each call as it ended.
        prices: those of the project; list prices by default.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        budgets: Sequence[TokenBudget] = (),
        before: Callable[[TurnRequest], None] | None = None,
        after: Callable[[TurnRequest, Reply], None] | None = None,
        cassette: TurnCassette | None = None,
        log: Log | None = None,
        prices: Prices | None = None,
    ) -> None:
        self.wire: Provider = _Wire(provider, cassette)
        self._provider = provider
        self._budgets = tuple(budgets)
        self._before = before
        self._after = after
        self._log = log
        self._prices = prices
        self._reply_size = _USUAL_REPLY

    @property
    def reference(self) -> str | None:
        """Who answers, as ``module:name``."""
        return provider_reference(self._provider)

    @property
    def asks_cassettes(self) -> bool:
        """Whether the provider needs no patched HTTP client to replay."""
        return asks_cassettes(self._provider)

    def send(self, request: TurnRequest) -> Reply:
        """Return the reply to one request; a refusal is a reply, and so is one that was cut.

        Raises:
            BudgetError: the call cannot be paid; it was not made.
            ProviderError: there is no reply.
            CassetteError: the cassette has none, or cannot be read.
        """
        return self.run(_single(request))

    async def asend(
        self, request: TurnRequest, *, expected: int | None = None, log: Log | None = None
    ) -> Reply:
        """Return the reply without blocking the event loop; raises as ``send`` does.

        ``expected`` and ``log`` are those of ``around``.
        """
        steps = self.around(_single(request), expected=expected, log=log)
        return await adrive(steps, self.wire)

    def run(self, steps: Steps[R]) -> R:
        """Make the calls of ``steps`` and return their result."""
        return drive(self.around(steps), self.wire)

    async def arun(self, steps: Steps[R]) -> R:
        """Make the calls of ``steps`` without blocking the event loop."""
        return await adrive(self.around(steps), self.wire)

    def around(
        self, steps: Steps[R], *, expected: int | None = None, log: Log | None = None
    ) -> Steps[R]:
        """Return ``steps`` with budgets, hooks and log around each call; ``wire`` answers them.

        Budgets are settled and the call is logged before a hook can raise.

        Args:
            steps: yields requests.
            expected: tokens a reply is expected to take; by default as many as the last one took.
            log: called with each call as it ended, after the log of the exchange.
        """
        # No ``yield from``: each request and each outcome passes through here on its way. To send
        # None is to start.
        started = cast("Generator[TurnRequest, Reply | None, R]", steps)
        reply: Reply | None = None
        failure: Exception | None = None
        with closing(steps):
            while True:
                try:
                    request = started.throw(failure) if failure else started.send(reply)
                except StopIteration as end:
                    return cast("R", end.value)
                reserved = self._reserve(request, expected)
                reply = failure = None
                try:
                    if self._before:
                        self._before(request)
                except BaseException:
                    self._settle(reserved, None)
                    raise
                try:
                    reply = yield request
                except Exception as error:  # noqa: BLE001 - the steps decide
                    failure = error
                    usage = self._spent_by(error, request)
                    if isinstance(error, errors.ProviderError):
                        error.usage = usage  # An exchange around this one has other prices.
                    call = CallRecord(request, None, error, usage, str(error))
                    self._enter(reserved, call, log)
                except GeneratorExit:
                    # Stopped from outside while the provider was at work: what went out is paid.
                    usage = self._priced(Usage(input_tokens=size_of(request)), request.model)
                    call = CallRecord(request, None, None, usage, _STOPPED)
                    self._enter(reserved, call, log)
                    raise
                else:
                    usage = self._priced(reply.usage, request.model, reply.model)
                    reply = replace(reply, usage=usage)
                    self._reply_size = reply.usage.output_tokens or self._reply_size
                    self._enter(reserved, CallRecord(request, reply, None, usage), log)
                    if self._after:
                        self._after(request, reply)

    def _priced(self, usage: Usage, *models: str) -> Usage:
        """Return usage with what it cost by the name that was asked for, or that answered."""
        names = tuple(filter(None, models))
        share = BATCH_SHARE if getattr(self._provider, "is_batch", False) else Decimal(1)

        def price(request: Usage) -> Decimal | None:
            costs = (cost_of(request, name, self.reference, self._prices) for name in names)
            usd = next((usd for usd in costs if usd is not None), None)
            return None if usd is None else usd * share

        return usage.priced(price, names[-1] if names else "")

    def _spent_by(self, error: Exception, request: TurnRequest) -> Usage | None:
        """Return the usage of a failed call: its input where unknown, ``None`` without any."""
        usage = error.usage if isinstance(error, errors.ProviderError) else None
        if usage is None:
            return None
        if not usage.total_tokens:
            # A reply that broke off has been asked for. Played, it keeps that it was free.
            usage += Usage(input_tokens=size_of(request))
        return self._priced(usage, request.model)

    def _reserve(self, request: TurnRequest, expected: int | None) -> int:
        """Take what the call is estimated to need from every budget, or from none."""
        written = self._reply_size if expected is None else expected
        estimate = size_of(request) + min(written, request.max_tokens)
        with ExitStack() as taken:
            for budget in self._budgets:
                budget.reserve(estimate)
                taken.callback(budget.settle, estimate, None)
            taken.pop_all()
        return estimate

    def _settle(self, reserved: int, usage: Usage | None) -> None:
        for budget in self._budgets:
            budget.settle(reserved, usage)

    def _enter(self, reserved: int, call: CallRecord, log: Log | None) -> None:
        self._settle(reserved, call.usage)
        for entry in (self._log, log):
            if entry:
                entry(call)


def _single(request: TurnRequest) -> Steps[Reply]:
    return (yield request)


class _Wire:
    """A provider with a cassette around it; its faults become errors of this package."""

    def __init__(self, provider: Provider, cassette: TurnCassette | None) -> None:
        self._provider = provider
        self._cassette = cassette
        self._name = f"the provider {type(provider).__name__}"

    def send(self, request: TurnRequest) -> Reply:
        with self._guard():
            reply: object = self._provider.send(request)
        return self._check(reply)

    async def asend(self, request: TurnRequest) -> Reply:
        with self._guard():
            reply: object = await asend(self._provider, request)
        return self._check(reply)

    @contextmanager
    def _guard(self) -> Iterator[None]:
        cassette = self._cassette
        in_use = (
            cassette.in_use(http_clients=not asks_cassettes(self._provider))
            if cassette
            else nullcontext()
        )
        try:
            with in_use, calling(self._name):
                yield
        except CassetteMiss as miss:
            # Not an Exception: it came through the provider unseen.
            if cassette is None:
                raise
            cassette.delivered(miss)
            raise miss.error from None

    def _check(self, reply: object) -> Reply:
        text: object = reply.text if isinstance(reply, Reply) else reply
        if isinstance(reply, Reply) and isinstance(text, str):
            return reply
        answer = f"a reply whose text is {text!r:.80}" if text is not reply else ""
        raise no_reply(self._name, answer or type(reply).__name__)


def asks_cassettes(provider: Provider) -> bool:
    """Return whether ``provider`` asks the cassette in use itself, or sends nothing anywhere."""
    # Any other may hold an HTTP client of its own, which has to be patched for a replay.
    return bool(getattr(provider, "asks_cassettes", False))


@dataclass(frozen=True, slots=True)
class Whole:
    """A reply and what was asked for it."""

    pieces: tuple[str, ...]
    """The reply's text as it came, and that of each continuation; ``reply_text`` joins them."""
    is_truncated: bool
    """Whether the last piece was cut as well."""
    usage: Usage
    request: TurnRequest
    """The last request made for it."""
    reply: Reply
    """The reply to that."""


def whole_reply(
    request: TurnRequest, *, larger_limit: int = 0, progress: OnProgress | None = None
) -> Steps[Whole]:
    """Ask, and have a reply that a limit cut continued.

    The conversation only grows, so that each call reads the one before it from the cache.

    Args:
        request: what is asked.
        larger_limit: output tokens with which a reply is asked for again that the limit of the
            request cut; where that limit is as large, the reply is continued at once.
        progress: called with one line per further call.

    Raises:
        RefusedError: the model declined.
    """
    report = progress or (lambda _: None)
    reply = yield request
    usage = reply.usage
    if reply.stop_reason == "max_tokens" and request.max_tokens < larger_limit:
        report("The reply was cut; asking again with more room...")
        request = replace(request, max_tokens=larger_limit)
        reply = yield request
        usage += reply.usage
    pieces = [_text_of(reply)]
    for number in range(1, CONTINUATIONS + 1):
        # A full context window has no room for a continuation either.
        if reply.stop_reason != "max_tokens" or not "".join(pieces).strip():
            break
        report(f"The reply was cut; asking for its rest ({number}/{CONTINUATIONS})...")
        request = extend(request, reply.text, CONTINUE)
        reply = yield request
        usage += reply.usage
        pieces.append(_text_of(reply))
    return Whole(tuple(pieces), reply.is_truncated, usage, request, reply)


def extend(request: TurnRequest, reply: str, ask: str) -> TurnRequest:
    """Return ``request`` with a reply and a further message; the breakpoint moves to the end."""
    cache: CacheTtl | None = request.messages[-1].cache
    before = [replace(message, cache=None) for message in request.messages]
    # Half a character goes back as its escape, because no request can hold it.
    text = (reply.rstrip() or _NO_TEXT).encode("utf-8", "backslashreplace").decode("utf-8")
    messages = (*before, Message("assistant", text), Message("user", ask, cache))
    return replace(request, messages=messages)


def _text_of(reply: Reply) -> str:
    if reply.is_refusal:
        raise errors.RefusedError(
            f"the model {reply.model} declined to answer".replace("  ", " "),
            why=": ".join(filter(None, (_REFUSED, in_brief(reply.refusal)))),
            hint="read the prompt that was sent, or try another model",
        )
    return reply.text
