"""pytest-regen gates, heals and replays what language models write.

Importing the package imports nothing else, because the pytest plugin passes through here on every
run of every suite that has it installed. What belongs to one part only is in that part's package;
errors are in ``pytest_regen.errors``.
"""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen import regions, strategies
    from pytest_regen.cassettes import CassetteRun, ReplayProvider, use_cassette
    from pytest_regen.context import ClarifyingAgent, ConversationContext
    from pytest_regen.documents import read_document
    from pytest_regen.emulator import Emulator
    from pytest_regen.errors import RegenError
    from pytest_regen.regeneration import (
        PartialRegenResult,
        TurnSettings,
        generate_store,
        generate_stores,
        heal_store,
        heal_stores,
        partial_regenerate,
    )
    from pytest_regen.sessions import (
        GeneratorSession,
        ScenarioFeedback,
        ScenarioGeneratorSession,
        compile_verify_repair,
    )
    from pytest_regen.sources import assemble_cs
    from pytest_regen.stores import RegenStore, check_staleness
    from pytest_regen.testing import check_stateless_agent, fail
    from pytest_regen.text import quoted
    from pytest_regen.turns import (
        AnthropicProvider,
        Budget,
        CallableProvider,
        DryRunProvider,
        Provider,
        Reply,
        ScriptedProvider,
        TurnRequest,
        generate_object_with_repair,
    )
    from pytest_regen.units.kind import Kind, Unit
    from pytest_regen.validation import (
        Issue,
        ValidationResult,
        validate_generated_code,
        validate_store,
    )
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = [
    "AnthropicProvider",
    "Budget",
    "CallableProvider",
    "CassetteRun",
    "ClarifyingAgent",
    "ConversationContext",
    "DryRunProvider",
    "Emulator",
    "GeneratorSession",
    "Issue",
    "Kind",
    "PartialRegenResult",
    "Provider",
    "RegenError",
    "RegenStore",
    "ReplayProvider",
    "Reply",
    "ScenarioFeedback",
    "ScenarioGeneratorSession",
    "ScriptedProvider",
    "TurnRequest",
    "TurnSettings",
    "Unit",
    "ValidationResult",
    "assemble_cs",
    "check_staleness",
    "check_stateless_agent",
    "compile_verify_repair",
    "fail",
    "generate_object_with_repair",
    "generate_store",
    "generate_stores",
    "heal_store",
    "heal_stores",
    "partial_regenerate",
    "quoted",
    "read_document",
    "regions",
    "strategies",
    "use_cassette",
    "validate_generated_code",
    "validate_store",
]

__version__ = "0.1.0"
