"""Real API descriptions, written by the template and run: no type does JSON any harm."""

from functools import cache
from pathlib import Path

import pytest
from run_stores import needs_node
from served_stores import real_operations

from pytest_regen.documents import Document, Operation, read_document
from pytest_regen.errors import DocumentDefectError
from pytest_regen.modes import BEHAVIOUR_CODES
from pytest_regen.regeneration import generate_store
from pytest_regen.stores import RegenStore
from pytest_regen.turns import TemplateProvider
from pytest_regen.validation.stores import behaviour_of_store

PROFILES = [
    ("python", "default"),
    ("python", "dataclass"),
    ("python", "typeddict"),
    pytest.param("typescript", "default", marks=needs_node),
    pytest.param("typescript", "zod", marks=needs_node),
]
SAMPLE = 2
"""Operations, of the smallest document."""

document_at = cache(read_document)
operations_in = cache(real_operations)


def faults(
    document: Document, operation: Operation, out: Path, language: str, profile: str, *, count: int
) -> list[str]:
    """Return what running the types of an operation shows, as the template writes them."""
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
    store = RegenStore.open(made.plan.path)
    found = behaviour_of_store(store, count)
    assert found.asked == set(store.type_names), found.why_not
    return [
        f"{document.path.name} {operation}: {name}: {issue.code} {issue.message}"
        for name, issues in found.issues.items()
        for issue in issues
    ]


def all_faults(
    specs: Path, out: Path, language: str, profile: str, *, most: int | None, count: int
) -> list[str]:
    """Return the faults in the first operations of all documents."""
    (out / "pyproject.toml").write_text("", "utf-8")  # One cache of instances for all.
    found = []
    for number, (path, operation) in enumerate(operations_in(specs)[:most]):
        where = out / str(number)
        found += faults(document_at(path), operation, where, language, profile, count=count)
    return found


@pytest.mark.parametrize(("language", "profile"), [PROFILES[0], PROFILES[-1]])
def test_a_sample_is_right(shared_specs: Path, tmp_path: Path, language: str, profile: str) -> None:
    """A few operations, with a few instances."""
    assert not all_faults(shared_specs, tmp_path, language, profile, most=SAMPLE, count=20)


@pytest.mark.sweep
@pytest.mark.parametrize(("language", "profile"), PROFILES)
def test_every_operation_is_right(
    shared_specs: Path, tmp_path: Path, language: str, profile: str
) -> None:
    """All of them, with a hundred valid instances of each type where it has as many."""
    assert not all_faults(shared_specs, tmp_path, language, profile, most=None, count=100)
