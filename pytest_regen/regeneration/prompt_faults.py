"""Errors that the prompts themselves ask for: one finding for all types that have one.

A prompt of a type orders each spelling. Where that spelling is wrong, every type that uses it fails
in the same way, and a reply that follows its prompt fails again. ``View.ordered`` finds such errors
without a call; here they become one fault of the prompts.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from pytest_regen.text import join_names, plural
from pytest_regen.validation.issues import Issue

SPELLING_ADVICE: Final = (
    "change the spelling that the prompts ask for: by the type or format in the API description, "
    "another --profile, or the language itself; then pytest-regen generate"
)


@dataclass(frozen=True, slots=True)
class PromptFault:
    """One fault of the prompts, with all places that it stands for."""

    code: str
    """Of the issues that show it."""
    finding: str
    """What is wrong, in words that hold for all places; else the message of the first."""
    places: tuple[tuple[str, str | None], ...]
    """Names of types, each with a field where the issue is about one."""

    @property
    def types(self) -> tuple[str, ...]:
        """The types that have it."""
        return tuple(dict.fromkeys(name for name, _ in self.places))

    def __str__(self) -> str:
        where = [name if field is None else f"{name}.{field}" for name, field in self.places]
        return (
            f"{self.code} in {plural(len(self.types), 'type')}, {join_names(where, 'and')}: it is "
            f"what the prompts ask for, so that no reply can correct it: {self.finding}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {
            "code": "UNFIXABLE",
            "issue": self.code,
            "finding": self.finding,
            "places": [{"type_name": name, "field": field} for name, field in self.places],
            "next": SPELLING_ADVICE,
        }


def prompt_faults(issues: Iterable[tuple[str, Issue]]) -> tuple[PromptFault, ...]:
    """Return issues that prompts ask for as faults of the prompts.

    Args:
        issues: each with the name of its type.
    """
    words: dict[tuple[str, str | None], str] = {}
    places: dict[tuple[str, str | None], dict[tuple[str, str | None], None]] = {}
    for name, issue in issues:
        key = issue.code, issue.finding
        words.setdefault(key, issue.finding or issue.message)
        places.setdefault(key, {})[name, issue.field] = None
    return tuple(PromptFault(key[0], words[key], tuple(places[key])) for key in words)
