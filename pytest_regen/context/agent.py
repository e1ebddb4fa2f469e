"""An agent that asks at most once and keeps nothing between its turns."""

import asyncio
import warnings
from collections.abc import Generator
from typing import Final

from pytest_regen.context.prompts import SUBJECT_LINE_PROMPT
from pytest_regen.context.render import render_context, render_description, render_legacy
from pytest_regen.context.replies import Defect, read_reply
from pytest_regen.context.requests import ClarificationRequest
from pytest_regen.context.values import Ask, TurnResult
from pytest_regen.errors import ReaskedError, RefusedError, UnusableReplyError
from pytest_regen.turns.values import Message, Provider, Reply, TurnRequest

__all__ = ["ClarifyingAgent", "prompt_of"]

_MAX_TOKENS: Final = 4_096
_CALLS: Final = 2
"""Of the model, per turn: the first, and one more where its reply is of no use."""

_ASKED_AGAIN: Final = Defect(
    "it asks again; the person has answered or skipped, and you have to write now"
)


def prompt_of(request: ClarificationRequest) -> str:
    """Return the user prompt of a turn. The first of these that is there decides it.

    The conversation context, which makes everything else of the request void; the legacy answers;
    the description.
    """
    if request.conversation_context is not None:
        return render_context(request.conversation_context)
    if request.clarification_answers is not None:
        return render_legacy(request.message, request.clarification_answers)
    return render_description(request.message)


class ClarifyingAgent:
    """Answers a description with questions or with a subject line; a second turn only with that.

    Nothing is kept from one turn to the next: what a model is sent follows from the request alone.

    Args:
        provider: who answers.
        model: the model asked for; the provider's own by default.
        system: the system prompt; it has to ask for replies of the same form.
        max_tokens: upper limit of a reply; a reply cut there is asked for again with twice that.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        model: str = "",
        system: str = SUBJECT_LINE_PROMPT,
        max_tokens: int = _MAX_TOKENS,
    ) -> None:
        self.provider = provider
        self._model = model
        self._system = system
        self._max_tokens = max_tokens

    def turn(self, request: ClarificationRequest) -> TurnResult:
        """Take one turn.

        Returns:
            ``Ask``, on a first turn only, or ``Generate``.

        Raises:
            ReaskedError: the model asks on a second turn, also when told to write.
            UnusableReplyError: two replies in a row are of no use.
            RefusedError: the model declined.
            ProviderError: there is no reply.
        """
        _warn_of_legacy(request)
        talk = self._talk(request)
        asked = next(talk)
        while True:
            reply = self.provider.send(asked)
            try:
                asked = talk.send(reply)
            except StopIteration as end:
                result: TurnResult = end.value
                return result

    async def aturn(self, request: ClarificationRequest) -> TurnResult:
        """Take one turn without blocking; as ``turn``.

        A provider without ``asend`` is called in a thread.
        """
        _warn_of_legacy(request)
        talk = self._talk(request)
        asked = next(talk)
        asend = getattr(self.provider, "asend", None)
        while True:
            if asend is None:
                reply = await asyncio.to_thread(self.provider.send, asked)
            else:
                reply = await asend(asked)
            try:
                asked = talk.send(reply)
            except StopIteration as end:
                result: TurnResult = end.value
                return result

    def _talk(self, request: ClarificationRequest) -> Generator[TurnRequest, Reply, TurnResult]:
        """Yield what to send, be sent the replies, and return what came of them."""
        prompt = prompt_of(request)
        asked = self._request(prompt, self._max_tokens)
        for call in range(1, _CALLS + 1):
            reply = yield asked
            found = _read(reply, request)
            if not isinstance(found, Defect):
                return found
            if call == _CALLS:
                raise _failure(found)
            limit = self._max_tokens * (2 if reply.is_truncated else 1)
            asked = self._request(f"{prompt}\n\n{_again(found, request)}", limit)
        raise AssertionError("the last call returns or raises")

    def _request(self, prompt: str, max_tokens: int) -> TurnRequest:
        return TurnRequest(
            self._system, (Message("user", prompt),), model=self._model, max_tokens=max_tokens
        )


def _warn_of_legacy(request: ClarificationRequest) -> None:
    if request.conversation_context is None and request.clarification_answers is not None:
        warnings.warn(
            "clarification_answers without conversation_context: the model does not see what was "
            "asked; send conversation_context",
            DeprecationWarning,
            stacklevel=3,
        )


def _read(reply: Reply, request: ClarificationRequest) -> TurnResult | Defect:
    if reply.is_refusal:
        raise RefusedError(
            "the model declined to answer", hint="reword the description, or use another model"
        )
    if reply.is_truncated:
        return Defect("it was cut off before its end")
    found = read_reply(reply.text)
    return _ASKED_AGAIN if isinstance(found, Ask) and request.is_second_turn else found


def _again(defect: Defect, request: ClarificationRequest) -> str:
    wanted = (
        "Reply with needs_clarification false and the finished text."
        if request.is_second_turn
        else "Reply with one JSON object of the form described."
    )
    return f"Your reply to this was of no use: {defect}. {wanted}"


def _failure(defect: Defect) -> UnusableReplyError:
    if defect is _ASKED_AGAIN:
        return ReaskedError(
            "the model asks again on the second turn",
            why=f"{_CALLS} replies in a row ask instead of writing",
            hint="use another model, or put more weight on the closing line of the system prompt",
        )
    return UnusableReplyError(
        "the model's reply cannot be used",
        why=f"{_CALLS} replies in a row are of no use; of the last: {defect}",
        hint="try again, use another model, or compare the system prompt with the form of a reply",
    )
