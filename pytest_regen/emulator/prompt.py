"""Prompts as the cache sees them: a chain of blocks (tools, system, messages), tokens, lookups."""

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pytest_regen.canonical import canonical_hash, canonical_json
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


_UNCACHEABLE = ("thinking", "redacted_thinking")


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
        return kind not in _UNCACHEABLE and not (kind == "text" and not self.block.get("text"))


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

    model: Model
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


def automatic_place(body: Mapping[str, Any], found: list[PromptPlace]) -> int | None:
    """Return the index of the block that top-level ``cache_control`` marks."""
    if not isinstance(body.get("cache_control"), Mapping):
        return None
    return next((i for i in reversed(range(len(found))) if found[i].can_be_marked), None)


def prompt_of(body: Mapping[str, Any], model: Model) -> Prompt:
    """Return the chain of a valid request."""
    found = list(places(body))
    automatic = automatic_place(body, found)
    blocks = [
        PromptBlock(
            canonical_json([place.role, bare(place.block)]).encode("utf-8", "surrogatepass"),
            block_tokens(bare(place.block), model),
            ttl_of(body["cache_control"]) if number == automatic else place.ttl,
            place.section,
        )
        for number, place in enumerate(found)
        if not place.is_in_system_prompt
    ]
    return Prompt(model, tuple(_with_overhead(blocks, body, model)))


def _with_overhead(
    blocks: list[PromptBlock], body: Mapping[str, Any], model: Model
) -> list[PromptBlock]:
    """Add what the API renders into the prompt beside its blocks to the first block it affects."""
    overhead = sum(block_tokens(tool, model) for tool in web_search(body))
    if _format(body):
        overhead += FORMAT_OVERHEAD + text_tokens(canonical_json(_format(body)), model)
    salts: tuple[tuple[str, dict[str, Any], int], ...] = (
        ("tools", {}, TOOLS_OVERHEAD if body.get("tools") else 0),
        ("system", _system_salt(body), overhead),
        ("messages", _messages_salt(body, model), 0),
    )
    order = ("tools", "system", "messages")
    for section, salt, tokens in salts:
        reached = order[order.index(section) :]
        first = next((i for i, block in enumerate(blocks) if block.section in reached), None)
        if first is not None and (salt or tokens):
            block = blocks[first]
            data = canonical_json(salt).encode("utf-8", "surrogatepass") + b"\0" + block.data
            blocks[first] = replace(block, data=data, tokens=block.tokens + tokens)
    return blocks


def web_search(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the tools that the system prompt describes."""
    return [bare(place.block) for place in places(body) if place.is_in_system_prompt]


def _format(body: Mapping[str, Any]) -> Any:
    return (body.get("output_config") or {}).get("format")


def _system_salt(body: Mapping[str, Any]) -> dict[str, Any]:
    salt = {
        "format": _format(body),
        "speed": body.get("speed"),
        "citations": any(place.cites for place in places(body)) or None,
        "web_search": web_search(body) or None,
    }
    return {key: value for key, value in salt.items() if value is not None}


def _messages_salt(body: Mapping[str, Any], model: Model) -> dict[str, Any]:
    thinking = {k: v for k, v in (body.get("thinking") or {}).items() if k != "display"}
    keeps_on_effort = model.binds_thinking and model.line != "sonnet"
    salt = {
        "tool_choice": body.get("tool_choice"),
        "thinking": thinking or None,
        "effort": None if keeps_on_effort else (body.get("output_config") or {}).get("effort"),
        "images": any(place.block.get("type") == "image" for place in places(body)) or None,
    }
    return {key: value for key, value in salt.items() if value is not None}


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


class CachedBlock(Protocol):
    """One block of a prompt, in the order tools, system, messages."""

    @property
    def data(self) -> bytes:
        """The hashed content."""

    @property
    def tokens(self) -> int:
        """Its number of tokens."""

    @property
    def ttl(self) -> str | None:
        """``5m`` or ``1h`` if it has a breakpoint."""


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


@dataclass(frozen=True, slots=True)
class _Entry:
    expires_at: float
    lifetime: int


class PromptCache:
    """The prefixes that earlier requests wrote. Safe in several threads."""

    def __init__(self) -> None:
        self._entries: dict[bytes, _Entry] = {}
        self._lock = threading.Lock()

    def look_up(
        self, blocks: Sequence[CachedBlock], *, now: float, minimum: int, scope: str = ""
    ) -> CacheUse:
        """Account for one request.

        Args:
            blocks: the whole prompt in order.
            now: when the request started, in seconds; lifetimes count from here.
            minimum: the smallest prefix that is cached, in tokens.
            scope: prefixes are shared only within one scope: organization and model.
        """
        prefixes, sums = _chain(blocks, scope)
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
                for index in written:
                    self._write(prefixes[index], now, LIFETIMES[blocks[index].ttl or "5m"])
                if hit >= 0:
                    self._write(prefixes[hit], now, self._entries[prefixes[hit]].lifetime)

        return CacheUse(read, last - hour, hour - read, total - last, commit)

    def _deepest_hit(self, prefixes: Sequence[bytes], marks: Sequence[int], now: float) -> int:
        """Return the last block of the longest live prefix; -1 if there is none."""
        deepest = -1
        for mark in marks:
            for index in range(mark, max(-1, mark - WINDOW), -1):
                entry = self._entries.get(prefixes[index])
                if entry is not None and entry.expires_at > now:
                    deepest = max(deepest, index)
                    break
        return deepest

    def _write(self, prefix: bytes, now: float, lifetime: int) -> None:
        self._entries[prefix] = _Entry(now + lifetime, lifetime)


def _chain(blocks: Sequence[CachedBlock], scope: str) -> tuple[list[bytes], list[int]]:
    """Return, for each block, the hash of the prompt up to it and the tokens up to it."""
    running = hashlib.sha256(scope.encode())
    prefixes, sums, tokens = [], [], 0
    for block in blocks:
        running.update(len(block.data).to_bytes(8, "big"))
        running.update(block.data)
        prefixes.append(running.digest())
        tokens += block.tokens
        sums.append(tokens)
    return prefixes, sums


@dataclass(frozen=True, slots=True)
class _Fingerprint:
    """The hashes of an earlier request."""

    model: str
    tools: tuple[bytes, ...]
    system: tuple[bytes, ...]
    messages: tuple[bytes, ...]
    other: str
    tokens: int

    def first_difference(self, later: "_Fingerprint") -> str | None:
        """Return the first difference that invalidates the cache, in the order of the prompt."""
        if later.model != self.model:
            return "model_changed"
        if later.tools != self.tools:
            return "tools_changed"
        if later.system != self.system:
            return "system_changed"
        if later.other != self.other:
            return "unavailable"
        if later.messages[: len(self.messages)] != self.messages:
            return "messages_changed"
        return None


class PromptHistory:
    """Fingerprints of answered requests by message id. Safe in several threads."""

    def __init__(self) -> None:
        self._known: dict[str, _Fingerprint] = {}
        self._lock = threading.Lock()

    def remember(self, message_id: str, body: Mapping[str, Any], prompt: Prompt) -> None:
        """Store the fingerprint of a request that was answered with ``message_id``."""
        with self._lock:
            self._known[message_id] = _fingerprint(body, prompt)

    def compare(self, body: Mapping[str, Any], prompt: Prompt) -> dict[str, Any] | None:
        """Return the ``diagnostics`` of the response; ``None`` if nothing was missed."""
        previous = (body.get("diagnostics") or {}).get("previous_message_id")
        if previous is None:
            return None
        with self._lock:
            earlier = self._known.get(previous)
        if earlier is None:
            return {"cache_miss_reason": {"type": "previous_message_not_found"}}
        reason = earlier.first_difference(_fingerprint(body, prompt))
        if reason is None:
            return None
        if reason == "unavailable":
            return {"cache_miss_reason": {"type": reason}}
        missed = {"type": reason, "cache_missed_input_tokens": earlier.tokens}
        return {"cache_miss_reason": missed}


def _fingerprint(body: Mapping[str, Any], prompt: Prompt) -> _Fingerprint:
    def section(name: str) -> tuple[bytes, ...]:
        return tuple(
            hashlib.sha256(block.data.rpartition(b"\0")[2]).digest()
            for block in prompt.blocks
            if block.section == name
        )

    config = body.get("output_config") or {}
    return _Fingerprint(
        canonical_hash([prompt.model.id, body.get("speed")]),
        section("tools"),
        (*section("system"), canonical_json(web_search(body)).encode("utf-8", "surrogatepass")),
        section("messages"),
        canonical_hash([config, body.get("thinking"), body.get("tool_choice")]),
        prompt.tokens,
    )
