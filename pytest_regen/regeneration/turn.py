"""One page asked of a model: correction, budget, truncation, refusal, extraction.

A truncated reply is never asked again as it was: first with a larger limit, then as a continuation
whose pieces are joined into the same page.
"""

import re
from collections.abc import Sequence

from pytest_regen.errors import (
    BudgetError,
    CassetteError,
    MissingKeyError,
    ProviderError,
    RefusedError,
    RegenError,
    TransportError,
)
from pytest_regen.languages.base import Language
from pytest_regen.prompts import correction_block, estimate_tokens, with_correction
from pytest_regen.prompts.values import PromptEntry
from pytest_regen.regeneration.values import Feedback, PageAnswer, TurnSettings
from pytest_regen.sources import extract_code
from pytest_regen.turns.values import (
    Message,
    Provider,
    Reply,
    TurnRequest,
    Usage,
    provider_reference,
)

__all__ = ["FIRST_LIMIT", "LARGER_LIMIT", "ask_page"]

FIRST_LIMIT = 8_192
"""Tokens a page may take at first; several times what the planner aims at."""

LARGER_LIMIT = 32_000
"""Tokens allowed when the first limit cut the reply."""

_CONTINUATIONS = 3
"""Turns spent on the rest of a reply that even the larger limit cut."""

_CONTINUE = (
    "Your reply was cut off by a length limit. Continue exactly where it stopped, in the middle of "
    "a word if need be. Repeat nothing and add no introduction."
)

_TOKENS_PER_UNIT = 70
"""What one field or enum value costs in output, for the budget's estimate."""

_OPENING_FENCE = re.compile(r"\A[ \t]*(?:```+|~~~+)[^\n]*\n")


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
        user = with_correction(user, correction_block(corrections))
    asking = _Asking(entry, settings, model)
    try:
        text, reply = asking.whole_reply(user)
    except (ProviderError, BudgetError, CassetteError) as error:
        return PageAnswer(entry, "", "", model, asking.usage, asking.calls, error)
    code = extract_code(text, language=language).code
    reference = provider_reference(settings.provider)
    name = reply.model or reference or model
    return PageAnswer(
        entry, code, reply.stop_reason, name, asking.usage, asking.calls, provider=reference
    )


class _Asking:
    """The calls made for one page, counted."""

    def __init__(self, entry: PromptEntry, settings: TurnSettings, model: str) -> None:
        self._entry = entry
        self._settings = settings
        self._model = model
        self.usage = Usage()
        self.calls = 0

    def whole_reply(self, user: str) -> tuple[str, Reply]:
        """Return the reply's text, its pieces joined, and the reply that ended it."""
        asked = (Message("user", user),)
        first = self._settings.max_tokens or FIRST_LIMIT
        reply = self._send(asked, first)
        if reply.stop_reason == "max_tokens" and first < LARGER_LIMIT:
            reply = self._send(asked, LARGER_LIMIT)
        text = reply.text
        for _ in range(_CONTINUATIONS):
            # A full context window has no room for a continuation either.
            if reply.stop_reason != "max_tokens" or not text:
                break
            said = (*asked, Message("assistant", text.rstrip()), Message("user", _CONTINUE))
            reply = self._send(said, LARGER_LIMIT)
            text = _join(text, reply.text)
        return text, reply

    def _send(self, messages: tuple[Message, ...], max_tokens: int) -> Reply:
        request = TurnRequest(self._entry.system, messages, self._model, max_tokens, cache="5m")
        if self._settings.before_turn:
            self._settings.before_turn(request)
        budget = self._settings.budget
        reserved = budget.reserve(self._estimate(request))
        try:
            reply = _reply_of(self._settings.provider, request)
        except ProviderError as error:
            self.calls += not isinstance(error, MissingKeyError)
            budget.settle(reserved, None)
            raise
        except BaseException:
            budget.settle(reserved, None)
            raise
        budget.settle(reserved, reply.usage)
        self.calls += 1
        self.usage += reply.usage
        if self._settings.after_turn:
            self._settings.after_turn(request, reply)
        if reply.is_refusal:
            key = self._entry.key
            raise RefusedError(
                f"the model {reply.model or self._model} declined to write "
                f"{key.type_name}, page {key.page} of {key.total_pages}",
                why="the API ended the reply with stop_reason 'refusal'",
                hint="read the prompt in prompts.json, or try another model with --model",
            )
        return reply

    def _estimate(self, request: TurnRequest) -> int:
        asked = sum(estimate_tokens(message.content) for message in request.messages)
        written = _TOKENS_PER_UNIT * (len(self._entry.fields) + 3)
        return estimate_tokens(request.system) + asked + min(written, request.max_tokens)


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
    if not isinstance(reply, Reply):
        raise TransportError(
            f"the provider {name} returned {type(reply).__name__}",
            why="send(request) returns a Reply",
            hint="correct the provider, then run again; what was finished is kept",
        )
    return reply


def _join(text: str, more: str) -> str:
    """Return two pieces of one reply as the one text they were meant to be.

    The assistant turn sent back has no trailing white space (the API refuses it), so white space at
    the seam is said again in the next piece; a fence opened a second time is not part of the code.
    """
    rest = _OPENING_FENCE.sub("", more)
    return (text.rstrip() if rest[:1].isspace() else text) + rest
