"""Messages and their blocks: roles, known kinds, tool results that answer, thinking left alone."""

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_regen.emulator.call import Call
from pytest_regen.emulator.messages import signature
from pytest_regen.emulator.models import MODELS, Model
from pytest_regen.emulator.wire import ApiError

__all__ = ["check_content", "check_signatures", "check_tool_results"]

_KINDS = {
    "text": ("text",),
    "image": ("source",),
    "document": ("source",),
    "search_result": ("content", "source", "title"),
    "thinking": ("thinking", "signature"),
    "redacted_thinking": ("data",),
    "tool_use": ("id", "name", "input"),
    "tool_result": ("tool_use_id",),
    "server_tool_use": ("id", "name", "input"),
    "web_search_tool_result": ("tool_use_id", "content"),
    "web_fetch_tool_result": ("tool_use_id", "content"),
    "code_execution_tool_result": ("tool_use_id", "content"),
    "container_upload": ("file_id",),
}


def check_content(call: Call) -> None:
    """Check roles and blocks.

    Raises:
        ApiError: 400, naming the message or block.
    """
    messages = call.body["messages"]
    # System turns inside a conversation came with the newer version of the API.
    roles = ("user", "assistant", *(("system",) if call.version >= "2026-10-21" else ()))
    for number, message in enumerate(messages):
        if message["role"] not in roles:
            raise ApiError(
                f"messages.{number}.role: Input should be "
                f"{' or '.join(repr(role) for role in roles)}"
            )
        _check_message(call, number, message)
    if messages[0]["role"] == "assistant":
        raise ApiError('messages: first message must use the "user" role')


def _check_message(call: Call, number: int, message: Mapping[str, Any]) -> None:
    content = message["content"]
    is_last = number == len(call.body["messages"]) - 1
    if not content and not (is_last and message["role"] == "assistant"):
        raise ApiError(
            f"messages.{number}: all messages must have non-empty content except for the "
            "optional final assistant message"
        )
    if isinstance(content, str):
        return
    for index, block in enumerate(content):
        where = f"messages.{number}.content.{index}"
        _check_block(block, where)
        is_document = block["type"] == "document" and message["role"] == "assistant"
        if is_document and call.version >= "2026-10-21":
            raise ApiError(f"{where}: `document` blocks are not allowed in assistant messages")
        is_cited = block["type"] == "text" and message["role"] == "user" and block.get("citations")
        if is_cited and call.version >= "2026-10-21":
            raise ApiError(f"{where}.text.citations: citations are not allowed in user messages")


def _check_block(block: Mapping[str, Any], where: str) -> None:
    kind = block.get("type")
    if kind is None:
        raise ApiError(f"{where}.type: Field required")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ApiError(
            f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected "
            f"tags: {', '.join(repr(known) for known in sorted(_KINDS))}"
        )
    for name in _KINDS[kind]:
        if name not in block:
            raise ApiError(f"{where}.{kind}.{name}: Field required")
    if kind == "text" and not isinstance(block["text"], str):
        raise ApiError(f"{where}.text.text: Input should be a valid string")
    inner = block.get("content", [])
    if kind == "tool_result" and isinstance(inner, list):
        for index, part in enumerate(inner):
            if not isinstance(part, dict):
                raise ApiError(f"{where}.tool_result.content.{index}: Input should be an object")
            _check_block(part, f"{where}.tool_result.content.{index}")
    # An empty text is refused by the rule on breakpoints first, where it carries one.
    if kind == "text" and not block["text"] and "cache_control" not in block:
        raise ApiError("messages: text content blocks must be non-empty")


def check_tool_results(call: Call) -> None:
    """Check that each tool call is answered in the next message, and nothing else is.

    Raises:
        ApiError: 400, naming the message and the ids.
    """
    messages = call.body["messages"]
    asked: list[str] = []
    used: set[str] = set()
    for number, message in enumerate(messages):
        answered = _ids(message, "tool_result", "tool_use_id")
        missing = [id_ for id_ in asked if id_ not in answered]
        if missing:
            raise ApiError(
                f"messages.{number - 1}: `tool_use` ids were found without `tool_result` blocks "
                f"immediately after: {', '.join(missing)}. Each `tool_use` block must have a "
                "corresponding `tool_result` block in the next message."
            )
        for id_ in answered:
            if id_ not in asked:
                raise ApiError(
                    f"messages.{number}: unexpected `tool_use_id` found in `tool_result` blocks: "
                    f"{id_}. Each `tool_result` block must have a corresponding `tool_use` block "
                    "in the previous message."
                )
        asked = _ids(message, "tool_use", "id")
        if len(used.union(asked)) < len(used) + len(asked):
            raise ApiError(f"messages.{number}: `tool_use` ids must be unique")
        used.update(asked)


def _ids(message: Mapping[str, Any], kind: str, name: str) -> list[str]:
    content = message["content"]
    if isinstance(content, str):
        return []
    return [str(block[name]) for block in content if block.get("type") == kind]


def check_signatures(call: Call) -> None:
    """Check that thinking comes back as it went out.

    Models that bind their thinking to a conversation look at every block, and at what stood
    before it; the others look at the latest assistant message only.

    Raises:
        ApiError: 400, naming the block.
    """
    messages = call.body["messages"]
    spoken = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
    looked_at = spoken if call.model.binds_thinking else spoken[-1:]
    for number in looked_at:
        content = messages[number]["content"]
        for index, block in enumerate(content if isinstance(content, list) else ()):
            if not _is_untouched(call.model, block, messages[:number]):
                raise ApiError(
                    f"messages.{number}.content.{index}: `thinking` or `redacted_thinking` blocks "
                    "in the latest assistant message cannot be modified. These blocks must remain "
                    "as they were in the original response."
                )


def _is_untouched(
    model: Model, block: Mapping[str, Any], earlier: Sequence[Mapping[str, Any]]
) -> bool:
    """Whether a block is no thinking, or thinking that came from here."""
    if block.get("type") != "thinking":
        # Redacted thinking is never issued here, so it can only be forged.
        return block.get("type") != "redacted_thinking"
    issuers = (model,) if model.binds_thinking else MODELS
    said = str(block["thinking"])
    return any(block["signature"] == signature(said, issuer, earlier) for issuer in issuers)
