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
    PLAIN_ZOD,
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
SAMPLE = ("cents", "swapped", "strips", "truncates", "enum_by_name", "sorted_tags", "zone_dropped")
"""The mistakes of the normal run."""


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
        "GET /all",
        folder / "api",
        provider=TemplateProvider(),
        language=language,
        profile=mistakes[0].profile,
        fields_per_page=FIELDS_PER_PAGE,
    )
    store = RegenStore.open(made.plan.path)
    wrong = [page for mistake in mistakes for page in pages_with(store, mistake)]
    with RegenStore.update(store.path) as tx:
        pages = [*({**store.pages, **{page.key: page for page in wrong}}).values()]
        tx.write(pages=wrong, source=store.with_content(pages, "").assembly())
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


def check_all(folder: Path, mistakes: Sequence[BehaviourMistake], language: str) -> None:
    """Hold that each mistake is found, and healed by one call."""
    broken = store_with(folder, mistakes, language)
    assert len(broken.pages) == len(mistakes)

    assert not faults_of(broken, mistakes)

    healed = heal_store(broken.path, settings=TurnSettings(provider=TemplateProvider()))

    assert len(healed.regenerated) == len(mistakes)
    assert broken.issues() == {}


def chosen(mistakes: Sequence[BehaviourMistake]) -> list[BehaviourMistake]:
    """Return those of the normal run."""
    return [mistake for mistake in mistakes if mistake.name in SAMPLE]


def test_mistakes_in_python_are_found(tmp_path: Path) -> None:
    """A sample: one run tells of each of them, and nothing else."""
    mistakes = chosen(PYTHON)

    assert not faults_of(store_with(tmp_path, mistakes, "python"), mistakes)


@pytest.mark.sweep
def test_all_mistakes_in_python_are_found(tmp_path: Path) -> None:
    """Serializers, validators, aliases, enums: all that reads as right."""
    check_all(tmp_path, PYTHON, "python")


@needs_node
@pytest.mark.sweep
def test_all_mistakes_in_zod_are_found(tmp_path: Path) -> None:
    """Checks and conditions that change what they look at."""
    check_all(tmp_path, ZOD, "typescript")


@needs_node
@pytest.mark.parametrize("mistakes", [READ_AS_RIGHT, INTERFACES], ids=["zod", "interfaces"])
def test_what_reads_as_right_typescript_is_found(
    tmp_path: Path, mistakes: Sequence[BehaviourMistake]
) -> None:
    """Limits, patterns and literals: zod and the compiler know what they take."""
    assert not faults_of(store_with(tmp_path, mistakes, "typescript"), mistakes)


@needs_node
@pytest.mark.sweep
def test_what_zod_has_a_name_for_is_found_by_reading(tmp_path: Path) -> None:
    """Nothing has to be run to see that ``trim`` makes another value."""
    broken = store_with(tmp_path, PLAIN_ZOD, "typescript")

    found = broken.issues()

    assert found.keys() == broken.pages.keys()
    assert {issue.code for issues in found.values() for issue in issues} == {"WRONG_TYPE"}


def test_there_are_enough_mistakes() -> None:
    """At least a dozen for each language, and each has a type of its own."""
    for mistakes in (PYTHON, (*ZOD, *PLAIN_ZOD)):
        assert len({mistake.type_name for mistake in mistakes}) == len(mistakes)
        assert len(mistakes) >= 12
