"""What a model gets wrong in TypeScript is found: at its type, on its page, by its code."""

from collections.abc import Iterator, Sequence

import pytest
from typescript_mistakes import MISTAKES, TYPESCRIPT, Mistake, Page, page_of
from typescript_sample import sample

from pytest_regen.documents.ir import IR, EnumValue, TypeIR
from pytest_regen.sources import assemble
from pytest_regen.validation import PageText, validate_by_type

IR_OF_ALL = sample()


def parts(type_: TypeIR, per_page: int) -> Iterator[Sequence[EnumValue]]:
    """Yield the units of each page."""
    for start in range(0, max(len(type_.units), 1), per_page):
        yield type_.units[start : start + per_page]


def pages_of(type_: TypeIR, profile: str, per_page: int) -> list[Page]:
    """Return the right pages of a type."""
    return [
        page_of(type_, units, number, profile)
        for number, units in enumerate(parts(type_, per_page), 1)
    ]


class Right:
    """A store of right pages, of which one is replaced by a wrong one."""

    def __init__(self, ir: IR, profile: str, per_page: int) -> None:
        self.ir, self.profile = ir, profile
        self.pages = {type_.name: pages_of(type_, profile, per_page) for type_ in ir.types}
        self.blocks = {name: self.joined(pages) for name, pages in self.pages.items()}

    def joined(self, pages: Sequence[Page], *, wrong: tuple[int, str] = (0, "")) -> str:
        """Return a type as its pages make it."""
        texts = [wrong[1] if page.number == wrong[0] else page.text for page in pages]
        is_enum = pages[0].type_.kind == "enum"
        return TYPESCRIPT.stitch(texts, name=pages[0].type_.name, is_enum=is_enum).text

    def issues(self, page: Page, wrong: str) -> list[tuple[str, str | None, int | None]]:
        """Return code, type and page of each issue of the store with one wrong page."""
        name = page.type_.name
        pages = self.pages[name]
        blocks = self.blocks | {name: self.joined(pages, wrong=(page.number, wrong))}
        texts = tuple(
            PageText(
                each.number,
                len(pages),
                each.units,
                wrong if each.number == page.number else each.text,
            )
            for each in pages
        )
        source = assemble(list(blocks.items()), TYPESCRIPT, profile=self.profile)
        results = validate_by_type(source, self.ir, pages={name: texts}, profile=self.profile)
        return [
            (issue.code, issue.type_name, issue.page)
            for result in results.values()
            for issue in result.issues
            if not (issue.code == "REVIEW" and "in the document" in (issue.detail or ""))
        ]


@pytest.fixture(scope="module")
def stores() -> dict[str, Right]:
    """Return the sample in both profiles, its types on pages of four."""
    return {profile: Right(IR_OF_ALL, profile, 4) for profile in ("default", "zod")}


CASES = [
    pytest.param(mistake, profile, id=f"{profile}-{mistake.name}")
    for mistake in MISTAKES
    for profile in mistake.profiles
]


def faults_of(store: Right, mistake: Mistake, page: Page) -> list[str]:
    """Return why a mistake is not told as it must be; nothing where it cannot be made."""
    wrong = mistake.make(page)
    if wrong is None:
        return []
    found = store.issues(page, wrong)
    what = f"{mistake.name} ({store.profile}) in {page.type_.name}, page {page.number}: {found}"
    own = [code for code, name, number in found if (name, number) == (page.type_.name, page.number)]
    if not mistake.codes & set(own):
        return [f"{what}\n{wrong}"]
    apart = [each for each in found if each[1] != page.type_.name]
    return [f"{what}: other types are told of it"] if apart else []


@pytest.mark.parametrize(("mistake", "profile"), CASES)
def test_a_mistake_is_found(stores: dict[str, Right], mistake: Mistake, profile: str) -> None:
    """On the first page where it can be made: its code, its type and its page."""
    store = stores[profile]
    pages = (page for pages in store.pages.values() for page in pages)
    page = next(page for page in pages if mistake.make(page) is not None)

    assert not faults_of(store, mistake, page)


@pytest.mark.parametrize("profile", ["default", "zod"])
@pytest.mark.parametrize("per_page", [1, 3, 100])
def test_right_pages_have_no_issue(profile: str, per_page: int) -> None:
    """However the fields are shared among pages."""
    store = Right(IR_OF_ALL, profile, per_page)

    for pages in store.pages.values():
        assert store.issues(pages[0], pages[0].text) == []
