"""Marked regions: exact inverses on every text, one block changed at a time, clear errors."""

import ast
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each

from pytest_regen.errors import RegionError
from pytest_regen.regions import Marked

SIGNS = (
    ("#", ""),
    ("//", ""),
    ("<!--", " -->"),
    ("/*", " */"),
    ("REM", ""),
)
LINES = st.sampled_from(
    (
        "# [REGEN:END a]",
        "# [REGEN:BEGIN a]",
        "// [REGEN:END a]",
        "# [REGEN:END",
        "\ufeff# [REGEN:END a]",
        '"""',
        "'''",
        "'",
        '"',
        "#",
        "   ",
        "",
        "\tx = 1",
    )
)
TEXTS = st.lists(LINES | st.text(st.characters(exclude_characters="\r\n"), max_size=6), max_size=9)
TEXT = TEXTS.map("\n".join)
INDENTS = st.sampled_from(("", " ", "    ", "\t", "\t  "))


def block(name: str, text: str, *, indent: str = "", sign: tuple[str, str] = ("#", "")) -> str:
    """Return an empty block with a text put into it."""
    begin, end = (
        f"{indent}{sign[0]} [REGEN:{edge} {name}]{sign[1]}\n" for edge in ("BEGIN", "END")
    )
    return Marked().replace(begin + end, {name: text})


LAYOUTS = st.tuples(INDENTS, st.sampled_from(SIGNS), st.sampled_from(("\n", "\r\n")))


@given(TEXT, TEXT, TEXT, LAYOUTS)
def test_nothing_outside_of_a_block_changes(
    old: str, new: str, other: str, layout: tuple[str, tuple[str, str], str]
) -> None:
    """Whatever a text holds, it comes back; all around it keeps every character."""
    indent, sign, end = layout
    first, second = (block(name, old, indent=indent, sign=sign) for name in "ab")
    rest = f"{first}\nbetween\n{second}\tafter".replace("\n", end)
    file = f"\ufeffbefore\r\n{rest}"

    changed = Marked().replace(file, {"b": new})

    assert Marked().find(changed)["b"].text == new
    assert Marked().replace(changed, {"b": new}) == changed
    span, after = Marked().find(file)["b"], Marked().find(changed)["b"]
    assert changed[: span.start] == file[: span.start]
    assert changed[after.end :] == file[span.end :]
    assert Marked().replace(changed, {"b": old}) == file
    both = Marked().replace(file, {"a": other, "b": new})
    assert both == Marked().replace(Marked().replace(file, {"a": other}), {"b": new})


def test_a_body_is_taken_out_and_put_back_with_the_indentation_of_its_marker() -> None:
    """A model sees a function's body without indentation; blank lines get no blanks."""
    file = textwrap.dedent("""\
        def f(x):
            # [REGEN:BEGIN f]
            if x:
                return 1

            return 2
            # [REGEN:END f]
        """)

    found = Marked().find(file)["f"]

    assert found.text == "if x:\n    return 1\n\nreturn 2"
    assert found.line == 3
    changed = Marked().replace(file, {"f": "while x:\n    x -= 1\n\nreturn x"})
    assert changed.splitlines()[2:6] == ["    while x:", "        x -= 1", "", "    return x"]


@each(
    "value",
    ['"""one\n  two\n\nthree"""', "r'''\nfour # \\\\'''", '"""a\\"""\nb"""', '"# not\\\nnew"'],
)
def test_lines_of_a_string_are_not_indented(value: str) -> None:
    """The value of a multi-line string is the same at every indentation."""
    text = f"# it's a comment\nx = {value}\nreturn x"

    written = block("f", text, indent="        ")

    body = ast.parse(f"def f():\n{written}").body[0]
    assert isinstance(body, ast.FunctionDef)
    assert isinstance(body.body[0], ast.Assign)
    assert ast.literal_eval(body.body[0].value) == ast.literal_eval(value)
    assert Marked().find(written)["f"].text == text


@each(
    ("file", "line", "problem"),
    [
        ("# [REGEN:BEGIN a]\n", 1, "never closed"),
        ("x\n# [REGEN:END a]\n", 2, "was not opened"),
        ("# [REGEN:BEGIN a]\n# [REGEN:END b]\n# [REGEN:END a]\n", 2, "stands inside"),
        ("# [REGEN:BEGIN a]\n# [REGEN:END a]\n" * 2, 3, "line 1 opened already"),
        ("# [REGEN:BEGIN a] now\n# [REGEN:END a]\n", 1, "is not a marker"),
    ],
)
def test_broken_markers_are_an_error_with_the_line(file: str, line: int, problem: str) -> None:
    """A marker that cannot be paired is named; nothing is guessed or passed over."""
    with pytest.raises(RegionError, match=f"line {line}: .*{problem}") as caught:
        Marked().find(file)

    assert caught.value.line == line


def test_a_marker_inside_of_a_line_is_text() -> None:
    """Only a comment line of its own is a marker: strings and prose may name one."""
    file = 'x = "# [REGEN:BEGIN a]"\nas in [REGEN:BEGIN b] here\n"// [REGEN:END c]"\n'

    assert not Marked().find(file)


def test_an_unknown_block_is_an_error_that_lists_names() -> None:
    """Nothing is written where a name is wrong."""
    with pytest.raises(RegionError, match="no unit 'c'") as caught:
        Marked().replace(block("a", "x") + "\n" + block("b", "y"), {"c": "z"})

    assert "a, b" in str(caught.value)


def test_a_block_with_lines_farther_left_comes_back_as_it_stood() -> None:
    """A preprocessor line, a label or a heredoc does not push the rest of the block right."""
    body = "    start();\n#ifdef DEBUG\n    trace();\n#endif"
    file = f"{{\n    // [REGEN:BEGIN x]\n{body}\n    // [REGEN:END x]\n}}\n"
    text = Marked().find(file)["x"].text

    other = Marked().replace(file, {"x": "stop();"})

    assert text == body
    assert Marked().replace(other, {"x": text}) == file
