"""The TypeScript of one page, written from the IR: what its prompt asks for, as prettier has it."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from pytest_regen.documents.ir import EnumValue, FieldIR, TypeIR, UnionOf
from pytest_regen.languages.names import first_sentence
from pytest_regen.languages.typescript.names import property_name
from pytest_regen.languages.typescript.spelling import needs_getter, spell
from pytest_regen.prompts.values import OutputMode
from pytest_regen.text import flatten, quoted

BEGIN: Final = "// BEGIN_FIELDS"
END: Final = "// END_FIELDS"
_WIDTH: Final = 80


def write_page(type_: TypeIR, units: Sequence[EnumValue], mode: OutputMode, *, profile: str) -> str:
    """Return the code of one page; see ``Language.write_page``."""
    is_zod, is_whole = profile == "zod", len(units) == len(type_.units)
    name, values = type_.name, [quoted(value) for value in units]
    if type_.kind == "enum":
        is_text = all(isinstance(value, str) for value in type_.enum_values)
        lines = [f"  {value}," if is_zod else f"  | {value}" for value in values]
        opening, closing = f"export type {name} =", ";"
        short = f"{opening} {' | '.join(values) or 'never'};"
        if is_zod:
            opening, closing = (
                f"export const {name} = z.{'enum' if is_text else 'literal'}([",
                "]);",
            )
            short = f"{opening}{', '.join(values)}{closing}"
        is_short = len(short) <= _WIDTH and is_whole
    elif type_.kind == "alias":
        opening, lines, closing, short = _alias(name, type_.fields[0], profile)
        is_short = len(short) <= _WIDTH or len(lines) < 2
    else:
        fields = {field.json_name: field for field in type_.fields}
        lines = [line for unit in units for line in _member(fields[str(unit)], profile)]
        opening, closing = f"export interface {name} {{", "}"
        if is_zod:
            opening, closing = f"export const {name} = z.object({{", "});"
        # Only without members, because prettier keeps an object open that was written so.
        short, is_short = f"{opening}{closing}", not lines
    if mode in {"fields_only", "enum_values_only"}:
        return "\n".join((BEGIN, *lines, END))
    if closing == ";":  # It stands behind the last literal, on its line.
        lines, closing = [*lines[:-1], f"{lines[-1]};"] if lines else [], ""
    whole = [short] if is_short else [opening, *lines, *filter(None, [closing])]
    inferred = ["", f"export type {name} = z.infer<typeof {name}>;"] if is_zod else []
    return "\n".join((*_comment(type_.description, indent=""), *whole, *inferred))


def _alias(name: str, value: FieldIR, profile: str) -> tuple[str, list[str], str, str]:
    """Return the parts of another name for a type, and all of it on one line."""
    options = value.type.options if isinstance(value.type, UnionOf) else ()
    parts = (value.model_copy(update={"type": option}) for option in options)
    texts = dict.fromkeys(spell(part, profile=profile) for part in parts)
    spelled = spell(value, profile=profile)
    if profile == "zod":
        head = f"export const {name} = "
        lines = [f"  {text}," for text in texts]
        return f"{head}{spelled.partition('[')[0]}[", lines, "]);", f"{head}{spelled};"
    head = f"export type {name} ="
    return head, [f"  | {text}" for text in texts], ";", f"{head} {spelled};"


def _member(field: FieldIR, profile: str) -> Iterator[str]:
    name, spelled = property_name(field.json_name), spell(field, profile=profile)
    yield from _comment(field.description, indent="  ", is_deprecated=field.deprecated)
    if profile != "zod":
        yield f"  {name}{'' if field.required else '?'}: {spelled};"
    elif needs_getter(field):
        yield from (f"  get {name}() {{", f"    return {spelled};", "  },")
    else:
        yield f"  {name}: {spelled},"


def _comment(text: str | None, *, indent: str, is_deprecated: bool = False) -> Iterator[str]:
    """Yield a description as a documentation comment, on as many lines as it takes."""
    words = " ".join(flatten(" ".join((text or "").split())).split())
    shortened = first_sentence(words).replace("*/", "*\\/")
    tag = "@deprecated" if is_deprecated else ""
    whole = f"{indent}/** {' '.join(filter(None, (shortened, tag)))} */"
    if not shortened and not tag:
        return
    if len(whole) <= _WIDTH:
        yield whole
        return
    lines = textwrap.wrap(
        shortened, _WIDTH - len(f"{indent} * "), break_long_words=False, break_on_hyphens=False
    )
    yield f"{indent}/**"
    # A tag stands at the beginning of a line, where every reader of such comments looks for it.
    yield from (f"{indent} * {line}" for line in filter(None, (*lines, tag)))
    yield f"{indent} */"
