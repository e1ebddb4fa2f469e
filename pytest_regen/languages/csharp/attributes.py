"""What attributes of C# say to System.Text.Json: names, what is passed over, converters."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pytest_regen.languages.base import Attribute
from pytest_regen.languages.csharp.types import show_type


def wire_name(attributes: Sequence[Attribute], name: str) -> str | None:
    """Return the name on the wire that the attribute called ``name`` gives a member."""
    found = next((each.arguments for each in attributes if each.name == name), ())
    return found[0] if found and isinstance(found[0], str) else None


def ignored_by(attributes: Sequence[Attribute]) -> str | None:
    """Return the attribute by which the serializer passes over a member, as text."""
    for attribute in attributes:
        if attribute.name == "JsonIgnore" and not re.search("Never|WhenWriting", attribute.text):
            return f"[JsonIgnore{attribute.text}]"
        if attribute.name == "JsonExtensionData":
            return "[JsonExtensionData], which holds what is no field"
    return None


@dataclass(frozen=True, slots=True)
class Converter:
    """What ``[JsonConverter]`` names to read and write values in place of the serializer."""

    text: str
    """As it stands in the source."""
    reads: "_Reads"
    """What it makes enum values of; ``nothing``: the serializer does not take it at all."""
    of: str | None
    """The only enum that it is for, where it says so."""
    line: int


_Reads = Literal["text", "numbers", "nothing", "unknown"]
_READS: Final[Mapping[str, _Reads]] = {
    "JsonStringEnumConverter": "text",
    "JsonNumberEnumConverter": "numbers",
    "StringEnumConverter": "nothing",
}


def converter_of(attributes: Sequence[Attribute]) -> Converter | None:
    """Return the converter that ``[JsonConverter]`` names."""
    attribute = next((each for each in attributes if each.name == "JsonConverter"), None)
    if attribute is None:
        return None
    if not attribute.types:
        return Converter("[JsonConverter]", "nothing", None, attribute.line)
    reference = attribute.types[0]
    is_foreign = re.match(r"(global::)?(System|Microsoft|Newtonsoft)\b", reference.qualifier)
    otherwise: _Reads = "nothing" if is_foreign else "unknown"
    of = reference.args[0].name if reference.args else None
    return Converter(
        f"[JsonConverter(typeof({show_type(reference)}))]",
        _READS.get(reference.name, otherwise),
        of,
        attribute.line,
    )
