"""Rules for messages, tools and breakpoints: roles, blocks, tool results, unchanged thinking."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_regen.emulator.messages import ApiCall, signature
from pytest_regen.emulator.prompt import PromptPlace, automatic_place, places, ttl_of
from pytest_regen.emulator.values import ApiError
from pytest_regen.turns.models import MODELS, Model

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


def check_content(call: ApiCall) -> None:
    """Check roles and blocks.

    Raises:
        ApiError: 400, naming the message or block.
    """
    messages = call.body["messages"]
    # System turns inside a conversation are new in the later version of the API.
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


def _check_message(call: ApiCall, number: int, message: Mapping[str, Any]) -> None:
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
    # An empty text with a breakpoint is refused by the rule on breakpoints.
    if kind == "text" and not block["text"] and "cache_control" not in block:
        raise ApiError("messages: text content blocks must be non-empty")


def check_tool_results(call: ApiCall) -> None:
    """Check that the next message answers each tool call and nothing else.

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


def check_signatures(call: ApiCall) -> None:
    """Check that thinking comes back unchanged.

    Models that bind thinking to a conversation check every block and the messages before it; the
    others check only the latest assistant message.

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
    """Whether a block is not thinking, or is thinking that this emulator sent."""
    if block.get("type") != "thinking":
        # The emulator never sends redacted thinking, so this is forged.
        return block.get("type") != "redacted_thinking"
    issuers = (model,) if model.binds_thinking else MODELS
    text = str(block["thinking"])
    return any(block["signature"] == signature(text, issuer, earlier) for issuer in issuers)


_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_MAX_STRICT = 20


def check_tools(call: ApiCall) -> None:
    """Check the definitions of tools.

    Raises:
        ApiError: 400, naming the tool.
    """
    tools = call.body.get("tools") or ()
    for number, tool in enumerate(tools):
        # The vendor's own tools are identified by their type and need no schema.
        if tool.get("type") in (None, "custom"):
            _check_custom(tool, f"tools.{number}.custom")
    if len({tool["name"] for tool in tools}) < len(tools):
        raise ApiError("tools: Tool names must be unique.")
    strict = sum(bool(tool.get("strict")) for tool in tools)
    if strict > _MAX_STRICT:
        raise ApiError(f"tools: at most {_MAX_STRICT} strict tools, found {strict}")


def _check_custom(tool: Mapping[str, Any], where: str) -> None:
    if not _NAME.fullmatch(tool["name"]):
        raise ApiError(f"{where}.name: String should match pattern '^{_NAME.pattern}$'")
    if "input_schema" not in tool:
        raise ApiError(f"{where}.input_schema: Field required")
    if not isinstance(tool["input_schema"], dict):
        raise ApiError(f"{where}.input_schema: Input should be an object")


def check_tool_choice(call: ApiCall) -> None:
    """Check ``tool_choice``.

    Raises:
        ApiError: 400, there are no tools, or none may be forced.
    """
    choice, tools = call.tool_choice, call.body.get("tools") or ()
    if choice is not None and not tools:
        raise ApiError("tool_choice: may only be specified while providing tools")
    if choice not in {"any", "tool"}:
        return
    if not call.model.forces_tools:
        raise ApiError(f'"tool_choice.type.{choice}" is not supported for this model.')
    if call.thinks:
        raise ApiError("Thinking may not be enabled when tool_choice forces tool use.")
    if choice == "tool":
        _check_forced(call.body["tool_choice"], {tool["name"] for tool in tools})


def _check_forced(choice: Mapping[str, Any], names: set[str]) -> None:
    if choice.get("name") is None:
        raise ApiError("tool_choice.tool.name: Field required")
    if choice["name"] not in names:
        raise ApiError(f"Tool '{choice['name']}' not found in provided tools")


_MAX_BREAKPOINTS = 4


def check_breakpoints(call: ApiCall) -> None:
    """Check every ``cache_control``, including the one at the top.

    Raises:
        ApiError: 400, naming the block.
    """
    found = list(places(call.body))
    marked = {i: place.ttl for i, place in enumerate(found) if place.block.get("cache_control")}
    for index in marked:
        _check_one(found[index])
    automatic = call.body.get("cache_control")
    if automatic is not None:
        _check_value(automatic, "cache_control")
        _add_automatic(call, found, marked)
    if len(marked) > _MAX_BREAKPOINTS:
        raise ApiError(
            f"A maximum of {_MAX_BREAKPOINTS} blocks with cache_control may be provided. "
            f"Found {len(marked)}."
        )
    _check_order(found, marked)


def _add_automatic(call: ApiCall, found: list[PromptPlace], marked: dict[int, str | None]) -> None:
    """Add the automatic breakpoint to the explicit ones."""
    index = automatic_place(call.body, found)
    if index is None:
        return
    ttl = ttl_of(call.body["cache_control"])
    if marked.get(index, ttl) != ttl:
        raise ApiError(
            f"cache_control: ttl='{ttl}' conflicts with the ttl='{marked[index]}' of "
            f"{found[index].where}, the last cacheable block"
        )
    marked[index] = ttl


def _check_one(place: PromptPlace) -> None:
    kind = place.block.get("type")
    if kind in ("thinking", "redacted_thinking"):
        raise ApiError(f"{place.where}.{kind}.cache_control: Extra inputs are not permitted")
    if not place.can_be_marked:
        raise ApiError(f"{place.where}.text: cache_control cannot be set for empty text blocks")
    _check_value(place.block["cache_control"], f"{place.where}.cache_control")


def _check_value(value: object, where: str) -> None:
    if not isinstance(value, Mapping):
        raise ApiError(f"{where}: Input should be an object")
    fields: Mapping[str, Any] = value
    if fields.get("type") != "ephemeral":
        raise ApiError(f"{where}.type: Input should be 'ephemeral'")
    if fields.get("ttl") not in (None, "5m", "1h"):
        raise ApiError(f"{where}.ttl: Input should be '5m' or '1h'")
    for name in fields:
        if name not in {"type", "ttl"}:
            raise ApiError(f"{where}.{name}: Extra inputs are not permitted")


def _check_order(found: list[PromptPlace], marked: Mapping[int, str | None]) -> None:
    """Longer lifetimes have to come first."""
    seen_short = False
    for index in sorted(marked):
        if marked[index] == "1h" and seen_short:
            raise ApiError(
                f"{found[index].where}.cache_control.ttl: a ttl='1h' cache_control block must not "
                "come after a ttl='5m' cache_control block. Note that blocks are processed in the "
                "following order: `tools`, `system`, `messages`."
            )
        seen_short = seen_short or marked[index] == "5m"
