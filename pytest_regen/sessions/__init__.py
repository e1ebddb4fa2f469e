"""Conversations that learn from feedback, and the loop that verifies what they write."""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.sessions.feedback import format_feedback_message as format_feedback_message
    from pytest_regen.sessions.item_session import ItemFault as ItemFault
    from pytest_regen.sessions.item_session import ItemFeedback as ItemFeedback
    from pytest_regen.sessions.item_session import ItemSession as ItemSession
    from pytest_regen.sessions.loop import acompile_verify_repair as acompile_verify_repair
    from pytest_regen.sessions.loop import compile_verify_repair as compile_verify_repair
    from pytest_regen.sessions.prompts import PROMPT_FORMAT as PROMPT_FORMAT
    from pytest_regen.sessions.prompts import (
        build_generator_system_prompt as build_generator_system_prompt,
    )
    from pytest_regen.sessions.protocols import Attribution as Attribution
    from pytest_regen.sessions.protocols import Engine as Engine
    from pytest_regen.sessions.protocols import ExecutionResult as ExecutionResult
    from pytest_regen.sessions.protocols import Judgement as Judgement
    from pytest_regen.sessions.protocols import LoopParts as LoopParts
    from pytest_regen.sessions.protocols import LoopSettings as LoopSettings
    from pytest_regen.sessions.protocols import Policy as Policy
    from pytest_regen.sessions.protocols import RepairContext as RepairContext
    from pytest_regen.sessions.protocols import Ruling as Ruling
    from pytest_regen.sessions.protocols import structural_conflict as structural_conflict
    from pytest_regen.sessions.report import Disagreement as Disagreement
    from pytest_regen.sessions.report import LoopReport as LoopReport
    from pytest_regen.sessions.report import ScenarioHistory as ScenarioHistory
    from pytest_regen.sessions.scenario_session import (
        ScenarioGenerationResult as ScenarioGenerationResult,
    )
    from pytest_regen.sessions.scenario_session import (
        ScenarioGeneratorSession as ScenarioGeneratorSession,
    )
    from pytest_regen.sessions.scenario_session import generate_scenarios as generate_scenarios
    from pytest_regen.sessions.scenario_session import (
        generate_test_scenarios as generate_test_scenarios,
    )
    from pytest_regen.sessions.scenarios import ConditionalRoles as ConditionalRoles
    from pytest_regen.sessions.scenarios import DiscardedScenario as DiscardedScenario
    from pytest_regen.sessions.scenarios import RoleChoice as RoleChoice
    from pytest_regen.sessions.scenarios import ScenarioCorrection as ScenarioCorrection
    from pytest_regen.sessions.scenarios import ScenarioFeedback as ScenarioFeedback
    from pytest_regen.sessions.scenarios import ScenarioRequest as ScenarioRequest
    from pytest_regen.sessions.scenarios import TestScenario as TestScenario
    from pytest_regen.sessions.scenarios import ToolAnnotation as ToolAnnotation
    from pytest_regen.sessions.scenarios import apply_corrections as apply_corrections
    from pytest_regen.sessions.scenarios import expectation_holds as expectation_holds
    from pytest_regen.sessions.scenarios import merge_replacements as merge_replacements
    from pytest_regen.sessions.scenarios import scenario_id as scenario_id
    from pytest_regen.sessions.session import GeneratorSession as GeneratorSession
    from pytest_regen.sessions.state import Artifact as Artifact
    from pytest_regen.sessions.state import content_hash as content_hash
    from pytest_regen.sessions.state import read_artifact as read_artifact
    from pytest_regen.sessions.state import write_artifact as write_artifact
    from pytest_regen.sessions.transcript import CacheReport as CacheReport
    from pytest_regen.sessions.transcript import Exchange as Exchange
    from pytest_regen.sessions.transcript import SessionTranscript as SessionTranscript
    from pytest_regen.sessions.transcript import TurnReport as TurnReport
    from pytest_regen.sessions.verification import VerifiedItems as VerifiedItems
    from pytest_regen.sessions.verification import (
        agenerate_verify_repair as agenerate_verify_repair,
    )
    from pytest_regen.sessions.verification import generate_verify_repair as generate_verify_repair
else:
    __getattr__, __dir__ = lazy(__name__)
