"""A request of known shape beside the model that it names, for the rules to look at."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_regen.emulator.models import Model

__all__ = ["Call", "thinking_is_on"]


@dataclass(frozen=True, slots=True)
class Call:
    """One request, its fields by name."""

    body: Mapping[str, Any]
    model: Model
    version: str
    batched: bool = False
    counting: bool = False

    @property
    def thinking(self) -> Mapping[str, Any]:
        """The ``thinking`` field, empty where there is none."""
        return self.body.get("thinking") or {}

    @property
    def thinks(self) -> bool:
        """Whether the reply starts with a thinking block."""
        return thinking_is_on(self.body, self.model)

    @property
    def format(self) -> Mapping[str, Any] | None:
        """``output_config.format``."""
        return (self.body.get("output_config") or {}).get("format")

    @property
    def tool_choice(self) -> str | None:
        """``tool_choice.type``."""
        return (self.body.get("tool_choice") or {}).get("type")


def thinking_is_on(body: Mapping[str, Any], model: Model) -> bool:
    """Whether the reply to ``body`` starts with a thinking block."""
    kind = (body.get("thinking") or {}).get("type")
    return model.thinks_by_default if kind is None else kind in {"enabled", "adaptive"}
