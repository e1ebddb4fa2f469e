"""Requests sent in batches, and their replies read.

A truncated reply is never asked for again as it was: first with a larger limit, then as a
continuation whose pieces are joined into the same output.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from pytest_regen.errors import (
    BudgetError,
    CassetteError,
    MissingKeyError,
    ProviderError,
    RefusedError,
    RegenError,
    TransportError,
)
from pytest_regen.prompts import estimate_tokens
from pytest_regen.regeneration.values import (
    Answer,
    Ask,
    HealResult,
    StopReason,
    TurnSettings,
)
from pytest_regen.turns.reply_text import whole_reply
from pytest_regen.turns.steps import drive
from pytest_regen.turns.values import Provider, Reply, TurnRequest, Usage, provider_reference

__all__ = [
    "ENDS_ALL",
    "FIRST_LIMIT",
    "LARGER_LIMIT",
    "ask_batches",
    "ask_once",
    "ends_the_run",
    "stop_reason_of",
]

FIRST_LIMIT = 8_192
"""Tokens a page may take at first; several times what the planner aims at."""

LARGER_LIMIT = 32_000
"""Tokens allowed when the first limit cut the reply."""


ENDS_ALL: Final[frozenset[StopReason | None]] = frozenset({"transport", "budget", "cassette_miss"})
"""No connection, no budget, no recording: what stops one request would stop the next."""


def ends_the_run(result: HealResult) -> bool:
    """Return whether what stopped one piece would stop the next."""
    return result.stop_reason in ENDS_ALL


def stop_reason_of(failure: RegenError) -> StopReason:
    """Return the stop reason of a request that got no reply."""
    match failure:
        case RefusedError():
            return "refused"
        case BudgetError():
            return "budget"
        case CassetteError():
            return "cassette_miss"
        case _:
            return "transport"


def ask_batches(
    batches: Iterable[Sequence[Ask]], settings: TurnSettings
) -> Iterator[tuple[Answer, ...]]:
    """Yield the answers of each batch, in the order asked.

    A failure ends its batch; one that would meet every request ends all. With ``settings.jobs``
    above 1 the first request is sent alone: a cache entry becomes readable only once the first
    response has begun, so cold parallel requests would each pay for writing it.
    """
    if settings.jobs > 1:
        yield from _in_parallel(list(batches), settings)
        return
    for batch in batches:
        answers = tuple(_until_failure(batch, settings))
        yield answers
        if _ends_all(answers):
            return


def _until_failure(batch: Sequence[Ask], settings: TurnSettings) -> Iterator[Answer]:
    for ask in batch:
        answer = ask_once(ask, settings)
        yield answer
        if answer.failure is not None:
            return


def _in_parallel(
    batches: Sequence[Sequence[Ask]], settings: TurnSettings
) -> Iterator[tuple[Answer, ...]]:
    """Yield the answers; after a failure only those whose requests are already under way."""
    if not batches:
        return
    first = ask_once(batches[0][0], settings)
    if _ends_all([first]):
        yield (first,)
        return
    rest = () if first.failure else batches[0][1:]
    with ThreadPoolExecutor(max_workers=settings.jobs) as pool:
        waiting = (rest, *batches[1:])
        futures = [[pool.submit(ask_once, ask, settings) for ask in batch] for batch in waiting]
        try:
            for number, batch in enumerate(futures):
                answers = (*([first] if number == 0 else ()), *_finished(batch))
                if answers:
                    yield answers
                if _ends_all(answers):
                    _cancel(futures)
        finally:
            _cancel(futures)


def _finished(batch: Sequence[Future[Answer]]) -> Iterator[Answer]:
    for future in batch:
        if not future.cancelled():
            answer = future.result()
            yield answer
            if answer.failure is not None:
                _cancel([batch])


def _cancel(batches: Iterable[Iterable[Future[Answer]]]) -> None:
    for batch in batches:
        for future in batch:
            future.cancel()


def _ends_all(answers: Sequence[Answer]) -> bool:
    return any(answer.failure and stop_reason_of(answer.failure) in ENDS_ALL for answer in answers)


def ask_once(ask: Ask, settings: TurnSettings) -> Answer:
    """Send one request and return the output in the reply, or why there is none.

    A refusal, a spent budget, a provider without a reply and a cassette without an answer are
    ``failure`` of the answer, so that what other requests gave is kept.
    """
    account = _Account(ask, settings)
    try:
        whole = drive(whole_reply(ask.request, larger_limit=LARGER_LIMIT), account)
    except (ProviderError, BudgetError, CassetteError) as error:
        return Answer(ask, usage=account.usage, calls=account.calls, failure=error)
    reference = provider_reference(settings.provider)
    return Answer(
        ask,
        ask.extract(whole.pieces),
        whole.reply.stop_reason,
        whole.reply.model or reference or ask.request.model,
        reference,
        account.usage,
        account.calls,
    )


class _Account:
    """The calls made for one request, within the budget and counted."""

    def __init__(self, ask: Ask, settings: TurnSettings) -> None:
        self._ask = ask
        self._settings = settings
        self.usage = Usage()
        self.calls = 0

    def send(self, request: TurnRequest) -> Reply:
        """Make one call within the budget, and count it."""
        if self._settings.before_turn:
            self._settings.before_turn(request)
        budget = self._settings.budget
        reserved = budget.reserve(self._estimate(request))
        try:
            reply = _reply_of(self._settings.provider, request)
        except ProviderError as error:
            self.calls += not isinstance(error, MissingKeyError)
            self.usage += error.usage or Usage()
            budget.settle(reserved, error.usage)
            raise
        except Exception:
            budget.settle(reserved, None)
            raise
        except BaseException:
            # Stopped from outside while the provider was at work: what went out is paid.
            budget.settle(reserved, Usage())
            raise
        budget.settle(reserved, reply.usage)
        self.calls += 1
        self.usage += reply.usage
        if self._settings.after_turn:
            self._settings.after_turn(request, reply)
        if reply.is_refusal:
            raise RefusedError(
                f"the model {reply.model or self._ask.request.model} declined to write "
                f"{self._ask.title}",
                why="the API ended the reply with stop_reason 'refusal'",
                hint="read the prompt in prompts.json, or try another model with --model",
            )
        return reply

    def _estimate(self, request: TurnRequest) -> int:
        asked = sum(estimate_tokens(message.content) for message in request.messages)
        written = min(self._ask.output_tokens, request.max_tokens)
        return estimate_tokens(request.system) + asked + written


def _reply_of(provider: Provider, request: TurnRequest) -> Reply:
    """Return the provider's reply; what goes wrong in somebody else's is told like any failure."""
    name = type(provider).__name__
    try:
        reply: object = provider.send(request)
    except RegenError:
        raise
    except Exception as error:
        raise TransportError(
            f"the provider {name} raised {type(error).__name__}",
            why=str(error),
            hint="correct the provider, then run again; what was finished is kept",
        ) from error
    said = reply.text if isinstance(reply, Reply) else reply
    if not isinstance(reply, Reply) or not isinstance(said, str):
        kind = f"a reply whose text is {said!r:.80}" if said is not reply else type(reply).__name__
        raise TransportError(
            f"the provider {name} returned {kind}",
            why="send(request) returns a Reply, whose text is a string",
            hint="correct the provider, then run again; what was finished is kept",
        )
    return reply
