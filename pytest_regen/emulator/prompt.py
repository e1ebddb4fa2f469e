"""Prompts as the cache sees them: a chain of blocks (tools, system, messages), tokens, lookups."""

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_regen.canonical import canonical_json
from pytest_regen.turns.models import Model

TRAILING = 3
"""Tokens after the last block of every request; never read from or written to the cache."""
TOOLS_OVERHEAD = 300
"""Tokens of the instructions that come with any tool."""
FORMAT_OVERHEAD = 150
"""Tokens of the instructions that come with structured output."""
_FIXED = {"image": 1_600, "document": 3_000}


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


def block_tokens(block: Mapping[str, Any], model: Model) -> int:
    """Return the estimated tokens of one content block or tool definition, at least 1."""
    inner = block.get("content")
    if block.get("type") == "tool_result" and isinstance(inner, list):
        parts = [part for part in inner if isinstance(part, Mapping)]
        return max(1, sum(block_tokens(part, model) for part in parts))
    if block.get("type") in _FIXED and _text_of(block) is None:
        return _FIXED[block["type"]]
    text = _text_of(block)
    return max(1, text_tokens(canonical_json(block) if text is None else text, model))


def _text_of(block: Mapping[str, Any]) -> str | None:
    """Return the text of a block; ``None`` if it is not text."""
    match block:
        case (
            {"type": "text", "text": str(text)}
            | {"type": "thinking", "thinking": str(text)}
            | {"type": "tool_result", "content": str(text)}
            | {"type": "document", "source": {"type": "text", "data": str(text)}}
        ):
            return text
        case _:
            return None


UNCACHEABLE = ("thinking", "redacted_thinking")


@dataclass(frozen=True, slots=True)
class PromptPlace:
    """One block of a request and its place."""

    where: str
    """As in the API's messages: ``system.0``, ``messages.2.content.1``."""
    section: str
    """``tools``, ``system`` or ``messages``."""
    role: str
    block: Mapping[str, Any]

    @property
    def ttl(self) -> str | None:
        """Lifetime of the breakpoint on this block; ``None`` without one."""
        return ttl_of(self.block.get("cache_control"))

    @property
    def is_in_system_prompt(self) -> bool:
        """Whether this is web search: the system prompt describes it, so it is not a tool block."""
        kind = str(self.block.get("type"))
        return self.section == "tools" and kind.startswith("web_search") and self.ttl is None

    @property
    def cites(self) -> bool:
        """Whether the request asks for citations of this block."""
        citations = self.block.get("citations")
        return isinstance(citations, Mapping) and bool(citations.get("enabled"))

    @property
    def can_be_marked(self) -> bool:
        """Whether a cache breakpoint may stand on this block."""
        kind = self.block.get("type")
        return kind not in UNCACHEABLE and not (kind == "text" and not self.block.get("text"))


@dataclass(frozen=True, slots=True)
class PromptBlock:
    """One link of the chain."""

    data: bytes
    """The hashed content: everything but the breakpoint."""
    tokens: int
    ttl: str | None
    section: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """The whole chain."""

    blocks: tuple[PromptBlock, ...]

    @property
    def tokens(self) -> int:
        """Input tokens of the request, cached or not."""
        return sum(block.tokens for block in self.blocks) + TRAILING


def ttl_of(cache_control: object) -> str | None:
    """Return the lifetime that ``cache_control`` asks for; ``None`` if absent."""
    if not isinstance(cache_control, Mapping):
        return None
    return str(cache_control.get("ttl") or "5m")


def places(body: Mapping[str, Any]) -> Iterator[PromptPlace]:
    """Yield the blocks of a request in the order in which the API reads them."""
    for number, tool in enumerate(body.get("tools") or ()):
        yield PromptPlace(f"tools.{number}", "tools", "", tool)
    for number, block in enumerate(_as_blocks(body.get("system"))):
        yield PromptPlace(f"system.{number}", "system", "", block)
    for turn, message in enumerate(body.get("messages") or ()):
        for number, block in enumerate(_as_blocks(message.get("content"))):
            where = f"messages.{turn}.content.{number}"
            yield PromptPlace(where, "messages", str(message.get("role")), block)


def automatic_place(body: Mapping[str, Any], candidates: list[PromptPlace]) -> int | None:
    """Return the index of the block that top-level ``cache_control`` marks."""
    if not isinstance(body.get("cache_control"), Mapping):
        return None
    return next((i for i in reversed(range(len(candidates))) if candidates[i].can_be_marked), None)


def prompt_of(body: Mapping[str, Any], model: Model) -> Prompt:
    """Return the chain of a valid request."""
    everything = list(places(body))
    automatic = automatic_place(body, everything)
    blocks = [
        PromptBlock(
            canonical_json([place.role, bare(place.block)]).encode("utf-8", "surrogatepass"),
            block_tokens(bare(place.block), model),
            ttl_of(body["cache_control"]) if number == automatic else place.ttl,
            place.section,
        )
        for number, place in enumerate(everything)
        if not place.is_in_system_prompt
    ]
    return Prompt(tuple(_with_overhead(blocks, body, model)))


def _with_overhead(
    blocks: list[PromptBlock], body: Mapping[str, Any], model: Model
) -> list[PromptBlock]:
    """Add what the API renders into the prompt beside its blocks to the first block it affects."""
    everything = list(places(body))
    searches = [bare(place.block) for place in everything if place.is_in_system_prompt]
    config, thinking = body.get("output_config") or {}, dict(body.get("thinking") or {})
    thinking.pop("display", None)
    # Web search counts here, because the API describes it in the system prompt.
    overhead = sum(block_tokens(tool, model) for tool in searches)
    if config.get("format"):
        overhead += FORMAT_OVERHEAD + text_tokens(canonical_json(config["format"]), model)
    # What is rendered before a section changes its hash, so a change costs all that follows.
    in_system = (
        config.get("format"),
        body.get("speed"),
        any(place.cites for place in everything),
        searches,
    )
    keeps_on_effort = model.binds_thinking and model.line != "sonnet"
    in_messages = (
        body.get("tool_choice"),
        thinking,
        None if keeps_on_effort else config.get("effort"),
        any(place.block.get("type") == "image" for place in everything),
    )
    salts: tuple[tuple[str, tuple[Any, ...], int], ...] = (
        ("tools", (), TOOLS_OVERHEAD if body.get("tools") else 0),
        ("system", in_system, overhead),
        ("messages", in_messages, 0),
    )
    for number, (_, salt, tokens) in enumerate(salts):
        reached = [section for section, _, _ in salts[number:]]
        first = next((i for i, block in enumerate(blocks) if block.section in reached), None)
        if first is not None:
            block = blocks[first]
            data = canonical_json(salt).encode("utf-8", "surrogatepass") + block.data
            blocks[first] = replace(block, data=data, tokens=block.tokens + tokens)
    return blocks


def _as_blocks(content: object) -> list[Mapping[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def bare(block: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``block`` without any ``cache_control``, at any depth of its content."""
    kept = {key: value for key, value in block.items() if key != "cache_control"}
    if isinstance(kept.get("content"), list):
        kept["content"] = [bare(b) if isinstance(b, Mapping) else b for b in kept["content"]]
    return kept


WINDOW = 20
"""How many positions are looked up backwards from each breakpoint, including it."""
LIFETIMES = {"5m": 300, "1h": 3600}


@dataclass(frozen=True, slots=True)
class CacheUse:
    """Tokens of one request by their use of the cache; they add up to the blocks' total."""

    read: int
    write_5m: int
    write_1h: int
    plain: int
    commit: Callable[[], None]
    """Makes the writes visible to other requests; called when the response begins."""

    @property
    def write(self) -> int:
        """Tokens written, with any lifetime."""
        return self.write_5m + self.write_1h


class PromptCache:
    """The prefixes that earlier requests wrote. Safe in several threads."""

    def __init__(self) -> None:
        self._entries: dict[bytes, tuple[float, int]] = {}
        """When a prefix expires, and how long it lives after each use."""
        self._lock = threading.Lock()

    def look_up(
        self, blocks: Sequence[PromptBlock], *, now: float, minimum: int, scope: str = ""
    ) -> CacheUse:
        """Account for one request.

        Args:
            blocks: the whole prompt in order.
            now: when the request started, in seconds; lifetimes count from here.
            minimum: the smallest prefix that is cached, in tokens.
            scope: prefixes are shared only within one scope: organization and model.
        """
        prefixes, sums = _chain(blocks, scope)
        # A read refreshes what it hit, and every mark above the minimum is written.
        marks = [index for index, block in enumerate(blocks) if block.ttl]
        total = sums[-1] if sums else 0
        with self._lock:
            hit = self._deepest_hit(prefixes, marks, now)
        read = sums[hit] if hit >= 0 else 0
        written = [index for index in marks if sums[index] >= minimum]
        past_1h = max([sums[i] for i in written if blocks[i].ttl == "1h"], default=read)
        hour = max(read, past_1h)
        last = max([hour, *(sums[i] for i in written)])

        def commit() -> None:
            with self._lock:
                lives = {index: LIFETIMES[blocks[index].ttl or "5m"] for index in written}
                if hit >= 0:
                    lives.setdefault(hit, self._entries[prefixes[hit]][1])
                for index, lifetime in lives.items():
                    self._entries[prefixes[index]] = (now + lifetime, lifetime)

        return CacheUse(read, last - hour, hour - read, total - last, commit)

    def _deepest_hit(self, prefixes: Sequence[bytes], marks: Sequence[int], now: float) -> int:
        """Return the last block of the longest live prefix; -1 if there is none."""
        deepest = -1
        for mark in marks:
            for index in range(mark, max(-1, mark - WINDOW), -1):
                if self._entries.get(prefixes[index], (now, 0))[0] > now:
                    deepest = max(deepest, index)
                    break
        return deepest


def _chain(blocks: Sequence[PromptBlock], scope: str) -> tuple[list[bytes], list[int]]:
    """Return, for each block, the hash of the prompt up to it and the tokens up to it."""
    # Each hash continues the one before, because a change in a block changes all that follows.
    running = hashlib.sha256(scope.encode())
    prefixes, sums, tokens = [], [], 0
    for block in blocks:
        running.update(len(block.data).to_bytes(8, "big"))
        running.update(block.data)
        prefixes.append(running.digest())
        tokens += block.tokens
        sums.append(tokens)
    return prefixes, sums
