"""What prompts say about TypeScript, in the words of each profile."""

from functools import cache
from typing import Final

from pytest_regen.languages.base import Nouns, Wording, check_profile
from pytest_regen.languages.samples import write_samples
from pytest_regen.languages.typescript.writer import BEGIN, END, write_page

NOUNS: Final = Nouns(object="interface", enum="literal union", member="property", value="literal")
_SCHEMA_NOUNS: Final = Nouns(
    object="zod object schema", enum="zod enum schema", member="property", value="literal"
)
PROFILES: Final = ("default", "zod")
"""``default``: interfaces and unions of literals; ``zod``: schemas, and the types they infer."""

# Said in both profiles, because the key of a schema is the name on the wire as well.
_PROPERTY_RULES: Final = """\
identifier is the property as code names it, in double quotes where it is no identifier. Copy it \
exactly, with its quotes if it has them: it is the name on the wire, so never change its case, its \
spelling or its punctuation.\
"""

_COMMENT_RULES: Final = """\
Write a comment /** ... */ on a line of its own above every property that has a description: the \
text on one line, line ends as blanks, and every */ in it as *\\/; of a text longer than 200 \
characters its first sentence alone. Write no comment for a property without a description.
Where the request has a DESCRIPTION, write it by the same rule above the declaration.
A property flagged deprecated has @deprecated at the end of that comment, or as the whole of it. A \
property flagged read-only, write-only or primary-key is a property like any other."""

_INTERFACES: Final = f"""\
Declare an object as an exported interface: export interface TYPE {{ ... }}.
{_PROPERTY_RULES}
Write each property on a line of its own: identifier, a colon, the type exactly as type says, a \
semicolon. null is part of type where it may be; never add undefined.
A property that is not flagged required takes a question mark after its name, as in name?: type. A \
property flagged required takes none, even if its type ends in | null.
{_COMMENT_RULES}
Declare an enum as an exported union of literals: export type TYPE = and then, for each value, a \
line with | and the identifier, which is the value as a literal. A semicolon ends the last line of \
page 1; other pages have none.
Write no enum, class, namespace, const, function, import, extends clause, type parameter, index \
signature or nested object type, and no file header."""

_SCHEMAS: Final = f"""\
Declare an object as an exported constant, and after a blank line its type: export const TYPE = \
z.object({{ ... }}); and export type TYPE = z.infer<typeof TYPE>;. The type is declared on page 1 \
alone.
{_PROPERTY_RULES}
Write each property on a line of its own: identifier, a colon, the schema exactly as type says \
with all of its calls, a comma. Add no other check, default, transform or coercion: a parsed value \
must be the very JSON that was parsed.
Where type names a schema of the TYPE REFERENCE, which may be declared later in the file, write a \
getter instead, on three lines: get identifier() {{, then return with the schema and a semicolon, \
then }} and a comma.
{_COMMENT_RULES}
Declare an enum whose values are strings as export const TYPE = z.enum([...]);, one with integers \
as export const TYPE = z.literal([...]);, and after a blank line its type as above. Between the \
brackets, write each value on a line of its own: the identifier, which is the value as a literal, \
and a comma, after the last one too.
Write no import, interface, class, enum, namespace or function, and no file header: the file has \
import {{ z }} from "zod"; already."""


# Kept, because each prompt asks for it, and the samples in it are written every time.
@cache
def wording(profile: str = "default") -> Wording:
    """Return the words for ``profile``.

    Raises:
        UsageError: there is no such profile.
    """
    check_profile(profile, PROFILES, "TypeScript")
    is_zod = profile == "zod"
    return Wording(
        title="TypeScript 5 or later, strict, with zod 4"
        if is_zod
        else "TypeScript 5 or later, strict, types alone",
        nouns=_SCHEMA_NOUNS if is_zod else NOUNS,
        rules=tuple((_SCHEMAS if is_zod else _INTERFACES).splitlines()),
        begin_delimiter=BEGIN,
        end_delimiter=END,
        fence="typescript",
        examples=write_samples(write_page, profile),
        field_characters=45 if is_zod else 20,
        value_characters=6,
    )
