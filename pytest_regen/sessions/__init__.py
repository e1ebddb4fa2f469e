"""Conversations that learn from feedback, and the loop that verifies what they write."""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.sessions.arguments import argument_problems
    from pytest_regen.sessions.feedback import format_feedback_message
    from pytest_regen.sessions.item_session import ItemFault, ItemFeedback, ItemSession
    from pytest_regen.sessions.loop import acompile_verify_repair, compile_verify_repair
    from pytest_regen.sessions.prompts import PROMPT_FORMAT, build_generator_system_prompt
    from pytest_regen.sessions.protocols import (
        Attribution,
        Engine,
        ExecutionResult,
        Judgement,
        LoopParts,
        LoopSettings,
        Policy,
        RepairContext,
        Ruling,
        structural_conflict,
    )
    from pytest_regen.sessions.report import Disagreement, LoopReport, ScenarioHistory
    from pytest_regen.sessions.scenario_session import (
        ScenarioGenerationResult,
        ScenarioGeneratorSession,
        generate_scenarios,
        generate_test_scenarios,
    )
    from pytest_regen.sessions.scenarios import (
        ConditionalRoles,
        DiscardedScenario,
        RoleChoice,
        ScenarioCorrection,
        ScenarioFeedback,
        ScenarioRequest,
        TestScenario,
        ToolAnnotation,
        apply_corrections,
        expectation_holds,
        merge_replacements,
        scenario_id,
    )
    from pytest_regen.sessions.session import GeneratorSession
    from pytest_regen.sessions.state import Artifact, content_hash, read_artifact, write_artifact
    from pytest_regen.sessions.transcript import (
        CacheReport,
        Exchange,
        SessionTranscript,
        TurnReport,
    )
    from pytest_regen.sessions.verification import (
        VerifiedItems,
        agenerate_verify_repair,
        generate_verify_repair,
    )
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = [
    "PROMPT_FORMAT",
    "Artifact",
    "Attribution",
    "CacheReport",
    "ConditionalRoles",
    "Disagreement",
    "DiscardedScenario",
    "Engine",
    "Exchange",
    "ExecutionResult",
    "GeneratorSession",
    "ItemFault",
    "ItemFeedback",
    "ItemSession",
    "Judgement",
    "LoopParts",
    "LoopReport",
    "LoopSettings",
    "Policy",
    "RepairContext",
    "RoleChoice",
    "Ruling",
    "ScenarioCorrection",
    "ScenarioFeedback",
    "ScenarioGenerationResult",
    "ScenarioGeneratorSession",
    "ScenarioHistory",
    "ScenarioRequest",
    "SessionTranscript",
    "TestScenario",
    "ToolAnnotation",
    "TurnReport",
    "VerifiedItems",
    "acompile_verify_repair",
    "agenerate_verify_repair",
    "apply_corrections",
    "argument_problems",
    "build_generator_system_prompt",
    "compile_verify_repair",
    "content_hash",
    "expectation_holds",
    "format_feedback_message",
    "generate_scenarios",
    "generate_test_scenarios",
    "generate_verify_repair",
    "merge_replacements",
    "read_artifact",
    "scenario_id",
    "structural_conflict",
    "write_artifact",
]
