"""Faults put into right Python are found: each with its code, at its type, on its page.

An operator changes the code of one member, or of a whole page. Each is tried on the first place
that it fits; the sweep tries every place of every profile that it fits.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest
from python_kites import KITES, PYTHON, issues_of, pages_of

from pytest_regen.documents.ir import EnumValue, TypeIR
from pytest_regen.prompts.values import OutputMode
from pytest_regen.validation import PageText

Change = Callable[[str], str]
PROFILES = ("default", "dataclass", "typeddict")


@dataclass(frozen=True)
class Operator:
    """A fault: how it is put into the code, and the codes by which it may be found."""

    name: str
    change: Change
    codes: tuple[str, ...]
    of: str = "field"
    """``field``, ``value``, ``page`` (of an object) or ``enum`` (a page of an enum)."""
    profiles: tuple[str, ...] = ("default",)
    fits: str = ""
    """Must be found in the code of a member."""


def sub(pattern: str, replacement: str, count: int = 1) -> Change:
    """Return a change by regular expression."""
    return lambda code: re.sub(pattern, replacement, code, count=count)


def operators() -> Iterator[Operator]:
    """Yield all faults."""
    every = {"profiles": PROFILES}
    lost = ("MISSING_FIELD",)
    wrong = ("WRONG_TYPE",)
    null = ("NULLABILITY",)
    illegal = ("SYNTAX",)
    enum = ("ENUM_MEMBER",)
    optional = r"= (?:Field\(\s*default=)?None"
    # names on the wire
    yield Operator("alias dropped", sub(r'alias="[^"]*"(?:, )?', ""), lost, fits='alias="(?!class)')
    yield Operator("alias misspelt", sub(r'alias="', 'alias="x'), lost)
    yield Operator("alias in capitals", sub(r'alias="(\w)', r'alias="\1X'), lost)
    yield Operator("alias only read", sub(r"\balias=", "validation_alias="), lost)
    yield Operator("alias only written", sub(r"\balias=", "serialization_alias="), lost)
    yield Operator("alias is a name", sub(r'alias="[^"]*"', "alias=ALIAS"), lost)
    yield Operator("identifier changed", sub(r"^    (\w+):", r"    \1_x:"), lost, fits=r"^[^\"]*$")
    yield Operator("field left out", lambda _: "", lost, **every)
    yield Operator("left out of JSON", sub(r"Field\(", "Field(exclude=True, "), lost)
    yield Operator("field commented out", sub(r"(?m)^", "# ", 0), lost, **every)
    yield Operator(
        "field written twice",
        lambda code: code + "\n" + re.sub(r"^    (\w+):", r"    \1_again:", code),
        ("DUPLICATE_FIELD",),
        fits="alias=",
    )
    yield Operator(
        "field invented", lambda code: f"{code}\n    invented: str | None = None", ("PHANTOM_FIELD",)
    )
    yield Operator(
        "key written twice",
        lambda code: f"{code}\n{code}",
        ("DUPLICATE_FIELD",),
        profiles=("typeddict",),
    )
    # null and absence
    yield Operator("None dropped", sub(r" \| None(?= =)", ""), null)
    yield Operator("None added", sub(r"$", " | None"), null, fits=r"^    \w+: (?!Any)[\w.\[\], ]+$")
    yield Operator("default dropped", sub(r" = None$", ""), null, fits=r"None = None$")
    yield Operator("default dropped in Field", sub(r"default=None,?\s*", ""), null)
    yield Operator("default added", sub(r"$", " = None"), null, fits=r"^    \w+: (?!Any)[^=]+$")
    yield Operator("default of a value", sub(optional + "$", '= ""'), null, fits="str . None = None$")
    yield Operator("default in Field", sub("default=None", 'default=""'), null, fits="str . None")
    yield Operator("factory", sub("= None$", "= Field(default_factory=list)"), null, fits="= None$")
    yield Operator("UNSET dropped", sub(r" = UNSET", ""), null, profiles=("dataclass",))
    yield Operator("Unset dropped", sub(r" \| Unset", ""), null, profiles=("dataclass",))
    yield Operator(
        "NotRequired dropped", sub(r"NotRequired\[(.*)\]", r"\1"), null, profiles=("typeddict",)
    )
    yield Operator(
        "NotRequired added",
        sub(r': "([^"]+)"', r': "NotRequired[\1]"'),
        null,
        profiles=("typeddict",),
        fits=r'^(?!.*NotRequired).*": "',
    )
    # types
    for old, new in (
        ("str", "int"),
        ("str", "bytes"),
        ("int", "str"),
        ("int", "float"),
        ("float", "int"),
        ("bool", "int"),
        ("Colour", "str"),
        ("Level", "int"),
        ("Colour", "Level"),
        ("Knot", "dict[str, Any]"),
        ("list", "set"),
    ):
        yield Operator(
            f"{old} is {new}",
            sub(rf"(?<=[\[ \"|]){old}\b", new),
            wrong,
            fits=rf"(?m)^[^\[#]*[: \"|]{old}\b",
            **every,
        )
    for old, new in (
        (r"dt\.datetime", "dt.date"),
        (r"dt\.datetime", "float"),
        (r"dt\.date\b", "dt.datetime"),
        ("UUID", "int"),
        ("UUID", "bytes"),
    ):
        yield Operator(f"{old} is {new}", sub(old, new), wrong, profiles=("default", "dataclass"))
    yield Operator("a decimal as text", sub("DecimalNumber", "Decimal"), wrong)
    yield Operator("an element alone", sub(r"list\[(\w+)\]", r"\1"), wrong, **every)
    yield Operator("a list of lists", sub(r"list\[(\w+)\]", r"list[list[\1]]"), wrong, **every)
    yield Operator("keys of integers", sub(r"dict\[str", "dict[int"), wrong, **every)
    yield Operator("values of another type", sub(r"dict\[str, int", "dict[str, str"), wrong, **every)
    yield Operator("a map as a list", sub(r"dict\[str, (\w+)\]", r"list[\1]"), wrong, **every)
    yield Operator(
        "a type that is nowhere", sub(r"\b(?:Knot|Colour)\b", "Ghost"), ("UNDECLARED_TYPE",), **every
    )
    yield Operator("union cut", sub(r"Knot \| Bow|Bow \| Knot", "Knot"), wrong, **every)
    yield Operator("union widened", sub(r"Knot \| Bow", "Knot | Bow | int"), wrong, **every)
    yield Operator("wrong tag", sub(r'discriminator="\w+"', 'discriminator="tag"'), wrong)
    yield Operator("Literal changed", sub(r'Literal\["', 'Literal["x'), wrong, **every)
    yield Operator(
        "Literal widened", sub(r"Literal\[(.*?)\]", r'Literal[\1, "more"]'), wrong, **every
    )
    yield Operator("Literal dropped", sub(r"Literal\[.*?\]", "str"), wrong, **every)
    yield Operator("a limit changed", sub(r"(max_length|ge)=\d+", r"\1=3"), wrong)
    yield Operator("a limit invented", sub(r"Field\(", "Field(min_length=3, "), wrong)
    yield Operator("pattern changed", sub(r'pattern=r?"', 'pattern=r"x'), wrong)
    # names
    yield Operator(
        "a method's name",
        sub(r"^    (\w+): (.*?)(?: = None)?$", r'    json: \2 = Field(alias="\1")'),
        ("DUPLICATE_PROPERTY",),
        fits=r"^    \w+: (?!.*None)[\w.]+$",
    )
    yield Operator(
        "a name of types",
        sub(r"^    \w+: (.*) = Field\((?:\s*)default=None", r"    dt: \1 = Field(default=None"),
        ("DUPLICATE_PROPERTY", "MISSING_FIELD"),
        fits="alias=.*default=None|default=None, alias=",
    )
    yield Operator(
        "an underscore first", sub(r"^    (?=\w)", "    _"), ("INVALID_IDENTIFIER",), fits="alias="
    )
    # signs
    yield Operator("no annotation", sub(r": [^=]+ = ", " = "), illegal, fits="= Field")
    yield Operator("bracket lost", sub(r"\](?!.*\])", ""), illegal, fits=r"list\[|dict\[", **every)
    yield Operator("parenthesis lost", sub(r"\)$", ""), illegal, fits=r"\)$")
    yield Operator("parenthesis too many", sub(r"\)$", "))"), illegal, fits=r"\)$")
    yield Operator("quote lost", sub(r'"', ""), illegal, fits='alias="')
    yield Operator("last quote lost", sub(r'"(?=[,)])', ""), illegal, fits='alias="[^"]*"\\)')
    yield Operator("comma lost", sub(r", (?=\w+=)", " "), illegal)
    yield Operator("colon lost", sub(r"^(    \w+): ", r"\1 "), illegal, profiles=PROFILES[:2])
    yield Operator("equals sign lost", sub(r" = (?=Field)", " "), illegal)
    yield Operator("bar lost", sub(r" \| (?=None)", " "), illegal)
    yield Operator("a comma at the end", sub(r"$", ","), illegal, fits=r"\)$")
    yield Operator(
        "hyphen in a name",
        sub(r"^    (\w+)_(\w+):", r"    \1-\2:"),
        ("INVALID_IDENTIFIER",),
        profiles=PROFILES[:2],
    )
    yield Operator(
        "keyword as a name",
        sub(r"^    class_:", "    class:"),
        ("INVALID_IDENTIFIER",),
        profiles=PROFILES[:2],
    )
    yield Operator("name in quotes", sub(r"^    (\w+):", r'    "\1":'), illegal, fits="= Field")
    yield Operator("indented too far", sub(r"^    (?=\w)", "      "), illegal, profiles=PROFILES[:2])
    yield Operator("a question mark", sub(r" \| None", "?"), illegal, fits="= None$")
    yield Operator("null of JavaScript", sub(r"= None$", "= null"), illegal, fits="= None$")
    yield Operator(
        "quotes not escaped",
        sub(r'description="The ', 'description="The "'),
        illegal,
        fits="description=.*\\.",
    )
    yield Operator("a comment of C", sub(r"$", "  // note"), illegal, fits=r"\w$", profiles=PROFILES[:2])
    for comment in ("# ... other fields omitted for brevity", "# rest of the fields"):
        yield Operator(
            f"elision {comment[:9]}", lambda _, text=comment: f"    {text}", ("ARTIFACT",), **every
        )
    # pages
    declares = r"(?m)^(?:class |\w+ = TypedDict|\w+: TypeAlias)"  # elsewhere what stands around delimiters is left out
    for word in ("Here is the class you asked for:", "I hope this helps you!"):
        yield Operator(
            f"prose: {word[:6]}",
            lambda code, text=word: f"{text}\n{code}",
            ("ARTIFACT",),
            "page",
            PROFILES,
            declares,
        )
    yield Operator("prose alone", lambda _: "I cannot help with that.", ("ARTIFACT",), "page", **every)
    yield Operator("nothing", lambda _: "", ("EMPTY_OUTPUT",), "page", **every)
    yield Operator(
        "a fence", lambda code: f"{code}\n```", ("ARTIFACT",), "page", PROFILES, declares
    )
    yield Operator(
        "JSON", lambda code: json.dumps({"code": code}), ("ARTIFACT", "SYNTAX"), "page", **every
    )
    yield Operator(
        "HTML",
        lambda code: code.replace('"', "&quot;"),
        ("SYNTAX",),
        "page",
        fits='alias="|Literal\\["|: "',
        profiles=PROFILES,
    )
    yield Operator(
        "cut off", lambda code: code[: code.rindex("=") + 1], ("SYNTAX",), "page", PROFILES[:2], "="
    )
    head = "class Kite"
    yield Operator("no base class", sub(r"\(ApiModel\)", ""), ("MISSING_CLASS",), "page")
    yield Operator("another base", sub(r"\(ApiModel\)", "(Ghost)"), ("UNDECLARED_TYPE",), "page")
    yield Operator(
        "a dataclass", sub(head + r"\(ApiModel\)", f"@dataclasses.dataclass\n{head}"),
        ("MISSING_CLASS",), "page",
    )  # fmt: skip
    yield Operator(
        "no dataclass", sub(r"@dataclasses.*\n", ""), ("MISSING_CLASS",), "page", ("dataclass",)
    )
    yield Operator(
        "no TypedDict", sub(r"\(TypedDict\)", ""), ("MISSING_CLASS",), "page", ("typeddict",)
    )
    yield Operator(
        "an enum", sub(r"\(ApiModel\)", "(StrEnum)"), ("MISSING_CLASS",), "page", fits="class Kite"
    )
    yield Operator(
        "another name", sub(r"class (\w+)", r"class \1Response"), ("MISSING_CLASS",), "page"
    )
    yield Operator(
        "a foreign class", lambda code: f"{code}\n\n\nclass Tail(ApiModel):\n    x: int",
        ("FOREIGN_TYPE",), "page", fits="class ",
    )  # fmt: skip
    yield Operator(
        "colon of the class lost", sub(r"(class .*):", r"\1"), ("SYNTAX",), "page", PROFILES, "class "
    )
    yield Operator(
        "a method outside", lambda code: f"{code}\n\n\ndef load(text):\n    return text",
        ("SYNTAX",), "page", PROFILES, "class ",
    )  # fmt: skip
    # enums
    every_value = {"of": "value", "profiles": PROFILES}
    yield Operator("value left out", lambda _: "", enum, **every_value)
    yield Operator("value changed", sub(r'(?<=")(?=\w)', "x"), enum, **every_value)
    yield Operator("number changed", sub(r"\d+(?=,?$)", "9"), enum, **every_value)
    yield Operator("value in capitals", sub(r'"sky-blue"', '"SKY_BLUE"'), enum, **every_value)
    yield Operator("auto()", sub(r"= .*", "= auto()"), enum, "value", fits='"')
    yield Operator("number as text", sub(r"(-?\d+)$", r'"\1"'), enum, "value", fits=r"\d$")
    yield Operator("value is a tuple", sub(r"$", ","), illegal, "value")
    yield Operator(
        "value twice", lambda code: f"{code}\n{code.replace(' =', '_2 =')}", enum, **every_value
    )
    yield Operator("value invented", lambda code: f'{code}\n    OTHER = "other"', enum, "value")
    yield Operator("numbers in a StrEnum", sub("IntEnum", "StrEnum"), illegal, "enum")
    yield Operator("text in an IntEnum", sub("StrEnum", "IntEnum"), illegal, "enum")
    yield Operator("no enum", sub(r"\((?:Str|Int)Enum\)", ""), ("MISSING_CLASS",), "enum")
    yield Operator(
        "comma of a value lost", sub(r",$", ""), illegal, "value", ("typeddict",), "sky-blue|-1"
    )


OPERATORS = list(operators())


@dataclass(frozen=True)
class Place:
    """Where a fault stands."""

    type_name: str
    page: int
    unit: EnumValue | None
    profile: str
    code: str
    """Of the page, with the fault in it."""


def places(operator: Operator, profile: str) -> Iterator[Place]:
    """Yield each way to put the fault into the kites."""
    for type_ in KITES.types:
        if (type_.kind == "enum") != (operator.of in {"value", "enum"}):
            continue
        for page in pages_of(type_, profile, 2 if type_.kind == "enum" else 5):
            if operator.of in {"page", "enum"}:
                changed = operator.change(page.output)
                if re.search(operator.fits, page.output) and changed != page.output:
                    yield Place(type_.name, page.page, None, profile, changed)
                continue
            for unit in page.fields:
                own = member_code(type_, unit, profile)
                changed = operator.change(own)
                if re.search(operator.fits, own) and changed != own:
                    code = page.output.replace(own, changed)
                    yield Place(type_.name, page.page, unit, profile, code)


def member_code(type_: TypeIR, unit: EnumValue, profile: str) -> str:
    """Return the code of one member, as it stands on its page."""
    mode: OutputMode = "enum_values_only" if type_.kind == "enum" else "fields_only"
    return "\n".join(PYTHON.write_page(type_, [unit], mode, profile=profile).split("\n")[1:-1])


def pages_with(place: Place) -> dict[str, list[PageText]]:
    """Return the pages of all types, one of them with the fault."""
    sizes = {"enum": 2, "object": 5}
    pages = {each.name: pages_of(each, place.profile, sizes[each.kind]) for each in KITES.types}
    own = pages[place.type_name]
    own[place.page - 1] = replace(own[place.page - 1], output=place.code)
    return pages


def check(operator: Operator, place: Place) -> None:
    """Assert that the fault is found, and that nothing is said of other types."""
    issues = issues_of(pages_with(place), KITES, place.profile)
    found = [
        issue
        for issue in issues
        if (issue.code, issue.type_name, issue.page)
        in {(code, place.type_name, place.page) for code in operator.codes}
    ]
    elsewhere = [issue for issue in issues if issue.type_name != place.type_name]

    assert found, (operator.name, place, issues)
    assert not elsewhere, (operator.name, place, elsewhere)


@pytest.mark.parametrize("profile", PROFILES)
def test_right_pages_have_no_issue(profile: str) -> None:
    """What the language writes itself is clean, page by page."""
    sizes = {"enum": 2, "object": 5}
    pages = {each.name: pages_of(each, profile, sizes[each.kind]) for each in KITES.types}

    assert not issues_of(pages, KITES, profile)


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_a_fault_is_found(operator: Operator) -> None:
    """A fault has its code, at its type and on its page."""
    place = next(place for each in operator.profiles for place in places(operator, each))

    check(operator, place)


@pytest.mark.sweep
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_a_fault_is_found_everywhere(operator: Operator, profile: str) -> None:
    """The same at every place that the fault fits."""
    if profile in operator.profiles:
        for place in places(operator, profile):
            check(operator, place)
