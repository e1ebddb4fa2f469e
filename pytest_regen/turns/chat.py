"""Chat completions as plain JSON: messages, schemas that a model is held to, and replies.

OpenAI and LiteLLM speak this form; Ollama's own is close to it. Standard library only.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from pytest_regen.errors import TransportError
from pytest_regen.turns.values import Reply, TurnRequest, Usage
from pytest_regen.turns.wire import count, object_or_empty

_STOP_REASONS: Final[Mapping[str, str]] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "content_filter": "refusal",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
}
"""As the Messages API words them."""

_THINKING: Final = ("reasoning_content", "reasoning", "thinking")
"""What servers call the member of a message in which a model thinks: DeepSeek and vLLM, OpenRouter,
Ollama."""

_KEPT: Final = frozenset(
    {"type", "enum", "const", "description", "title", "pattern", "format", "minimum", "maximum",
     "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "$ref",
     "required", "additionalProperties"}
)  # fmt: skip
"""What strict schemas may say: https://platform.openai.com/docs/guides/structured-outputs."""
_DROPPED: Final = frozenset({"default", "examples", "$schema", "$id", "$comment"})
"""What allows no other values where it stands."""
_ANNOTATIONS: Final = frozenset({"title", "description"})


def chat_messages(request: TurnRequest) -> list[dict[str, Any]]:
    """Return the messages of a request, the system prompt first; these APIs cache unasked."""
    messages: list[dict[str, Any]] = []
    if request.system:
        messages.append({"role": "system", "content": request.system})
    for message in request.messages:
        sent: dict[str, Any] = {"role": message.role, "content": message.content}
        # Blocks of a reply go back to where ``reply_of_message`` took them from.
        calls = [block for block in message.blocks if block.get("type") == "function"]
        sent |= {"tool_calls": calls} if calls else {}
        for block in message.blocks:
            sent |= {name: block[name] for name in _THINKING if name in block}
        messages.append(sent)
    return messages


def described_schema(
    messages: list[dict[str, Any]], schema: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the messages with the form of the reply, for a model that no schema holds to it."""
    from pytest_regen.turns.structured import describe_schema

    *earlier, last = messages
    return [*earlier, {**last, "content": last["content"] + describe_schema(schema)}]


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a schema that OpenAI can hold a model to; ``None`` where there is none."""
    # What it allows the given schema allows, too: objects are closed and name all their members,
    # which the API demands. A map with free keys cannot be said, nor can a root that is no object.
    is_object = schema.get("type") == "object" and "anyOf" not in schema
    try:
        return _strict(schema) if is_object else None
    except (TypeError, ValueError):
        return None


def _strict(schema: object) -> dict[str, Any]:
    if not isinstance(schema, Mapping):
        raise TypeError(schema)  # ``true`` is a schema, but none that can be said.
    strict = {key: _strict_part(key, value) for key, value in schema.items() if key not in _DROPPED}
    if not set(strict) & {"type", "enum", "const", "anyOf", "$ref"}:
        raise ValueError(schema)  # anything at all
    if "$ref" in strict:
        # Nothing may stand beside it.
        if set(strict) - {"$ref", *_ANNOTATIONS}:
            raise ValueError(schema)
        return {"$ref": strict["$ref"]}
    kind = schema.get("type")
    types = kind if isinstance(kind, list) else [kind]
    if "object" in types:
        if not schema.get("properties") or schema.get("additionalProperties"):
            raise ValueError(schema)
        strict |= {"required": list(strict["properties"]), "additionalProperties": False}
    if "array" in types and "items" not in strict:
        raise ValueError(schema)
    return strict


def _strict_part(key: str, value: Any) -> Any:
    match key:
        case "properties" | "$defs" | "definitions":
            return {name: _strict(inner) for name, inner in value.items()}
        case "items":
            return _strict(value)
        case "anyOf":
            return [_strict(inner) for inner in value]
        case _ if key in _KEPT:
            return value
        case _:
            raise ValueError(key)


def reply_of_completion(body: object, *, address: str) -> Reply:
    """Return the reply in a chat completion: the text of its first choice.

    Raises:
        TransportError: the body is no chat completion.
    """
    completion = body if isinstance(body, Mapping) else {}
    choices = completion.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
        raise _no_reply("chat completion", address)
    # LiteLLM puts there what others do not have.
    apart = message.get("provider_specific_fields")
    declined = message.get("refusal") or (apart.get("refusal") if isinstance(apart, dict) else None)
    reply = reply_of_message(message, str(choice.get("finish_reason") or ""))
    if declined:
        text = reply.text or str(declined)
        reply = replace(reply, text=text, stop_reason="refusal", refusal=str(declined))
    counts = object_or_empty(completion.get("usage"))
    cache = object_or_empty(counts.get("prompt_tokens_details"))
    read, written = count(cache.get("cached_tokens")), count(cache.get("cache_write_tokens"))
    # The input includes what the cache had part in.
    whole = count(counts.get("prompt_tokens"))
    uncached = None if whole is None else max(0, whole - (read or 0) - (written or 0))
    usage = Usage(uncached, count(counts.get("completion_tokens")), read, written)
    model, id_ = str(completion.get("model") or ""), str(completion.get("id") or "")
    return replace(reply, usage=usage, model=model, id=id_)


def reply_of_ollama(body: object, *, address: str) -> Reply:
    """Return the reply in an answer of ``/api/chat``.

    Raises:
        TransportError: the body is no such answer, or one that was never finished.
    """
    answer = body if isinstance(body, Mapping) else {}
    message = answer.get("message")
    if not isinstance(message, Mapping) or not answer.get("done"):
        raise _no_reply("finished answer of Ollama", address)
    counts = Usage(count(answer.get("prompt_eval_count")), count(answer.get("eval_count")))
    reply = reply_of_message(message, str(answer.get("done_reason") or "stop"))
    return replace(reply, usage=counts, model=str(answer.get("model") or ""))


def reply_of_message(message: Mapping[str, Any], finish: str) -> Reply:
    """Return the text of a message, and its blocks where it thinks or calls tools.

    Args:
        message: as it came.
        finish: why it ended, as these APIs word it.
    """
    content = message.get("content")
    # Some servers send blocks.
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    texts = [part for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    thinking = [{"type": name, name: message[name]} for name in _THINKING if message.get(name)]
    calls = [{"type": "function", **call} for call in message.get("tool_calls") or () if call]
    blocks = (*thinking, *(part for part in texts if part["text"]), *calls)
    return Reply(
        text="".join(part["text"] for part in texts),
        stop_reason="tool_use" if calls else _STOP_REASONS.get(finish, finish),
        refusal=finish if finish == "content_filter" else "",
        blocks=blocks if thinking or calls else (),
    )


def _no_reply(what: str, address: str) -> TransportError:
    return TransportError(
        f"the answer of {address} is not a {what}",
        why="it has no message",
        hint="check the address: something else answers there",
    )
