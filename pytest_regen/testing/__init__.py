"""What tests use: failures that are feedback, conformance suites, checks of stateless agents."""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.testing.agents import AgentFactory as AgentFactory
    from pytest_regen.testing.agents import ContextLossError as ContextLossError
    from pytest_regen.testing.agents import Replies as Replies
    from pytest_regen.testing.agents import completion as completion
    from pytest_regen.testing.caching import (
        assert_cache_prefix_stable as assert_cache_prefix_stable,
    )
    from pytest_regen.testing.conformance import KindConformance as KindConformance
    from pytest_regen.testing.failures import FeedbackError as FeedbackError
    from pytest_regen.testing.failures import fail as fail
    from pytest_regen.testing.languages import LanguageConformance as LanguageConformance
    from pytest_regen.testing.remote import base_url as base_url
    from pytest_regen.testing.remote import http as http
    from pytest_regen.testing.stateless import CHECKS as CHECKS
    from pytest_regen.testing.stateless import HOSTILE_TEXTS as HOSTILE_TEXTS
    from pytest_regen.testing.stateless import check_stateless_agent as check_stateless_agent
    from pytest_regen.testing.stateless import failing_checks as failing_checks
    from pytest_regen.testing.transcripts import ClarificationFlow as ClarificationFlow
    from pytest_regen.testing.transcripts import TranscriptError as TranscriptError
    from pytest_regen.testing.transcripts import verify_transcript as verify_transcript
else:
    __getattr__, __dir__ = lazy(__name__)
