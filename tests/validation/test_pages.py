"""An issue is put on the page at fault: by what was asked of it, and by the lines it wrote."""

import pytest
from ships import in_pages
from tables import each

FIRST = """\
public class ShipDataObject
{
    [JsonPropertyName("id")]
    public required long Id { get; init; }
}
"""
SECOND = """\
// BEGIN_FIELDS
    [JsonPropertyName("name")]
    public string? Name { get; init; }
// END_FIELDS
"""
THIRD = """\
[JsonPropertyName("flag")]
public required Flag Flag { get; init; }
"""
PAGES = [FIRST, SECOND, THIRD]
NAME = SECOND.split("\n", 1)[1].rsplit("//", 1)[0]
ASKED = [["id"], ["name"], ["flag"]]
VALUES = [
    (
        "[JsonConverter(typeof(JsonStringEnumConverter))]\n"
        'public enum Flag\n{\n    [JsonStringEnumMemberName("red")]\n    Red,\n}\n'
    ),
    '[JsonStringEnumMemberName("light-green")]\nLightGreen,\n',
]
ASKED_VALUES = [["red"], ["light-green"]]


def broken(page: int, old: str, new: str) -> list[str]:
    """Return the pages with a text of one replaced."""
    assert old in PAGES[page - 1]
    changed = list(PAGES)
    changed[page - 1] = changed[page - 1].replace(old, new, 1)
    return changed


def test_right_pages_are_clean() -> None:
    """Pages of a type are joined and checked as one."""
    assert in_pages(PAGES, ASKED) == []
    assert in_pages(VALUES, ASKED_VALUES, name="Flag") == []


@each(
    ("page", "old", "new", "code"),
    [
        (
            2,
            "    [Json",
            '    [JsonPropertyName("x")] public int? X { get; set; }\n    [Json',
            "PHANTOM_FIELD",
        ),
        (
            1,
            "    [Json",
            '    [JsonPropertyName("flag")] public Flag Colour { get; set; }\n    [Json',
            "DUPLICATE_FIELD",
        ),
        (3, "init; }", "init; }\n}", "SYNTAX"),
        (3, "[Json", "// [REVIEW: sure?]\n[Json", "REVIEW"),
    ],
)
def test_one_fault_is_one_issue_of_its_page(page: int, old: str, new: str, code: str) -> None:
    """Whatever is wrong, the page that did it is named, and no other."""
    found = in_pages(broken(page, old, new), ASKED)

    assert [(issue.code, issue.page) for issue in found] == [(code, page)]


@pytest.mark.parametrize("page", [1, 2])
@pytest.mark.parametrize("text", ["", "// nothing to declare\n"])
def test_an_empty_page_is_one_issue(page: int, text: str) -> None:
    """What an empty page lacks is reported at once, not field by field."""
    pages = list(PAGES)
    pages[page - 1] = text

    found = in_pages(pages, ASKED)

    assert [(issue.code, issue.page) for issue in found] == [("EMPTY_OUTPUT", page)]
    assert ASKED[page - 1][0] in found[0].message


@pytest.mark.parametrize("page", [1, 2])
@pytest.mark.parametrize("length", [0.3, 0.8])
def test_a_page_cut_short_is_one_issue(page: int, length: float) -> None:
    """That a truncated page is illegal and lacks fields follows from it."""
    pages = list(PAGES)
    pages[page - 1] = pages[page - 1][: int(len(pages[page - 1]) * length)]

    found = in_pages(pages, ASKED, stop_reasons={page: "max_tokens"})

    assert [(issue.code, issue.page) for issue in found] == [("TRUNCATED", page)]


def test_a_field_that_no_page_was_asked_for_is_unfixable() -> None:
    """Asking again could not bring it."""
    pages = broken(2, NAME, "    // x\n")

    found = in_pages(pages, [["id"], [], ["flag"]])

    assert ("UNFIXABLE", "name") in [(issue.code, issue.field) for issue in found]


def test_values_of_an_enum() -> None:
    """A missing value belongs to the page asked for it, an invented one to its writer."""
    missing = in_pages([VALUES[0], "// x\nOther,\n"], ASKED_VALUES, name="Flag")
    invented = in_pages(
        [VALUES[0].replace("Red,", "Red,\n    Mauve,"), VALUES[1]], ASKED_VALUES, name="Flag"
    )

    assert [(issue.code, issue.page) for issue in missing] == [("ENUM_MEMBER", 2)] * 2
    (issue,) = invented
    assert (issue.code, issue.page, issue.field) == ("ENUM_MEMBER", 1, "Mauve")


def test_a_field_of_another_page_is_not_to_be_kept() -> None:
    """The page that was not asked for it learns whose it is; the page that was has no issue."""
    flag = '    [JsonPropertyName("flag")] public required Flag Flag { get; init; }\n'
    (issue,) = in_pages(broken(1, "    [Json", f"{flag}    [Json"), ASKED)

    assert (issue.page, issue.message) == (
        1,
        "field 'flag' belongs to page 3: do not write it here",
    )
    assert issue.detail is None


@pytest.mark.parametrize(
    ("page", "old", "new", "line", "text"),
    [
        (2, "get; init;", "get; init", 3, "public string? Name { get; init }"),
        (3, "required Flag", "required Flagg", 2, "public required Flagg Flag { get; init; }"),
    ],
)
def test_an_issue_quotes_the_line_of_its_page(
    page: int, old: str, new: str, line: int, text: str
) -> None:
    """A model knows the lines of its own answer, not those of the joined source."""
    (issue,) = in_pages(broken(page, old, new), ASKED)

    assert issue.excerpt is not None
    assert (issue.excerpt.line, issue.excerpt.text) == (line, text)
    assert "excerpt" not in issue.to_json()


def test_an_illegal_member_is_named() -> None:
    """What is illegal in a member names its field; a lost brace of the class names none."""
    (semicolon,) = in_pages(broken(2, "get; init;", "get; init"), ASKED)
    (attribute,) = in_pages(broken(2, '("name")', '("name"'), ASKED)
    (brace,) = in_pages(broken(1, "init; }\n}", "init; }\n"), ASKED)

    assert (semicolon.field, attribute.field, brace.field) == ("name", "name", None)
