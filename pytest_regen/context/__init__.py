"""Conversations rebuilt from what the caller holds: nothing is kept between turns."""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.context.agent import ClarifyingAgent, prompt_of, read_reply
    from pytest_regen.context.conversation import (
        HEADINGS,
        Conversation,
        Layout,
        Round,
        render_conversation,
    )
    from pytest_regen.context.prompts import (
        LEVEL_SCOPES,
        SCOPE_EXAMPLES,
        SCOPE_RULES,
        SUBJECT_LINE_PROMPT,
        location_scope_rules,
        render_context,
        render_description,
        render_legacy,
        scope_problem,
    )
    from pytest_regen.context.questions import (
        BLANK_CHARACTERS,
        Answer,
        ChoiceAnswer,
        ClarificationQuestion,
        Option,
        PlaceAnswer,
        Question,
        TextAnswer,
        Value,
        as_data,
        is_blank,
    )
    from pytest_regen.context.requests import (
        ClarificationRequest,
        ConversationRequest,
        parse_context,
        parse_request,
    )
    from pytest_regen.context.sealing import Sealer, SealPolicy, require_seal
    from pytest_regen.context.values import (
        CONFIDENT,
        Ask,
        ClarificationAnswers,
        ConversationContext,
        Generate,
        InferredContext,
        TurnResult,
        least_confident_dimensions,
        meets_confidence_threshold,
        overall_confidence,
    )
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = [
    "BLANK_CHARACTERS",
    "CONFIDENT",
    "HEADINGS",
    "LEVEL_SCOPES",
    "SCOPE_EXAMPLES",
    "SCOPE_RULES",
    "SUBJECT_LINE_PROMPT",
    "Answer",
    "Ask",
    "ChoiceAnswer",
    "ClarificationAnswers",
    "ClarificationQuestion",
    "ClarificationRequest",
    "ClarifyingAgent",
    "Conversation",
    "ConversationContext",
    "ConversationRequest",
    "Generate",
    "InferredContext",
    "Layout",
    "Option",
    "PlaceAnswer",
    "Question",
    "Round",
    "SealPolicy",
    "Sealer",
    "TextAnswer",
    "TurnResult",
    "Value",
    "as_data",
    "is_blank",
    "least_confident_dimensions",
    "location_scope_rules",
    "meets_confidence_threshold",
    "overall_confidence",
    "parse_context",
    "parse_request",
    "prompt_of",
    "read_reply",
    "render_context",
    "render_conversation",
    "render_description",
    "render_legacy",
    "require_seal",
    "scope_problem",
]
