"""Three real API descriptions: planned, asked for exactly once, and written without false alarm."""

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from reference_writer import STYLES, ReferenceWriter, parse_request, request_body
from served_stores import (
    EXAMPLE,
    REAL_DOCUMENTS,
    SMALL_OPERATION,
    example_store,
    issues_of,
    real_operations,
    served,
)

from pytest_regen.documents import Document, Operation, read_document
from pytest_regen.documents.ir import IR
from pytest_regen.errors import DocumentDefectError
from pytest_regen.regeneration import StorePlan, generate_store, plan_store
from pytest_regen.stores import RegenStore
from pytest_regen.validation import validate_store

Asked = Counter[tuple[str, str, object]]

document_at = cache(read_document)


def planned(spec: Path, operation: Operation | str) -> StorePlan | DocumentDefectError:
    """Return the plan of an operation, or the defect that the document is refused for."""
    try:
        return plan_store(document_at(spec), operation, Path("nowhere"))
    except DocumentDefectError as error:
        return error


def plannable(specs: Path) -> list[tuple[Path, Operation]]:
    """Return the operations with a successful JSON response that makes types."""
    return [
        (spec, operation)
        for spec, operation in real_operations(specs)
        if isinstance(planned(spec, operation), StorePlan)
    ]


def asked_for(plan: StorePlan) -> Asked:
    """Return what the texts of a store's prompts ask for, as the reference writer reads them."""
    pages = [parse_request(request_body(entry.system, entry.user)) for entry in plan.prompts]
    return Counter(
        (page.type_name, "value" if page.is_enum else "field", unit.wire)
        for page in pages
        for unit in page.units
    )


def units_of(ir: IR) -> Asked:
    return Counter(
        (type_.name, "value" if type_.kind == "enum" else "field", unit)
        for type_ in ir.types
        for unit in type_.units
    )


def reachable_names(document: Path, operation: Operation, status: str) -> set[str]:
    """Return every property name that a response can reach, found by following the raw JSON."""
    root = json.loads(document.read_bytes())
    names: set[str] = set()
    seen: set[str] = set()
    waiting = [root["paths"][operation.path][operation.method.lower()]["responses"][status]]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            reference = node.get("$ref")
            if isinstance(reference, str) and reference not in seen:
                seen.add(reference)
                waiting.append(target_of(root, reference))
            if isinstance(node.get("properties"), dict):
                names |= node["properties"].keys()
        children = node.values() if isinstance(node, dict) else node
        waiting += [child for child in children if isinstance(child, dict | list)]
    return names


def target_of(root: Any, reference: str) -> Any:
    for step in reference.removeprefix("#/").split("/"):
        root = root[step.replace("~1", "/").replace("~0", "~")]
    return root


def check_plans(specs: Path, step: int) -> Counter[str]:
    """Plan every ``step``-th operation and check what its prompts ask for; return the counts."""
    counts: Counter[str] = Counter()
    for spec, operation in real_operations(specs)[::step]:
        plan = planned(spec, operation)
        counts["operations"] += 1
        if isinstance(plan, DocumentDefectError):
            assert str(operation) in plan.what
            assert plan.why
            assert plan.hint
            counts["named defects"] += 1
            continue
        asked = asked_for(plan)
        assert asked == units_of(plan.ir), f"{spec.name} {operation}"
        assert set(asked.values()) == {1}, f"{spec.name} {operation}"
        counts["types"] += len(plan.ir.types)
    return counts


@pytest.mark.parametrize(("step", "most"), [(9, 20), pytest.param(1, 200, marks=pytest.mark.sweep)])
def test_a_plan_asks_for_each_field_and_value_once(
    shared_specs: Path, step: int, most: int
) -> None:
    """Planned or refused with the defect named; the prompts hold the closure exactly once."""
    counts = check_plans(shared_specs, step)

    assert counts["operations"] > most
    assert counts["named defects"] < counts["operations"] // 2


@pytest.mark.parametrize(
    "name",
    [
        # The largest takes longer than the others together.
        pytest.param(name, marks=pytest.mark.sweep) if "discord" in name else name
        for name in REAL_DOCUMENTS
    ],
)
def test_no_field_of_the_response_is_left_out(shared_specs: Path, name: str) -> None:
    """Following the raw JSON finds no property that the prompts do not ask for."""
    spec = shared_specs / name
    checked = 0
    for operation in document_at(spec).operations[::11]:
        plan = planned(spec, operation) if operation.json_statuses else None
        if not isinstance(plan, StorePlan) or plan.defects:
            continue
        asked = {str(unit) for _, kind, unit in asked_for(plan) if kind == "field"}
        expected = reachable_names(spec, operation, plan.ir.endpoint.status)
        assert asked == expected, str(operation)
        checked += 1

    assert checked


def fingerprint(plans: Iterator[StorePlan]) -> str:
    """Return one hash over all prompts of some plans, in order."""
    whole = hashlib.sha256()
    for plan in plans:
        for entry in plan.prompts:
            whole.update(json.dumps([*entry.key, entry.system, entry.user]).encode())
    return whole.hexdigest()


def sampled_plans(specs: Path, step: int) -> Iterator[StorePlan]:
    """Yield the plans of a few operations of each document, and of the example's."""
    for spec, operation in [*real_operations(specs)[::step]]:
        plan = planned(spec, operation)
        if isinstance(plan, StorePlan):
            yield plan
    for operation in document_at(EXAMPLE).operations:
        yield plan_store(document_at(EXAMPLE), operation, Path("nowhere"))


def test_prompts_are_the_same_from_run_to_run(shared_specs: Path) -> None:
    """Another process with another hash seed makes the same prompts, byte for byte."""
    program = (
        "import sys; sys.path[:0] = sys.argv[3:]\n"
        "from pathlib import Path\n"
        "from test_real_documents import fingerprint, sampled_plans\n"
        "print(fingerprint(sampled_plans(Path(sys.argv[1]), int(sys.argv[2]))))"
    )
    here = Path(__file__).parent
    folders = [str(path) for path in (shared_specs, here, here.parent / "support")]
    command = [sys.executable, "-c", program, folders[0], "40", *folders[1:]]
    environment = {**os.environ, "PYTHONHASHSEED": "1"}

    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == fingerprint(sampled_plans(shared_specs, 40))


def check_written(work: list[tuple[Path, Operation]], out: Path) -> Counter[str]:
    """Write each store in another style over HTTP; assert that nothing is found wrong."""
    counts: Counter[str] = Counter()
    with served() as server:
        for number, (spec, operation) in enumerate(work):
            style = STYLES[number % len(STYLES)]
            server.answers(ReferenceWriter(style))
            document: Document = document_at(spec)
            made = generate_store(document, operation, out / spec.stem, provider=server.provider)
            store = RegenStore.open(made.plan.path)
            assert issues_of(store) == [], f"{spec.name} {operation} in style {style.name}"
            warnings = [each for found in validate_store(store).values() for each in found.warnings]
            assert len(warnings) == len(store.ir.reviews), f"{spec.name} {operation}"
            alone = sum(len(type_.enum_values) == 1 for type_ in store.ir.types)
            assert made.calls == len(server.asked) == len(store.prompts) - alone
            assert len(store.prompts) == len(store.pages)
            assert not made.failures
            counts += Counter(stores=1, types=len(store.ir.types), pages=len(store.pages))
    return counts


def small_sample(specs: Path) -> list[tuple[Path, Operation]]:
    """Return operations of each document whose stores are written quickly, and a large one."""
    found: list[tuple[Path, Operation]] = []
    for name in REAL_DOCUMENTS:
        spec = specs / name
        plans = ((op, planned(spec, op)) for op in document_at(spec).operations[::7])
        able = (
            (spec, operation)
            for operation, plan in plans
            if isinstance(plan, StorePlan) and len(plan.prompts) <= 30
        )
        found += islice(able, 5)
    large = "POST /interactions/{interaction_id}/{interaction_token}/callback"
    return [*found, (spec, document_at(spec).find(large))]


def test_correct_stores_raise_no_alarm(shared_specs: Path, tmp_path: Path) -> None:
    """Some operations of each document, each in another style: no issue, a call per page.

    A page of an enum of one value is not asked for.
    """
    counts = check_written(small_sample(shared_specs), tmp_path)

    assert counts["stores"] >= 12


def test_the_example_raises_no_alarm_in_any_style(tmp_path: Path) -> None:
    """The shipped document, its types on several pages, in each style: no issue."""
    with served() as server:
        for style in STYLES[::4]:
            store = example_store(
                server,
                tmp_path / style.name,
                operation=SMALL_OPERATION,
                style=style,
                fields_per_page=9,
            )
            assert len(store.pages) > len(store.type_names)
            assert issues_of(store) == [], style.name


@pytest.mark.sweep
def test_all_correct_stores_raise_no_alarm(shared_specs: Path, tmp_path: Path) -> None:
    counts = check_written(plannable(shared_specs), tmp_path)

    assert counts["stores"] > 200
