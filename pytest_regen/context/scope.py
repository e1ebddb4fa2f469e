"""Where an issue is decided: the rules a model is given, and whether its questions keep to them."""

from collections.abc import Mapping
from typing import Final

from pytest_regen.context.questions import LocationLevel
from pytest_regen.context.text import as_data
from pytest_regen.context.values import Ask, Scope

__all__ = ["LEVEL_SCOPES", "SCOPE_EXAMPLES", "SCOPE_RULES", "scope_problem"]

SCOPE_RULES: Final[Mapping[LocationLevel, tuple[str, ...]]] = {
    "city": (
        "local government: city council, mayor, local agencies",
        "local businesses or employers",
        "issues of one neighborhood",
        "municipal services",
    ),
    "state": (
        "state legislation or policy",
        "state agencies or officials",
        "regional issues that span several cities",
        "corporations at the level of a state",
    ),
    "country": (
        "federal legislation",
        "national corporations",
        "international policy",
        "issues that are tied to no place",
    ),
}
"""When a location question asks for which level."""

SCOPE_EXAMPLES: Final[tuple[tuple[str, LocationLevel | None, str], ...]] = (
    ("6th street is insane", "city", "a neighborhood issue"),
    ("rent control laws", "state", "state legislation"),
    ("Congress needs to act", None, "already national"),
    ("Amazon workers", None, "the target is a corporation"),
)
"""What somebody wrote, the level to ask for (``None``: ask for no location), and why."""

LEVEL_SCOPES: Final[Mapping[LocationLevel, tuple[Scope, ...]]] = {
    "city": ("local",),
    "state": ("state",),
    "country": ("national", "international"),
}
"""The ``detected_scope`` with which a location question of each level agrees."""


def scope_problem(ask: Ask) -> str | None:
    """Return why the location questions of ``ask`` contradict its own inferences, or ``None``.

    A scope that was not detected contradicts nothing.
    """
    scope = ask.inferred_context.detected_scope
    if scope is None:
        return None
    fitting = next(level for level, scopes in LEVEL_SCOPES.items() if scope in scopes)
    contradicting = [
        f"question {as_data(question.id)} asks for a {question.location_level}, but detected_scope "
        f"is {scope!r}, to which location_level {fitting!r} belongs"
        for question in ask.questions
        if question.location_level not in {None, fitting}
    ]
    return "; ".join(contradicting) or None
