"""Laws of joining pages: every member once, in order, in its type, and traceable to its page."""

from csharp_members import Sample, planned
from hypothesis import given, settings
from laws import scaled

from pytest_regen.languages import find_language
from pytest_regen.languages.base import Declaration, StitchedType
from pytest_regen.languages.csharp.tree import parse
from pytest_regen.sources import stitch

Planned = tuple[list[str], list[list[Sample]]]


def joined(outputs: list[str], *, is_enum: bool) -> StitchedType:
    """Return the pages as one type, which must be legal and without a fault."""
    stitched = stitch(outputs, name="Sample", is_enum=is_enum)
    assert stitched.faults == ()
    assert not parse(stitched.text.encode()).root_node.has_error
    return stitched


def declared(text: str) -> Declaration:
    """Return the one type that ``text`` declares."""
    (declaration,) = find_language("csharp").read(text).declarations
    assert declaration.name == "Sample"
    return declaration


def check(outputs: list[str], plan: list[list[Sample]], *, is_enum: bool) -> None:
    """Check every law on one plan."""
    stitched = joined(outputs, is_enum=is_enum)
    found = declared(stitched.text).members
    samples = [sample for page in plan for sample in page]
    assert [member.name for member in found] == [sample.name for sample in samples]
    for member, sample in zip(found, samples, strict=True):
        given_texts = [
            each.arguments[0] for each in member.attributes if each.name == "Description"
        ]
        assert given_texts == ([] if sample.description is None else [sample.description])
    pages = [number for number, page in enumerate(plan, 1) for _ in page]
    assert [stitched.line_pages[member.line - 1] for member in found] == pages


@given(planned(is_enum=False))
@settings(max_examples=scaled(50))
def test_members_of_all_pages_stand_once_in_order(case: Planned) -> None:
    """However pages are written, their members are the type's members, with their text."""
    check(*case, is_enum=False)


@given(planned(is_enum=True))
def test_enum_values_of_all_pages_stand_once_in_order(case: Planned) -> None:
    """Commas between enum pages are added exactly where they lack."""
    check(*case, is_enum=True)


@given(planned(is_enum=False) | planned(is_enum=True).map(lambda case: (case[0], [])))
@settings(max_examples=scaled(60))
def test_each_line_is_a_line_of_its_page(case: Planned) -> None:
    """Every stitched line is found on the page and line that the result names."""
    outputs, plan = case
    stitched = stitch(outputs, name="Sample", is_enum=not plan)
    pages = [output.removeprefix("\ufeff").replace("\r\n", "\n").split("\n") for output in outputs]
    lines = stitched.text.split("\n")
    assert len(lines) == len(stitched.line_pages) == len(stitched.page_lines)
    for text, page, line in zip(lines, stitched.line_pages, stitched.page_lines, strict=True):
        bare = text.strip().replace(",", "")
        assert bare in pages[page - 1][line - 1].replace(",", "")
