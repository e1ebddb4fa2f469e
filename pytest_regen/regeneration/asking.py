"""Several pages asked at the same time, the first one alone so that it warms the prompt cache."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pytest_regen.languages.base import Language
from pytest_regen.prompts.values import PromptEntry
from pytest_regen.regeneration.turn import ask_page
from pytest_regen.regeneration.values import Feedback, PageAnswer, TurnSettings

__all__ = ["Ask", "ask_pages"]


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
