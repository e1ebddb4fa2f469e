"""What only running the code shows is found in one run, and mended by one call for each page.

All mistakes of a profile are in one store, a type for each, beside right types: nothing but what is
wrong may be told of, at its type and on its page.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from behaviour_mistakes import (
    INTERFACES,
    PYTHON,
    READ_AS_RIGHT,
    ZOD,
    BehaviourMistake,
    document_with,
)
from run_stores import needs_node

from pytest_regen.regeneration import TurnSettings, generate_store, heal_store
from pytest_regen.stores import RegenStore, StoredPage
from pytest_regen.turns.providers import TemplateProvider
from pytest_regen.validation import validate_store
from pytest_regen.validation.issues import Issue

FIELDS_PER_PAGE = 11
"""So that most types have two pages."""


@dataclass
class Broken:
    """A store with mistakes, and the page that each of them is on."""

    path: Path
    pages: dict[str, int]

    def issues(self) -> dict[str, list[Issue]]:
        """Return what is wrong, by type; hints for people are no faults."""
        return {
            name: issues
            for name, result in validate_store(RegenStore.open(self.path)).items()
            if (issues := [issue for issue in result.issues if issue.severity == "error"])
        }


def store_with(folder: Path, mistakes: Sequence[BehaviourMistake], language: str) -> Broken:
    """Return a store that the template wrote, with each mistake in the type made for it."""
    document = folder / "api.json"
    document.write_text(json.dumps(document_with(tuple(mistakes))), "utf-8")
    made = generate_store(
        document,
        "GET /things",
        folder / "api",
        provider=TemplateProvider(),
        language=language,
        profile=mistakes[0].profile,
        fields_per_page=FIELDS_PER_PAGE,
    )
    store = RegenStore.open(made.plan.path)
    wrong = [page for mistake in mistakes for page in pages_with(store, mistake)]
    with RegenStore.update(store.path) as tx:
        tx.write(pages=wrong)
        tx.write(source=tx.store.assembly())
    return Broken(store.path, {page.key.type_name: page.key.page for page in wrong})


def pages_with(store: RegenStore, mistake: BehaviourMistake) -> Iterator[StoredPage]:
    """Yield the page of a store that has a mistake: the first where it can be made."""
    for entry in store.prompts_of(mistake.type_name):
        page = store.pages[entry.key]
        text = mistake.make(page.output)
        if text is not None:
            yield StoredPage.of(
                entry,
                text,
                model="model-a",
                type_hash=page.type_hash,
                generated_at="2026-01-02T03:04:05Z",
            )
            return
    pytest.fail(f"{mistake.name} cannot be made on any page of {mistake.type_name}")


def faults_of(broken: Broken, mistakes: Sequence[BehaviourMistake]) -> list[str]:
    """Return what is not told of as it must be: nothing more, nothing less, in the right place."""
    found = broken.issues()
    names = {mistake.type_name: mistake for mistake in mistakes}
    faults = [f"{name} is right: {found[name]}" for name in found if name not in names]
    for name, mistake in names.items():
        own = found.get(name, [])
        told = {
            issue.page
            for issue in own
            if issue.code in mistake.codes and (not mistake.fields or issue.field in mistake.fields)
        }
        if told != {broken.pages[name]} or {issue.page for issue in own} != told:
            faults.append(f"{mistake.name}: {own}")
    return faults


def test_mistakes_in_python_are_found_and_mended(tmp_path: Path) -> None:
    """Serializers, validators, aliases, enums: all that reads as right; one call mends each."""
    broken = store_with(tmp_path, PYTHON, "python")
    assert len(broken.pages) == len(PYTHON)

    assert not faults_of(broken, PYTHON)

    healed = heal_store(broken.path, settings=TurnSettings(provider=TemplateProvider()))

    assert len(healed.regenerated) == len(PYTHON)
    assert broken.issues() == {}


@needs_node
@pytest.mark.parametrize(
    "mistakes", [ZOD, READ_AS_RIGHT, INTERFACES], ids=["checks", "zod", "interfaces"]
)
def test_what_reads_as_right_typescript_is_found(
    tmp_path: Path, mistakes: Sequence[BehaviourMistake]
) -> None:
    """Checks, limits, patterns and literals: zod and the compiler know what they take."""
    assert not faults_of(store_with(tmp_path, mistakes, "typescript"), mistakes)
