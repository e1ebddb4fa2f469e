"""One line per field or enum value: what a page is asked to write, as data."""

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from pytest_regen.documents.ir import EnumValue, FieldIR, TypeIR
from pytest_regen.languages.base import Language
from pytest_regen.prompts.encoding import clip
from pytest_regen.quoting import quote

__all__ = ["UnitLine", "unit_lines", "value_kind"]

_MAX_DESCRIPTION: Final = 600
_MAX_CONSTRAINTS: Final = 500
_MAX_LABEL: Final = 200
_INT32: Final = range(-(2**31), 2**31)

_FLAGS: Final = (
    ("required", "required"),
    ("nullable", "nullable"),
    ("read_only", "read-only"),
    ("write_only", "write-only"),
    ("deprecated", "deprecated"),
)


class UnitLine(NamedTuple):
    """The line of one field or enum value, and the text its code will hold."""

    text: str
    """One JSON object on one line."""
    code_text: str
    """Names, type and description: what the planner weighs as output."""


def unit_lines(type_: TypeIR, language: Language) -> dict[EnumValue, UnitLine]:
    """Return the line of each unit of ``type_``, in document order."""
    names = language.member_names(type_)
    if type_.kind == "enum":
        labels = type_.enum_names or ()
        return {
            value: _value_line(value, names[value], labels[index] if index < len(labels) else None)
            for index, value in enumerate(type_.enum_values)
        }
    return {
        field.json_name: _field_line(
            field, names[field.json_name], language, is_key=field.json_name == type_.primary_key
        )
        for field in type_.fields
    }


def value_kind(values: Sequence[EnumValue]) -> str:
    """Return in words what the wire values of an enum are."""
    numbers = [value for value in values if isinstance(value, int)]
    if not numbers:
        return "strings"
    kind = "integers" if len(numbers) == len(values) else "strings and integers"
    return kind if all(value in _INT32 for value in numbers) else f"{kind}, exceeding 32 bits"


def _value_line(value: EnumValue, name: str, label: str | None) -> UnitLine:
    data: dict[str, Any] = {"value": value, "identifier": name}
    if label is not None:
        data["label"] = clip(label, _MAX_LABEL)[0]
    return UnitLine(quote(data), f"{value}{name}")


def _field_line(field: FieldIR, name: str, language: Language, *, is_key: bool) -> UnitLine:
    spelled = language.spell(field)
    data: dict[str, Any] = {"json_name": field.json_name, "identifier": name, "type": spelled}
    flags = [word for attribute, word in _FLAGS if getattr(field, attribute)]
    if is_key:
        flags.append("primary-key")
    if flags:
        data["flags"] = flags
    shown, note = clip(field.description or "", _MAX_DESCRIPTION)
    if shown:
        data["description"] = shown
    if note:
        data["description_shown"] = note
    data |= _constraints(field.constraints)
    return UnitLine(quote(data), f"{field.json_name}{name}{spelled}{shown}")


def _constraints(constraints: dict[str, Any]) -> dict[str, Any]:
    if not constraints:
        return {}
    # Sorted: the order of keys in the document says nothing, and must not change a prompt.
    ordered = {key: constraints[key] for key in sorted(constraints)}
    text = json.dumps(ordered, ensure_ascii=False, default=str)
    shown, note = clip(text, _MAX_CONSTRAINTS)
    if note:
        return {"constraints": shown, "constraints_shown": note}
    return {"constraints": ordered}
