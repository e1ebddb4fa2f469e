"""Fields of a request: present, known, of the right type."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_regen.emulator.wire import ApiError

__all__ = ["check_shape"]

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
        # A field that is null counts as absent, except where it must be there.
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
