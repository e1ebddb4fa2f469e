"""One request sent, and its reply read.

A truncated reply is never asked for again as it was: first with a larger limit, then as a
continuation whose pieces are joined into the same output.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pytest_regen.errors import (
    BudgetError,
    CassetteError,
    ProviderError,
    RefusedError,
    RegenError,
    TransportError,
)
from pytest_regen.regeneration.values import (
    Answer,
    Ask,
    HealResult,
    Known,
    StopReason,
    TurnSettings,
)
from pytest_regen.turns.exchange import Tally, TurnExchange, Whole, whole_reply
from pytest_regen.turns.providers import TemplateProvider, no_template
from pytest_regen.turns.steps import adrive
from pytest_regen.turns.values import Provider, Reply, TurnRequest, Usage, provider_reference

if TYPE_CHECKING:
    from pytest_regen.turns.replies import ReplyJournal

FIRST_LIMIT = 8_192
"""Tokens a page may take at first; several times what the planner aims at."""

LARGER_LIMIT = 32_000
"""Tokens allowed when the first limit cut the reply."""


ENDS_ALL: Final[frozenset[StopReason | None]] = frozenset({"transport", "budget", "cassette_miss"})
"""No connection, no budget, no recording: what stops one request would stop the next."""


def ends_the_run(result: HealResult) -> bool:
    """Return whether what stopped one piece would stop the next."""
    return result.stop_reason in ENDS_ALL and not _is_alone(result.failure)


def ends_all(turns: "Turns") -> bool:
    """Return whether what a page failed with would meet every other page of the run.

    What one recording lacks another one may have.
    """
    if turns.failure is None:
        return False
    has_own = turns.ask.provider is not None and isinstance(turns.failure, CassetteError)
    return meets_all(turns.failure) and not has_own


def meets_all(failure: RegenError) -> bool:
    """Return whether a failure of one request would meet the next one, too."""
    return stop_reason_of(failure) in ENDS_ALL and not _is_alone(failure)


def _is_alone(failure: RegenError | None) -> bool:
    return isinstance(failure, ProviderError) and failure.is_alone


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


@dataclass(slots=True)
class Turns:
    """What was asked for one page, and what came back, before anything is read from it."""

    ask: Ask
    tally: Tally = field(default_factory=Tally)
    """Calls made now and what they took."""
    earlier: Usage = field(default_factory=Usage)
    """What replies took that an earlier run paid for."""
    requests: list[TurnRequest] = field(default_factory=list)
    """All that got a reply."""
    sent: int = 0
    """How many of them this run sent, and found in no batch of an earlier one."""
    whole: Whole | None = None
    failure: RegenError | None = None
    """Why there is no reply, where that is a failure of this page."""
    error: BaseException | None = None
    """What is to end all work: a fault of the program, or an interruption."""


async def ask_model(ask: Ask, exchange: TurnExchange, replies: "Replies") -> Turns:
    """Take the turns for one page, in the event loop; nothing is raised but a cancellation.

    A refusal, a spent budget, a provider without a reply and a cassette without an answer are
    ``failure`` of what is returned, so that what other requests gave is kept.
    """
    import asyncio

    turns = Turns(ask)
    sender = _Journaled(exchange, replies, turns)
    try:
        while turns.whole is None:
            whole = await adrive(whole_reply(ask.request, larger_limit=LARGER_LIMIT), sender)
            if not turns.sent and _is_stored(ask, whole):
                # The run before was killed between its last write and its note of it.
                replies.settle(turns)
            else:
                turns.whole = whole
    except (RefusedError, ProviderError, BudgetError, CassetteError) as error:
        turns.failure = error
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # Not this task was cancelled, but what its provider waited for: nobody else would say so.
        turns.failure = TransportError(
            f"the turn for {ask.title} was cancelled",
            why="the provider, or what it waited for, was ended",
            hint="the same command again asks for the rest",
        )
    except BaseException as error:  # noqa: BLE001 - raised again where the run is driven
        turns.error = error
    return turns


def _is_stored(ask: Ask, whole: Whole) -> bool:
    return ask.stored is not None and ask.stored == ask.extract(whole.pieces)


class Replies:
    """What is known of replies between runs: those that a run paid for and could not store."""

    def __init__(self, settings: TurnSettings) -> None:
        self._journal = settings.journal
        self._provider = settings.provider

    def find(self, ask: Ask, request: TurnRequest) -> Reply | None:
        """Return the reply that an earlier run paid for, if any."""
        if self._journal is None:
            return None
        return self._journal.find(request, self._answerer(ask))

    def add(self, ask: Ask, request: TurnRequest, reply: Reply) -> None:
        """Keep a reply until it is stored."""
        if self._journal is not None:
            self._journal.add(request, self._answerer(ask), reply)

    def is_left(self, ask: Ask, reply: Reply) -> bool:
        """Return whether a reply is out of a batch that an earlier run submitted."""
        look = getattr(ask.provider or self._provider, "is_left", None)
        return look is not None and bool(look(reply))

    def settle(self, turns: Turns) -> None:
        """Drop what was found for these turns, as if they had not been taken."""
        _note_stored(turns.requests, self._journal, turns.ask.provider or self._provider)
        turns.requests.clear()
        turns.earlier = Usage()

    def _answerer(self, ask: Ask) -> str | None:
        from pytest_regen.turns.replies import name_answerer

        return name_answerer(ask.provider or self._provider)


def note_stored(answers: Iterable[Answer], settings: TurnSettings) -> None:
    """Note that what became of answers is written, whether kept, rejected or refused."""
    requests = [request for answer in answers for request in answer.requests]
    _note_stored(requests, settings.journal, settings.provider)


def _note_stored(
    requests: Sequence[TurnRequest], journal: "ReplyJournal | None", provider: Provider
) -> None:
    if requests and journal is not None:
        journal.stored(requests)
    stored = getattr(provider, "stored", None)
    if requests and stored is not None:
        stored(list(requests))  # Batches keep their results until then.


@dataclass(frozen=True, slots=True)
class _Journaled:
    """An exchange beside a journal: what an earlier run was answered is not asked again."""

    exchange: TurnExchange
    replies: Replies
    turns: Turns

    async def asend(self, request: TurnRequest) -> Reply:
        turns = self.turns
        reply = self.replies.find(turns.ask, request)
        if reply is not None:
            turns.earlier += reply.usage
        else:
            reply = await self.exchange.asend(
                request, expected=turns.ask.output_tokens, log=turns.tally.add
            )
            turns.sent += not self.replies.is_left(turns.ask, reply)
            self.replies.add(turns.ask, request, reply)
        turns.requests.append(request)
        return reply


def answer_at_once(ask: Ask, settings: TurnSettings) -> Answer | None:
    """Return the answer to an ask that needs no model; ``None`` where one has to be asked.

    Raises:
        NoTemplateError: the template was chosen, and only a model can write this.
    """
    if ask.known is not None:
        return _from_known(ask, ask.known)
    if isinstance(ask.provider or settings.provider, TemplateProvider):
        return _from_template(ask)
    return None


def read_answer(turns: Turns, settings: TurnSettings) -> Answer:
    """Return the output in a reply, or why there is none.

    Raises:
        KindError: a method of the kind raised.
        BaseException: what is to end all work.
    """
    ask, tally = turns.ask, turns.tally
    if turns.error is not None:
        raise turns.error
    if turns.whole is None:
        assert turns.failure is not None  # one of the two is there, or an error
        failure = turns.failure
        if isinstance(failure, RefusedError):
            failure = _refusal(ask, failure)
        return Answer(
            ask,
            usage=tally.usage,
            earlier=turns.earlier,
            calls=tally.calls,
            requests=tuple(turns.requests),
            failure=failure,
        )
    reply, reference = turns.whole.reply, provider_reference(ask.provider or settings.provider)
    return Answer(
        ask,
        ask.extract(turns.whole.pieces),
        "".join(turns.whole.pieces),
        reply.stop_reason,
        reply.model or reference or ask.request.model,
        reference,
        tally.usage,
        earlier=turns.earlier,
        calls=tally.calls,
        requests=tuple(turns.requests),
    )


def _from_known(ask: Ask, known: Known) -> Answer:
    """Return the output that is there already: there is no turn."""
    by_template = known.provider == TemplateProvider.reference
    return Answer(
        ask,
        known.output,
        stop_reason=known.stop_reason,
        model=known.model,
        provider=known.provider,
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
