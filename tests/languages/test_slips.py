"""Slips that spoil code as text are told by what the writer did, and the rest is read."""

import json
import re

import pytest
from ships import FLAG, SHIP

from pytest_regen.languages.base import SyntaxFault
from pytest_regen.languages.csharp.names import show_type
from pytest_regen.languages.csharp.reader import read
from pytest_regen.languages.csharp.slips import cut_end

DESCRIBED = re.sub(
    r'(\[JsonPropertyName\("(\w+)"\)\])', r'\1\n    [Description("The \2, as known.")]', SHIP
)


def faults(code: str) -> list[SyntaxFault]:
    """Return what is illegal about ``code``."""
    return list(read(code).faults)


def names(code: str) -> list[str | int | None]:
    """Return the names on the wire that are read from ``code``."""
    return [member.wire_name for entry in read(code).declarations for member in entry.members]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("as known", 'as "known"'),
        ("as known", 'as "known" or "unknown", or none'),
        ("The id, as known", '"'),
        ('as known.")]\n    public', 'as "known" here.")] public'),
        ('as known.")]', 'as "known" here."), Required]'),
        ("[Description(", "[property: Description("),
    ],
)
def test_quotes_that_are_not_escaped(old: str, new: str) -> None:
    """A string with quotes inside is one fault, on its line, that names the attribute."""
    code = DESCRIBED.replace(old, new, 1)
    if new.endswith("Description("):
        code = code.replace("as known", 'as "known"', 1)

    (fault,) = faults(code)

    assert (fault.line, fault.code) == (4, "SYNTAX")
    assert "[Description]" in fault.message
    assert 'write \\" for each' in fault.message
    assert names(code) == ["id", "name", "flag"]


def test_quotes_in_a_record_and_in_an_enum() -> None:
    """Parameters and enum members have attributes, too."""
    record = 'record A(\n[property: Description("a "b" c")]\nint? X,\n[Key]\nint? Y);'
    enum = FLAG.replace("    Red,", '    [Description("as "red" is")]\n    Red,')

    for code in (record, enum):
        (fault,) = faults(code)
        assert "quotes inside" in fault.message, code


def test_every_string_with_the_slip_is_told() -> None:
    """Three strings with quotes are three faults, however near to each other."""
    found = faults(DESCRIBED.replace("as known", 'as "known"'))

    assert [fault.line for fault in found] == [4, 8, 12]


@pytest.mark.parametrize("escape", [r"\*", r"\u12", r"\d+", r"\xZ"])
def test_an_escape_that_csharp_lacks(escape: str) -> None:
    """It is shown with its one backslash, and what to write instead with two."""
    (fault,) = faults(DESCRIBED.replace("as known", f"as {escape} known", 1))

    assert fault.line == 4
    assert f"'{escape[:2]}' is no escape" in fault.message
    assert f"write '\\{escape[:2]}'" in fault.message


def test_a_string_over_two_lines() -> None:
    """It is told where it begins; what stands after it is read, on its own line."""
    code = DESCRIBED.replace("as known", "as known\nto `gleu`,\nand `meteor`", 1)

    (fault,) = faults(code)

    assert fault.line == 4
    assert "write \\n for a line end" in fault.message
    assert names(code) == ["id", "name", "flag"]
    assert read(code).declarations[0].members[0].end_line == 7


def test_html_escapes() -> None:
    """Generics written for HTML are one fault; strings and comments are not looked at alone."""
    code = SHIP.replace("string?", "List&lt;string&gt;?")

    (fault,) = faults(code)

    assert fault.line == 7
    assert "write < and > where the answer has &lt; and &gt;" in fault.message
    spelled = read(code).declarations[0].members[1].type
    assert spelled is not None
    assert show_type(spelled) == "List<string>?"
    assert not faults(SHIP.replace("{\n", '{\n    [Description("a &lt; b")] // &amp;\n', 1))


@pytest.mark.parametrize("wrapped", [{"code": SHIP}, [{"code": SHIP}], {"file": "a", "code": SHIP}])
def test_code_in_json(wrapped: object) -> None:
    """A JSON value with the code in it is one artifact, not braces that are too many."""
    for text in (json.dumps(wrapped), json.dumps(wrapped, indent=2), json.dumps(wrapped)[:-3]):
        (fault,) = faults(text)

        assert fault.code == "ARTIFACT"
        assert "JSON" in fault.message


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        (SHIP[: SHIP.index("string?") + 3], "public str"),
        (SHIP[: SHIP.index('("name') + 4], '[JsonPropertyName("na'),
        (SHIP[: SHIP.index("{ get; init; }", 150) + 6], "Name { get;"),
        (FLAG[: FLAG.index("light-") + 6], '[JsonStringEnumMemberName("light-'),
        (SHIP[: SHIP.index("[Json")] + "/* the number", "/* the number"),
    ],
)
def test_a_reply_that_was_cut(code: str, shown: str) -> None:
    """A reply that stops in the middle is told so, whatever reason to stop the model gave."""
    (fault,) = faults(code)

    assert fault.line == code.rstrip().count("\n") + 1
    assert "the answer was cut off there" in fault.message
    assert shown in fault.message


def test_a_cut_in_the_words_of_a_description() -> None:
    """What would be prose on a line of its own is the end of code here."""
    described = SHIP.replace(
        "    public string?", '    [Description("What all of the crew call the ship'
    )
    (fault,) = faults(described[: described.index(" ship") + 5])

    assert "the answer was cut off there" in fault.message


def test_what_stands_before_the_cut_is_read() -> None:
    """Members before it are whole."""
    assert names(SHIP[: SHIP.index("Flag Flag")]) == ["id", "name"]


def test_what_is_no_cut() -> None:
    """A bracket lost on the way, words after the code and an empty page are other faults."""
    assert cut_end(SHIP.encode()) is None
    assert cut_end(SHIP.replace("Id { get; init; }", "Id { get; init;").encode()) is None
    assert cut_end((SHIP + "\nI hope this helps!\n").encode()) is None
    assert cut_end(b"I would rather not.") is None
    assert cut_end(b"{" * 20_000) is None
    assert cut_end(b"") is None
