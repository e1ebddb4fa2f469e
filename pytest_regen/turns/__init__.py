"""Turns with a model: requests and replies as values, and the providers that answer."""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.turns.anthropic import AnthropicProvider
    from pytest_regen.turns.batches import BatchProvider
    from pytest_regen.turns.budget import Budget, TokenBudget, TokenLedger
    from pytest_regen.turns.chat_providers import (
        LiteLLMProvider,
        OllamaProvider,
        OpenAIProvider,
    )
    from pytest_regen.turns.models import cost_of, describe_usage
    from pytest_regen.turns.providers import (
        CallableProvider,
        DryRunProvider,
        ScriptedProvider,
        TemplateProvider,
        load_provider,
        provider_from_environment,
    )
    from pytest_regen.turns.replies import ReplyJournal
    from pytest_regen.turns.structured import (
        ObjectWithRepair,
        agenerate_object_with_repair,
        extract_json,
        generate_object_with_repair,
        parse_json_with_schema,
        schema_to_prompt_hint,
    )
    from pytest_regen.turns.values import (
        DEFAULT_MAX_TOKENS,
        DEFAULT_MODEL,
        CacheTtl,
        Message,
        Provider,
        Reply,
        Role,
        TurnRequest,
        Usage,
    )
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = [
    "DEFAULT_MAX_TOKENS",
    "DEFAULT_MODEL",
    "AnthropicProvider",
    "BatchProvider",
    "Budget",
    "CacheTtl",
    "CallableProvider",
    "DryRunProvider",
    "LiteLLMProvider",
    "Message",
    "ObjectWithRepair",
    "OllamaProvider",
    "OpenAIProvider",
    "Provider",
    "Reply",
    "ReplyJournal",
    "Role",
    "ScriptedProvider",
    "TemplateProvider",
    "TokenBudget",
    "TokenLedger",
    "TurnRequest",
    "Usage",
    "agenerate_object_with_repair",
    "cost_of",
    "describe_usage",
    "extract_json",
    "generate_object_with_repair",
    "load_provider",
    "parse_json_with_schema",
    "provider_from_environment",
    "schema_to_prompt_hint",
]
