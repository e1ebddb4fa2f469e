"""Agents that each fail exactly one check, which shows that the checks can fail."""

import json
from collections.abc import Mapping
from typing import Any, Final

from pytest_regen.context.agent import prompt_of
from pytest_regen.context.requests import ClarificationRequest
from pytest_regen.testing.agents import AgentFactory
from pytest_regen.turns.values import Message, Provider, TurnRequest


class _Agent:
    """An agent without a fault, and the places where one may be put in."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    def turn(self, request: ClarificationRequest) -> dict[str, Any]:
        """Take one turn, asking the model at most twice."""
        prompt = self.prompt(request)
        result = self._ask(prompt)
        if not self.is_fine(result, request):
            result = self._ask(self.prompt_again(prompt, request))
        if not self.is_fine(result, request):
            raise ValueError("the model gives no text")
        return result

    def prompt(self, request: ClarificationRequest) -> str:
        """Return the prompt of the second turn."""
        return prompt_of(request)

    def prompt_again(self, prompt: str, request: ClarificationRequest) -> str:
        """Return the prompt of a retry."""
        del request
        return f"{prompt}\n\nYou have to write now."

    def is_fine(self, result: Mapping[str, Any], request: ClarificationRequest) -> bool:
        """Return whether a reply may be returned."""
        asks = bool(result.get("clarification_questions")) and not request.is_second_turn
        return asks or bool(result.get("subject_line"))

    def _ask(self, prompt: str) -> dict[str, Any]:
        message = Message("user", prompt)
        reply = self._provider.send(TurnRequest("You write subject lines.", (message,), "", 1_000))
        try:
            result = json.loads(reply.text)
        except ValueError:
            return {}
        return result if isinstance(result, dict) else {}


class AnswersOnly(_Agent):
    """Sends the answers without what was asked: the fault that the requirement is about."""

    def prompt(self, request: ClarificationRequest) -> str:
        """Return the answers."""
        if request.conversation_context is None:
            return prompt_of(request)
        answers = request.conversation_context.model_dump(mode="json")["answers"]
        return f"The user answered: {json.dumps(answers)}. Write the subject line."


class SwappedAnswers(_Agent):
    """Gives one question's answer to the other."""

    def prompt(self, request: ClarificationRequest) -> str:
        """Return the prompt with the answers of two questions of one type exchanged."""
        context = request.conversation_context
        if context is not None and len({answer.kind for answer in context.answers.values()}) == 1:
            answers = context.model_dump(mode="json")["answers"]
            swapped = dict(zip(answers, reversed(answers.values()), strict=True))
            request = request.with_context(context.with_answers(swapped))
        return prompt_of(request)


class ForgetfulRetry(_Agent):
    """Drops the context exactly where a reply has to be recovered."""

    def prompt_again(self, prompt: str, request: ClarificationRequest) -> str:
        """Return the description."""
        del prompt
        return f"Write a subject line now, for {json.dumps(request.message)}."


class GlobalMemory(_Agent):
    """Remembers, for the whole process, what others wrote."""

    seen: Final[dict[str, None]] = {}

    def prompt(self, request: ClarificationRequest) -> str:
        """Return the prompt and what other conversations were about."""
        earlier = [text for text in self.seen if text != request.message]
        self.seen[request.message] = None
        return f"{prompt_of(request)}\n\nOthers wrote: {json.dumps(earlier)}"


class UnescapedRenderer(_Agent):
    """Pastes texts into the prompt as they are."""

    def prompt(self, request: ClarificationRequest) -> str:
        """Return the context as JSON in which ends of lines are ends of lines."""
        context = request.conversation_context
        if context is None:
            return prompt_of(request)
        text = json.dumps(context.model_dump(mode="json"), indent=1, ensure_ascii=False)
        return text.replace("\\n", "\n").replace('\\"', '"')


class LegacyFirst(_Agent):
    """Looks at the legacy fields before the context."""

    def prompt(self, request: ClarificationRequest) -> str:
        """Return the legacy prompt, where there are legacy answers."""
        if request.clarification_answers is not None:
            return prompt_of(request.model_copy(update={"conversation_context": None}))
        return prompt_of(request)


class AsksForEver(_Agent):
    """Hands on whatever the model asks, on every turn."""

    def is_fine(self, result: Mapping[str, Any], request: ClarificationRequest) -> bool:
        """Return whether there is anything in it."""
        del request
        return bool(result.get("clarification_questions") or result.get("subject_line"))


class HelplessWithoutAnswers(_Agent):
    """Cannot go on when a person skips."""

    def prompt(self, request: ClarificationRequest) -> str:
        """Return the prompt, if there are answers."""
        context = request.conversation_context
        if context is not None and not context.answers:
            raise KeyError("answers")
        return prompt_of(request)


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
