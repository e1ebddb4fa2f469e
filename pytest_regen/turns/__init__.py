"""Turns with a model: requests and replies as values, and the providers that answer."""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.turns.anthropic import AnthropicProvider as AnthropicProvider
    from pytest_regen.turns.batches import BatchProvider as BatchProvider
    from pytest_regen.turns.budget import Budget as Budget
    from pytest_regen.turns.budget import TokenBudget as TokenBudget
    from pytest_regen.turns.budget import TokenLedger as TokenLedger
    from pytest_regen.turns.chat_providers import LiteLLMProvider as LiteLLMProvider
    from pytest_regen.turns.chat_providers import OllamaProvider as OllamaProvider
    from pytest_regen.turns.chat_providers import OpenAIProvider as OpenAIProvider
    from pytest_regen.turns.models import cost_of as cost_of
    from pytest_regen.turns.models import describe_usage as describe_usage
    from pytest_regen.turns.providers import CallableProvider as CallableProvider
    from pytest_regen.turns.providers import DryRunProvider as DryRunProvider
    from pytest_regen.turns.providers import ScriptedProvider as ScriptedProvider
    from pytest_regen.turns.providers import TemplateProvider as TemplateProvider
    from pytest_regen.turns.providers import load_provider as load_provider
    from pytest_regen.turns.providers import provider_from_environment as provider_from_environment
    from pytest_regen.turns.replies import ReplyJournal as ReplyJournal
    from pytest_regen.turns.structured import ObjectWithRepair as ObjectWithRepair
    from pytest_regen.turns.structured import (
        agenerate_object_with_repair as agenerate_object_with_repair,
    )
    from pytest_regen.turns.structured import extract_json as extract_json
    from pytest_regen.turns.structured import (
        generate_object_with_repair as generate_object_with_repair,
    )
    from pytest_regen.turns.structured import parse_json_with_schema as parse_json_with_schema
    from pytest_regen.turns.structured import schema_to_prompt_hint as schema_to_prompt_hint
    from pytest_regen.turns.values import DEFAULT_MAX_TOKENS as DEFAULT_MAX_TOKENS
    from pytest_regen.turns.values import DEFAULT_MODEL as DEFAULT_MODEL
    from pytest_regen.turns.values import CacheTtl as CacheTtl
    from pytest_regen.turns.values import Message as Message
    from pytest_regen.turns.values import Provider as Provider
    from pytest_regen.turns.values import Reply as Reply
    from pytest_regen.turns.values import Role as Role
    from pytest_regen.turns.values import TurnRequest as TurnRequest
    from pytest_regen.turns.values import Usage as Usage
else:
    __getattr__, __dir__ = lazy(__name__)
