"""Pages of TypeScript as models write them, joined; and what a formatter may change."""

from tables import each

from pytest_regen.documents.ir import FieldIR, Scalar, TypeIR
from pytest_regen.languages import find_language
from pytest_regen.sources import extract_code

TYPESCRIPT = find_language("typescript")


def joined(*pages: str, is_enum: bool = False) -> str:
    """Return a type as its pages make it, which are all legal."""
    found = TYPESCRIPT.stitch(pages, name="T", is_enum=is_enum)
    assert found.faults == ()
    assert len(found.line_pages) == found.text.count("\n") + 1
    return found.text


@each(
    "page",
    [
        "// BEGIN_FIELDS\n  b: number;\n// END_FIELDS",
        "  b: number",
        "export interface T {\n  b: number;\n}",
        'import { z } from "zod";\nexport type T = {\n  b: number;\n};',
        "Of course:\n// BEGIN_FIELDS\n  b: number;\n// END_FIELDS\nDone.",
    ],
)
def test_properties_are_joined_whatever_is_around_them(page: str) -> None:
    """Delimiters, the interface again, an import: the properties alone are taken."""
    text = joined("export interface T {\n  a: string;\n}", page)

    assert text.replace("number\n", "number;\n") == (
        "export interface T {\n  a: string;\n  b: number;\n}"
    )


@each(
    "page",
    ['  | "b"', '| "b";', '"b"', '// BEGIN_FIELDS\n  | "b"\n// END_FIELDS', 'export type T = "b";'],
)
@each("first", ['export type T =\n  | "a";', 'export type T =\n  | "a"\n'])
def test_literals_are_joined_before_the_semicolon(first: str, page: str) -> None:
    """With the sign before them or without, and whoever writes the semicolon."""
    text = joined(first, page, is_enum=True)

    assert text.rstrip(";") == 'export type T =\n  | "a"\n  | "b"'
    assert [member.wire_name for member in TYPESCRIPT.read(text).declarations[0].members] == [
        "a",
        "b",
    ]


@each("comma", [",", ""])
def test_keys_of_a_schema_are_separated(comma: str) -> None:
    """A comma that page 1 left out is written; what follows the object stays behind it."""
    first = f"export const T = z.object({{\n  a: z.string(){comma}\n}});\n\n{TYPE}"
    text = joined(first, "// BEGIN_FIELDS\n  get b() {\n    return B;\n  }\n// END_FIELDS")

    assert text == (
        "export const T = z.object({\n  a: z.string(),\n  get b() {\n    return B;\n  }\n});\n\n"
        f"{TYPE}"
    )


TYPE = "export type T = z.infer<typeof T>;"


@each("first", ['z.enum(["a"])', 'z.enum([\n  "a",\n])', 'z.literal(["a"])'])
def test_values_of_a_schema_are_joined(first: str) -> None:
    """Inside the brackets, however page 1 has them."""
    text = joined(f"export const T = {first};\n\n{TYPE}", '  "b",', is_enum=True)
    (entry,) = TYPESCRIPT.read(text).declarations

    assert [member.wire_name for member in entry.members] == ["a", "b"]


@each(
    ("written", "formatted"),
    [
        ("export type T = 'a' | 'b'", 'export type T =\n  | "a"\n  | "b";\n'),
        ("interface T { a: string, b: 'x' }", 'interface T {\n  a: string,\n  b: "x";\n}'),
        ("const T = z.enum(['a', 'b'])", 'const T = z.enum([\n  "a",\n  "b",\n]);'),
        ("type T = Record<string, A | B>;", "type T = Record<\n  string,\n  | A\n  | B\n>;"),
        ("type T = (A | B)[];", "type T = (\n  | A\n  | B\n)[];"),
    ],
)
def test_a_formatter_changes_nothing(written: str, formatted: str) -> None:
    """Quotation marks, semicolons, trailing commas, the first sign of a union, line ends."""
    assert TYPESCRIPT.leaves(written) == TYPESCRIPT.leaves(formatted)
    for old, new in ((" | ", " & "), ("a:", "a?:"), ("'x'", "'x '"), ("T", "U")):
        edited = written.replace(old, new)
        assert edited == written or TYPESCRIPT.leaves(written) != TYPESCRIPT.leaves(edited)


@each("profile", ["default", "zod"])
def test_long_descriptions_are_wrapped(profile: str) -> None:
    """That a field is deprecated stands on a line of its own."""
    about = "How far it flies */ " * 9
    field = FieldIR(json_name="far", type=Scalar(kind="number"), description=about, deprecated=True)
    kite = TypeIR(name="Kite", schema_id="#", kind="object", description=about, fields=(field,))
    code = TYPESCRIPT.write_page(kite, ("far",), "class_only", profile=profile)
    assert max(map(len, code.splitlines())) <= 80
    assert "\n   * @deprecated\n   */\n  far" in code


@each(
    "code",
    [
        "/**\n * How far.\n */\nexport interface T {\n  b: number;\n}",
        "// BEGIN_FIELDS\n  b: number;\n// END_FIELDS",
        '// BEGIN_ENUM_VALUES\n  | "b"\n// END_ENUM_VALUES',
    ],
)
def test_the_code_of_a_reply_is_taken(code: str) -> None:
    """Out of its sentences, and out of a block that is called ts, not out of one of JavaScript."""
    fenced = f"Here it is:\n\n```ts\n{code}\n```\nUse it:\n```js\nconst far = [1];\n```"

    for reply in (fenced, f"Sure!\n\n{code}\n\nDone."):
        assert extract_code(reply, language=TYPESCRIPT) == code
