"""How sure the agent was: figures for tests and reports. Nothing is decided by them at run time."""

from typing import Final, Literal

from pytest_regen.context.values import InferredContext

__all__ = [
    "CONFIDENT",
    "Dimension",
    "least_confident_dimensions",
    "meets_confidence_threshold",
    "overall_confidence",
]

Dimension = Literal["location", "scope", "target_type"]

CONFIDENT: Final = 0.7
"""From here on a dimension needs no question."""

_MOST: Final = 2


def _confidences(inferred: InferredContext) -> dict[Dimension, float]:
    return {
        "location": inferred.location_confidence,
        "scope": inferred.scope_confidence,
        "target_type": inferred.target_type_confidence,
    }


def overall_confidence(inferred: InferredContext) -> float:
    """Return the mean of the three dimensions; urgency does not count."""
    values = _confidences(inferred).values()
    return sum(values) / len(values)


def meets_confidence_threshold(inferred: InferredContext, threshold: float = CONFIDENT) -> bool:
    """Return whether every dimension, not their mean, reaches ``threshold``."""
    return all(value >= threshold for value in _confidences(inferred).values())


def least_confident_dimensions(inferred: InferredContext) -> tuple[Dimension, ...]:
    """Return the at most two dimensions below ``CONFIDENT``, the least sure first."""
    below = [(value, name) for name, value in _confidences(inferred).items() if value < CONFIDENT]
    # Sorting is stable: of equals, the one named first in InferredContext comes first.
    return tuple(name for _, name in sorted(below, key=lambda pair: pair[0])[:_MOST])
