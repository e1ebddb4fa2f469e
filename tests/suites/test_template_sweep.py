"""Real API descriptions, written by the template in every language: nothing is wrong with it."""

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
from pytest_regen.validation import validate_store
from pytest_regen.validation.stores import behaviour_of_store

RUN = [
    ("python", "default"),
    ("python", "dataclass"),
    ("python", "typeddict"),
    pytest.param("typescript", "default", marks=needs_node),
    pytest.param("typescript", "zod", marks=needs_node),
]
PROFILES = [
    ("csharp", "default"),
    ("csharp", "xchange"),
    *RUN[:3],
    ("typescript", "default"),
    ("typescript", "zod"),
]

document_at = cache(read_document)
operations_in = cache(real_operations)


def written(
    document: Document, operation: Operation, out: Path, language: str, profile: str
) -> RegenStore | None:
    """Return the store of an operation, as the template writes it.

    ``None`` for plain values, and what is broken in the document: other tests count them.
    """
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
        return None
    assert made.calls == 0
    return RegenStore.open(made.plan.path)


@pytest.mark.parametrize("every", [60, pytest.param(1, marks=pytest.mark.sweep)])
@pytest.mark.parametrize(("language", "profile"), PROFILES)
def test_nothing_is_wrong_with_it_as_it_is_read(
    shared_specs: Path, tmp_path: Path, language: str, profile: str, every: int
) -> None:
    found = []
    for number, (path, operation) in enumerate(operations_in(shared_specs)[::every]):
        store = written(document_at(path), operation, tmp_path / str(number), language, profile)
        results = validate_store(store, ignore=BEHAVIOUR_CODES) if store else {}
        found += [f"{operation}: {one}" for result in results.values() for one in result.errors]
    assert not found


@pytest.mark.parametrize("count", [20, pytest.param(100, marks=pytest.mark.sweep)])
@pytest.mark.parametrize(("language", "profile"), [RUN[0], RUN[-1]])
def test_no_type_does_json_any_harm(
    shared_specs: Path, tmp_path: Path, language: str, profile: str, count: int
) -> None:
    """Running the types of the first operations shows no fault."""
    (tmp_path / "pyproject.toml").write_text("", "utf-8")  # One cache of instances for all.
    for number, (path, operation) in enumerate(
        operations_in(shared_specs)[: 2 if count < 100 else None]
    ):
        store = written(document_at(path), operation, tmp_path / str(number), language, profile)
        if store:
            found = behaviour_of_store(store, count)
            assert found.asked == set(store.type_names), found.why_not
            assert not any(found.issues.values()), f"{operation}: {found.issues}"
