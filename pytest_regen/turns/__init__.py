"""Turns with a model: requests and replies as values, and the providers that answer.

Names are resolved on first use, so that importing this package costs no more than its values.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_regen.turns.anthropic import AnthropicProvider
    from pytest_regen.turns.budget import Budget
    from pytest_regen.turns.models import cost_of, describe_usage
    from pytest_regen.turns.providers import (
        CallableProvider,
        DryRunProvider,
        ScriptedProvider,
        load_provider,
        provider_from_environment,
    )
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
        StopReason,
        TurnRequest,
        Usage,
    )

__all__ = [
    "DEFAULT_MAX_TOKENS",
    "DEFAULT_MODEL",
    "AnthropicProvider",
    "Budget",
    "CacheTtl",
    "CallableProvider",
    "DryRunProvider",
    "Message",
    "ObjectWithRepair",
    "Provider",
    "Reply",
    "Role",
    "ScriptedProvider",
    "StopReason",
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

_HOMES = {
    "Budget": "budget",
    "AnthropicProvider": "anthropic",
    "CallableProvider": "providers",
    "DEFAULT_MAX_TOKENS": "values",
    "DEFAULT_MODEL": "values",
    "DryRunProvider": "providers",
    "ObjectWithRepair": "structured",
    "ScriptedProvider": "providers",
    "agenerate_object_with_repair": "structured",
    "cost_of": "models",
    "describe_usage": "models",
    "extract_json": "structured",
    "generate_object_with_repair": "structured",
    "load_provider": "providers",
    "parse_json_with_schema": "structured",
    "provider_from_environment": "providers",
    "schema_to_prompt_hint": "structured",
}

if not TYPE_CHECKING:
    # Hidden from the type checker, which would otherwise accept any name.
    def __getattr__(name: str) -> Any:
        """Import the module that holds ``name`` and return the object."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'values')}"), name)
