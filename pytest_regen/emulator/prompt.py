"""A request as the prompt cache sees it: one chain of blocks, tools, then system, then messages."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pytest_regen.canonical import canonical_json
from pytest_regen.emulator.models import Model
from pytest_regen.emulator.tokens import (
    FORMAT_OVERHEAD,
    TOOLS_OVERHEAD,
    TRAILING,
    block_tokens,
    text_tokens,
)

__all__ = ["Place", "Prompt", "PromptBlock", "bare", "places", "prompt_of", "web_search"]

_UNCACHEABLE = ("thinking", "redacted_thinking")


@dataclass(frozen=True, slots=True)
class Place:
    """One block of a request and where it stands."""

    where: str
    """As the API words it: ``system.0``, ``messages.2.content.1``."""
    section: str
    """``tools``, ``system`` or ``messages``."""
    role: str
    block: Mapping[str, Any]

    @property
    def ttl(self) -> str | None:
        """Lifetime of the breakpoint on this block, ``None`` where there is none."""
        return ttl_of(self.block.get("cache_control"))

    @property
    def is_told_in_system(self) -> bool:
        """Whether this is web search, which the system prompt describes; it is no definition."""
        kind = str(self.block.get("type"))
        return self.section == "tools" and kind.startswith("web_search") and self.ttl is None

    @property
    def cites(self) -> bool:
        """Whether citations of this block are asked for."""
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
    """What the prefix hash covers: everything but the breakpoint."""
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
    """Return the lifetime that ``cache_control`` asks for, ``None`` where it is absent."""
    if not isinstance(cache_control, Mapping):
        return None
    return str(cache_control.get("ttl") or "5m")


def places(body: Mapping[str, Any]) -> Iterator[Place]:
    """Yield the blocks of a request in the order in which the API reads them."""
    for number, tool in enumerate(body.get("tools") or ()):
        yield Place(f"tools.{number}", "tools", "", tool)
    for number, block in enumerate(_as_blocks(body.get("system"))):
        yield Place(f"system.{number}", "system", "", block)
    for turn, message in enumerate(body.get("messages") or ()):
        for number, block in enumerate(_as_blocks(message.get("content"))):
            where = f"messages.{turn}.content.{number}"
            yield Place(where, "messages", str(message.get("role")), block)


def automatic_place(body: Mapping[str, Any], found: list[Place]) -> int | None:
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
        if not place.is_told_in_system
    ]
    return Prompt(model, tuple(_salted(blocks, body, model)))


def _salted(blocks: list[PromptBlock], body: Mapping[str, Any], model: Model) -> list[PromptBlock]:
    """Fold what is rendered into the prompt besides its blocks into the first block it reaches."""
    told = sum(block_tokens(tool, model) for tool in web_search(body))
    if _format(body):
        told += FORMAT_OVERHEAD + text_tokens(canonical_json(_format(body)), model)
    salts: tuple[tuple[str, dict[str, Any], int], ...] = (
        ("tools", {}, TOOLS_OVERHEAD if body.get("tools") else 0),
        ("system", _system_salt(body), told),
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
    return [bare(place.block) for place in places(body) if place.is_told_in_system]


def _format(body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a JSON value
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
