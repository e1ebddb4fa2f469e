"""What tests say and check with: failures whose content is feedback, checks of stateless agents.

Names are resolved on first use: a test that only fails need not import what the checks need.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_regen.testing.agents import KNOWN_BAD, AgentFactory, Replies, completion
    from pytest_regen.testing.caching import assert_cache_prefix_stable
    from pytest_regen.testing.conformance import KindConformance
    from pytest_regen.testing.failures import Feedback, FeedbackError, fail
    from pytest_regen.testing.stateless import (
        CHECKS,
        ContextLossError,
        assert_answers_in_place,
        assert_carries_full_context,
        assert_legacy_ignored,
        assert_level,
        assert_reasking_is_bounded,
        assert_retry_keeps_context,
        assert_skip_is_graceful,
        assert_stateless,
        assert_structure_holds,
        check_stateless_agent,
        failing_checks,
    )
    from pytest_regen.testing.structure import HOSTILE_TEXTS
    from pytest_regen.testing.transcripts import (
        ClarificationFlow,
        TranscriptError,
        verify_transcript,
    )

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
    "check_stateless_agent",
    "completion",
    "fail",
    "failing_checks",
    "verify_transcript",
]

_HOMES = {
    "ClarificationFlow": "transcripts",
    "AgentFactory": "agents",
    "Feedback": "failures",
    "FeedbackError": "failures",
    "HOSTILE_TEXTS": "structure",
    "KNOWN_BAD": "agents",
    "KindConformance": "conformance",
    "Replies": "agents",
    "TranscriptError": "transcripts",
    "assert_cache_prefix_stable": "caching",
    "completion": "agents",
    "fail": "failures",
    "verify_transcript": "transcripts",
}

if not TYPE_CHECKING:
    # Hidden from the type checker, which would otherwise accept any name.
    def __getattr__(name: str) -> Any:
        """Import the module that holds ``name`` and return the object."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'stateless')}"), name)
