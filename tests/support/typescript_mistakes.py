"""Mistakes that a model makes in a page of TypeScript, each as a change of a right page.

A mistake takes the text of a page and returns it wrong, or ``None`` where the page has nothing to
get wrong in that way. With it stand the codes that may tell of it.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pytest_regen.documents.ir import EnumValue, TypeIR
from pytest_regen.languages import find_language
from pytest_regen.prompts.values import output_mode

__all__ = ["MISTAKES", "Mistake", "Page", "page_of"]

TYPESCRIPT = find_language("typescript")
MEMBER = r'^  (?P<name>[\w$]+|"(?:\\.|[^"\\])*")(?P<mark>\??): (?P<type>[^\n]*?)(?P<end>[;,])$'
GETTER = r'^  get (?P<name>[\w$]+|"(?:\\.|[^"\\])*")\(\) \{\n    return (?P<type>[^\n]*);\n  \},$'
VALUE = r'^  (?P<sign>\| )?(?P<value>"(?:\\.|[^"\\])*"|-?\d+)(?P<end>[,;]?)$'


class Page(NamedTuple):
    """One right page."""

    type_: TypeIR
    units: Sequence[EnumValue]
    number: int
    profile: str
    text: str


class Mistake(NamedTuple):
    """One way to get a page wrong."""

    name: str
    profiles: tuple[str, ...]
    make: Callable[[Page], str | None]
    codes: frozenset[str]


def page_of(type_: TypeIR, units: Sequence[EnumValue], number: int, profile: str) -> Page:
    """Return a page as the language writes it."""
    mode = output_mode(type_.kind, is_root=type_.is_root, page=number)
    text = TYPESCRIPT.write_page(type_, units, mode, profile=profile)
    return Page(type_, units, number, profile, text)


def replaced(
    pattern: str, by: str | Callable[[re.Match[str]], str]
) -> Callable[[Page], str | None]:
    """Return a mistake that replaces what a pattern finds first."""

    def make(page: Page) -> str | None:
        text, count = re.subn(pattern, by, page.text, count=1, flags=re.MULTILINE)
        return text if count and text != page.text else None

    return make


def in_type(pattern: str, by: str, *, only: str = "") -> Callable[[Page], str | None]:
    """Return a mistake in the type of the first property whose type the pattern is found in."""

    def make(page: Page) -> str | None:
        for match in re.finditer(
            f"{MEMBER}|{GETTER.replace('?P<', '?P<g_')}", page.text, re.MULTILINE
        ):
            start, end = match.span("type" if match["type"] is not None else "g_type")
            spelled = page.text[start:end]
            changed = re.sub(pattern, by, spelled, count=1)
            if changed != spelled and re.search(only, spelled):
                return page.text[:start] + changed + page.text[end:]
        return None

    return make


def on_objects(make: Callable[[Page], str | None]) -> Callable[[Page], str | None]:
    """Return the same mistake for pages of objects alone."""
    return lambda page: make(page) if page.type_.kind == "object" else None


def on_enums(make: Callable[[Page], str | None]) -> Callable[[Page], str | None]:
    """Return the same mistake for pages of enums alone."""
    return lambda page: make(page) if page.type_.kind == "enum" else None


def on_first(make: Callable[[Page], str | None]) -> Callable[[Page], str | None]:
    """Return the same mistake for first pages alone."""
    return lambda page: make(page) if page.number == 1 else None


def has_more(page: Page) -> bool:
    """Return whether something is left of the page without one of its members."""
    return len(page.units) > 1


def drop_member(page: Page) -> str | None:
    """Leave a property out."""
    text, count = re.subn(f"{MEMBER}\n?", "", page.text, count=1, flags=re.MULTILINE)
    return text if count and has_more(page) else None


def drop_value(page: Page) -> str | None:
    """Leave a value out."""
    found = re.search(VALUE, page.text, re.MULTILINE)
    if found is None or found["end"] == ";" or not has_more(page):
        return None
    return page.text[: found.start()] + page.text[found.end() + 1 :]


def insert_member(line: str) -> Callable[[Page], str | None]:
    """Return a mistake that writes a line before the first property."""
    return on_objects(replaced(rf"({MEMBER}|{GETTER.replace('?P<', '?P<g_')})", rf"  {line}\n\1"))


def change_value(change: Callable[[str], str]) -> Callable[[Page], str | None]:
    """Return a mistake in the first value of an enum."""

    def make(page: Page) -> str | None:
        for found in re.finditer(
            r'(?<![\w])"(?:\\.|[^"\\])*"|(?<=[| \[])-?\d+(?=[,;|\] \n])', page.text
        ):
            if page.text.rfind("\n", 0, found.start()) == page.text.rfind(
                "\n/**", 0, found.start()
            ):
                continue
            changed = change(found[0])
            values = {json.dumps(value) for value in page.type_.enum_values}
            if found[0] in values and changed not in values:
                return page.text[: found.start()] + changed + page.text[found.end() :]
        return None

    return on_enums(make)


def cut(part: float) -> Callable[[Page], str | None]:
    """Return a mistake that ends a page too early."""

    def make(page: Page) -> str | None:
        lines = page.text.split("\n")
        return "\n".join(lines[: int(len(lines) * part)]) + "\n  " if len(lines) > 6 else None

    return on_first(on_objects(make))


def wrap_json(page: Page) -> str | None:
    """Answer with a JSON object that holds the code."""
    return json.dumps({"code": page.text})


def ghost(page: Page) -> str | None:
    """Use a type that nobody declares."""
    return in_type(r"(?<![\w.\"])[A-Z]\w*(?![\w\"<])", "Ghost")(page)


def unquote(page: Page) -> str | None:
    """Leave the quotes of a property name out."""
    return on_objects(replaced(r'^  "(\w+[-.]\w[\w.-]*)"(\??: )', r"  \1\2"))(page)


def open_enum(page: Page) -> str | None:
    """Let an enum take any text."""
    found = list(re.finditer(VALUE, page.text, re.MULTILINE))
    if page.type_.kind != "enum" or page.profile != "default":
        return None
    if found:
        last = found[-1]
        return f"{page.text[: last.end('value')]} | string{page.text[last.end('value') :]}"
    return re.sub(r";$", " | string;", page.text) if "= never" not in page.text else None


def _mistake(name: str, profiles: str, codes: str, make: Callable[[Page], str | None]) -> Mistake:
    return Mistake(name, tuple(profiles.split()), make, frozenset(codes.split()))


BOTH = "default zod"
MISTAKES: tuple[Mistake, ...] = (
    # --- properties
    _mistake("property left out", BOTH, "MISSING_FIELD", drop_member),
    _mistake(
        "getter left out",
        "zod",
        "MISSING_FIELD",
        lambda page: replaced(f"{GETTER}\n", "")(page) if has_more(page) else None,
    ),
    _mistake(
        "property renamed",
        BOTH,
        "MISSING_FIELD PHANTOM_FIELD",
        replaced(MEMBER, r"  renamed_by_hand\g<mark>: \g<type>\g<end>"),
    ),
    _mistake("property invented", "default", "PHANTOM_FIELD", insert_member("invented: string;")),
    _mistake("property invented", "zod", "PHANTOM_FIELD", insert_member("invented: z.string(),")),
    _mistake("property twice", BOTH, "DUPLICATE_FIELD", replaced(MEMBER, r"\g<0>\n\g<0>")),
    _mistake(
        "undefined for absent",
        "default",
        "WRONG_TYPE",
        replaced(r"^(  \S+)\?: ([^\n]*);$", r"\1: \2 | undefined;"),
    ),
    _mistake(
        "nullish for optional",
        "zod",
        "NULLABILITY",
        in_type(r"^(?!.*nullable\(\)|.*unknown)(.*)\.optional\(\)$", r"\1.nullish()"),
    ),
    _mistake(
        "any other property",
        "default",
        "PHANTOM_FIELD",
        on_first(insert_member("[key: string]: unknown;")),
    ),
    _mistake("no type", "default", "WRONG_TYPE REVIEW SYNTAX", replaced(MEMBER, r"  \g<name>;")),
    # --- types
    _mistake("type that is not declared", BOTH, "UNDECLARED_TYPE", ghost),
    _mistake(
        "option of a union left out", "default", "WRONG_TYPE", in_type(r"^\w+ \| (?!null)", "")
    ),
    _mistake(
        "coercion", "zod", "WRONG_TYPE", in_type(r"^z\.(string|number|boolean)\(", r"z.coerce.\1(")
    ),
    _mistake("default", "zod", "WRONG_TYPE", in_type(r"^(z\.string\(\))", r'\1.default("")')),
    _mistake(
        "transform",
        "zod",
        "WRONG_TYPE",
        in_type(r"^(z\.string\(\))", r"\1.transform((x) => x.length)"),
    ),
    _mistake("catch", "zod", "WRONG_TYPE", in_type(r"^(z\.(?:int|number)\(\))", r"\1.catch(0)")),
    _mistake(
        "map without its key",
        "zod",
        "WRONG_TYPE",
        in_type(r"z\.record\(z\.string\(\), ", "z.record("),
    ),
    _mistake(
        "optional item",
        "zod",
        "WRONG_TYPE",
        in_type(r"z\.array\((z\.\w+\(\)|\w+)\)", r"z.array(\1.optional())"),
    ),
    _mistake(
        "tag of a union changed",
        "zod",
        "WRONG_TYPE",
        in_type(r'discriminatedUnion\("', 'discriminatedUnion("x'),
    ),
    _mistake("option of a union left out", "zod", "WRONG_TYPE", in_type(r"\[\w+, ", "[")),
    _mistake("getter without get", "zod", "MISSING_FIELD", replaced(r"^  get ", "  ")),
    _mistake(
        "getter that gives nothing",
        "zod",
        "MISSING_FIELD",
        replaced(r"^    return [^\n]*;$", "    const x = 1;"),
    ),
    # --- enums
    _mistake("value left out", BOTH, "ENUM_MEMBER", on_enums(drop_value)),
    _mistake(
        "value changed",
        BOTH,
        "ENUM_MEMBER",
        change_value(lambda text: f'"x{text[1:]}' if text[0] == '"' else f"{text}99".lstrip("0")),
    ),
    _mistake(
        "value as text",
        BOTH,
        "ENUM_MEMBER",
        change_value(lambda text: text if text[0] == '"' else f'"{text}"'),
    ),
    _mistake(
        "value invented",
        "default",
        "ENUM_MEMBER",
        on_enums(replaced(r"^  \| ", '  | "invented"\n  | ')),
    ),
    _mistake(
        "value invented", "zod", "ENUM_MEMBER", on_enums(replaced(r"\(\[\n", '([\n  "invented",\n'))
    ),
    _mistake(
        "value twice",
        BOTH,
        "ENUM_MEMBER",
        on_enums(replaced(r'^(  (?:\| )?(?:"(?:\\.|[^"\\])*"|-?\d+),?)$', r"\1\n\1")),
    ),
    _mistake("any text beside the values", "default", "ENUM_MEMBER", open_enum),
    _mistake(
        "called otherwise",
        "default",
        "MISSING_CLASS",
        on_first(replaced(r"^export (interface|type) (\w+)", r"export \1 \2Dto")),
    ),
    _mistake(
        "annotated as any schema",
        "zod",
        "MISSING_CLASS",
        on_first(replaced(r"^(export const \w+) =", r"\1: z.ZodTypeAny =")),
    ),
    _mistake(
        "getter annotated as any schema",
        "zod",
        "WRONG_TYPE",
        replaced(r"^  get (\S+)\(\) \{", r"  get \1(): z.ZodTypeAny {"),
    ),
    _mistake(
        "null in an array",
        "default",
        "NULLABILITY",
        in_type(r"^(\w+)\[\]", r"(\1 | null)[]"),
    ),
    _mistake(
        "null in an array",
        "zod",
        "NULLABILITY",
        in_type(r"^z\.array\((z\.\w+\(\)|\w+)\)", r"z.array(\1.nullable())"),
    ),
    _mistake(
        "type of the schema not exported",
        "zod",
        "MISSING_CLASS",
        on_first(replaced(r"^export type", "type")),
    ),
    _mistake(
        "partial schema",
        "zod",
        "MISSING_CLASS",
        on_first(on_objects(replaced(r"^\}\);$", "}).partial();"))),
    ),
    _mistake(
        "schema in place of an interface",
        "default",
        "MISSING_CLASS",
        lambda page: (
            page_of(page.type_, page.units, 1, "zod").text
            if page.number == 1 and len(page.units) == len(page.type_.units)
            else None
        ),
    ),
    _mistake(
        "a function beside it",
        BOTH,
        "FOREIGN_TYPE",
        on_first(lambda page: f"{page.text}\n\nexport function f() {{}}"),
    ),
    # --- slips
    _mistake(
        "opening brace left out", BOTH, "SYNTAX", on_first(on_objects(replaced(r"\{\n", "\n")))
    ),
    _mistake("colon left out", BOTH, "SYNTAX", replaced(MEMBER, r"  \g<name> \g<type>\g<end>")),
    _mistake(
        "comma left out",
        "zod",
        "SYNTAX",
        on_objects(replaced(r"^(  [\w$]+: [^\n]*),\n(  \S)", r"\1\n\2")),
    ),
    _mistake(
        "comma between values left out",
        "zod",
        "SYNTAX",
        on_enums(replaced(r'^(  (?:"(?:\\.|[^"\\])*"|-?\d+)),\n(  (?:"|-|\d))', r"\1\n\2")),
    ),
    _mistake(
        "quotation mark left out", BOTH, "SYNTAX", replaced(r'^(  (?:\| )?")([^"\n]*)"', r"\1\2")
    ),
    _mistake("quotes of a name left out", BOTH, "INVALID_IDENTIFIER SYNTAX", unquote),
    _mistake(
        "prose before",
        BOTH,
        "ARTIFACT SYNTAX FOREIGN_TYPE",
        on_first(lambda page: f"Here is the code you asked for:\n{page.text}"),
    ),
    _mistake(
        "fence inside",
        BOTH,
        "ARTIFACT SYNTAX",
        on_first(lambda page: f"```typescript\n{page.text}\n```"),
    ),
    _mistake(
        "elision",
        BOTH,
        "ARTIFACT",
        on_objects(replaced(f"({MEMBER})", r"\1\n  // ... other properties")),
    ),
    _mistake(
        "review",
        BOTH,
        "REVIEW",
        # Of later pages only what stands between their delimiters is kept.
        on_first(lambda page: f"// REVIEW: is this right?\n{page.text}"),
    ),
    _mistake("cut short", BOTH, "SYNTAX MISSING_CLASS", cut(0.6)),
    _mistake("JSON around it", BOTH, "ARTIFACT SYNTAX", wrap_json),
    _mistake(
        "thinking",
        BOTH,
        "ARTIFACT SYNTAX",
        on_first(lambda page: f"<think>\nhm\n</think>\n{page.text}"),
    ),
    _mistake("comment that ends early", BOTH, "SYNTAX", replaced(r"^(\s*/\*\* )", r"\1*/ ")),
    _mistake("nothing", BOTH, "EMPTY_OUTPUT", lambda _: ""),
)
