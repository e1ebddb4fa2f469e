"""One request sent, and its reply read.

A truncated reply is never asked for again as it was: first with a larger limit, then as a
continuation whose pieces are joined into the same output.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from pytest_regen import errors
from pytest_regen.modes import HAND
from pytest_regen.prompts import with_correction
from pytest_regen.regeneration.values import Answer, Ask, StopReason, TurnSettings
from pytest_regen.turns.exchange import Tally, TurnExchange, Whole, whole_reply
from pytest_regen.turns.steps import adrive
from pytest_regen.turns.values import (
    DEFAULT_MODEL,
    Message,
    Provider,
    Reply,
    TurnRequest,
    provider_reference,
)

if TYPE_CHECKING:
    from pytest_regen.turns.replies import ReplyJournal

FIRST_LIMIT: Final = 8_192
"""Tokens a page may take at first; several times what the planner aims at."""

_NO_MODELS: Final = frozenset({"", HAND, "dry-run"})

LARGER_LIMIT: Final = 32_000
"""Tokens allowed when the first limit cut the reply."""

_STOP_REASONS: Final[dict[type[errors.RegenError], StopReason]] = {
    errors.RefusedError: "refused",
    errors.BudgetError: "budget",
    errors.CassetteError: "cassette_miss",
}


def model_to_ask(settings: TurnSettings, stored: Any, beside: Iterable[Any]) -> str:
    """Return the model of the settings, or that wrote a text, or another one last, or ours.

    A person, or a provider of the user's, is no model that the API could be asked for.

    Args:
        settings: may name the model.
        stored: what is known of who wrote the text: its ``model``, the ``provider`` that was asked,
            and ``generated_at``; ``None`` where there is none.
        beside: the same of the other texts.
    """
    if settings.model:
        return settings.model
    for outputs in ([stored] if stored else [], beside):
        models = [o for o in outputs if o.provider is None and o.model not in _NO_MODELS]
        # The last one, because projects move from one model to the next.
        if models:
            return str(max(models, key=lambda output: output.generated_at).model)
    return DEFAULT_MODEL


def request_for(
    system: str, prompt: str, correction: str, model: str, settings: TurnSettings
) -> TurnRequest:
    """Return the request for a text, what was wrong with the last one before its prompt."""
    message = Message("user", with_correction(prompt, correction))
    limit = settings.max_tokens or FIRST_LIMIT
    return TurnRequest(system, (message,), model, limit, cache="5m")


def stop_reason_of(failure: errors.RegenError) -> StopReason:
    """Return the stop reason of a request that got no reply."""
    # By kind, because a recording that lacks a turn and one that cannot be read are two classes.
    reasons = (reason for kind, reason in _STOP_REASONS.items() if isinstance(failure, kind))
    return next(reasons, "transport")


def meets_all(failure: errors.RegenError | None) -> bool:
    """Return whether a failure of one request would meet the next one, too.

    No connection, no budget, no recording: what stops one request would stop the next.
    """
    is_alone = isinstance(failure, errors.ProviderError) and failure.is_alone
    return failure is not None and not is_alone and stop_reason_of(failure) != "refused"


def ends_all(answer: Answer) -> bool:
    """Return whether what a page failed with would meet every other page of the run."""
    # What one recording lacks another one may have.
    has_own = answer.ask.provider is not None and isinstance(answer.failure, errors.CassetteError)
    return meets_all(answer.failure) and not has_own


async def ask_model(ask: Ask, settings: TurnSettings) -> Answer:
    """Take the turns for one page, in the event loop; nothing is raised but a cancellation.

    A refusal, a spent budget, a provider without a reply and a cassette without an answer are
    ``failure`` of what is returned, so that what other requests gave is kept. The output is not
    read from the reply yet; see ``read_answer``.
    """
    provider = ask.provider or settings.provider
    exchange = TurnExchange(
        provider,
        budgets=(settings.budget,),
        before=settings.before_turn,
        after=settings.after_turn,
        prices=settings.prices,
    )
    # One for each page: nobody knows when the last is asked of a recording.
    turns = _Turns(ask, exchange, settings.journal, provider)
    whole: Whole | None = None
    failure: errors.RegenError | None = None
    fatal: BaseException | None = None
    try:
        while whole is None:
            whole = await adrive(whole_reply(ask.request, larger_limit=LARGER_LIMIT), turns)
            # The run before was killed between its last write and its note of it: what was found
            # is dropped, as if it had not been taken.
            is_left = not turns.sent and ask.stored is not None
            if is_left and ask.stored == ask.extract(whole.pieces):
                _settle(turns.requests, settings, provider)
                turns.requests.clear()
                whole = None
    except errors.RefusedError as error:
        look = f"read the prompt in {ask.prompt_file}" if ask.prompt_file else "reword the prompt"
        what = f"{error.what.removesuffix('answer')}write {ask.title}"
        hint = f"{look}, or try another model with --model"
        failure = errors.RefusedError(what, why=error.why, hint=hint)
    except (errors.ProviderError, errors.BudgetError, errors.CassetteError) as error:
        failure = error
    except BaseException as error:  # noqa: BLE001 - raised again where the run is driven
        fatal = error
    tally = turns.tally
    answer = Answer(ask, usage=tally.usage, calls=tally.calls, requests=tuple(turns.requests))
    if whole is None:
        return replace(answer, failure=failure, fatal=fatal)
    reference, reply = provider_reference(provider), whole.reply
    model = reply.model or reference or ask.request.model
    answered = replace(answer, pieces=whole.pieces, stop_reason=reply.stop_reason)
    return replace(answered, model=model, provider=reference)


def read_answer(answer: Answer) -> Answer:
    """Return an answer with the output that is in its reply.

    Raises:
        KindError: a method of the kind raised.
        BaseException: what is to end all work.
    """
    if answer.fatal is not None:
        raise answer.fatal
    if not answer.pieces:
        return answer
    return replace(answer, output=answer.ask.extract(answer.pieces))


def note_stored(answers: Iterable[Answer], settings: TurnSettings) -> None:
    """Note that what became of answers is written, whether kept, rejected or refused."""
    requests = [request for answer in answers for request in answer.requests]
    _settle(requests, settings, settings.provider)


def _settle(requests: Sequence[TurnRequest], settings: TurnSettings, provider: Provider) -> None:
    # Only now, because a run that is killed before it is given the same replies again.
    if requests and settings.journal is not None:
        settings.journal.stored(requests)
    stored = getattr(provider, "stored", None)
    if requests and stored is not None:
        stored(list(requests))  # Batches keep their results until then.


@dataclass(slots=True)
class _Turns:
    """An exchange beside a journal: what an earlier run was answered is not asked again."""

    ask: Ask
    exchange: TurnExchange
    journal: "ReplyJournal | None"
    provider: Provider
    tally: Tally = field(default_factory=Tally)
    """Calls made now and what they took."""
    requests: list[TurnRequest] = field(default_factory=list)
    """All that got a reply."""
    sent: int = 0
    """How many of them this run sent, and found in no batch of an earlier one."""

    async def asend(self, request: TurnRequest) -> Reply:
        journal, who = self.journal, ""
        if journal is not None:
            from pytest_regen.turns.replies import name_answerer

            who = name_answerer(self.provider)
        reply = journal.find(request, who) if journal is not None else None
        if reply is None:
            expected = self.ask.output_tokens
            reply = await self.exchange.asend(request, expected=expected, log=self.tally.add)
            is_left = getattr(self.provider, "is_left", None)
            self.sent += not (is_left and is_left(reply))
            # Before anything is read from it, because a kill must not lose what is paid for.
            if journal is not None:
                journal.add(request, who, reply)
        self.requests.append(request)
        return reply


def answer_at_once(ask: Ask, settings: TurnSettings) -> Answer | None:
    """Return the answer to an ask that needs no model; ``None`` where one has to be asked.

    Raises:
        NoTemplateError: the template was chosen, and only a model can write this.
    """
    from pytest_regen.turns.providers import TemplateProvider, no_template

    template, ready = TemplateProvider.reference, ask.known
    if ready is not None:
        answer = Answer(ask, ready.output, (), ready.stop_reason, ready.model, ready.provider)
        by_template = ready.provider == template and ready.shared_from is None
        return replace(answer, by_template=by_template)
    if not isinstance(ask.provider or settings.provider, TemplateProvider):
        return None
    if ask.template is None:
        raise no_template(ask.title)
    return Answer(ask, ask.template(), model=template, provider=template, by_template=True)
