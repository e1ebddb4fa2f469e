"""The public namespace is whole, small, and says where each name lives."""

import importlib
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from tables import each

import pytest_regen

PACKAGE = Path(pytest_regen.__file__).parent
PACKAGES = [
    importlib.import_module(".".join(("pytest_regen", *path.parent.relative_to(PACKAGE).parts)))
    for path in sorted(PACKAGE.rglob("__init__.py"))
    if {"__all__", "lazy"} & set(path.read_text("utf-8").split())
]

REQUIRED = {
    "context": (
        "SUBJECT_LINE_PROMPT ClarificationQuestion ClarifyingAgent ConversationContext "
        "InferredContext meets_confidence_threshold overall_confidence parse_request render_context"
    ),
    "regeneration": "PartialRegenResult partial_regenerate",
    "sessions": (
        "DiscardedScenario ScenarioCorrection ScenarioFeedback ScenarioGenerationResult "
        "ScenarioGeneratorSession apply_corrections build_generator_system_prompt "
        "format_feedback_message generate_scenarios generate_test_scenarios merge_replacements"
    ),
    "sources": (
        "MARKER_BEGIN MARKER_END assemble_cs extract_type_block list_type_names "
        "replace_type_block stitch_and_assemble wrap_type_block"
    ),
    "stores": "check_staleness",
    "turns": (
        "DryRunProvider extract_json generate_object_with_repair parse_json_with_schema "
        "schema_to_prompt_hint"
    ),
    "validation": "validate_by_type validate_generated_code",
}
"""Names that the three systems fix, by the package that offers each."""


def wrong() -> list[str]:
    """Return names of an ``__all__`` that its package does not offer, or offers twice."""
    return [
        f"{package.__name__}.{name}"
        for package in PACKAGES
        for name in package.__all__
        if not hasattr(package, name) or package.__all__.count(name) > 1
    ]


def hidden() -> list[str]:
    """Return names that are imported on first use and are those of a module beside them, too."""
    return [
        dotted
        for package in PACKAGES
        for name in package.__all__
        if find_spec(dotted := f"{package.__name__}.{name}") is not None
        # The modules that are offered themselves; those packages import what they offer at once.
        and getattr(getattr(package, name), "__name__", "") != dotted
        and hasattr(package, "__getattr__")
    ]


def missing() -> list[str]:
    """Return names that the requirements fix and the package of their system does not offer."""
    return [
        f"pytest_regen.{package}.{name}"
        for package, names in REQUIRED.items()
        for name in names.split()
        if name not in importlib.import_module(f"pytest_regen.{package}").__all__
    ]


@each("broken", [wrong, hidden, missing])
def test_every_public_name_is_offered_once(broken: Callable[[], list[str]]) -> None:
    """By the package that its ``__all__`` belongs to; no module takes its place."""
    assert not broken()
