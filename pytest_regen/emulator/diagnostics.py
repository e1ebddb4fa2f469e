"""Why a request could not read the prefix of an earlier one from the cache."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_regen.canonical import canonical_hash, canonical_json
from pytest_regen.emulator.prompt import Prompt, web_search

__all__ = ["PromptHistory"]


@dataclass(frozen=True, slots=True)
class _Fingerprint:
    """An earlier request, by hashes."""

    model: str
    tools: tuple[bytes, ...]
    system: tuple[bytes, ...]
    messages: tuple[bytes, ...]
    other: str
    tokens: int

    def missed(self, later: "_Fingerprint") -> str | None:
        """Return the first difference that costs the cache, in the order of the prompt."""
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
    """Fingerprints of answered requests by message id. Safe for several threads."""

    def __init__(self) -> None:
        self._known: dict[str, _Fingerprint] = {}
        self._lock = threading.Lock()

    def remember(self, message_id: str, body: Mapping[str, Any], prompt: Prompt) -> None:
        """Keep the fingerprint of a request that was answered with ``message_id``."""
        with self._lock:
            self._known[message_id] = _fingerprint(body, prompt)

    def compare(self, body: Mapping[str, Any], prompt: Prompt) -> dict[str, Any] | None:
        """Return the ``diagnostics`` of the response, ``None`` where nothing was lost."""
        previous = (body.get("diagnostics") or {}).get("previous_message_id")
        if previous is None:
            return None
        with self._lock:
            earlier = self._known.get(previous)
        if earlier is None:
            return {"cache_miss_reason": {"type": "previous_message_not_found"}}
        reason = earlier.missed(_fingerprint(body, prompt))
        if reason is None:
            return None
        if reason == "unavailable":
            return {"cache_miss_reason": {"type": reason}}
        missed = {"type": reason, "cache_missed_input_tokens": earlier.tokens}
        return {"cache_miss_reason": missed}


def _fingerprint(body: Mapping[str, Any], prompt: Prompt) -> _Fingerprint:
    def section(name: str) -> tuple[bytes, ...]:
        return tuple(
            block.data.rpartition(b"\0")[2] for block in prompt.blocks if block.section == name
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
