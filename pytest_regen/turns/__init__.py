"""Turns with a model: requests and replies as values, and the providers that answer.

Names are resolved on first use, so that importing this package costs no more than its values.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_regen.turns.anthropic import AnthropicProvider
    from pytest_regen.turns.choosing import load_provider, provider_from_environment
    from pytest_regen.turns.defaults import DEFAULT_MAX_TOKENS, DEFAULT_MODEL
    from pytest_regen.turns.local import CallableProvider, DryRunProvider, ScriptedProvider
    from pytest_regen.turns.prices import cost_of, describe_usage
    from pytest_regen.turns.structured import (
        ObjectWithRepair,
        agenerate_object_with_repair,
        extract_json,
        generate_object_with_repair,
        parse_json_with_schema,
        schema_to_prompt_hint,
    )
    from pytest_regen.turns.values import (
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
    "AnthropicProvider": "anthropic",
    "CallableProvider": "local",
    "DEFAULT_MAX_TOKENS": "defaults",
    "DEFAULT_MODEL": "defaults",
    "DryRunProvider": "local",
    "ObjectWithRepair": "structured",
    "ScriptedProvider": "local",
    "agenerate_object_with_repair": "structured",
    "cost_of": "prices",
    "describe_usage": "prices",
    "extract_json": "structured",
    "generate_object_with_repair": "structured",
    "load_provider": "choosing",
    "parse_json_with_schema": "structured",
    "provider_from_environment": "choosing",
    "schema_to_prompt_hint": "structured",
}

if not TYPE_CHECKING:
    # Hidden from the type checker, which would otherwise accept any name.
    def __getattr__(name: str) -> Any:  # noqa: ANN401 - any public object
        """Import the module that holds ``name`` and return the object."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'values')}"), name)
