"""A declaration is taken apart into its pages, and is the same when joined again."""

from collections.abc import Iterator

import pytest
from kite_ir import kite_ir
from reference_writer import STYLES, ReferenceWriter, request_body
from tables import each

from pytest_regen.errors import SourceError
from pytest_regen.languages import find_language
from pytest_regen.prompts import build_prompts
from pytest_regen.prompts.values import PromptEntry
from pytest_regen.sources import extract_code, same_leaves

CSHARP = find_language("csharp")
PROMPTS = build_prompts(kite_ir(), language=CSHARP, fields_per_page=4)


def several_pages() -> Iterator[tuple[str, list[PromptEntry]]]:
    """Yield the types of the test store that have several pages, with their prompts."""
    for name in dict.fromkeys(entry.type_name for entry in PROMPTS):
        entries = [entry for entry in PROMPTS if entry.type_name == name]
        if len(entries) > 1:
            yield name, entries


def written(entries: list[PromptEntry], style: str) -> str:
    """Return a type as a model writes it in ``style``, joined."""
    writer = ReferenceWriter(style)
    outputs = [
        extract_code(writer(request_body(entry.system, entry.user)), language="csharp")
        for entry in entries
    ]
    is_enum = "enum" in outputs[0].split("{")[0]
    return CSHARP.stitch(outputs, name=entries[0].type_name, is_enum=is_enum).text


@each("style", list(STYLES))
def test_pages_joined_again_are_the_declaration(style: str) -> None:
    """Whatever the style, splitting is the way back from stitching."""
    for name, entries in several_pages():
        code = written(entries, style)
        units = [entry.fields for entry in entries]

        pages = CSHARP.split(code, name=name, units=units)

        is_enum = "enum" in pages[0].split("{")[0]
        assert len(pages) == len(entries)
        assert same_leaves(CSHARP.stitch(pages, name=name, is_enum=is_enum).text, code)


def test_a_member_goes_to_the_page_that_asks_for_it() -> None:
    """Each page holds its own fields and none of another page's."""
    code = (
        "public class A\n{\n"
        '    [JsonPropertyName("one")]\n    public int One { get; set; }\n\n'
        "    // edited by hand\n"
        '    [JsonPropertyName("two")]\n    public int Two { get; set; }\n}'
    )

    first, second = CSHARP.split(code, name="A", units=[["one"], ["two"]])

    assert "One" in first
    assert "Two" not in first
    assert second.startswith("    // edited by hand\n")
    assert second.endswith("public int Two { get; set; }")


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("public class A {", "not a legal declaration"),
        ('public class A { [JsonPropertyName("two")] public int Two { get; } }', "mixed"),
        ("public class A { }", "mixed"),
    ],
    ids=["illegal", "a page without members", "empty"],
)
def test_what_cannot_be_taken_apart_is_refused(code: str, why: str) -> None:
    """The error says why, and how to go on."""
    with pytest.raises(SourceError) as caught:
        CSHARP.split(code, name="A", units=[["one"], ["three"]])

    assert why in str(caught.value)
    assert "--discard-edits" in str(caught.value)
