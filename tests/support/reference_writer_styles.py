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
    array: Literal["as asked", "List", "[]", "IReadOnlyList"] = "as asked"
    map: Literal["as asked", "Dictionary", "IReadOnlyDictionary", "IDictionary"] = "as asked"
    accessor: Literal["init", "set"] = "init"
    required: Literal["keyword", "default!"] = "keyword"
    attributes: Literal["lines", "combined", "inline", "qualified", "suffixed"] = "lines"
    property_target: bool = False
    """Write ``[property: …]`` where the target is the property anyway."""
    types: Literal["keyword", "framework", "qualified"] = "keyword"
    order: Literal["document", "reversed", "sorted"] = "document"
    comments: Literal["none", "xml", "everywhere"] = "none"
    strings: Literal["regular", "escaped", "verbatim", "raw"] = "regular"
    descriptions: bool = True
    newline: str = "\n"
    indent: str = "    "
    byte_order_mark: bool = False
    reply: Literal["csharp", "cs", "plain", "long", "tilde", "bare", "prose"] = "csharp"
    continuation: Literal["delimited", "bare", "wrapped"] = "delimited"
    trailing_comma: bool = True
    generic_converter: bool = False

    def with_(self, changes: Mapping[str, Any]) -> "Style":
        """Return the style with some choices made otherwise."""
        return replace(self, **changes)


STYLES: tuple[Style, ...] = (
    Style("as_asked"),
    Style(
        "plain_class",
        array="List",
        accessor="set",
        required="default!",
        reply="bare",
        continuation="bare",
    ),
    Style(
        "documented",
        array="List",
        map="Dictionary",
        comments="xml",
        reply="prose",
        trailing_comma=False,
    ),
    Style("record", shape="record", array="IReadOnlyList", continuation="wrapped"),
    Style("positional", shape="positional", array="[]", reply="cs", continuation="bare"),
    Style("positional_body", shape="positional_body", comments="xml", continuation="wrapped"),
    Style("sealed", modifiers="public sealed", array="[]", attributes="combined", reply="plain"),
    Style("partial", modifiers="public partial", continuation="wrapped", types="framework"),
    Style(
        "sealed_partial",
        modifiers="public sealed partial",
        attributes="inline",
        order="sorted",
        map="IReadOnlyDictionary",
    ),
    Style("qualified", types="qualified", attributes="qualified", generic_converter=True),
    Style("suffixed", attributes="suffixed", property_target=True, map="IDictionary"),
    Style(
        "windows",
        array="IReadOnlyList",
        map="IReadOnlyDictionary",
        newline="\r\n",
        indent="\t",
        byte_order_mark=True,
        reply="bare",
    ),
    Style("windows_fenced", newline="\r\n", indent="\t", reply="csharp", continuation="bare"),
    Style("commented", comments="everywhere", reply="long", continuation="wrapped"),
    Style("commented_bare", comments="everywhere", reply="bare", continuation="delimited"),
    Style("reversed", order="reversed", strings="escaped", continuation="bare"),
    Style("verbatim", strings="verbatim", comments="xml", accessor="set", reply="tilde"),
    Style("raw", strings="raw", shape="record", required="default!", array="IReadOnlyList"),
    Style(
        "sealed_record",
        shape="record",
        modifiers="public sealed",
        attributes="combined",
        types="framework",
        array="[]",
        accessor="set",
        continuation="bare",
    ),
)
"""Every style of the decisions, "C#", at least once."""


def style_named(style: int | str | Style) -> Style:
    """Return a style by name, by number counted round and round, or as it is."""
    if isinstance(style, Style):
        return style
    if isinstance(style, int):
        return STYLES[style % len(STYLES)]
    return next(known for known in STYLES if known.name == style)
