"""What the API refuses although the SDK's types allow it, in its own words where they are known."""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from pytest_regen.emulator.batches import model_of
from pytest_regen.emulator.messages import EmulatedTurn, signature
from pytest_regen.emulator.prompt import as_blocks, prompt_of
from pytest_regen.emulator.shapes import check_shape
from pytest_regen.emulator.values import ApiError, ReceivedRequest
from pytest_regen.turns.models import MODELS

_MAX_BREAKPOINTS = 4
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_REFUSED = "is not supported for this model."
Rows = Iterator[tuple[object, str]]
"""Whether a rule is broken, and what the API then answers."""


def check_request(
    body: Mapping[str, Any], request: ReceivedRequest, tier: str = "standard"
) -> EmulatedTurn:
    """Return a request that the API would accept.

    Args:
        body: the JSON body.
        request: what it came with; its notes are extended by what was let through unchecked.
        tier: ``batch`` where the body is part of one.

    Raises:
        ApiError: the first broken rule.
    """
    request.notes.extend(check_shape(body, beta="anthropic-beta" in request.headers))
    model = model_of(body["model"])
    is_new = request.headers["anthropic-version"] >= "2026-10-21"
    call = EmulatedTurn(body, model, is_new, tier, prompt_of(body, model))
    for rule in (_settings, _messages, _breakpoints, _signatures):
        for is_broken, complaint in rule(call):
            if is_broken:
                raise ApiError(complaint)
    return call


def _settings(call: EmulatedTurn) -> Rows:
    body, model, max_tokens = call.body, call.model, call.body["max_tokens"]
    for name in ("temperature", "top_p", "top_k"):
        is_refused = body.get(name) is not None and (call.is_new or model.is_modern)
        yield is_refused, f"`{name}` is deprecated for this model."
    limit = f"{model.max_output}, which is the maximum allowed number of output tokens"
    complaint = f"max_tokens: {max_tokens} > {limit} for {body['model']}"
    yield max_tokens > model.max_output, complaint
    if call.tier == "batch":
        yield body.get("stream"), "stream: not supported in a batch"
    effort, levels = call.get("output_config", "effort"), ", ".join(model.efforts) or "none"
    complaint = f"This model does not support effort level '{effort}'. Supported levels: {levels}."
    yield effort and effort not in model.efforts, complaint
    kind, budget = call.get("thinking", "type"), call.get("thinking", "budget_tokens")
    way = 'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
    is_refused = kind == "enabled" and model.is_modern
    yield is_refused, f'"thinking.type.enabled" {_REFUSED} {way}'
    is_refused = kind == "disabled" and not model.thinking_optional
    yield is_refused, f'"thinking.type.disabled" {_REFUSED}'
    is_refused = kind == "adaptive" and not model.has_adaptive_thinking
    yield is_refused, "adaptive thinking is not supported on this model"
    if kind == "enabled":
        yield budget >= max_tokens, "`max_tokens` must be greater than `thinking.budget_tokens`."
    tools, kind = body.get("tools") or (), call.get("tool_choice", "type")
    # Toolsets have no names, and of newer tools the type of a name is not known.
    names = [tool["name"] for tool in tools if isinstance(tool.get("name"), str)]
    choice, is_forced = call.get("tool_choice", "name"), kind in {"any", "tool"}
    for number, tool in enumerate(tools):
        # Only of one's own tools, because those of the vendor are named by their types.
        is_wrong = tool.get("type") in {None, "custom"} and not _TOOL_NAME.fullmatch(tool["name"])
        where = f"tools.{number}.custom.name"
        yield is_wrong, f"{where}: String should match pattern '^{_TOOL_NAME.pattern}$'"
    yield len(set(names)) < len(names), "tools: Tool names must be unique."
    yield kind and not tools, "tool_choice: may only be specified while providing tools"
    yield is_forced and not model.forces_tools, f'"tool_choice.type.{kind}" {_REFUSED}'
    yield is_forced and call.thinks, "Thinking may not be enabled when tool_choice forces tool use."
    yield kind == "tool" and choice not in names, f"Tool '{choice}' not found in provided tools"


def _messages(call: EmulatedTurn) -> Rows:
    messages = call.body["messages"]
    yield not messages, "messages: at least one message is required"
    roles = ("user", "assistant", "system") if call.is_new else ("user", "assistant")
    for number, message in enumerate(messages):
        words = f"messages.{number}.role: Input should be {' or '.join(map(repr, roles))}"
        yield message["role"] not in roles, words
        is_last = message is messages[-1] and message["role"] == "assistant"
        complaint = (
            f"messages.{number}: all messages must have non-empty content except for the "
            "optional final assistant message"
        )
        yield not message["content"] and not is_last, complaint
    for place in call.prompt:
        block, kind = place.block, place.block.get("type")
        is_empty = kind == "text" and not block["text"] and "cache_control" not in block
        yield is_empty, "messages: text content blocks must be non-empty"
    yield messages[0]["role"] == "assistant", 'messages: first message must use the "user" role'
    complaint = (
        "This model does not support assistant message prefill. "
        "The conversation must end with a user message."
    )
    yield messages[-1]["role"] == "assistant" and not call.model.takes_prefill, complaint
    calls: list[str] = []
    # The earlier turns of a thread, and the calls in them, are kept by the API.
    for number, message in enumerate([] if call.body.get("thread") else messages):
        blocks = as_blocks(message["content"])
        answered = [block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"]
        missing = ", ".join(id_ for id_ in calls if id_ not in answered)
        complaint = (
            f"messages.{number - 1}: `tool_use` ids were found without `tool_result` blocks "
            f"immediately after: {missing}."
        )
        yield missing, complaint
        unasked = ", ".join(id_ for id_ in answered if id_ not in calls)
        complaint = (
            f"messages.{number}: unexpected `tool_use_id` found in `tool_result` blocks: "
            f"{unasked}. No `tool_use` block of the message before has it."
        )
        yield unasked, complaint
        calls = [block["id"] for block in blocks if block.get("type") == "tool_use"]


def _breakpoints(call: EmulatedTurn) -> Rows:
    marked = [place for place in call.prompt if place.ttl]
    for place in marked:
        kind = place.block.get("type")
        complaint = f"{place.where}.{kind}.cache_control: Extra inputs are not permitted"
        if kind == "text":
            complaint = f"{place.where}.text: cache_control cannot be set for empty text blocks"
        yield not place.can_be_marked, complaint
    complaint = (
        f"A maximum of {_MAX_BREAKPOINTS} blocks with cache_control may be provided. "
        f"Found {len(marked)}."
    )
    yield len(marked) > _MAX_BREAKPOINTS, complaint
    for earlier, later in pairwise(marked):
        complaint = (
            f"{later.where}.cache_control.ttl: a ttl='1h' cache_control block must not come after "
            "a ttl='5m' cache_control block. Note that blocks are processed in the following "
            "order: `tools`, `system`, `messages`."
        )
        yield (earlier.ttl, later.ttl) == ("5m", "1h"), complaint


def _signatures(call: EmulatedTurn) -> Rows:
    messages = call.body["messages"]
    spoken = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
    # Models that bind thinking to a conversation check all of it and what came before; the others
    # check only the latest assistant message.
    is_bound = call.model.binds_thinking
    issuers, checked = ((call.model,), spoken) if is_bound else (MODELS, spoken[-1:])
    for number in checked:
        for index, block in enumerate(as_blocks(messages[number]["content"])):
            if block.get("type") == "thinking":
                signed = (signature(block["thinking"], m, messages[:number]) for m in issuers)
                complaint = (
                    f"messages.{number}.content.{index}: `thinking` or `redacted_thinking` blocks "
                    "in the latest assistant message cannot be modified."
                )
                yield block["signature"] not in signed, complaint
