"""Several pages asked at the same time, the first one alone so that it warms the prompt cache."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pytest_regen.errors import BudgetError, CassetteError, ProviderError, RefusedError
from pytest_regen.languages.base import Language
from pytest_regen.prompts import correction_block, with_correction
from pytest_regen.prompts.values import PromptEntry
from pytest_regen.regeneration.values import Feedback, PageAnswer, TurnSettings
from pytest_regen.sources import extract_code
from pytest_regen.turns.exchange import Tally
from pytest_regen.turns.reply_text import join_text
from pytest_regen.turns.values import Message, TurnRequest, provider_reference

__all__ = ["FIRST_LIMIT", "LARGER_LIMIT", "Ask", "ask_page", "ask_pages"]


FIRST_LIMIT = 8_192
"""Tokens a page may take at first; several times what the planner aims at."""

LARGER_LIMIT = 32_000
"""Tokens allowed when the first limit cut the reply."""

_TOKENS_PER_UNIT = 70
"""What one field or enum value costs in output, for the budget's estimate."""


def ask_page(
    entry: PromptEntry,
    settings: TurnSettings,
    *,
    model: str,
    language: Language,
    corrections: Sequence[Feedback] = (),
) -> PageAnswer:
    """Ask for one page and return the code in the reply, or why there is none.

    A refusal, a spent budget, a provider without a reply and a cassette without an answer are
    ``failure`` of the answer, so that what other pages gave is kept.
    """
    user = entry.user
    if corrections:
        user = with_correction(user, correction_block(corrections, user))
    tally = Tally()
    request = TurnRequest(
        entry.system,
        (Message("user", user),),
        model,
        settings.max_tokens or FIRST_LIMIT,
        cache="5m",
    )
    try:
        whole = settings.exchange().whole(
            request,
            larger_limit=LARGER_LIMIT,
            expected=_TOKENS_PER_UNIT * (len(entry.fields) + 3),
            log=tally.add,
        )
    except RefusedError as error:
        return PageAnswer(entry, "", "", model, tally.usage, tally.calls, _refusal(entry, error))
    except (ProviderError, BudgetError, CassetteError) as error:
        return PageAnswer(entry, "", "", model, tally.usage, tally.calls, error)
    code = _code_in(whole.pieces, entry, language)
    reference = provider_reference(settings.provider)
    return PageAnswer(
        entry,
        code,
        whole.reply.stop_reason,
        whole.reply.model or reference or model,
        tally.usage,
        tally.calls,
        provider=reference,
    )


def _refusal(entry: PromptEntry, error: RefusedError) -> RefusedError:
    key = entry.key
    return RefusedError(
        f"{error.what.removesuffix('answer')}write {key.type_name}, page {key.page} of "
        f"{key.total_pages}",
        why=error.why,
        hint="read the prompt in prompts.json, or try another model with --model",
    )


def _code_in(pieces: Sequence[str], entry: PromptEntry, language: Language) -> str:
    """Return the code of a reply that came in pieces: of the first way to read them that is legal.

    Where none is, the least illegal one.
    """
    best: tuple[int, str] | None = None
    for text in join_text(pieces):
        code = extract_code(
            text, language=language, type_name=entry.type_name, fields=entry.fields
        ).code
        if len(pieces) == 1:
            return code
        weight = language.illegality(code)
        if best is None or weight < best[0]:
            best = weight, code
        if not weight:
            break
    assert best is not None  # noqa: S101 - there is at least one text
    return best[1]


@dataclass(frozen=True, slots=True)
class Ask:
    """One page to ask, with what is wrong with its last output."""

    entry: PromptEntry
    model: str
    corrections: tuple[Feedback, ...] = ()


def ask_pages(
    asks: Sequence[Ask], settings: TurnSettings, *, language: Language
) -> Iterator[PageAnswer]:
    """Yield an answer per page, in the order asked; asks no more once one has failed.

    With ``settings.jobs`` above 1 the first page is asked alone: a cache entry becomes readable
    only once the first response has begun, so cold parallel requests would each pay for writing it.
    """

    def ask(one: Ask) -> PageAnswer:
        return ask_page(
            one.entry, settings, model=one.model, language=language, corrections=one.corrections
        )

    warming = 1 if settings.jobs > 1 else len(asks)
    for one in asks[:warming]:
        answer = ask(one)
        yield answer
        if answer.failure is not None:
            return
    yield from _in_parallel(ask, asks[warming:], settings.jobs)


def _in_parallel(
    ask: Callable[[Ask], PageAnswer], asks: Sequence[Ask], jobs: int
) -> Iterator[PageAnswer]:
    """Yield the answers; after a failure only those whose requests are already under way."""
    if not asks:
        return
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        futures = [pool.submit(ask, one) for one in asks]
        for future in futures:
            if future.cancelled():
                continue
            answer = future.result()
            yield answer
            if answer.failure is not None:
                for waiting in futures:
                    waiting.cancel()
