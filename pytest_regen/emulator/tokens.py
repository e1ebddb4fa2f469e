"""An estimate of tokens, the same on every machine. The real tokenizer is not public.

Fitted to recorded traffic: 0.41 tokens per character for models from 4.7 on, 0.23 before, plus a
few per request that no cache breakpoint reaches. Good enough to exercise limits, budgets and
cache accounting; no figure about cost may be derived from it.
"""

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
_IMAGE = 1_600
_PDF = 3_000


def _percent(model: Model) -> int:
    return 41 if model.is_modern else 23


def text_tokens(text: str, model: Model) -> int:
    """Return the estimated tokens of ``text``; 0 for the empty text."""
    return -(-len(text) * _percent(model) // 100)


def fit(tokens: int, model: Model) -> int:
    """Return how many characters fit into ``tokens``."""
    return max(0, tokens) * 100 // _percent(model)


def block_tokens(block: dict[str, Any], model: Model) -> int:
    """Return the estimated tokens of one content block or tool definition, at least 1."""
    return max(1, _content_tokens(block, model))


def _content_tokens(block: dict[str, Any], model: Model) -> int:
    match block:
        case {"type": "text", "text": str(text)}:
            return text_tokens(text, model)
        case {"type": "thinking", "thinking": str(text)}:
            return text_tokens(text, model)
        case {"type": "image"}:
            return _IMAGE
        case {"type": "document", "source": {"type": "text", "data": str(text)}}:
            return text_tokens(text, model)
        case {"type": "document"}:
            return _PDF
        case {"type": "tool_result", "content": str(text)}:
            return text_tokens(text, model)
        case {"type": "tool_result", "content": list(inner)}:
            return sum(block_tokens(part, model) for part in inner if isinstance(part, dict))
        case _:
            return text_tokens(canonical_json(block), model)
