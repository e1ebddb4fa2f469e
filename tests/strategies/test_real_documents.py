"""Types of real API descriptions have instances, and each keyword that the IR keeps is violated."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_regen.documents import build_ir, read_document
from pytest_regen.documents.ir import DocumentRef
from pytest_regen.errors import DocumentDefectError
from pytest_regen.languages import find_language
from pytest_regen.strategies.instances import Source

REAL = ("uber.swagger-2.0.json", "box-2025.openapi-3.0.json", "discord.openapi-3.1.json")


def counts_of(path: Path, step: int, language: str) -> Counter[str]:
    """Return what was drawn for the types of every ``step``-th operation; each type once."""
    document = read_document(path)
    found: Counter[str] = Counter()
    seen: set[str] = set()
    for operation in document.operations[::step]:
        try:
            ir = build_ir(document, operation, language=find_language(language)).ir
        except DocumentDefectError:
            continue
        ir = ir.model_copy(update={"document": DocumentRef(path=path.name, sha256="")})
        like: Any = SimpleNamespace(ir=ir, path=path.parent)
        source = Source(like)
        for type_ in ir.types:
            if type_.schema_id in seen:
                continue
            seen.add(type_.schema_id)
            instances = source.instances(type_.name, 100)
            found["types"] += 1
            found["valid"] += len(instances.valid)
            found["invalid"] += len(instances.invalid)
            found["without any"] += not instances.valid
            found["with a hundred"] += len(instances.valid) >= 100
            found["skipped"] += len(instances.skipped)
            check = source.plan(type_.name)
            found["refused"] += sum(not check.allows(value) for value in instances.valid)
            found["allowed"] += sum(check.allows(each.instance) for each in instances.invalid)
    return found


@pytest.mark.parametrize(
    ("name", "step"),
    [*((name, 200) for name in REAL), *(pytest.param(n, 1, marks=pytest.mark.sweep) for n in REAL)],
)
@pytest.mark.parametrize("language", ["csharp", pytest.param("python", marks=pytest.mark.sweep)])
def test_real_types_have_instances(shared_specs: Path, name: str, step: int, language: str) -> None:
    """A hundred where the schema allows that many; what is skipped is far less than what is not."""
    found = counts_of(shared_specs / name, step, language)

    assert found["without any"] == 0
    assert found["refused"] == found["allowed"] == 0
    assert found["with a hundred"] * 3 > found["types"]
    assert found["skipped"] * 20 <= found["invalid"]
