"""Validation as in the real API: one function per rule, tried in order.

Messages follow those seen in recordings and reports, if any; the others are our own.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pytest_regen.emulator.messages import ApiCall
from pytest_regen.emulator.prompt import places
from pytest_regen.emulator.rules_messages import (
    check_breakpoints,
    check_content,
    check_signatures,
    check_tool_choice,
    check_tool_results,
    check_tools,
)
from pytest_regen.emulator.schemas import check_schemas
from pytest_regen.emulator.values import ApiError
from pytest_regen.turns.models import Model, find_model

_MAX_MESSAGES = 100_000


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, float) or _is_int(value)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, str) and bool(item.strip()) for item in value
    )


def _is_objects(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_system(value: object) -> bool:
    return _is_text(value) or _is_objects(value)


def _is_any(_: object) -> bool:
    return True


_FIELDS: dict[str, tuple[Callable[[object], bool], str]] = {
    "cache_control": (_is_object, "Input should be an object"),
    "container": (_is_any, ""),
    "context_management": (_is_object, "Input should be an object"),
    "diagnostics": (_is_object, "Input should be an object"),
    "inference_geo": (_is_text, "Input should be a valid string"),
    "max_tokens": (_is_int, "Input should be a valid integer"),
    "mcp_servers": (_is_objects, "Input should be a valid list"),
    "messages": (lambda value: isinstance(value, list), "Input should be a valid list"),
    "metadata": (_is_object, "Input should be an object"),
    "model": (_is_text, "Input should be a valid string"),
    "output_config": (_is_object, "Input should be an object"),
    "service_tier": (
        lambda value: value in ("auto", "standard_only"),
        "Input should be 'auto' or 'standard_only'",
    ),
    "speed": (lambda value: value in ("standard", "fast"), "Input should be 'standard' or 'fast'"),
    "stop_sequences": (_is_texts, "each stop sequence must contain non-whitespace"),
    "stream": (_is_flag, "Input should be a valid boolean"),
    "system": (_is_system, "Input should be a valid string or a list of blocks"),
    "temperature": (_is_number, "Input should be a valid number"),
    "thinking": (_is_object, "Input should be an object"),
    "tool_choice": (_is_object, "Input should be an object"),
    "tools": (_is_objects, "Input should be a valid list"),
    "top_k": (_is_int, "Input should be a valid integer"),
    "top_p": (_is_number, "Input should be a valid number"),
}
_INNER: dict[tuple[str, str], tuple[Callable[[object], bool], str]] = {
    ("diagnostics", "previous_message_id"): (_is_text, "Input should be a valid string"),
    ("metadata", "user_id"): (_is_text, "Input should be a valid string"),
    ("output_config", "effort"): (_is_text, "Input should be a valid string"),
    ("output_config", "format"): (_is_object, "Input should be an object"),
    ("thinking", "budget_tokens"): (_is_int, "Input should be a valid integer"),
    ("thinking", "display"): (_is_text, "Input should be a valid string"),
    ("tool_choice", "name"): (_is_text, "Input should be a valid string"),
}
_CHOICES = {
    ("thinking", "type"): ("enabled", "adaptive", "disabled"),
    ("tool_choice", "type"): ("auto", "any", "tool", "none"),
}


def check_shape(body: Mapping[str, Any], *, counting: bool) -> None:
    """Check everything that does not depend on the model.

    Raises:
        ApiError: 400, naming the field.
    """
    required = ("messages", "model") if counting else ("max_tokens", "messages", "model")
    for name in required:
        if name not in body:
            raise ApiError(f"{name}: Field required")
    for name, value in body.items():
        if name not in _FIELDS:
            raise ApiError(f"{name}: Extra inputs are not permitted")
        accepts, complaint = _FIELDS[name]
        # A null field counts as absent, unless it is required.
        if not accepts(value) and (value is not None or name in required):
            raise ApiError(f"{name}: {complaint}")
    _check_ranges(body)
    _check_messages(body["messages"])


def _check_ranges(body: Mapping[str, Any]) -> None:
    if body.get("max_tokens", 0) < 0:
        raise ApiError("max_tokens: Input should be greater than or equal to 0")
    if not body["model"]:
        raise ApiError("model: String should have at least 1 character")
    for (name, key), (accepts, complaint) in _INNER.items():
        value = (body.get(name) or {}).get(key)
        if value is not None and not accepts(value):
            raise ApiError(f"{name}.{key}: {complaint}")
    for (name, key), choices in _CHOICES.items():
        value = body.get(name)
        if value is not None and value.get(key) not in choices:
            given = value.get(key)
            raise ApiError(
                f"{name}: Input tag '{given}' found using '{key}' does not match any of the "
                f"expected tags: {', '.join(repr(choice) for choice in choices)}"
            )
    for section in ("system", "tools"):
        _check_section(section, body.get(section))


def _check_section(section: str, blocks: object) -> None:
    if not isinstance(blocks, list):
        return
    for number, block in enumerate(blocks):
        if section == "tools" and not isinstance(block.get("name"), str):
            raise ApiError(f"tools.{number}.name: Field required")
        if section == "system" and block.get("type") != "text":
            raise ApiError(f"system.{number}.type: Input should be 'text'")
        if section == "system" and not isinstance(block.get("text"), str):
            raise ApiError(f"system.{number}.text: Field required")


def _check_messages(messages: Sequence[Any]) -> None:
    if not messages:
        raise ApiError("messages: at least one message is required")
    if len(messages) > _MAX_MESSAGES:
        raise ApiError(f"messages: at most {_MAX_MESSAGES} messages are allowed")
    for number, message in enumerate(messages):
        if not isinstance(message, dict):
            raise ApiError(f"messages.{number}: Input does not match the expected shape.")
        for name in ("role", "content"):
            if name not in message:
                raise ApiError(f"messages.{number}.{name}: Field required")
        content = message["content"]
        if not isinstance(content, str) and not _is_objects(content):
            raise ApiError(f"messages.{number}.content: Input should be a valid list")


_SAMPLING = ("temperature", "top_p", "top_k")
_MIN_BUDGET = 1_024


def check_request(
    body: Mapping[str, Any], *, version: str, batched: bool = False, counting: bool = False
) -> Model:
    """Return the model of a request that the API would accept.

    Args:
        body: the JSON body.
        version: value of the ``anthropic-version`` header.
        batched: the body is part of a batch.
        counting: the body is one of ``count_tokens``, which has no ``max_tokens``.

    Raises:
        ApiError: the first broken rule, in the API's words.
    """
    check_shape(body, counting=counting)
    model = find_model(body["model"])
    if model is None:
        raise ApiError(f"model: {body['model']}", status=404)
    call = ApiCall(body, model, version, batched, counting)
    for rule in _RULES:
        rule(call)
    return model


def _check_sampling(call: ApiCall) -> None:
    """On API version 2026-10-21, and on models from 4.7 on, sampling parameters are refused."""
    if call.version < "2026-10-21" and not call.model.is_modern:
        return
    for name in _SAMPLING:
        if call.body.get(name) is not None:
            raise ApiError(f"`{name}` is deprecated for this model.")


def _output_limit(call: ApiCall) -> None:
    if call.counting:
        return
    asked, allowed = call.body["max_tokens"], call.model.max_output
    if asked > allowed:
        raise ApiError(
            f"max_tokens: {asked} > {allowed}, which is the maximum allowed number of output "
            f"tokens for {call.body['model']}"
        )


def _check_warm_up(call: ApiCall) -> None:
    """``max_tokens: 0`` only warms the cache, so fields that shape an answer are refused."""
    if call.counting or call.body["max_tokens"] != 0:
        return
    reasons = {
        "stream": bool(call.body.get("stream")),
        "thinking": call.thinking.get("type") == "enabled",
        "output_config.format": call.format is not None,
        "tool_choice": call.tool_choice in {"any", "tool"},
        "batches": call.batched,
    }
    for name, given in reasons.items():
        if given:
            raise ApiError(f"max_tokens: 0 is not supported with {name}")


def _batch(call: ApiCall) -> None:
    for name in ("stream", "speed"):
        if call.batched and call.body.get(name):
            raise ApiError(f"{name}: not supported in a batch")


def _thinking(call: ApiCall) -> None:
    kind, model = call.thinking.get("type"), call.model
    if kind == "enabled" and model.is_modern:
        raise ApiError(
            '"thinking.type.enabled" is not supported for this model. Use '
            '"thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
        )
    if kind == "disabled" and not model.thinking_optional:
        raise ApiError('"thinking.type.disabled" is not supported for this model.')
    if kind == "adaptive" and not model.has_adaptive_thinking:
        raise ApiError("adaptive thinking is not supported on this model")
    if kind == "enabled":
        _thinking_budget(call)


def _thinking_budget(call: ApiCall) -> None:
    budget = call.thinking.get("budget_tokens")
    if budget is None:
        raise ApiError("thinking.enabled.budget_tokens: Field required")
    if budget < _MIN_BUDGET:
        raise ApiError(
            "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
        )
    if not call.counting and budget >= call.body["max_tokens"]:
        raise ApiError("`max_tokens` must be greater than `thinking.budget_tokens`.")


def _effort(call: ApiCall) -> None:
    effort = (call.body.get("output_config") or {}).get("effort")
    if effort is None or effort in call.model.efforts:
        return
    if not call.model.efforts:
        raise ApiError("This model does not support the effort parameter.")
    raise ApiError(
        f"This model does not support effort level '{effort}'. "
        f"Supported levels: {', '.join(call.model.efforts)}."
    )


def _format(call: ApiCall) -> None:
    if call.format is not None:
        if call.format.get("type") != "json_schema":
            raise ApiError("output_config.format.type: Input should be 'json_schema'")
        if any(place.cites for place in places(call.body)):
            raise ApiError("output_config.format: structured output does not go with citations")
    check_schemas(_schemas(call))


def _schemas(call: ApiCall) -> Iterator[tuple[str, object]]:
    """Yield every schema that the reply has to satisfy."""
    if call.format is not None:
        yield "output_config.format.schema", call.format.get("schema")
    for number, tool in enumerate(call.body.get("tools") or ()):
        if tool.get("strict"):
            yield f"tools.{number}.custom.input_schema", tool.get("input_schema")


def _prefill(call: ApiCall) -> None:
    if call.body["messages"][-1]["role"] != "assistant":
        return
    if not call.model.takes_prefill:
        raise ApiError(
            "This model does not support assistant message prefill. "
            "The conversation must end with a user message."
        )
    if call.thinks:
        raise ApiError("Prefilling assistant messages is not supported with thinking.")
    if call.format is not None:
        raise ApiError("Prefilling assistant messages is not supported with output_config.format.")


_RULES: tuple[Callable[[ApiCall], None], ...] = (
    _check_sampling,
    _output_limit,
    _check_warm_up,
    _batch,
    _thinking,
    check_tools,
    check_tool_choice,
    _effort,
    _format,
    check_content,
    check_tool_results,
    _prefill,
    check_breakpoints,
    check_signatures,
)
