"""The ways in which the reference writer can write the same correct C#."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

__all__ = ["STYLES", "Style", "style_named"]


@dataclass(frozen=True, slots=True)
class Style:
    """One accepted way to write a page; every choice is independent of the others."""

    name: str
    shape: Literal["class", "record", "positional", "positional_body"] = "class"
    modifiers: str = "public"
    accessor: Literal["init", "set"] = "init"
    required: Literal["keyword", "default!"] = "keyword"
    comments: Literal["none", "xml", "everywhere"] = "none"
    descriptions: bool = True
    newline: str = "\n"
    indent: str = "    "
    byte_order_mark: bool = False
    reply: Literal["csharp", "cs", "plain", "long", "tilde", "bare", "prose"] = "csharp"
    continuation: Literal["delimited", "bare", "wrapped"] = "delimited"
    trailing_comma: bool = True

    def with_(self, changes: Mapping[str, Any]) -> "Style":
        """Return the style with some choices made otherwise."""
        return replace(self, **changes)


STYLES: tuple[Style, ...] = (
    Style("as_asked"),
    Style("plain_class", accessor="set", required="default!", reply="bare", continuation="bare"),
    Style("documented", comments="xml", reply="prose", trailing_comma=False),
    Style("record", shape="record", continuation="wrapped"),
    Style("positional", shape="positional", reply="cs", continuation="bare"),
    Style("positional_body", shape="positional_body", comments="xml", continuation="wrapped"),
    Style("sealed_partial", modifiers="public sealed partial", reply="plain"),
    Style("windows", newline="\r\n", indent="\t", byte_order_mark=True, reply="bare"),
    Style("commented", comments="everywhere", reply="long", continuation="wrapped"),
    Style("commented_bare", comments="everywhere", reply="bare"),
    Style("sealed_record", shape="record", modifiers="public sealed", accessor="set"),
    Style("tilde", required="default!", newline="\r\n", reply="tilde", continuation="bare"),
)
"""Every style of the decisions, "C#", at least once."""


def style_named(style: int | str | Style) -> Style:
    """Return a style by name, by number counted round and round, or as it is."""
    if isinstance(style, Style):
        return style
    if isinstance(style, int):
        return STYLES[style % len(STYLES)]
    return next(known for known in STYLES if known.name == style)
