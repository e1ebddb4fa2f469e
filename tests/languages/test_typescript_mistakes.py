"""What a model gets wrong in TypeScript is found: at its type, on its page, by its code."""

import pytest
from typescript_mistakes import MISTAKES, TYPESCRIPT, Mistake, Page, page_of
from typescript_sample import sample

from pytest_regen.sources import assemble
from pytest_regen.validation import PageText, validate_by_type

IR = sample()


def right_pages(profile: str, per_page: int) -> dict[str, list[Page]]:
    """Return the right pages of all types."""
    return {
        type_.name: [
            page_of(type_, type_.units[start : start + per_page], number, profile)
            for number, start in enumerate(range(0, max(len(type_.units), 1), per_page), 1)
        ]
        for type_ in IR.types
    }


def issues_of(
    pages: dict[str, list[Page]], profile: str
) -> list[tuple[str, str | None, int | None]]:
    """Return code, type and page of each issue of a source that is made of pages."""
    blocks = [
        (
            name,
            TYPESCRIPT.stitch(
                [page.text for page in own], name=name, is_enum=own[0].type_.kind == "enum"
            ).text,
        )
        for name, own in pages.items()
    ]
    texts = {
        name: tuple(PageText(page.number, len(own), page.units, page.text) for page in own)
        for name, own in pages.items()
    }
    source = assemble(blocks, TYPESCRIPT, profile=profile)
    results = validate_by_type(source, IR, pages=texts, profile=profile)
    return [
        (issue.code, issue.type_name, issue.page)
        for result in results.values()
        for issue in result.issues
        if not (issue.code == "REVIEW" and "in the document" in (issue.detail or ""))
    ]


@pytest.mark.parametrize(
    ("mistake", "profile"),
    [
        pytest.param(mistake, profile, id=f"{profile}-{mistake.name}")
        for mistake in MISTAKES
        for profile in mistake.profiles
    ],
)
def test_a_mistake_is_found(mistake: Mistake, profile: str) -> None:
    """On the first page where it can be made; nothing is said of other types."""
    pages = right_pages(profile, 4)
    page, wrong = next(
        (page, wrong)
        for own in pages.values()
        for page in own
        if (wrong := mistake.make(page)) is not None
    )
    name = page.type_.name
    pages[name][page.number - 1] = page._replace(text=wrong)

    issues = issues_of(pages, profile)

    assert mistake.codes & {code for code, *place in issues if place == [name, page.number]}, wrong
    assert {type_name for _, type_name, _ in issues} == {name}


@pytest.mark.parametrize("profile", ["default", "zod"])
@pytest.mark.parametrize("per_page", [1, 3, 100])
def test_right_pages_have_no_issue(profile: str, per_page: int) -> None:
    """However the fields are shared among pages."""
    assert issues_of(right_pages(profile, per_page), profile) == []
