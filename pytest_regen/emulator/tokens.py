"""An estimate of tokens, the same on every machine. The real tokenizer is not public.

Fitted to recorded traffic: 0.41 tokens per character for models from 4.7 on, 0.23 before, plus a
few per request that no cache breakpoint reaches. Good enough to exercise limits, budgets and
cache accounting; no figure about cost may be derived from it.
"""

from collections.abc import Mapping
from typing import Any

from pytest_regen.canonical import canonical_json
from pytest_regen.emulator.models import Model

__all__ = ["FORMAT_OVERHEAD", "TOOLS_OVERHEAD", "TRAILING", "block_tokens", "fit", "text_tokens"]

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
    """Return the estimated tokens of ``text``; 0 for the empty text."""
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
    """Return the text that makes up a block, ``None`` where it is something else."""
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
