"""Faults in pages, and what a model is sent about each: system prompt, correction block, prompt.

Each case is a right page with one thing written otherwise, judged and corrected as a heal does it.
A reader who sees nothing but the two messages must be able to say what to change; ``expected``
names it for whoever checks the answer.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from reference_writer import ReferenceWriter, request_body

from pytest_regen.documents.ir import IR
from pytest_regen.languages import find_language
from pytest_regen.prompts import PromptEntry, build_prompts, correction_block, with_correction
from pytest_regen.regeneration.policies import fixable, pages_at_fault
from pytest_regen.sources import assemble, extract_code, stitch
from pytest_regen.validation import Issue, PageText, validate_by_type

Change = Callable[[str], str]


def _field(json_name: str, kind: str = "string", **more: Any) -> dict[str, Any]:
    typed: dict[str, Any] = {"kind": kind}
    for key in ("format", "items", "values"):
        if key in more:
            typed[key] = more.pop(key)
    if kind == "ref":
        typed["name"] = more.pop("name")
    return {"json_name": json_name, "type": typed, **more}


_PARCEL = [
    _field(
        "parcel_id", "integer", format="int64", required=True, description="Number on the label."
    ),
    _field("label", description="Text on the label, as printed."),
    _field("currency", description='Currency of the value, for instance "EUR" or "CHF".'),
    _field("notes", nullable=True, description="Words of the sender. One line each."),
    _field("sent_at", format="date-time", required=True, description="When it left the sender."),
    _field("tags", "array", items={"kind": "string"}, description="Words to find it by."),
    _field("status", "ref", name="ParcelStatus", required=True, description="Where it stands."),
    _field("sender", "ref", name="Address", description="Who sent it."),
    _field("weights", "map", values={"kind": "number"}, description="Weights by scale."),
    _field("declared_value", "number", format="decimal", description="What it is worth."),
    _field("size_bytes", "integer", description="Size of its picture."),
    _field("is_fragile", "boolean", required=True, description="Whether it breaks."),
    _field("stops", "array", items={"kind": "ref", "name": "Address"}, required=True),
    _field("track_url", format="uri", description="Where to follow it."),
    _field("batch", format="uuid", required=True, nullable=True, description="The batch, if any."),
]
_ADDRESS = [
    _field("street", description="Street and number."),
    _field("city", required=True, description="Town or city."),
    _field("country_code", required=True, description="Two letters."),
    _field("post_code", description="As written there."),
]
_VALUES = ["accepted", "in transit", "403b", "on_hold", "n/a", "light-green", "TLSv1.2", "lost"]
PARCELS = IR.of(
    {
        "endpoint": {"method": "GET", "path": "/v2/parcels/{parcel_id}"},
        "language": "csharp",
        "types": [
            {
                "name": "ParcelDataObject",
                "schema_id": "#/components/schemas/Parcel",
                "is_root": True,
                "kind": "object",
                "description": "A parcel on its way.",
                "fields": _PARCEL,
                "primary_key": "parcel_id",
            },
            {
                "name": "Address",
                "schema_id": "#/components/schemas/Address",
                "kind": "object",
                "fields": _ADDRESS,
            },
            {
                "name": "ParcelStatus",
                "schema_id": "#/components/schemas/ParcelStatus",
                "kind": "enum",
                "description": "Where a parcel stands.",
                "enum_values": _VALUES,
            },
            {
                "name": "Priority",
                "schema_id": "#/components/schemas/Priority",
                "kind": "enum",
                "enum_values": [0, 10, 5_000_000_000],
            },
        ],
    }
)
"""A root of three pages, a class of one, an enum of strings on two, and one of numbers."""


@dataclass(frozen=True, slots=True)
class Case:
    """One fault: what is written otherwise on which page, and what an answer must say of it."""

    name: str
    change: Change
    expected: Sequence[tuple[str, Sequence[str]]]
    """Field or value (may be empty), and words of which an answer uses at least one."""
    type_name: str = "ParcelDataObject"
    page: int = 1


@cache
def prompts() -> Mapping[tuple[str, int], PromptEntry]:
    """Return the prompts of the store, by type and page."""
    made = build_prompts(PARCELS, language=find_language("csharp"), fields_per_page=5)
    return {(entry.type_name, entry.page): entry for entry in made}


@cache
def right_pages() -> Mapping[tuple[str, int], str]:
    """Return the right code of each page."""
    writer, csharp = ReferenceWriter(), find_language("csharp")
    replies = {
        key: writer(request_body(entry.system, entry.user)) for key, entry in prompts().items()
    }
    return {key: extract_code(reply, language=csharp) for key, reply in replies.items()}


@cache
def sent(name: str) -> tuple[str, str]:
    """Return the prompt that is sent after the fault of a case was made, and its correction."""
    case = next(case for case in CASES if case.name == name)
    entry = prompts()[case.type_name, case.page]
    found = pages_at_fault(issues(case), entry.total_pages).get(case.page, ())
    block = correction_block(found, entry.user)
    return with_correction(entry.user, block), block


def issues(case: Case) -> tuple[Issue, ...]:
    """Return what is wrong with the type of ``case``, for a model to mend."""
    outputs = dict(right_pages())
    key = case.type_name, case.page
    changed = case.change(outputs[key])
    assert changed != outputs[key], f"{case.name} changes nothing"
    outputs[key] = changed
    pages: dict[str, list[PageText]] = {}
    csharp = find_language("csharp")
    for (name, number), entry in prompts().items():
        page = PageText(number, entry.total_pages, entry.fields, outputs[name, number])
        pages.setdefault(name, []).append(page)
    blocks = [
        (
            name,
            stitch(
                [one.output for one in own], name=name, is_enum=_is_enum(name), language=csharp
            ).text,
        )
        for name, own in pages.items()
    ]
    results = validate_by_type(assemble(blocks), PARCELS, pages=pages)
    return fixable(results[case.type_name])


def _is_enum(name: str) -> bool:
    type_ = PARCELS.type_named(name)
    return type_ is not None and type_.kind == "enum"


def put(*pairs: str) -> Change:
    """Return a change of ``old, new, old, new, …``, each once."""

    def change(code: str) -> str:
        for old, new in zip(pairs[::2], pairs[1::2], strict=True):
            assert old in code, f"{old!r} is not in the page:\n{code}"
            code = code.replace(old, new, 1)
        return code

    return change


def without(*names: str) -> Change:
    """Return a change that leaves out the members of these fields or values."""

    def change(code: str) -> str:
        for name in names:
            code = _member(name).sub("", code, count=1)
        return code

    return change


def _member(name: str) -> re.Pattern[str]:
    """Return the text of a member: its attributes, its declaration and the blank line after it."""
    return re.compile(
        rf'^ *\[Json\w+\("{re.escape(name)}"\)\]\n(?: *\[.*\]\n)*.*(?:\n\n?|$)', re.MULTILINE
    )


def member(name: str, key: tuple[str, int]) -> str:
    """Return the right text of a member."""
    found = _member(name).search(right_pages()[key])
    assert found is not None, name
    return found[0].rstrip("\n") + "\n"


def also(name: str, page: int, type_name: str = "ParcelDataObject") -> Change:
    """Return a change that writes a member of another page as well, at the end of this one."""
    return _before_end(lambda: member(name, (type_name, page)))


def _before_end(made: Callable[[], str]) -> Change:
    def change(code: str) -> str:
        end = code.rindex("// END_FIELDS") if "// END_FIELDS" in code else code.rindex("}")
        return f"{code[:end]}\n{made()}{code[end:]}"

    return change


def _all_fields(code: str) -> str:
    for page in (2, 3):
        for name in prompts()["ParcelDataObject", page].fields:
            code = also(str(name), page)(code)
    return code


def _enum_member(code: str) -> str:
    return code.replace("JsonStringEnumMemberName(", "EnumMember(Value = ")


STATUS, ADDRESS = "ParcelStatus", "Address"
CASES: tuple[Case, ...] = (
    # -- presence
    Case("field left out", without("label"), [("label", ("missing", "add"))]),
    Case(
        "three fields left out",
        without("street", "country_code", "post_code"),
        [(name, ("missing", "add")) for name in ("street", "country_code", "post_code")],
        ADDRESS,
    ),
    Case(
        "wire name misspelt",
        put('"post_code"', '"postcode"'),
        [("post_code", ("postcode",))],
        ADDRESS,
    ),
    Case(
        "no wire name",
        put('    [JsonPropertyName("street")]\n', ""),
        [("street", ("JsonPropertyName",))],
        ADDRESS,
    ),
    Case(
        "invented field",
        put(
            "{\n",
            '{\n    [JsonPropertyName("county")]\n    public string? County { get; init; }\n\n',
        ),
        [("county", ("remove", "drop", "delete", "leave out", "omit"))],
        ADDRESS,
    ),
    Case(
        "every field on page 1",
        _all_fields,
        [
            ("tags", ("page 2", "remove", "drop", "omit", "leave out")),
            ("batch", ("page 3", "remove", "drop", "omit", "leave out")),
        ],
    ),
    Case(
        "field twice",
        _before_end(lambda: member("city", (ADDRESS, 1)).replace(" City ", " Town ")),
        [("city", ("twice", "once", "remove", "delete", "duplicate"))],
        ADDRESS,
    ),
    # -- types
    Case("wrong scalar", put("long ParcelId", "string ParcelId"), [("parcel_id", ("long",))]),
    Case(
        "undeclared type",
        put("Address? Sender", "Person? Sender"),
        [("sender", ("Address", "Person"))],
        page=2,
    ),
    Case(
        "lost question mark",
        put("string? Street", "string Street"),
        [("street", ("?", "nullable", "question"))],
        ADDRESS,
    ),
    Case(
        "optional demanded",
        put("public string? Street", "public required string? Street"),
        [("street", ("required",))],
        ADDRESS,
    ),
    Case(
        "key on another field",
        put("    [Key]\n", "", '("label")]\n', '("label")]\n    [Key]\n'),
        [("label", ("[Key]", "Key"))],
    ),
    # -- enums
    Case("value left out", without("403b"), [("403b", ("missing", "add"))], STATUS),
    Case(
        "value twice",
        put("Accepted,", 'Accepted,\n    [JsonStringEnumMemberName("accepted")]\n    Taken,'),
        [("accepted", ("once", "duplicate", "twice", "remove", "delete"))],
        STATUS,
    ),
    Case(
        "EnumMember",
        _enum_member,
        [("403b", ("JsonStringEnumMemberName",)), ("n/a", ("JsonStringEnumMemberName",))],
        STATUS,
    ),
    Case("wrong number", put("= 10", "= 11"), [("10", ("11",))], "Priority"),
    # -- declarations
    Case(
        "class misnamed",
        put("class Address", "class AddressDto"),
        [("", ("AddressDto", "Address"))],
        ADDRESS,
    ),
    Case(
        "declares another type",
        lambda code: code + "\n\npublic enum ParcelStatus { }",
        [("", ("ParcelStatus",))],
        ADDRESS,
    ),
    # -- names
    Case(
        "keyword as name",
        put("City {", "class {"),
        [("city", ("class", "keyword", "City"))],
        ADDRESS,
    ),
    # -- what the serializer passes over, or a compiler refuses
    Case(
        "no setter",
        put("Street { get; init; }", "Street { get; }"),
        [("street", ("init", "set"))],
        ADDRESS,
    ),
    Case(
        "enum without converter",
        put("[JsonConverter(typeof(JsonStringEnumConverter))]\n", ""),
        [("", ("JsonConverter",))],
        STATUS,
    ),
    Case("abstract", put("public class", "public abstract class"), [("", ("abstract",))], ADDRESS),
    Case(
        "constructor of nothing",
        put("{\n", "{\n    public Address(int other) { }\n\n"),
        [("", ("constructor", "other"))],
        ADDRESS,
    ),
    # -- replies
    Case(
        "prose alone",
        lambda _: "I would rather not write this type today.",
        [("", ("code", "class", "declare"))],
        ADDRESS,
    ),
    Case(
        "placeholder",
        put("class Address", "class {ClassName}"),
        [("", ("placeholder", "{ClassName}", "Address"))],
        ADDRESS,
    ),
    Case("empty", lambda _: "", [("", ("empty", "no code", "code"))], ADDRESS),
)


def unsaid(case: Case, answer: str) -> list[str]:
    """Return the fields of which ``answer`` does not say what to change."""
    said = answer.casefold()
    return [
        field or "(the page)"
        for field, words in case.expected
        if field.casefold() not in said or not any(word.casefold() in said for word in words)
    ]
