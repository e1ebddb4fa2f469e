"""Conversations rebuilt from what the caller holds: nothing is kept between turns."""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.context.agent import ClarifyingAgent as ClarifyingAgent
    from pytest_regen.context.agent import prompt_of as prompt_of
    from pytest_regen.context.agent import read_reply as read_reply
    from pytest_regen.context.conversation import HEADINGS as HEADINGS
    from pytest_regen.context.conversation import Conversation as Conversation
    from pytest_regen.context.conversation import Layout as Layout
    from pytest_regen.context.conversation import Round as Round
    from pytest_regen.context.conversation import render_conversation as render_conversation
    from pytest_regen.context.prompts import LEVEL_SCOPES as LEVEL_SCOPES
    from pytest_regen.context.prompts import SCOPE_EXAMPLES as SCOPE_EXAMPLES
    from pytest_regen.context.prompts import SCOPE_RULES as SCOPE_RULES
    from pytest_regen.context.prompts import SUBJECT_LINE_PROMPT as SUBJECT_LINE_PROMPT
    from pytest_regen.context.prompts import location_scope_rules as location_scope_rules
    from pytest_regen.context.prompts import render_context as render_context
    from pytest_regen.context.prompts import render_description as render_description
    from pytest_regen.context.prompts import render_legacy as render_legacy
    from pytest_regen.context.prompts import scope_problem as scope_problem
    from pytest_regen.context.questions import BLANK_CHARACTERS as BLANK_CHARACTERS
    from pytest_regen.context.questions import Answer as Answer
    from pytest_regen.context.questions import ChoiceAnswer as ChoiceAnswer
    from pytest_regen.context.questions import ClarificationQuestion as ClarificationQuestion
    from pytest_regen.context.questions import Option as Option
    from pytest_regen.context.questions import PlaceAnswer as PlaceAnswer
    from pytest_regen.context.questions import Question as Question
    from pytest_regen.context.questions import TextAnswer as TextAnswer
    from pytest_regen.context.questions import Value as Value
    from pytest_regen.context.questions import as_data as as_data
    from pytest_regen.context.questions import is_blank as is_blank
    from pytest_regen.context.requests import ClarificationRequest as ClarificationRequest
    from pytest_regen.context.requests import ConversationRequest as ConversationRequest
    from pytest_regen.context.requests import parse_context as parse_context
    from pytest_regen.context.requests import parse_request as parse_request
    from pytest_regen.context.sealing import Sealer as Sealer
    from pytest_regen.context.sealing import SealPolicy as SealPolicy
    from pytest_regen.context.sealing import require_seal as require_seal
    from pytest_regen.context.values import CONFIDENT as CONFIDENT
    from pytest_regen.context.values import Ask as Ask
    from pytest_regen.context.values import ClarificationAnswers as ClarificationAnswers
    from pytest_regen.context.values import ConversationContext as ConversationContext
    from pytest_regen.context.values import Generate as Generate
    from pytest_regen.context.values import InferredContext as InferredContext
    from pytest_regen.context.values import TurnResult as TurnResult
    from pytest_regen.context.values import least_confident_dimensions as least_confident_dimensions
    from pytest_regen.context.values import meets_confidence_threshold as meets_confidence_threshold
    from pytest_regen.context.values import overall_confidence as overall_confidence
else:
    __getattr__, __dir__ = lazy(__name__)
