"""An agent that asks at most once and keeps nothing between its turns."""

import warnings
from typing import Final

from pytest_regen.context.prompts import SUBJECT_LINE_PROMPT
from pytest_regen.context.render import render_context, render_description, render_legacy
from pytest_regen.context.replies import read_reply
from pytest_regen.context.requests import ClarificationRequest
from pytest_regen.context.values import TurnResult
from pytest_regen.turns.driving import Steps, adrive, drive
from pytest_regen.turns.repairing import Parsed, object_steps
from pytest_regen.turns.values import Message, Provider, TurnRequest

__all__ = ["ClarifyingAgent", "prompt_of"]

_MAX_TOKENS: Final = 4_096
_REPAIRS: Final = 2


def prompt_of(request: ClarificationRequest) -> str:
    """Return the user prompt of a turn. The first of these that is there decides it.

    The conversation context, which makes everything else of the request void; the legacy answers;
    the description.
    """
    if request.conversation_context is not None:
        return render_context(request.conversation_context)
    if request.legacy_answers is not None:
        return render_legacy(request.message, request.legacy_answers)
    return render_description(request.message)


class ClarifyingAgent:
    """Answers a description with questions or with a subject line; a second turn only with that.

    Nothing is kept from one turn to the next: what a model is sent follows from the request alone.
    A reply that cannot be used is asked for again, up to twice, after the same prompt, with all
    that is wrong with it.

    Args:
        provider: who answers.
        model: the model asked for; the provider's own by default.
        system: the system prompt; it has to ask for replies of the same form.
        max_tokens: upper limit of a reply; the rest of one that is cut there is asked for.
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
            ReaskedError: the model asks on a second turn, also when told twice to write.
            ReplyFormatError: three replies in a row cannot be used.
            RefusedError: the model declined.
            ProviderError: there is no reply.
        """
        _warn_of_legacy(request)
        return drive(self._steps(request), self.provider).value

    async def aturn(self, request: ClarificationRequest) -> TurnResult:
        """Take one turn without blocking the event loop; as ``turn``."""
        _warn_of_legacy(request)
        return (await adrive(self._steps(request), self.provider)).value

    def _steps(self, request: ClarificationRequest) -> Steps[Parsed[TurnResult]]:
        asked = TurnRequest(
            self._system,
            (Message("user", prompt_of(request)),),
            model=self._model,
            max_tokens=self._max_tokens,
        )
        may_ask = not request.is_second_turn
        return object_steps(
            asked, lambda text: read_reply(text, may_ask=may_ask), max_repairs=_REPAIRS
        )


def _warn_of_legacy(request: ClarificationRequest) -> None:
    if request.legacy_answers is not None:
        warnings.warn(
            "clarification_answers without conversation_context: the model does not see what was "
            "asked; send conversation_context",
            DeprecationWarning,
            stacklevel=3,
        )
