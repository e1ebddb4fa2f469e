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
    ProviderError,
    RefusedError,
    RegenError,
)
from pytest_regen.regeneration.values import (
    Answer,
    Ask,
    HealResult,
    Known,
    StopReason,
    TurnSettings,
)
from pytest_regen.turns.exchange import Tally
from pytest_regen.turns.providers import TemplateProvider, no_template
from pytest_regen.turns.values import provider_reference

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
    # What is known needs no request: it is there before the first one, and warms nothing.
    for batch in batches:
        if all(ask.known for ask in batch):
            yield tuple(ask_once(ask, settings) for ask in batch)
    batches = [batch for batch in batches if not all(ask.known for ask in batch)]
    if not batches:
        return
    leader = next(ask for ask in batches[0] if ask.known is None)
    first = ask_once(leader, settings)
    if _ends_all([first]):
        yield (first,)
        return
    with ThreadPoolExecutor(max_workers=settings.jobs) as pool:

        def begin(ask: Ask) -> Future[Answer]:
            if ask is not leader:
                return pool.submit(ask_once, ask, settings)
            done: Future[Answer] = Future()
            done.set_result(first)
            return done

        opening = [leader] if first.failure else batches[0]
        futures = [[begin(ask) for ask in batch] for batch in (opening, *batches[1:])]
        try:
            for begun in futures:
                answers = tuple(_collect(begun))
                if answers:
                    yield answers
                if _ends_all(answers):
                    _cancel(futures)
        finally:
            _cancel(futures)


def _collect(batch: Sequence[Future[Answer]]) -> Iterator[Answer]:
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

    Raises:
        NoTemplateError: the template was chosen, and only a model can write this.
    """
    if ask.known is not None:
        return _from_known(ask, ask.known)
    if isinstance(settings.provider, TemplateProvider):
        return _from_template(ask)
    tally = Tally()
    try:
        whole = settings.exchange().whole(
            ask.request, larger_limit=LARGER_LIMIT, expected=ask.output_tokens, log=tally.add
        )
    except RefusedError as error:
        return Answer(ask, usage=tally.usage, calls=tally.calls, failure=_refusal(ask, error))
    except (ProviderError, BudgetError, CassetteError) as error:
        return Answer(ask, usage=tally.usage, calls=tally.calls, failure=error)
    reference = provider_reference(settings.provider)
    return Answer(
        ask,
        ask.extract(whole.pieces),
        whole.reply.stop_reason,
        whole.reply.model or reference or ask.request.model,
        reference,
        tally.usage,
        tally.calls,
    )


def _from_known(ask: Ask, known: Known) -> Answer:
    """Return the output that is there already: there is no turn."""
    by_template = known.provider == TemplateProvider.reference
    return Answer(
        ask,
        known.output,
        known.stop_reason,
        known.model,
        known.provider,
        by_template=by_template and known.shared_from is None,
    )


def _from_template(ask: Ask) -> Answer:
    """Return the output that needs no model: there is no turn, nothing to pay and to record."""
    if ask.template is None:
        raise no_template(ask.title)
    name = TemplateProvider.reference
    return Answer(ask, ask.template(), model=name, provider=name, by_template=True)


def _refusal(ask: Ask, error: RefusedError) -> RefusedError:
    look = f"read the prompt in {ask.prompt_file}" if ask.prompt_file else "reword the prompt"
    return RefusedError(
        f"{error.what.removesuffix('answer')}write {ask.title}",
        why=error.why,
        hint=f"{look}, or try another model with --model",
    )
