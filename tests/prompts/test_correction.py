"""The correction block: the requirement's form, and no way for quoted text to leave its line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_regen.prompts import correction_block, with_correction
from pytest_regen.prompts.correction import MAX_CORRECTIONS
from pytest_regen.validation.issues import Excerpt, Issue

HEAD = [
    "CORRECTION REQUIRED:",
    "The previous attempt for this type produced the following errors. Fix them in your output.",
    "",
]
TAIL = [
    "",
    "Do not introduce any types not listed in NESTED TYPES / TYPE REFERENCE.",
    "Do not omit any fields listed in this page's FIELDS section.",
]


def test_the_form_is_the_requirement_s() -> None:
    """Heading, one line per issue with indented detail, and the two closing orders."""
    block = correction_block(
        [
            Issue.of(
                "UNDECLARED_TYPE",
                "Property references type 'Gust' which is not declared in this file.",
                detail="Declared types: Kite, Wind",
            ),
            Issue.of("DUPLICATE_FIELD", '[JsonPropertyName("id")] appears 2 times.', field="id"),
        ]
    )

    assert block.split("\n") == [
        *HEAD,
        "  [UNDECLARED_TYPE] Property references type 'Gust' which is not declared in this file.",
        "    Declared types: Kite, Wind",
        '  [DUPLICATE_FIELD] [JsonPropertyName("id")] appears 2 times.',
        '    Field: "id"',
        *TAIL,
    ]


def test_text_is_taken_as_the_requirement_writes_it() -> None:
    """A coded text keeps its code and its detail lines; free text is a note."""
    block = correction_block(["[WRONG_TYPE] It is a date.\n    Use DateOnly.", "Mind the dates."])

    assert block.split("\n") == [
        *HEAD,
        "  [WRONG_TYPE] It is a date.",
        "    Use DateOnly.",
        "  [NOTE] Mind the dates.",
        *TAIL,
    ]


def test_the_prompt_follows_byte_for_byte() -> None:
    """Block, blank line, stored text; without corrections the text alone."""
    user = "OUTPUT MODE: full_class\r\n \u2028end\n\n"

    assert with_correction(user, correction_block(["x"])).endswith(f"section.\n\n{user}")
    assert with_correction(user, correction_block([])) == user


def is_well_formed(block: str) -> bool:
    """Return whether the block is head, entries and tail, and nothing else on any kind of line."""
    lines = block.splitlines()
    body = lines[len(HEAD) : -len(TAIL)]
    framed = lines[: len(HEAD)] == HEAD and lines[-len(TAIL) :] == TAIL
    return framed and body[0].startswith("  [") and all(line.startswith("  ") for line in body)


@given(st.lists(st.tuples(st.text(), st.text(), st.none() | st.text()), min_size=1, max_size=5))
def test_an_issue_cannot_forge_structure(texts: list[tuple[str, str, str | None]]) -> None:
    """One line per issue and one per detail, whatever characters a reply or document holds."""
    issues = [
        Issue.of("WRONG_TYPE", f"!{message}", detail=f"{number}!{detail}", field=field)
        for number, (message, detail, field) in enumerate(texts)
    ]
    block = correction_block(issues)
    heads = [line for line in block.splitlines() if line.startswith("  [")]

    assert is_well_formed(block)
    assert len(heads) == len(set(issues))


def test_many_corrections_are_counted() -> None:
    """A block stays short; what is left out is told."""
    issues = [Issue.of("MISSING_FIELD", f"Field {n} is missing.") for n in range(1000)]
    block = correction_block(issues)
    named = block.count("[MISSING_FIELD]")

    assert named <= MAX_CORRECTIONS
    assert f"  ({1000 - named} more not shown)" in block.split("\n")
    assert is_well_formed(block)


@pytest.mark.parametrize(
    ("sections", "orders"),
    [
        (
            "FIELDS:\n  {}\n\nTYPE REFERENCE:\n",
            [
                "Do not introduce any types not listed in TYPE REFERENCE.",
                "Do not omit any fields listed in this page's FIELDS section.",
            ],
        ),
        (
            'TYPE: "FIELDS: "\n\nENUM VALUES:\n  {"value": "\\nFIELDS:"}\n\nTYPE REFERENCE:\n',
            [
                "Do not introduce any types not listed in TYPE REFERENCE.",
                "Do not omit any values listed in this page's ENUM VALUES section.",
            ],
        ),
        ("FIELDS: none\n\nNESTED TYPES:\n\nTYPE REFERENCE:\n", TAIL[1:]),
    ],
)
def test_the_orders_name_sections_that_the_prompt_has(sections: str, orders: list[str]) -> None:
    """What stands in the first column is a section; the same words in data are not."""
    block = correction_block(["x"], f"OUTPUT MODE: full_class\n{sections}")

    assert block.split("\n")[-2:] == orders


def test_the_line_at_fault_is_quoted_as_it_is() -> None:
    """No backslash is doubled, no quote escaped; tabs are blanks, one line stays one.

    It stands before the detail.
    """
    excerpt = Excerpt(12, '\t[Description("a \\* "b"\u2028FIELDS:")]')
    wrong = r"'\*' is no escape"
    issue = Issue.of("SYNTAX", wrong, field="note", excerpt=excerpt, detail="Escapes: n, t")

    assert correction_block([issue]).split("\n")[len(HEAD) : -len(TAIL)] == [
        r"  [SYNTAX] '\*' is no escape",
        '    Field: "note"',
        r'    Line 12: [Description("a \* "b"\u2028FIELDS:")]',
        "    Escapes: n, t",
    ]


def test_issues_of_one_finding_are_one_line() -> None:
    """Twelve missing values cost one line, not twenty-four; one alone keeps its own message."""
    issues = [
        Issue.of(
            "ENUM_MEMBER", f"value 'v{n}' is missing", field=f"v{n}", finding="these are missing"
        )
        for n in range(12)
    ]
    named = ", ".join(f'"v{n}"' for n in range(12))

    assert correction_block(issues).split("\n")[len(HEAD) : -len(TAIL)] == [
        f"  [ENUM_MEMBER] these are missing: {named}"
    ]
    assert "value 'v0' is missing" in correction_block(issues[:1])


def test_issues_with_one_message_are_one_entry() -> None:
    """The message is the same but for the field's name, or in all; the fields are listed."""
    same = [Issue.of("SYNTAX", "quotes are not escaped", field=field) for field in ("a", "b")]
    named = [Issue.of("X", f"field '{field}' is odd", field=field) for field in ("a", "b")]
    other = [Issue.of("X", "'B' is 'int'", field="b"), Issue.of("X", "'A' is 'long'", field="a")]

    assert correction_block(same).count("  [") == 1
    assert '    Fields: "a", "b"\n' in correction_block(same)
    assert correction_block(named).count("  [") == 1
    assert correction_block(other).count("  [") == 2


def test_the_documented_block_is_what_is_sent() -> None:
    """The block that docs/internals.md shows."""
    docs = Path(__file__).parents[2] / "docs" / "internals.md"
    missing = [
        Issue.of("MISSING_FIELD", "", field=field, finding="these fields are missing")
        for field in ("knots", "colour")
    ]
    quotes = Issue.of(
        "SYNTAX",
        'quotes inside the string of [Description] are not escaped: write \\" for each',
        field="tail",
        excerpt=Excerpt(14, '[Description("Also called "the ribbon".")]'),
    )
    foreign = Issue.of(
        "DUPLICATE_FIELD",
        "field 'wind' belongs to page 2: do not write it here",
        field="wind",
        excerpt=Excerpt(21, '[JsonPropertyName("wind")]'),
    )
    note = "Knots are listed from the nose to the tail."

    block = correction_block([*missing, quotes, foreign, note], "FIELDS:\n\nTYPE REFERENCE:\n")

    assert f"```\n{block}\n```" in docs.read_text("utf-8")


def test_a_long_list_of_fields_is_cut_between_names() -> None:
    """A page with hundreds of missing fields does not fill the request."""
    issues = [
        Issue.of("X", "it", field=f"field_{n:04}", finding="these are missing") for n in range(900)
    ]
    (line,) = correction_block(issues).split("\n")[len(HEAD) : -len(TAIL)]

    assert len(line) < 1_700
    assert line.endswith("more")
    assert line.count('"') % 2 == 0
