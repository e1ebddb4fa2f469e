"""What a model gets wrong in TypeScript is found: at its type, on its page, by its code."""

from collections.abc import Sequence

import pytest
from tables import each
from typescript_sample import TYPESCRIPT, page_of, sample

from pytest_regen.sources import assemble
from pytest_regen.validation import PageText, validate_by_type

IR = sample()
INFERRED = "export type Square = z.infer<typeof Square>;"
Mistake = tuple[str, int, str, str, str]
"""Type, page, what stands there ("" for all of it), what is written instead; code and field."""


def told(
    profile: str, mistakes: Sequence[Mistake], per_page: int = 4
) -> set[tuple[str | None, int | None, str]]:
    """Return type, page and code of each issue of a source whose pages have some mistakes."""
    blocks, texts = [], {}
    for type_ in IR.types:
        starts = range(0, len(type_.units), per_page)
        units = [type_.units[start : start + per_page] for start in starts]
        pages = [page_of(type_, part, at, profile) for at, part in enumerate(units, 1)]
        for name, page, old, new, _ in mistakes:
            if name == type_.name:
                assert old in pages[page - 1], (name, page, old)
                pages[page - 1] = pages[page - 1].replace(old, new, 1) if old else new
        is_enum = type_.kind == "enum"
        blocks.append((type_.name, TYPESCRIPT.stitch(pages, name=type_.name, is_enum=is_enum).text))
        texts[type_.name] = tuple(
            PageText(at, len(pages), part, page)
            for at, (part, page) in enumerate(zip(units, pages, strict=True), 1)
        )
    source = assemble(blocks, TYPESCRIPT, profile=profile)
    results = validate_by_type(source, IR, pages=texts, profile=profile)
    return {
        (issue.type_name, issue.page, f"{issue.code} {issue.field}")
        for result in results.values()
        for issue in result.issues
        if not (issue.code == "REVIEW" and "in the document" in (issue.detail or ""))
    }


IN_INTERFACES: Sequence[Mistake] = (
    ("Kite", 1, "  metres: number;\n", "", "MISSING_FIELD metres"),
    ("Kite", 1, "maker_name: string;", "maker_name;", "WRONG_TYPE maker_name"),
    ("Kite", 2, "code?: string;", "code?: string;\n  code?: string;", "DUPLICATE_FIELD code"),
    ("Kite", 2, "born?: string;", "born: string | undefined;", "WRONG_TYPE born"),
    (
        "Kite",
        2,
        "flies?: boolean;",
        "flies?: boolean;\n  invented: string;",
        "PHANTOM_FIELD invented",
    ),
    ("Kite", 3, "knots: string[];", "knots: (string | null)[];", "NULLABILITY knots"),
    ("Kite", 3, "winds?: Wind[];", "winds?: Ghost[];", "UNDECLARED_TYPE winds"),
    ("Kite", 4, "Round | Square", "Round", "WRONG_TYPE shape"),
    (
        "Wind",
        1,
        "  gusts",
        "  [key: string]: unknown;\n  gusts",
        "PHANTOM_FIELD [key: string]: unknown",
    ),
    ("Square", 1, "interface Square", "interface SquareDto", "MISSING_CLASS None"),
    ("Colour", 1, '"sky-blue"', '"xsky-blue"', "ENUM_MEMBER sky-blue"),
    ("Colour", 2, '"grey"', '"grey" | string', "ENUM_MEMBER string"),
    ("Level", 1, "| 0", '| "0"', "ENUM_MEMBER 0"),
)
IN_SCHEMAS: Sequence[Mistake] = (
    ("Kite", 1, "  metres: z.number(),\n", "", "MISSING_FIELD metres"),
    ("Kite", 1, "z.string().min(1)", "z.coerce.string()", "WRONG_TYPE maker_name"),
    ("Kite", 2, "z.iso.date().optional()", "z.iso.date().nullish()", "NULLABILITY born"),
    ("Kite", 3, "z.array(z.string())", "z.array(z.string().optional())", "WRONG_TYPE knots"),
    ("Kite", 3, "get winds() {\n    return", "get winds() {\n    const x =", "MISSING_FIELD winds"),
    ("Kite", 4, "z.record(z.string(), ", "z.record(", "WRONG_TYPE sizes"),
    ("Kite", 4, 'Union("kind"', 'Union("tag"', "WRONG_TYPE shape"),
    ("Kite", 4, "get level()", "get level(): z.ZodTypeAny", "WRONG_TYPE level"),
    ("Kite", 5, "z.int().nullable()", "z.int()", "NULLABILITY maybe"),
    ("Wind", 1, "});", "}).partial();", "MISSING_CLASS None"),
    ("Round", 1, "const Round =", "const Round: z.ZodTypeAny =", "MISSING_CLASS None"),
    (
        "Square",
        1,
        f"\n\n{INFERRED}",
        f"\n\n{INFERRED.removeprefix('export ')}",
        "MISSING_CLASS None",
    ),
    ("Colour", 1, '  "red",\n', "", "ENUM_MEMBER red"),
    ("Level", 2, "8,", "8,\n  8,", "ENUM_MEMBER 8"),
)


@pytest.mark.parametrize(
    ("profile", "mistakes"), [("default", IN_INTERFACES), ("zod", IN_SCHEMAS)], ids=["types", "zod"]
)
def test_each_mistake_is_found_where_it_is(profile: str, mistakes: Sequence[Mistake]) -> None:
    """All in one source, since none hides another."""
    assert told(profile, mistakes) == {(name, page, code) for name, page, *_, code in mistakes}


@each("profile", ["default", "zod"])
@each(
    "mistake",
    [
        ("Kite", 1, " {\n", "\n", "SYNTAX"),
        ("Kite", 1, "maker_name:", "maker_name", "SYNTAX"),
        ("Kite", 1, '"tail-colour"', "tail-colour", "SYNTAX"),
        ("Kite", 1, "/** What", "*/ What", "SYNTAX"),
        ("Wind", 1, "from_side", "// ... other properties\n  from_side", "ARTIFACT"),
        ("Wind", 1, "export ", "Here is the code you asked for:\nexport ", "ARTIFACT"),
        ("Wind", 1, "", '{"code": "export interface Wind {}"}', "SYNTAX"),
        ("Wind", 1, "", "", "EMPTY_OUTPUT"),
        ("Round", 1, "export ", "// REVIEW: is this right?\nexport ", "REVIEW"),
        ("Colour", 1, '"red', "red", "SYNTAX"),
        ("Square", 1, "export ", "export function f() {}\nexport ", "FOREIGN_TYPE"),
    ],
)
def test_one_fault_of_a_page_is_one_issue(profile: str, mistake: Mistake) -> None:
    """A slip, what is no code, and what does not belong there."""
    name, page, *_, code = mistake

    found = told(profile, [mistake])

    assert [(of, at, words.split()[0]) for of, at, words in found] == [(name, page, code)]


@pytest.mark.parametrize("profile", ["default", "zod"])
def test_right_pages_have_no_issue(profile: str) -> None:
    """However the fields are shared among pages."""
    for per_page in (1, 3, 100):
        assert told(profile, (), per_page) == set()
