"""Prompts as the cache sees them: a chain of blocks (tools, system, messages), tokens, lookups."""

import hashlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_regen.canonical import canonical_json
from pytest_regen.turns.models import Model

TRAILING = 3
"""Tokens after the last block of every request; never read from or written to the cache."""
_TOOLS_OVERHEAD = 300
"""Tokens of the instructions that come with any tool."""
_FORMAT_OVERHEAD = 150
"""Tokens of the instructions that come with structured output."""
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


def places(body: Mapping[str, Any]) -> list[Place]:
    """Return the blocks of a request in the order in which the API reads them."""
    tools = [Place(f"tools.{n}", "", tool) for n, tool in enumerate(body.get("tools") or ())]
    # Behind the other tools, because the API describes web search in the system prompt: whoever
    # adds it still reads the tools from the cache.
    tools.sort(key=lambda tool: str(tool.block.get("type")).startswith("web_search"))
    blocks = enumerate(as_blocks(body.get("system")))
    ordered = tools + [Place(f"system.{n}", "", block) for n, block in blocks]
    for turn, message in enumerate(body["messages"]):
        for number, block in enumerate(as_blocks(message["content"])):
            where = f"messages.{turn}.content.{number}"
            ordered.append(Place(where, message["role"], block))
    for place in ordered:
        place.ttl = ttl_of(place.block)
    last = next((place for place in reversed(ordered) if place.can_be_marked), None)
    if last:
        last.ttl = last.ttl or ttl_of(body)
    return ordered


@dataclass(frozen=True, slots=True)
class Prefix:
    """The prompt up to the end of one block."""

    digest: bytes
    tokens: int
    ttl: str | None
    """Lifetime of the breakpoint at its end."""


def prompt_of(body: Mapping[str, Any], model: Model) -> list[Prefix]:
    """Return the prefixes of a valid request, the last of which is the whole prompt."""
    ordered = places(body)
    config, thinking = body.get("output_config") or {}, dict(body.get("thinking") or {})
    thinking.pop("display", None)
    form = config.get("format")
    # Those of a document ask for citations; those of a text are the citations, in a list.
    citations = [place.block.get("citations") for place in ordered]
    cites = any(isinstance(asked, Mapping) and asked.get("enabled") for asked in citations)
    keeps_on_effort = model.binds_thinking and model.line != "sonnet"
    in_system = [form, body.get("speed"), cites]
    in_messages = [
        body.get("tool_choice"),
        thinking,
        None if keeps_on_effort else config.get("effort"),
        any(place.block.get("type") == "image" for place in ordered),
    ]
    # What the API renders into a section is part of each of its blocks, because a change of it
    # costs all that follows.
    rendered = {"tools": [], "system": in_system, "messages": in_system + in_messages}
    overheads = {
        True: _TOOLS_OVERHEAD,
        False: _FORMAT_OVERHEAD + text_tokens(canonical_json(form), model) if form else 0,
    }
    blocks = []
    for place in ordered:
        block, section = bare(place.block), place.where.partition(".")[0]
        # The first block of the tools, and the first behind them, bring their instructions.
        overhead = overheads.pop(section == "tools", 0)
        data = canonical_json([rendered[section], place.role, block])
        size = _block_tokens(block, model) + overhead
        blocks.append((data.encode("utf-8", "surrogatepass"), size, place.ttl))
    return chain(blocks, model.id)


def chain(blocks: Iterable[tuple[bytes, int, str | None]], scope: str) -> list[Prefix]:
    """Return the prefixes of a prompt.

    Args:
        blocks: the data, tokens and lifetime of each.
        scope: prefixes are shared only within one scope, the model.
    """
    # Each hash continues the one before, because a change in a block changes all that follows.
    running, tokens, prefixes = hashlib.sha256(scope.encode()), 0, []
    for data, size, ttl in blocks:
        running.update(len(data).to_bytes(8, "big") + data)
        tokens += size
        prefixes.append(Prefix(running.digest(), tokens, ttl))
    return prefixes


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
    """The prefixes that earlier requests wrote. Safe in several threads."""

    def __init__(self) -> None:
        self._entries: dict[bytes, tuple[float, int]] = {}
        """When a prefix expires, and how long it lives after each use."""
        self._lock = threading.Lock()

    def look_up(self, prompt: Sequence[Prefix], *, now: float, minimum: int) -> CacheUse:
        """Account for one request.

        Args:
            prompt: all of its prefixes, in order.
            now: when the request started, in seconds; lifetimes count from here.
            minimum: the smallest prefix that is cached, in tokens.
        """
        marks = [number for number, prefix in enumerate(prompt) if prefix.ttl]
        windows = [prompt[max(0, mark - _WINDOW + 1) : mark + 1] for mark in marks]
        with self._lock:
            alive = [
                prefix
                for window in windows
                for prefix in window
                if self._entries.get(prefix.digest, (now, 0))[0] > now
            ]
        hit = max(alive, key=lambda prefix: prefix.tokens, default=None)
        read = hit.tokens if hit else 0
        written = [prompt[mark] for mark in marks if prompt[mark].tokens >= minimum]
        hour = max([read, *(prefix.tokens for prefix in written if prefix.ttl == "1h")])
        last = max([hour, *(prefix.tokens for prefix in written)])

        def commit() -> None:
            with self._lock:
                # A read refreshes what it hit, and every mark above the minimum is written.
                lives = {prefix.digest: _LIFETIMES[prefix.ttl or "5m"] for prefix in written}
                if hit:
                    lives.setdefault(hit.digest, self._entries[hit.digest][1])
                for digest, lifetime in lives.items():
                    self._entries[digest] = (now + lifetime, lifetime)

        return CacheUse(read, last - hour, hour - read, prompt[-1].tokens - last, commit)
