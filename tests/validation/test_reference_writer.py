"""A writer that knows nothing of the validator: right in every style, wrong in every way."""

from collections import defaultdict

import pytest
from kite_ir import kite_ir
from reference_writer import MISTAKES, STYLES, ReferenceWriter, Style, request_body
from tables import each

from pytest_regen.languages import find_language
from pytest_regen.prompts import PromptEntry, build_prompts
from pytest_regen.sources import assemble, extract_code, stitch
from pytest_regen.validation import Issue, PageText, validate_by_type

CSHARP = find_language("csharp")
IR = kite_ir()
PROMPTS = build_prompts(IR, language=CSHARP, fields_per_page=4)
CODES_OF_A_BAD_REPLY = {"elided_rest", "cut_short"}
"""Mistakes that are several faults at once, and reported as several."""


def issues_of(writer: ReferenceWriter) -> list[Issue]:
    """Return what is said about the store that a writer writes."""
    pages: defaultdict[str, list[PageText]] = defaultdict(list)
    for entry in PROMPTS:
        reply = writer(request_body(entry.system, entry.user))
        code = extract_code(reply, language=CSHARP)
        pages[entry.type_name].append(PageText(entry.page, entry.total_pages, entry.fields, code))
    kinds = {type_.name: type_.kind for type_ in IR.types}
    blocks = [
        (
            name,
            stitch(
                [page.output for page in written], name=name, is_enum=kinds[name] == "enum"
            ).text,
        )
        for name, written in pages.items()
    ]
    results = validate_by_type(assemble(blocks), IR, pages=pages)
    return [issue for result in results.values() for issue in result.issues]


@each("style", STYLES, ids=lambda style: style.name)
def test_every_style_is_clean(style: Style) -> None:
    """No style of the writer raises a false alarm, hostile descriptions and all."""
    assert issues_of(ReferenceWriter(style)) == []


@pytest.mark.parametrize("mistake", MISTAKES)
def test_every_mistake_is_found_on_its_page(mistake: str) -> None:
    """The right code, type, page and field; nothing is said about any other page."""
    target = _target(mistake)
    if target is None:
        pytest.skip("no page of this IR has room for the mistake")
    writer = ReferenceWriter(0, mistake=mistake, target=(target.type_name, target.page))
    expected = writer.expectation(request_body(target.system, target.user))
    assert expected is not None

    found = issues_of(writer)

    assert {(issue.type_name, issue.page) for issue in found} == {
        (expected.type_name, expected.page)
    }
    assert all(any(issue.code in codes for issue in found) for codes in expected.codes)
    if expected.fields:
        assert {issue.field for issue in found} & set(expected.fields)
    if mistake not in CODES_OF_A_BAD_REPLY:
        assert len(found) == len(expected.codes)


def _target(mistake: str) -> PromptEntry | None:
    """Return the last page that the mistake can be made on."""
    probe = ReferenceWriter(0, mistake=mistake)
    fitting = [
        entry for entry in PROMPTS if probe.expectation(request_body(entry.system, entry.user))
    ]
    return fitting[-1] if fitting else None
