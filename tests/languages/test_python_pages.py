"""Pages of Python as models write them, joined."""

from tables import each

from pytest_regen.languages import find_language

PYTHON = find_language("python")
FIRST = "class T(ApiModel):\n    a: int"


@each(
    "page",
    [
        "# BEGIN_FIELDS\n    b: str\n# END_FIELDS",
        "b: str",
        "\tb: str",
        "class T(ApiModel):\n    b: str",
        "Of course:\n# BEGIN_FIELDS\n    b: str\n# END_FIELDS\nDone.",
    ],
)
def test_fields_are_joined_whatever_is_around_them(page: str) -> None:
    """Delimiters, the class again, words: the fields alone are taken."""
    joined = PYTHON.stitch([FIRST, page], name="T", is_enum=False)

    assert joined.faults == ()
    assert joined.text == f"{FIRST}\n    b: str"
    assert joined.line_pages == (1, 1, 2)


def test_comments_of_a_page_stay() -> None:
    """Above its fields and below them, however far they stand to the left."""
    joined = PYTHON.stitch([FIRST, "# more\n    b: str\n# end"], name="T", is_enum=False)

    assert joined.text == f"{FIRST}\n    # more\n    b: str\n    # end"
    assert joined.page_lines == (1, 2, 1, 2, 3)


def test_a_page_illegal_alone_is_a_fault_of_that_page() -> None:
    """It stands where it would, unchanged, and its own line is told."""
    joined = PYTHON.stitch([FIRST, "b: str\nc: (int", "d: int"], name="T", is_enum=False)

    assert [(fault.page, fault.line, fault.code) for fault in joined.faults] == [(2, 2, "SYNTAX")]
    assert joined.text == f"{FIRST}\nb: str\nc: (int\n    d: int"


def test_a_class_on_one_line_takes_no_members() -> None:
    """Its page is at fault, and nothing is lost."""
    joined = PYTHON.stitch(["class T(ApiModel): a: int", "b: str"], name="T", is_enum=False)

    assert [(fault.page, fault.line) for fault in joined.faults] == [(1, 1)]
    assert "b: str" in joined.text


def test_a_text_below_a_field_stays_on_its_page() -> None:
    """No page asks for it: it tells of the field that it stands below."""
    code = f'{FIRST}\n    """One."""\n    b: str\n    """Two."""'

    pages = PYTHON.split(code, name="T", units=[["a"], ["b"]])

    assert pages == (f'{FIRST}\n    """One."""', '    b: str\n    """Two."""')
