"""Faults of every kind in stored pages: each found on its page, and mended by one call for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from reference_writer import MISTAKES, ReferenceWriter, request_body
from reference_writer_request import parse_request
from served_stores import Served, copy_of, errors_of, example_store, issues_of, served

from pytest_regen.regeneration import heal_store, partial_regenerate
from pytest_regen.sources import blocks, replace_type_block
from pytest_regen.stores import RegenStore

Place = tuple[str, int]


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    """An emulator for all tests of this file."""
    with served() as server:
        yield server


@pytest.fixture(scope="module")
def example(server: Served, tmp_path_factory: pytest.TempPathFactory) -> RegenStore:
    """A store of 56 types, each in another style, with types that take several pages."""
    return example_store(server, tmp_path_factory.mktemp("out"), style=None, fields_per_page=12)


@pytest.fixture(scope="module")
def xchange(server: Served, tmp_path_factory: pytest.TempPathFactory) -> RegenStore:
    """The same in the other profile, where the key is named before the class."""
    return example_store(server, tmp_path_factory.mktemp("out"), style=None, profile="xchange")


def places_for(store: RegenStore, mistake: str) -> list[Place]:
    """Return the pages on which a mistake can be made; the first pages come first."""
    pages = [parse_request(request_body(entry.system, entry.user)) for entry in store.prompts]
    keys = [page.key for page in pages if MISTAKES[mistake].applies(page)]
    return sorted(keys, key=lambda key: key[1])


def check_untouched(before: RegenStore, after: RegenStore, place: Place) -> None:
    """Assert that only one block of the source and one page of the file differ."""
    texts = [
        replace_type_block(store.source, place[0], "// the type at fault")
        for store in (before, after)
    ]
    assert texts[0] == texts[1]
    assert [block.name for block in blocks(texts[0])] == list(before.type_names)
    others = [
        [page for page in store.envelope.pages if (page.type_name, page.page) != place]
        for store in (before, after)
    ]
    assert others[0] == others[1]
    assert before.prompts == after.prompts


@pytest.mark.parametrize(
    "mistake",
    # An eighth in every run, all of them in the sweep.
    [
        pytest.param(each, marks=pytest.mark.sweep) if number % 8 else each
        for number, each in enumerate(MISTAKES)
    ],
)
def test_a_fault_is_found_on_its_page_and_mended_by_one_call(
    mistake: str, server: Served, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Each mistake on the first or on a later page of a type: found there; one call mends it."""
    store: RegenStore = request.getfixturevalue("example")
    if not places_for(store, mistake):
        store = request.getfixturevalue("xchange")
    # Every other mistake prefers a later page.
    place = places_for(store, mistake)[-(list(MISTAKES).index(mistake) // 8 % 2)]
    type_name, page = place
    path = copy_of(store, tmp_path)
    writer = ReferenceWriter(None, mistake=mistake, target=place)
    server.answers(writer)
    partial_regenerate(
        path, [type_name], {type_name: [page]}, provider=server.provider, accept_any=True
    )
    expected = writer.expectation(server.bodies[0])
    assert expected is not None

    between = RegenStore.open(path)
    errors = errors_of(between)
    server.emulator.requests.clear()
    result = heal_store(path, settings=server.settings, attempts=1)

    assert {(issue.type_name, issue.page) for issue in errors} == {place}, "one fault, one page"
    for codes in expected.codes:
        assert any(issue.code in codes for issue in errors), (codes, errors)
    if expected.fields:
        assert any(issue.field in expected.fields for issue in errors), errors
    after = RegenStore.open(path)
    assert result.stop_reasons == {type_name: "clean"}
    assert result.calls == len(server.bodies) == 1
    assert server.asked[0].key == place
    assert issues_of(after) == []
    check_untouched(between, after, place)
    assert after.source == store.source
