"""The TypeScript of one page, written from the IR: what its prompt asks for, as prettier has it."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pytest_regen.documents.ir import EnumValue, FieldIR, TypeIR
from pytest_regen.languages.typescript.names import literal, property_name
from pytest_regen.languages.typescript.spelling import needs_getter, spell
from pytest_regen.prompts.values import OutputMode
from pytest_regen.text import flatten

BEGIN: Final = "// BEGIN_FIELDS"
END: Final = "// END_FIELDS"
_WIDTH: Final = 80
_LONG: Final = 200
"""Of a description with more characters the first sentence is written."""
_SENTENCE_END: Final = re.compile(r"[.!?](?=\s)")


def write_page(type_: TypeIR, units: Sequence[EnumValue], mode: OutputMode, *, profile: str) -> str:
    """Return the code of one page; see ``Language.write_page``."""
    if type_.kind == "enum":
        lines = _enum(type_, units, mode, profile)
    else:
        fields = {field.json_name: field for field in type_.fields}
        members = [line for unit in units for line in _member(fields[str(unit)], profile)]
        lines = _object(type_, members, mode, profile)
    return "\n".join(lines)


def _object(type_: TypeIR, members: Sequence[str], mode: OutputMode, profile: str) -> Iterator[str]:
    if mode == "fields_only":
        yield from (BEGIN, *members, END)
        return
    yield from _comment(type_.description, indent="")
    if profile == "zod":
        opening, closing = f"export const {type_.name} = z.object({{", "});"
    else:
        opening, closing = f"export interface {type_.name} {{", "}"
    yield from (opening, *members, closing) if members else (f"{opening}{closing}",)
    if profile == "zod":
        yield from _inferred(type_)


def _inferred(type_: TypeIR) -> Iterator[str]:
    yield ""
    yield f"export type {type_.name} = z.infer<typeof {type_.name}>;"


def _member(field: FieldIR, profile: str) -> Iterator[str]:
    name, spelled = property_name(field.json_name), spell(field, profile=profile)
    yield from _comment(field.description, indent="  ", is_deprecated=field.deprecated)
    if profile != "zod":
        yield f"  {name}{'' if field.required else '?'}: {spelled};"
    elif needs_getter(field):
        yield from (f"  get {name}() {{", f"    return {spelled};", "  },")
    else:
        yield f"  {name}: {spelled},"


def _enum(
    type_: TypeIR, units: Sequence[EnumValue], mode: OutputMode, profile: str
) -> Iterator[str]:
    values = [literal(value) for value in units]
    is_zod = profile == "zod"
    lines = [f"  {value}," if is_zod else f"  | {value}" for value in values]
    if mode == "enum_values_only":
        yield from (BEGIN, *lines, END)
        return
    yield from _comment(type_.description, indent="")
    if is_zod:
        yield from _one_of(type_, values, lines, is_whole=len(units) == len(type_.units))
        yield from _inferred(type_)
        return
    short = f"export type {type_.name} = {' | '.join(values) or 'never'};"
    if len(short) <= _WIDTH and len(units) == len(type_.units):
        yield short
    else:
        lines[-1] += ";"
        yield from (f"export type {type_.name} =", *lines)


def _one_of(
    type_: TypeIR, values: Sequence[str], lines: Sequence[str], *, is_whole: bool
) -> Iterator[str]:
    is_text = all(isinstance(value, str) for value in type_.enum_values)
    opening = f"export const {type_.name} = z.{'enum' if is_text else 'literal'}(["
    short = f"{opening}{', '.join(values)}]);"
    yield from (short,) if len(short) <= _WIDTH and is_whole else (opening, *lines, "]);")


def _comment(text: str | None, *, indent: str, is_deprecated: bool = False) -> Iterator[str]:
    """Yield a description as a documentation comment on one line."""
    words = " ".join(flatten(" ".join((text or "").split())).split())
    end = _SENTENCE_END.search(words) if len(words) > _LONG else None
    shown = words[: end.end()] if end else words
    shown = " ".join(filter(None, (shown, "@deprecated" if is_deprecated else "")))
    if shown:
        escaped = shown.replace("*/", "*\\/")
        yield f"{indent}/** {escaped} */"
