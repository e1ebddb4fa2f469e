"""docs/codes.md is whole, and its examples show what they say."""

import re

from pages import ROOT, blocks
from ships import FLAG, SHIP, issues_of, ships
from tables import each

from pytest_regen.validation import CODES

PAGE = "docs/codes.md"
INTRO, *PARTS = re.split(r"^## ", (ROOT / PAGE).read_text("utf-8"), flags=re.MULTILINE)
SECTIONS = {part.partition("\n")[0]: part for part in PARTS}


def test_every_code_has_a_section_that_says_how_bad_it_is() -> None:
    """In the order of the codes, each once; what helps for most of them is said above them."""
    assert [part.partition("\n")[0] for part in PARTS] == list(CODES)
    for code, severity in CODES.items():
        assert SECTIONS[code].startswith(
            f"{code}\n\nA warning:" if severity == "warning" else f"{code}\n\nAn error:"
        )
    assert INTRO.count("pytest-regen regenerate ") == 2


def edited(diff: str) -> str:
    """Return the class of the page as an example changes it."""
    lines = [line or " " for line in diff.split("\n")[:-1]]
    old, new = (
        "".join(f"{line[1:]}\n" for line in lines if line[0] in f" {sign}") for sign in "-+"
    )
    assert SHIP.count(old) == 1
    return SHIP.replace(old, new)


def examples() -> dict[str, str]:
    """Return the changed class, or the enum, of each section that shows one."""
    found = {}
    for code, text in SECTIONS.items():
        diff = re.search(r"```diff\n(.*?)```", text, re.DOTALL)
        enum = re.search(r"```csharp\n(.*?)```", text, re.DOTALL)
        if enum:
            found[code] = enum[1]
        elif diff and code != "WEAKENED":  # whose examples have a test of their own
            found[code] = edited(diff[1])
    return found


@each(("code", "example"), examples().items())
def test_an_example_shows_its_code(code: str, example: str) -> None:
    """The code of the section is the one that its example gets."""
    is_enum = "enum Flag" in example
    of_types = (SHIP, example) if is_enum else (example, FLAG)
    ir = ships(primary_key="id") if code == "PRIMARY_KEY" else ships()

    found = {issue.code for issue in issues_of(*of_types, ir=ir)}

    assert found in ({code}, {code, "MISSING_FIELD"})


def test_the_examples_change_the_class_that_is_shown() -> None:
    """It stands above them, and there is one of each fault of a type that can be shown."""
    assert blocks(PAGE, "csharp")[0] == SHIP
    assert len(examples()) >= 16
