"""Which fields stand on which page: by estimated tokens, stable, starting from the stored plan.

A page aims at a number of tokens, of the lines it asks about (input) or of the code it gets back
(output), whichever reaches it first. Only what grows with the fields is counted: the instructions
and the lists on every page are the same for each plan, and a type added elsewhere in the store must
not move a field here.

A stored plan is kept as far as it can be. Fields that still exist stay on their page; vanished ones
leave it; a page left without fields goes. A new field goes to the last page with room, else to the
emptiest page that stays within ``HARD_LIMIT`` targets, and only then to a new page at the end: so
one field added to a type changes one page's fields, and rarely the number of pages.
"""

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from pytest_regen.canonical import canonical_hash, canonical_json
from pytest_regen.documents.ir import EnumValue, TypeIR
from pytest_regen.errors import UsageError
from pytest_regen.languages.base import Language
from pytest_regen.prompts.values import PromptEntry, clip
from pytest_regen.text import quoted
from pytest_regen.turns.values import estimate_tokens

_MAX_DESCRIPTION: Final = 600
_MAX_CONSTRAINTS: Final = 500
_MAX_LABEL: Final = 200
_INT32: Final = range(-(2**31), 2**31)

_FLAGS: Final = ("required", "nullable", "read_only", "write_only", "deprecated")


class UnitLine(NamedTuple):
    """The line of one field or enum value, and the text its code will hold."""

    text: str
    """One JSON object on one line."""
    code_text: str
    """Names, type and description: what the planner weighs as output."""


def unit_lines(
    type_: TypeIR, language: Language, profile: str = "default"
) -> dict[EnumValue, UnitLine]:
    """Return the line of each unit of ``type_``, in document order."""
    names = language.member_names(type_)
    lines: dict[EnumValue, UnitLine] = {}
    labels = (type_.enum_names or ())[: len(type_.enum_values)]
    for value, label in zip_longest(type_.enum_values, labels):
        data: dict[str, Any] = {"value": value, "identifier": names[value]}
        if label is not None:
            data["label"] = clip(label, _MAX_LABEL)[0]
        lines[value] = UnitLine(quoted(data), f"{value}{names[value]}")
    for field in type_.fields if type_.kind == "object" else ():
        name, spelled = names[field.json_name], language.spell(field, profile=profile)
        data = {"json_name": field.json_name, "identifier": name, "type": spelled}
        flags = [flag.replace("_", "-") for flag in _FLAGS if getattr(field, flag)]
        flags += ["primary-key"] if field.json_name == type_.primary_key else []
        if flags:
            data["flags"] = flags
        about, note = clip(field.description or "", _MAX_DESCRIPTION)
        if about:
            data["description"] = about
        if note:
            data["description_shown"] = note
        if field.constraints:
            # Sorted, because the order of keys in a document must not change a prompt.
            ordered = {key: field.constraints[key] for key in sorted(field.constraints)}
            text, cut = clip(json.dumps(ordered, ensure_ascii=False, default=str), _MAX_CONSTRAINTS)
            data["constraints"] = text if cut else ordered
            if cut:
                data["constraints_shown"] = cut
        lines[field.json_name] = UnitLine(quoted(data), f"{field.json_name}{name}{spelled}{about}")
    return lines


def value_kind(values: Sequence[EnumValue]) -> str:
    """Return in words what the wire values of an enum are."""
    numbers = [value for value in values if isinstance(value, int)]
    if not numbers:
        return "strings"
    kind = "integers" if len(numbers) == len(values) else "strings and integers"
    return kind if all(value in _INT32 for value in numbers) else f"{kind}, exceeding 32 bits"


Plan = tuple[tuple[EnumValue, ...], ...]
"""For each page, the JSON names or enum values on it, in document order."""

TARGET_TOKENS: Final = 1_000
"""Aim for the lines of one page's fields, and for its code. Small enough that healing one wrong
field of a type with forty does not buy all forty again, and that no model cuts the answer; large
enough that the instructions are not most of the cost."""

HARD_LIMIT: Final = 2
"""Targets a page may grow to before a new field makes a new page."""


def plan_pages(
    type_: TypeIR,
    *,
    language: Language,
    profile: str = "default",
    fields_per_page: int | None = None,
    stored: Sequence[Sequence[EnumValue]] | None = None,
    target_tokens: int = TARGET_TOKENS,
) -> Plan:
    """Return the pages of ``type_``: each field or enum value on exactly one, in document order.

    Args:
        type_: the type to plan.
        language: spells the types and names, whose length counts.
        profile: decides how much code a field takes.
        fields_per_page: fields or enum values per page, instead of the token target.
        stored: the plan to start from. Not used where one of its pages has more fields than
            ``fields_per_page`` allows.
        target_tokens: aim for the lines about one page's fields, and for its code.

    Returns:
        At least one page; a type without fields has one empty page.

    Raises:
        UsageError: ``fields_per_page`` is not positive.
    """
    if fields_per_page is not None and fields_per_page < 1:
        raise UsageError(
            f"fields_per_page is {fields_per_page}, which leaves no room for a field",
            hint="give a number of 1 or more, or leave it out to plan by estimated tokens",
        )
    units = tuple(dict.fromkeys(type_.units))
    full = fields_per_page or target_tokens
    largest = full if fields_per_page else HARD_LIMIT * full
    weights = dict.fromkeys(units, 1)
    if fields_per_page is None:
        words = language.wording(profile)
        overhead = words.value_characters if type_.kind == "enum" else words.field_characters
        # Of the input or of the output, whichever is more.
        weights = {
            unit: max(estimate_tokens(line.text), estimate_tokens("x" * overhead + line.code_text))
            for unit, line in unit_lines(type_, language, profile).items()
        }

    def load(page: Sequence[EnumValue]) -> int:
        return sum(weights[unit] for unit in page)

    waiting = dict.fromkeys(units)
    pages: list[list[EnumValue]] = []
    for old in stored or ():
        # A unit that stands on two pages stays on the first, because it is asked for once.
        pages.append([unit for unit in dict.fromkeys(old) if unit in waiting])
        waiting = {unit: None for unit in waiting if unit not in pages[-1]}
    pages = [page for page in pages if page]
    # Whoever asks for smaller pages gets them, because else the option would do nothing.
    if fields_per_page is not None and any(load(page) > full for page in pages):
        pages, waiting = [], dict.fromkeys(units)
    homeless = []
    for unit in waiting:
        homes = [page for page in pages if load(page) + weights[unit] <= full][-1:]
        # No page has room: the emptiest may grow, because a new page costs all instructions again.
        homes = homes or sorted(pages, key=load)[:1]
        if homes and load(homes[0]) + weights[unit] <= largest:
            homes[0].append(unit)
        else:
            homeless.append(unit)
    position = {unit: index for index, unit in enumerate(units)}
    planned = tuple(tuple(sorted(page, key=position.__getitem__)) for page in pages)
    if homeless:
        capacity = full
        if fields_per_page is None:
            # Alike in size and no more than need be, because each page costs all instructions; a
            # unit beyond the target has a page of its own whatever the capacity.
            fewest = len(_fill(homeless, weights, full))
            sizes = range(min(full, max(weights[unit] for unit in homeless)), full + 1)
            # Negative, because there are fewer pages the more each may hold.
            capacity = sizes[
                bisect_left(sizes, -fewest, key=lambda size: -len(_fill(homeless, weights, size)))
            ]
        planned += _fill(homeless, weights, capacity)
    # A type without fields is declared all the same.
    return planned or ((),)


def plan_from_entries(entries: Sequence[PromptEntry]) -> dict[str, Plan]:
    """Return the plan that the entries of a ``prompts.json`` were made by, per type."""
    pages: dict[str, dict[int, tuple[EnumValue, ...]]] = {}
    for entry in entries:
        pages.setdefault(entry.type_name, {})[entry.page] = entry.fields
    return {name: tuple(by[page] for page in sorted(by)) for name, by in pages.items()}


def page_content_hash(type_: TypeIR, units: Sequence[EnumValue], *, first: bool) -> str:
    """Return the hash of what a page's output depends on, and nothing else.

    Equal hashes mean that a stored output still answers: the page's own fields are as they were
    and, on the first page, so is the type itself. How many pages there are, their order, and the
    fields of other pages do not count.
    """
    data = type_.to_json()
    on_page = set(units)
    if type_.kind == "enum":
        labels = type_.enum_names or (None,) * len(type_.enum_values)
        units_here: list[object] = [
            [value, label]
            for value, label in zip(type_.enum_values, labels, strict=False)
            if value in on_page
        ]
    else:
        is_alias = type_.kind == "alias"
        units_here = [each for each in data["fields"] if is_alias or each["json_name"] in on_page]
    shell = {
        key: value
        for key, value in data.items()
        if key not in {"fields", "enum_values", "enum_names"}
        and (first or key in {"name", "kind"} or (key == "primary_key" and value in on_page))
    }
    # Page 1 declares the enum for the values of all pages.
    shell["values_are"] = value_kind(type_.enum_values)
    return canonical_hash([shell, sorted(units_here, key=canonical_json)])


def _fill(units: Sequence[EnumValue], weights: Mapping[EnumValue, int], capacity: int) -> Plan:
    pages: list[list[EnumValue]] = [[]]
    load = 0
    for unit in units:
        if load + weights[unit] > capacity and pages[-1]:
            pages.append([])
            load = 0
        pages[-1].append(unit)
        load += weights[unit]
    return tuple(map(tuple, pages))
