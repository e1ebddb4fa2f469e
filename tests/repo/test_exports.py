"""The public namespace is whole, small, and says where each name lives."""

import importlib
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import pytest_regen

PACKAGE = Path(pytest_regen.__file__).parent
PACKAGES = [
    importlib.import_module(".".join(("pytest_regen", *path.parent.relative_to(PACKAGE).parts)))
    for path in sorted(PACKAGE.rglob("__init__.py"))
    if "__all__" in path.read_text("utf-8")
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


def test_every_public_name_is_there_once() -> None:
    """``__all__`` of each package names only what it offers, and nothing twice."""
    wrong = [
        f"{package.__name__}.{name}"
        for package in PACKAGES
        for name in package.__all__
        if not hasattr(package, name) or package.__all__.count(name) > 1
    ]

    assert not wrong


def test_no_module_takes_the_place_of_a_public_name() -> None:
    """A name that is imported on first use is not that of a module beside it."""
    hidden = [
        dotted
        for package in PACKAGES
        for name in package.__all__
        if find_spec(dotted := f"{package.__name__}.{name}") is not None
        # The modules that are offered themselves; those packages import what they offer at once.
        and getattr(getattr(package, name), "__name__", "") != dotted
        and hasattr(package, "__getattr__")
    ]

    assert not hidden


def test_the_names_of_the_three_systems_are_offered() -> None:
    """Every name that the requirements fix can be imported from the package of its system."""
    missing = [
        f"pytest_regen.{package}.{name}"
        for package, names in REQUIRED.items()
        for name in names.split()
        if name not in importlib.import_module(f"pytest_regen.{package}").__all__
    ]

    assert not missing


def test_an_unknown_name_is_refused() -> None:
    """A misspelt name is an AttributeError that shows it."""
    with pytest.raises(AttributeError, match="Nope"):
        getattr(pytest_regen, "Nope")  # noqa: B009 - the type checker refuses the plain access


def test_a_name_imports_nothing_before_it_is_used() -> None:
    """Importing the package and listing its names loads no other module of it."""
    code = (
        "import sys, pytest_regen; assert 'fail' in dir(pytest_regen); "
        "print(*(name for name in sys.modules if name.startswith('pytest_regen.')))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )

    assert result.stdout.split() == ["pytest_regen.facade"]
