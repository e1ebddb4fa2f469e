"""The tables of docs/languages.md, of which every cell is tried."""

import re
from collections.abc import Mapping
from typing import Any

from pages import ROOT

TYPE = "type in `ir.json`"


def tables(language: str, heading: str = TYPE) -> list[list[dict[str, str]]]:
    """Return the rows of each table of a language whose first heading begins so."""
    page = (ROOT / "docs/languages.md").read_text("utf-8")
    section = page.partition(f"\n## {language}\n")[2].partition("\n## ")[0]
    found = []
    for start in re.finditer(rf"^\| {re.escape(heading)}", section, re.MULTILINE):
        head, _, *lines = (
            [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            for line in section[start.start() :].partition("\n\n")[0].splitlines()
        )
        found.append([dict(zip(head, line, strict=True)) for line in lines])
    return found


def spellings(cell: str) -> list[str]:
    """Return the code words of a cell."""
    return re.findall(r"`([^`]+)`", cell)


def verdicts(language: str, heading: str, more: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the codes that a table names beside code, none of what is right; and more of such."""
    [rows] = tables(language, heading)
    says = {spellings(first)[0]: second for first, second in map(dict.values, rows)} | {**more}
    return {code: {words.partition(",")[0]} - {"right"} for code, words in says.items()}


def expression(words: str) -> dict[str, Any]:
    """Return the type expression that the first cell of a row describes."""
    if words.startswith(("array of ", "map of ")):
        kind, inner = words.split(" of ", 1)
        return {"kind": kind, "items" if kind == "array" else "values": expression(inner)}
    if words == "a type of the store":
        return {"kind": "ref", "name": "Shape"}
    if " or " in words:
        return {"kind": "union", "options": [expression(each) for each in words.split(" or ")]}
    kind, _, form = words.partition(", ")
    return {"kind": kind, "format": form or None}
