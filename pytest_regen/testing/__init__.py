"""What tests use: failures that are feedback, conformance suites, checks of stateless agents."""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.testing.agents import (
        AgentFactory,
        ContextLossError,
        Replies,
        completion,
    )
    from pytest_regen.testing.caching import assert_cache_prefix_stable
    from pytest_regen.testing.conformance import KindConformance
    from pytest_regen.testing.failures import FeedbackError, fail
    from pytest_regen.testing.known_bad import KNOWN_BAD
    from pytest_regen.testing.languages import LanguageConformance
    from pytest_regen.testing.remote import HttpAgent, base_url, http
    from pytest_regen.testing.stateless import (
        CHECKS,
        assert_answers_in_place,
        assert_carries_full_context,
        assert_legacy_ignored,
        assert_level,
        assert_reasking_is_bounded,
        assert_retry_keeps_context,
        assert_skip_is_graceful,
        assert_stateless,
        check_stateless_agent,
        failing_checks,
    )
    from pytest_regen.testing.structure import HOSTILE_TEXTS, assert_structure_holds
    from pytest_regen.testing.transcripts import (
        ClarificationFlow,
        TranscriptError,
        verify_transcript,
    )
    from pytest_regen.validation.issues import Feedback
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = [
    "CHECKS",
    "HOSTILE_TEXTS",
    "KNOWN_BAD",
    "AgentFactory",
    "ClarificationFlow",
    "ContextLossError",
    "Feedback",
    "FeedbackError",
    "HttpAgent",
    "KindConformance",
    "LanguageConformance",
    "Replies",
    "TranscriptError",
    "assert_answers_in_place",
    "assert_cache_prefix_stable",
    "assert_carries_full_context",
    "assert_legacy_ignored",
    "assert_level",
    "assert_reasking_is_bounded",
    "assert_retry_keeps_context",
    "assert_skip_is_graceful",
    "assert_stateless",
    "assert_structure_holds",
    "base_url",
    "check_stateless_agent",
    "completion",
    "fail",
    "failing_checks",
    "http",
    "verify_transcript",
]
