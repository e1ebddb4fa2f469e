"""Real API descriptions, written by the template in every language: nothing is wrong with it."""

from functools import cache
from pathlib import Path

import pytest
from served_stores import real_operations

from pytest_regen.documents import Document, Operation, read_document
from pytest_regen.errors import DocumentDefectError
from pytest_regen.modes import BEHAVIOUR_CODES
from pytest_regen.regeneration import generate_store
from pytest_regen.stores import RegenStore
from pytest_regen.turns import TemplateProvider
from pytest_regen.validation import validate_store

PROFILES = [
    ("csharp", "default"),
    ("csharp", "xchange"),
    ("python", "default"),
    ("python", "dataclass"),
    ("python", "typeddict"),
    ("typescript", "default"),
    ("typescript", "zod"),
]
EVERY = 60
"""Of the operations, one in so many is the sample."""


document_at = cache(read_document)
operations_in = cache(real_operations)


def faults(
    document: Document, operation: Operation, out: Path, language: str, profile: str
) -> list[str]:
    """Return what reading the types of an operation shows, as the template writes them."""
    try:
        made = generate_store(
            document,
            operation,
            out,
            provider=TemplateProvider(),
            language=language,
            profile=profile,
            ignore=BEHAVIOUR_CODES,
        )
    except DocumentDefectError:
        return []  # Plain values, or broken in the document; other tests count them.
    assert made.calls == 0
    results = validate_store(RegenStore.open(made.plan.path), ignore=BEHAVIOUR_CODES)
    return [
        f"{document.path.name} {operation}: {issue.code} {name}: {issue.message}"
        for name, result in results.items()
        for issue in result.errors
    ]


def all_faults(specs: Path, out: Path, language: str, profile: str, every: int) -> list[str]:
    """Return the faults in one of so many operations."""
    found = []
    for number, (path, operation) in enumerate(operations_in(specs)[::every]):
        found += faults(document_at(path), operation, out / str(number), language, profile)
    return found


@pytest.mark.parametrize(("language", "profile"), PROFILES)
def test_a_sample_is_clean(shared_specs: Path, tmp_path: Path, language: str, profile: str) -> None:
    """A few operations of each document."""
    assert not all_faults(shared_specs, tmp_path, language, profile, EVERY)


@pytest.mark.sweep
@pytest.mark.parametrize(("language", "profile"), PROFILES)
def test_every_operation_is_clean(
    shared_specs: Path, tmp_path: Path, language: str, profile: str
) -> None:
    """All of them: not one issue that reading the code can show."""
    assert not all_faults(shared_specs, tmp_path, language, profile, 1)
