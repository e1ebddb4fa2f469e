"""Names, values and descriptions that look like code, written, joined, extracted and read back."""

import pytest
from typescript_sample import TYPESCRIPT, page_of

from pytest_regen.documents.ir import IR, Endpoint, FieldIR, Scalar, TypeIR
from pytest_regen.sources import assemble, extract_code
from pytest_regen.validation import PageText, validate_by_type

NAMES = (
    *("", "__proto__", "constructor", "*/", "a\nb", "a\u2028b", '"', "\\", "'", "`${x}`", "// x"),
    *("/*", "[REGEN:END T]", "get", "set", "default", "1", "-1", "0x1", "😀", "naïve", "日本"),
    *("a-b", "\x00", "</script>", "then", "...", "```"),
)
TEXTS = (
    *("*/ evil(); /*", "a line\nbreak", "[REGEN:END T]", "\u2028", "// BEGIN_FIELDS"),
    *("... other fields omitted", "{ClassName}", "[REVIEW]", "*\\/", "```"),
)
PATTERNS = ("^a/b$", "*/", "[/]", "\\d+", "`", "^\\S+$", "</script>")


def hostile_ir() -> IR:
    """Return an IR whose texts are made to break out of code."""
    fields = tuple(
        FieldIR(
            json_name=name,
            type=Scalar(kind="string"),
            required=number % 2 == 0,
            nullable=number % 3 == 0,
            description=TEXTS[number % len(TEXTS)],
            constraints={"pattern": PATTERNS[number % len(PATTERNS)]} if number % 2 else {},
        )
        for number, name in enumerate(NAMES)
    )
    types = (
        TypeIR(name="T", schema_id="T", is_root=True, kind="object", fields=fields),
        TypeIR(name="E", schema_id="E", kind="enum", enum_values=(*NAMES, 1, -5, 2**60)),
    )
    return IR(endpoint=Endpoint(method="GET", path="/"), language="typescript", types=types)


@pytest.mark.parametrize("profile", ["default", "zod"])
def test_nothing_breaks_out_of_its_place(profile: str) -> None:
    """Each page comes out of a reply as it was, and the whole is clean."""
    ir = hostile_ir()
    written, pages = [], {}
    for type_ in ir.types:
        parts = [type_.units[start : start + 6] for start in range(0, len(type_.units), 6)]
        texts = [page_of(type_, units, at, profile) for at, units in enumerate(parts, 1)]
        for units, text in zip(parts, texts, strict=True):
            reply = f"```typescript\n{text}\n```"
            found = extract_code(reply, language=TYPESCRIPT, type_name=type_.name, fields=units)
            assert found == text
        joined = TYPESCRIPT.stitch(texts, name=type_.name, is_enum=type_.kind == "enum")
        written.append((type_.name, joined.text))
        pages[type_.name] = tuple(
            PageText(at, len(parts), units, text)
            for at, (units, text) in enumerate(zip(parts, texts, strict=True), 1)
        )
    source = assemble(written, TYPESCRIPT, profile=profile)
    results = validate_by_type(source, ir, pages=pages, profile=profile)

    assert [issue for result in results.values() for issue in result.issues] == []


def test_a_union_of_many_literals_is_read() -> None:
    """Its tree is as deep as it has values, which is no reason to give up."""
    values = tuple(f"value {number}" for number in range(600))
    type_ = TypeIR(name="E", schema_id="E", kind="enum", enum_values=values)
    (entry,) = TYPESCRIPT.read(page_of(type_, values, 1, "default")).declarations

    assert [member.wire_name for member in entry.members] == list(values)
