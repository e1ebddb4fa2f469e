"""Chat completions as plain JSON: messages, schemas that a model is held to, and replies.

OpenAI and LiteLLM speak this form; Ollama's own is close to it. Standard library only.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pytest_regen.errors import TransportError
from pytest_regen.turns.values import Reply, TurnRequest, Usage

_STOP_REASONS: Final[Mapping[str, str]] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "content_filter": "refusal",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
}
"""As the Messages API words them."""

_KEPT: Final = frozenset(
    {"type", "enum", "const", "description", "title", "pattern", "format", "minimum", "maximum",
     "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "$ref",
     "required", "additionalProperties"}
)  # fmt: skip
"""What strict schemas may say: https://platform.openai.com/docs/guides/structured-outputs."""
_DROPPED: Final = frozenset({"default", "examples", "$schema", "$id", "$comment"})
"""What allows no other values where it stands."""
_ANNOTATIONS: Final = frozenset({"title", "description"})


def chat_messages(request: TurnRequest) -> list[dict[str, str]]:
    """Return the messages of a request, the system prompt first; these APIs cache unasked."""
    system = [{"role": "system", "content": request.system}] if request.system else []
    return system + [{"role": m.role, "content": m.content} for m in request.messages]


def with_described_schema(messages: list[dict[str, str]], request: TurnRequest) -> None:
    """Put the form of the reply into the last message, for a model that no schema holds to it."""
    from pytest_regen.turns.structured import describe_schema

    if request.response_schema is not None:
        messages[-1]["content"] += describe_schema(request.response_schema)


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a schema that OpenAI can hold a model to; ``None`` where there is none.

    What it allows the given schema allows, too: objects are closed and name all their members,
    which the API demands. A map with free keys cannot be said, nor can a root that is no object.
    """
    is_object = schema.get("type") == "object" and "anyOf" not in schema
    try:
        return _strict(schema) if is_object else None
    except ValueError:
        return None


def _strict(schema: object) -> dict[str, Any]:
    if not isinstance(schema, Mapping):
        raise ValueError(schema)  # noqa: TRY004 - ``true`` is a schema, but none that can be said
    strict = {key: _strict_part(key, value) for key, value in schema.items() if key not in _DROPPED}
    if not set(strict) & {"type", "enum", "const", "anyOf", "$ref"}:
        raise ValueError(schema)  # anything at all
    if "$ref" in strict:
        # Nothing may stand beside it.
        if set(strict) - {"$ref", *_ANNOTATIONS}:
            raise ValueError(schema)
        return {"$ref": strict["$ref"]}
    named = schema.get("type")
    types = named if isinstance(named, list) else [named]
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
    """Return the reply in a chat completion: the text of its first choice, reasoning left out.

    Raises:
        TransportError: the body is no chat completion.
    """
    choice = _first_choice(body)
    if not isinstance(body, Mapping) or choice is None:
        raise _no_reply("chat completion", address)
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise _no_reply("chat completion", address)
    finish = str(choice.get("finish_reason") or "")
    apart = message.get("provider_specific_fields")  # where LiteLLM puts what others do not have
    declined = message.get("refusal") or (apart.get("refusal") if isinstance(apart, dict) else None)
    return Reply(
        text="".join(_texts(message.get("content"))) or str(declined or ""),
        stop_reason="refusal" if declined else _STOP_REASONS.get(finish, finish),
        usage=_usage(body.get("usage")),
        model=str(body.get("model") or ""),
        id=str(body.get("id") or ""),
        refusal=str(declined or (finish if finish == "content_filter" else "")),
    )


def _first_choice(body: object) -> Mapping[str, Any] | None:
    choices = body.get("choices") if isinstance(body, Mapping) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, Mapping) else None


def _texts(content: object) -> Iterator[str]:
    """Yield the texts of a message; some servers send blocks."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for block in content:
            if isinstance(block, Mapping) and isinstance(block.get("text"), str):
                yield block["text"]


def _usage(usage: object) -> Usage:
    """Return the counts of a completion, where the input includes what the cache had part in."""
    if not isinstance(usage, Mapping):
        return Usage()
    details = usage.get("prompt_tokens_details")
    cache = details if isinstance(details, Mapping) else {}
    read, written = _count(cache.get("cached_tokens")), _count(cache.get("cache_write_tokens"))
    asked = _count(usage.get("prompt_tokens"))
    if asked is not None:
        asked = max(0, asked - (read or 0) - (written or 0))
    return Usage(
        input_tokens=asked,
        output_tokens=_count(usage.get("completion_tokens")),
        cache_read_tokens=read,
        cache_write_5m_tokens=written,
    )


def reply_of_ollama(body: object, *, address: str) -> Reply:
    """Return the reply in an answer of ``/api/chat``, thinking left out.

    Raises:
        TransportError: the body is no such answer, or one that was never finished.
    """
    message = body.get("message") if isinstance(body, Mapping) else None
    if not isinstance(body, Mapping) or not isinstance(message, Mapping) or not body.get("done"):
        raise _no_reply("finished answer of Ollama", address)
    finish = str(body.get("done_reason") or "stop")
    return Reply(
        text=str(message.get("content") or ""),
        stop_reason=_STOP_REASONS.get(finish, finish),
        usage=Usage(
            input_tokens=_count(body.get("prompt_eval_count")),
            output_tokens=_count(body.get("eval_count")),
        ),
        model=str(body.get("model") or ""),
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _no_reply(what: str, address: str) -> TransportError:
    return TransportError(
        f"the answer of {address} is no {what}",
        why="it has no message",
        hint="check the address: something else answers there",
    )
