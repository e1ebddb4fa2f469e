"""Agents that each fail exactly one check, which shows that the checks can fail."""

import json
import re
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any, Final

from pytest_regen.context.agent import ClarifyingAgent
from pytest_regen.context.requests import ClarificationRequest
from pytest_regen.errors import ReaskedError
from pytest_regen.testing.agents import AgentFactory
from pytest_regen.turns.values import Provider, Reply, TurnRequest


class _Agent:
    """The built-in agent; a fault is put in before its turn, or between it and the model."""

    request: ClarificationRequest

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    def turn(self, request: ClarificationRequest) -> Any:
        """Take one turn."""
        # By a copy, because two turns at once may share nothing but the fault.
        agent = copy(self)
        agent.request = request
        return ClarifyingAgent(agent).turn(request)

    def send(self, sent: TurnRequest) -> Reply:
        """Send what the built-in agent sends, with another prompt."""
        first, *again = sent.messages
        prompt = replace(first, content=self.prompt(first.content, is_again=bool(again)))
        return self._provider.send(replace(sent, messages=(prompt, *again)))

    def prompt(self, prompt: str, *, is_again: bool) -> str:
        """Return what is sent instead of the prompt of the turn."""
        return prompt


class AnswersOnly(_Agent):
    """Sends the answers without what was asked: the fault that the requirement is about."""

    def prompt(self, prompt: str, **_: bool) -> str:
        """Return the answers."""
        if self.request.conversation_context is None:
            return prompt
        answers = self.request.conversation_context.model_dump(mode="json")["answers"]
        return f"The user answered: {json.dumps(answers)}. Write the subject line."


class SwappedAnswers(_Agent):
    """Gives one question's answer to the other."""

    def turn(self, request: ClarificationRequest) -> Any:
        """Take the turn with the answers of two questions of one type exchanged."""
        context = request.conversation_context
        if context is not None and len({answer.kind for answer in context.answers.values()}) == 1:
            answers = context.model_dump(mode="json")["answers"]
            swapped = dict(zip(answers, reversed(answers.values()), strict=True))
            request = request.with_context(context.with_answers(swapped))
        return super().turn(request)


class ForgetfulRetry(_Agent):
    """Drops the context exactly where a reply has to be recovered."""

    def prompt(self, prompt: str, *, is_again: bool) -> str:
        """Return the description once the model is asked again."""
        again = f"Write a subject line now, for {json.dumps(self.request.message)}."
        return again if is_again else prompt


class GlobalMemory(_Agent):
    """Remembers, for the whole process, what others wrote."""

    # Of the class, because it is by a fresh instance that other memories are found.
    seen: Final[dict[str, None]] = {}

    def prompt(self, prompt: str, **_: bool) -> str:
        """Return the prompt and what other conversations were about."""
        earlier = [text for text in self.seen if text != self.request.message]
        self.seen[self.request.message] = None
        return f"{prompt}\n\nOthers wrote: {json.dumps(earlier)}"


class UnescapedRenderer(_Agent):
    """Pastes texts into the prompt as they are."""

    def prompt(self, prompt: str, **_: bool) -> str:
        """Return the prompt with every string in it as it came."""
        return re.sub(r'"(?:\\.|[^"\\])*"', lambda text: json.loads(text[0]), prompt)


class LegacyFirst(_Agent):
    """Looks at the legacy fields before the context."""

    def turn(self, request: ClarificationRequest) -> Any:
        """Take the turn without its context, where there are legacy answers."""
        if request.clarification_answers is not None:
            request = request.model_copy(update={"conversation_context": None})
        return super().turn(request)


class AsksForEver(_Agent):
    """Hands on whatever the model asks, on every turn."""

    def turn(self, request: ClarificationRequest) -> Any:
        """Take the turn; return the question that may not be asked."""
        try:
            return super().turn(request)
        except ReaskedError as error:
            return json.loads(error.text)


class HelplessWithoutAnswers(_Agent):
    """Cannot go on when a person skips."""

    def turn(self, request: ClarificationRequest) -> Any:
        """Take the turn, if there are answers."""
        if request.conversation_context and not request.conversation_context.answers:
            raise KeyError("answers")
        return super().turn(request)


KNOWN_BAD: Final[Mapping[str, AgentFactory]] = {
    "carries_full_context": AnswersOnly,
    "answers_in_place": SwappedAnswers,
    "stateless": GlobalMemory,
    "legacy_ignored": LegacyFirst,
    "retry_keeps_context": ForgetfulRetry,
    "reasking_bounded": AsksForEver,
    "skip_works": HelplessWithoutAnswers,
    "structure_holds": UnescapedRenderer,
}
"""By the name of the one check that the agent fails; it passes all the others."""
