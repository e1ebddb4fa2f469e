"""Faults of every kind in stored pages: each found on its page, and mended by one call for it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from reference_writer import MISTAKES, Expectation, ReferenceWriter, request_body
from reference_writer_request import PageRequest, parse_request
from served_stores import (
    Served,
    copy_of,
    errors_of,
    example_store,
    issues_of,
    served,
)

from pytest_regen.regeneration import (
    heal_store,
    partial_regenerate,
)
from pytest_regen.sources import blocks, replace_type_block
from pytest_regen.stores import RegenStore
from pytest_regen.validation.issues import Issue

Place = tuple[str, int]


@dataclass(frozen=True)
class Written:
    """A store without a fault, and who wrote it."""

    store: RegenStore
    style: int | None
    """``None``: another style for each type."""

    @property
    def pages(self) -> list[PageRequest]:
        """What its prompts ask for."""
        entries = self.store.prompts
        return [parse_request(request_body(entry.system, entry.user)) for entry in entries]

    @property
    def keys(self) -> set[Place]:
        """Every page of the store."""
        return {(entry.type_name, entry.page) for entry in self.store.prompts}

    def places(self, mistake: str) -> list[Place]:
        """Return the pages on which a mistake can be made."""
        return [page.key for page in self.pages if MISTAKES[mistake].applies(page)]


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    """An emulator for all tests of this file."""
    with served() as server:
        yield server


@pytest.fixture(scope="module")
def example(server: Served, tmp_path_factory: pytest.TempPathFactory) -> Written:
    """A store of 56 types, each in another style, with types that take several pages."""
    out = tmp_path_factory.mktemp("example")
    return Written(example_store(server, out, style=None, fields_per_page=12), None)


@pytest.fixture(scope="module")
def xchange(server: Served, tmp_path_factory: pytest.TempPathFactory) -> Written:
    """The same in the other profile, where the key is named before the class."""
    out = tmp_path_factory.mktemp("xchange")
    return Written(example_store(server, out, style=None, profile="xchange"), None)


@dataclass(frozen=True)
class Spoilt:
    """A copy of a store with one fault in it."""

    before: RegenStore
    path: Path
    place: Place
    expected: Expectation


def spoilt(written: Written, mistake: str, place: Place, server: Served, folder: Path) -> Spoilt:
    """Have one page of a copy written again, with a mistake; the writer stays at the emulator."""
    path = copy_of(written.store, folder)
    writer = ReferenceWriter(written.style, mistake=mistake, target=place)
    server.answers(writer)
    type_name, page = place
    done = partial_regenerate(
        path, [type_name], {type_name: [page]}, provider=server.provider, accept_any=True
    )
    expected = writer.expectation(server.bodies[0])
    assert expected is not None
    assert done.regenerated == [place]
    return Spoilt(written.store, path, place, expected)


def check_found(spoilt: Spoilt) -> None:
    """Assert that the fault is an error of the right code, type and page, and of nothing else."""
    errors = errors_of(RegenStore.open(spoilt.path))
    elsewhere = [issue for issue in errors if (issue.type_name, issue.page) != spoilt.place]
    assert not elsewhere, "one fault, one page"
    for codes in spoilt.expected.codes:
        assert any(issue.code in codes for issue in errors), (codes, errors)
    if spoilt.expected.fields:
        assert any(named(issue, spoilt.expected) for issue in errors), errors


def named(issue: Issue, expected: Expectation) -> bool:
    """Return whether an issue has a code and a field of the fault."""
    return issue.field in expected.fields and issue.code in frozenset().union(*expected.codes)


def check_mended(spoilt: Spoilt, server: Served) -> None:
    """Assert that one call, for the page at fault, brings back the store as it was."""
    between = RegenStore.open(spoilt.path)
    server.emulator.requests.clear()
    result = heal_store(spoilt.path, settings=server.settings, attempts=1)
    after = RegenStore.open(spoilt.path)

    assert result.stop_reasons == {spoilt.place[0]: "clean"}
    assert result.calls == len(server.bodies) == 1
    assert server.asked[0].key == spoilt.place
    assert issues_of(after) == []
    check_untouched(between, after, spoilt.place)
    assert after.source == spoilt.before.source


def check_untouched(before: RegenStore, after: RegenStore, place: Place) -> None:
    """Assert that only one block of the source and one page of the file differ."""
    type_name, page = place
    texts = [
        replace_type_block(store.source, type_name, "// the type at fault")
        for store in (before, after)
    ]
    assert texts[0] == texts[1]
    assert [block.name for block in blocks(texts[0])] == list(before.type_names)
    others = [
        [one for one in store.envelope.pages if (one.type_name, one.page) != (type_name, page)]
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
    written: Written = request.getfixturevalue("example")
    if not written.places(mistake):
        written = request.getfixturevalue("xchange")
    places = written.places(mistake)
    first = [place for place in places if (place[0], 2) in written.keys and place[1] == 1]
    later = [place for place in places if place[1] > 1]
    # Every other mistake prefers a later page; the full form makes each on many pages.
    wanted = (first, later) if list(MISTAKES).index(mistake) % 2 else (later, first)
    place = next(iter((*wanted[0][-1:], *wanted[1][-1:], *places)))

    case = spoilt(written, mistake, place, server, tmp_path)
    check_found(case)
    check_mended(case, server)
