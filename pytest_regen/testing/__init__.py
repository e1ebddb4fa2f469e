"""What tests use: failures that are feedback, conformance suites, checks of stateless agents."""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.testing.agents import AgentFactory, ContextLossError, Replies, completion
    from pytest_regen.testing.caching import assert_cache_prefix_stable
    from pytest_regen.testing.conformance import KindConformance
    from pytest_regen.testing.failures import FeedbackError, fail
    from pytest_regen.testing.known_bad import KNOWN_BAD
    from pytest_regen.testing.languages import LanguageConformance
    from pytest_regen.testing.remote import base_url, http
    from pytest_regen.testing.stateless import CHECKS, check_stateless_agent, failing_checks
    from pytest_regen.testing.structure import HOSTILE_TEXTS
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
    "KindConformance",
    "LanguageConformance",
    "Replies",
    "TranscriptError",
    "assert_cache_prefix_stable",
    "base_url",
    "check_stateless_agent",
    "completion",
    "fail",
    "failing_checks",
    "http",
    "verify_transcript",
]
