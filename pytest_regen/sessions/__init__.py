"""Conversations that learn from feedback, and the loop that verifies what they write."""

from pytest_regen.sessions.arguments import (
    argument_problems,
    undecided_roles,
)
from pytest_regen.sessions.artifacts import (
    Artifact,
    content_hash,
    read_artifact,
    write_artifact,
)
from pytest_regen.sessions.branches import (
    plan_groups,
)
from pytest_regen.sessions.feedback import (
    format_feedback_message,
)
from pytest_regen.sessions.loop import (
    acompile_verify_repair,
    compile_verify_repair,
)
from pytest_regen.sessions.loop_parts import (
    LoopParts,
    LoopSettings,
)
from pytest_regen.sessions.merging import (
    apply_corrections,
    merge_replacements,
)
from pytest_regen.sessions.prompts import (
    PROMPT_FORMAT,
    build_generator_system_prompt,
)
from pytest_regen.sessions.protocols import (
    AsyncJudge,
    AsyncPolicyCompiler,
    AsyncScenarioSource,
    Attribution,
    Engine,
    ExecutionResult,
    Judge,
    Judgement,
    Policy,
    PolicyCompiler,
    RepairContext,
    Ruling,
    ScenarioSource,
    StructuralFilter,
)
from pytest_regen.sessions.report import (
    Disagreement,
    LoopReport,
    ScenarioFate,
)
from pytest_regen.sessions.scenario_session import (
    ScenarioGeneratorSession,
    scenario_input_hash,
)
from pytest_regen.sessions.session import (
    GeneratorSession,
)
from pytest_regen.sessions.single import (
    ScenarioGenerationResult,
    generate_scenarios,
    generate_test_scenarios,
)
from pytest_regen.sessions.structural import (
    structural_conflict,
)
from pytest_regen.sessions.transcript import (
    CacheReport,
    Exchange,
    Transcript,
    TurnReport,
)
from pytest_regen.sessions.values import (
    ConditionalRoles,
    DiscardedScenario,
    RoleChoice,
    ScenarioCorrection,
    ScenarioFeedback,
    ScenarioRequest,
    TestScenario,
    ToolAnnotation,
    are_similar,
    expectation_holds,
    scenario_id,
)

__all__ = [
    "PROMPT_FORMAT",
    "Artifact",
    "AsyncJudge",
    "AsyncPolicyCompiler",
    "AsyncScenarioSource",
    "Attribution",
    "CacheReport",
    "ConditionalRoles",
    "Disagreement",
    "DiscardedScenario",
    "Engine",
    "Exchange",
    "ExecutionResult",
    "GeneratorSession",
    "Judge",
    "Judgement",
    "LoopParts",
    "LoopReport",
    "LoopSettings",
    "Policy",
    "PolicyCompiler",
    "RepairContext",
    "RoleChoice",
    "Ruling",
    "ScenarioCorrection",
    "ScenarioFate",
    "ScenarioFeedback",
    "ScenarioGenerationResult",
    "ScenarioGeneratorSession",
    "ScenarioRequest",
    "ScenarioSource",
    "StructuralFilter",
    "TestScenario",
    "ToolAnnotation",
    "Transcript",
    "TurnReport",
    "acompile_verify_repair",
    "apply_corrections",
    "are_similar",
    "argument_problems",
    "build_generator_system_prompt",
    "compile_verify_repair",
    "content_hash",
    "expectation_holds",
    "format_feedback_message",
    "generate_scenarios",
    "generate_test_scenarios",
    "merge_replacements",
    "plan_groups",
    "read_artifact",
    "scenario_id",
    "scenario_input_hash",
    "structural_conflict",
    "undecided_roles",
    "write_artifact",
]
