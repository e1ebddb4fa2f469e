"""pytest-regen gates, heals and replays what language models write.

Importing the package imports nothing else, because the pytest plugin passes through here on every
run of every suite that has it installed. What belongs to one part only is in that part's package;
errors are in ``pytest_regen.errors``.
"""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen import regions as regions
    from pytest_regen import strategies as strategies
    from pytest_regen.cassettes import CassetteRun as CassetteRun
    from pytest_regen.cassettes import ReplayProvider as ReplayProvider
    from pytest_regen.cassettes import use_cassette as use_cassette
    from pytest_regen.context import ClarifyingAgent as ClarifyingAgent
    from pytest_regen.context import ConversationContext as ConversationContext
    from pytest_regen.documents import read_document as read_document
    from pytest_regen.emulator import Emulator as Emulator
    from pytest_regen.errors import RegenError as RegenError
    from pytest_regen.regeneration import PartialRegenResult as PartialRegenResult
    from pytest_regen.regeneration import TurnSettings as TurnSettings
    from pytest_regen.regeneration import generate_store as generate_store
    from pytest_regen.regeneration import generate_stores as generate_stores
    from pytest_regen.regeneration import heal_store as heal_store
    from pytest_regen.regeneration import heal_stores as heal_stores
    from pytest_regen.regeneration import partial_regenerate as partial_regenerate
    from pytest_regen.sessions import GeneratorSession as GeneratorSession
    from pytest_regen.sessions import ScenarioFeedback as ScenarioFeedback
    from pytest_regen.sessions import ScenarioGeneratorSession as ScenarioGeneratorSession
    from pytest_regen.sessions import compile_verify_repair as compile_verify_repair
    from pytest_regen.sources import assemble_cs as assemble_cs
    from pytest_regen.stores import RegenStore as RegenStore
    from pytest_regen.stores import check_staleness as check_staleness
    from pytest_regen.testing import check_stateless_agent as check_stateless_agent
    from pytest_regen.testing import fail as fail
    from pytest_regen.text import quoted as quoted
    from pytest_regen.turns import AnthropicProvider as AnthropicProvider
    from pytest_regen.turns import Budget as Budget
    from pytest_regen.turns import CallableProvider as CallableProvider
    from pytest_regen.turns import DryRunProvider as DryRunProvider
    from pytest_regen.turns import Provider as Provider
    from pytest_regen.turns import Reply as Reply
    from pytest_regen.turns import ScriptedProvider as ScriptedProvider
    from pytest_regen.turns import TurnRequest as TurnRequest
    from pytest_regen.turns import generate_object_with_repair as generate_object_with_repair
    from pytest_regen.units.kind import Kind as Kind
    from pytest_regen.units.kind import Unit as Unit
    from pytest_regen.validation import Issue as Issue
    from pytest_regen.validation import ValidationResult as ValidationResult
    from pytest_regen.validation import validate_generated_code as validate_generated_code
    from pytest_regen.validation import validate_store as validate_store
else:
    __getattr__, __dir__ = lazy(__name__)

__version__ = "0.1.0"
