"""What stands above the types of a file: imports and base classes, and which of them are gone."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from pytest_regen.languages.base import HeaderLine
from pytest_regen.languages.python.names import BASE_MODEL
from pytest_regen.languages.python.source import names_bound, parse, unquoted
from pytest_regen.languages.python.wording import wording

# RUF100 too, because ruff calls the other one unused in a file that needs every import.
_NOTE: Final = """\
# ruff: noqa: F401, RUF100
# The imports serve all types of an API; not every file uses each of them.
\"\"\"Types of an HTTP API.\"\"\"
"""
_TIGHT: Final = """\
# fmt: off
# The lines that tell whose text is whose stand close to the types."""

_MODEL_HEADER: Final = f'''\
from __future__ import annotations

import datetime as dt
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer

DecimalNumber = Annotated[Decimal, PlainSerializer(float, when_used="json")]
"""A decimal that is a number in JSON; pydantic would write it as text."""


class {BASE_MODEL}(BaseModel):
    """The base class of all models: what the API sends beyond the fields is kept.

    Read JSON by ``model_validate_json``; write it, what was absent left out, by
    ``model_dump_json(by_alias=True, exclude_unset=True)``.
    """

    model_config = ConfigDict(
        extra="allow", populate_by_name=True, protected_namespaces=()
    )'''

_DATACLASS_HEADER: Final = '''\
from __future__ import annotations

import dataclasses
import datetime as dt
from enum import Enum, IntEnum, StrEnum
from typing import Any, Final, Literal
from uuid import UUID


class Unset(Enum):
    """The type of ``UNSET``, which stands for a field that is not there."""

    UNSET = object()


UNSET: Final = Unset.UNSET'''

_TYPEDDICT_HEADER: Final = """\
from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict"""

_HEADERS: Final[Mapping[str, str]] = {
    "default": _MODEL_HEADER,
    "dataclass": _DATACLASS_HEADER,
    "typeddict": _TYPEDDICT_HEADER,
}


_ADVICE: Final = (
    "put the line back at the top of the file; where the name comes from another place, leave "
    "MISSING_USING out with `ignore`"
)


def header(*, namespace: str, profile: str) -> str:
    """Return the lines before the first boundary, without a final line end.

    Args:
        namespace: not used, because a module is called as its file.
        profile: decides what is imported.

    Raises:
        UsageError: there is no such profile.
    """
    del namespace
    wording(profile)
    gap = "\n\n\n" if profile == "default" else "\n\n"  # two lines after a class
    return f"{_NOTE}\n{_HEADERS[profile]}{gap}{_TIGHT}"


def missing_in_header(
    outside: str, blocks: Mapping[str, str], *, profile: str
) -> Sequence[HeaderLine]:
    """Return the imports and declarations of the header that are gone although a block needs them.

    See ``Language.missing_in_header``. A name that the text outside binds in any way is there.
    """
    try:
        bound = names_bound(parse(outside))
    except (SyntaxError, ValueError):
        return ()  # Running it tells what is wrong.
    lines = _lines(_HEADERS.get(profile, ""))
    gone = {name: line for name, line in lines.items() if name not in bound}
    needed: dict[str, HeaderLine] = {}
    # After ``import *`` nobody knows what is bound.
    for type_name, text in blocks.items() if gone and "*" not in bound else ():
        used = set(_names_used(text))
        for name, line in gone.items():
            if name in used:
                needed.setdefault(line, HeaderLine(line, name, type_name, _ADVICE))
    return tuple(needed[line] for line in dict.fromkeys(gone.values()) if line in needed)


def provided_to(code: str) -> frozenset[str]:
    """Return the names that the header of the profile provides for which code was written."""
    # By its words, because a page is joined before anybody says of which profile it is.
    is_model = BASE_MODEL in code or "Enum)" in code
    profile = "default" if is_model else "dataclass" if "dataclass" in code else "typeddict"
    return frozenset(_lines(_HEADERS[profile]))


def _lines(text: str) -> dict[str, str]:
    """Return the names that a header binds, and the line that does."""
    statements = names_bound(parse(text)).items()
    lines = {name: ast.unparse(node).split("\n")[0] for name, node in statements}
    # No block uses that name, so it would never be missed.
    lines.pop("annotations", None)
    return lines


def _names_used(text: str) -> Iterator[str]:
    """Yield the names in the code of a block, those in quoted types too."""
    with suppress(SyntaxError, ValueError):
        for node in ast.walk(parse(text)):
            if isinstance(node, ast.Name):
                yield node.id
            for value in node.values if isinstance(node, ast.Dict) else ():
                yield from _names_used(ast.unparse(unquoted(value)))
