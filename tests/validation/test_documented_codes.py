"""The documentation of the codes is whole, and its examples show what they say."""

import re
from pathlib import Path

from ships import FLAG, SHIP, issues_of, ships
from tables import each

from pytest_regen.validation import CODES

FOLDER = Path(__file__).parents[2] / "docs" / "codes"


@each("code", CODES)
def test_every_code_has_a_page(code: str) -> None:
    """The page says what it is, how bad, and what to do, with a command."""
    text = (FOLDER / f"{code}.md").read_text("utf-8")

    assert text.startswith(f"# {code}\n")
    assert ("A warning:" if CODES[code] == "warning" else "An error:") in text
    assert "**What to do.**" in text
    assert re.search(r"pytest-regen (regenerate|generate|adopt|rebuild) ", text)


def test_the_index_lists_every_code() -> None:
    """In the order of the codes, each once."""
    listed = re.findall(
        r"^\| \[(\w+)\]\(\1\.md\)", (FOLDER / "index.md").read_text("utf-8"), re.MULTILINE
    )

    assert listed == list(CODES)


def examples() -> dict[str, str]:
    """Return the C# example of each page that has one."""
    pages = {path.stem: path.read_text("utf-8") for path in FOLDER.glob("[A-Z]*.md")}
    found = {
        code: re.search(r"```csharp\n(.*?)\n```", text, re.DOTALL) for code, text in pages.items()
    }
    return {code: match[1] for code, match in found.items() if match}


@each(("code", "example"), examples().items())
def test_an_example_shows_its_code(code: str, example: str) -> None:
    """The code of the page is the one that its example gets."""
    is_enum = "enum Flag" in example
    blocks = (SHIP, example) if is_enum else (example, FLAG)
    ir = ships(primary_key="id") if code == "PRIMARY_KEY" else ships()

    found = {issue.code for issue in issues_of(*blocks, ir=ir)}

    assert found in ({code}, {code, "MISSING_FIELD"})
