"""Prompts as the cache sees them: a chain of blocks (tools, system, messages), tokens, lookups."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_regen.canonical import canonical_json
from pytest_regen.turns.models import Model

TRAILING = 3
"""Tokens after the last block of every request; never read from or written to the cache."""
_TOOLS_OVERHEAD = 300
"""Tokens of the instructions that come with any tool."""
_FIXED = {"image": 1_600, "document": 3_000}
_WINDOW = 20
"""How many positions are looked up backwards from each breakpoint, including it."""
_LIFETIMES = {"5m": 300, "1h": 3600}


def _percent(model: Model) -> int:
    return 41 if model.is_modern else 23


def text_tokens(text: str, model: Model) -> int:
    """Return the estimated tokens of ``text``; 0 for the empty text.

    The same on every machine, as the real tokenizer is not public. Fitted to recorded traffic: 0.41
    tokens per character for models from 4.7 on, 0.23 before. Good enough to exercise limits,
    budgets and cache accounting, but no basis for figures about cost.
    """
    return -(-len(text) * _percent(model) // 100)


def fit(tokens: int, model: Model) -> int:
    """Return how many characters fit into ``tokens``."""
    return max(0, tokens) * 100 // _percent(model)


def _block_tokens(block: Mapping[str, Any], model: Model) -> int:
    """Return the estimated tokens of one content block or tool definition, at least 1."""
    match block:
        case {"type": "tool_result", "content": list(parts)}:
            sizes = [_block_tokens(part, model) for part in parts if isinstance(part, Mapping)]
            return max(1, sum(sizes))
        case (
            {"type": "text", "text": str(text)}
            | {"type": "thinking", "thinking": str(text)}
            | {"type": "tool_result", "content": str(text)}
            | {"type": "document", "source": {"type": "text", "data": str(text)}}
        ):
            return max(1, text_tokens(text, model))
        case {"type": "image" | "document" as kind}:
            return _FIXED[kind]
        case _:
            return text_tokens(canonical_json(block), model)


@dataclass(slots=True)
class Place:
    """One block of a request and its place."""

    where: str
    """As in the API's messages: ``system.0``, ``messages.2.content.1``."""
    role: str
    block: Mapping[str, Any]
    ttl: str | None = None
    """Lifetime of the breakpoint on this block, automatic or its own; ``None`` without one."""
    tokens: int = 0
    """Of the prompt up to the end of this block."""
    digest: bytes = b""
    """Of the prompt up to the end of this block."""

    @property
    def can_be_marked(self) -> bool:
        """Whether a cache breakpoint may stand on this block."""
        kind = self.block.get("type")
        is_empty = kind == "text" and not self.block.get("text")
        return kind not in {"thinking", "redacted_thinking"} and not is_empty


def ttl_of(part: Mapping[str, Any]) -> str | None:
    """Return the lifetime that a block, or the whole request, asks for; ``None`` if it does not."""
    control = part.get("cache_control")
    return str(control.get("ttl") or "5m") if isinstance(control, Mapping) else None


def prompt_of(body: Mapping[str, Any], model: Model) -> list[Place]:
    """Return the blocks of a request with the prompt up to each; up to the last it is whole."""
    # In the order in which the API reads them, because a breakpoint covers all that comes before.
    ordered = [Place(f"tools.{n}", "", tool) for n, tool in enumerate(body.get("tools") or ())]
    blocks = enumerate(as_blocks(body.get("system")))
    ordered += [Place(f"system.{n}", "", block) for n, block in blocks]
    for turn, message in enumerate(body["messages"]):
        for number, block in enumerate(as_blocks(message["content"])):
            where = f"messages.{turn}.content.{number}"
            ordered.append(Place(where, message["role"], block))
    for place in ordered:
        place.ttl = ttl_of(place.block)
    last = next((place for place in reversed(ordered) if place.can_be_marked), None)
    if last:
        last.ttl = last.ttl or ttl_of(body)
    config, thinking = body.get("output_config") or {}, dict(body.get("thinking") or {})
    thinking.pop("display", None)
    form = config.get("format")
    keeps_on_effort = model.binds_thinking and model.line != "sonnet"
    in_messages = [
        body.get("tool_choice"),
        thinking,
        None if keeps_on_effort else config.get("effort"),
        any(place.block.get("type") == "image" for place in ordered),
    ]
    # What the API renders into a section is part of each of its blocks, because a change of it
    # costs all that follows.
    rendered = {"tools": [], "system": [form], "messages": [form, *in_messages]}
    overheads = {
        True: _TOOLS_OVERHEAD,
        False: text_tokens(canonical_json(form), model) if form else 0,
    }
    # Each hash continues the one before, because a change in a block changes all that follows;
    # it begins with the model, because models share nothing.
    running, tokens = hashlib.sha256(model.id.encode()), 0
    for place in ordered:
        block, section = bare(place.block), place.where.partition(".")[0]
        # The first block of the tools brings their instructions, the first behind them the schema.
        tokens += _block_tokens(block, model) + overheads.pop(section == "tools", 0)
        text = canonical_json([rendered[section], place.role, block])
        running.update(text.encode("utf-8", "surrogatepass") + b"\0")
        place.tokens, place.digest = tokens, running.digest()
    return ordered


def as_blocks(content: object) -> list[Any]:
    """Return what a message or system prompt holds; a text is one block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def bare(block: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``block`` without any ``cache_control``, at any depth of its content."""
    kept = {key: value for key, value in block.items() if key != "cache_control"}
    if isinstance(kept.get("content"), list):
        kept["content"] = [bare(b) if isinstance(b, Mapping) else b for b in kept["content"]]
    return kept


@dataclass(frozen=True, slots=True)
class CacheUse:
    """Tokens of one request by their use of the cache; they add up to the prompt's."""

    read: int
    write_5m: int
    write_1h: int
    plain: int
    commit: Callable[[], None]
    """Makes the writes visible to other requests; called when the response begins."""


class PromptCache:
    """The prefixes that earlier requests wrote. Safe in several threads: none is removed."""

    def __init__(self) -> None:
        self._entries: dict[bytes, tuple[float, int]] = {}
        """When a prefix expires, and how long it lives after each use."""

    def look_up(self, prompt: Sequence[Place], *, now: float, minimum: int) -> CacheUse:
        """Account for one request.

        Args:
            prompt: all of its blocks, in order.
            now: when the request started, in seconds; lifetimes count from here.
            minimum: the smallest prefix that is cached, in tokens.
        """
        hit: Place | None = None
        for mark in [number for number, place in enumerate(prompt) if place.ttl]:
            for place in prompt[max(0, mark - _WINDOW + 1) : mark + 1]:
                if self._entries.get(place.digest, (now, 0))[0] > now:
                    hit = place  # The last is the longest, because breakpoints are in order.
        read = hit.tokens if hit else 0
        written = [place for place in prompt if place.ttl and place.tokens >= minimum]
        hour = max([read, *(place.tokens for place in written if place.ttl == "1h")])
        last = max([hour, *(place.tokens for place in written)])

        def commit() -> None:
            # A read refreshes what it hit, and every mark above the minimum is written.
            lives = {place.digest: _LIFETIMES[place.ttl or "5m"] for place in written}
            if hit:
                lives.setdefault(hit.digest, self._entries[hit.digest][1])
            self._entries |= {digest: (now + life, life) for digest, life in lives.items()}

        return CacheUse(read, last - hour, hour - read, prompt[-1].tokens - last, commit)
